"""Simulated events of a study, in the user's own columns and times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats, check_count, check_random_state
from hplus.studies.event_study import EventStudy
from hplus.studies.expect import time_asked
from hplus.studies.spans import CYCLES, SECONDS, Amount, seconds_of


class Pattern(NamedTuple):
    """Simulated events: their columns (n, c), and their times in seconds (n,) or None."""

    columns: Floats
    seconds: Floats | None


def draw(
    study: EventStudy,
    paths: int = 1,
    lasting: Amount | None = None,
    start: str | None = None,
    random_state: Any = None,
) -> list[Pattern]:
    """Patterns for a unit of exposure, the observation period or, with a cycle, a future one."""
    rng, clock = check_random_state(random_state), study.frame.clock
    paths = check_count("paths", paths)
    if clock is not None and clock.cycle:
        begin = clock.end if start is None else seconds_of("start", start, clock.zone)
        seconds = (lasting or Amount(1.0, clock.cycle)).to("s")
        return [_coming(study, begin, seconds, rng) for _ in range(paths)]
    if start is not None or (clock is not None and lasting is not None):
        raise ValueError("start= and lasting= need a model with a cycle: fit with cycle=.")
    exposure = 1.0 if clock is not None else time_asked(study, lasting).parts[0][1]
    return [_split(study, _points(study, exposure, rng)) for _ in range(paths)]


def _points(study: EventStudy, exposure: float, rng: Any) -> Floats:
    """Points of the window for some exposure."""
    rate = study.model_.rate_
    return rate.on_grid.sample(int(rng.poisson(exposure * rate.integral())), rng)


def _split(study: EventStudy, X: Floats) -> Pattern:
    frame = study.frame
    columns = frame.own(X)[:, : len(frame.columns)]
    if frame.clock is None:
        # in order along a line, as simulators want them
        return Pattern(np.sort(columns, axis=0) if columns.shape[1] == 1 else columns, None)
    seconds = frame.clock.start + X[:, -1] * SECONDS[frame.clock.unit]
    order = np.argsort(seconds)
    return Pattern(columns[order], seconds[order])


def _coming(study: EventStudy, begin: float, seconds: float, rng: Any) -> Pattern:
    """Events of the cycles that overlap a period, cut to it."""
    clock = study.frame.clock
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
    return Pattern(found[order], when[order])
