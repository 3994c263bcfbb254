"""Maps of longitude and latitude, and outlines on them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hplus.files.feeds import TableError
from hplus.files.outlines import read_outlines
from hplus.files.places import EARTH_RADIUS, EqualArea

lons, lats = st.floats(-180, 180), st.floats(-90, 90)


@given(st.floats(-180, 180), st.floats(-89, 89), lons, lats)
def test_there_and_back(west, parallel, lon, lat):
    place = EqualArea(west, -90.0, parallel)
    back = place.backward(place.forward(np.array([[lon, lat]])))[0]
    assert (back[0] - lon + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=1e-9)
    assert back[1] == pytest.approx(lat, abs=1e-5)


@given(st.floats(-360, 0), st.floats(0, 360))
def test_longitudes_come_back_as_they_went_if_they_go_up_from_the_west(west, width):
    place = EqualArea(west, -90.0, 0.0)
    back = place.backward(place.forward(np.array([[west + width, 0.0]])))[0, 0]
    assert back == pytest.approx(west + width, abs=1e-9)


@given(lats, lats, st.floats(0, 359), st.floats(-70, 70))
def test_areas_are_those_of_the_sphere(south, north, width, parallel):
    place = EqualArea(-180.0, -90.0, parallel)
    (a, b), (c, d) = place.forward(np.array([[-180.0, south], [-180.0 + width, north]]))
    sphere = (
        EARTH_RADIUS**2
        * np.radians(width)
        * (np.sin(np.radians(north)) - np.sin(np.radians(south)))
    )
    assert (c - a) * (d - b) == pytest.approx(sphere, rel=1e-9, abs=1e-3)


def test_near_the_parallel_distances_are_true():
    place = EqualArea(-74.0, 40.0, 40.7)
    here, east, north = place.forward(np.array([[-73.9, 40.7], [-73.89, 40.7], [-73.9, 40.71]]))
    degree = np.radians(0.01) * EARTH_RADIUS
    assert east[0] - here[0] == pytest.approx(degree * np.cos(np.radians(40.7)), rel=1e-9)
    assert north[1] - here[1] == pytest.approx(degree, rel=1e-3)


def test_a_map_may_cross_the_date_line():
    place = EqualArea(170.0, -20.0, 0.0)
    x = place.forward(np.array([[175.0, 0.0], [-175.0, 0.0]]))[:, 0]
    assert x[1] - x[0] == pytest.approx(EARTH_RADIUS * np.radians(10.0))


@pytest.mark.parametrize("turn", [-360.0, 0.0, 360.0])
def test_a_ring_is_where_its_points_are_whichever_way_its_longitudes_are_counted(turn):
    place = EqualArea(170.0, -20.0, 0.0)
    ring = np.array([[185.0, -10.0], [190.0, -10.0], [190.0, 5.0]])
    found = place.ring(ring + np.array([turn, 0.0]), middle=180.0)
    np.testing.assert_allclose(found, place.forward(ring), atol=1e-6)


RING = [[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]]


def write(tmp_path, document):
    path = tmp_path / "outlines.geojson"
    path.write_text(json.dumps(document))
    return str(path)


def test_features_give_their_names_and_holes(tmp_path):
    hole = [[0.5, 0.2], [1, 0.2], [1, 0.8], [0.5, 0.2]]
    feature = {
        "type": "Feature",
        "properties": {"Beat": 7},
        "geometry": {"type": "Polygon", "coordinates": [RING, hole]},
    }
    (found,) = read_outlines(write(tmp_path, {"type": "FeatureCollection", "features": [feature]}))
    assert found.name == "7"
    assert [len(ring) for ring in found.polygons[0]] == [5, 4]


def test_a_bare_geometry_of_several_polygons_is_one_outline(tmp_path):
    far = [[[x + 5, y] for x, y in RING]]
    path = write(tmp_path, {"type": "MultiPolygon", "coordinates": [[RING], far]})
    (found,) = read_outlines(path)
    assert len(found.polygons) == 2


def test_a_table_of_vertices_is_an_outline_for_each_name(tmp_path):
    path = tmp_path / "ring.csv"
    path.write_text("part,x,y\na,0,0\na,1,0\na,1,1\nb,5,5\nb,6,5\nb,6,6\n")
    found = read_outlines(str(path))
    assert [outline.name for outline in found] == ["a", "b"]
    np.testing.assert_array_equal(found[1].polygons[0][0], [[5, 5], [6, 5], [6, 6]])


def test_names_of_a_table_of_vertices_are_in_its_first_column_or_refused(tmp_path):
    path = tmp_path / "ring.csv"
    path.write_text("part,x,y\na,0,0\na,1,0\na,1,1\n")
    assert read_outlines(str(path), "part")[0].name == "a"
    with pytest.raises(TableError, match="before x and y, got 'nonsense'"):
        read_outlines(str(path), "nonsense")
    path.write_text("x,y\n0,0\n1,0\n1,1\n")
    with pytest.raises(TableError, match="got 'x'"):
        read_outlines(str(path), "x")


def test_a_point_is_no_region(tmp_path):
    with pytest.raises(TableError, match="got Point"):
        read_outlines(write(tmp_path, {"type": "Point", "coordinates": [0, 0]}))
