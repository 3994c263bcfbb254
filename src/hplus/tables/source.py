"""Tables in files, read in chunks: CSV, JSON lines and Parquet, compressed or not.

Only the columns that are asked for are read, as text where the file has text: what a cell means is
decided in `cells`, so that one bad cell costs one row and not the file.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from hplus.tables.commas import are_decimal, doubtful
from hplus.tables.extras import arrow

BLOCK = 2**23
"""Bytes of a CSV file that are read at a time; a line must be shorter."""

LINES = 50_000
"""Lines of JSON, or rows of Parquet, that are read at a time."""

DELIMITERS = (",", ";", "\t", "|")

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "-", "?")
"""Cells that say that there is no value."""

BOM = b"\xef\xbb\xbf"

COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
"""The first bytes of compressed files."""


class TableError(ValueError):
    """A file that cannot be read, or does not hold what was asked for."""


@dataclass
class Chunk:
    """Some rows of a table: a pyarrow array for each column; `first` is the number of the first.

    `comma` says that a comma in a number is decimal, as where it parts no cells.
    """

    columns: dict[str, Any]
    first: int
    comma: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass
class Table:
    """A file with named columns; iterating over chunks counts the `broken` lines it skips."""

    path: str
    names: list[str]
    _chunks: Callable[[Table, list[str]], Iterator[Chunk]]
    delimiter: str = ","
    broken: int = 0

    def chunks(self, columns: Sequence[str]) -> Iterator[Chunk]:
        """The rows in chunks, of these columns only."""
        wanted = list(dict.fromkeys(columns))
        for name in wanted:
            self.require(name)
        self.broken = 0
        return self._chunks(self, wanted)

    def require(self, name: str) -> str:
        """A column's name, refused unless the file has exactly one such column."""
        if self.names.count(name) == 1:
            return name
        if name in self.names:
            raise TableError(
                f"column {name!r} must be there once, got it {self.names.count(name)} times in the "
                f"header of {self.path}: rename the others."
            )
        near = difflib.get_close_matches(name.lower(), [n.lower() for n in self.names], 1, 0.6)
        guess = next((n for n in self.names if n.lower() in near), None)
        hint = f": did you mean {guess!r}?" if guess else f": it has {_listed(self.names)}."
        raise TableError(f"column {name!r} is not in {self.path}{hint}")


def open_table(path: str) -> Table:
    """The table in a file, its kind told by its first bytes; "-" is the standard input (CSV)."""
    arrow()
    if path == "-":
        return csv_table(path, sys.stdin.buffer.read())
    start = _start(path)
    if start.startswith(b"PAR1"):
        return _parquet_table(path)
    with reading(path), opened(path) as stream:
        start = stream.read(BLOCK)
    text = start.removeprefix(BOM).lstrip()
    if not text:
        raise TableError(f"{path} is empty: a table needs a header and rows.")
    return _json_table(path, text) if text[:1] in (b"{", b"[") else csv_table(path, start)


def _start(path: str) -> bytes:
    if not Path(path).exists():
        raise TableError(f"{path} does not exist: check the name and the folder.")
    if Path(path).is_dir():
        raise TableError(f"{path} is a folder: name a file in it.")
    with reading(path), open(path, "rb") as file:
        return file.read(4)


@contextmanager
def reading(path: str) -> Iterator[None]:
    """What goes wrong on the way is said in one sentence that names the file."""
    try:
        yield
    except TableError:
        raise
    except PermissionError as error:
        raise TableError(f"{path} may not be read: you have no permission.") from error
    except (OSError, EOFError, arrow().ArrowException) as error:
        said = " ".join(str(error).split())
        if "straddling" in said:
            said = f"a line is longer than {BLOCK // 2**20} MB"
        if "UTF8" in said:
            said = "it is not UTF-8 text; convert it, for example with iconv -t UTF-8"
        raise TableError(f"{path} cannot be read: {said[:200].rstrip('.')}.") from error


def opened(path: str) -> Any:
    """The bytes of a file, unpacked if it is compressed."""
    start = _start(path)
    packing = next((name for magic, name in COMPRESSED.items() if start.startswith(magic)), None)
    return arrow().input_stream(path, compression=packing)


