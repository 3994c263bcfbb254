"""Commands on some rows, by group, with weights and with numeric times, on the bundled data."""

import gzip
import json

import numpy as np
import pytest

from hplus import datasets, load
from hplus.studies.events import sampled

QUICK = ("--model", "tree", "--holdout", "0")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Earthquakes of three depths of history, with an amount, and shots of three seasons."""
    folder = tmp_path_factory.mktemp("rows")
    quakes = folder / "quakes.csv"
    datasets.copy("earthquakes", str(folder / "all.csv.gz"))
    head, *rows = gzip.decompress((folder / "all.csv.gz").read_bytes()).decode().splitlines()
    some = rows[::40]
    region = ["north" if float(row.split(",")[1]) > 0 else "south" for row in some]
    lines = (f"{row},{where},{i}" for i, (row, where) in enumerate(zip(some, region, strict=True)))
    quakes.write_text(f"{head},region,days\n" + "\n".join(lines) + "\n")
    return folder


def fitted(run, data, *words):
    """The facts of a quick fit of the earthquakes in time."""
    words = ("fit", data / "quakes.csv", *words, *QUICK)
    return run(*words)


LINE = ("--columns", "lon", "--window=-180,180")


def unwrapped(text):
    """A table without the breaks of its lines."""
    return " ".join(text.split())


def test_where_is_in_the_table_the_model_and_info_and_check_takes_the_same_rows(folder, data, run):
    where = "mag >= 6 and region == 'north'"
    said = fitted(run, data, *LINE, "--where", where, "-o", "m.hplus")
    assert f"where {where} left out" in unwrapped(said.stdout)
    assert f"not where {where}" in unwrapped(said.stdout)
    study = load("m.hplus")
    table = np.genfromtxt(data / "quakes.csv", delimiter=",", skip_header=1, usecols=(3, 1))
    assert study.reading_.kept == int(np.sum((table[:, 0] >= 6) & (table[:, 1] > 0)))
    assert json.loads(run("info", "m.hplus", "--json").stdout)["where"] == where
    assert study.fitted_to(sampled(data / "quakes.csv", study.frame).reading)
    narrower = ("check", "m.hplus", data / "quakes.csv", "--where", "mag >= 6.5", "--json")
    fewer = json.loads(run(*narrower).stdout)
    assert fewer["events"] == int(np.sum((table[:, 0] >= 6.5) & (table[:, 1] > 0)))
    rates = run("predict", "m.hplus", data / "quakes.csv", "--where", "mag > 7").stdout.splitlines()
    assert len(rates) - 1 == int(np.sum(table[:, 0] > 7))


def test_groups_are_side_by_side_in_all_that_is_printed(folder, data, run, monkeypatch):
    words = ("--columns", "lon,lat", "--window=-180,-80,180,90", "--by", "region")
    said = fitted(run, data, *words, "-o", "g.hplus")
    assert "ratio to " in said.stdout
    assert "south" in said.stdout
    assert "north" in said.stdout
    counts = run("expect", "g.hplus").stdout.splitlines()
    assert counts[0] == "group,region,expected,low,high"
    assert {line.split(",")[0] for line in counts[1:]} == {"north", "south"}
    ratio = run("expect", "g.hplus", "--ratio", "north,south", "--grid", "1x2").stdout.splitlines()
    low_half, high_half = (float(line.split(",")[5]) for line in ratio[1:])
    assert low_half < 0.2 < 5.0 < high_half  # south and north of about the equator
    assert "region" in run("info", "g.hplus").stdout

    def rows(study, events, as_json):
        return sampled(events, study.frame).reading.kept

    monkeypatch.setattr("hplus.cli.ask._checked", rows)  # checks take seconds
    everything = json.loads(run("check", "g.hplus", data / "quakes.csv", "--json").stdout)
    assert everything["groups"] == {
        name: study.reading_.kept for name, study in load("g.hplus").studies_.items()
    }
    one = run("predict", "g.hplus", data / "quakes.csv", "--group", "north").stdout.splitlines()
    assert len(one) > 100
    run("report", "g.hplus", "-o", "g.html")
    page = (folder / "g.html").read_text()
    assert page.count("<iframe") == 2
    assert "Where north differs from south" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_model_of_groups_is_asked_about_one_where_only_one_can_answer(folder, data, run):
    words = (*LINE, "--by", "region", "--json", "-o", "g.hplus")
    facts = json.loads(fitted(run, data, *words).stdout)
    assert set(facts["groups"]) == {"north", "south"}
    assert len(facts["ratios"]) == 1
    for command in (("sample", "g.hplus"), ("predict", "g.hplus", data / "quakes.csv")):
        assert "choose one with --group" in run(*command, code=2).stderr
    assert "group must be one of" in run("sample", "g.hplus", "--group", "x", code=2).stderr
    for pair, got in (("north,west", "west"), ("north,north", "north,north")):
        said = unwrapped(run("expect", "g.hplus", "--ratio", pair, code=2).stderr)
        assert f"--ratio must be two of south, north, got '{got}'" in said
    assert run("sample", "g.hplus", "--group", "north").stdout.startswith("path,lon")


def test_sums_of_a_column_are_told_in_its_unit(folder, data, run):
    said = fitted(run, data, *LINE, "--weight", "mag", "-o", "w.hplus")
    assert "The rate of mag in" in said.stdout
    assert "units of mag" in said.stdout
    assert "as much is known as from" in unwrapped(said.stdout)
    answer = run("expect", "w.hplus")
    assert "Sums of mag for the observation period; total expected: " in unwrapped(answer.stderr)
    total = answer.stdout.splitlines()[1].split(",")
    mags = np.genfromtxt(data / "quakes.csv", delimiter=",", skip_header=1, usecols=3)
    np.testing.assert_allclose(float(total[1]), mags.sum(), rtol=1e-3)
    assert "cannot simulate" in run("sample", "w.hplus", code=2).stderr
    run("report", "w.hplus", "-o", "w.html")
    assert "sums of mag, not numbers of events" in (folder / "w.html").read_text()


def test_numeric_times_have_cycles_and_forecasts(folder, data, run):
    words = ("--time", "days", "--time-unit", "d", "--origin", "2020-01-01", "--from", "0")
    fitted(run, data, *words, "--to", "600", "--cycle", "week", "-o", "n.hplus")
    said = run("expect", "n.hplus", "--for", "7d")
    assert "Counts for 2021-08-23 to 2021-08-30" in said.stderr
    expected = float(said.stdout.splitlines()[1].split(",")[1])
    assert 4.0 < expected < 10.0  # one a day
    rows = run("sample", "n.hplus", "--for", "7d").stdout.splitlines()
    assert all(599 < float(row.split(",")[1]) < 608 for row in rows[1:])
    assert run("expect", "n.hplus", "--from", "600", "--for", "7d").stdout == said.stdout


def test_games_are_trials_whose_next_one_is_foretold(data, run, monkeypatch):
    monkeypatch.chdir(data)
    datasets.copy("curry", "curry.csv.gz")
    court = ("--columns", "x,y", "--window=-25,-5.25,25,41.75", "--unit", "ft")
    fit = ("fit", "curry.csv.gz", *court, "--where", "season in [2009, 2020]", "--model", "tree")
    table = unwrapped(run(*fit, "--trial", "game", "-o", "games.hplus").stdout)
    assert "exposure 142 games" in table
    assert "events in the next game (90 % interval" in table
    assert "held out" in table
    assert "games at random:" in table
    run(*fit, "--exposure", "142 games", "-o", "shots.hplus")
    widths = []
    for model in ("games", "shots"):
        found = json.loads(run("expect", f"{model}.hplus", "--for", "1 game", "--json").stdout)
        widths.append(found["regions"][0]["high"] - found["regions"][0]["low"])
    assert widths[0] > widths[1]
    said = run("expect", "games.hplus", "--for", "2 games").stderr
    assert "Intervals include how much counts vary from game to game." in said


def test_a_stream_takes_the_rows_of_a_condition_and_keeps_it(folder, data, run):
    words = ("stream", data / "quakes.csv", "--columns", "lon,lat", "--window=-180,-80,180,90")
    said = run(*words, "--where", "mag >= 6", "--state", "s.state")
    assert "not where mag >= 6" in said.stderr
    assert "holds a stream with where mag >= 6" in run(*words, "--state", "s.state", code=2).stderr
    assert "not where mag >= 6" in run("info", "s.state").stdout


def test_a_quantity_is_learned_from_some_rows(folder, data, run):
    words = ("regress", data / "quakes.csv", "--target", "mag", "--features", "lat,region")
    found = json.loads(run(*words, "--where", "lon > 100 and days < 300", "--json").stdout)
    table = np.genfromtxt(data / "quakes.csv", delimiter=",", skip_header=1, usecols=(2, 5))
    assert found["rows"] == int(np.sum((table[:, 0] > 100) & (table[:, 1] < 300)))
    assert found["made_with"]["where"] == "lon > 100 and days < 300"
    assert sum(found["left_out"].values()) == len(table) - found["rows"]


WORDS = {
    "a condition that is none": (
        "fit quakes.csv --columns lon --where mag>",
        "--where must have",
        2,
    ),
    "conditions joined by signs": (
        "fit quakes.csv --columns lon --where mag>5&&lat>0",
        "--where joins conditions with and, got &&",
        2,
    ),
    "numbers in quotes": (
        "fit quakes.csv --columns lon --window=-180,180 --where mag>'10'",
        "leave out the quotes around a number",
        3,
    ),
    "a condition that is empty": (
        "fit quakes.csv --columns lon --window=-180,180 --where=",
        "--where must be a condition such as",
        2,
    ),
    "a period of numbers": (
        "fit quakes.csv --time days --from 0 --to 600",
        "--from must look like 2026-11-16, got '0': times that are numbers need --time-unit and",
        2,
    ),
    "how many groups of nothing": (
        "fit quakes.csv --columns lon --window=-180,180 --most-groups 3",
        "--most-groups needs a column of groups: give --by",
        2,
    ),
    "a level in percent": (
        "regress quakes.csv --target mag --level 90",
        "--level must be",
        2,
    ),
    "a condition on nothing": (
        "fit quakes.csv --columns lon --where depth>5",
        "'depth' is not in",
        3,
    ),
    "text as a number": (
        "fit quakes.csv --columns lon --window=-180,180 --where region>5",
        "must hold numbers",
        3,
    ),
    "a condition without rows": (
        "fit quakes.csv --columns lon --window=-180,180 --where mag>11",
        "not where mag>11",
        3,
    ),
    "no rows to span": ("fit quakes.csv --columns lon --where mag>11", "no row of", 3),
    "no rows to predict a quantity": (
        "regress quakes.csv --target mag --where mag>11",
        "no row of",
        3,
    ),
    "groups of an unknown column": (
        "fit quakes.csv --columns lon --window=-180,180 --by depth",
        "'depth' is not in",
        3,
    ),
    "groups of many": (
        "fit quakes.csv --columns lon --window=-180,180 --by days",
        "at least 10 events",
        3,
    ),
    "groups that excite": (
        "fit quakes.csv --time date --from 1965-01-01 --to 2017-01-01 --self-exciting --by region",
        "--by cannot be used",
        2,
    ),
    "weights that excite": (
        "fit quakes.csv --time date --from 1965-01-01 --to 2017-01-01 --self-exciting --weight mag",
        "--weight cannot be used",
        2,
    ),
    "negative weights": (
        "fit quakes.csv --columns lon --window=-180,180 --weight lat",
        "'lat' must be at least 0",
        3,
    ),
    "trials and times": (
        "fit quakes.csv --columns lon --window=-180,180 --trial region --time date",
        "give --trial or --time, not both",
        2,
    ),
    "fewer trials than there are": (
        "fit quakes.csv --columns lon --window=-180,180 --trial region --exposure 1",
        "at least the 2 that column 'region' names",
        2,
    ),
    "a unit without an origin": (
        "fit quakes.csv --time days --time-unit d --from 0 --to 9",
        "--time-unit and --origin belong together",
        2,
    ),
    "an unknown unit": (
        "fit quakes.csv --time days --time-unit ages --origin 2020-01-01 --from 0 --to 9",
        "--time-unit must be a unit of time",
        2,
    ),
    "an origin in the year 0": (
        "fit quakes.csv --time days --time-unit year --origin 0000-01-01 --from 0 --to 9",
        "there is no year 0, the first one is 0001",
        2,
    ),
    "an exposure of time": (
        "fit quakes.csv --columns days --window 0,600 --unit day --exposure 365d",
        "--time-unit and --origin",
        2,
    ),
    "a group of one model": (
        "expect one.hplus --group a",
        "--group needs a model made with hplus fit --by",
        2,
    ),
    "a ratio of one model": ("expect one.hplus --ratio a,b", "--ratio needs", 2),
    "a week of numbers": (
        "expect one.hplus --for 7d",
        "--time days --time-unit day and --origin",
        2,
    ),
}


@pytest.fixture(scope="module")
def one(data):
    from hplus import EventStudy, plan, save

    path = data / "quakes.csv"
    frame = plan(path, ["days"], window=(0, 600), unit="day")
    save(EventStudy(frame, model="tree", holdout=0.0).fit(path), data / "one.hplus")


@pytest.mark.parametrize(("words", "said", "code"), WORDS.values(), ids=WORDS)
def test_what_cannot_be_done_is_said_in_one_sentence(
    words, said, code, data, one, run, monkeypatch
):
    monkeypatch.chdir(data)
    result = run(*words.split(), code=code)
    assert said in result.stderr, result.stderr
    assert "Traceback" not in result.stderr
