"""Maps in cells of every size: means of the rate, finest where the events are, and as bytes."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest

from hplus import Box, Cycle, Intensity, SeparableIntensity
from hplus.display.data.map_pyramid import map_pyramid
from hplus.display.data.margins import margins
from hplus.display.zoom_figures import log_bytes, packed

SPOT = (2.2, 1.1)


@pytest.fixture(scope="module")
def crowded():
    """Trees fitted to events all over a window, most of them at a spot of a few metres."""
    rng = np.random.default_rng(3)
    window = Box((0, 0), (4, 2), unit="km")
    X = np.vstack([rng.uniform((0, 0), (4, 2), (80, 2)), rng.normal(SPOT, 0.004, (200, 2))])
    return Intensity(window, model="tree", random_state=0).fit(X)


@pytest.fixture(scope="module")
def pyramid(crowded):
    return map_pyramid(crowded.rate_, crowded.window)


def cells(pyramid):
    """The low corners, the sides and the rates of the cells that are not divided."""
    corners, places, start = [np.zeros((1, 2))], [], 0
    for depth in range(pyramid.depth + 1):
        low = corners[-1]
        split = pyramid.split[start : start + len(low)]
        rates = pyramid.rates[start : start + len(low)]
        sides = pyramid.sides / 2.0**depth
        places.append((pyramid.low + low[~split] * sides, sides, rates[~split]))
        steps = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
        corners.append((2 * low[split][:, None] + steps).reshape(-1, 2))
        start += len(low)
    assert start == len(pyramid.rates)
    return places


def test_cells_reach_the_resolution_where_most_events_are(crowded, pyramid):
    np.testing.assert_allclose(pyramid.sides / 2.0**pyramid.depth, crowded.resolution_)
    some = map_pyramid(crowded.rate_, crowded.window, most=45_000)
    assert len(some.rates) <= 45_000
    assert some.depth == pyramid.depth
    low, sides, _ = cells(some)[-1]
    assert np.all(np.abs(low + 0.5 * sides - SPOT) < 0.1)


def test_beside_times_a_map_is_as_fine(crowded):
    hours = Intensity(Cycle(24, unit="h")).fit([[3.0], [9.0]], priors="constant")
    both = SeparableIntensity(crowded.window * hours.window, model="tree").join(crowded, hours)
    assert margins(both).finest is crowded.rate_


def test_rates_of_cells_are_means_of_the_rate(crowded, pyramid):
    for low, sides, rates in cells(pyramid):
        inside = np.all(low + sides <= [4.0, 2.0], axis=1)
        chosen = np.flatnonzero(inside)[:: max(1, inside.sum() // 20)]
        regions = [Box(tuple(a), tuple(a + sides)) for a in low[chosen]]
        if regions:
            exact = crowded.expected_count(regions) / np.prod(sides)
            assert np.median(np.abs(np.log(rates[chosen] / exact))) < 0.15
            np.testing.assert_allclose(rates[chosen].sum(), exact.sum(), rtol=0.2)


def test_the_cells_in_the_window_hold_all_events(crowded, pyramid):
    total = 0.0
    for low, sides, rates in cells(pyramid):
        inside = np.all(low + 0.5 * sides <= [4.0, 2.0], axis=1)
        total += rates[inside].sum() * np.prod(sides)
    assert total == pytest.approx(crowded.rate_.integral(), rel=0.03)


def test_a_smooth_rate_has_the_cells_of_its_grid(studied):
    f = studied("plane")[0].model_.rate_.function
    pyramid = map_pyramid(f, f.window)
    assert np.all(pyramid.sides / 2.0**pyramid.depth <= f.grid.spacing.max() * 1.001)
    for low, sides, rates in cells(pyramid)[-1:]:
        inside = np.all(low + sides <= [40.0, 30.0], axis=1)
        np.testing.assert_allclose(rates[inside], f((low + 0.5 * sides)[inside]), rtol=0.1)


def test_cells_across_the_border_have_the_rate_inside(studied):
    f = studied("polygon")[0].model_.rate_.function
    pyramid = map_pyramid(f, f.window)
    low, sides, rates = cells(pyramid)[-1]
    centers = low + 0.5 * sides
    # the polygon is below the line from (3, 5) to (6, 4): these have their lowest corner in it
    across = f.window.contains(low + 1e-9) & ~f.window.contains(centers)
    assert across.sum() > 10
    np.testing.assert_allclose(rates[across], f(low[across] + 1e-9), rtol=0.2)


def test_bytes_are_even_steps_of_the_log_rate():
    rates = np.array([0.0, 1e-12, 1.0, 10.0, 100.0])
    found, lowest, highest = log_bytes(rates)
    assert found.tolist() == [0, 0, 1, 128, 255]
    assert (lowest, highest) == (1.0, 100.0)
    assert log_bytes(np.full(3, 2.0))[0].tolist() == [255] * 3


def test_packed_cells_can_be_read_back(pyramid):
    text, lowest, highest = packed(pyramid)
    raw, n = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8), len(pyramid.rates)
    split = np.unpackbits(raw[n:])[:n].astype(bool)
    np.testing.assert_array_equal(split, pyramid.split)
    values = raw[:n].copy()
    for k, parent in enumerate(np.flatnonzero(split)):
        values[4 * k + 1 : 4 * k + 5] += values[parent]
    rates = lowest * (highest / lowest) ** ((values.astype(float) - 1.0) / 254.0)
    step = (highest / lowest) ** (0.51 / 254.0)
    assert np.all(np.abs(np.log(rates / pyramid.rates)) <= np.log(step))
