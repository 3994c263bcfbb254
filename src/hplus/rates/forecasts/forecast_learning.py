"""From times of events to a rate that goes on after the last of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, check_memory
from hplus.rates.forecasts.block_edges import (
    BlockEdges,
    Exposure,
    block_length,
    exposure_of,
    make_block_edges,
    part_of,
    rounding_step,
)
from hplus.rates.forecasts.cycle_factor import (
    MIN_CYCLES,
    MIN_ERRORS,
    Counted,
    CycleGain,
    Cycles,
    judge,
    learn_factor,
)
from hplus.rates.forecasts.forecast_rate import ForecastRate
from hplus.rates.forecasts.log_rate import Blocks
from hplus.rates.forecasts.weighing import weigh

BINS = {"week": 168, "year": 73}
"""Bins of a cycle by its name: hours of a week, five days of a year."""

USUAL_BINS = 48
"""Bins of any other cycle."""

MIN_STEPS = 4
"""Steps of rounded times in the shortest cycle that can be learned from them."""

BYTES_PER_BIN = 64.0
"""Memory for each bin of a cycle: several arrays of numbers."""

MIN_PERIOD_BLOCKS, MIN_PERIODS = 4, 12
"""Blocks of a period, and periods, that must be seen to tell whether rates change between periods.
"""


class CycleAsked(NamedTuple):
    """A cycle that was asked for: its name and its length."""

    name: str
    length: float


class ObservedTimes(NamedTuple):
    """Times of events (n,), their weights, the observation period and its exposure.

    `changes` are times at which the level is likely to have jumped.
    """

    times: Floats
    weights: Floats
    low: float
    high: float
    exposure: Exposure
    changes: Floats


def learn_forecast(
    observed: ObservedTimes, horizon: float, periods: list[CycleAsked], origin: float, seed: int
) -> tuple[ForecastRate, tuple[CycleGain, ...]]:
    """The rate of the events and its futures, and which cycles were kept."""
    cycles, gains = learn_cycles(observed, periods, origin, seed)
    lengths = [period.length for period in periods]
    step = rounding_step(observed.times)
    return _learn_blocks(observed, horizon, cycles, lengths, step, seed), gains


def learn_cycles(
    observed: ObservedTimes, periods: list[CycleAsked], origin: float, seed: int
) -> tuple[Cycles, tuple[CycleGain, ...]]:
    """The cycles that predict later cycles, and what was found of each."""
    cycles, gains = Cycles((), (), origin), {}
    step = rounding_step(observed.times)
    for period in sorted(periods, key=lambda p: p.length):
        if reason := _obstacle(observed, period, step):
            gains[period] = CycleGain(*period, kept=False, gain=np.nan, error=np.nan, reason=reason)
            continue
        counted = _by_phase(observed, period, cycles, step)
        gain, error = judge(counted)
        kept = bool(gain > max(MIN_ERRORS * error, 0.0))
        reason = "it predicts later cycles" if kept else "it does not predict later cycles"
        gains[period] = CycleGain(*period, kept=kept, gain=gain, error=error, reason=reason)
        if kept:
            cycles = cycles.with_cycle(period.length, learn_factor(counted, seed))
    return cycles, tuple(gains[period] for period in periods)


def _obstacle(observed: ObservedTimes, period: CycleAsked, step: float) -> str:
    """Why a cycle cannot be learned, or nothing."""
    count = (observed.high - observed.low) / period.length
    if count < MIN_CYCLES:
        return f"{count:.3g} cycles were observed, {MIN_CYCLES:g} are needed"
    if period.length < MIN_STEPS * step:
        return f"times are rounded to {step:g}, too coarsely to see it"
    return ""


def _by_phase(observed: ObservedTimes, period: CycleAsked, cycles: Cycles, step: float) -> Counted:
    """Counts in bins of a cycle; their exposure includes what shorter cycles expect."""
    low, high, length = observed.low, observed.high, period.length
    K = BINS.get(period.name, USUAL_BINS)
    K = min(K, int(length / step + 1e-6)) if step > 0.0 else K
    first, last = np.floor((low - cycles.origin) / length), np.ceil((high - cycles.origin) / length)
    bins = int(last - first) * K
    check_memory(
        BYTES_PER_BIN * bins,
        f"a cycle of {length:g} in a time of {high - low:g}",
        "use longer cycles or a shorter window",
    )
    edges = cycles.origin + length * (first + np.arange(bins + 1) / K)
    inside, exposure = np.clip(edges, low, high), np.zeros(bins)
    start, stop = np.flatnonzero(np.diff(inside) > 0.0)[[0, -1]]
    exposure[start : stop + 1] = _expected(observed.exposure, cycles, inside[start : stop + 2])
    places = np.clip(part_of(edges, observed.times), start, stop)
    counts = np.zeros(bins)
    np.add.at(counts, places, observed.weights)
    return Counted(counts, exposure, K)


def _learn_blocks(
    observed: ObservedTimes,
    horizon: float,
    cycles: Cycles,
    periods: list[float],
    step: float,
    seed: int,
) -> ForecastRate:
    """Counts in blocks, and the priors that forecast them."""
    low, high, shortest = observed.low, observed.high, min(cycles.periods, default=0.0)
    block = block_length(high - low, horizon, len(observed.times), step, shortest)
    periods = [p for p in periods if MIN_PERIOD_BLOCKS * block <= p <= (high - low) / MIN_PERIODS]
    if periods and not cycles.periods and step == 0.0:
        block = min(periods) / round(min(periods) / block)
    line = make_block_edges(low, high, horizon, block)
    n = line.observed
    counts, means = np.zeros(n), _expected(observed.exposure, cycles, line.edges[: n + 1])
    np.add.at(counts, np.minimum(line.blocks_of(observed.times), n - 1), observed.weights)
    _check_gaps(line, counts, means)
    base = float(counts.sum() / means.sum())
    means *= base
    rng = np.random.default_rng(seed)
    slow = [line.steps, *_whole_steps(line, periods, cycles.origin)]
    changes = line.changed(observed.changes)
    ways = [Blocks(counts, means, line.steps[:n], each[:n], changes=changes) for each in slow]
    way, priors, jumps = weigh(ways, line.block, high - low, rng)
    return ForecastRate(line.edges, n, counts, means, base, priors, jumps, slow[way], cycles, seed)


def _expected(given: Exposure, cycles: Cycles, edges: Floats) -> Floats:
    """∫ of the exposure times the cycles over each of the parts between edges, (parts,).

    Exact where the exposure is constant from bend to bend.
    """
    bends = np.union1d(edges, cycles.edges(*edges[[0, -1]].tolist()))
    factors = cycles.mean_masses(bends).sum(axis=1) / np.diff(bends)
    return np.add.reduceat(exposure_of(given, bends) * factors, np.searchsorted(bends, edges[:-1]))


def _whole_steps(line: BlockEdges, periods: list[float], origin: float) -> list[Floats]:
    """Steps of a field that changes only when a period begins: as if now, or at the origin."""
    found: list[Floats] = []
    for period in periods:
        for start in (line.now, origin):
            steps = line.whole_steps(period, start)
            if not any(np.array_equal(steps, other) for other in found):
                found.append(steps)
    return found


def _check_gaps(line: BlockEdges, counts: Floats, means: Floats) -> None:
    """Raise if there are events where nobody observed."""
    lost = np.flatnonzero((means <= 0.0) & (counts > 0.0))
    if len(lost):
        raise ValueError(
            "exposure must be above 0 where there are events, got 0 and events between "
            f"{line.edges[lost[0]]:g} and {line.edges[lost[0] + 1]:g}: drop those events or "
            "correct the exposure."
        )
