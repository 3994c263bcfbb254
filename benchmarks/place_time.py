"""Does the map change with the time of day? Simulated files, with and without such a change.

Without: independent places and times; bursts; near repeats; addresses that come back, some of them
for a month and always at the same hour, with times rounded to hours; hot spots that come and go.
With: a centre that is busier at night, crowds that cross the window in a day, another map at
weekends, one hot spot that is only open at night. Events are split and judged as in `hplus fit
--cycle week`; the margins are those of the events. With --intervals: how many counts of new events,
in parts of 5 km and four hours of the day, lie in 90 % intervals of independent places and times,
and of a map that may change; of all parts, and of the tenth that changes most.

    python benchmarks/place_time.py [--quick] [--runs 100] [--events 6000] [--only NAME ...]
                                    [--intervals]

Exits with code 1 if a bound is missed; shares of fewer than 40 runs have none.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from time import process_time

import numpy as np
from _measure import finish, header, parser, row

from hplus import Box, Cycle, Interval, SeparableIntensity
from hplus.studies.frames import Frame
from hplus.studies.map_trials import JudgedMap, map_scores
from hplus.studies.spans import Clock
from hplus.studies.split_events import SplitEvents
from hplus.studies.splits import split_of

LEAST_FOUND, MOST_FALSE, LEAST_RUNS = 0.9, 0.05, 40
"""How often a change is to be found, and claimed at most without one, in so many runs or more."""

SIDE, WEEKS = 20.0, 60
HOURS = 168.0 * WEEKS
MONDAY = 1_767_571_200.0  # 2026-01-05
SPOTS = np.array([[5.0, 6.0], [14.0, 13.0], [8.0, 16.0], [16.0, 4.0], [10.0, 10.0]])

Events = tuple[np.ndarray, np.ndarray]
Rng = np.random.Generator


def times(n: int, rng: Rng) -> np.ndarray:
    """Hours, four times as busy in the afternoon as at night, and half as busy at weekends."""
    t = HOURS * rng.random(8 * n)
    day = 0.6 - 0.4 * np.cos(2.0 * np.pi * (t % 24.0 - 3.0) / 24.0)
    kept = t[rng.random(len(t)) < day * np.where(t % 168.0 > 120.0, 0.5, 1.0)]
    return kept[:n]


def places(n: int, rng: Rng) -> np.ndarray:
    """Half of the events in five hot spots of 1 km, the rest anywhere."""
    spot = SPOTS[rng.integers(len(SPOTS), size=n)] + rng.normal(size=(n, 2))
    return np.where(rng.random((n, 1)) < 0.5, spot, SIDE * rng.random((n, 2)))


def night(t: np.ndarray) -> np.ndarray:
    return (t % 24.0 < 5.0) | (t % 24.0 >= 20.0)


def independent(n: int, rng: Rng) -> Events:
    t = times(n, rng)
    return places(len(t), rng), t


def bursts(n: int, rng: Rng) -> Events:
    """Bursts of 2 to 10 events within 300 m and two hours."""
    x, t = independent(n // 6, rng)
    size = rng.integers(2, 11, size=len(t))
    x, t = np.repeat(x, size, axis=0), np.repeat(t, size)
    return x + 0.3 * rng.normal(size=x.shape), t + 2.0 * rng.random(len(t))


def near_repeats(n: int, rng: Rng) -> Events:
    """Half of the events are followed by another within 200 m and a week."""
    x, t = independent(2 * n // 3, rng)
    again = rng.random(len(t)) < 0.5
    later = t[again] + rng.exponential(72.0, size=int(again.sum()))
    near = x[again] + 0.2 * rng.normal(size=(len(later), 2))
    return np.vstack([x, near]), np.concatenate([t, later])


def addresses(n: int, rng: Rng) -> Events:
    """Half of the events at 60 addresses; 20 others report 8 times in a month at their own hour."""
    x, t = independent(n - 160, rng)
    known = places(60, rng)
    back = rng.random(len(t)) < 0.5
    x[back] = known[rng.integers(60, size=int(back.sum()))]
    month, hour = rng.integers(0, WEEKS - 4, size=20), rng.integers(0, 24, size=20)
    days = rng.integers(0, 28, size=(20, 8))
    reports = (168.0 * month + hour)[:, None] + 24.0 * days
    x = np.vstack([x, np.repeat(places(20, rng), 8, axis=0)])
    return x, np.round(np.concatenate([t, reports.ravel()]))


def coming_and_going(n: int, rng: Rng) -> Events:
    """Hot spots that are there for six weeks each."""
    x, t = independent(n, rng)
    spots = SIDE * rng.random((WEEKS // 6, 2))
    there = rng.random(len(t)) < 0.3
    at = np.minimum(t[there] // (6.0 * 168.0), len(spots) - 1).astype(int)
    x[there] = spots[at] + 0.5 * rng.normal(size=(len(at), 2))
    return x, t


def nightlife(n: int, rng: Rng) -> Events:
    """The centre has 10 % of the events by day and 40 % at night."""
    x, t = independent(n, rng)
    centre = rng.random(len(t)) < np.where(night(t), 0.4, 0.1)
    x[centre] = 10.0 + 1.5 * rng.normal(size=(int(centre.sum()), 2))
    return x, t


def crossing(n: int, rng: Rng) -> Events:
    """A third of the events is in the west in the morning, and in the east in the evening."""
    x, t = independent(n, rng)
    moving = rng.random(len(t)) < 0.33
    east = 10.0 - 6.0 * np.cos(2.0 * np.pi * (t[moving] % 24.0) / 24.0)
    x[moving, 0] = east + 3.0 * rng.normal(size=len(east))
    return x, t


def weekends(n: int, rng: Rng) -> Events:
    """At weekends half of the events are in two parks."""
    x, t = independent(n, rng)
    free = (t % 168.0 > 120.0) & (rng.random(len(t)) < 0.5)
    parks = np.array([[3.0, 15.0], [17.0, 17.0]])[rng.integers(2, size=int(free.sum()))]
    x[free] = parks + rng.normal(size=parks.shape)
    return x, t


def one_spot(n: int, rng: Rng) -> Events:
    """A spot of 500 m has a quarter of the events of the night, and none by day."""
    x, t = independent(n, rng)
    open_ = night(t) & (rng.random(len(t)) < 0.25)
    x[open_] = (15.0, 9.0) + 0.5 * rng.normal(size=(int(open_.sum()), 2))
    return x, t


Scenario = Callable[[int, Rng], Events]
SAME: tuple[Scenario, ...] = (
    independent, bursts, near_repeats, addresses, coming_and_going,
)  # fmt: skip
CHANGING = (nightlife, crossing, weekends, one_spot)


def judged(x: np.ndarray, t: np.ndarray, seed: int) -> JudgedMap:
    """What a study says about the events, as `hplus fit --cycle week` does."""
    inside = np.all((x >= 0.0) & (x <= SIDE), axis=1) & (t >= 0.0) & (t < HOURS)
    x, seconds = x[inside], MONDAY + 3600.0 * t[inside]
    clock = Clock("when", MONDAY, MONDAY + 3600.0 * HOURS, cycle="week")
    frame = Frame(("x", "y"), Box((0, 0), (SIDE, SIDE), unit="km"), clock=clock)
    events = SplitEvents(frame, split_of(frame, 0.2), seed)
    axis = clock.axis(seconds)
    events.add(np.column_stack([x, axis]), seconds)
    blocks = events.split.error_blocks(clock, events.held_sample.seconds)
    scores = map_scores(frame, events, None, blocks, seed)
    assert scores is not None
    return scores.judged


PARTS = [
    Box((x, y), (x + 5.0, y + 5.0)) * Interval(hour, hour + 4.0)
    for x, y, hour in product((0.0, 5.0, 10.0, 15.0), (0.0, 5.0, 10.0, 15.0), range(0, 24, 4))
]


def coverage(scenario: Scenario, n: int, runs: int) -> np.ndarray:
    """Shares of counts in intervals (all parts or most changed, without or with a change)."""
    found = []
    for seed in range(runs):
        old, new = (by_day(*scenario(n, np.random.default_rng(s))) for s in (seed, 10_000 + seed))
        window = Box((0, 0), (SIDE, SIDE)) * Cycle(24, unit="h")
        model = SeparableIntensity(window, model="tree", random_state=0, dependence="auto").fit(old)
        plain = SeparableIntensity(window).join(model.place_, model.time_)
        change = np.abs(np.log(model.expected_count(PARTS) / plain.expected_count(PARTS)))
        counts = np.array([part.contains(new).sum() for part in PARTS]) * len(old) / len(new)
        low, high = np.stack([each.count_interval(PARTS) for each in (plain, model)], axis=1)
        inside = (low <= counts) & (counts <= high)
        most = change >= np.quantile(change, 0.9)
        found.append([inside.mean(axis=1), inside[:, most].mean(axis=1)])
    return np.mean(found, axis=0)


def by_day(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    inside = np.all((x >= 0.0) & (x <= SIDE), axis=1)
    return np.column_stack([x, t % 24.0])[inside]


def report_coverage(scenarios: list[Scenario], n: int, runs: int) -> None:
    for scenario in scenarios:
        for parts, (plain, changing) in zip(
            ("all parts", "most changed"), coverage(scenario, n, runs), strict=True
        ):
            what = f"{scenario.__name__.replace('_', ' ')}, {parts}: coverage of {runs} runs"
            row(f"{what}, independent places and times", plain)
            row(f"{what}, a map that may change", changing)


def report_judged(scenarios: list[Scenario], n: int, runs: int) -> None:
    for scenario in scenarios:
        began, found = process_time(), []
        for seed in range(runs):
            found.append(judged(*scenario(n, np.random.default_rng(seed)), seed))
        seconds = (process_time() - began) / runs
        gain = np.mean([f.gain * f.kept for f in found])
        what = f"{scenario.__name__.replace('_', ' ')}, {n:,} events"
        bounds = {"least": LEAST_FOUND} if scenario in CHANGING else {"most": MOST_FALSE}
        row(f"{what}: evident in", float(np.mean([f.evidence > 0.0 for f in found])))
        row(f"{what}: claimed in {runs} runs, gain {gain:+.4f} ({seconds:.1f} s each)",
            float(np.mean([f.kept for f in found])),
            **bounds if runs >= LEAST_RUNS else {})  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--events", type=int, default=6000)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--intervals", action="store_true")
    given = options.parse_args()
    every = {scenario.__name__: scenario for scenario in (*SAME, *CHANGING)}
    chosen = [every[name] for name in given.only or every]
    header()
    report = report_coverage if given.intervals else report_judged
    report(chosen, given.events, 1 if given.quick else given.runs)
    finish()


if __name__ == "__main__":
    main()
