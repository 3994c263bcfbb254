"""Tables in parts, each read by a thread: what is found in parts does not depend on their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import NamedTuple, TypeVar

from hplus._progress import step
from hplus.files.chunked_table import Table
from hplus.files.feeds import TableError

Found = TypeVar("Found")

READING_BYTES, READING_ROWS = "reading, MB", "reading, thousands of rows"
"""Stages of progress."""


class Part(NamedTuple):
    """A part of a table, and its number."""

    number: int
    table: Table


def scan_parts(
    table: Table,
    columns: Sequence[str],
    work: Callable[[Table], Found],
    jobs: int = 1,
    done: frozenset[str] = frozenset(),
) -> Iterator[tuple[Part, Found | TableError]]:
    """What `work` finds in each part, or why it cannot be read, in the order in which they end.

    At most one part more than there are threads is read or waits to be taken, so that memory is
    bounded. Parts whose names are `done` are left out.
    """
    parts = [Part(i, part) for i, part in enumerate(table.parts) if part_name(part) not in done]
    rest = sum(part.table.size for part in parts)
    bytes_read, rows_read = table.size - rest, table.rows - sum(part.table.rows for part in parts)
    for part, found in _in_threads(parts, lambda p: _tried(p.table, table, columns, work), jobs):
        bytes_read, rows_read = bytes_read + part.table.size, rows_read + part.table.rows
        step(READING_BYTES, bytes_read // 10**6, table.size // 10**6)
        step(READING_ROWS, rows_read // 1000, table.rows // 1000)
        yield part, found


def part_name(part: Table) -> str:
    """A part by name and size."""
    return f"{part.path} ({part.size} bytes)"


def _tried(
    part: Table, table: Table, columns: Sequence[str], work: Callable[[Table], Found]
) -> Found | TableError:
    try:
        checked_part(part, table.kinds, columns)
        return work(part)
    except TableError as error:
        return error


def checked_part(part: Table, kinds: dict[str, str], columns: Sequence[str]) -> None:
    """An error unless a part has the columns of the table, holding the same kind of thing."""
    for name in columns:
        part.require(name)
        kind, first = part.kinds.get(name, "null"), kinds.get(name, "null")
        if "null" not in (kind, first) and kind != first:
            raise TableError(
                f"column {name!r} of {part.path} must hold {first}, as in the other files, got "
                f"{kind}: convert it, or leave the file out."
            )


def _in_threads(
    parts: Sequence[Part], work: Callable[[Part], Found], jobs: int
) -> Iterator[tuple[Part, Found]]:
    """What `work` finds in each part; without threads if there is but one."""
    if jobs == 1 or len(parts) == 1:
        for part in parts:
            yield part, work(part)
        return
    queue = iter(parts)
    with ThreadPoolExecutor(jobs) as pool:
        running: dict[Future[Found], Part] = {}
        try:
            while True:
                for part in islice(queue, jobs + 1 - len(running)):
                    running[pool.submit(work, part)] = part
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()
