"""Whole lines of CSV or JSON as columns of text.

What `read_rows` makes of a line never depends on the lines around it, so it does not matter how
bytes were cut. Quoted cells with line breaks become one line before, where a whole file is read.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hplus._checks import Ints
from hplus.files.commas import with_points
from hplus.files.extras import arrow
from hplus.files.lines import MAX_LINE_BYTES, Lines

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "-", "?")
"""Cells that say that there is no value."""

BOM = b"\xef\xbb\xbf"

SLOW_LINES = 2000
"""Lines that are read one by one if some of them cannot be read at once."""

BROKEN, EMPTY, NOT_TEXT = "broken line", "empty line", "not UTF-8 text"
"""Why a line is dropped."""

Row = list[str | None]


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table: a pyarrow array for each column; `first` is the number of the first.

    Cells are as the file has them; in numbers of the columns `decimal` a comma is decimal.
    """

    columns: dict[str, pa.Array]
    first: int = 0
    decimal: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def as_numbers(self, name: str) -> pa.Array:
        """A column with a decimal point in each of its numbers."""
        column = self.columns[name]
        return with_points(column, settled=True) if name in self.decimal else column


@dataclass(frozen=True)
class Layout:
    """How lines are to be read: the names of a CSV header and its delimiter, or JSON."""

    names: tuple[str, ...]
    delimiter: str = ","
    is_json: bool = False


def read_rows(data: bytes, layout: Layout, wanted: Sequence[str]) -> tuple[Chunk, Counter[str]]:
    """The cells of whole lines as text, None where missing, and dropped lines by reason."""
    if layout.is_json:
        return _one_by_one(data, wanted, _json_cells(wanted))
    found = read_at_once(data, layout, wanted)
    if found is not None:
        return found
    lines, parts = Lines(), []
    lines.add(data)
    while (few := lines.next(SLOW_LINES)) is not None:
        read = read_at_once(few.data, layout, wanted) if few.size < len(data) else None
        parts.append(read or _one_by_one(few.data, wanted, csv_cells(layout, wanted)))
    return _concatenated(parts, wanted)


def _concatenated(
    parts: list[tuple[Chunk, Counter[str]]], wanted: Sequence[str]
) -> tuple[Chunk, Counter[str]]:
    if not parts:
        return chunk_of([], wanted), Counter()
    columns = {
        name: arrow().concat_arrays([chunk.columns[name] for chunk, _ in parts]) for name in wanted
    }
    return Chunk(columns), sum((dropped for _, dropped in parts), Counter())


def read_at_once(
    data: bytes, layout: Layout, wanted: Sequence[str]
) -> tuple[Chunk, Counter[str]] | None:
    """All lines by pyarrow, or None if it might read one of them in another way than alone."""
    odd_ends = b"\r" in data and data.count(b"\r") != data.count(b"\r\n")
    if not data or odd_ends or data.startswith(BOM) or not _plain_quotes(data, layout):
        return None
    pa, dropped = arrow(), Counter[str]()

    def skip(_: Any) -> str:
        dropped[BROKEN] += 1
        return "skip"

    # by their place: names may be repeated
    columns = {name: str(layout.names.index(name)) for name in wanted}
    try:
        table = _read_csv(data, layout, list(columns.values()), skip)
    except pa.ArrowInvalid:
        return None
    lines = int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
    dropped[EMPTY] = lines - table.num_rows - dropped[BROKEN]
    found = {name: table.column(place).combine_chunks() for name, place in columns.items()}
    return Chunk(found), +dropped


def _read_csv(
    data: bytes, layout: Layout, places: list[str], skip: Callable[[Any], str]
) -> pa.Table:
    """The columns at some places as text; `skip` is called for lines of other lengths."""
    pa = arrow()
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(
            column_names=[str(i) for i in range(len(layout.names))],
            block_size=len(data) + 1,
            use_threads=False,
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=layout.delimiter, invalid_row_handler=skip),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=places,
            column_types={place: pa.string() for place in places},
            strings_can_be_null=True,
            null_values=MISSING,
        ),
    )


def _plain_quotes(data: bytes, layout: Layout) -> bool:
    """Are quotes around whole cells only, on one line, and doubled inside?"""
    if b'"' not in data:
        return True
    letters, (quotes, ends) = np.frombuffer(data, np.uint8), _quotes_and_ends(data)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    outside = np.zeros(256, dtype=bool)
    outside[list(f'{layout.delimiter}"\r\n'.encode())] = True
    # what comes before the first letter is the last one, an end of line
    at_edges = outside[letters[opening - 1]].all() and outside[letters[closing + 1]].all()
    return bool(at_edges and not _has_open_line(quotes, ends))


