"""Alerts: false alarms for those asked for, the delay of a doubled rate, and the cost of a tick.

    python benchmarks/alerts.py [--quick] [--part cost|alarms|delays] [--seed N]

Simulated streams on a square of 10 x 10 cells, one false alarm a week asked for. "learned" knows
only 8 weeks of events, from which a rate by trees is learned, 20 times; the others know the rate.
The known-place test is the same evidence at the changed cell alone, with the same rate of false
alarms, looked at as often. Whatever a test does, 100 places cost log 100 / KL events more than one:
the known-place test must need as many itself before a ratio below 2 is possible, and `least ratio`
says what that leaves. --part runs one table, --seed draws other events; --quick simulates a tenth
of the weeks. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from _measure import best, finish, header, parser, row

from hplus import Box, Intensity
from hplus.alerts.false_alarms import correction, tick_of
from hplus.alerts.overlapping_blocks import OverlappingBlocks
from hplus.alerts.watch import WEEK, Episode, Watch

CELLS = 10
BLOCKS, PLACE = OverlappingBlocks(CELLS, 2), OverlappingBlocks(1, 2)
Profile = Callable[[float], float]

CALM_EVENTS, LOOKED_AT = 300.0, 50
"""Events of a cell before its rate doubles, and ticks that are simulated at once afterwards."""


def constant(_: float) -> float:
    return 1.0


def daily(seconds: float) -> float:
    """A rate that is 19 times as high at noon as at midnight."""
    return 1.0 - 0.9 * math.cos(2.0 * math.pi * seconds / 86_400.0)


def uneven(seed: int = 5) -> np.ndarray:
    """A map whose cells differ by a standard deviation of 2 in the logarithm."""
    shares = np.exp(2.0 * np.random.default_rng(seed).standard_normal((CELLS, CELLS)))
    return shares / shares.sum()


def false_alarms(watch: Watch, truth: np.ndarray, known: np.ndarray, weeks: float,
                 profile: Profile = constant, seed: int = 0) -> int:  # fmt: skip
    """How many alarms a watch raises in some weeks of events that are as expected."""
    rng, tick = np.random.default_rng(seed), tick_of(truth.sum())
    if profile is constant and known is truth:
        means = truth * tick / WEEK
        for _ in range(int(weeks)):
            watch.run(tick, *_events(rng, means, int(WEEK / tick), None), means)
        return watch.found
    for i in range(int(weeks * WEEK / tick)):
        share = profile((i + 0.5) * tick) * tick / WEEK
        watch.advance((i + 1.0) * tick, rng.poisson(truth * share).astype(float), known * share)
    return watch.found


def learned(truth: np.ndarray, weeks: float, seed: int) -> np.ndarray:
    """Events a week in each cell, learned from some weeks of events."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(truth * weeks)
    corner = np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0)
    X = (corner + rng.uniform(size=corner.shape)) / CELLS
    model = Intensity(Box((0.0, 0.0), (1.0, 1.0)), model="tree", random_state=0).fit(X)
    fine = (np.argwhere(np.ones((4 * CELLS, 4 * CELLS))) + 0.5) / (4 * CELLS)
    rate = model.predict(fine).reshape(CELLS, 4, CELLS, 4).mean(axis=(1, 3))
    return rate / CELLS**2 / weeks


def false_alarm_table(weeks: int, seed: int) -> None:
    flat = np.full((CELLS, CELLS), 1.0 / CELLS**2)
    cases = {
        "uniform, 1,000 events a week": (1e3 * flat, constant),
        "uniform, 100 events a week": (1e2 * flat, constant),
        "uniform, 10,000 events a week": (1e4 * flat, constant),
        "uneven, 1,000 events a week": (1e3 * uneven(), constant),
        "daily cycle, 1,000 events a week": (1e3 * flat, daily),
        "uneven, daily cycle, 10,000 events a week": (1e4 * uneven(), daily),
    }
    for name, (truth, profile) in cases.items():
        c = correction(BLOCKS, truth, 1.0, random_state=seed)
        watch = Watch(BLOCKS, truth, 1.0, correction=c)
        found = false_alarms(watch, truth, truth, weeks, profile, 1000 + seed)
        row(f"{name}: false alarms a week", found / weeks, least=1 / 1.5, most=1.5)
    for total in (1e3, 1e4):
        found, sets = 0, 20
        for number in range(sets):
            own = 100 * seed + number
            truth = total * uneven(own)
            known = learned(truth, 8.0, own)
            c = correction(BLOCKS, known, 1.0, random_state=own)
            watch = Watch(BLOCKS, known, 1.0, memory=4 * WEEK, learned=8 * WEEK, correction=c)
            found += false_alarms(watch, truth, known, weeks / sets, seed=own)
        name = f"uneven, learned, {total:,.0f} events a week"
        row(f"{name}: false alarms a week", found / weeks, least=1 / 1.5, most=1.5)


