"""The table of hot spots, in the columns and words of the user's own file."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.report.margins import Margins, last_interval
from hplus.report.spots import Spots, find_spots
from hplus.report.words import in_columns, quantity, steps_between


@final
@value
class SpotTable(Value):
    """Hot spots with their places in the user's own columns, and the size of a cell in words."""

    spots: Spots
    columns: tuple[str, ...]
    places: tuple[tuple[str, ...], ...]
    size: str
    period: str


def spot_table(study: Any, sums: Margins, events: Floats | None) -> SpotTable:
    """Hot spots in the user's own columns: middles of cells, or both ends of intervals."""
    model, frame = study.model_, study.frame
    spots = find_spots(model, sums, study.exposure_.amount, events)
    sides = (spots.high - spots.low)[0]
    corners = [_described(frame, corner) for corner in (spots.low[:1], spots.high[:1])]
    steps = steps_between(corners[0][0], corners[1][0])
    units = model.window.axis_units
    if len(sides) == 1:
        starts, ends = (in_columns(_described(frame, X), steps) for X in (spots.low, spots.high))
        pairs = zip(starts, ends, strict=True)
        places = [(*start.values(), *end.values()) for start, end in pairs]
        columns = [f"{next(iter(starts[0]))}, from", "to"]
        size = f"intervals of {quantity(float(sides[0]), units[0])}"
    else:
        span = last_interval(model.window)
        finer = {name: step / 10.0 for name, step in steps.items()}
        finer.setdefault(frame.axes[-1].name, (span.high - span.low) / 100.0)
        rows = in_columns(_described(frame, spots.middle, spots.peak), finer)
        places, columns = [tuple(row.values()) for row in rows], list(rows[0])
        size = f"squares of {quantity(float(sides[0]), units[0])}"
        if units[0] != units[1] or sides[0] != sides[1]:
            size = f"cells of {' by '.join(map(quantity, sides.tolist(), units[:2]))}"
    return SpotTable(spots, tuple(columns), tuple(places), size, watched(study))


def _described(frame: Any, cells: Floats, peaks: Floats | None = None) -> list[dict[str, Any]]:
    """Places (k, m) in the user's columns; of three axes the last is left out, or at the peaks."""
    missing = frame.window.dimension - cells.shape[1]
    if missing == 0:
        return list(frame.describe(cells))
    last = np.full(len(cells), last_interval(frame.window).low) if peaks is None else peaks
    rows = frame.describe(np.column_stack([cells, last]))
    return rows if peaks is not None else [dict(list(row.items())[:-1]) for row in rows]


def watched(study: Any) -> str:
    """For how long events were watched: "79 games", "4 years", or nothing."""
    amount, clock = study.exposure_, study.frame.clock
    if amount.unit or amount.amount != 1.0:
        return quantity(amount.amount, amount.unit)
    if clock is not None:
        span = last_interval(study.model_.window)
        return quantity(span.high - span.low, span.unit)
    return ""
