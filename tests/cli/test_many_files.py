"""Many files on the command line: patterns, bad ones, updates, merges, checkpoints."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

X = np.random.default_rng(0).beta(2, 3, (600, 2))
PLANE = ["--columns", "x,y", "--window", "0,0,1,1", "--holdout", "0", "--model", "tree"]


@pytest.fixture
def files(folder):
    """Six files of a hundred rows."""
    (folder / "in").mkdir()
    for i, part in enumerate(np.split(X, 6)):
        parquet.write_table(pa.table({"x": part[:, 0], "y": part[:, 1]}), f"in/{i}.parquet")
    return folder / "in"


def facts(result):
    found = json.loads(result.stdout)
    for name in ("seconds", "file", "model"):
        found.pop(name, None)
    return found


def test_patterns_folders_and_lists_are_one_table(files, run):
    named = [f"in/{i}.parquet" for i in range(6)]
    found = [
        facts(run("fit", *source, *PLANE, "--json", "--jobs", jobs))
        for source, jobs in ((["in"], 1), (["in/*.parquet"], 2), (named, 2))
    ]
    assert found[0]["events"] == 600
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_update_and_merge_are_exact(files, run):
    one, two, updatable = "in/[0-2].parquet", "in/[3-5].parquet", [*PLANE, "--updatable"]
    whole = facts(run("fit", "in", *updatable, "-o", "all.hplus", "--json"))
    run("fit", one, *updatable, "-o", "one.hplus", "--checkpoint", "scan")
    run("fit", two, *updatable, "-o", "two.hplus")
    merged = run("merge", "two.hplus", "one.hplus", "-o", "both.hplus", "--json")
    updated = run("fit", "--update", "one.hplus", two, "-o", "more.hplus", "--json")
    assert facts(merged) == facts(updated) == whole
    again = run("fit", one, *updatable, "--checkpoint", "scan", "--json")
    assert facts(again)["events"] == 300
    run("fit", "in/0.parquet", *PLANE, "-o", "plain.hplus")
    refused = run("merge", "plain.hplus", "two.hplus", "-o", "no.hplus", code=2)
    assert "must be fitted with the same updatable" in refused.stderr.replace("\n", " ")
    refused = run("fit", "--update", "plain.hplus", two, "-o", "no.hplus", code=2)
    assert "fit it with --updatable" in refused.stderr
    refused = run("fit", "--update", "one.hplus", two, "--holdout", "0.5", code=2)
    assert "leave out --holdout" in refused.stderr
    run("merge", "one.hplus", "-o", "no.hplus", code=2)
    assert not os.path.exists("no.hplus")


def spoiled(path, how):
    if how == "empty":
        path.write_bytes(b"")
    elif how == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    elif how == "other columns":
        parquet.write_table(pa.table({"x": [0.5], "z": [0.5]}), path)
    elif how == "text":
        parquet.write_table(pa.table({"x": ["a"], "y": [0.5]}), path)
    else:
        path.chmod(0)


@pytest.mark.parametrize("how", ["empty", "truncated", "other columns", "text", "no permission"])
def test_a_bad_file_is_one_sentence_and_can_be_skipped(files, run, how):
    if how == "no permission" and os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    spoiled(files / "4.parquet", how)
    refused = run("fit", "in", *PLANE, "-o", "no.hplus", code=3)
    assert "4.parquet" in refused.stderr
    assert refused.stderr.count("Error:") == 1
    assert " ".join(refused.stderr.split()).count(". ") == 0, "one sentence"
    assert not os.path.exists("no.hplus")
    skipped = run("fit", "in", *PLANE, "--skip-bad-files")
    assert "Skipped: in/4.parquet" in skipped.stderr.replace("column 'y' is not in ", "").replace(
        "column 'x' of ", ""
    )
    assert "500" in skipped.stdout


@pytest.mark.parametrize(
    ("source", "said"),
    [("in/*.csv", "matches no file"), ("empty", "got an empty folder"), ("-x", "No such option")],
)
def test_sources_without_files_are_refused(files, run, source, said):
    (files.parent / "empty").mkdir()
    code = 2 if source == "-x" else 3
    assert said in run("fit", source, *PLANE, code=code).stderr


def test_other_files_of_a_folder_are_noted(files, run):
    (files / "README.md").write_text("# About")
    found = run("fit", "in", *PLANE)
    assert "left alone: README.md" in found.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--by x --checkpoint scan", "leave out --by"),
        ("--dask local --checkpoint scan", "--dask reads everything anew"),
        ("--update m.hplus --checkpoint scan", "--checkpoint or --update, not both"),
    ],
)
def test_options_that_do_not_go_together_are_refused(files, run, words, said):
    assert said in run("fit", "in", *PLANE, *words.split(), code=2).stderr
    assert not os.path.exists("scan")
