"""Bundled sets: laws over every loader, and a few values read off the files by hand."""

import gzip
import json
import time
from importlib import resources

import numpy as np
import pytest
import shapely

from hplus import datasets
from hplus.datasets import (
    DATASETS,
    SEASONS,
    Dataset,
    banana,
    coal,
    curry,
    doctor_visits,
    earthquakes,
    spikes,
    thefts,
)

PERMISSIVE = {"Unlimited", "Apache-2.0", "BSD-3-Clause", "MIT", "public domain"}
ROWS = {
    "coal": 191, "curry": 19_042, "banana": 5_300, "spikes": 929,
    "thefts": 35_746, "earthquakes": 23_412, "doctor_visits": 20_190,
}  # fmt: skip
FOLDER = resources.files("hplus").joinpath("data")
README = FOLDER.joinpath("README.md").read_text()

every_set = pytest.mark.parametrize("load", DATASETS, ids=lambda load: load.__name__)


@every_set
def test_rows_and_columns_are_those_documented(load):
    data = load()
    assert data.name == load.__name__
    assert data.X.shape == (ROWS[data.name], len(data.columns))
    assert data.X.dtype == np.float64
    assert f"{ROWS[data.name]:,}" in load.__doc__


@every_set
def test_every_point_lies_in_its_window_and_has_its_unit(load):
    data = load()
    assert np.isfinite(data.X).all()
    if data.window is not None:
        data.window.require("X", data.X)
        assert ", ".join(dict.fromkeys(data.window.axis_units)) == data.unit != ""


@every_set
def test_arrays_are_read_only(load):
    data = load()
    for array in (data.X, data.y):
        if array is not None:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


@every_set
def test_y_is_finite_and_one_a_row(load):
    data = load()
    assert data.y is None or data.y.shape == (len(data.X),)
    assert data.y is None or np.isfinite(data.y).all()


@pytest.mark.parametrize(("load", "labels"), [(banana, [-1, 1]), (curry, [0, 1])])
def test_labels_have_two_values(load, labels):
    assert np.unique(load().y).tolist() == labels


@every_set
def test_source_and_permissive_licence_are_named_here_and_in_the_readme(load):
    data = load()
    assert data.licence in PERMISSIVE
    line = next(row for row in README.splitlines() if row.startswith(f"| {data.name}.csv"))
    assert data.licence in line
    assert data.source.split(",")[0] in line


@every_set
def test_loads_in_under_a_second_the_same_each_time(load):
    start = time.process_time()
    data = load()
    assert time.process_time() - start < 1.0
    assert data == load()
    assert hash(data) == hash(load())


@every_set
def test_repr_is_one_short_line(load):
    assert len(repr(load())) < 80


def test_the_readme_states_rows_and_columns_of_every_file():
    table = [row.split("|")[1:4] for row in README.splitlines() if row.startswith("| ")][1:]
    found = {file.strip(): (rows.strip(), columns.strip()) for file, rows, columns in table}
    for file in FOLDER.iterdir():
        if file.name.endswith((".csv", ".csv.gz")):
            raw = file.read_bytes()
            text = gzip.decompress(raw) if file.name.endswith(".gz") else raw
            header, *rows = text.decode().splitlines()
            assert found.pop(file.name) == (f"{len(rows):,}", header.replace(",", ", "))
    assert found == {"nyc_boroughs.geojson": ("5", "name")}


def test_first_and_last_values_are_those_of_the_source():
    np.testing.assert_allclose(coal().X[[0, -1], 0], [1851.20260, 1962.21971])
    np.testing.assert_allclose(spikes().X[[0, -1], 0], [0.0067, 9.9993])
    np.testing.assert_allclose(banana().X[[0, -1]], [[1.617466, -0.919233], [-0.472404, -0.019821]])
    assert banana().y[[0, -1]].tolist() == [-1, 1]
    np.testing.assert_allclose(curry().X[:2], [[9.9, 24.9], [-12.2, 14.5]])
    assert curry().y[:2].tolist() == [0, 1]
    np.testing.assert_allclose(thefts().X[0], [-73.866212, 40.740061, 1.25])
    np.testing.assert_allclose(thefts().X[-1, 2], (4 * 365 + 1 - 2) * 24 + 12.25)
    np.testing.assert_allclose(earthquakes().X[0], [145.616, 19.246, 1.0])
    assert earthquakes().X[-1, 2] == 52 * 365 + 13 - 2
    assert earthquakes().y.max() == 9.1
    np.testing.assert_allclose(doctor_visits().X[0, :3], [4.61512, 1, 6.907755])
    assert doctor_visits().y[:2].tolist() == [0, 2]


