"""Bundled sets: laws over every loader, and a few values read off the files by hand."""

import gzip
import time
from importlib.resources import files

import numpy as np
import pytest

from hplus.datasets import DATASETS, SEASONS, Dataset, banana, coal, curry, spikes

PERMISSIVE = {"Unlimited", "Apache-2.0", "BSD-3-Clause"}
ROWS = {"coal": 191, "curry": 19_042, "banana": 5_300, "spikes": 929}
FOLDER = files("hplus").joinpath("data")
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
        assert data.window.unit == data.unit != ""


@every_set
def test_arrays_are_read_only(load):
    data = load()
    for array in (data.X, data.y):
        if array is not None:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


@every_set
def test_labels_have_two_values_one_a_row(load):
    y = load().y
    assert y is None or (len(y) == len(load().X) and len(np.unique(y)) == 2)


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
        if file.name != "README.md":
            raw = file.read_bytes()
            text = gzip.decompress(raw) if file.name.endswith(".gz") else raw
            header, *rows = text.decode().splitlines()
            assert found.pop(file.name) == (f"{len(rows):,}", header.replace(",", ", "))
    assert found == {}


def test_first_and_last_values_are_those_of_the_source():
    np.testing.assert_allclose(coal().X[[0, -1], 0], [1851.20260, 1962.21971])
    np.testing.assert_allclose(spikes().X[[0, -1], 0], [0.0067, 9.9993])
    np.testing.assert_allclose(banana().X[[0, -1]], [[1.617466, -0.919233], [-0.472404, -0.019821]])
    assert banana().y[[0, -1]].tolist() == [-1, 1]
    np.testing.assert_allclose(curry().X[:2], [[9.9, 24.9], [-12.2, 14.5]])
    assert curry().y[:2].tolist() == [0, 1]


def test_events_in_time_are_in_order_and_coal_has_one_tie():
    assert np.all(np.diff(spikes().X[:, 0]) > 0)
    assert np.all(np.diff(coal().X[:, 0]) >= 0)
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
