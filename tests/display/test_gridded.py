"""Rates with trees on the nodes of a grid: what maps show adds up to what the rate expects."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Intensity, Interval, Polygon
from hplus.display import IntensityMapDisplay
from hplus.display.data.gridded import gridded
from hplus.display.data.hot_spots import find_hot_spots
from hplus.display.data.margins import line_curve, margins
from hplus.display.data.rate_data import map_data

pytestmark = pytest.mark.usefixtures("coarse_grids")

WINDOWS = {
    "line": Interval(0.0, 1.0),
    "plane": Box([0.0, 0.0], [1.0, 1.0]),
    "triangle": Polygon([[0, 0], [1, 0], [0, 1]]),
    "solid": Box([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
}


@pytest.fixture(scope="module", params=WINDOWS)
def clustered(request, coarse_grids):
    """Trees fitted to events on a few spots much smaller than a cell of any map."""
    window, rng = WINDOWS[request.param], np.random.default_rng(5)
    spots = rng.uniform(0.05, 0.45, (6, window.dimension))
    X = np.concatenate([rng.normal(spot, 1e-5, (50, window.dimension)) for spot in spots])
    return Intensity(window, model="tree").fit(X), spots


def test_events_of_a_spot_are_on_the_map_however_small_it_is(clustered):
    model, spots = clustered
    f = gridded(model.rate_, model.window)
    assert f.integral() == pytest.approx(model.expected_count(model.window))
    sides = 2.0 * f.grid.spacing
    around = [_box(spot - sides, spot + sides) for spot in spots]
    np.testing.assert_allclose(f.integrals(around), model.expected_count(around), rtol=0.2)


def test_a_map_shows_spots_that_are_smaller_than_its_cells_and_a_view_their_size(clustered):
    model, spots = clustered
    if model.window.dimension != 2:
        return
    whole = map_data(model, cells=16)
    cell = (whole.x[1] - whole.x[0]) * (whole.y[1] - whole.y[0])
    assert np.nansum(whole.rate) * cell == pytest.approx(
        model.expected_count(model.window), rel=0.2
    )
    view = Box(spots[0] - 1e-3, spots[0] + 1e-3)
    close = map_data(model, cells=16, view=view)
    assert (close.x[0], close.y[-1]) == pytest.approx((view.low[0], view.high[1]))
    assert np.nanmax(close.rate) > 100.0 * np.nanmax(whole.rate)
    shown = IntensityMapDisplay(close, spots)
    assert len(shown.events) == 1


def test_hot_spots_are_where_the_events_are(clustered):
    model, spots = clustered
    if model.window.dimension == 3:
        return
    found = find_hot_spots(model, margins(model), 1.0)
    for low, high in zip(found.low[:2], found.high[:2], strict=True):
        assert np.any(np.all((low <= spots + 1e-3) & (spots - 1e-3 <= high), axis=1))
    assert found.expected[0] >= 45.0
    assert np.all((found.fewest <= found.expected) & (found.expected <= found.most))


def test_bands_along_the_last_axis_hold_the_rate(clustered):
    model, _ = clustered
    if model.window.dimension == 2:
        return
    curve = line_curve(model)
    assert np.all((curve.low <= curve.rate * (1 + 1e-9)) & (curve.rate <= curve.high * (1 + 1e-9)))


def _box(low, high):
    low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    return Interval(low[0], high[0]) if len(low) == 1 else Box(low, high)
