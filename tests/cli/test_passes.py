"""Every command opens its file once and parses every line of it once."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from click.testing import CliRunner

from hplus.cli.commands import hplus
from hplus.files import feeds, tables

PLAN = "--columns x --window 0,1 --time when --from 2026-01-05 --to 2026-02-02 --cycle week"


@pytest.fixture
def passes(monkeypatch):
    """How often each file was opened, and how many of its lines were parsed."""
    seen = {"opened": {}, "lines": 0}

    def counted_open(path, *words):
        seen["opened"][str(path)] = seen["opened"].get(str(path), 0) + 1
        return builtins.open(path, *words)

    true = tables.read_rows

    def counted_rows(data, *words):
        seen["lines"] += data.count(b"\n")
        return true(data, *words)

    monkeypatch.setattr(feeds, "open", counted_open, raising=False)
    monkeypatch.setattr(tables, "read_rows", counted_rows)
    return seen


@pytest.fixture(scope="module")
def made(tmp_path_factory, coarsely):
    """A folder with calls.csv, 300 calls of four weeks and how many things were sold, and its rate.

    The model is week.hplus.
    """
    folder = tmp_path_factory.mktemp("weeks")
    rng = np.random.RandomState(0)
    stamps = np.datetime64("2026-01-05T00:00") + rng.randint(0, 28 * 1440, 300)
    rows = zip(stamps, rng.uniform(size=300), rng.poisson(5, 300), strict=True)
    lines = "\n".join(f"{t},{x:.4f},{n}" for t, x, n in rows)
    (folder / "calls.csv").write_text(f"when,x,sold\n{lines}\n")
    with pytest.MonkeyPatch.context() as patch, coarsely():
        patch.chdir(folder)
        words = f"fit calls.csv {PLAN} --holdout 0 -o week.hplus".split()
        result = CliRunner().invoke(hplus, words)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def weeks(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


COMMANDS = {
    "fit": f"fit calls.csv {PLAN} --holdout 0 -o again.hplus",
    "fit without a window": "fit calls.csv --columns x --time when",
    "check": "check week.hplus calls.csv",
    "report": "report week.hplus calls.csv",
    "predict": "predict week.hplus calls.csv",
    "regress": "regress calls.csv --target sold --features x",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_opens_and_parses_its_file_once(name, weeks, run, coarsely, passes):
    with coarsely():
        run(*COMMANDS[name].split(), code=2 if "without" in name else 0)
    assert passes["opened"] == {"calls.csv": 1}
    assert passes["lines"] == 300


@pytest.mark.parametrize("cycle", ["", "--time when --from 2026-01-05 --cycle week"])
def test_a_stream_opens_its_file_once(cycle, weeks, run, passes):
    run(*f"stream calls.csv --columns x --window 0,1 {cycle}".split())
    assert passes["opened"] == {"calls.csv": 1}


def test_vertices_are_read_once(weeks, run, coarsely, passes):
    (weeks / "corner.csv").write_text("x,y\n0,0\n1,0\n0,9\n")
    with coarsely():
        run("fit", "calls.csv", "--columns=x,sold", "--within=corner.csv", "--most-dropped=1")
    assert passes["opened"] == {"calls.csv": 1, "corner.csv": 1}
    assert passes["lines"] == 303


def test_checks_and_reports_bin_no_events(weeks, run, coarsely, monkeypatch):
    with coarsely():

        def refuse(*_):
            raise AssertionError("events were binned")

        monkeypatch.setattr("hplus.rates.accumulator.CellAccumulator.add", refuse)
        run("check", "week.hplus", "calls.csv")
        run("report", "week.hplus", "calls.csv")
