"""EventSummary: what a scan kept of events, as a value that can be saved and added to others."""

from __future__ import annotations

from collections import Counter
from typing import final

import numpy as np

from hplus._checks import Floats, Ints
from hplus._values import Value, value
from hplus.rates.accumulator import CellAccumulator
from hplus.rates.lattice import Codes
from hplus.rates.statistic import Statistic
from hplus.studies.event_samples import EventSample, KeptRows
from hplus.studies.ranges import Extent
from hplus.studies.scans import EventScan


@final
@value
class SampleRows(Value):
    """Rows that a sample kept, with keys and counts, and how often their share was halved."""

    rows: Floats
    keys: Codes
    counts: Ints
    halvings: int


@final
@value
class EventSummary(Value):
    """All that a study keeps of events: statistics, samples, and what was read.

    `described` says which events it is of: frame, hold-out and seed. `done` are the names of parts
    that were read.
    """

    described: str
    statistics: dict[str, Statistic]
    samples: dict[str, SampleRows]
    rows: int
    kept: int
    total: int
    dropped: dict[str, int]
    left_out: dict[str, int]
    low: Floats
    high: Floats
    skipped: tuple[str, ...] = ()
    done: tuple[str, ...] = ()


def described(scan: EventScan) -> str:
    """Which events a scan is of; scans of other ones cannot be added."""
    events = scan.events
    return f"{scan.frame!r} {events.split!r} {events.seed} {events.scale!r}"


def summary_of(scan: EventScan, done: tuple[str, ...] = ()) -> EventSummary:
    """What a scan kept."""
    cells = {f"{k}/{i}": c for (k, i), c in sorted(scan.events.cells.items())} | scan.times.cells
    samples = {
        str(held): SampleRows(*sample.kept(), sample.halvings)
        for held, sample in scan.events.samples.items()
    }
    read = scan.read
    return EventSummary(
        described=described(scan),
        statistics={name: c.statistic() for name, c in cells.items()},
        samples=samples,
        rows=read.rows,
        kept=read.kept,
        total=read.total,
        dropped=dict(sorted(read.dropped.items())),
        left_out=dict(sorted(read.left_out.items())),
        low=np.atleast_1d(read.extent.low),
        high=np.atleast_1d(read.extent.high),
        skipped=tuple(sorted(read.skipped)),
        done=tuple(sorted(done)),
    )


def include(scan: EventScan, summary: EventSummary) -> None:
    """Add what another scan kept, which must be of the same frame, hold-out and seed."""
    if summary.described != described(scan):
        raise ValueError(
            "models must share window, columns, period, condition, hold-out and seed to be merged, "
            "got different ones: fit them with the same options."
        )
    other = scan.another()
    for name, statistic in summary.statistics.items():
        cells = CellAccumulator(statistic.window, statistic)
        if "/" in name:
            k, i = map(int, name.split("/"))
            other.events.cells[k, i] = cells
        else:
            other.times.cells[name] = cells
    for held, sample in other.events.samples.items():
        rows, keys, counts, halvings = summary.samples[str(held)].get_params(deep=False).values()
        other.events.samples[held] = EventSample.of(
            KeptRows(rows, keys, counts), halvings, sample.most
        )
    read = other.read
    read.rows, read.kept, read.total = summary.rows, summary.kept, summary.total
    read.dropped, read.left_out = Counter(summary.dropped), Counter(summary.left_out)
    read.extent, read.skipped = Extent(summary.low, summary.high), summary.skipped
    scan.absorb(other)
