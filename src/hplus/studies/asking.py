"""Questions to a study of events in the words of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Floats
from hplus.files.tables import TableLike, as_table
from hplus.files.times import Zone
from hplus.studies.expect import Expected, Region, expect, grid_regions, named_regions, whole
from hplus.studies.periods import cut, time_asked
from hplus.studies.spans import Amount

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy


def counts_asked(
    study: EventStudy,
    lasting: Amount | str | None = None,
    *,
    regions: str | Sequence[Region] | None = None,
    grid: Sequence[int] | int | None = None,
    start: str | None = None,
    end: str | None = None,
    every: Amount | str | None = None,
    level: float = 0.9,
) -> list[Expected]:
    """Expected counts with prediction intervals, as `hplus expect` gives them.

    For `lasting`, such as "7d", after the observation period or from `start`; in each part of it of
    the length `every`; in the `regions` of a file of polygons, in the cells of a `grid`, or in all
    of the window.
    """
    if regions is not None and grid is not None:
        raise ValueError("give regions= or grid=, not both.")
    asked: Sequence[Region] = [whole(study.frame)]
    if isinstance(regions, str):
        asked = named_regions(study.frame, regions)
    elif regions is not None:
        asked = regions
    elif grid is not None:
        asked = grid_regions(study.frame, (grid,) if isinstance(grid, int) else grid)
    time = time_asked(study, _amount(lasting), start, end)
    part = _amount(every)
    return expect(study, asked, time if part is None else cut(time, every=part), level)


def _amount(given: Amount | str | None) -> Amount | None:
    return Amount.parse(given) if isinstance(given, str) else given


def rates_asked(study: EventStudy, source: TableLike) -> Floats:
    """The rate at each row of a table, (n,), NaN outside the window or where a cell is bad."""
    frame, zone, parts = study.frame.of_points(), Zone.NEITHER, [np.zeros(0)]
    for chunk in as_table(source).chunks(frame.needed):
        found = frame.points(chunk, zone)
        zone, rates = found.zone, np.full(len(chunk), np.nan)
        if len(found.X):
            rates[found.rows] = study.model_.predict(found.X)
        parts.append(rates)
    return np.concatenate(parts)
