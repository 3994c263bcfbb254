"""Lines of CSV or JSON as they come: cut from bytes, and their cells as columns.

What a line means never depends on the lines around it, so it does not matter how bytes were cut.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hplus.tables.commas import in_doubt, with_points
from hplus.tables.extras import arrow
from hplus.tables.source import BOM, MISSING, Chunk, Table, TableError, cell_text, csv_table

LONGEST = 2**20
"""Bytes of a line; a longer one is dropped, and not held in memory."""


class Block(NamedTuple):
    """Whole lines, the bytes of the stream that they take up, and how many more were too long."""

    data: bytes
    size: int
    long: int = 0


class Lines:
    """Cuts bytes that come in pieces into whole lines; what has no end yet waits."""

    def __init__(self) -> None:
        self._data, self._ends, self._taken = b"", [0], 0
        self._lost = 0  # bytes of a line that is too long, which are gone

    @property
    def waiting(self) -> int:
        """Bytes of lines that were not taken."""
        return self._lost + len(self._data) - self._ends[self._taken]

    def add(self, data: bytes) -> None:
        """The next bytes."""
        self._data = self._data[self._ends[self._taken] :] + data
        ends = np.flatnonzero(np.frombuffer(self._data, np.uint8) == 10) + 1
        self._ends, self._taken = [0, *ends.tolist()], 0
        if len(ends) == 0 and (self._lost or len(self._data) > LONGEST):
            self._lost, self._data = self._lost + len(self._data), b""

    def next(self, most: int) -> Block | None:
        """At most so many of the lines that are whole, None if there are none."""
        edges = self._ends[self._taken : self._taken + 1 + (1 if self._lost else most)]
        if len(edges) == 1:
            return None
        self._taken += len(edges) - 1
        if self._lost:
            block = Block(b"", self._lost + edges[1], 1)
            self._lost = 0
            return block
        return _block(self._data, edges)


def _block(data: bytes, edges: list[int]) -> Block:
    """The lines between edges, but for those that are too long."""
    size = edges[-1] - edges[0]
    pairs = [(a, b) for a, b in pairwise(edges) if b - a <= LONGEST + 1]
    if len(pairs) == len(edges) - 1:
        return Block(data[edges[0] : edges[-1]], size)
    return Block(b"".join(data[a:b] for a, b in pairs), size, len(edges) - 1 - len(pairs))


@dataclass(frozen=True)
class Layout:
    """How lines are to be read: the names in a CSV's header and what is between cells, or JSON."""

    names: tuple[str, ...]
    delimiter: str = ","
    is_json: bool = False


def is_json(line: bytes) -> bool:
    """Does a stream that begins so hold JSON lines?"""
    return line.removeprefix(BOM).lstrip()[:1] == b"{"


def layout_of(name: str, header: bytes) -> Layout:
    """The layout of CSV lines below a header."""
    table = csv_table(name, header)
    return Layout(tuple(table.names), table.delimiter)


def start_table(name: str, start: bytes) -> Table:
    """The first whole lines of a stream, or some of its JSON lines, as a table."""
    if not is_json(start):
        return csv_table(name, start[: start.rfind(b"\n") + 1])
    rows = [row for row in map(_json_object, start.split(b"\n")) if row is not None]
    if not rows:
        raise TableError(f"{name} must hold one JSON object a line, got {start[:60]!r}.")

    def chunks(table: Table, wanted: list[str]) -> Iterator[Chunk]:
        yield Chunk({n: _strings([cell_text(row.get(n)) for row in rows]) for n in wanted}, 0)

    return Table(name, list(rows[0]), chunks)


def read_lines(data: bytes, layout: Layout, wanted: Sequence[str]) -> tuple[Chunk, Counter[str]]:
    """The cells of whole lines, as text, and how many lines were dropped for which reason."""
    if layout.is_json:
        return _read_slowly(data, wanted, _json_cells(wanted))
    chunk, dropped = _read_fast(data, layout, wanted), Counter[str]()
    if chunk is None:
        chunk, dropped = _read_slowly(data, wanted, _csv_cells(layout, wanted))
    if layout.delimiter != "," and b"," in data:
        chunk = _without_commas(chunk, dropped)
    return chunk, dropped


def _without_commas(chunk: Chunk, dropped: Counter[str]) -> Chunk:
    """Cells with points for decimal commas, without the lines that have a number such as 1,234."""
    doubts = [in_doubt(column).fill_null(False) for column in chunk.columns.values()]
    clear = ~np.any([doubt.to_numpy(zero_copy_only=False) for doubt in doubts], axis=0)
    if not clear.all():
        dropped["a number such as 1,234 can be read in two ways"] += int(np.sum(~clear))
    columns = {name: with_points(column).filter(clear) for name, column in chunk.columns.items()}
    return Chunk(columns, chunk.first)


def _read_fast(data: bytes, layout: Layout, wanted: Sequence[str]) -> Chunk | None:
    """All lines at once, or None unless every one of them is as simple as can be."""
    odd_ends = data.count(b"\r") != data.count(b"\r\n")
    if not data or b'"' in data or odd_ends or data.startswith(BOM):
        return None
    pa = arrow()
    from pyarrow import csv as arrow_csv

    columns = {name: str(layout.names.index(name)) for name in wanted}
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                column_names=[str(i) for i in range(len(layout.names))],
                block_size=len(data) + 1,
                use_threads=False,
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=layout.delimiter, quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(columns.values()),
                column_types={name: pa.string() for name in columns.values()},
                strings_can_be_null=True,
                null_values=MISSING,
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != data.count(b"\n"):
        return None
    return Chunk({name: table.column(at).combine_chunks() for name, at in columns.items()}, 0)


Cells = list[str | None]


def _read_slowly(
    data: bytes, wanted: Sequence[str], cells_of: Callable[[bytes], Cells | None]
) -> tuple[Chunk, Counter[str]]:
    rows, dropped = [], Counter[str]()
    for line in data.split(b"\n")[:-1]:
        line = line.removesuffix(b"\r")
        cells = cells_of(line) if line else None
        if cells is None:
            dropped["broken line" if line else "empty line"] += 1
        else:
            rows.append(cells)
    return Chunk({n: _strings([row[j] for row in rows]) for j, n in enumerate(wanted)}, 0), dropped


def _csv_cells(layout: Layout, wanted: Sequence[str]) -> Callable[[bytes], Cells | None]:
    at = [layout.names.index(name) for name in wanted]

    def cells_of(line: bytes) -> Cells | None:
        text = line.decode("utf-8", "replace")
        cells = text.split(layout.delimiter)
        if '"' in text:
            try:
                cells = next(csv.reader([text], delimiter=layout.delimiter, strict=True))
            except csv.Error:
                return None
        if len(cells) != len(layout.names):
            return None
        return [None if cells[j] in MISSING else cells[j] for j in at]

    return cells_of


def _json_cells(wanted: Sequence[str]) -> Callable[[bytes], Cells | None]:
    def cells_of(line: bytes) -> Cells | None:
        row = _json_object(line)
        return None if row is None else [cell_text(row.get(name)) for name in wanted]

    return cells_of


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line.removeprefix(BOM).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _strings(cells: list[str | None]) -> Any:
    # JSON can spell halves of characters, which no text in UTF-8 holds
    whole = [c if c is None else c.encode("utf-8", "replace").decode() for c in cells]
    return arrow().array(whole, arrow().string())
