"""The commands at work: what they print is what the library says."""

from __future__ import annotations

import csv
import io
import json
import zlib

import numpy as np
import pytest

from hplus import load, save
from hplus.cli import info
from hplus.cli.commands import COMMANDS, subcommand
from hplus.cli.writing import json_text
from hplus.storage.files import dumps, header, read_file, seal


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_a_sentence_an_example_and_json(name):
    command = subcommand(name)
    assert command.help
    assert command.epilog
    assert f"hplus {name}" in command.epilog
    assert any("--json" in option.opts for option in command.params)


def test_the_help_of_the_group_names_every_exit_code(run):
    from hplus.cli.commands import CODES

    text = " ".join(run("--help").stdout.split())
    assert all(f"{code} {said}" in text for code, said in CODES.items())


def test_regions_add_up_to_the_whole_and_scale_with_time(kept, run):
    path, regions = kept / "plane.hplus", kept / "halves.geojson"
    parts = table(run("expect", path, "--regions", regions, "--for", "7d").stdout)
    whole = table(run("expect", path, "--for", "7d").stdout)
    assert [part["region"] for part in parts] == ["south", "north"]
    total = sum(float(part["expected"]) for part in parts)
    assert total == pytest.approx(float(whole[0]["expected"]), rel=1e-4)
    assert total == pytest.approx(400 * 7 / 30, rel=1e-4)
    assert all(float(p["low"]) <= float(p["expected"]) <= float(p["high"]) for p in parts)


def test_regions_that_were_not_observed_or_overlap_are_named(kept, run, tmp_path):
    known = json.loads((kept / "halves.geojson").read_text())
    far = json.loads(json.dumps(known["features"][0]))
    far["properties"] = {"name": "far away"}
    far["geometry"]["coordinates"] = [
        [[x + 1000.0, y] for x, y in ring] for ring in far["geometry"]["coordinates"]
    ]
    both = {"type": "FeatureCollection", "features": [*known["features"], *known["features"], far]}
    (tmp_path / "more.geojson").write_text(json.dumps(both))
    found = run("expect", kept / "plane.hplus", "--regions", tmp_path / "more.geojson")
    assert [part["region"] for part in table(found.stdout)] == ["south", "north"] * 2
    assert "nothing was observed there: 1 region outside the window (far away)" in found.stderr
    assert "Regions overlap: all of the window is expected to have 13.3333." in found.stderr
    (tmp_path / "far.geojson").write_text(json.dumps(both | {"features": [far]}))
    refused = run("expect", kept / "plane.hplus", "--regions", tmp_path / "far.geojson", code=2)
    assert "No region lies in the window" in refused.stderr


def test_cells_of_a_grid_add_up_and_can_be_drawn_on_a_map(kept, run):
    path = kept / "plane.hplus"
    found = json.loads(run("expect", path, "--grid", "3x2", "--format", "geojson").stdout)
    assert len(found["features"]) == 6
    total = sum(feature["properties"]["expected"] for feature in found["features"])
    assert total == pytest.approx(400 / 30, rel=1e-4)


def test_a_grid_can_be_a_picture_for_a_gis(kept, run, tmp_path):
    path = tmp_path / "map.tif"
    run("expect", kept / "plane.hplus", "--grid", "3x2", "-o", path)
    data = path.read_bytes()
    assert data[:4] == b"II*\0"
    # the first of three bands, where the first strip begins
    expected = np.frombuffer(zlib.decompressobj().decompress(data[8:]), "<f4")
    assert expected.shape == (6,)
    assert expected.sum() == pytest.approx(400 / 30, rel=1e-4)


def test_a_day_of_the_observation_period_is_the_rate_of_the_cycle(kept, run):
    model = load(kept / "day.hplus").model_
    half = table(
        run("expect", kept / "day.hplus", "--from", "2026-01-20 18:00", "--for", "12h").stdout
    )
    from hplus import Interval

    want = sum(model.expected_count([Interval(18, 24), Interval(0, 6)]))
    assert float(half[0]["expected"]) == pytest.approx(want, rel=1e-4)
    words = ("expect", kept / "day.hplus", "--from", "2026-01-20", "--for", "3d")
    three = table(run(*words).stdout)
    assert float(three[0]["expected"]) == pytest.approx(3 * 500 / 28, rel=1e-4)
    assert run(*words).stderr.endswith("From the fitted rate.\n")


