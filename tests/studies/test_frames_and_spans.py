"""Frames across 180 degrees and their units; amounts in words."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hplus.studies.expect import grid_regions, named_regions
from hplus.studies.plans import plan
from hplus.studies.ranges import times_around
from hplus.studies.spans import Amount, seconds_of

PACIFIC = (150, 0, 210, 40)


@pytest.fixture
def places(tmp_path):
    path = tmp_path / "places.csv"
    path.write_text("lon,lat\n200,10\n-160,10\n")
    return path


def test_longitudes_of_a_window_across_180_degrees_go_on_to_the_east(places):
    frame = plan(str(places), ("lon", "lat"), window=PACIFIC)
    rows = frame.placed(np.array([[200.0, 10.0], [-160.0, 10.0]]))
    assert frame.describe(rows) == [{"lon": 200.0, "lat": 10.0}] * 2
    edges = [region.edges for region in grid_regions(frame, (4, 1))]
    lows, highs = ([edge[f"lon_{end}"] for edge in edges] for end in ("low", "high"))
    np.testing.assert_allclose(lows, [150, 165, 180, 195])
    np.testing.assert_allclose(highs, [165, 180, 195, 210])
    ring = grid_regions(frame, (4, 1))[2].geometry["coordinates"][0]
    np.testing.assert_allclose([lon for lon, _ in ring], [180, 195, 195, 180, 180])


@pytest.mark.parametrize("west", [-180, 0])
def test_cells_around_the_world_go_up_from_its_edge(places, west):
    frame = plan(str(places), ("lon", "lat"), window=(west, -90, west + 360, 90))
    edges = [region.edges for region in grid_regions(frame, (4, 1))]
    np.testing.assert_allclose([e["lon_low"] for e in edges], west + np.array([0, 90, 180, 270]))
    np.testing.assert_allclose([e["lon_high"] for e in edges], west + np.array([90, 180, 270, 360]))


def test_a_region_is_found_whichever_way_its_longitudes_are_counted(places):
    frame = plan(str(places), ("lon", "lat"), window=PACIFIC)
    outlines = places.with_name("regions.geojson")
    bounds = []
    for turn in (0, -360):
        ring = [[lon + turn, lat] for lon, lat in ((190, 5), (205, 5), (205, 20), (190, 5))]
        outlines.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
        bounds.append(named_regions(frame, str(outlines))[0].window.bounds())
    np.testing.assert_allclose(*bounds)
    np.testing.assert_allclose(frame.own(np.array(bounds[0])), [[190, 5], [205, 20]])


def test_longitude_and_latitude_have_no_other_unit_than_km(places, tmp_path):
    ring = tmp_path / "ring.csv"
    ring.write_text("x,y\n150,0\n210,0\n210,40\n")
    for where in ({"window": PACIFIC}, {"within": str(ring)}):
        with pytest.raises(ValueError, match=r"unit must be left out .* got 'm'"):
            plan(str(places), ("lon", "lat"), unit="m", **where)
        assert plan(str(places), ("lon", "lat"), unit="km", **where).window.unit == "km"
    assert (
        plan(str(places), ("lon", "lat"), unit="m", lonlat=False, window=PACIFIC).window.unit == "m"
    )


@pytest.mark.parametrize(
    ("amount", "words"),
    [(Amount(365, "day"), "365 days"), (Amount(1, "day"), "1 day"),
     (Amount(52, "year"), "52 years"), (Amount(90, "min"), "90 min"),
     (Amount(82, "game"), "82 games"), (Amount(3, "bus"), "3 bus"),
     (Amount(2, "class"), "2 classes"), (Amount(7), "7")],
)  # fmt: skip
def test_amounts_are_said_with_a_plural_where_there_is_one(amount, words):
    assert str(amount) == words
    assert Amount.parse(words) == amount


@pytest.mark.parametrize(
    ("first", "last", "period"),
    [
        ("2023-11-14T22:13:20", "2023-11-28T21:30:05", "2023-11-14T22:00:00 2023-11-28T22:00:00"),
        ("2026-01-03T10:00:07", "2026-01-04T11:00:00", "2026-01-03T10:00:00 2026-01-04T11:01:00"),
        ("2026-01-03T10:00:07", "2026-01-03T11:00:00", "2026-01-03T10:00:07 2026-01-03T11:00:01"),
        ("2014-01-01T10:00:07", "2017-12-31T11:00:00", "2014-01-01 2018-01-01"),
        ("2026-01-03", "2026-01-09", "2026-01-03 2026-01-10"),  # dates
        ("2026-01-03", "2026-01-03", "2026-01-03 2026-01-04"),
    ],
)
def test_a_period_around_data_adds_little_empty_time(first, last, period):
    low, high = (seconds_of("time", text) for text in (first, last))
    assert " ".join(times_around(low, high)) == period
