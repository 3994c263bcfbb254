"""hplus fit --self-exciting, and the commands that use its models."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hplus.cli.commands import hplus

pytestmark = pytest.mark.usefixtures("coarse_grids")

PERIOD = "--time when --from 2026-01-11 --to 2026-07-20"
PLACE = "--columns x,y --window 0,0,50,50 --unit km"


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def models(aftershocks, tmp_path_factory, coarse_grids):
    """A folder with the file, and models of it in time and in place and time."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "quakes.csv").write_text(aftershocks.read_text())
    said = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, words in (
            (
                "time",
                f"fit quakes.csv {PERIOD} --self-exciting --type kind --cycle week --holdout 0",
            ),
            ("place", f"fit quakes.csv {PERIOD} {PLACE} --self-exciting --mark mag"),
        ):
            result = CliRunner().invoke(
                hplus, [*words.split(), "--jobs", "1", "-o", f"{name}.hplus"]
            )
            assert result.exit_code == 0, result.output
            said[name] = result
    return folder, said


@pytest.fixture
def folder(models, monkeypatch):
    monkeypatch.chdir(models[0])
    return models[0]


def plain(text):
    return " ".join(text.replace("\u00a0", " ").split())


def test_fit_tells_what_triggers_what(models):
    text = plain(models[1]["place"].stdout)
    for words in (
        "others directly, on average;", "of the events were triggered",
        "half of the triggered events follow within", "km of an event with mag",
        "an event whose mag is 0.5 larger triggers", "in the next day (", "in the next week (",
        "each predicted from those before it", "vs constant", "vs Poisson",
        "earlier ones are history", "smoothing costs",
    ):  # fmt: skip
        assert words in text
    assert "Next: hplus expect place.hplus --for 7d" in models[1]["place"].stderr
    assert "east triggers" in plain(models[1]["time"].stdout)


def test_a_period_that_goes_on_long_after_the_last_event_is_told(folder, models, run):
    words = ("fit", "quakes.csv", "--time", "when", "--from", "2026-01-11", "--self-exciting")
    said = plain(run(*words, "--holdout", 0, "--to", "2100-01-01").stdout)
    assert "silence no events since 2026-07-1" in said
    assert "would be usual: if the record is not complete, end the observation period" in said
    assert "silence" not in models[1]["place"].stdout + models[1]["time"].stdout


def test_a_cycle_is_judged_and_told(models):
    said = plain(models[1]["time"].stdout)
    assert "cycle week: left out, it does not predict later cycles" in said


def test_info_reads_the_same_table(folder, models, run):
    shown = plain(run("info", "place.hplus").stdout)
    assert "place.hplus: ExcitationStudy" in shown
    fitted = next(line for line in models[1]["place"].stdout.splitlines() if "branching" in line)
    assert plain(fitted) in shown
    assert json.loads(run("info", "place.hplus", "--json").stdout)["branching"]["ratio"] > 0


def test_expect_counts_with_chances_from_the_end_of_history(folder, run):
    result = run("expect", "place.hplus", "--for", "7d", "--mark-above", "6")
    (row,) = table(result.stdout)
    assert float(row["low"]) <= float(row["expected"]) <= float(row["high"])
    assert 0.0 <= float(row["chance_above_6"]) < float(row["chance"]) <= 1.0
    assert "2026-07-20 to 2026-07-27" in result.stderr
    assert "from events known until 2026-07-20" in result.stderr
    cells = table(run("expect", "place.hplus", "--for", "7d", "--grid", "2x2").stdout)
    assert sum(float(c["expected"]) for c in cells) == pytest.approx(
        float(row["expected"]), abs=1e-3
    )
    days = table(run("expect", "time.hplus", "--for", "2d", "--every", "1d").stdout)
    assert [day["from"] for day in days] == ["2026-07-20", "2026-07-21"]


