"""Events to check a rate on, of which only the places can be checked if they are later ones."""

from __future__ import annotations

from typing import NamedTuple

from hplus.files.feeds import TableError
from hplus.files.tables import TableLike
from hplus.studies.events import OutsidePeriodError, Sampled, sampled
from hplus.studies.frames import Frame
from hplus.studies.spans import moment


class EventsToCheck(NamedTuple):
    """Events of a file, and whether only their places can be compared with a rate.

    That is so without a cycle, if all events lie outside the observation period: the rate of times
    ends with the period.
    """

    events: Sampled
    places_only: bool


def events_to_check(source: TableLike, frame: Frame) -> EventsToCheck:
    """The events of a file or table that a rate can be checked on.

    With a cycle, those of any time; otherwise those of the observation period or, if there are none
    of it but places, those of any time by place alone.
    """
    try:
        return EventsToCheck(sampled(source, frame.at_any_time()), False)
    except OutsidePeriodError as error:
        if frame.clock is None or frame.region is None:
            raise TableError(_later_times(str(source), frame)) from error
    clock = frame.clock.at_any_time()
    return EventsToCheck(sampled(source, frame.replace(clock=clock)), True)


def _later_times(source: str, frame: Frame) -> str:
    """Why events of other times cannot be checked on a line of times, and what to do."""
    assert frame.clock is not None
    period = f"{moment(frame.clock.start)[:16]} to {moment(frame.clock.end)[:16]}"
    return (
        f"{source} has no events of the observation period, {period}, and without a cycle the rate "
        "says nothing about other times: fit it with cycle=day or cycle=week to check it on later "
        "events, or ask for counts to come with hplus expect."
    )
