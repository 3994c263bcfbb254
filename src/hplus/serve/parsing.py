"""The body of a post as events: CSV, JSON lines or a JSON array, with a reason for each other line.

A row is read as `hplus stream` reads it, and never looks at another one.
"""

from __future__ import annotations

import csv
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hplus._checks import Bools, Ints
from hplus.files.commas import in_doubt, with_points
from hplus.files.conditions import Tally
from hplus.files.extras import arrow
from hplus.files.feeds import TableError
from hplus.files.rows import BOM, BROKEN, EMPTY, Chunk, chunk_of, csv_cells, json_cell, read_at_once
from hplus.files.tables import layout_of
from hplus.files.times import Zone
from hplus.serve.ledger import Refused
from hplus.serve.posts import Post, Rejected
from hplus.studies.frames import Frame
from hplus.studies.placed_rows import Placed

if TYPE_CHECKING:
    import pyarrow as pa

    from hplus.files.rows import Row

KINDS = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "application/ndjson": "lines",
    "application/jsonl": "lines",
    "text/csv": "csv",
}
"""Types of content that can be read."""

MOST_BODY_BYTES = 2**23
"""Bytes of a body, also after it was decompressed."""

MOST_LINE_BYTES = 2**16
"""Bytes of a line."""

MOST_REPORTED = 100
"""Rejected lines that are listed in an answer, at most."""

LONG_LINE = f"line longer than {MOST_LINE_BYTES // 1024} KiB"
IN_DOUBT = "a number such as 1,234 can be read in two ways"
LINE = "\0line"
"""The column of line numbers, which no file can have."""


_read_json = json.JSONDecoder().decode


class BodyRows(NamedTuple):
    """BodyRows with their line numbers (n,), lines in all, and why others hold no row."""

    chunk: Chunk
    numbers: Ints
    lines: int
    lost: tuple[Rejected, ...]


class BadBodyError(ValueError):
    """A body that holds nothing that can be read, with the status of the answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.refused = Refused(status, reason)


def decompressed(body: bytes, most: int = MOST_BODY_BYTES) -> bytes:
    """The body that was compressed by gzip, if it is not larger than it may be."""
    out = list[bytes]()
    left, rest = most + 1, body
    try:
        while rest:
            stream = zlib.decompressobj(wbits=31)
            piece = stream.decompress(rest, left)
            out.append(piece)
            left -= len(piece)
            if left <= 0:
                raise BadBodyError(413, f"a body must have at most {most} bytes, decompressed.")
            if not stream.eof:
                raise BadBodyError(422, "the body is cut off: its gzip has no end.")
            rest = stream.unused_data
    except zlib.error as error:
        raise BadBodyError(422, f"the body is not gzip ({error}).") from error
    return b"".join(out)


def read_post(body: bytes, kind: str, frame: Frame, zone: str) -> Post:
    """The events of a body, and why other lines hold none."""
    rows = _rows(body, kind, frame.asked_for)
    if rows.lines == 0:
        raise BadBodyError(422, "the body must hold at least one event, got no line.")
    chunk, tally = rows.chunk, Tally()
    if frame.where is not None:
        chunk = frame.where.chosen(chunk, tally, alone=True)
    found = frame.points(chunk, Zone(zone or Zone.NEITHER), alone=True)
    bad = [*rows.lost, *_bad_rows(rows, chunk, found, frame)]
    dropped = Counter(why for _, why in rows.lost) + tally.dropped + found.dropped
    return Post(
        np.ascontiguousarray(found.X),
        np.ascontiguousarray(found.seconds),
        lines=rows.lines,
        dropped=dict(dropped),
        left_out=dict(tally.left_out + found.left_out),
        zone="" if found.zone is Zone.NEITHER or len(found.X) == 0 else found.zone.value,
        rejected=tuple(sorted(bad)[:MOST_REPORTED]),
    )


def _bad_rows(rows: BodyRows, chunk: Chunk, found: Placed, frame: Frame) -> list[Rejected]:
    """BodyRows that are no events, each with its reason, as many as are reported."""
    if len(found.X) == len(rows.numbers):
        return []
    at = np.arange(len(rows.numbers))
    chosen = at if frame.where is None else chunk.columns[LINE].to_numpy()
    is_good: Bools = np.zeros(len(rows.numbers), dtype=bool)
    is_good[chosen[found.rows]] = True
    bad = np.flatnonzero(~is_good)[:MOST_REPORTED]
    return [Rejected(int(rows.numbers[i]), _reason(rows.chunk, int(i), frame, found)) for i in bad]


def _reason(chunk: Chunk, i: int, frame: Frame, found: Placed) -> str:
    """Why one row is no event."""
    one = Chunk({name: column.slice(i, 1) for name, column in chunk.columns.items()})
    tally = Tally()
    if frame.where is not None:
        one = frame.where.chosen(one, tally, alone=True)
    alone = frame.points(one, found.zone, alone=True)
    reasons = tally.dropped + tally.left_out + alone.dropped + alone.left_out
    return next(iter(reasons), "left out")


def _rows(body: bytes, kind: str, wanted: Sequence[str]) -> BodyRows:
    if kind == "csv":
        return _of_csv(body.removeprefix(BOM), wanted)
    if kind == "json":
        return _of_objects(_array(body), wanted)
    lines = body.removeprefix(BOM).decode("utf-8", "replace").split("\n")
    if not lines[-1].strip():
        lines.pop()
    return _of_objects([_object(line) for line in lines], wanted)


def _array(body: bytes) -> list[object]:
    """The items of an array; one object alone is an array of one."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadBodyError(422, f"the body is not JSON: {str(error)[:100]}.") from error
    if isinstance(found, dict):
        return [found]
    if not isinstance(found, list):
        raise BadBodyError(422, f"the body must be an array of objects, got {str(found)[:40]!r}.")
    return [item if isinstance(item, dict) else BROKEN for item in found]