def test_cells_without_a_simulated_event_have_a_row(folder, run):
    asked = ("expect", "place.hplus", "--for", "1d", "--grid", "25x25")
    cells = table(run(*asked).stdout)
    assert len(cells) == 625
    assert {cell["expected"] for cell in cells if cell["chance"] == "0.0"} == {"0.0"}
    assert len(table(run(*asked, "--every", "12h").stdout)) == 1250


def square(name, a, b):
    ring = [[a, 0], [b, 0], [b, 50], [a, 50], [a, 0]]
    shape = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "properties": {"name": name}, "geometry": shape}


def test_regions_outside_of_the_window_or_that_overlap_are_named(folder, run):
    regions = {"west": (0, 30), "east": (20, 50), "far": (50, 90)}
    for name, some in (("r", regions), ("far", ["far"]), ("halves", ["west"])):
        found = {"type": "FeatureCollection"}
        found["features"] = [square(one, *regions[one]) for one in some]
        (folder / f"{name}.geojson").write_text(json.dumps(found))
    asked = ("expect", "place.hplus", "--for", "7d", "--regions")
    result = run(*asked, "r.geojson")
    assert [row["region"] for row in table(result.stdout)] == ["west", "east"]
    assert "nothing was observed there: 1 region outside the window (far)" in result.stderr
    (whole,) = table(run("expect", "place.hplus", "--for", "7d").stdout)
    said = f"Regions overlap: all of the window is expected to have {float(whole['expected']):g}."
    assert said in result.stderr
    assert "overlap" not in run(*asked, "halves.geojson").stderr
    assert "No region lies in the window" in run(*asked, "far.geojson", code=2).stderr


def test_newer_events_move_the_forecast(folder, run):
    (folder / "newer.csv").write_text("when,x,y,mag\n2026-07-21T22:00:00,25,25,7.5\n")
    asked = ("expect", "place.hplus", "--from", "2026-07-22", "--for", "1d")
    (before,), (after,) = (
        table(run(*asked, *more).stdout) for more in ((), ("--events", "newer.csv"))
    )
    assert float(after["expected"]) > float(before["expected"]) + 0.5
    assert "until 2026-07-20" in run(*asked).stderr
    newer = run(*asked, "--events", "newer.csv").stderr
    assert "until 2026-07-22" in newer
    assert "No event of" not in newer
    past = run("expect", "place.hplus", "--from", "2026-05-01", "--for", "1d")
    assert "as of 2026-05-01" in past.stderr


def test_a_file_without_newer_events_says_that_nothing_happened(folder, run):
    (folder / "none.csv").write_text("when,x,y,mag\n")
    (folder / "wrong.csv").write_text("when,x,y,mag\nyesterday,1,1,5\n")
    asked = ("expect", "place.hplus", "--from", "2026-07-22", "--for", "1d", "--events")
    none, same = (run(*asked, name) for name in ("none.csv", "quakes.csv"))
    assert none.stdout == same.stdout
    assert "known until 2026-07-22" in none.stderr
    assert (
        "No event of none.csv lies between 2026-07-20, when those of the fit end, and 2026-07-22:"
        in none.stderr
    )
    assert "when is not a time" in run(*asked, "wrong.csv", code=3).stderr


def test_check_without_a_file_takes_the_events_of_the_model(folder, run):
    own, given = (run("check", "time.hplus", *more) for more in ((), ("quakes.csv",)))
    assert own.stdout == given.stdout
    assert "fitted to these events" in own.stderr


def test_a_ratio_of_several_types_is_not_what_an_event_triggers(folder, models, run):
    said = plain(models[1]["time"].stdout)
    assert "relative to the one before, in the long run; each event triggers" in said
    assert "held out none: --holdout 0" in said
    run("report", "time.hplus", "-o", "time.html")
    page = (folder / "time.html").read_text()
    text = re.sub(r"<(script|style)>.*?</\1>|<svg.*?</svg>", "", page, flags=re.S)
    assert "others directly, on average." in text
    assert "spectral radius" in text
    for word in ("distance", " map", " mark"):
        assert word not in text


