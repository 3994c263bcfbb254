"""What an event triggers inside a window: rings cut by boxes of any size and shape, and others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hplus import Box, Polygon
from hplus.rates.excitation.bearings import bearings_of
from hplus.rates.excitation.catalogue import NO_BEARINGS
from hplus.rates.excitation.region_masks import mask_of
from hplus.rates.excitation.trigger import log_spaced
from hplus.rates.excitation.visible import ring_sizes, visible_rings

FAR = log_spaced(0.01, 0.5, 6.0)
D = len(FAR) - 1
BOXES = {
    "large": Box([0.0, 0.0], [1.0, 1.0]),
    "small": Box([0.4, 0.4], [0.42, 0.43]),
    "low": Box([0.1, 0.7], [0.6, 0.75]),
    "thin": Box([0.495, 0.1], [0.505, 0.9]),
    "tiny": Box([0.9, 0.9], [0.9001, 0.9001]),
}
"""The middle of the plane lies inside or on the border of most, far away from the last."""

PLACES = np.array([[0.5, 0.5], [0.4, 0.43], [0.41, 0.415], [0.03, 0.2], [0.6, 0.7], [1.2, 0.95]])
REACH = np.array([1.0, 0.3, 0.6, 1.4, 0.8, 1.2])


def factor(bearings, dx, dy):
    """h of directions, for each hat function of distances, (D, n)."""
    doubled = 2.0 * np.arctan2(dy, dx)
    along = bearings[:, :1] * np.cos(doubled) + bearings[:, 1:2] * np.sin(doubled)
    return np.exp(along) * bearings[:, 2:]


def grid_sums(region, j, bearings=None, n=400):
    """∫ h_d ψ_d(|x - x_j| / s_j) s_j⁻² over a region, by the middles of n × n cells, (D,)."""
    low, high = region.bounds()
    axes = low[:, None] + (high - low)[:, None] * (np.arange(n) + 0.5) / n
    at = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    at = at[region.contains(at) & (np.linalg.norm(at - PLACES[j], axis=1) < REACH[j] * FAR[-1])]
    dx, dy = (at - PLACES[j]).T
    place = np.interp(np.hypot(dx, dy) / REACH[j], FAR, np.arange(len(FAR)))
    hats = np.maximum(1.0 - np.abs(place - np.arange(D)[:, None]), 0.0)
    hats *= 1.0 if bearings is None else factor(bearings[j], dx, dy)
    return hats.sum(axis=1) * np.prod(high - low) / n**2 / REACH[j] ** 2


def rings(region, bearings=NO_BEARINGS):
    return visible_rings(FAR, PLACES, REACH, mask_of(region), bearings)


@pytest.fixture
def turned(rng):
    """Each event triggers others in a direction of its own at each distance."""
    return bearings_of(rng.uniform(-0.6, 0.6, (len(PLACES), D, 2)), 0.7)


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
def test_rings_inside_a_box_are_sums_over_a_fine_grid(box):
    found = rings(box)
    exact = np.array([grid_sums(box, j) for j in range(len(PLACES))])
    assert np.all(np.abs(found - exact) <= 1e-3 * exact.max(axis=1, keepdims=True))
    assert_allclose(found.sum(axis=1), exact.sum(axis=1), rtol=1e-3)
    assert np.any(exact > 0.0)


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
def test_rings_with_directions_are_nearly_sums_over_a_fine_grid(box, turned):
    """A small box far away is seen in a single one of the directions that are told apart."""
    most, error = rings(box).max(axis=1), 5e-3 if box.volume > 0.1 else 0.1
    exact = np.array([grid_sums(box, j, turned, 200) for j in range(len(PLACES))])
    assert np.all(np.abs(rings(box, turned) - exact) <= error * most[:, None])


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
def test_parts_of_a_box_add_up_to_the_whole(box, turned):
    low, high = box.bounds()
    (x, y), three = (low + (high - low) * np.array([[0.0], [0.2], [0.55], [1.0]])).T, range(3)
    parts = [Box([x[i], y[k]], [x[i + 1], y[k + 1]]) for i in three for k in three]
    for bearings, error in ((NO_BEARINGS, 1e-6), (turned, 1e-4)):
        some = np.sum([rings(part, bearings) for part in parts], axis=0)
        apart = np.abs(some - rings(box, bearings))
        assert np.median(apart / ring_sizes(FAR, 2)) <= error
        assert np.all(apart <= 300.0 * error * rings(box).max(axis=1, keepdims=True))


def test_nothing_is_lost_in_a_large_window(turned):
    everywhere = Box([-5.0, -5.0], [5.0, 5.0])
    for bearings in (NO_BEARINGS, turned):
        assert_allclose(rings(everywhere, bearings), np.tile(ring_sizes(FAR, 2), (6, 1)), rtol=1e-9)


POLYGONS = {
    "large": Polygon([(0.0, 0.0), (1.0, 0.0), (1.0, 0.6), (0.5, 1.0), (0.0, 0.8)]),
    "small": Polygon([(0.4, 0.4), (0.44, 0.4), (0.42, 0.45)]),
    "slanted": Polygon([(0.0, 0.0), (0.5, 0.0), (1.3, 1.0), (0.8, 1.0)]),
}


@pytest.mark.parametrize("region", POLYGONS.values(), ids=POLYGONS)
def test_rings_inside_a_polygon_are_nearly_sums_over_a_fine_grid(region):
    found = rings(region).sum(axis=1)
    exact = np.array([grid_sums(region, j).sum() for j in range(len(PLACES))])
    assert_allclose(found, exact, rtol=0.03)