def test_events_in_time_are_in_order_and_coal_has_one_tie():
    assert np.all(np.diff(spikes().X[:, 0]) > 0)
    assert np.all(np.diff(coal().X[:, 0]) >= 0)
    assert np.all(np.diff(thefts().X[:, 2]) >= 0)
    assert np.all(np.diff(earthquakes().X[:, 2]) >= 0)
    assert len(np.unique(coal().X)) == 190


def test_seasons_make_up_the_whole():
    parts = [curry(season) for season in SEASONS]
    np.testing.assert_array_equal(np.vstack([part.X for part in parts]), curry().X)
    np.testing.assert_array_equal(np.hstack([part.y for part in parts]), curry().y)
    assert parts[0].name == "curry 2009"


def test_the_court_of_curry_is_50_by_47_feet_with_the_hoop_5_feet_3_inches_from_the_baseline():
    low, high = curry().window.bounds()
    assert (high - low).tolist() == [50.0, 47.0]
    assert low.tolist() == [-25.0, -5.25]


def test_curry_scores_more_often_near_the_hoop_than_from_far():
    shots = curry()
    near = np.hypot(*shots.X.T) < 4.0
    assert shots.y[near].mean() > 0.55 > 0.5 > shots.y[~near].mean() > 0.35


@pytest.mark.parametrize("season", [2008, 2026, "2015", 2015.5])
def test_a_season_that_is_not_there_is_refused(season):
    with pytest.raises(
        ValueError, match="season must be the year in which it starts, 2009 to 2025"
    ):
        curry(season)


def test_a_dataset_does_not_change_with_the_arrays_it_was_made_of():
    X, y = np.zeros((2, 1)), np.array([0, 1])
    data = Dataset("two", X, y, ("t",), None, "s", "made here", "BSD-3-Clause")
    X[:], y[:] = 1.0, 7
    assert data.X.tolist() == [[0.0], [0.0]]
    assert data.y.tolist() == [0, 1]


def boroughs():
    features = json.loads(FOLDER.joinpath("nyc_boroughs.geojson").read_text())["features"]
    return {
        part["properties"]["name"]: shapely.geometry.shape(part["geometry"]) for part in features
    }


def test_the_boroughs_hold_the_thefts_and_do_not_overlap():
    outlines = boroughs()
    assert sorted(outlines) == ["Bronx", "Brooklyn", "Manhattan", "Queens", "Staten Island"]
    assert all(outline.is_valid for outline in outlines.values())
    points = shapely.points(thefts().X[:, :2])
    inside = sum(shapely.covers(outline, points).astype(int) for outline in outlines.values())
    assert np.mean(inside > 0) > 0.998
    whole = shapely.union_all(list(outlines.values()))
    assert whole.area == pytest.approx(sum(outline.area for outline in outlines.values()))
    assert f"{np.sum(inside > 0):,} of the 35,746" in README


def test_the_boroughs_are_where_they_should_be():
    places = {
        "Manhattan": (-73.9857, 40.7484), "Bronx": (-73.8786, 40.8506),
        "Brooklyn": (-73.9690, 40.6602), "Queens": (-73.8458, 40.7498),
        "Staten Island": (-74.1502, 40.5795),
    }  # fmt: skip
    for name, place in places.items():
        assert [
            other for other, shape in boroughs().items() if shape.covers(shapely.Point(place))
        ] == [name]


@every_set
def test_every_set_has_a_file_that_can_be_copied(load, tmp_path):
    file = datasets.files()[load.__name__]
    copied = datasets.copy(load.__name__, tmp_path)
    assert copied == tmp_path / file
    raw, ours = FOLDER.joinpath(file).read_bytes(), copied.read_bytes()
    unpack = gzip.decompress if file.endswith(".gz") else bytes
    assert unpack(ours) == unpack(raw)


def test_a_copy_is_gzipped_exactly_if_its_name_says_so(tmp_path):
    plain = datasets.copy("curry", tmp_path / "shots.csv").read_bytes()
    packed = datasets.copy("curry", str(tmp_path / "shots.csv.gz")).read_bytes()
    assert plain.startswith(b"season,game,t_game_s,x,y,made\n")
    assert gzip.decompress(packed) == plain
    assert datasets.copy("nyc_boroughs", tmp_path).name == "nyc_boroughs.geojson"


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"name must be one of 'coal'.*got 'tea'"):
        datasets.copy("tea", tmp_path)


def test_files_cannot_be_changed_by_who_asks_for_them():
    datasets.files().clear()
    assert set(datasets.files()) == set(ROWS)
