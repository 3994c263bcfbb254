"""benchmarks/run.py runs the benchmarks and puts their tables on one page."""

import ast
import json
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from click.testing import CliRunner

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

GOOD = '''"""What is good."""
import sys
print("| what | measured | must be |\\n|---|---|---|\\n| size | 3 | at most 4 |")
print("took", sys.argv[1:])
'''
MISSED = '''"""What misses a bound."""
print("| what | measured | must be |\\n|---|---|---|\\n| size | 5 | at most 4 |")
raise SystemExit("Missed: size; weight")
'''
BROKEN = '"""What breaks."""\nraise RuntimeError("no")\n'
EMPTY = '"""What needs data."""\nprint("Give --data FOLDER: the sets do not ship.")\n'
SLOW = '"""What takes long."""\nimport time\ntime.sleep(600)\n'


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with five benchmarks and one paper, and the current folder in it."""
    for folder in ("benchmarks", "docs/papers/streams"):
        (tmp_path / folder).mkdir(parents=True)
    scripts = {"good": GOOD, "missed": MISSED, "broken": BROKEN, "empty": EMPTY, "slow": SLOW}
    for name, text in {**scripts, "_measure": ""}.items():
        (tmp_path / "benchmarks" / f"{name}.py").write_text(text)
    (tmp_path / "docs/papers/streams/results.md").write_text("# Streams at work\n\nText.\n")
    monkeypatch.chdir(tmp_path / "docs")
    return tmp_path


@pytest.fixture
def run(clone, monkeypatch):
    """Run benchmarks of the clone and give back the result: exit_code, stdout, stderr."""
    spec = spec_from_file_location("benchmarks_run", BENCHMARKS / "run.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "FOLDER", clone / "benchmarks")

    def run(*words, code=0):
        result = CliRunner().invoke(script.main, words)
        assert result.exit_code == code, result.output
        return result

    return run


def test_the_page_has_a_section_for_every_script_and_says_how_each_ended(run, clone):
    done = run("good", "missed", "broken", "empty", "--date", "2026-11-16", code=1)
    assert "Missed: size; weight" in done.stdout
    page = (clone / "docs/benchmarks.md").read_text()
    assert "| date | 2026-11-16 |" in page
    sections = dict(part.split("\n\n", 1) for part in page.split("\n## ")[1:])
    assert sections["good"].startswith("What is good.\n\nAll bounds met (")
    assert sections["good"].rstrip().endswith("| size | 3 | at most 4 |")
    assert "Missed its bounds: size; weight (" in sections["missed"]
    assert "Failed (" in sections["broken"]
    assert "Not run: Give --data FOLDER: the sets do not ship." in sections["empty"]
    assert "\n\nNot run.\n" in sections["slow"]
    assert "[Streams at work](papers/streams/results.md)" in sections["Papers"]


def test_options_reach_the_scripts_and_rows_come_as_json(run, clone):
    done = run("good", "--quick", "--data", "papers", "--json", "-o", "page.md")
    assert f"took ['--quick', '--data', '{clone / 'docs/papers'}']" in done.stderr
    found = {script["name"]: script for script in json.loads(done.stdout)["scripts"]}
    assert found["good"]["rows"] == [["size", "3", "at most 4"]]
    assert found["good"]["status"] == "met"
    assert found["slow"]["status"] == "not run"


def test_a_script_that_takes_longer_than_the_limit_is_stopped(run, clone):
    run("slow", "--limit", "0.005", code=1)
    assert "Stopped because it took too long" in (clone / "docs/benchmarks.md").read_text()


def test_unknown_names_are_refused(run):
    assert "There is no benchmark 'other'" in run("other", code=2).stderr


@pytest.mark.parametrize("name", ["forecasts", "forecast_cells"])
def test_forecasts_can_be_measured_without_simulations(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr("sys.argv", [name, "--simulations", "0"])
    import_module(name).main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [line for line in lines if "not bundled" in line]


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(BENCHMARKS.glob("[a-z]*.py")) if p.name != "run.py"],
    ids=lambda path: path.stem,
)
def test_every_benchmark_takes_the_same_options_and_says_what_it_missed(path):
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert {"parser", "header", "row", "finish"} <= called
