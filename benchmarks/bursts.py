"""Are bursts called bursts, and independent events not? Simulations through the whole road.

Bursts at a flat rate (clusters of 2 to 10 events, events that cause events), events in place and
time with near repeats, and Poisson data: flat, with a weekly cycle, with a trend, rounded to
minutes. The rate is learned by hplus, as in `hplus fit`, and checked as in `hplus check`, on the
events it was fitted to and on later ones.

    python benchmarks/bursts.py [--quick] [--runs N] [--sizes 200,2000] [--only NAME ...]
                                [--road line cycle] [--seed N]

Exits with code 1 if a bound is missed; shares of fewer than 50 runs have none.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
from _measure import finish, header, parser, row

from hplus import Box, Cycle, Intensity, Interval, SeparableIntensity
from hplus.evaluation import check
from hplus.evaluation.timelines import Timeline, cumulative_shares, time_profile

LEAST_NAMED, MOST_FALSE, LEAST_RUNS = 0.95, 0.02, 50
"""How often bursts are to be named, and independent events at most, in so many runs or more."""

WEEK = 168.0
WEEKS = 20.0
SPAN = WEEK * WEEKS
Times = np.ndarray


def poisson(n: float, rng: np.random.Generator, shape: Callable[[Times], Times]) -> Times:
    """Sorted times over two spans, n expected in each, thinned to a shape of at most 1."""
    t = rng.random(rng.poisson(16.0 * n)) * 2.0 * SPAN
    kept = t[rng.random(len(t)) < shape(t)]
    return np.sort(rng.permutation(kept)[: rng.poisson(2.0 * n)])


def flat(n: float, rng: np.random.Generator) -> Times:
    return np.sort(rng.random(rng.poisson(2.0 * n)) * 2.0 * SPAN)


def weekly(n: float, rng: np.random.Generator) -> Times:
    """Five times as many in the afternoon as at night, half as many at weekends."""

    def shape(t: Times) -> Times:
        day = 0.6 - 0.4 * np.cos(2.0 * np.pi * (t % 24.0 - 3.0) / 24.0)
        return day * np.where(t % WEEK > 120.0, 0.5, 1.0)

    return poisson(n, rng, shape)


def trend(n: float, rng: np.random.Generator) -> Times:
    return poisson(n, rng, lambda t: 0.3 + 0.7 * t / (2.0 * SPAN))


def rounded(n: float, rng: np.random.Generator) -> Times:
    return np.sort(np.round(weekly(n, rng) * 60.0) / 60.0)


def clusters(size: float, length: float) -> Callable[[float, np.random.Generator], Times]:
    """Neyman-Scott: Poisson(size) events after each parent, `length` average gaps long."""

    def draw(n: float, rng: np.random.Generator) -> Times:
        parents = rng.random(rng.poisson(2.0 * n / size)) * 2.0 * SPAN
        each = rng.poisson(size, len(parents))
        t = np.repeat(parents, each) + rng.exponential(length * SPAN / n, each.sum())
        return np.sort(t[t < 2.0 * SPAN])

    return draw


def hawkes(branching: float, length: float) -> Callable[[float, np.random.Generator], Times]:
    """Each event causes Poisson(branching) others, `length` average gaps later."""

    def draw(n: float, rng: np.random.Generator) -> Times:
        wave = rng.random(rng.poisson(2.0 * n * (1.0 - branching))) * 2.0 * SPAN
        waves = [wave]
        while len(wave):
            each = rng.poisson(branching, len(wave))
            wave = np.repeat(wave, each) + rng.exponential(length * SPAN / n, each.sum())
            waves.append(wave)
        t = np.concatenate(waves)
        return np.sort(t[t < 2.0 * SPAN])

    return draw


POISSON = {"flat": flat, "weekly": weekly, "trend": trend, "rounded": rounded}
BURSTS = {
    **{f"clusters of {m}, {x:g} gaps": clusters(m, x) for m in (2, 5, 10) for x in (0.03, 0.3)},
    **{f"Hawkes {b}, {x:g} gaps": hawkes(b, x) for b in (0.3, 0.5, 0.8) for x in (0.03, 0.3)},
}


def line_names(t: Times, n: float) -> tuple[set[str], set[str]]:
    """Patterns named by a rate over the first span, for the events fitted to and for fresh ones."""
    window, first = Interval(0.0, SPAN, unit="h"), t[t < SPAN]
    fresh = t[t >= SPAN] - SPAN
    model = Intensity(window, random_state=0).fit(first[:, None])
    return tuple({p.name for p in check(model, x[:, None]).patterns} for x in (first, fresh))


def cycle_names(t: Times, n: float) -> tuple[set[str], set[str]]:
    """The same for a weekly cycle: fresh events are those of the weeks that follow."""
    model = Intensity(Cycle(WEEK, unit="h"), random_state=0)
    first, later = t[t < SPAN], t[t >= SPAN]
    model.fit(first[:, None] % WEEK, exposure=WEEKS)
    found = []
    for x, start in ((first, 0.0), (later, SPAN)):
        hours = (np.arange(2016) + 0.5) / 2016 * WEEK
        shares = cumulative_shares(np.tile(time_profile(model, hours, np.random), int(WEEKS)))
        line = Timeline(x, start + np.linspace(0.0, SPAN, len(shares)), shares, unit="h")
        found.append({p.name for p in check(model, x[:, None] % WEEK, timeline=line).patterns})
    return found[0], found[1]


def places(n: int, rng: np.random.Generator, share: float) -> np.ndarray:
    """Events (n, 3) around centres in 10 by 10 km and 1000 days; a share repeat near others."""
    first = round(n * (1.0 - share))
    centres = rng.random((20, 2)) * 10.0
    spot = (centres[rng.integers(20, size=first)] + rng.normal(size=(first, 2))) % 10.0
    x, t = spot, rng.random(first) * 1000.0
    again = rng.integers(first, size=n - first)
    x = np.vstack([x, np.clip(x[again] + 0.05 * rng.normal(size=(n - first, 2)), 0.0, 10.0)])
    t = np.append(t, np.clip(t[again] + rng.exponential(3.0, n - first), 0.0, 999.9))
    return np.column_stack([x, t])


def place_names(X: np.ndarray, n: float) -> tuple[set[str], set[str]]:
    """Patterns in place and time, of events fitted to and (without repeats) of others."""
    half = np.random.RandomState(0).random_sample(len(X)) < 0.5
    window = Box((0, 0), (10, 10), unit="km") * Interval(0, 1000, unit="day")
    model = SeparableIntensity(window, random_state=0).fit(X[half])
    return tuple({p.name for p in check(model, x).patterns} for x in (X[half], X))


def report(kind: str, name: str, n: int, seeds: range, draw, names) -> None:
    """How often a pattern is named, for events fitted to and for others."""
    found: tuple[list[set[str]], list[set[str]]] = ([], [])
    for seed in seeds:
        rng = np.random.default_rng([seed, n])
        for each, patterns in zip(found, names(draw(n, rng), n), strict=True):
            each.append(patterns)
    wanted = {"near repeats"} if kind == "place" else {"bursts"}
    is_right = name in POISSON or name == NO_REPEATS
    bounds = {"most": MOST_FALSE} if is_right else {"least": LEAST_NAMED}
    for where, each in zip(("fitted", "other"), found, strict=True):
        named = [bool(patterns) if is_right else bool(wanted & patterns) for patterns in each]
        words = ", ".join(k for k, _ in Counter(itertools.chain(*each)).most_common()) or "nothing"
        row(f"{kind}, {name}, {n:,} events: share of {len(seeds)} runs with a pattern, "
            f"{where} events ({words})", float(np.mean(named)),
            **bounds if len(seeds) >= LEAST_RUNS else {})  # fmt: skip


LIMITS = ((0.1, 0.3), (0.2, 0.3), (0.3, 0.3), (0.3, 1.0), (0.3, 3.0), (0.5, 1.0), (0.5, 3.0))
"""Branching and length of weak bursts, for which the best possible test is computed."""


def likelihood_ratio(t: Times, branching: float, length: float, n: float) -> float:
    """log of the likelihood of a Hawkes process with known parameters over that of a flat rate."""
    decay, rate = n / (length * SPAN), len(t) / SPAN
    excited, total = 0.0, 0.0
    for gap in np.diff(t, prepend=t[0]):
        excited *= np.exp(-decay * gap)
        total += np.log(1.0 - branching + branching * decay * excited / rate)
        excited += 1.0
    expected = branching * (len(t) - np.sum(-np.expm1(-decay * (SPAN - t))))
    return float(total + expected)


def report_limits(n: int, seeds: range) -> None:
    """How often weak bursts at a known flat rate are named, and by the best test at 2 %."""
    for branching, length in LIMITS:
        flats, hawkeses, named = [], [], 0
        for seed in seeds:
            rng = np.random.default_rng([seed, n])
            none, some = (t[t < SPAN] for t in (flat(n, rng), hawkes(branching, length)(n, rng)))
            for t, ratios in ((none, flats), (some, hawkeses)):
                ratios.append(likelihood_ratio(t, branching, length, n))
            window = Interval(0.0, SPAN, unit="h")
            known = Intensity(window).fit(some[:, None], priors="constant")
            named += "bursts" in {p.name for p in check(known, some[:, None]).patterns}
        best = np.mean(np.array(hawkeses) > np.quantile(flats, 0.98))
        what = f"limit: Hawkes {branching}, {length:g} gaps, {n} events"
        row(f"{what}: share of {len(seeds)} runs with bursts", named / len(seeds))
        row(f"{what}: the same of the best test, told all parameters", float(best))


NO_REPEATS, REPEATS = "no near repeats", "20 % near repeats"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=200, help="simulations of each")
    options.add_argument("--sizes", default="50,200,2000", help="numbers of events")
    options.add_argument("--only", nargs="*", default=[*POISSON, *BURSTS, "places", "limits"])
    options.add_argument("--road", nargs="*", default=["line", "cycle"])
    options.add_argument("--seed", type=int, default=0, help="that of the first simulation")
    given = options.parse_args()
    seeds = range(given.seed, given.seed + (2 if given.quick else given.runs))
    header()
    for n in [200] if given.quick else map(int, given.sizes.split(",")):
        for name, draw in (POISSON | (BURSTS if n >= 200 else {})).items():
            if name not in given.only:
                continue
            if "line" in given.road and name not in ("weekly", "rounded"):  # a line has no cycle
                report("line", name, n, seeds, draw, line_names)
            if "cycle" in given.road:
                report("cycle", name, n, seeds, draw, cycle_names)
    if "limits" in given.only:
        report_limits(200, seeds)
    shares = {NO_REPEATS: 0.0, REPEATS: 0.2} if "places" in given.only else {}
    for n, (name, share) in itertools.product((400, 4000), shares.items()):
        report("place", name, n, seeds, partial(places, share=share), place_names)
    finish()


if __name__ == "__main__":
    main()
