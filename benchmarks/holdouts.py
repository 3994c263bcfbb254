"""Does the gain that a study claims agree with its gain on fresh data? Simulations, known truth.

    python benchmarks/holdouts.py [--quick] [--sets N] [--seed N] [--only NAME ...]

Each set of events is 40 days of about 400 events. A study claims a gain over a constant rate on
the events that it held out; the same study is then scored on the 400 days that follow. The mean of
the differences should be within two standard errors of 0. A hot spot of the last days goes on: what
is claimed is then the gain since it began. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _measure import finish, header, parser, row
from scipy.signal import lfilter

from hplus import EventStudy
from hplus.studies.factor_trials import log_gains
from hplus.studies.frames import Frame
from hplus.studies.spans import Clock
from hplus.windows import Interval

DAYS, FRESH, PER_DAY, BURST = 40.0, 400.0, 10.0, 20
MOST_ERRORS = 2.0
"""Standard errors by which mean claims may differ from mean gains on fresh data."""

ROUNDING = 1e-12
"""Errors below it are those of constant rates, whose gains are 0."""

START = np.datetime64("2026-01-05T00:00:00", "ms")

Rng = np.random.Generator
Times = Callable[[Rng, float, float], np.ndarray]


def poisson(rate: Callable[[np.ndarray], np.ndarray], most: float) -> Times:
    """Times of a Poisson process with a rate per day below `most`."""

    def simulate(rng: Rng, start: float, end: float) -> np.ndarray:
        t = rng.uniform(start, end, rng.poisson(most * (end - start)))
        return t[rng.uniform(size=len(t)) * most < rate(t)]

    return simulate


def bursts(rng: Rng, start: float, end: float) -> np.ndarray:
    """Clusters of about half an hour at a flat rate."""
    centres = rng.uniform(start, end, rng.poisson(PER_DAY / BURST * (end - start)))
    t = np.repeat(centres, BURST) + rng.exponential(0.02, BURST * len(centres))
    return t[t < end]


def wave(size: float) -> Callable[[np.ndarray], np.ndarray]:
    """A daily cycle of relative size `size`."""
    return lambda t: PER_DAY * (1.0 + size * np.sin(2.0 * np.pi * t))


def thinned(levels: Callable[[Rng, np.ndarray], np.ndarray], step: float) -> Times:
    """A daily cycle times a level that changes at random with every step of so many days."""

    def simulate(rng: Rng, start: float, end: float) -> np.ndarray:
        edges = np.arange(start, end, step)
        level = levels(rng, edges)
        most = 2.0 * PER_DAY * level.max()
        shape = wave(0.6)
        return poisson(lambda t: shape(t) * level[((t - start) // step).astype(int)], most)(
            rng, start, end
        )

    return simulate


def varied(rng: Rng, edges: np.ndarray) -> np.ndarray:
    """Independent factors of mean 1 and deviation 0.5."""
    return rng.gamma(4.0, 0.25, len(edges))


def reverting(rng: Rng, edges: np.ndarray) -> np.ndarray:
    """exp of a process of deviation 0.6 that forgets half in about three days, of steps of 0.1."""
    kept = 0.98
    noise = 0.6 * np.sqrt(1.0 - kept**2) * rng.normal(size=len(edges))
    noise[0] = 0.6 * rng.normal()
    return np.exp(lfilter([1.0], [1.0, -kept], noise) - 0.18)


TIMES: dict[str, Times] = {
    "flat": poisson(lambda t: np.full(len(t), PER_DAY), PER_DAY),
    "weak daily cycle": poisson(wave(0.3), 2.0 * PER_DAY),
    "strong daily cycle": poisson(wave(0.9), 2.0 * PER_DAY),
    "bursts at a flat rate": bursts,
    "trend and daily cycle": poisson(lambda t: wave(0.6)(t) * (0.5 + t / DAYS), 200.0),
    "weeks that vary": thinned(varied, 7.0),
    "log rate that reverts": thinned(reverting, 0.1),
}


PLACES, HOT_SPOT = "places", "new hot spot"


def places(rng: Rng, t: np.ndarray, hot_from: float) -> np.ndarray:
    """Places on [0, 1]: a broad hill and, from a day on, a hot spot with 30 % of the events."""
    x, hot = rng.beta(2.0, 4.0, len(t)), rng.uniform(size=len(t)) < 0.3
    return np.where(hot & (t >= hot_from), rng.uniform(0.80, 0.82, len(t)), x)


def study_of(t: np.ndarray, x: np.ndarray | None) -> EventStudy:
    """A study of the events of the first 40 days, by hour of the day or by place."""
    start = START.astype("datetime64[s]").astype(float)
    clock = Clock("when", start, start + 86_400.0 * DAYS, "" if x is not None else "day")
    frame = Frame(("x",), Interval(0.0, 1.0), None, clock)
    if x is None:
        frame, x = Frame((), None, None, clock), np.zeros(len(t))
    stamps = START + (86_400e3 * t).astype("timedelta64[ms]")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        rows = (f"{when},{at:.9f}" for when, at in zip(stamps, x, strict=True))
        path.write_text("when,x\n" + "\n".join(rows) + "\n")
        return EventStudy(frame).fit(str(path))


def claimed_and_fresh(name: str, seed: int) -> tuple[float, float, float, bool]:
    """The gain that a study claims with its error, that on fresh data, and is it constant?"""
    rng = np.random.default_rng(seed)
    if name in TIMES:
        study = study_of(TIMES[name](rng, 0.0, DAYS), None)
        fresh = 24.0 * (TIMES[name](rng, DAYS, DAYS + FRESH) % 1.0)[:, None]
        gains = log_gains(study.model_, fresh, None)
    else:
        hot_from = DAYS if name == PLACES else 0.9 * DAYS
        t = TIMES["flat"](rng, 0.0, DAYS)
        study = study_of(t, places(rng, t, hot_from))
        later = TIMES["flat"](rng, DAYS, DAYS + FRESH)
        x = places(rng, later, np.inf if name == PLACES else 0.0)
        gains = log_gains(study.model_.place_, x[:, None], None)
    held = study.holdout_
    assert held is not None
    return held.gain, held.gain_error, float(gains.mean()), bool(held.constant)


def compare(name: str, seeds: range) -> None:
    """The mean claim and the mean gain on fresh data, and their difference in standard errors."""
    found = np.array([claimed_and_fresh(name, seed) for seed in seeds])
    claimed, errors, fresh, constant = found.T
    off, stated = claimed - fresh, np.sqrt(np.mean(errors**2))
    error = off.std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else np.inf
    row(f"{name}: gain claimed in {len(seeds)} sets (constant in {constant.mean():.0%})",
        claimed.mean())  # fmt: skip
    row(f"{name}: gain on fresh data", fresh.mean())
    row(f"{name}: difference ± {error:.2g}, its spread {off.std():.2g}, stated {stated:.2g}",
        off.mean())  # fmt: skip
    row(f"{name}: difference, standard errors", off.mean() / error if error > ROUNDING else 0.0,
        most=MOST_ERRORS, least=-MOST_ERRORS)  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", type=int, default=200)
    options.add_argument("--seed", type=int, default=0, help="that of the first set")
    options.add_argument("--only", nargs="*", default=[*TIMES, PLACES, HOT_SPOT])
    chosen = options.parse_args()
    header()
    for name in chosen.only:
        compare(name, range(chosen.seed, chosen.seed + (2 if chosen.quick else chosen.sets)))
    finish()


if __name__ == "__main__":
    main()
