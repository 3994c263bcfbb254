"""Counts of a grid as arrays: for xarray, and as a GeoTIFF that is read back by hand."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from hplus import Box, Polygon
from hplus.files.places import EqualArea
from hplus.studies.count_grids import CountGrid
from hplus.studies.expect import Expected, grid_regions
from hplus.studies.frames import Frame

PLANE = Frame(("x", "y"), Box((0, 10), (4, 16), unit="m"))
NORTH = EqualArea(5.0, 40.0, 55.0)


def lonlat():
    """A window from 5 to 15 degrees east and from 40 to 70 degrees north."""
    low, high = NORTH.forward(np.array([[5.0, 40.0], [15.0, 70.0]]))
    return Frame(("lon", "lat"), Box(tuple(low), tuple(high), unit="km"), NORTH)


def counted(cells):
    """A count for each cell: its number from 1, in the order of the grid."""
    return [Expected(cell, i + 1.0, i, i + 3.0) for i, cell in enumerate(cells)]


def tags_of(data):
    """The tags of a TIFF: numbers, or bytes of text."""
    order, magic, start = struct.unpack("<2sHI", data[:8])
    assert (order, magic) == (b"II", 42)
    (n,) = struct.unpack("<H", data[start : start + 2])
    found = {}
    for k in range(n):
        at = start + 2 + 12 * k
        code, kind, count = struct.unpack("<HHI", data[at : at + 8])
        letter, size = {2: ("s", 1), 3: ("H", 2), 4: ("I", 4), 12: ("d", 8)}[kind]
        place = at + 8 if count * size <= 4 else struct.unpack("<I", data[at + 8 : at + 12])[0]
        found[code] = struct.unpack(f"<{count}{letter}", data[place : place + count * size])
    assert list(found) == sorted(found)
    return {code: v[0] if isinstance(v[0], bytes) else list(v) for code, v in found.items()}


def bands_of(data):
    """The bands of a TIFF (k, rows, columns), the first row on top."""
    tags = tags_of(data)
    (columns,), (rows,), (k,) = tags[256], tags[257], tags[277]
    strips = zip(tags[273], tags[279], strict=True)
    raw = [zlib.decompress(data[at : at + size]) for at, size in strips]
    assert tags[258] == [32] * k
    assert tags[339] == [3] * k
    return np.array([np.frombuffer(band, "<f4").reshape(rows, columns) for band in raw])


def test_counts_are_where_their_cells_are():
    grid = CountGrid.of(PLANE, counted(grid_regions(PLANE, (2, 3))))
    np.testing.assert_allclose(grid.x, [0, 2, 4])
    np.testing.assert_allclose(grid.y, [10, 12, 14, 16])
    # the second column of the file is the one that changes first
    np.testing.assert_array_equal(grid.counts[0, 0], [[1, 4], [2, 5], [3, 6]])


def test_a_picture_has_its_first_row_on_top_and_says_where_it_is():
    grid = CountGrid.of(PLANE, counted(grid_regions(PLANE, (2, 3))))
    data = grid.to_geotiff()
    expected, low, high = bands_of(data)
    np.testing.assert_array_equal(expected, [[3, 6], [2, 5], [1, 4]])
    np.testing.assert_array_equal(high - low, np.full((3, 2), 3.0))
    tags = tags_of(data)
    assert tags[33550] == [2.0, 2.0, 0.0]
    assert tags[33922] == [0.0, 0.0, 0.0, 0.0, 16.0, 0.0]
    assert tags[34735][4:8] == [1024, 0, 1, 32767]
    assert tags[42112].count(b"DESCRIPTION") == 3
    assert tags[42113] == b"nan\0"


def test_cells_of_longitude_and_latitude_are_even_in_degrees_or_in_area():
    frame = lonlat()
    even = CountGrid.of(frame, counted(grid_regions(frame, (2, 3), in_degrees=True)))
    np.testing.assert_allclose(even.x, [5, 10, 15])
    np.testing.assert_allclose(even.y, [40, 50, 60, 70])
    tags = tags_of(even.to_geotiff())
    np.testing.assert_allclose(tags[33550], [5.0, 10.0, 0.0])
    np.testing.assert_allclose(tags[33922][3:5], [5.0, 70.0])
    assert tags[34735][4:] == [1024, 0, 1, 2, 1025, 0, 1, 1, 2048, 0, 1, 4326]
    areas = [cell.window.volume for cell in grid_regions(frame, (2, 3))]
    np.testing.assert_allclose(areas, areas[0])
    with pytest.raises(ValueError, match=r"same size along lat, got .* in_degrees=True"):
        CountGrid.of(frame, counted(grid_regions(frame, (2, 3)))).to_geotiff()


def test_one_number_is_that_of_square_cells_along_the_longest_side():
    cells = grid_regions(PLANE, (6,))
    assert len(cells) == 24
    assert {cell.window.volume for cell in cells} == {1.0}


def test_cells_outside_of_the_window_have_no_count():
    frame = Frame(("x", "y"), Polygon([[0, 0], [2, 0], [0, 2]]))
    cells = grid_regions(frame, (2, 2))
    # of simulated futures, none may have an event in a cell of the window
    found = [Expected(cell, 0.0, 0.0, 2.0) for cell in cells]
    grid = CountGrid.of(frame, found)
    assert np.isnan(grid.counts[:, 0, 1, 1]).all()
    assert np.isnan(bands_of(grid.to_geotiff())[:, 0, 1]).all()
    assert np.isfinite(grid.counts).sum() == 9


def test_xarray_has_the_same_counts_at_the_middles_of_cells():
    pytest.importorskip("xarray")
    found = CountGrid.of(PLANE, counted(grid_regions(PLANE, (2, 3)))).to_xarray()
    assert found["expected"].dims == ("y", "x")
    assert float(found["expected"].sel(x=3.0, y=11.0)) == 4.0
    assert float(found["high"].sel(x=1.0, y=15.0)) == 5.0


def test_periods_are_a_dimension_and_bands_of_their_own():
    pytest.importorskip("xarray")
    cells, times = grid_regions(PLANE, (2, 1)), ("2026-01-01", "2026-01-02", "2026-01-03")
    found = []
    for k in range(2):
        edges = {"from": times[k], "to": times[k + 1]}
        named = [cell._replace(edges=cell.edges | edges) for cell in cells]
        found += [part._replace(expected=part.expected + 10 * k) for part in counted(named)]
    grid = CountGrid.of(PLANE, found)
    data = grid.to_xarray()
    assert data["expected"].dims == ("from", "y", "x")
    assert float(data["expected"].sel({"from": "2026-01-02"}).squeeze().sel(x=1.0)) == 11.0
    assert str(data["to"].values[-1])[:10] == "2026-01-03"
    bands = bands_of(grid.to_geotiff())
    np.testing.assert_array_equal(bands[[0, 3], 0], [[1, 2], [11, 12]])
    assert b"expected from 2026-01-02" in tags_of(grid.to_geotiff())[42112]


def test_counts_of_no_grid_are_refused():
    with pytest.raises(ValueError, match="cells of a grid over two columns, got 0"):
        CountGrid.of(PLANE, [])
