"""Tables in files, read in chunks: CSV, JSON lines and Parquet, compressed or not; or in memory.

Only the columns that are asked for are read, as text where the file has text: what a cell means is
decided in `cells` and `times`, so that one bad cell costs one row and not the file.
"""

from __future__ import annotations

import csv
import difflib
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from os import PathLike, fspath
from typing import Protocol

from hplus.files.cells import number
from hplus.files.commas import holds_numbers, in_doubt, is_decimal
from hplus.files.conditions import Condition, Tally
from hplus.files.feeds import PARQUET, PIPE_NAME, Feed, TableError
from hplus.files.lines import TOO_LONG, Lines, WholeLines
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
from hplus.files.typed_tables import IN_MEMORY, FrameReader, InMemory, ParquetReader

BLOCK_BYTES = 2**23
"""Bytes of text that are read at a time."""

DELIMITERS = (",", ";", "\t", "|")

Reader = Callable[[list[str], Tally, Condition | None], Iterator[Chunk]]
"""Reads some columns in chunks, and tallies the rows that it does not give.

It may leave out rows for which the condition does not hold.
"""


class Source(Protocol):
    """What bytes can be read from."""

    def read(self, most: int, /) -> bytes | None:
        """The next bytes; None if none came for a while, b"" at the end."""

    def close(self) -> None:
        """Close it."""


@dataclass
class Table:
    """Named columns of a file or in memory; a pass over its chunks tallies what it did not give."""

    path: str
    names: list[str]
    _reader: Reader
    tally: Tally = field(default_factory=Tally)
    _ahead: tuple[set[str], Condition | None, Iterator[Chunk]] | None = None

    @property
    def is_pipe(self) -> bool:
        """Can it be read only once?"""
        return self.path == PIPE_NAME

    @property
    def dropped(self) -> Counter[str]:
        """Rows of the last pass that could not be read, by reason."""
        return self.tally.dropped

    @property
    def left_out(self) -> Counter[str]:
        """Rows of the last pass for which the condition did not hold."""
        return self.tally.left_out

    def chunks(self, columns: Sequence[str], where: Condition | None = None) -> Iterator[Chunk]:
        """The rows for which a condition holds in chunks, of these columns only.

        The rows that are given are numbered from 0 on.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (set(columns), where):
            return ahead[2]
        wanted = list(dict.fromkeys([*columns, *(where.columns if where else ())]))
        for name in wanted:
            self.require(name)
        self.tally = Tally()
        found = self._reader(wanted, self.tally, where)
        return found if where is None else self._chosen(found, where, self.tally)

    def _chosen(self, chunks: Iterator[Chunk], where: Condition, tally: Tally) -> Iterator[Chunk]:
        """The rows of chunks for which a condition holds."""
        first, checked = 0, False
        for chunk in chunks:
            if not checked:
                where.check_kinds(chunk, self.path)
                checked = True
            found = where.chosen(chunk, tally)
            if len(found):
                yield Chunk(found.columns, first, found.decimal)
            first += len(found)

    def first_rows(self, columns: Sequence[str], where: Condition | None = None) -> Chunk | None:
        """The first chunk, which is not read again by the next call of `chunks`."""
        chunks = self.chunks(columns, where)
        first = next(chunks, None)
        self._ahead = set(columns), where, chunks if first is None else chain([first], chunks)
        return first

    def require(self, name: str) -> str:
        """The name of a column, of which the file must have exactly one."""
        if self.names.count(name) == 1:
            return name
        if name in self.names:
            raise TableError(
                f"column {name!r} must occur once, got it {self.names.count(name)} times in the "
                f"header of {self.path}: rename the others."
            )
        near = difflib.get_close_matches(name.lower(), [n.lower() for n in self.names], 1, 0.6)
        guess = next((n for n in self.names if n.lower() in near), None)
        hint = f": did you mean {guess!r}?" if guess else f": it has {_listed(self.names)}."
        raise TableError(f"column {name!r} is not in {self.path}{hint}")


TableLike = Table | str | PathLike[str] | InMemory
"""What a study learns from."""


def as_table(source: TableLike) -> Table:
    """A table: as it is, in a file by its path, or in memory, such as a data frame."""
    if isinstance(source, Table):
        return source
    if isinstance(source, str | PathLike):
        return open_table(str(fspath(source)))
    reader = FrameReader(source)
    return Table(IN_MEMORY, reader.names, reader)


def open_table(path: str) -> Table:
    """The table in a file, whose format is recognised by its first bytes; "-" is standard input."""
    return feed_table(Feed(path))


def feed_table(feed: Feed) -> Table:
    """The table in an open file; only a second pass over its chunks opens it again."""
    if feed.start == PARQUET:
        feed.close()
        reader = ParquetReader(feed.path)
        return Table(feed.path, reader.names, reader)
    feeds = [feed]
    return text_table(feed.name, feed.peek(), lambda: feeds.pop() if feeds else Feed(feed.path))


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


def _listed(names: list[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