def test_days_to_come_follow_the_observation_period_and_can_be_cut(kept, run):
    words = ("expect", kept / "day.hplus", "--for", "2d")
    whole = run(*words)
    assert whole.stderr.startswith("Counts for 2026-02-02 to 2026-02-04; total expected: ")
    assert whole.stderr.endswith(" From a forecast.\n")
    want = float(table(whole.stdout)[0]["expected"])
    for cut, many in (("--grid", 8), ("--every", "6h")):
        parts = table(run(*words, cut, many).stdout)
        assert list(parts[1]) == ["region", "from", "to", "expected", "low", "high"]
        assert (parts[1]["region"], parts[1]["to"]) == ("2", "2026-02-02T12:00:00")
        assert sum(float(part["expected"]) for part in parts) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize(
    ("model", "words", "said"),
    [
        ("day", ("--grid", "4", "--every", "1h"), "Give --grid or --every, not both"),
        ("day", ("--grid", "4x4"), "--grid must be one number, like 24"),
        ("day", ("--from", "2099-01-01"), "forecasts reach as far as 2026-11-09"),
        ("day", ("--for", "2d", "--to", "2026-03-01"), "give --for or --to, not both"),
        ("plane", ("--every", "1d"), "--every needs a model with times: fit with --time"),
    ],
)
def test_a_period_that_cannot_be_counted_is_refused_in_a_sentence(kept, run, model, words, said):
    assert said in run("expect", kept / f"{model}.hplus", *words, code=2).stderr


def test_predict_keeps_the_order_of_rows_and_leaves_strangers_empty(kept, run, folder):
    (folder / "points.csv").write_text("x,y\n0.3,0.6\n7,7\n0.9,0.1\noops,1\n")
    rows = table(run("predict", kept / "plane.hplus", "points.csv").stdout)
    model = load(kept / "plane.hplus").model_
    rates = model.predict([[0.3, 0.6], [0.9, 0.1]])
    assert [row["rate"] == "" for row in rows] == [False, True, False, True]
    assert [float(rows[i]["rate"]) for i in (0, 2)] == pytest.approx(rates.tolist(), rel=1e-5)
    assert float(rows[0]["low"]) < float(rows[0]["rate"]) < float(rows[0]["high"])


def test_samples_lie_in_the_requested_period_and_repeat_with_the_seed(kept, run):
    words = (
        "sample",
        kept / "day.hplus",
        "--from",
        "2026-03-01 18:00",
        "--for",
        "30h",
        "--seed",
        3,
    )
    once = run(*words).stdout
    assert once == run(*words).stdout
    stamps = np.array([row["when"] for row in table(once)], dtype="datetime64[s]")
    assert (np.diff(stamps) >= np.timedelta64(0)).all()
    assert stamps.min() >= np.datetime64("2026-03-01T18:00:00")
    assert stamps.max() < np.datetime64("2026-03-03T00:00:00")
    expected = 500 / 28 * 30 / 24
    assert abs(len(stamps) - expected) < 6 * np.sqrt(expected)


@pytest.mark.parametrize("name", ["line", "plane", "day"])
def test_info_says_what_the_model_would_without_building_it(name, kept, run, monkeypatch):
    path, words = kept / f"{name}.hplus", ("info", kept / f"{name}.hplus", "--json")
    with monkeypatch.context() as patch:
        patch.setattr(info, "load_model", None)
        quick = json.loads(run(*words).stdout)
    study = load(path)
    assert json.loads(json_text({"kind": "EventStudy", **study.facts()})).items() <= quick.items()


@pytest.mark.parametrize("name", ["line", "plane", "day"])
def test_info_on_a_file_without_a_summary_says_all_but_what_has_to_be_computed(
    name, kept, run, tmp_path, monkeypatch
):
    words, full = ("info", tmp_path / "model.hplus"), ("info", kept / f"{name}.hplus")
    save(load(full[1]), words[1])
    monkeypatch.setattr(info, "load_model", None)
    known, facts = (json.loads(run(*some, "--json").stdout) for some in (words, full))
    for computed in ("expected", "peak", "gap", "outlook"):
        del facts[computed]
    known["positions"] = facts["positions"]  # in words, which need the positions themselves
    if facts["holdout"]:
        for computed in ("faults", "misfits", "relative_error"):
            del facts["holdout"][computed]
    assert known == facts
    assert "hplus expect" in run(*words).stderr
    said, more = (run(*some).stdout.partition("EventStudy\n")[2] for some in (words, full))
    lines, others = ({" ".join(line.split()) for line in t.splitlines()} for t in (said, more))
    assert lines <= others


def test_info_and_check_say_the_same_in_words_and_in_json(kept, run):
    said = json.loads(run("info", kept / "line.hplus", "--json").stdout)
    assert said["events"] == 300
    assert "300 of 300 rows" in " ".join(run("info", kept / "line.hplus").stdout.split())
    found = json.loads(run("check", kept / "line.hplus", kept / "line.csv", "--json").stdout)
    assert found["events"] == 300
    assert set(found["p_values"]) >= {"quadrats", "calibration"}
    words = run("check", kept / "line.hplus", kept / "line.csv").stdout
    assert words.startswith("The rate fits") == found["fits"]


