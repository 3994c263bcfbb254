"""Rings cut to boxes: the oracle is shapely."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from hplus.grids.rings import VERTICES_PER_EDGE, clip_ring, clipped, ring_area

BOX = (-0.3, -0.2, 0.5, 0.7)
SPIRAL = np.array([[-1, -1], [1, -1], [1, 1], [-0.5, 1], [-0.5, 0], [0.2, 0], [0.2, 0.4]])
SPIRAL = np.concatenate([SPIRAL, SPIRAL[::-1] * 0.97 + 0.001])
NAMED = {
    "inside": np.array([[0, 0], [0.2, 0], [0.1, 0.3]]),
    "around": np.array([[-2, -2], [3, -2], [3, 4], [-1, 5]], dtype=float),
    "beyond one side": np.array([[2, 0], [3, 0], [3, 1]], dtype=float),
    "beyond a corner": np.array([[0.4, 2.0], [2.0, 0.4], [2.0, 2.0]]),
    "through two corners": np.array([[-0.3, -0.2], [0.5, 0.7], [-0.3, 0.7]]),
    "along the sides": np.array([[-0.3, -0.2], [0.5, -0.2], [0.5, 0.7], [-0.3, 0.7]]),
    "touching": np.array([[0.5, 0.0], [0.9, 0.0], [0.9, 0.3], [0.5, 0.3]]),
    "spiral": SPIRAL,
}


def cut(ring, box):
    out = np.empty((VERTICES_PER_EDGE * len(ring), 2))
    return out[: clip_ring(np.array(ring), len(ring), *box, out)]


def area(ring):
    return ring_area(np.array(ring), len(ring))


def star(seed, corners):
    """A ring that does not cross itself, convex nowhere in particular."""
    rng = np.random.default_rng(seed)
    angle = 2.0 * np.pi * (np.arange(corners) + rng.uniform(0.0, 0.9, corners)) / corners
    radius = rng.uniform(0.05, 1.5, corners)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) + rng.normal(0, 0.3, 2)


stars = st.builds(star, st.integers(0, 10**6), st.integers(3, 40))


@pytest.mark.parametrize("ring", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("turn", [1, -1])
def test_the_area_of_a_cut_ring_is_shapelys(ring, turn):
    shape = shapely.Polygon(ring)
    assert shape.is_valid
    sign = turn * np.sign(area(ring))
    expected = sign * shapely.intersection(shape, shapely.box(*BOX)).area
    assert area(ring[::turn]) == pytest.approx(sign * shape.area)
    assert area(cut(ring[::turn], BOX)) == pytest.approx(expected, abs=1e-15)


@given(stars, st.tuples(*[st.integers(-99, 99).map(lambda i: i / 97.0)] * 4))
def test_cut_rings_lie_in_the_box_and_have_the_area_of_the_intersection(ring, ends):
    box = (*np.minimum(ends[:2], ends[2:]), *np.maximum(ends[:2], ends[2:]))
    found = cut(ring, box)
    assert np.all((found >= box[:2]) & (found <= box[2:]))
    expected = shapely.intersection(shapely.Polygon(ring), shapely.box(*box)).area
    assert area(found) == pytest.approx(expected, abs=1e-13)


@given(stars, st.integers(1, 5))
def test_areas_of_smaller_and_smaller_boxes_add_up_and_rings_stay_short(ring, levels):
    def parts(ring, box, level):
        ring = cut(ring, box)
        assert len(ring) <= 2 * n + 4
        if level == 0 or len(ring) < 3:
            return [area(ring)]
        (a, b, c, d), x, y = box, 0.5 * (box[0] + box[2]), 0.5 * (box[1] + box[3])
        boxes = [(a, b, x, y), (x, b, c, y), (a, y, x, d), (x, y, c, d)]
        return [part for box in boxes for part in parts(ring, box, level - 1)]

    n = len(ring)
    areas = parts(ring, (-4.0, -4.0, 4.0, 4.0), levels)
    assert np.sum(areas) == pytest.approx(area(ring), rel=1e-13)
    assert np.min(areas) >= -1e-16


def test_a_hole_is_a_ring_of_the_other_direction():
    border, hole = NAMED["around"], NAMED["inside"][::-1]
    found = clipped([border, hole], BOX[:2], BOX[2:])
    shape = shapely.Polygon(border, [hole])
    expected = shapely.intersection(shape, shapely.box(*BOX)).area
    assert sum(map(area, found)) == pytest.approx(expected, rel=1e-14)


def test_a_ring_beyond_a_side_is_left_out_and_a_ring_around_becomes_the_box():
    assert clipped([NAMED["beyond one side"]], BOX[:2], BOX[2:]) == []
    (corners,) = clipped([star(0, 1000) * 50 / 0.05 + 0.1], BOX[:2], BOX[2:])
    assert_allclose(area(corners), 0.8 * 0.9, rtol=1e-14)
    assert len(corners) <= 8


def test_an_array_that_is_too_short_is_not_written_beyond_its_end():
    assert clip_ring(NAMED["spiral"], len(NAMED["spiral"]), *BOX, np.empty((6, 2))) == -1
