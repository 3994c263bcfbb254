"""What a stream has learned so far, as a study that answers all that one of a file does."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hplus._checks import Floats, shown
from hplus.estimators.intensity import Intensity
from hplus.estimators.separable import SeparableIntensity
from hplus.rates.cell_margins import margin
from hplus.streaming.methods import Tree, as_method
from hplus.studies.event_study import EventStudy
from hplus.studies.events import Reading
from hplus.studies.frames import Frame
from hplus.studies.outlooks import Outlook
from hplus.studies.spans import CYCLES, SECONDS, Clock, moment
from hplus.studies.stream_facts import left_out_of
from hplus.studies.streams import StreamStudy

STREAM = "the stream"
"""What stands for the name of a file."""

NO_DATES = "a stream does not keep the dates of events"
"""Why there is no forecast."""


def answering(study: StreamStudy) -> EventStudy:
    """The study of all events of a stream so far, learned by trees, without a hold-out."""
    method = as_method(study.method)
    if not isinstance(method, Tree):
        raise ValueError(
            f'a stream answers if method="tree", got {shown(study.method)}: start another one with '
            "it."
        )
    if study.events_ == 0:
        raise ValueError(f"a stream must hold events to answer, got {study.lines_} lines and none.")
    clock = study.frame.clock
    if clock is not None and study.latest_ <= clock.start:
        raise ValueError(
            "a stream must hold an event after the start of observation to answer, got events at "
            f"{moment(clock.start)} only: until then, there is no exposure."
        )
    frame = _observed(study)
    found = EventStudy(frame, study.exposure, 0.0, 1.0, method.random_state, model="tree")
    found.exposure_ = study.total_exposure
    found.reading_ = Reading(
        STREAM,
        study.lines_,
        study.events_,
        study.dropped_,
        study.fingerprint,
        left_out_of(study),
    )
    found.model_ = _rate(study, frame, method.random_state)
    found.holdout_, found.bursts_, found.made_with_ = None, None, study.made_with_
    nothing = np.zeros(0, dtype=np.int64)
    found.outlook_ = None if frame.clock is None else Outlook(None, NO_DATES, None, nothing)
    return found


def _observed(study: StreamStudy) -> Frame:
    """The frame of a stream, observed until its latest event: at least for one cycle."""
    clock = study.frame.clock
    if clock is None or not clock.cycle:
        return study.frame
    end = max(float(np.nextafter(study.latest_, np.inf)), clock.start + CYCLES[clock.cycle])
    return study.frame.replace(clock=clock.replace(end=min(end, clock.end)))


def _rate(study: StreamStudy, frame: Frame, seed: int) -> Intensity | SeparableIntensity:
    """The rate of the events so far: of places, of times, or of both separately."""
    statistic = study.model_.statistic_
    unit = statistic.total / study.model_.effective_events_  # the weight of an event that is new
    if frame.clock is None:
        rate = Intensity(frame.window, model="tree", random_state=seed)
        return rate.fit(statistic, exposure=unit * study.total_exposure.amount)
    over = _exposure(study, frame.clock, unit)
    if frame.region is None:
        rate = Intensity(frame.window, model="tree", random_state=seed)
        return rate.fit(statistic, exposure=over)
    d = frame.region.dimension
    parts = margin(statistic, frame.region, range(d)), margin(statistic, frame.clock.window, [d])
    both = SeparableIntensity(frame.window, model="tree", random_state=seed)
    return both.fit(parts, exposure=over)


def _exposure(study: StreamStudy, clock: Clock, unit: float) -> Callable[[Floats], Floats]:
    """How often each point of the axis of time came by, weighted by age, in units of weight."""
    half_life, latest = study.times.half_life_seconds, study.latest_

    def over(X: Floats) -> Floats:
        if clock.cycle:
            return unit * times_of_cycle(clock, X[:, -1], latest, half_life)
        ages = latest - (clock.start + X[:, -1] * SECONDS[clock.unit])
        return unit * np.where(ages >= 0.0, np.exp2(-np.maximum(ages, 0.0) / half_life), 0.0)

    return over


def times_of_cycle(clock: Clock, hours: Floats, latest: float, half_life: float) -> Floats:
    """How often each hour of a cycle came by until `latest`; each time halves with its age."""
    period = CYCLES[clock.cycle]
    now = float(clock.axis(np.array([latest]))[0])
    ages = ((now - hours) * 3600.0) % period
    times = np.maximum(np.floor((latest - ages - clock.start) / period) + 1.0, 0.0)
    if half_life == math.inf:
        return times
    decay = math.log(2.0) * period / half_life
    return np.exp2(-ages / half_life) * np.expm1(-decay * times) / math.expm1(-decay)