def test_one_event_is_too_few_to_tell_about_triggering(folder, run):
    (folder / "one.csv").write_text("when\n2026-03-01T10:00:00\n")
    result = run("fit", "one.csv", *PERIOD.split(), "--self-exciting", "-o", "one.hplus")
    said = plain(result.stdout)
    assert "branching too few events to tell whether they trigger others" in said
    assert "held out none: too few events" in said
    assert "follow within" not in said
    run("report", "one.hplus", "-o", "one.html")
    page = (folder / "one.html").read_text()
    assert "event is too few to tell about triggering" in page
    assert "1 event from" in page
    assert ": too few events to tell" in page


def test_sample_and_predict_use_the_users_columns(folder, run):
    rows = table(run("sample", "place.hplus", "--for", "14d", "--paths", 2, "--seed", 1).stdout)
    assert list(rows[0]) == ["path", "x", "y", "when", "mag"]
    assert {row["path"] for row in rows} == {"1", "2"}
    rows = table(run("sample", "time.hplus", "--for", "14d").stdout)
    assert {row["kind"] for row in rows} <= {"east", "west"}
    rates = table(run("predict", "place.hplus", "quakes.csv").stdout)
    known = [row for row in rates if row["rate"]]
    assert all(float(row["rate"]) >= float(row["background"]) > 0.0 for row in known)


def test_check_on_fitted_and_on_later_events(folder, run):
    result = run("check", "place.hplus", "quakes.csv")
    assert "The rate fits" in result.stdout
    assert "say little about the fit" in result.stderr
    found = json.loads(run("check", "place.hplus", "quakes.csv", "--json").stdout)
    assert set(found["p_values"]) == {"count", "gaps", "neighbours", "places"}
    lines = [f"2026-07-{20 + i // 2},{3 * i + 2},{i},4.{i}" for i in range(16)]
    (folder / "later.csv").write_text("when,x,y,mag\n" + "\n".join(lines) + "\n")
    later = run("check", "place.hplus", "later.csv")
    assert "one event ahead, vs the best constant rate:" in later.stdout
    assert "fitted to these" not in later.stderr


def test_report_writes_a_page(folder, run):
    result = run("report", "time.hplus", "quakes.csv", "-o", "r.html", "--title", "Shocks")
    assert "Wrote r.html" in result.stderr
    page = (folder / "r.html").read_text("utf-8")
    assert "<h1>Shocks</h1>" in page
    assert 'id="types"' in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--mark mag", "--mark needs --self-exciting: add it"),
        ("--type kind", "--type needs --self-exciting: add it"),
        ("--self-exciting --exposure 3d", "--exposure cannot be used with --self-exciting"),
        ("--self-exciting --holdout-blocks 3", "--holdout-blocks cannot be used with"),
        ("--self-exciting --model sos", "--model sos cannot be used with --self-exciting"),
        ("--self-exciting --mark depth", "depth"),
        ("--self-exciting --updatable", "--updatable cannot be used with --self-exciting"),
        (
            "--self-exciting --columns x,y,mag --window 0,0,0,50,50,9",
            "at most two columns of places with --self-exciting, got x,y,mag: give a magnitude as",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder, run, words, said):
    code = 3 if "depth" in words else 2
    result = run("fit", "quakes.csv", *PERIOD.split(), *words.split(), code=code)
    assert said in plain(result.stderr)


def test_self_exciting_needs_times(folder, run):
    result = run("fit", "quakes.csv", *PLACE.split(), "--self-exciting", code=2)
    assert "--self-exciting needs a column of times: give --time." in plain(result.stderr)


