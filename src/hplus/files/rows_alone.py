"""Lines of a stream as rows, of which none may look at another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from hplus.files.commas import in_doubt, with_points
from hplus.files.rows import Chunk, Layout, read_rows


def read_alone(data: bytes, layout: Layout, wanted: Sequence[str]) -> tuple[Chunk, Counter[str]]:
    """The cells of whole lines, with points for decimal commas, and dropped lines by reason."""
    chunk, lost = read_rows(data, layout, wanted)
    if layout.delimiter != "," and b"," in data:
        chunk = _with_points(chunk, lost)
    return chunk, lost


def _with_points(chunk: Chunk, dropped: Counter[str]) -> Chunk:
    """Cells with decimal points for commas, without the rows that have a number such as 1,234."""
    clear = ~np.any([in_doubt(column) for column in chunk.columns.values()], axis=0)
    dropped["a number such as 1,234 can be read in two ways"] += int(np.sum(~clear))
    columns = {name: with_points(column).filter(clear) for name, column in chunk.columns.items()}
    return Chunk(columns)
