"""Simulated events of a study, in the user's own columns and times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats, Ints, check_count, check_random_state
from hplus.rates.separable import SeparableRate
from hplus.studies.event_study import EventStudy
from hplus.studies.outlooks import outlook_for
from hplus.studies.periods import Period, cut, time_asked
from hplus.studies.spans import CYCLES, SECONDS, Amount
from hplus.studies.time_counts import is_forecast, time_counts

FINEST_PIECE, MOST_PIECES = 600.0, 1000
"""Seconds of the pieces of a period in which times are uniform, and how many there are at most."""


class SimulatedEvents(NamedTuple):
    """Simulated events: their columns (n, c), and their times in seconds (n,) or None."""

    columns: Floats
    seconds: Floats | None


def draw(
    study: EventStudy,
    paths: int = 1,
    lasting: Amount | None = None,
    start: str | None = None,
    random_state: Any = None,
) -> list[SimulatedEvents]:
    """Patterns for a unit of exposure, a period to come or, without a cycle, the one observed."""
    rng, clock = check_random_state(random_state), study.frame.clock
    if study.frame.weight:
        raise ValueError(
            f"a model of weights, got {study.frame.weight!r}, cannot simulate events: fit without "
            "weight=."
        )
    paths = check_count("paths", paths)
    asked = start is not None or lasting is not None
    if clock is None or not (clock.cycle or asked):
        exposure = time_asked(study, lasting, start).exposure if clock is None else 1.0
        return [_split(study, _points(study, exposure, rng)) for _ in range(paths)]
    period = time_asked(study, lasting, start)
    coming = period.end > clock.end and is_forecast(study)
    if clock.cycle and not coming:
        return [_of_cycles(study, period, rng) for _ in range(paths)]
    pieces = cut(period, int(np.clip(np.ceil(period.seconds / FINEST_PIECE), 1, MOST_PIECES)))
    counts = time_counts(study, pieces)
    # each path has a rate of its own if it is uncertain which one is to come
    chances = counts.draws if coming else counts.means[:, None]
    chosen = rng.randint(chances.shape[1], size=paths)
    return [_in_pieces(study, pieces, rng.poisson(chances[:, j]), rng) for j in chosen]


def _in_pieces(
    study: EventStudy, pieces: list[Period], counts: Ints, rng: np.random.RandomState
) -> SimulatedEvents:
    """Events of short pieces of time, uniform in each, at places of that time."""
    n, rate = int(counts.sum()), study.model_.rate_
    starts = np.repeat([piece.start for piece in pieces], counts)
    lengths = np.repeat([piece.seconds for piece in pieces], counts)
    seconds, columns = np.sort(starts + lengths * rng.random_sample(n)), np.zeros((n, 0))
    if isinstance(rate, SeparableRate):
        columns = study.frame.own(_places(study, rate, seconds, pieces[-1], rng))
    return SimulatedEvents(columns, seconds)


def _places(
    study: EventStudy,
    rate: SeparableRate,
    seconds: Floats,
    last: Period,
    rng: np.random.RandomState,
) -> Floats:
    """Places of events at some times (n,), as shares are at present if these are to come."""
    region, outlook, clock = study.frame.region, outlook_for(study, last), study.frame.clock
    assert clock is not None
    times = clock.axis(seconds)
    X = rate.places_at(times, rng)
    if outlook is None or outlook.recent is None or region is None:
        return X
    middles = 0.5 * (outlook.recent.lows + outlook.recent.highs)
    highest = outlook.recent.at(np.vstack([middles, X]), region, rate.place).max()
    missing = np.arange(len(X))
    while len(missing):
        ratios = outlook.recent.at(X[missing], region, rate.place)
        missing = missing[rng.random_sample(len(missing)) * highest > ratios]
        X[missing] = rate.places_at(times[missing], rng)
    return X


def _points(study: EventStudy, exposure: float, rng: np.random.RandomState) -> Floats:
    """Points of the window for some exposure."""
    rate = study.model_.rate_
    return rate.on_grid.sample(int(rng.poisson(exposure * rate.integral())), rng)


def _split(study: EventStudy, X: Floats) -> SimulatedEvents:
    frame = study.frame
    columns = frame.own(X)[:, : len(frame.columns)]
    if frame.clock is None:
        # in order along a line, as simulators want them
        return SimulatedEvents(np.sort(columns, axis=0) if columns.shape[1] == 1 else columns, None)
    seconds = frame.clock.start + X[:, -1] * SECONDS[frame.clock.unit]
    order = np.argsort(seconds)
    return SimulatedEvents(columns[order], seconds[order])


def _of_cycles(study: EventStudy, asked: Period, rng: np.random.RandomState) -> SimulatedEvents:
    """Events of the cycles that overlap a period, cut to it."""
    clock, begin, seconds = study.frame.clock, asked.start, asked.seconds
    assert clock is not None
    period = CYCLES[clock.cycle]
    phase = float(clock.axis(np.array([begin]))[0]) * 3600.0
    cycles = int(np.ceil((phase + seconds) / period))
    columns, moments = [], []
    for k in range(cycles):
        X = _points(study, 1.0, rng)
        at = begin - phase + k * period + 3600.0 * X[:, -1]
        kept = (at >= begin) & (at < begin + seconds)
        columns.append(study.frame.own(X[kept])[:, : len(study.frame.columns)])
        moments.append(at[kept])
    found, when = np.concatenate(columns), np.concatenate(moments)
    order = np.argsort(when)
    return SimulatedEvents(found[order], when[order])
