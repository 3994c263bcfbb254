"""Catalogues: events in the order of time, with their places, marks and types."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hplus._checks import Bools, Floats, Ints

NO_BEARINGS = np.zeros((0, 0, 3))


@dataclass(frozen=True)
class Catalogue:
    """Events by time: `times`, `marks` and `types` (n,), and `places` (n, 2), (n, 1) or (n, 0).

    `bearings` (n, D, 3) are the directions in which they trigger others; without them, all.
    """

    times: Floats
    places: Floats
    marks: Floats
    types: Ints
    bearings: Floats = field(default_factory=lambda: NO_BEARINGS)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def in_place(self) -> bool:
        """Do events have places?"""
        return self.places.shape[1] > 0

    @property
    def plane(self) -> Floats:
        """Places in the plane, (n, 2): on one axis, the other is 0."""
        return np.pad(self.places, ((0, 0), (0, 1))) if self.places.shape[1] == 1 else self.places

    @property
    def each_bearing(self) -> Floats:
        """The bearings of each event, (n, D, 3), or (n, 0, 3) if there are none."""
        return self.bearings if len(self.bearings) else np.zeros((len(self), 0, 3))

    def picked(self, which: Bools | Ints | slice) -> Catalogue:
        """Some of the events, in the order of time."""
        return Catalogue(
            self.times[which],
            self.places[which],
            self.marks[which],
            self.types[which],
            self.bearings[which] if len(self.bearings) else self.bearings,
        )

    def until(self, end: float) -> Catalogue:
        """The events up to a time, included."""
        return self.picked(slice(0, int(np.searchsorted(self.times, end, side="right"))))

    def since(self, start: float) -> Catalogue:
        """The events from a time on, included."""
        return self.picked(slice(int(np.searchsorted(self.times, start, side="left")), None))

    def with_others(self, other: Catalogue) -> Catalogue:
        """These events and others, without bearings."""
        return in_order(
            np.concatenate([self.times, other.times]),
            np.concatenate([self.places, other.places]),
            np.concatenate([self.marks, other.marks]),
            np.concatenate([self.types, other.types]),
        )


def in_order(times: Floats, places: Floats, marks: Floats, types: Ints) -> Catalogue:
    """A catalogue of events in any order."""
    order = np.argsort(times, kind="stable")
    return Catalogue(times[order], places[order], marks[order], types[order])