def delay(blocks: OverlappingBlocks, hourly: float, tick: float, runs: int, seed: int) -> float:
    """Hours until a doubled rate in one of the cells is found, on average."""
    rng, weekly = np.random.default_rng(seed), np.full((blocks.cells,) * 2, hourly * WEEK / 3600.0)
    c = correction(blocks, weekly, 1.0, random_state=seed, tick=tick)
    means, hours = weekly * tick / WEEK, 0.0
    spot = (blocks.cells + 1) * (blocks.cells // 2)
    for _ in range(runs):
        watch, began, found = Watch(blocks, weekly, 1.0, correction=c), 0.0, math.nan
        watch.run(tick, *_events(rng, means, int(CALM_EVENTS / means.flat[0]), None), means)
        began = watch.now
        while math.isnan(found):
            told = watch.run(tick, *_events(rng, means, LOOKED_AT, spot), means)
            times = [
                e.found if e.found > began else watch.now for e in told if _is_at(e, spot, blocks)
            ]
            found = min(times, default=math.nan)
        hours += (found - began) / 3600.0
    return hours / runs


def _events(
    rng: np.random.Generator, means: np.ndarray, ticks: int, spot: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """How many events there are in some ticks, and their cells; twice as many at a spot."""
    chances = means.ravel().copy()
    if spot is not None:
        chances[spot] *= 2.0
    per_tick = rng.poisson(chances.sum(), ticks)
    ends = np.cumsum(chances) / chances.sum()
    return per_tick, np.searchsorted(ends[:-1], rng.random(per_tick.sum()), side="right")


def _is_at(episode: Episode, spot: int, blocks: OverlappingBlocks) -> bool:
    """Does an episode say that there are more events at a spot?"""
    middle = (np.array(divmod(spot, blocks.cells)) + 0.5) / blocks.cells
    inside = (middle > episode.low) & (middle < episode.high)
    return episode.is_excess and bool(np.all(inside))


def delay_table(runs: int, seed: int) -> None:
    kl = 2.0 * math.log(2.0) - 1.0  # nats of an expected event, when the rate has doubled
    for hourly in (10.0, 30.0, 100.0):
        tick = tick_of(hourly * CELLS**2 * WEEK / 3600.0)
        alone = delay(PLACE, hourly, tick, 4 * runs, seed)
        found = delay(BLOCKS, hourly, tick, runs, seed)
        least = 1.0 + math.log(100.0) / (kl * hourly * alone)
        name = f"{hourly:.0f} events an hour in a cell, doubled"
        print(f"| {name}: known place, hours | {alone:.2f} | |")
        print(f"| {name}: least ratio | {least:.2f} | |")
        row(f"{name}: delay / known place", found / alone, most=2.0)


def tick_seconds(watch: Watch, counts: np.ndarray) -> float:
    """The shortest CPU time of a tick."""
    ticks = iter(range(10**6))
    return best(lambda: watch.advance(next(ticks) * 60.0, counts, counts), 20)[0]


def cost_table() -> None:
    for cells in (16, 32, 64):
        blocks, rng = OverlappingBlocks(cells, 2), np.random.default_rng(0)
        watch = Watch(blocks, np.full((cells, cells), 1e5 / cells**2), 1.0)
        seconds = tick_seconds(watch, rng.poisson(1.0, (cells, cells)).astype(float))
        places = len(watch.rates)
        row(f"{cells} x {cells} cells, {places:,} places: ms a tick", 1e3 * seconds, most=10.0)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--part", choices=("cost", "alarms", "delays"))
    arguments.add_argument("--seed", type=int, default=0)
    asked = arguments.parse_args()
    header()
    if asked.part in (None, "cost"):
        cost_table()
    if asked.part in (None, "alarms"):
        false_alarm_table(20 if asked.quick else 200, asked.seed)
    if asked.part in (None, "delays"):
        delay_table(20 if asked.quick else 1000, asked.seed)
    finish()


if __name__ == "__main__":
    main()
