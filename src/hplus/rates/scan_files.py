"""scan_files: the statistic of rows of files of any size, read in parts by threads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hplus._checks import check_fraction
from hplus._threads import check_jobs
from hplus.files.cells import numbers
from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition
from hplus.files.feeds import TableError
from hplus.files.scanning import scan_parts
from hplus.files.tables import TableLike, as_table
from hplus.rates.accumulator import CellAccumulator
from hplus.rates.statistic import Statistic
from hplus.rates.weight_units import in_units
from hplus.windows import Window, check_window


class _Counted:
    """Events of a part, and rows that could not be used."""

    def __init__(self, cells: CellAccumulator) -> None:
        self.cells, self.kept, self.bad = cells, 0, 0


def scan_files(
    source: TableLike,
    window: Window,
    columns: Sequence[str],
    *,
    weight: str = "",
    where: str = "",
    n_jobs: int | None = None,
    skip_bad: bool = False,
    most_dropped: float = 0.2,
) -> Statistic:
    """The statistic of the rows of files or a table that lie in the window, in one pass.

    Memory does not grow with the number of rows, and the result does not depend on their order, on
    how they are divided into files, or on the number of threads. Rows outside the window are left
    out.

    Parameters
    ----------
    source : str, path, list of these, data frame, Arrow table or stream
        A file, a folder, a pattern such as "2024-*.parquet", or a table in memory.
    window : Window
    columns : sequence of str
        The column of each axis of the window.
    weight : str
        A column with what each event counts.
    where : str
        Which rows are events, by a condition on columns.
    n_jobs : int or None, default=None
        Threads that read; -1 for all cores.
    skip_bad : bool, default=False
        Leave out files and row groups that cannot be read.
    most_dropped : float, default=0.2
        The largest share of rows without a number in one of the columns.
    """
    check_window("window", window, len(columns))
    table, chosen = as_table(source, skip_bad=skip_bad), Condition(where) if where else None
    needed = [*columns, *([weight] if weight else [])]
    wanted = [*needed, *(chosen.columns if chosen else ())]
    whole = _Counted(CellAccumulator(window))

    def work(part: Table) -> _Counted:
        return _counted(part, whole.cells.another(), window, columns, weight, chosen)

    for _, found in scan_parts(table, list(dict.fromkeys(wanted)), work, check_jobs(n_jobs)):
        if isinstance(found, TableError):
            if not skip_bad:
                raise found
            continue
        whole.cells.absorb(found.cells)
        whole.kept, whole.bad = whole.kept + found.kept, whole.bad + found.bad
    if whole.bad > check_fraction("most_dropped", most_dropped) * (whole.bad + whole.kept):
        raise TableError(
            f"{whole.bad} of {whole.bad + whole.kept} rows of {table.path} have no number in one "
            f"of the columns {', '.join(needed)}, which is more than most_dropped={most_dropped:g}."
        )
    return whole.cells.statistic()


def _counted(
    part: Table,
    into: CellAccumulator,
    window: Window,
    columns: Sequence[str],
    weight: str,
    where: Condition | None,
) -> _Counted:
    """The events of a part, in cells that have none yet."""
    found = _Counted(into)
    for chunk in part.chunks([*columns, *([weight] if weight else [])], where):
        cells = [numbers(chunk.as_numbers(name)) for name in columns]
        if weight:
            cells.append(numbers(chunk.as_numbers(weight)))
        good = ~np.any([c.missing | c.wrong for c in cells], axis=0)
        X = np.column_stack([c.values for c in cells[: len(columns)]])
        found.bad += int(np.sum(~good))
        inside = good & window.contains(np.where(good[:, None], X, 0.0))
        X = X if inside.all() else X[inside]
        found.cells.add(X, in_units(cells[-1].values[inside], len(X)) if weight else None)
        found.kept += int(np.sum(good))
    return found
