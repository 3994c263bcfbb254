"""Cells of a window: every point lies in its cell, and every cell in the one above it."""

import numpy as np
import pytest

from hplus import Box, Cycle, Interval, Polygon
from hplus.rates.lattice import CellLattice

TRIANGLE = Polygon([[0, 0], [2, 0], [0, 2]], unit="km")
WINDOWS = [
    Interval(-3, 4),
    Interval(1e6, 1e6 + 1e-3),
    Cycle(24.0),
    Box((0, 0), (2, 1)),
    Box((-5, 3), (1e-3, 1e5)),
    TRIANGLE,
    Interval(0, 100, unit="h") * Cycle(24, unit="h"),
    TRIANGLE * Cycle(24, unit="h"),
    Box((0, 0, 0), (1, 2, 3)),
]
every_window = pytest.mark.parametrize("window", WINDOWS, ids=repr)


@every_window
def test_codes_interleave_the_bits_of_the_indices(window):
    lattice, X = CellLattice(window), window.sample(50, random_state=0)
    low, _ = window.bounds()
    u = np.floor((X - low) / lattice.sides * 2.0**lattice.bits).astype(int)
    bits = [[(u[:, j] >> b) & 1 for j in range(window.dimension)] for b in range(lattice.bits)]
    oracle = sum(bit << k for k, bit in enumerate(np.concatenate(bits)))
    codes = lattice.codes(X)
    assert codes.dtype == np.uint64
    np.testing.assert_array_equal(codes, oracle.astype(np.uint64))
    np.testing.assert_array_equal(lattice.indices(codes), u)


@every_window
@pytest.mark.parametrize("depth", [0, 1, 7, "smallest"])
def test_a_point_lies_in_its_cell_and_centers_lie_in_the_box(window, depth):
    lattice, X = CellLattice(window), window.sample(200, random_state=0)
    depth = lattice.bits if depth == "smallest" else depth
    codes = lattice.codes(X) >> np.uint64(window.dimension * (lattice.bits - depth))
    centers, (low, high) = lattice.centers(codes, depth), window.bounds()
    rounding = 4.0 * np.spacing(np.abs(window.bounds()).max(axis=0))
    assert np.all(np.abs(centers - X) <= 0.5 * lattice.cell_sides(depth) + rounding)
    assert np.all((low <= centers) & (centers <= high))


@every_window
def test_both_corners_have_a_cell(window):
    lattice = CellLattice(window)
    first, last = lattice.indices(lattice.codes(np.stack(window.bounds())))
    assert not first.any()
    longest = np.isclose(lattice.sides, np.subtract(*window.bounds()[::-1]))
    closed = np.isin(np.arange(window.dimension), window.closed_axes())
    np.testing.assert_array_equal(last[longest & ~closed], 2**lattice.bits - 1)
    assert not last[closed].any()


def test_axes_of_one_unit_share_a_side_and_cycles_have_their_own():
    window = Interval(0, 100, unit="h") * Cycle(24, unit="h")
    np.testing.assert_array_equal(CellLattice(window).sides, [100.0, 24.0])
    np.testing.assert_array_equal(CellLattice(Box((0, 1), (2, 9))).sides, [8.0, 8.0])


def test_windows_have_at_most_three_axes():
    with pytest.raises(ValueError, match="window must have 1, 2 or 3 axes, got 4"):
        CellLattice(Box((0,) * 4, (1,) * 4))