def _quotes_and_ends(data: bytes) -> tuple[Ints, Ints]:
    """The places of quotes and of line ends."""
    letters = np.frombuffer(data, np.uint8)
    return np.flatnonzero(letters == ord('"')), np.flatnonzero(letters == ord("\n"))


def _has_open_line(quotes: Ints, ends: Ints) -> bool:
    """Is there an odd number of quotes before some end of line?"""
    return bool(np.any(np.searchsorted(quotes, ends) % 2))


def join_broken_cells(data: bytes, layout: Layout) -> tuple[bytes, bytes]:
    """Lines in which a line break inside a quoted cell is a space, and lines that wait for more.

    A line with an open quote that no later line completes stays as it is; at the end of the data,
    it waits.
    """
    if not _has_open_line(*_quotes_and_ends(data)):
        return data, b""
    lines, at, out = data.split(b"\n"), 0, list[bytes]()
    while at < len(lines):
        row = lines[at : at + 1]
        if lines[at].count(b'"') % 2:
            row = _lines_of_row(lines, at, layout)
            if at + len(row) == len(lines):
                return b"\n".join([*out, b""]), b"\n".join(row)
        out.append(b" ".join(line.removesuffix(b"\r") for line in row) if len(row) > 1 else row[0])
        at += len(row)
    return b"\n".join(out), b""


def _lines_of_row(lines: list[bytes], at: int, layout: Layout) -> list[bytes]:
    """The lines of a row whose first one has an open quote: that one alone if no other closes it.

    All lines to the end, if one that comes later may close it.
    """
    length = len(lines[at])
    for end in range(at + 1, len(lines)):
        length += len(lines[end])
        if length > MAX_LINE_BYTES:
            return lines[at : at + 1]
        if lines[end].count(b'"') % 2:
            cells = csv_cells(layout, layout.names[:1])(b" ".join(lines[at : end + 1]))
            return lines[at : at + 1] if isinstance(cells, str) else lines[at : end + 1]
    return lines[at:]


def _one_by_one(
    data: bytes, wanted: Sequence[str], cells_of: Callable[[bytes], Row | str]
) -> tuple[Chunk, Counter[str]]:
    rows: list[Row] = []
    dropped: Counter[str] = Counter()
    for line in data.split(b"\n")[:-1]:
        line = line.removesuffix(b"\r")
        cells = cells_of(line) if line else EMPTY
        if isinstance(cells, str):
            dropped[cells] += 1
        else:
            rows.append(cells)
    return chunk_of(rows, wanted), dropped


def csv_cells(layout: Layout, wanted: Sequence[str]) -> Callable[[bytes], Row | str]:
    at = [layout.names.index(name) for name in wanted]

    def cells_of(line: bytes) -> Row | str:
        text = line.decode("utf-8", "surrogateescape")
        cells = text.split(layout.delimiter)
        if '"' in text:
            try:
                cells = next(csv.reader([text], delimiter=layout.delimiter, strict=True))
            except csv.Error:
                return BROKEN
        if len(cells) != len(layout.names):
            return BROKEN
        found = [cells[j] for j in at]
        if not all(_is_text(cell) for cell in found):
            return NOT_TEXT
        return [None if cell in MISSING else cell for cell in found]

    return cells_of


def _is_text(cell: str) -> bool:
    """Did all bytes of a cell have a meaning in UTF-8?"""
    return cell.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in cell)


def _json_cells(wanted: Sequence[str]) -> Callable[[bytes], Row | str]:
    def cells_of(line: bytes) -> Row | str:
        if not line.strip():
            return EMPTY
        row = json_object(line)
        return BROKEN if row is None else [json_cell(row.get(name)) for name in wanted]

    return cells_of


def json_object(line: bytes) -> dict[str, Any] | None:
    """A line of JSON as a dict, None if it is no object."""
    try:
        row = json.loads(line.removeprefix(BOM).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def json_cell(cell: Any) -> str | None:
    if cell is None or (isinstance(cell, str) and cell.strip() in MISSING):
        return None
    return cell if isinstance(cell, str) else json.dumps(cell)


def chunk_of(rows: list[Row], wanted: Sequence[str]) -> Chunk:
    columns = {name: _strings([row[j] for row in rows]) for j, name in enumerate(wanted)}
    return Chunk(columns)


def _strings(cells: Row) -> pa.Array:
    # JSON can spell halves of characters, which no text in UTF-8 holds
    whole = [None if c is None else c.encode("utf-8", "replace").decode() for c in cells]
    return arrow().array(whole, arrow().string())
