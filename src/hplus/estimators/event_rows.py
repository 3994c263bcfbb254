"""Rows that a user gives as events in place and time, with marks and types, as a catalogue."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hplus._checks import Floats, Ints, as_floats, check_finite, shown
from hplus.rates.excitation.catalogue import Catalogue, in_order
from hplus.rates.excitation.mark_effects import LARGEST_LEFT
from hplus.windows import Interval, Product, Window

History = Catalogue | tuple[ArrayLike | None, ...] | ArrayLike
"""Events X, or (X, marks), or (X, marks, types), or a catalogue of events."""

Labels = NDArray[np.generic]
"""Names or numbers of types."""

Part = tuple[Window | None, float, float]
"""A place, None on a line, and a start and an end."""

FEWEST_TIED, MOST_TIED = 10, 0.2
"""Events at the time of another, in number and as a share, from which on a warning says so."""

ONLY_TYPE = "event"
"""The type of all events if none are given."""

MOST_TYPES = 20
"""Types at most: a fit learns weights for each pair of them, and with 20 takes 15 s."""

LARGEST_MARK = 1e100
"""Squares of larger marks would be too large for numbers."""

MOST_BEYOND = 20.0
"""How far above others the largest marks may lie, in ranges of these."""


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
        return in_order(points[:, -1], points[:, :-1], _as_marks(marks, n), kinds)

    def kinds(self, types: ArrayLike | None, n: int) -> Ints:
        """The number of the type of each event, (n,)."""
        if types is None:
            if len(self.labels) > 1 and n:
                raise ValueError(f"types must be given, as in fit: {shown(self.labels.tolist())}.")
            return np.zeros(n, dtype=np.int64)
        given = _known_labels(types)
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
        rule = "intervals of time" if self.region is None else "places times intervals of time"
        raise TypeError(f"regions must be {rule}, got {shown(region)}.")

    def places(self, regions: Window | Sequence[Window] | None) -> list[Window | None]:
        """Places of which counts are asked for; None is the whole region."""
        if regions is None:
            return [None]
        if self.region is None:
            raise ValueError(
                f"regions must be None for events without places, got {shown(regions)}."
            )
        listed = [regions] if isinstance(regions, Window) else list(regions)
        for region in listed:
            if not isinstance(region, Window) or region.dimension != self.region.dimension:
                raise TypeError(
                    f"regions must be places such as {shown(self.region)}, got {shown(region)}."
                )
        return list(listed)


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


def warn_of_ties(times: Floats) -> None:
    """Warn if many events share their time with another: such events do not trigger each other."""
    if said := tied_words(times):
        warnings.warn(
            f"{said}: if times are rounded, spread them at random over what they stand for, such "
            "as X[:, -1] += rng.uniform(0, 1, len(X)) for days.",
            TiedTimesWarning,
            stacklevel=3,
        )


def labels_of(types: ArrayLike | None) -> Labels:
    """The different types, sorted; an error if some are missing, or if there are too many."""
    labels = np.unique(_known_labels([ONLY_TYPE] if types is None else types))
    if len(labels) > MOST_TYPES:
        raise ValueError(
            f"types must have at most {MOST_TYPES} different values, got {len(labels)}: join rare "
            "ones."
        )
    return labels


def _known_labels(types: ArrayLike) -> Labels:
    """Types as an array; an error if some are missing, or text and others numbers."""
    # as an array of text, a missing type would be the type "nan"
    words = np.asarray(types, dtype=object).ravel().tolist()
    missing = [i for i, word in enumerate(words) if word is None or word != word]
    if missing:
        raise ValueError(
            f"types must be known for each event, got {shown(words[missing[0]])} in row "
            f"{missing[0]}: drop those rows, or give them a type of their own."
        )
    if len({isinstance(word, str) for word in words}) > 1:
        raise ValueError("types must be all text or all numbers, got both.")
    labels = np.asarray(types)
    if labels.dtype.kind == "c":
        raise TypeError(f"types must be text or whole numbers, got {labels.dtype}.")
    return labels


def check_one_scale(marks: Floats) -> None:
    """Refuse a mark so large that how much it triggers would be extrapolated too far."""
    ordered = np.sort(marks)
    low, high = ordered[0], ordered[-min(LARGEST_LEFT, len(ordered))]
    if high > low and ordered[-1] - high > MOST_BEYOND * (high - low):
        raise ValueError(
            f"marks must be on one scale, got {ordered[-1]:.3g} where their median is "
            f"{np.median(ordered):.3g}: check it, or use logarithms of the marks."
        )


def check_known_scale(marks: Floats, knots: Floats) -> None:
    """Refuse a later mark so much larger than those of the fit; `knots` are those of the fit."""
    beyond = np.max(marks, initial=-np.inf) - knots[-1]
    if len(knots) > 1 and beyond > MOST_BEYOND * (knots[-1] - knots[0]):
        raise ValueError(
            f"marks must be on the scale of the fit, where most lie between {knots[0]:.3g} and "
            f"{knots[-1]:.3g}, got {marks.max():.3g}: check it, or fit again."
        )


def check_types_inside(labels: Labels, kinds: Ints) -> None:
    """Refuse types without an event in the window; `kinds` (n,) are numbers of those inside."""
    missing = np.setdiff1d(np.arange(len(labels)), kinds)
    if len(missing):
        raise ValueError(
            f"types must each have an event in the window, got none of {shown(labels[missing[0]])}:"
            " drop its rows, or let the window begin earlier."
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


def _as_marks(marks: ArrayLike | None, n: int) -> Floats:
    if marks is None:
        return np.zeros(n)
    found = as_floats("marks", marks)
    if found.shape != (n,):
        raise ValueError(f"marks must have shape ({n},), one for each event, got {found.shape}.")
    large = np.abs(check_finite("marks", found)) > LARGEST_MARK
    if large.any():
        raise ValueError(
            f"marks must lie between {-LARGEST_MARK:g} and {LARGEST_MARK:g}, got "
            f"{found[large][0]:g}: use logarithms of the marks."
        )
    return found
