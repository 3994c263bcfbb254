"""Events later than the observation period of a rate without a cycle."""

import json

import numpy as np
import pytest


@pytest.fixture
def later(folder, run, coarsely):
    """Models of places and times, and of times, with events before and after 30 days."""
    rng, monday = np.random.RandomState(0), np.datetime64("2026-01-05T00:00:00")
    for name, first in (("past", 0.0), ("future", 30.0)):
        stamps = monday + (86_400 * rng.uniform(first, first + 30.0, 200)).astype("timedelta64[s]")
        places = rng.normal([0.3, 0.6], 0.1, (200, 2)) % 1.0
        rows = (f"{x:.4f},{y:.4f},{t}" for (x, y), t in zip(places, stamps, strict=True))
        (folder / f"{name}.csv").write_text("x,y,at\n" + "\n".join(rows) + "\n")
    when = "--time at --from 2026-01-05 --to 2026-02-04 --holdout 0"
    with coarsely():
        where = "--columns x,y --window 0,0,1,1 --unit km"
        run(*f"fit past.csv {where} {when} -o places.hplus".split())
        run(*f"fit past.csv {when} -o times.hplus".split())
    return folder


def test_later_events_are_checked_by_place_or_a_sentence_says_why_not(later, run):
    found = run("check", "places.hplus", "future.csv")
    assert "outside the observation period: their places are checked" in found.stderr
    assert "(200 events;" in found.stdout.splitlines()[0]
    said = json.loads(run("check", "places.hplus", "future.csv", "--json").stdout)
    assert (said["events"], said["scored"]) == (200, "places")
    assert set(said["p_values"]) == {"quadrats", "thinning", "calibration"}
    assert said["p_values"]["calibration"] > 0.01
    own = json.loads(run("check", "places.hplus", "past.csv", "--json").stdout)
    assert own["scored"] == ""
    refused = run("check", "times.hplus", "future.csv", code=3).stderr
    assert "without a cycle the rate says nothing about other times" in refused
    assert "--cycle day or --cycle week" in refused
    assert "hplus expect" in refused
    for model in ("places", "times"):
        refused = run("report", f"{model}.hplus", "future.csv", code=3).stderr
        assert f"hplus check {model}.hplus future.csv" in refused
        assert "--from" not in refused
