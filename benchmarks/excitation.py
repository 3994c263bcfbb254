"""Self-exciting rates: known triggers recovered, who triggers whom, and what a fit takes.

    python benchmarks/excitation.py [--quick] [--sets N] [--part NAME ...]

Simulated on a line with a mean gap of 1 and a mean lag of 1: exponential, power-law and delayed
triggers at branching ratios of .9, .5 and .2. The error of the trigger is relative, ∫|ĝ - g| / ∫g;
log-likelihoods are of fresh events, per event, beside those of the true rate. Five types with a
random matrix: the area under the ROC curve of who triggers whom. Independent events that come
together for other reasons: is 0 in the band of the branching ratio? Times are CPU seconds of one
core. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import os

# before any of the libraries is imported
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

import warnings
from collections.abc import Callable
from time import process_time
from typing import NamedTuple

import numpy as np
from _etas import (
    EtasFit,
    EtasParams,
    compensator,
    gutenberg_richter,
    log_rates,
    simulate_etas,
    uniform_background,
)
from _measure import finish, header, parser, row
from sklearn.metrics import roc_auc_score

from hplus import Box, Interval, SelfExciting

Rng = np.random.Generator

MOST_ERROR = {0.9: 0.15, 0.5: 0.20, 0.2: 0.40}
"""The relative error of the trigger, by branching ratio."""

MOST_BIAS, MOST_LOSS, LEAST_AREA = 0.03, 0.02, 0.95
MOST_SECONDS = 60.0

BURN_IN = 300.0
"""Time before the window from which simulated events are history."""


class Known(NamedTuple):
    """A trigger of mean lag 1: its density, the distribution function, and draws from it."""

    density: Callable[[np.ndarray], np.ndarray]
    distribution: Callable[[np.ndarray], np.ndarray]
    draw: Callable[[Rng, int], np.ndarray]


def _delayed_distribution(t: np.ndarray) -> np.ndarray:
    return 1.0 - np.exp(-4.0 * t) * (1.0 + 4.0 * t + 8.0 * t**2 + 32.0 * t**3 / 3.0)


TRIGGERS = {
    "exponential": Known(
        lambda t: np.exp(-t), lambda t: -np.expm1(-t), lambda rng, n: rng.exponential(1.0, n)
    ),
    "power law": Known(
        lambda t: 3.0 * (1.0 + 2.0 * t) ** -2.5,
        lambda t: 1.0 - (1.0 + 2.0 * t) ** -1.5,
        lambda rng, n: 0.5 * (rng.random(n) ** (-1.0 / 1.5) - 1.0),
    ),
    "delayed": Known(
        lambda t: 128.0 / 3.0 * t**3 * np.exp(-4.0 * t),
        _delayed_distribution,
        lambda rng, n: rng.gamma(4.0, 0.25, n),
    ),
}


def simulated(rng: Rng, known: Known, branching: float, until: float) -> np.ndarray:
    """Sorted times of a process with a mean gap of 1; those before 0 are history."""
    t = rng.uniform(-BURN_IN, until, rng.poisson((1.0 - branching) * (until + BURN_IN)))
    found = [t]
    while len(t):
        t = np.repeat(t, rng.poisson(branching, len(t)))
        t = t + known.draw(rng, len(t))
        t = t[t < until]
        found.append(t)
    return np.sort(np.concatenate(found))


def true_likelihood(times: np.ndarray, known: Known, branching: float, until: float) -> float:
    """Σ log λ - ∫λ over (0, until), per event, given the history."""
    inside = times[times >= 0.0]
    rates = np.full(len(inside), 1.0 - branching)
    first = len(times) - len(inside)
    for i in range(len(inside)):
        lags = inside[i] - times[: first + i]
        rates[i] += branching * known.density(lags[lags > 0.0]).sum()
    total = (1.0 - branching) * until
    seen = known.distribution(until - times) - known.distribution(np.maximum(-times, 0.0))
    return float((np.log(rates).sum() - total - branching * seen.sum()) / len(inside))


def trigger_error(model: SelfExciting, known: Known, branching: float) -> float:
    """∫|ĝ - g| / ∫g, g = branching × density."""
    edges = np.concatenate([[0.0], np.geomspace(1e-5, 1e3, 20_001)])
    middle, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    off = np.abs(model.trigger_(middle) - branching * known.density(middle))
    return float((off * width).sum() / branching)


def lines(sets: int) -> None:
    """Triggers, branching ratios and fresh likelihoods on a line."""
    until = 10_000.0
    for name, known in TRIGGERS.items():
        for branching, most in MOST_ERROR.items():
            errors, ratios, losses, inside = [], [], [], []
            for k in range(sets):
                rng = np.random.default_rng([17, k, round(100 * branching), len(name)])
                times = simulated(rng, known, branching, until)
                model = SelfExciting(Interval(0.0, until)).fit(times[:, None])
                errors.append(trigger_error(model, known, branching))
                ratios.append(model.branching_ratio_)
                low, high = model.branching_interval_
                inside.append(low <= branching <= high)
                if k < max(sets // 5, 1):
                    fresh = simulated(rng, known, branching, until)
                    own = model.log_likelihood(fresh[:, None], period=Interval(0.0, until))
                    own /= np.sum(fresh >= 0.0)
                    losses.append(true_likelihood(fresh, known, branching, until) - own)
            what = f"{name}, branching {branching:g}"
            row(f"{what}: relative error of the trigger", float(np.mean(errors)), most)
            row(f"{what}: the worst of {sets}", float(max(errors)))
            row(
                f"{what}: mean error of the ratio",
                abs(float(np.mean(ratios)) - branching),
                MOST_BIAS,
            )
            row(f"{what}: ratio in its 90 % band", float(np.mean(inside)))
            row(f"{what}: nats an event below the truth", float(np.mean(losses)), MOST_LOSS)


def types(sets: int) -> None:
    """Who triggers whom among five types."""
    areas = []
    for k in range(sets):
        rng = np.random.default_rng([18, k])
        matrix = np.where(rng.random((5, 5)) < 0.3, rng.uniform(0.1, 0.4, (5, 5)), 0.0)
        matrix *= 0.7 / max(float(np.abs(np.linalg.eigvals(matrix)).max()), 0.35)
        times, kinds = five_types(rng, matrix, 5_000.0)
        model = SelfExciting(Interval(0.0, 5_000.0)).fit(times[:, None], types=kinds)
        areas.append(roc_auc_score(matrix.ravel() > 0.0, model.branching_matrix_.ravel()))
    row("five types: area under the ROC curve", float(np.mean(areas)), least=LEAST_AREA)
    row(f"five types: the worst of {sets}", float(min(areas)))


def five_types(rng: Rng, matrix: np.ndarray, until: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and types of events, each with a background of .2 and exponential lags."""
    kinds = np.repeat(np.arange(5), rng.poisson(0.2 * until, 5))
    t = rng.uniform(0.0, until, len(kinds))
    found = [(t, kinds)]
    while len(t):
        counts = rng.poisson(matrix[kinds])
        which, kinds_new = np.nonzero(counts)
        repeats = counts[which, kinds_new]
        t, kinds = np.repeat(t[which], repeats), np.repeat(kinds_new, repeats)
        t = t + rng.exponential(1.0, len(t))
        t, kinds = t[t < until], kinds[t < until]
        found.append((t, kinds))
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def thinned(rng: Rng, until: float, rate: Callable[[np.ndarray], np.ndarray], most: float):
    """Times (n, 1) of independent events at a rate of `most` at most."""
    t = rng.uniform(0.0, until, rng.poisson(most * until))
    return np.sort(t[most * rng.random(len(t)) < rate(t)])[:, None]


