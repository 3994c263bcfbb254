"""hplus fit under every model, and with positions that leave little to learn."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("coarse_grids")


def written(path, X):
    path.write_text("x,y\n" + "\n".join(f"{x},{y}" for x, y in X) + "\n")
    return path


def fitted(run, path, window, *words):
    """What a fit of a file says in JSON, and the counts of the quarters of its window."""
    found = run("fit", path, "--columns", "x,y", f"--window={window}", *words, "-o", "m.hplus",
                "--json").stdout  # fmt: skip
    rows = json.loads(run("expect", "m.hplus", "--grid", "2x2", "--json").stdout)["regions"]
    run("report", "m.hplus", path, "-o", "m.html")
    return json.loads(found), [row["expected"] for row in rows]


RNG = np.random.default_rng(1)
TOWNS = np.concatenate([
    RNG.normal(RNG.uniform(0.1, 0.9, 2), 10.0 ** -RNG.uniform(2, 5), (25, 2)) for _ in range(24)
])  # fmt: skip
"""Events on 24 spots of very different sizes."""


@pytest.mark.parametrize("model", ["auto", "tree"])
def test_models_with_trees_answer_every_command(model, folder, run):
    path = written(folder / "towns.csv", TOWNS)
    found, counts = fitted(run, path, "0,0,1,1", "--model", model)
    assert "trees" in found["models"]
    assert found["resolution"]
    assert sum(counts) == pytest.approx(600, abs=4 * 0.0005)  # each is rounded to six digits
    assert found["holdout"]["over_kde"] > -found["holdout"]["over_kde_error"]
    said = run("info", "m.hplus").stdout
    assert found["models"].split(",")[0] in said
    rows = run("predict", "m.hplus", path, "--json").stdout
    assert all(row["low"] <= row["rate"] <= row["high"] for row in json.loads(rows))
    drawn = run("sample", "m.hplus", "--seed", 1).stdout.splitlines()
    assert 480 < len(drawn) < 720
    run("check", "m.hplus", path)
    assert "Resolution" in (folder / "m.html").read_text()


@pytest.mark.parametrize("model", ["sos", "square"])
def test_squares_are_fitted_to_the_events_themselves(model, folder, run):
    X = np.random.default_rng(2).normal(0.5, 0.1, (60, 2))
    found, counts = fitted(run, written(folder / "few.csv", X), "0,0,1,1", "--model", model)
    assert sum(counts) == pytest.approx(60, rel=0.05)
    assert found["models"] == ""


def test_equal_positions_stay_where_they_are_and_are_told(folder, run):
    found, counts = fitted(
        run, written(folder / "same.csv", [(3, 4)] * 100), "0,0,10,10", "--holdout", 0
    )
    assert found["positions"].startswith("all of the events share their exact position")
    assert counts == pytest.approx([100.0, 0.0, 0.0, 0.0], abs=0.1)


def test_counts_on_a_coarse_lattice_are_those_of_its_places(folder, run):
    X = np.random.default_rng(3).integers(0, 5, (500, 2))
    found, counts = fitted(run, written(folder / "lattice.csv", X), "-0.5,-0.5,4.5,4.5")
    assert "rounded to 1" in found["positions"]
    assert counts == pytest.approx([125.0] * 4, rel=0.15)
    assert abs(found["holdout"]["over_kde"]) < 0.1


def test_one_event_in_a_huge_window_is_one_event(folder, run):
    found, counts = fitted(run, written(folder / "one.csv", [(3, 4)]), "-1e6,-1e6,1e6,1e6")
    assert found["holdout"] is None
    assert sum(counts) == pytest.approx(1.0)


def test_a_window_far_larger_than_the_data_keeps_their_shape(folder, run):
    X = np.random.default_rng(4).normal(0.0, 1.0, (300, 2))
    found, counts = fitted(run, written(folder / "far.csv", X), "-1e5,-1e5,1e5,1e5")
    assert sum(counts) == pytest.approx(300)
    assert found["holdout"]["over_kde"] > -0.2  # of a gain of 21 nats an event


def test_squares_with_places_and_times_are_refused_in_a_sentence(folder, run):
    (folder / "both.csv").write_text(
        "x,when\n" + "\n".join(f"0.{i},2026-01-0{1 + i % 7}" for i in range(1, 9)) + "\n"
    )
    words = ("--columns", "x", "--window", "0,1", "--time", "when", "--from", "2026-01-01", "--to",
             "2026-01-09")  # fmt: skip
    said = run("fit", "both.csv", *words, "--model", "sos", code=2).stderr
    assert "--model must be" in said
