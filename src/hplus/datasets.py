"""Small real sets that ship with the package, each with its window, unit, source and licence."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from importlib.resources import files
from typing import final

import numpy as np

from hplus._checks import Floats, Ints, frozen_array
from hplus._values import Value, value
from hplus.windows import Box, Interval, Window

SEASONS = range(2009, 2026)
"""The years in which the seasons of `curry` start."""


@final
@value
class Dataset(Value):
    """Points X, shape (n, d), labels y, shape (n,), or None, and where they come from.

    Both arrays are read-only; `window` is where events could have been seen, None for a set that
    is not a pattern of events.
    """

    name: str
    X: Floats
    y: Ints | None
    columns: tuple[str, ...]
    window: Window | None
    unit: str
    source: str
    licence: str

    def __post_init__(self) -> None:
        self._set(X=frozen_array("X", self.X), columns=tuple(self.columns))
        if self.y is not None:
            y = np.array(self.y, dtype=np.int64)
            y.flags.writeable = False
            self._set(y=y)

    def __repr__(self) -> str:
        # thousands of rows would hide the rest
        return f"<{self.name}: {len(self.X)} rows of {', '.join(self.columns)}, {self.licence}>"


def coal() -> Dataset:
    """The dates of 191 British coal-mining disasters, in decimal years, 1851 to 1962.

    The window is 1851 to 1963; two disasters share a date.

    >>> coal()
    <coal: 191 rows of date, Unlimited>
    """
    return Dataset(
        name="coal",
        X=_read("coal.csv")["date"][:, None],
        y=None,
        columns=("date",),
        window=Interval(1851, 1963, unit="year"),
        unit="year",
        source="R package boot 1.3-28.1, boot::coal",
        licence="Unlimited",
    )


def curry(season: int | None = None) -> Dataset:
    """Where Stephen Curry shot from, in feet from the hoop, and whether he scored: y is 1 or 0.

    All 19,152 field-goal attempts of the regular seasons 2009-10 to 2025-26, less the 110 from
    beyond half court: 19,042 rows. The window is the half court of 50 by 47 feet, the baseline at
    y = -5.25. `season` keeps the one that starts in that year. The file has tenths of a foot.

    >>> curry(season=2015).X.shape
    (1585, 2)
    """
    if season is not None and season not in SEASONS:
        raise ValueError(
            f"season must be the year in which it starts, {SEASONS[0]} to {SEASONS[-1]}, or None "
            f"for all, got {season!r}."
        )
    shots = _read("curry.csv.gz")
    X = np.column_stack([shots["x"], shots["y"]]) / 10.0
    window = Box((-25.0, -5.25), (25.0, 41.75), unit="ft")
    kept = window.contains(X) & ((season is None) | (shots["season"] == season))
    return Dataset(
        name="curry" if season is None else f"curry {season}",
        X=X[kept],
        y=shots["made"][kept].astype(np.int64),
        columns=("x", "y"),
        window=window,
        unit="ft",
        source="github.com/shufinskiy/nba_data at 3acc402, datasets/shotdetail_YYYY.tar.xz",
        licence="Apache-2.0",
    )


def banana() -> Dataset:
    """Two classes shaped like bananas in the plane: 5,300 points with y = -1 or 1.

    >>> banana()
    <banana: 5300 rows of x1, x2, BSD-3-Clause>
    """
    points = _read("banana.csv.gz")
    return Dataset(
        name="banana",
        X=np.column_stack([points["x1"], points["x2"]]),
        y=points["label"].astype(np.int64),
        columns=("x1", "x2"),
        window=None,
        unit="",
        source="river 0.26.1, datasets/banana.zip",
        licence="BSD-3-Clause",
    )


def spikes() -> Dataset:
    """The times, in seconds, of 929 spikes of a grasshopper's auditory receptor in 10 s.

    The file has microseconds.

    >>> spikes()
    <spikes: 929 rows of t, BSD-3-Clause>
    """
    return Dataset(
        name="spikes",
        X=_read("spikes.csv")["t_us"][:, None] / 1e6,
        y=None,
        columns=("t",),
        window=Interval(0, 10, unit="s"),
        unit="s",
        source="nitime 0.12.1, nitime/data/grasshopper_spike_times1.txt",
        licence="BSD-3-Clause",
    )


DATASETS: tuple[Callable[[], Dataset], ...] = (coal, curry, banana, spikes)
"""Every loader."""


def _read(name: str) -> dict[str, Floats]:
    """The columns of a bundled CSV file, by the names in its header."""
    raw = files("hplus").joinpath("data", name).read_bytes()
    text = gzip.decompress(raw) if name.endswith(".gz") else raw
    header, *rows = text.decode().splitlines()
    table = np.loadtxt(rows, delimiter=",", ndmin=2)
    return dict(zip(header.split(","), table.T, strict=True))
