"""Parquet files in parts: some row groups each, of which only the columns needed are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import stat
from typing import TYPE_CHECKING

from hplus.files.conditions import Condition, Tally
from hplus.files.extras import arrow
from hplus.files.feeds import reading
from hplus.files.rows import Chunk
from hplus.files.typed_tables import ROWS_AT_ONCE, kind_of, plain

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_PART = 2**20
"""Row groups are read together until they have so many rows."""


@dataclass(frozen=True)
class ParquetPart:
    """Some row groups of a file, as a reader of its columns.

    Rows that a condition leaves out are not even decoded.
    """

    path: str
    groups: tuple[int, ...]
    rows: int
    size: int
    kinds: dict[str, str]
    whole: bool

    @property
    def name(self) -> str:
        """The file, and which of its row groups."""
        if self.whole:
            return self.path
        some = f"{self.groups[0]} to {self.groups[-1]}" if len(self.groups) > 1 else self.groups[0]
        return f"{self.path}, row group{'s' * (len(self.groups) > 1)} {some}"

    def __call__(self, wanted: list[str], tally: Tally, where: Condition | None) -> Iterator[Chunk]:
        """Chunks of some columns, without rows that the condition surely leaves out."""
        first = 0
        with reading(self.name):
            for batch in self._batches(wanted, where):
                yield Chunk({name: plain(batch.column(name)) for name in wanted}, first)
                first += batch.num_rows
        if where is not None and first < self.rows:
            tally.left_out[where.reason] += self.rows - first
        if first >= ROWS_PER_PART:
            arrow().default_memory_pool().release_unused()  # or each thread keeps what it decoded

    def _batches(self, wanted: list[str], where: Condition | None) -> Iterator[pa.RecordBatch]:
        from pyarrow import dataset, fs, parquet

        with parquet.ParquetFile(self.path, pre_buffer=False) as file:
            kept = None
            if where is not None:
                schema = file.schema_arrow
                kept = where.filter_of({n: schema.field(n).type for n in where.columns})
            if kept is None:
                groups = list(self.groups)
                yield from file.iter_batches(
                    ROWS_AT_ONCE, row_groups=groups, columns=wanted, use_threads=False
                )
                return
        here = fs.LocalFileSystem()
        part = dataset.ParquetFileFormat().make_fragment(self.path, here, row_groups=self.groups)
        yield from part.to_batches(
            columns=wanted, filter=kept, batch_size=ROWS_AT_ONCE, use_threads=False
        )


def parquet_parts(path: str) -> list[ParquetPart]:
    """A file in parts; a file without rows is one part."""
    from pyarrow import parquet

    with reading(path), parquet.ParquetFile(path) as file:
        about, kinds = file.metadata, {f.name: kind_of(f.type) for f in file.schema_arrow}
        sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    groups, rows, found = list[int](), 0, list[tuple[tuple[int, ...], int]]()
    for i, n in enumerate(sizes):
        groups, rows = [*groups, i], rows + n
        if rows >= ROWS_PER_PART or i == len(sizes) - 1:
            found.append((tuple(groups), rows))
            groups, rows = [], 0
    found = found or [((), 0)]
    bytes_per_row = stat(path).st_size / max(sum(sizes), 1)
    return [
        ParquetPart(path, some, n, round(n * bytes_per_row), kinds, len(found) == 1)
        for some, n in found
    ]
