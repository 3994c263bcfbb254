"""hplus fit --self-exciting with one column of coordinates: events along a road."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("coarse_grids")

DAYS, KM, NEAR = 150.0, 50.0, 0.3
FIT = (
    "fit road.csv --columns km --window 0,50 --unit km --time when --from 2026-01-01 "
    "--to 2026-05-31 --self-exciting --jobs 1 -o road.hplus"
)


@pytest.fixture
def road(tmp_path, monkeypatch):
    """About 480 events, of which 200 follow another within hours and some 300 m."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    first = np.column_stack([rng.uniform(0.0, DAYS, 300), rng.uniform(0.0, KM, 300)])
    again = np.repeat(first, rng.poisson(0.7, 300), axis=0)
    again += np.column_stack([rng.exponential(0.3, len(again)), rng.normal(0.0, NEAR, len(again))])
    X = np.concatenate([first, again])
    X = X[np.all((X > 0.0) & (X < [DAYS, KM]), axis=1)]
    stamps = np.datetime64("2026-01-01") + (86_400.0 * X[:, 0]).astype("timedelta64[s]")
    rows = (f"{when},{km:.3f}" for when, km in zip(stamps, X[:, 1], strict=True))
    Path("road.csv").write_text("when,km\n" + "\n".join(rows) + "\n")


def test_events_along_a_road_are_learned_forecast_checked_and_reported(road, run):
    run(*FIT.split(), "--json")
    facts = json.loads(run("info", "road.hplus", "--json").stdout)
    assert 0.25 < facts["branching"]["ratio"] < 0.6
    assert facts["holdout"]["over_poisson"] > facts["holdout"]["over_poisson_error"] > 0.0
    assert facts["distance"]["half"] == pytest.approx(0.67 * NEAR, rel=0.35)
    whole, cells = (
        list(csv.DictReader(io.StringIO(run("expect", "road.hplus", *more.split()).stdout)))
        for more in ("--for 7d", "--for 7d --grid 5")
    )
    assert [(c["km_low"], c["km_high"]) for c in cells][1] == ("10.0", "20.0")
    total = sum(float(c["expected"]) for c in cells)
    assert total == pytest.approx(float(whole[0]["expected"]), abs=0.01)
    assert re.search(r"places +[\d.]+ +[\d.]+", run("check", "road.hplus").stdout)
    run("report", "road.hplus", "road.csv", "-o", "road.html")
    page = Path("road.html").read_text()
    assert "By the distance from it" in page
    assert "Where the model is off" not in page
