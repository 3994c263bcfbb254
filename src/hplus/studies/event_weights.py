"""Weights of events: the unit in which sums of weights vary like counts of events.

A sum of independent weights w of a Poisson number of events has the mean Σw and the variance Σw²,
so that in units of φ = Σw²/Σw both are equal, as for a count. Rates are learned in this unit, and
told in that of the weights. Events that are kept with probability w/max w are again a Poisson
pattern, whose rate is proportional to that of the weights: they stand for it where single events
are needed, to score and to check.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.files.chunked_table import Table
from hplus.files.feeds import TableError
from hplus.rates.weight_units import WEIGHT_BITS, exact_sum
from hplus.studies.frames import Frame

if TYPE_CHECKING:
    from hplus.rates.statistic import Statistic
    from hplus.studies.event_study import EventStudy


MANTISSA_BITS, UNIT_BITS = 53, 1126
"""Of a float; and minus the exponent of the last bit of the smallest one."""


class WeightScale(NamedTuple):
    """The unit φ = Σw²/Σw of weights, the largest of them, and their sum."""

    unit: float
    largest: float
    total: float


def weight_scale(table: Table, frame: Frame) -> WeightScale | None:
    """The scale of the weights of a table's events, in a pass of its own; None without weights."""
    from hplus.studies.events import placed

    if not frame.weight:
        return None
    if table.is_pipe:
        raise ValueError("weight= reads a file twice, got a pipe: save it first.")
    total = squares = kept = 0
    largest = 0.0
    for part in placed(table, frame):
        kept += len(part.X)
        if part.weights is not None and len(part.weights):
            total += exact_units(part.weights)
            squares += exact_units(part.weights**2)
            largest = max(largest, float(part.weights.max()))
    if kept == 0:
        return WeightScale(1.0, 1.0, 0.0)  # the next pass says why
    if not total:
        raise TableError(
            f"column {frame.weight!r} of {table.path} must be above 0 in at least one row inside "
            "the window to be a weight, got none: name another column."
        )
    return WeightScale(squares / total, largest, total / 2**UNIT_BITS)


def scaled_weights(weights: Floats, scale: WeightScale) -> Floats:
    """Weights in units of φ; those that would be rounded to 0 are 0, as weights of 0 are."""
    shares = weights / scale.unit
    return np.where(shares * 2.0**WEIGHT_BITS > 0.5, shares, 0.0)


def joint_scale(scales: Sequence[WeightScale]) -> WeightScale:
    """The scale of the weights of several parts together."""
    some = [scale for scale in scales if scale.total > 0.0]
    total = sum(scale.total for scale in some)
    squares = sum(scale.unit * scale.total for scale in some)
    return WeightScale(squares / total, max(scale.largest for scale in some), total)


def in_other_unit(statistic: Statistic, factor: float) -> Statistic:
    """The same events with weights that are `factor` times as large, rounded."""
    weights = np.rint(statistic.masses * (factor * 2.0**WEIGHT_BITS)).astype(np.int64)
    events, units = statistic.events, exact_sum(weights)
    squares = max(
        round(statistic.squares * Fraction(factor) ** 2), -(-(units**2) // max(events, 1))
    )
    return statistic.replace(weights=weights, squares=squares)


def exact_units(values: Floats) -> int:
    """Σ values (n,) >= 0 in units of 2⁻¹¹²⁶, exact, so that the order of rows does not matter."""
    mantissas, exponents = np.frexp(values)
    whole = (mantissas * 2.0**MANTISSA_BITS).astype(np.int64)
    return sum(
        exact_sum(whole[exponents == e]) << (int(e) - MANTISSA_BITS + UNIT_BITS)
        for e in np.unique(exponents)
    )


def weight_unit(study: EventStudy) -> float:
    """The unit in which counts of a study vary like those of events; 1 without weights."""
    scale = getattr(study, "weights_", None)
    return 1.0 if scale is None else float(scale["unit"])


def counted_noun(frame: Frame) -> str:
    """What is counted, in words: events, or units of a column."""
    return f"units of {frame.weight}" if frame.weight else "events"