def test_a_partly_observed_week_fits_its_own_events_and_those_of_whole_weeks(folder, run):
    rng, monday = np.random.RandomState(0), np.datetime64("2026-01-05T00:00:00")
    for name, days in (("part", 10.5), ("whole", 28.0)):
        stamps = monday + (86_400 * days * rng.uniform(size=2000)).astype("timedelta64[s]")
        (folder / f"{name}.csv").write_text("when\n" + "\n".join(map(str, stamps)) + "\n")
    words = ["--time", "when", "--from", "2026-01-05", "--to", "2026-01-15 12:00"]
    run("fit", "part.csv", *words, "--cycle", "week", "--holdout", 0, "-o", "part.hplus")
    for name, said in (("part", False), ("whole", True)):
        found = run("check", "part.hplus", f"{name}.csv")
        assert found.stdout.startswith("The rate fits")
        assert ("outside the observation period of the fit" in found.stderr) == said


def test_the_same_file_and_seed_give_the_same_model(kept, folder, run):
    words = f"fit {kept}/line.csv --columns t --window 0,10 --json"
    first, second = (json.loads(run(*words.split()).stdout) for _ in range(2))
    assert first | {"seconds": 0} == second | {"seconds": 0}


def test_data_hands_out_a_file_that_can_be_fitted(folder, run):
    run("data", "coal", "-o", "coal.csv")
    said = json.loads(
        run(
            *[
                "fit",
                "coal.csv",
                "--columns",
                "date",
                "--window",
                "1851,1963",
                "--unit",
                "year",
                "--json",
            ]
        ).stdout
    )
    assert said["events"] == 191
    assert said["expected"] == pytest.approx(191, rel=1e-6)


def test_the_tour_ends_with_three_findings_a_report_and_zones_that_add_up(folder, run, coarsely):
    with coarsely():
        said = json.loads(run("demo", "--json").stdout)
    assert len(said["findings"]) == 3
    zones = table((folder / said["zones.csv"]).read_text())
    # 19,042 shots in 1,067 games
    assert sum(float(zone["expected"]) for zone in zones) == pytest.approx(178.46, rel=1e-3)
    assert "Stephen Curry" in (folder / said["report.html"]).read_text()
    assert load(folder / said["curry.hplus"]).reading_.kept == 19_042


def test_decimal_commas_and_text_are_read_by_regress_and_asked_for_in_predict(folder, run):
    rng = np.random.RandomState(0)
    hours, kinds = rng.uniform(0, 10, 120), rng.choice(["work", "rest"], 120)
    sold = rng.poisson(np.where(kinds == "work", 2.0, 8.0) + hours)
    rows = (
        f"{h:.3f};{k};{n}".replace(".", ",") for h, k, n in zip(hours, kinds, sold, strict=True)
    )
    (folder / "sales.csv").write_text("hour;kind;sold\n" + "\n".join(rows) + "\n")
    run(*["regress", "sales.csv", "--target", "sold", "-o", "sales.hplus"])
    (folder / "next.csv").write_text("hour;kind\n9,5;rest\n0,5;work\n;work\n")
    busy, quiet, unknown = table(run("predict", "sales.hplus", "next.csv").stdout)
    assert float(busy["expected"]) > 2 * float(quiet["expected"]) > 0
    assert 0 <= float(quiet["low"]) <= float(quiet["expected"]) <= float(quiet["high"])
    assert float(quiet["expected"]) < float(unknown["expected"]) < float(busy["expected"])
    assert "sold" in run("info", "sales.hplus").stdout


def test_a_pattern_without_events_still_has_its_columns(kept, run):
    words = ("sample", kept / "day.hplus", "--for", "1s", "--seed", 1)
    assert run(*words).stdout == "path,when\n"


def test_info_says_what_is_wrong_with_a_file_whose_document_was_changed(kept, run, tmp_path):
    path = tmp_path / "model.hplus"
    save(load(kept / "line.hplus"), path)
    document, tensors = read_file(path)
    document["model"]["fitted"]["reading_"]["fields"].pop("rows")
    text = dumps(document | {"sha256": seal(document)})
    path.write_bytes(b"".join([header(text, tensors), *(a.tobytes() for a in tensors.values())]))
    assert "Reading rejects its stored fields" in run("info", path, code=4).stderr


def test_bursts_in_a_study_with_a_cycle_are_named_in_words_and_in_json(kept, folder, run):
    """Folded into a day, bursts look like any other events: their order tells."""
    rng, start = np.random.RandomState(0), np.datetime64("2026-01-05T00:00:00")
    hours = np.repeat(rng.gamma(9.0, 1.6, 100) % 24 + 24 * rng.randint(27, size=100), 4)
    hours += rng.exponential(0.05, 400)
    stamps = start + (hours * 3600).astype("timedelta64[s]")
    (folder / "bursts.csv").write_text("when\n" + "\n".join(map(str, stamps)) + "\n")
    model = kept / "day.hplus"
    found = json.loads(run("check", model, "bursts.csv", "--json").stdout)
    assert [pattern["name"] for pattern in found["patterns"]] == ["bursts"]
    assert not found["fits"]
    assert found["patterns"][0]["sentence"] in run("check", model, "bursts.csv").stdout
    own = json.loads(run("check", model, kept / "times.csv", "--json").stdout)
    assert not own["patterns"]
