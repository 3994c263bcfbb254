"""Small real data sets bundled with the package, each with window, unit, source and licence."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hplus._checks import Floats, Ints, check_choice, frozen_array
from hplus._values import Value, value
from hplus.windows import Box, Interval, Window

SEASONS = range(2009, 2026)
"""The years in which the seasons of `curry` start."""

FILES = {
    "coal": "coal.csv",
    "curry": "curry.csv.gz",
    "banana": "banana.csv.gz",
    "spikes": "spikes.csv",
    "thefts": "thefts.csv.gz",
    "earthquakes": "earthquakes.csv.gz",
    "doctor_visits": "doctor_visits.csv.gz",
}
OUTLINES = {"nyc_boroughs": "nyc_boroughs.geojson", "court_zones": "court_zones.geojson"}


@final
@value
class Dataset(Value):
    """Points X, shape (n, d), with labels, counts or marks y, shape (n,) or None, and their source.

    Both arrays are read-only; `window` is where events could occur, None if the points are not
    events or the window is not known in the units of X.
    """

    name: str
    X: Floats
    y: Ints | Floats | None
    columns: tuple[str, ...]
    window: Window | None
    unit: str
    source: str
    licence: str

    def __post_init__(self) -> None:
        self._set(X=frozen_array("X", self.X), columns=tuple(self.columns))
        if self.y is not None:
            whole = np.asarray(self.y).dtype.kind in "iu"
            y = np.array(self.y, dtype=np.int64 if whole else np.float64)
            y.flags.writeable = False
            self._set(y=y)

    def __repr__(self) -> str:
        # thousands of rows would hide everything else
        columns = ", ".join(self.columns[:3]) + ", …" * (len(self.columns) > 3)
        return f"<{self.name}: {len(self.X)} rows of {columns}, {self.licence}>"


def coal() -> Dataset:
    """The dates of 191 British coal-mining disasters, in decimal years, 1851 to 1962.

    The window is 1851 to 1963; two disasters share a date.

    >>> coal()
    <coal: 191 rows of date, Unlimited>
    """
    return Dataset(
        name="coal",
        X=_read("coal")["date"][:, None],
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
    beyond half court: 19,042 rows. The window is the half court of 50 by 47 feet, with the
    baseline at y = -5.25. `season` selects the season that starts in that year.

    >>> curry(season=2015).X.shape
    (1585, 2)
    """
    if season is not None and season not in SEASONS:
        raise ValueError(
            f"season must be the year in which it starts, {SEASONS[0]} to {SEASONS[-1]}, or None "
            f"for all, got {season!r}."
        )
    shots = _read("curry")
    X = np.column_stack([shots["x"], shots["y"]])
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
    points = _read("banana")
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
        X=_read("spikes")["t_us"][:, None] / 1e6,
        y=None,
        columns=("t",),
        window=Interval(0, 10, unit="s"),
        unit="s",
        source="nitime 0.12.1, nitime/data/grasshopper_spike_times1.txt",
        licence="BSD-3-Clause",
    )


def thefts() -> Dataset:
    """Where and when 35,746 motor vehicles were stolen in New York City, 2014 to 2017.

    X is longitude and latitude in degrees and hours since the start of 2014, halfway between the
    earliest and the latest possible time. There is no window: degrees are not distances, and the
    city is not a box. The file also has the type of place.

    >>> thefts()
    <thefts: 35746 rows of lon, lat, hour, MIT>
    """
    events = _read("thefts", datetime="U16", place="U16")
    hours = _since("2014-01-01", events["datetime"], np.timedelta64(1, "h"))
    return Dataset(
        name="thefts",
        X=np.column_stack([events["lon"], events["lat"], hours]),
        y=None,
        columns=("lon", "lat", "hour"),
        window=None,
        unit="deg, hour",
        source="github.com/mpjashby/crimedata at 0617b57, data/nycvehiclethefts.rda",
        licence="MIT",
    )


def earthquakes() -> Dataset:
    """The 23,412 earthquakes worldwide of magnitude 5.5 and above, 1965 to 2016.

    X is longitude and latitude in degrees and days since the start of 1965, y the magnitude. The
    window is the whole globe, in degrees, over the 52 years: 18,993 days.

    >>> earthquakes()
    <earthquakes: 23412 rows of lon, lat, day, MIT>
    """
    events = _read("earthquakes", date="U10")
    days = _since("1965-01-01", events["date"], np.timedelta64(1, "D"))
    globe, years = Box((-180, -90), (180, 90), unit="deg"), Interval(0, 18_993, unit="day")
    return Dataset(
        name="earthquakes",
        X=np.column_stack([events["lon"], events["lat"], days]),
        y=events["mag"],
        columns=("lon", "lat", "day"),
        window=globe * years,
        unit="deg, day",
        source="github.com/plotly/datasets at 0c447c4, earthquakes-23k.csv",
        licence="MIT",
    )


def doctor_visits() -> Dataset:
    """How often 20,190 people saw a doctor in a year (y), and nine facts about each (X).

    From the RAND health insurance experiment: logarithm of the coinsurance rate plus one, whether
    there is an individual deductible, logarithms of the participation incentive and of the maximum
    expenditure, physical limitation, number of chronic diseases, health good, fair or poor.

    >>> data = doctor_visits()
    >>> data.X.shape, data.y.max()
    ((20190, 9), np.int64(77))
    """
    people = _read("doctor_visits")
    columns = tuple(name for name in people if name != "mdvis")
    return Dataset(
        name="doctor_visits",
        X=np.column_stack([people[name] for name in columns]),
        y=people["mdvis"].astype(np.int64),
        columns=columns,
        window=None,
        unit="",
        source="statsmodels 0.15.0, datasets.randhie",
        licence="public domain",
    )


DATASETS: tuple[Callable[[], Dataset], ...] = (
    coal,
    curry,
    banana,
    spikes,
    thefts,
    earthquakes,
    doctor_visits,
)
"""All loaders."""


def files() -> dict[str, str]:
    """The name of the CSV file of each data set; `copy` writes it.

    >>> files()["curry"]
    'curry.csv.gz'
    """
    return dict(FILES)


def copy(name: str, path: str | Path) -> Path:
    """Write the file of a data set, or an outline in GeoJSON: "nyc_boroughs", "court_zones".

    In a folder the file keeps its name; otherwise it is gzipped if `path` ends with ".gz".
    """
    bundled = FILES | OUTLINES
    file = bundled[check_choice("name", name, bundled)]
    target = Path(path) / file if Path(path).is_dir() else Path(path)
    text = _bytes(file)
    # without a timestamp the file is always the same
    target.write_bytes(gzip.compress(text, mtime=0) if target.suffix == ".gz" else text)
    return target


def _bytes(file: str) -> bytes:
    raw = resources.files("hplus").joinpath("data", file).read_bytes()
    return gzip.decompress(raw) if file.endswith(".gz") else raw


def _read(name: str, **kinds: str) -> dict[str, Any]:
    """The columns of the CSV file of a data set by name: floats, unless `kinds` says otherwise."""
    header, *rows = _bytes(FILES[name]).decode().splitlines()
    columns = [(column, kinds.get(column, "f8")) for column in header.split(",")]
    table = np.loadtxt(rows, dtype=columns, delimiter=",")
    return {column: table[column] for column, _ in columns}


def _since(start: str, dates: NDArray[np.str_], unit: np.timedelta64) -> Floats:
    """The time from `start` to each date, in `unit`, shape (n,)."""
    return (dates.astype("datetime64[m]") - np.datetime64(start)) / unit
