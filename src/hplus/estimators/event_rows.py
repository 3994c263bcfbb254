"""Rows that a user gives as events in place and time, with marks and types, as a catalogue."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats, Ints, as_floats, check_finite, shown
from hplus.estimators.marks_and_types import ONLY_TYPE, Labels, as_marks, known_labels
from hplus.rates.excitation.catalogue import Catalogue, in_order
from hplus.windows import Interval, Product, Window

History = Catalogue | tuple[ArrayLike | None, ...] | ArrayLike
"""Events X, or (X, marks), or (X, marks, types), or a catalogue of events."""

Part = tuple[Window | None, float, float]
"""A place, None on a line, and a start and an end."""

FEWEST_TIED, MOST_TIED = 10, 0.2
"""Events at the time of another, in number and as a share, from which on a warning says so."""


@dataclass(frozen=True)
class EventRows:
    """How rows are read: the window, the labels of types, and whether there are marks."""

    window: Window
    labels: Labels
    marked: bool

    @property
    def region(self) -> Window | None:
        """The places of the window; None on a line."""
        return self.window.left if isinstance(self.window, Product) else None

    def points(self, name: str, X: ArrayLike) -> Floats:
        """Points (n, d); times may lie outside the window, places may not."""
        points, d = check_finite(name, as_floats(name, X)), self.window.dimension
        if points.ndim == 1 and d == 1:
            points = points[:, None]
        if points.ndim != 2 or points.shape[1] != d:
            raise ValueError(f"{name} must have shape (n, {d}), time last, got {points.shape}.")
        if self.region is not None and len(points):
            self.region.require(f"{name}'s places", points[:, :-1])
        return points

    def catalogue(
        self, name: str, X: ArrayLike, marks: ArrayLike | None, types: ArrayLike | None
    ) -> Catalogue:
        """Events in the order of time."""
        points = self.points(name, X)
        n = len(points)
        if n and (marks is None) == self.marked:
            rule = "given, as in fit" if self.marked else "None: the fit had none"
            raise ValueError(f"marks must be {rule}, got {shown(marks)}.")
        kinds = self.kinds(types, n)
        return in_order(points[:, -1], points[:, :-1], as_marks(marks, n), kinds)

    def kinds(self, types: ArrayLike | None, n: int) -> Ints:
        """The number of the type of each event, (n,)."""
        if types is None:
            if len(self.labels) > 1 and n:
                raise ValueError(f"types must be given, as in fit: {shown(self.labels.tolist())}.")
            return np.zeros(n, dtype=np.int64)
        given = known_labels(types)
        if given.shape != (n,):
            raise ValueError(
                f"types must have shape ({n},), one for each event, got {given.shape}."
            )
        found = np.searchsorted(self.labels, given).clip(0, len(self.labels) - 1)
        unknown = np.flatnonzero(self.labels[found] != given)
        if len(unknown) and self.labels.tolist() == [ONLY_TYPE]:
            raise ValueError(f"types must be None: the fit had none, got {shown(types)}.")
        if len(unknown):
            raise ValueError(
                f"types must be among those of the fit, {shown(self.labels.tolist())}, got "
                f"{shown(given[unknown[0]])} in row {unknown[0]}: drop such rows, or fit again."
            )
        return found.astype(np.int64)

    def history(self, history: History) -> Catalogue:
        """A history as a user gives it."""
        if isinstance(history, Catalogue):
            history = self._listed(history)
        given = history if isinstance(history, tuple) else (history,)
        if len(given) > 3:
            raise ValueError(f"history must be {self._form()}, got a tuple of {len(given)}.")
        X, marks, types = (*given, None, None, None)[:3]
        rows = np.zeros((0, self.window.dimension)) if X is None else X
        needed = {"marks": (self.marked, marks), "types": (len(self.labels) > 1, types)}
        missing = [what for what, (asked, part) in needed.items() if asked and part is None]
        if np.size(rows) and missing:
            raise ValueError(
                f"history must be {self._form()}, as in fit, got no {' and no '.join(missing)}."
            )
        return self.catalogue("history", rows, marks, types)

    def _listed(self, events: Catalogue) -> tuple[ArrayLike | None, ...]:
        """The X, marks and types of a catalogue."""
        if np.max(events.types, initial=0) >= len(self.labels):
            raise ValueError(
                f"history must have types among those of the fit, {shown(self.labels.tolist())}, "
                f"got number {events.types.max()}."
            )
        X = np.column_stack([events.places, events.times])
        marks = events.marks if self.marked or events.marks.any() else None
        return X, marks, self.labels[events.types]

    def _form(self) -> str:
        """How a history is given."""
        if len(self.labels) > 1:
            return "(X, marks, types)" if self.marked else "(X, None, types)"
        return "(X, marks)" if self.marked else "X"

    def part(self, region: Window) -> Part:
        """A region as a place, a start and an end."""
        if self.region is None:
            if isinstance(region, Interval):
                return None, region.low, region.high
        elif isinstance(region, Product) and isinstance(region.right, Interval):
            return region.left, region.right.low, region.right.high
        rule = "intervals of time such as Interval(0, 1)"
        if self.region is not None:
            rule = f"places times intervals of time such as {shown(self.region)} * Interval(0, 1)"
        raise TypeError(f"regions must be {rule}, got {shown(region)}.")

    def parts(self, regions: Window | Sequence[Window]) -> list[Part]:
        """One region or several as parts."""
        return [self.part(region) for region in _listed(regions)]

    def places(self, regions: Window | Sequence[Window] | None) -> list[Window | None]:
        """Places of which counts are asked for; None is the whole region."""
        if regions is None:
            return [None]
        if self.region is None:
            raise ValueError(
                f"regions must be None for events without places, got {shown(regions)}."
            )
        listed = _listed(regions)
        for region in listed:
            if not isinstance(region, Window) or region.dimension != self.region.dimension:
                raise TypeError(
                    f"regions must be places such as {shown(self.region)}, got {shown(region)}."
                )
        return [*listed]


def _listed(regions: Window | Sequence[Window]) -> list[Window]:
    """One region or several as a list; of what is neither, the check of each region tells."""
    return list(regions) if isinstance(regions, Iterable) else [regions]


def observed_part(events: Catalogue, start: float, end: float) -> Catalogue:
    """The events of a window's time; an error if there are none, or later ones."""
    if late := int(np.sum(events.times > end)):
        raise ValueError(
            f"X must not hold events after the window, got {late} of {len(events)} after "
            f"{end:g}: drop them or widen the window."
        )
    inside = events.since(start)
    if not len(inside):
        raise ValueError(
            "X must hold at least one event in the window, got none: without any there is no rate "
            "to learn."
        )
    return inside