def csv_table(path: str, start: bytes) -> Table:
    """The table whose first bytes are these; all of it, if it is the standard input."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in start[:1000]:
        raise TableError(f"{path} is not UTF-8 text: convert it, or save it as CSV in UTF-8.")
    line = start.removeprefix(BOM).split(b"\n", 1)[0]
    if len(line) >= BLOCK - 3:
        raise TableError(f"{path} cannot be read: its first line is longer than {len(line)} bytes.")
    header = line.decode("utf-8", "replace").rstrip("\r")
    delimiter = max(DELIMITERS, key=header.count)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    if not names or all(_is_number(name) for name in names):
        raise TableError(
            f"{path} must begin with a header, got {header[:60]!r}: put the names of the columns "
            "in the first line."
        )
    given = start if path == "-" else None

    def chunks(table: Table, wanted: list[str]) -> Iterator[Chunk]:
        return _csv_chunks(table, wanted, given)

    return Table(path, names, chunks, delimiter)


def _csv_chunks(table: Table, wanted: list[str], given: bytes | None) -> Iterator[Chunk]:
    with reading(table.path):
        reader = _csv_reader(table, wanted, given)
    first, comma = 0, table.delimiter != ","
    unsettled = wanted if comma else []
    while True:
        with reading(table.path):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        columns = {name: batch.column(name) for name in wanted}
        unsettled = [name for name in unsettled if not are_decimal(columns[name]).true_count]
        for name in unsettled:
            _check_commas(table.path, name, columns[name])
        yield Chunk(columns, first, comma)
        first += batch.num_rows


def _check_commas(path: str, name: str, column: Any) -> None:
    """Refuse a column of numbers such as 1,234 in which no comma can only be decimal."""
    number = doubtful(column)
    if number is not None:
        raise TableError(
            f"numbers such as {number.strip()!r} in column {name!r} of {path} can be read in two "
            "ways: write thousands without commas, or decimals with a point."
        )


def _csv_reader(table: Table, wanted: list[str], given: bytes | None) -> Any:
    """pyarrow's reader of some columns as text, which counts the lines that it skips."""
    pa = arrow()
    from pyarrow import csv as arrow_csv

    def skip(_: Any) -> str:
        table.broken += 1
        return "skip"

    # names that the header repeats would be told apart by nothing
    names = [
        name if table.names.count(name) == 1 else f"\0{i}" for i, name in enumerate(table.names)
    ]
    return arrow_csv.open_csv(
        opened(table.path) if given is None else io.BytesIO(given),
        read_options=arrow_csv.ReadOptions(block_size=BLOCK, column_names=names, skip_rows=1),
        parse_options=arrow_csv.ParseOptions(
            delimiter=table.delimiter, newlines_in_values=False, invalid_row_handler=skip
        ),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=wanted,
            column_types={name: pa.string() for name in wanted},
            strings_can_be_null=True,
            null_values=MISSING,
            quoted_strings_can_be_null=True,
        ),
    )


def _json_table(path: str, start: bytes) -> Table:
    line = start.split(b"\n", 1)[0]
    try:
        names = json.loads(line)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, dict):
        got = line[:60].decode("utf-8", "replace")
        raise TableError(
            f"{path} must hold one JSON object a line, got {got!r}: write it as JSON lines."
        )
    return Table(path, list(names), _json_chunks)


def _json_chunks(table: Table, wanted: list[str]) -> Iterator[Chunk]:
    first = 0
    with reading(table.path), opened(table.path) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")
        while True:
            rows = list(islice(lines, LINES))
            if not rows:
                return
            kept = list(_objects(table, rows))
            columns = {
                name: arrow().array([cell_text(row.get(name)) for row in kept], arrow().string())
                for name in wanted
            }
            yield Chunk(columns, first)
            first += len(rows)


def _objects(table: Table, lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            yield row
        elif line.strip():
            table.broken += 1


def cell_text(cell: Any) -> str | None:
    """A cell of JSON as text, None if there is none."""
    if cell is None or (isinstance(cell, str) and cell.strip() in MISSING):
        return None
    return cell if isinstance(cell, str) else json.dumps(cell)


def _parquet_table(path: str) -> Table:
    from pyarrow import parquet

    with reading(path):
        names = list(parquet.ParquetFile(path).schema_arrow.names)
    return Table(path, names, _parquet_chunks)


def _parquet_chunks(table: Table, wanted: list[str]) -> Iterator[Chunk]:
    from pyarrow import parquet

    first = 0
    with reading(table.path):
        for batch in parquet.ParquetFile(table.path).iter_batches(LINES, columns=wanted):
            yield Chunk({name: batch.column(name) for name in wanted}, first)
            first += batch.num_rows


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _listed(names: list[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