def high_level(rng: Rng) -> np.ndarray:
    """A level 6.7 times as high for a tenth of the time."""
    return thinned(rng, 800.0, lambda t: np.where((t > 400.0) & (t < 480.0), 4.0, 0.6), 4.0)


def wandering_level(rng: Rng) -> np.ndarray:
    """A log level with a standard deviation of .7 that reverts in 30 mean gaps."""
    z, kept = [0.7 * rng.standard_normal()], np.exp(-1.0 / 30.0)
    for _ in range(800):
        z.append(kept * z[-1] + 0.7 * np.sqrt(1.0 - kept**2) * rng.standard_normal())
    level = np.exp(np.array(z) - 0.25)
    return thinned(rng, 800.0, lambda t: np.interp(t, np.arange(801.0), level), float(level.max()))


def spots(rng: Rng, many: int, width: float, n: int) -> np.ndarray:
    """About n events in a square over 730 days, four in five at spots of that width."""
    sizes, centers = rng.dirichlet(np.ones(many)), rng.uniform(0.1, 0.9, (many, 2))
    which = rng.choice(many, rng.poisson(0.8 * n), p=sizes)
    near = centers[which] + width * rng.standard_normal((len(which), 2))
    X = np.vstack([near, rng.random((rng.poisson(0.2 * n), 2))]).clip(0.0, 1.0)
    return np.column_stack([X, rng.uniform(0.0, 730.0, len(X))])


INDEPENDENT = {
    "a constant rate": lambda rng: thinned(rng, 800.0, np.ones_like, 1.0),
    "a high level for a tenth of the time": high_level,
    "a level that wanders": wandering_level,
    "40 spots": lambda rng: spots(rng, 40, 0.02, 900),
    "15 sharp spots": lambda rng: spots(rng, 15, 0.002, 900),
}


def independent(sets: int) -> None:
    """Is 0 in the band of the branching ratio if events only seem to trigger each other?"""
    for name, draw in INDEPENDENT.items():
        ratios, held = [], []
        for k in range(sets):
            X = draw(np.random.default_rng([23, k, len(name)]))
            in_place = X.shape[1] == 3
            window = Interval(0.0, 730.0 if in_place else 800.0)
            region = Box([0.0, 0.0], [1.0, 1.0]) * window if in_place else window
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                model = SelfExciting(region).fit(X)
            ratios.append(model.branching_ratio_)
            held.append(model.branching_interval_[0] == 0.0)
        row(f"{name}, independent: 0 in the band of the ratio", float(np.mean(held)), least=0.9)
        row(f"{name}, independent: ratio, mean", float(np.mean(ratios)))