BAD = {
    "marks that are no numbers": (
        "2026-02-01,1,1,high,a\n" * 9 + "2029-02-01,1,1,high,a\n" * 9,
        "mag is not a number: 9; outside the observation period: 9): name a column of numbers as "
        "--mark, or give types of events as --type.",
    ),
    "most marks that are no numbers": (
        "2026-02-01,1,1,high,a\n" * 9 + "2026-02-01,1,1,5,a\n",
        "more than --most-dropped 0.2: name a column of numbers as --mark, or give types of events",
    ),
    "missing marks": ("2026-02-01,1,1,,a\n" * 9, "no mag: 9"),
    "no events in the period": ("2025-02-01,1,1,5,a\n" * 9, "correct --from and --to"),
    "all events later": ("2027-02-01,1,1,5,a\n" * 9, "outside the observation period: 9"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_one_sentence(folder, run, name):
    rows, said = BAD[name]
    (folder / "bad.csv").write_text(f"when,x,y,mag,kind\n{rows}")
    result = run("fit", "bad.csv", *PERIOD.split(), "--self-exciting", "--mark", "mag", code=3)
    assert said in plain(result.stderr)
    assert result.stderr.count("Error:") == 1


def test_unknown_types_and_missing_columns_in_newer_events(folder, run):
    asked = ("expect", "time.hplus", "--from", "2026-07-22", "--for", "1d", "--events", "other.csv")
    (folder / "other.csv").write_text("when,kind\n2026-07-21,north\n")
    said = (
        "column 'kind' of other.csv must have types of the fit, east, west, got 1 row of others, "
        "such as 'north': leave these rows out, or fit again"
    )
    assert said in plain(run(*asked, code=3).stderr)
    assert said in plain(run("check", "time.hplus", "other.csv", code=3).stderr)
    (folder / "other.csv").write_text("when\n2026-07-21\n")
    assert "kind" in run(*asked, code=3).stderr
    few = ("expect", "time.hplus", "--for", "1d")
    assert "needs --from" in run(*few, "--events", "other.csv", code=2).stderr
    assert "fitted with --mark" in plain(run(*few, "--mark-above", "5", code=2).stderr)


def test_a_mark_that_is_no_number_is_refused(folder, run):
    result = run("expect", "place.hplus", "--for", "1d", "--mark-above", "nan", code=2)
    assert "Error: --mark-above must be a finite number, got nan." in plain(result.stderr)


def test_a_ratio_of_groups_is_refused(folder, run):
    result = run("expect", "place.hplus", "--for", "1d", "--ratio", "a,b", code=2)
    assert "--ratio needs a model made with hplus fit --by" in plain(result.stderr)


def test_the_number_of_simulated_futures_may_be_chosen(folder, run):
    few = run("expect", "time.hplus", "--for", "1d", "--paths", 50)
    assert "From 50 simulated futures, from events known until 2026-07-20." in plain(few.stderr)
    (row,) = table(few.stdout)
    assert 50 * float(row["chance"]) == pytest.approx(round(50 * float(row["chance"])))
    for command in ("expect", "sample"):
        said = run(command, "time.hplus", "--for", "1d", "--paths", 0, code=2).stderr
        assert "--paths must be a whole number of at least 1, got 0." in plain(said)


def test_a_region_without_an_area_is_named(folder, run):
    shape = square("flat", 1, 1)
    found = {"type": "FeatureCollection", "features": [square("good", 0, 9), shape]}
    (folder / "flat.geojson").write_text(json.dumps(found))
    result = run("expect", "place.hplus", "--for", "1d", "--regions", "flat.geojson", code=2)
    assert "region 'flat' of flat.geojson cannot be used: " in plain(result.stderr)


def test_rows_without_a_prediction_are_explained(folder, run):
    rows = ("2026-07-19,1,1", "2026-07-19T12:00:00Z,2,2", "2026-07-19,60,2", "2026-07-19,x,2")
    (folder / "mixed.csv").write_text("\n".join(["when,x,y", *rows]) + "\n")
    for model in ("place.hplus", "plain.hplus"):
        if model == "plain.hplus":
            run(
                "fit", "quakes.csv", *PERIOD.split(), *PLACE.split(), "--model", "tree", "-o", model
            )
        result = run("predict", model, "mixed.csv")
        assert [bool(row["rate"]) for row in table(result.stdout)] == [True, False, False, False]
        assert plain(result.stderr).split(". ") == [
            "1 of 4 rows have no prediction: x is not a number",
            "1 of 4 rows have no prediction: when has a UTC offset, unlike the first",
            "1 of 4 rows have no prediction: outside the window.",
        ]


def test_an_update_says_that_the_model_is_a_self_exciting_rate(folder, run):
    said = plain(run("fit", "--update", "time.hplus", "quakes.csv", code=4).stderr)
    assert "or hplus stream, got one made with hplus fit --self-exciting." in said


def test_options_of_self_exciting_rates_are_refused_by_others(folder, run):
    stored = Path(__file__).parents[1] / "stored" / "study_line.hplus"
    result = run("expect", stored, "--mark-above", "5", code=2)
    assert "--mark-above needs a model made with hplus fit --self-exciting" in result.stderr
    result = run("expect", stored, "--paths", "5", code=2)
    assert "--paths needs a model made with hplus fit --self-exciting" in result.stderr


def test_a_branching_ratio_near_one_is_a_note(folder, run, monkeypatch):
    monkeypatch.setattr("hplus.estimators.self_exciting.NEAR_ONE", 0.1)
    result = run("fit", "quakes.csv", *PERIOD.split(), "--self-exciting", "--holdout", 0)
    assert "Note: The branching ratio is" in result.stderr
    assert result.stderr.count("The branching ratio") == 1


def test_times_in_any_order_give_the_same_model(folder, run):
    lines = (folder / "quakes.csv").read_text().splitlines()
    ordered = sorted(lines[1:])
    assert ordered != lines[1:]
    (folder / "sorted.csv").write_text("\n".join([lines[0], *ordered]) + "\n")
    words = [*PERIOD.split(), "--self-exciting", "--holdout", 0, "--json"]
    first, second = (
        json.loads(run("fit", name, *words).stdout) for name in ("quakes.csv", "sorted.csv")
    )
    # times are spread over their second by the number of their row
    assert np.isclose(first["branching"]["ratio"], second["branching"]["ratio"], rtol=1e-3)


def bursty(path):
    """800 days of events, of which each triggers 0.7 others within hours."""
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 800, 200)
    parts = [t]
    while len(t):
        t = np.repeat(t, rng.poisson(0.7, len(t)))
        t = t + rng.exponential(0.1, len(t))
        parts.append(t)
    times = np.concatenate(parts)
    stamps = np.datetime64("2024-01-01T00:00:00") + (times * 86_400).astype("timedelta64[s]")
    x = rng.uniform(0, 1, (len(times), 2))
    path.write_text(
        "when,x,y\n"
        + "\n".join(f"{when},{a:.4f},{b:.4f}" for when, (a, b) in zip(stamps, x, strict=True))
    )


@pytest.mark.parametrize("places", [(), ("--columns", "x,y", "--window", "0,0,1,1")])
def test_a_fit_that_finds_bursts_says_what_self_exciting_would_gain(folder, run, places):
    bursty(folder / "bursts.csv")
    period = ("--time", "when", "--from", "2024-01-01", "--to", "2026-03-11")
    result = run("fit", "bursts.csv", *period, *places, "--model", "tree", "--most-dropped", 1)
    said = plain(result.stderr)
    assert "Events come in bursts: --self-exciting learns how events trigger others" in said
    assert "nats per event over a constant rate." in said


def test_independent_events_get_no_advice(folder, run):
    rng = np.random.default_rng(2)
    stamps = np.datetime64("2024-01-01T00:00:00") + rng.integers(0, 800 * 86_400, 500)
    (folder / "calm.csv").write_text("when\n" + "\n".join(map(str, stamps)) + "\n")
    period = ("--time", "when", "--from", "2024-01-01", "--to", "2026-03-11")
    result = run("fit", "calm.csv", *period, "--model", "tree")
    assert "--self-exciting" not in result.stderr


OFFICE = ("--time", "when", "--from", "2024-01-01", "--to", "2024-03-25")


def office_hours(path):
    """Independent events from 9 to 17 o'clock, from Monday to Friday, in twelve weeks."""
    rng = np.random.default_rng(3)
    days = np.arange(84)[np.arange(84) % 7 < 5]
    days = np.repeat(days, rng.poisson(8.0, len(days)))
    seconds = np.sort(86_400 * days + rng.integers(9 * 3600, 17 * 3600, len(days)))
    stamps = np.datetime64("2024-01-01T00:00:00") + seconds
    path.write_text("when\n" + "\n".join(map(str, stamps)) + "\n")


def test_where_times_follow_the_week_the_advice_is_a_cycle(folder, run):
    office_hours(folder / "office.csv")
    said = plain(run("fit", "office.csv", *OFFICE, "--model", "tree").stderr)
    assert "Times follow the week, which can look like bursts: use --cycle week to" in said
    assert "--self-exciting" not in said
    again = run("fit", "office.csv", *OFFICE, "--model", "tree", "--cycle", "week")
    assert "--self-exciting" not in again.stderr


def test_a_self_exciting_rate_says_that_times_follow_the_week(folder, run):
    office_hours(folder / "office.csv")
    words = ("fit", "office.csv", *OFFICE, "--self-exciting", "--holdout", 0)
    told = plain(run(*words, "-o", "office.hplus").stdout)
    assert "times follow the week, which can look like triggering" in told
    assert "give --cycle week" in told
    assert "give --cycle week" in plain(run("info", "office.hplus").stdout)
    run("report", "office.hplus", "-o", "office.html")
    assert (
        "Times follow the week, which can look like triggering"
        in (folder / "office.html").read_text()
    )
    again = json.loads(run(*words, "--cycle", "week", "--json").stdout)
    assert again["followed_cycle"] is None
    assert again["branching"]["ratio"] < 0.1


@pytest.fixture
def stamped(folder):
    """A file of 60 events, and one with as many at the same times in other places."""
    rng = np.random.default_rng(2)
    stamps = np.datetime64("2024-01-01T00:00:00.000") + rng.integers(0, 84 * 86_400_000, 60)
    once, again = (
        "".join(
            f"{stamp},{x:.4f},{y}\n" for stamp, x in zip(stamps, rng.uniform(size=60), strict=True)
        )
        for y in (0.5, 0.7)
    )
    (folder / "copied.csv").write_text("when,x,y\n" + 2 * once)
    (folder / "tied.csv").write_text("when,x,y\n" + once + again)


@pytest.mark.parametrize("places", [(), ("--columns", "x,y", "--window", "0,0,1,1")])
def test_copies_are_told_as_such_and_not_as_ties(stamped, run, places):
    result = run("fit", "copied.csv", *OFFICE, *places, "--self-exciting", "--model", "tree")
    said = plain(result.stdout)
    assert "copies 50 % of the events are exact copies of others, time and all" in said
    assert "same time" not in result.stderr


def test_tied_times_are_told_in_terms_of_the_file(stamped, run):
    places = ("--columns", "x,y", "--window", "0,0,1,1")
    result = run("fit", "tied.csv", *OFFICE, *places, "--self-exciting", "--model", "tree")
    said = plain(result.stderr)
    assert "120 of 120 events have the same time as another" in said
    assert "if times are rounded, spread them in the file at random over what they stand" in said
    assert said.count("same time as another") == 1
    assert "copies" not in result.stdout


def test_copies_of_events_are_no_bursts(folder, run):
    rng = np.random.default_rng(2)
    stamps = np.datetime64("2024-01-01T00:00:00") + rng.integers(0, 84 * 86_400, 300)
    (folder / "twice.csv").write_text("when\n" + "\n".join(map(str, np.repeat(stamps, 3))) + "\n")
    result = run("fit", "twice.csv", *OFFICE, "--model", "tree")
    assert "exact copies of others" in plain(result.stdout)
    assert "--self-exciting" not in result.stderr
