"""CountGrid: expected counts in the cells of a grid as arrays, for xarray and for a GIS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.files.extras import needed
from hplus.files.geotiff import geotiff
from hplus.studies.expect import Region, in_window
from hplus.studies.frames import Frame

BOUNDS = ("expected", "low", "high")
"""What is known of the count of a cell."""

EVEN = 1e-6
"""The relative difference of sides up to which cells are as large as each other."""


class CountedRegion(Protocol):
    """A region with its expected count, and the bounds of an interval for the count."""

    @property
    def region(self) -> Region: ...
    @property
    def expected(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


@final
@value
class CountGrid(Value):
    """Counts to expect in the cells of a grid over two columns, with prediction intervals.

    Parameters
    ----------
    columns : pair of str
        The columns of the file, such as lon and lat.
    x, y : array, shape (columns + 1,) and (rows + 1,)
        The edges of the cells, in these columns.
    counts : array, shape (3, periods, rows, columns)
        Expected counts and the lower and upper bounds of their intervals, from low to high y. NaN
        outside of the window.
    periods : tuple of pairs of str
        When each period begins and ends; empty if there is one alone.
    lonlat : bool
        Are the columns longitude and latitude?
    """

    columns: tuple[str, str]
    x: Floats
    y: Floats
    counts: Floats
    periods: tuple[tuple[str, str], ...]
    lonlat: bool

    @classmethod
    def of(cls, frame: Frame, found: Sequence[CountedRegion]) -> Self:
        """What `expect` found for `grid_regions`, as arrays."""
        if len(frame.columns) != 2 or not found or not found[0].region.edges:
            raise ValueError(
                "found must be the counts of the cells of a grid over two columns, got "
                f"{len(found)} of a model with {', '.join(frame.needed)}."
            )
        edges = [part.region.edges for part in found]
        periods = tuple(dict.fromkeys((e["from"], e["to"]) for e in edges if "from" in e))
        (x, i), (y, j) = (_axis(edges, column) for column in frame.columns)
        order = {period: p for p, period in enumerate(periods)}
        p = [order[e["from"], e["to"]] if periods else 0 for e in edges]
        counts = np.full((len(BOUNDS), max(len(periods), 1), len(y) - 1, len(x) - 1), np.nan)
        rows = np.array([(c.expected, c.low, c.high) for c in found])
        inside = in_window(frame, [part.region for part in found])
        counts[:, p, j, i] = np.where(inside[:, None], rows, np.nan).T
        return cls(frame.columns, x, y, counts, periods, frame.place is not None)

    def to_xarray(self) -> Any:
        """The counts as an `xarray.Dataset` at the middles of the cells; needs `hplus[xarray]`."""
        xarray = needed("xarray", "xarray", "to_xarray")
        across, up = self.columns
        coords: dict[str, Any] = {
            name: 0.5 * (edges[1:] + edges[:-1]) for name, edges in ((up, self.y), (across, self.x))
        }
        dims = ("from",) * bool(self.periods) + (up, across)
        if self.periods:
            begin, end = (np.array(t, "datetime64[s]") for t in zip(*self.periods, strict=True))
            coords |= {"from": begin, "to": ("from", end)}
        arrays = self.counts if self.periods else self.counts[:, 0]
        data = {name: (dims, array) for name, array in zip(BOUNDS, arrays, strict=True)}
        return xarray.Dataset(data, coords, {"crs": "EPSG:4326"} if self.lonlat else None)

    def to_geotiff(self) -> bytes:
        """The counts as a GeoTIFF: three bands for each period, in WGS 84 for lon and lat.

        Cells must be of the same size; those of lon and lat are with `in_degrees`.
        """
        for name, edges in zip(self.columns, (self.x, self.y), strict=True):
            sides = np.diff(edges)
            if np.ptp(sides) > EVEN * sides.max():
                raise ValueError(
                    f"cells of a GeoTIFF must have the same size along {name}, got "
                    f"{sides.min():.6g} to {sides.max():.6g}: use "
                    "grid_regions(..., in_degrees=True)."
                )
        bands = np.moveaxis(self.counts, 0, 1).reshape(-1, *self.counts.shape[2:])
        times = [f" from {begin}" for begin, _ in self.periods] or [""]
        names = [f"{name}{time}" for time in times for name in BOUNDS]
        return geotiff(bands, names, self.x, self.y, lonlat=self.lonlat)


def _axis(edges: Sequence[dict[str, Any]], column: str) -> tuple[Floats, list[int]]:
    """The edges of all cells along a column, and which of them each cell is, counted from 0."""
    low, at = np.unique([e[f"{column}_low"] for e in edges], return_inverse=True)
    return np.append(low, max(e[f"{column}_high"] for e in edges)), at.tolist()
