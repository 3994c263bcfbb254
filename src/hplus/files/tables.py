"""Tables in files, read in chunks: CSV, JSON lines, Parquet and Arrow; or in memory.

Only the columns that are asked for are read, as text where the file has text: what a cell means is
decided in `cells` and `times`, so that one bad cell costs one row and not the file.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import PathLike, fspath
from typing import Protocol

from hplus.files.arrow_streams import arrow_table, is_arrow
from hplus.files.cells import number
from hplus.files.chunked_table import Table
from hplus.files.commas import holds_numbers, in_doubt, is_decimal
from hplus.files.conditions import Condition, Tally
from hplus.files.feeds import PARQUET, PIPE_NAME, Feed, TableError
from hplus.files.lines import TOO_LONG, Lines, WholeLines
from hplus.files.listing import data_files, is_many
from hplus.files.parquet import parquet_parts
from hplus.files.rows import (
    BOM,
    EMPTY,
    NOT_TEXT,
    Chunk,
    Layout,
    join_broken_cells,
    json_object,
    read_rows,
)
from hplus.files.shared_columns import SharedColumns
from hplus.files.typed_tables import IN_MEMORY, Batches, BatchReader, FrameReader, InMemory

BLOCK_BYTES = 2**23
"""Bytes of text that are read at a time."""

DELIMITERS = (",", ";", "\t", "|")


class Source(Protocol):
    """What bytes can be read from."""

    def read(self, most: int, /) -> bytes | None:
        """The next bytes; None if none came for a while, b"" at the end."""

    def close(self) -> None:
        """Close it."""


TableLike = Table | str | PathLike[str] | Sequence[str | PathLike[str]] | InMemory
"""What a study learns from."""


def as_table(source: TableLike, *, skip_bad: bool = False) -> Table:
    """A table: as it is, in a file or files by their paths, or in memory, such as a data frame."""
    if isinstance(source, Table):
        return source
    if isinstance(source, str | PathLike):
        return open_table(str(fspath(source)), skip_bad=skip_bad)
    if isinstance(source, list | tuple) and all(isinstance(p, str | PathLike) for p in source):
        return open_table([str(fspath(path)) for path in source], skip_bad=skip_bad)
    if hasattr(source, "read_next_batch"):
        return stream_table(source)  # type: ignore[arg-type]  # told by what it can do
    reader = FrameReader(source)  # type: ignore[arg-type]  # checked there
    return Table(IN_MEMORY, reader.names, reader)


def open_table(path: str | Sequence[str], *, skip_bad: bool = False) -> Table:
    """The table in a file, whose format is recognised by its first bytes; "-" is standard input.

    A folder, a pattern such as "2024-*.parquet" or a list means several files, which must have the
    columns that are asked for. With `skip_bad`, files that cannot be opened are left out.
    """
    if isinstance(path, str) and not is_many(path):
        return feed_table(Feed(path))
    parts, skipped = list[Table](), list[str]()
    files = data_files(path)
    for file in files:
        try:
            parts += _shared_parts(feed_table(Feed(file.path)), file.shared)
        except TableError as error:
            if not skip_bad:
                raise
            skipped.append(str(error))
    if not parts:
        raise TableError(f"none of the {len(files)} files of {path} can be read: {skipped[0]}")
    name = path if isinstance(path, str) else f"{len(files)} files"
    return together(name, parts, tuple(skipped))


def together(name: str, parts: Sequence[Table], skipped: tuple[str, ...] = ()) -> Table:
    """Tables as one; it has the columns of the first."""
    size, rows = (sum(getattr(part, what) for part in parts) for what in ("size", "rows"))
    reader = partial(_one_after_another, parts)
    names, kinds = parts[0].names, parts[0].kinds
    return Table(name, names, reader, Tally(), size, rows, kinds, tuple(parts), skipped)


def _one_after_another(
    parts: Sequence[Table], wanted: list[str], tally: Tally, where: Condition | None
) -> Iterator[Chunk]:
    first = 0
    for part in parts:
        for name in wanted:
            part.require(name)
        for chunk in part.read(wanted, tally, where):
            yield Chunk(chunk.columns, first, chunk.decimal)
            first += len(chunk)


def _shared_parts(table: Table, shared: dict[str, str]) -> list[Table]:
    """The parts of a file with the columns that its folders name, the same in every row."""
    if not shared:
        return list(table.parts)
    names = [*(name for name in table.names if name not in shared), *shared]
    found = []
    for part in table.parts:
        reader = SharedColumns(part, shared)
        found.append(Table(part.path, names, reader, Tally(), part.size, part.rows, part.kinds))
    return found


def stream_table(stream: Batches) -> Table:
    """A stream of Arrow record batches, which can be read only once and is never held whole."""
    reader = BatchReader(stream)
    return Table(PIPE_NAME, reader.names, reader, kinds=reader.kinds)


def feed_table(feed: Feed) -> Table:
    """The table in an open file; only a second pass over its chunks opens it again."""
    if feed.start == PARQUET:
        feed.close()
        parts = [
            Table(p.name, list(p.kinds), p, Tally(), p.size, p.rows, p.kinds)
            for p in parquet_parts(feed.path)
        ]
        return together(feed.path, parts) if len(parts) > 1 else parts[0]
    feeds, start = [feed], feed.peek()
    if is_arrow(start):
        return arrow_table(feed)
    return text_table(feed.name, start, lambda: feeds.pop() if feeds else Feed(feed.path))


def text_table(path: str, start: bytes, opened: Callable[[], Source]) -> Table:
    """A table of text: `start` is at least its first line, and `opened` gives all of its bytes."""
    layout = layout_of(path, start)
    names = list(layout.names) or _json_names(path, start)
    return Table(path, names, partial(_text_chunks, path, layout, opened))


def start_table(path: str, start: bytes) -> Table:
    """The first whole lines of a stream as a table."""
    return text_table(path, start, lambda: io.BytesIO(start[: start.rfind(b"\n") + 1]))


def is_json(start: bytes) -> bool:
    """Does a file that starts with these bytes hold JSON?"""
    return start.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")


def layout_of(path: str, start: bytes) -> Layout:
    """The layout of the lines of a file that starts with these bytes; CSV has a header."""
    if not start.removeprefix(BOM).strip():
        raise TableError(f"{path} is empty: a table needs a header and rows.")
    if is_json(start):
        return Layout((), is_json=True)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in start[:1000]:
        raise TableError(f"{path} is not UTF-8 text: convert it, or save it as CSV in UTF-8.")
    line = start.removeprefix(BOM).split(b"\n", 1)[0]
    if len(line) == len(start.removeprefix(BOM)) and len(line) >= 2**20:
        raise TableError(f"{path} cannot be read: its first line is longer than {len(line)} bytes.")
    header = line.decode("utf-8", "replace").rstrip("\r")
    if "\r" in header:
        raise TableError(
            f"{path} must have lines that end with a line feed, got carriage returns alone: "
            "convert it, for example with tr '\\r' '\\n'."
        )
    delimiter = max(DELIMITERS, key=header.count)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    if not names or all(number(name) is not None for name in names):
        raise TableError(
            f"{path} must begin with a header, got {header[:60]!r}: put the names of the columns "
            "in the first line."
        )
    return Layout(tuple(names), delimiter)


def _json_names(path: str, start: bytes) -> list[str]:
    objects = (json_object(line) for line in start.split(b"\n"))
    first = next((row for row in objects if row is not None), None)
    if first is None:
        got = start[:60].decode("utf-8", "replace")
        raise TableError(
            f"{path} must hold one JSON object per line, got {got!r}: write it as JSON lines."
        )
    return list(first)


def _text_chunks(
    path: str,
    layout: Layout,
    opened: Callable[[], Source],
    wanted: list[str],
    tally: Tally,
    where: Condition | None,
) -> Iterator[Chunk]:
    first, decimal = 0, set[str]()
    blocks = _blocks(opened())
    for block in blocks if layout.is_json else _rows_of_csv(blocks, layout):
        data = block.data
        chunk, lost = read_rows(data, layout, wanted)
        if lost[NOT_TEXT]:
            raise TableError(
                f"{path} cannot be read: it is not UTF-8 text; convert it, for example with iconv "
                "-t UTF-8."
            )
        lost[TOO_LONG] += block.long
        del lost[EMPTY]  # a blank line is no row
        tally.dropped += lost
        if layout.delimiter != "," and b"," in data:
            _settle_commas(path, chunk, decimal)
        if len(chunk):
            yield Chunk(chunk.columns, first, frozenset(decimal))
        first += len(chunk)


def _rows_of_csv(blocks: Iterator[WholeLines], layout: Layout) -> Iterator[WholeLines]:
    """Lines after the header, one for each row: a quoted cell may hold line breaks."""
    header, waiting = True, b""
    for block in blocks:
        data = waiting + block.data
        if header and data:
            data, header = data.split(b"\n", 1)[1], False
        data, waiting = join_broken_cells(data, layout) if b'"' in data else (data, b"")
        yield WholeLines(data, len(data), block.long)
    yield WholeLines(waiting, len(waiting))


def _blocks(source: Source) -> Iterator[WholeLines]:
    """All lines of a source, whole, in blocks of one size however its bytes come."""
    lines, pieces, missing = Lines(), list[bytes](), BLOCK_BYTES
    try:
        while (data := source.read(missing)) != b"":
            pieces.append(data or b"")
            missing -= len(pieces[-1])
            if missing == 0:
                lines.add(b"".join(pieces))
                pieces, missing = [], BLOCK_BYTES
                while (block := lines.next(sys.maxsize)) is not None:
                    yield block
        lines.add(b"".join(pieces))
        while (block := lines.next(sys.maxsize) or lines.end()) is not None:
            yield block
    finally:
        source.close()


def _settle_commas(path: str, chunk: Chunk, decimal: set[str]) -> None:
    """Add the columns where a comma can only be decimal; refuse those where none can be told."""
    for name, column in chunk.columns.items():
        if is_decimal(column):
            decimal.add(name)
        elif name not in decimal and (doubt := in_doubt(column)).any() and holds_numbers(column):
            cell = str(column[int(doubt.argmax())]).strip()
            raise TableError(
                f"numbers such as {cell!r} in column {name!r} of {path} can be read in two "
                "ways: write thousands without commas, or decimals with a point."
            )
