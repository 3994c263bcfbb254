"""hplus bench runs the scripts of a clone and puts their tables on one page."""

import json

import pytest

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


def test_the_page_has_a_section_for_every_script_and_says_how_each_ended(run, clone):
    done = run("bench", "good", "missed", "broken", "empty", "--date", "2026-11-16", code=1)
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
    done = run("bench", "good", "--quick", "--data", "papers", "--json", "-o", "page.md")
    assert f"took ['--quick', '--data', '{clone / 'docs/papers'}']" in done.stderr
    found = {script["name"]: script for script in json.loads(done.stdout)["scripts"]}
    assert found["good"]["rows"] == [["size", "3", "at most 4"]]
    assert found["good"]["status"] == "met"
    assert found["slow"]["status"] == "not run"


def test_a_script_that_takes_longer_than_the_limit_is_stopped(run, clone):
    run("bench", "slow", "--limit", "0.005", code=1)
    assert "Stopped because it took too long" in (clone / "docs/benchmarks.md").read_text()


def test_without_a_clone_or_with_unknown_names_the_command_is_refused(
    run, clone, tmp_path_factory, monkeypatch
):
    assert "There is no benchmark 'other'" in run("bench", "other", code=2).stderr
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert "works only in a clone of the repository" in run("bench", code=2).stderr