def _object(line: str) -> object:
    """A line as an object, or why it is none."""
    if len(line) > MOST_LINE_BYTES:
        return LONG_LINE
    try:
        found = _read_json(line)
    except (ValueError, RecursionError):
        return BROKEN if line.strip() else EMPTY
    return found if isinstance(found, dict) else BROKEN


def _of_objects(found: Sequence[object], wanted: Sequence[str]) -> BodyRows:
    """BodyRows of objects; text in their place says why there is none."""
    objects = [row for row in found if isinstance(row, dict)]
    chunk = Chunk({name: _column([row.get(name) for row in objects]) for name in wanted})
    if len(objects) == len(found):
        return _numbered(chunk, np.arange(1, len(found) + 1), len(found), ())
    lost = [Rejected(i, row) for i, row in enumerate(found, 1) if isinstance(row, str)]
    numbers = [i for i, row in enumerate(found, 1) if isinstance(row, dict)]
    return _numbered(chunk, np.array(numbers, dtype=np.int64), len(found), tuple(lost))


def _column(cells: list[object]) -> pa.Array:
    """Cells as numbers if all are, else as text."""
    if all(type(cell) is float or type(cell) is int for cell in cells):
        try:
            return arrow().array(np.array(cells, dtype=np.float64))
        except OverflowError:
            pass
    texts = [json_cell(cell) for cell in cells]
    whole = [None if t is None else t.encode("utf-8", "replace").decode() for t in texts]
    return arrow().array(whole, arrow().string())


def _of_csv(body: bytes, wanted: Sequence[str]) -> BodyRows:
    header, _, data = body.partition(b"\n")
    if len(header) > MOST_LINE_BYTES:
        raise BadBodyError(422, f"the header is a {LONG_LINE}.")
    try:
        layout = layout_of("the body", header.removesuffix(b"\r"))
    except (TableError, csv.Error) as error:
        raise BadBodyError(422, str(error)) from error
    for name in wanted:
        if layout.names.count(name) != 1:
            raise BadBodyError(
                422,
                f"column {name!r} must occur once in the first line, got "
                f"{', '.join(layout.names)[:100]}.",
            )
    if data and not data.endswith(b"\n"):
        data += b"\n"
    lines = data.count(b"\n")
    read = read_at_once(data, layout, wanted) if data and _is_utf8(data) else None
    if read is not None and not read[1]:
        return _settled(read[0], np.arange(2, lines + 2), lines, (), layout.delimiter)
    rows, numbers, lost = list["Row"](), list[int](), list[Rejected]()
    cells_of = csv_cells(layout, wanted)
    for number, line in enumerate(data.split(b"\n")[:-1], start=2):
        whole = line.removesuffix(b"\r")
        cells = LONG_LINE if len(whole) > MOST_LINE_BYTES else cells_of(whole) if whole else EMPTY
        if isinstance(cells, str):
            lost.append(Rejected(number, cells))
        else:
            rows.append(cells)
            numbers.append(number)
    found = chunk_of(rows, wanted), np.array(numbers, dtype=np.int64)
    return _settled(*found, lines, tuple(lost), layout.delimiter)


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _settled(
    chunk: Chunk, numbers: Ints, lines: int, lost: tuple[Rejected, ...], delimiter: str
) -> BodyRows:
    """BodyRows with points for decimal commas, without those that can be read in two ways."""
    if delimiter != "," and len(chunk):
        doubt = np.any([in_doubt(column) for column in chunk.columns.values()], axis=0)
        columns = {n: with_points(c).filter(~doubt) for n, c in chunk.columns.items()}
        lost += tuple(Rejected(int(i), IN_DOUBT) for i in numbers[doubt])
        chunk, numbers = Chunk(columns), numbers[~doubt]
    return _numbered(chunk, numbers, lines, lost)


def _numbered(chunk: Chunk, numbers: Ints, lines: int, lost: tuple[Rejected, ...]) -> BodyRows:
    """BodyRows that know which they are, whatever a condition leaves out."""
    own = {LINE: arrow().array(np.arange(len(numbers)))}
    return BodyRows(Chunk({**chunk.columns, **own}), numbers, lines, lost)
