"""Counts of events to come under a self-exciting rate, from simulated futures."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hplus._checks import Bools, Floats, Ints, Seed, check_fraction, check_number
from hplus.estimators.futures import Futures
from hplus.estimators.marks_and_types import Labels
from hplus.estimators.self_exciting import SelfExciting
from hplus.files.chunked_table import Table
from hplus.rates.excitation.descendants import Simulated
from hplus.studies.draws import SimulatedEvents
from hplus.studies.events import Reading
from hplus.studies.expect import Region, whole
from hplus.studies.marked_events import check_known_types, read_marked
from hplus.studies.periods import Period
from hplus.studies.spans import SECONDS, Amount, Clock, moment
from hplus.windows import Window
from hplus.wording import counted

if TYPE_CHECKING:
    from hplus.studies.excitation_study import ExcitationStudy

FUTURES = 1000
"""Simulated futures behind counts and their intervals."""

NEXT = {
    "day": {"day": 86_400.0, "week": 604_800.0, "four weeks": 2_419_200.0},
    "h": {"hour": 3600.0, "day": 86_400.0},
    "min": {"minute": 60.0, "hour": 3600.0},
    "s": {"second": 1.0, "minute": 60.0},
}
"""By the unit of the clock: the times to come that are told, in seconds."""


class TriggeredCount(NamedTuple):
    """A region with the count to expect, an interval for it, and the chance of at least one event.

    `chance_above` is that of at least one with a mark above the one asked for, None without.
    """

    region: Region
    expected: float
    low: float
    high: float
    chance: float
    chance_above: float | None


class NextCount(NamedTuple):
    """The count of a time to come: its name, such as "week", when it is, what is expected."""

    name: str
    period: Period
    expected: TriggeredCount


def clock_of(study: ExcitationStudy) -> Clock:
    """The clock of a study, which always has one."""
    clock = study.frame.clock
    assert clock is not None
    return clock


def known_until(study: ExcitationStudy, model: SelfExciting | None = None) -> float:
    """Until when events are known, in seconds since 1970."""
    clock, model = clock_of(study), study.model_ if model is None else model
    return clock.start + model.observed_until_ * SECONDS[clock.unit]


def period_asked(
    study: ExcitationStudy, lasting: Amount | None, start: str | None = None, end: str | None = None
) -> Period:
    """The period of the counts: by default the first of the times to come that are told."""
    clock = clock_of(study)
    if lasting is not None and end is not None:
        raise ValueError("give lasting= or end=, not both.")
    a = clock.end if start is None else clock.seconds_at("start", start)
    if end is not None:
        b = clock.seconds_at("end", end)
    else:
        b = a + (next(iter(NEXT[clock.unit].values())) if lasting is None else lasting.to("s"))
    if not a < b:
        raise ValueError(f"end= must be after start=, got {moment(a)} to {moment(b)}.")
    if a < clock.start:
        raise ValueError(
            f"start must not be before the observation period, {moment(clock.start)} to "
            f"{moment(clock.end)}, got {moment(a)}."
        )
    return Period(f"{time_words(a)} to {time_words(b)}", 1.0, a, b)


def time_words(seconds: float) -> str:
    """A time as sentences have it, to the minute if it is a whole one."""
    return moment(seconds).replace("T", " ").removesuffix(":00")


def brought_up_to(
    study: ExcitationStudy, path: str | Table, until: float
) -> tuple[SelfExciting, Reading]:
    """The model with the events of a file that are later than those it knows, up to a time.

    There may be none: then nothing happened since.
    """
    begin = known_until(study)
    if not until > begin:
        raise ValueError(
            f"start must be after {moment(begin)}, until when events are known, for events=, got "
            f"{moment(until)}."
        )
    new = read_marked(path, study.frame, study.mark, study.kind, (begin, until), quiet=True)
    check_known_types(new, study.kind, study.model_.types_.tolist())
    model = copy(study.model_)
    end = float(clock_of(study).axis(np.array([until]))[0])
    model.update(new.X, until=end, marks=new.marks, types=new.types)
    return model, new.reading


def quiet_words(study: ExcitationStudy, file: str, until: float) -> str:
    """That a file has no events since those that a study knows, in a sentence."""
    return (
        f"No event of {file} lies between {time_words(known_until(study))}, when those of the fit "
        f"end, and {time_words(until)}: this time is taken to be without events."
    )


def futures(
    study: ExcitationStudy,
    start: float,
    end: float,
    *,
    model: SelfExciting | None = None,
    n_paths: int = FUTURES,
    random_state: Seed = 0,
) -> Futures:
    """Simulated events until `end`, in seconds since 1970.

    They begin at `start` or, if events are not known until then, where those known end. The times
    to come that are told are stages, so that their counts are the same for every later end.
    """
    model, clock = study.model_ if model is None else model, clock_of(study)
    begin = min(start, known_until(study, model))
    a, unit = float(clock.axis(np.array([begin]))[0]), SECONDS[clock.unit]
    told, horizon = np.array(list(NEXT[clock.unit].values())) / unit, (end - begin) / unit
    return model.forecast(
        horizon,
        n_paths=n_paths,
        start=a,
        stages=told[told < horizon],
        random_state=random_state,
    )


def triggered_counts(
    study: ExcitationStudy,
    regions: Sequence[Region],
    periods: Sequence[Period],
    level: float = 0.9,
    *,
    mark_above: float | None = None,
    model: SelfExciting | None = None,
    n_paths: int = FUTURES,
) -> list[list[TriggeredCount]]:
    """For each period, the count to expect in each region: all from the same futures."""
    tail = 0.5 * (1.0 - check_fraction("level", level))
    if mark_above is not None and not study.mark:
        raise ValueError("mark_above= needs a model that was fitted with mark=.")
    if mark_above is not None:
        check_number("mark_above", mark_above)
    first, last = min(p.start for p in periods), max(p.end for p in periods)
    seed = study.random_state
    found = futures(study, first, last, model=model, n_paths=n_paths, random_state=seed)
    events, paths, clock = found.simulated.events, found.simulated.paths, clock_of(study)
    places = [_inside(region.window, events.places) for region in regions]
    counted = []
    for period in periods:
        a, b = clock.axis(np.array([period.start, period.end])).tolist()
        now = (events.times >= a) & (events.times < b)
        counted.append([
            _counted(region, paths[now & inside], events.marks[now & inside], n_paths, tail,
                     mark_above)
            for region, inside in zip(regions, places, strict=True)
        ])  # fmt: skip
    return counted


def _inside(window: Window | None, places: Floats) -> Bools:
    if window is None or places.shape[1] == 0:
        return np.ones(len(places), dtype=bool)
    return window.contains(places)


def _counted(
    region: Region, paths: Ints, marks: Floats, n_paths: int, tail: float, above: float | None
) -> TriggeredCount:
    counts = np.bincount(paths, minlength=n_paths)
    low, high = np.quantile(counts, [tail, 1.0 - tail], method="inverted_cdf").tolist()
    large = None if above is None else len(np.unique(paths[marks > above])) / n_paths
    return TriggeredCount(
        region, float(counts.mean()), low, high, float(np.mean(counts > 0)), large
    )


def next_counts(study: ExcitationStudy) -> list[NextCount]:
    """What follows the observation period: the next day, the next week and so on."""
    clock = clock_of(study)
    ahead = NEXT[clock.unit]
    periods = [Period("", 1.0, clock.end, clock.end + seconds) for seconds in ahead.values()]
    found = triggered_counts(study, [whole(study.frame)], periods)
    return [NextCount(name, period, part) for name, period, (part,) in
            zip(ahead, periods, found, strict=True)]  # fmt: skip


class MarkedFuture(NamedTuple):
    """Simulated events, with their marks and types (n,) if the model has any."""

    events: SimulatedEvents
    marks: Floats | None
    types: Labels | None


def draw_futures(
    study: ExcitationStudy,
    paths: int = 1,
    lasting: Amount | None = None,
    start: str | None = None,
    random_state: Seed = None,
) -> list[MarkedFuture]:
    """Simulated events of a period to come or, if none is asked for, of one like that observed."""
    clock, model = clock_of(study), study.model_
    if lasting is None and start is None:
        found, first = model.simulate_window(paths, random_state), 0.0
    else:
        asked = period_asked(study, lasting, start)
        ahead = futures(study, asked.start, asked.end, n_paths=paths, random_state=random_state)
        found = ahead.simulated
        first = float(clock.axis(np.array([asked.start]))[0])
    return [_future(study, found, path, first) for path in range(paths)]


def _future(study: ExcitationStudy, found: Simulated, path: int, first: float) -> MarkedFuture:
    """One path in the user's own columns and times, from a time on."""
    events, clock = found.events, clock_of(study)
    own = np.flatnonzero((found.paths == path) & (events.times >= first))
    own = own[np.argsort(events.times[own])]
    columns = (
        study.frame.own(events.places[own]) if study.frame.columns else np.zeros((len(own), 0))
    )
    seconds = clock.start + events.times[own] * SECONDS[clock.unit]
    return MarkedFuture(
        SimulatedEvents(columns, seconds),
        events.marks[own] if study.mark else None,
        study.model_.types_[events.types[own]].astype(str) if study.kind else None,
    )


def basis_of(
    study: ExcitationStudy,
    period: Period,
    model: SelfExciting | None = None,
    n_paths: int = FUTURES,
) -> str:
    """What counts of a period rest on, in a sentence."""
    begin = known_until(study, model)
    simulated = f"From {counted(n_paths, 'simulated future')}"
    if period.start < begin:
        when = time_words(period.start)
        return f"{simulated} as of {when}, under a rate learned from all events."
    return f"{simulated}, from events known until {time_words(begin)}."
