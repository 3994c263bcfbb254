"""Marks and types that a user gives with events, and what they must be."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hplus._checks import Floats, Ints, as_floats, check_finite, shown
from hplus.rates.excitation.mark_effects import LARGEST_LEFT

Labels = NDArray[np.generic]
"""Names or numbers of types."""

ONLY_TYPE = "event"
"""The type of all events if none are given."""

MOST_TYPES = 20
"""Types at most: a fit learns weights for each pair of them, and with 20 takes 15 s."""

LARGEST_MARK = 1e100
"""Squares of larger marks would be too large for numbers."""

MOST_BEYOND = 20.0
"""How far above others the largest marks may lie, in ranges of these."""


def labels_of(types: ArrayLike | None) -> Labels:
    """The different types, sorted; an error if some are missing, or if there are too many."""
    labels = np.unique(known_labels([ONLY_TYPE] if types is None else types))
    if len(labels) > MOST_TYPES:
        raise ValueError(
            f"types must have at most {MOST_TYPES} different values, got {len(labels)}: join rare "
            "ones."
        )
    return labels


def known_labels(types: ArrayLike) -> Labels:
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


def largest_on_scale(marks: Floats) -> float:
    """The largest mark of which these tell how much it triggers; infinite if most are equal."""
    smaller = np.sort(marks)[: 1 - LARGEST_LEFT]
    return _farthest(smaller[0], smaller[-1]) if len(smaller) else np.inf


def _farthest(low: float, high: float) -> float:
    return high + MOST_BEYOND * (high - low) if high > low else np.inf


def check_one_scale(marks: Floats) -> None:
    """Refuse a mark so large that how much it triggers would be extrapolated too far."""
    if marks.max() > largest_on_scale(marks):
        raise ValueError(
            f"marks must be on one scale, got {marks.max():.3g} where their median is "
            f"{np.median(marks):.3g}: check that mark, or use logarithms of the marks."
        )


def check_known_scale(marks: Floats, knots: Floats) -> None:
    """Refuse a later mark so much larger than those of the fit; `knots` are those of the fit."""
    if np.max(marks, initial=-np.inf) > _farthest(knots[0], knots[-1]):
        raise ValueError(
            f"marks must be on the scale of the fit, where most lie between {knots[0]:.3g} and "
            f"{knots[-1]:.3g}, got {marks.max():.3g}: check that mark, or fit again."
        )


def check_types_inside(labels: Labels, kinds: Ints) -> None:
    """Refuse types without an event in the window; `kinds` (n,) are numbers of those inside."""
    missing = np.setdiff1d(np.arange(len(labels)), kinds)
    if len(missing):
        raise ValueError(
            f"types must each have an event in the window, got none of {shown(labels[missing[0]])}:"
            " drop its rows, or let the window begin earlier."
        )


def as_marks(marks: ArrayLike | None, n: int) -> Floats:
    """The marks of n events; 0 without any."""
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