ETAS_BOX = (0.0, 600.0, -100.0, 300.0)
ETAS_START, ETAS_END = 500.0, 8000.0
ETAS = EtasParams(0.6, 2.6, 1.4, 0.02, 1.15, 20.0, 0.6, 1.8, 4.0)
"""In km and days: about 8,000 events, a third of them triggered."""


def etas(sets: int) -> None:
    """Events of an ETAS model, with a constant background: fresh ones beside the truth."""
    truth = EtasFit(ETAS, np.empty(0), uniform_background(ETAS_BOX), np.nan, ETAS_BOX)
    magnitudes, losses, fitted = gutenberg_richter(2.3, 4.0, 8.5), [], []
    region = Box(ETAS_BOX[::2], ETAS_BOX[1::2], unit="km")
    period = Interval(ETAS_START, ETAS_END, unit="day")
    for k in range(sets):
        rng = np.random.default_rng([19, k])
        both = [simulate_etas(ETAS, ETAS_BOX, ETAS_END, magnitudes, rng) for _ in range(2)]
        (t, x, y, m), (fresh_t, fresh_x, fresh_y, fresh_m) = both
        model = SelfExciting(region * period).fit(np.column_stack([x, y, t]), marks=m)
        fresh = np.column_stack([fresh_x, fresh_y, fresh_t])
        later = fresh_t >= ETAS_START
        # none of the events that were fitted are history of these
        model.history_ = model.history_.picked(slice(0, 0))
        own = model.log_likelihood(fresh, marks=fresh_m, period=period)
        sources = (fresh_t, fresh_x, fresh_y, fresh_m)
        logs = log_rates(truth, (fresh_t[later], fresh_x[later], fresh_y[later]), sources)[0]
        true = logs.sum() - compensator(truth, sources, ETAS_START, ETAS_END)
        losses.append((true - own) / later.sum())
        fitted.append(model.branching_ratio_)
    row("ETAS in place and time: nats an event below the truth", float(np.mean(losses)), MOST_LOSS)
    row(f"ETAS in place and time: the worst of {sets}", float(max(losses)))
    row("ETAS in place and time: branching ratio", float(np.mean(fitted)))


def in_place(rng: Rng, n: int) -> np.ndarray:
    """Clusters in place and time, (m, 3), about n events: half of them triggered."""
    known, until = TRIGGERS["power law"], float(n)
    t = rng.uniform(0.0, until, rng.poisson(0.5 * n))
    x = np.column_stack([rng.beta(2, 4, len(t)), rng.random(len(t)), t])
    found = [x]
    while len(x):
        x = np.repeat(x, rng.poisson(0.5, len(x)), axis=0)
        far = 0.005 * (rng.random(len(x)) ** -0.5 - 1.0)
        angle = 2.0 * np.pi * rng.random(len(x))
        x = x + np.column_stack([far * np.cos(angle), far * np.sin(angle), known.draw(rng, len(x))])
        x = x[np.all((x >= 0.0) & (x <= [1.0, 1.0, until]), axis=1)]
        found.append(x)
    return np.concatenate(found)


def speed(quick: bool) -> None:
    """CPU seconds of fits, on a line and in place and time."""
    for n in (1_000, 10_000, 100_000) if quick else (1_000, 10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(n)
        times = simulated(rng, TRIGGERS["exponential"], 0.5, float(n))
        window = Interval(0.0, float(n))
        began = process_time()
        SelfExciting(window, longest_lag=min(1000.0, n / 4.0)).fit(times[:, None])
        seconds = process_time() - began
        row(f"{n:,} events on a line, CPU s", seconds, MOST_SECONDS)
    for n in (2_000,) if quick else (1_000, 5_000, 20_000):
        rng = np.random.default_rng(n)
        X = in_place(rng, n)
        window = Box([0.0, 0.0], [1.0, 1.0]) * Interval(0.0, float(n))
        began = process_time()
        model = SelfExciting(window).fit(X)
        seconds = process_time() - began
        row(f"{n:,} in place and time, CPU s", seconds, MOST_SECONDS)
        row(f"{n:,} in place and time: certified gap an event", model.solution_.gap / len(X), 1e-4)


PARTS = ["lines", "types", "independent", "etas", "speed"]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", type=int, default=50, help="simulations of each kind")
    options.add_argument("--part", nargs="*", default=PARTS)
    asked = options.parse_args()
    sets = 3 if asked.quick else asked.sets
    header()
    if "lines" in asked.part:
        lines(sets)
    if "types" in asked.part:
        types(max(sets // 5, 1))
    if "independent" in asked.part:
        independent(max(sets // 2, 2))
    if "etas" in asked.part:
        etas(max(sets // 10, 1))
    if "speed" in asked.part:
        speed(asked.quick)
    finish()


if __name__ == "__main__":
    main()