class TiedTimesWarning(UserWarning):
    """Many events share their time with another."""


def tied_words(times: Floats) -> str:
    """How many events share their time with another, and what follows; "" if few do."""
    counts = np.unique(times, return_counts=True)[1]
    tied = int(counts[counts > 1].sum())
    if tied < FEWEST_TIED or tied <= MOST_TIED * len(times):
        return ""
    return (
        f"{tied} of {len(times)} events have the same time as another, and events at the same time "
        "do not trigger each other"
    )


def _copied_words(events: Catalogue) -> str:
    """How many events in place are copies of others, and what follows; "" if few are."""
    if not events.in_place:
        return ""
    n = len(events)
    rows = np.column_stack([events.times, events.places, events.marks, events.types])
    copies = n - len(np.unique(rows, axis=0))
    if copies < FEWEST_TIED or copies <= MOST_TIED * n:
        return ""
    return (
        f"{copies} of {n} events are exact copies of others, which looks like triggering: keep "
        "the rows np.unique(X, axis=0, return_index=True)[1] of X, marks and types."
    )


def warn_of_one_place(events: Catalogue) -> None:
    """Warn if all events are at one place, of which no map can be learned."""
    if len(events) > 1 and events.in_place and not np.ptp(events.places, axis=0).any():
        warnings.warn(
            f"All {len(events)} events are at one place: leave out the coordinates and the region.",
            UserWarning,
            stacklevel=3,
        )


def warn_of_ties(events: Catalogue) -> None:
    """Warn if many events are copies of others, or share their time with another."""
    if said := _copied_words(events):
        warnings.warn(said, TiedTimesWarning, stacklevel=3)
    elif said := tied_words(events.times):
        warnings.warn(
            f"{said}: if times are rounded, spread them at random over what they stand for, such "
            "as X[:, -1] += rng.uniform(0, 1, len(X)) for days.",
            TiedTimesWarning,
            stacklevel=3,
        )


def check_new(new: Catalogue, known: Catalogue, since: float, until: float) -> None:
    """Refuse events that are not between two times, or that are known at the first of these."""
    outside = (new.times < since) | (new.times > until)
    if until < since or outside.any():
        raise ValueError(
            f"X must hold events between {since:g}, when what is known so far ends, and "
            f"until={shown(until)}: drop the others, or fit again."
        )
    rows, before = (_at_time(events, since) for events in (new, known))
    if len(rows) and len(before) and (rows[:, None] == before).all(axis=2).any():
        raise ValueError(
            f"X must not hold events that are known already, got one at {since:g}, when what is "
            "known so far ends: drop it."
        )


def _at_time(events: Catalogue, time: float) -> Floats:
    """Places, marks and types of the events at a time, (n, d)."""
    now = events.since(time).until(time)
    return np.column_stack([now.places, now.marks, now.types])
