"""Bad files through the command line: a documented exit code, one sentence, nothing by half."""

from __future__ import annotations

import gzip
import json
import os
import shutil

import numpy as np
import pytest

from hplus.cli.commands import CODES

HEADER, ROWS = "x,y", "\n".join(f"{0.1 * (i % 10)},{0.05 * (i % 20)}" for i in range(60))
GOOD = f"{HEADER}\n{ROWS}\n"
PLANE = "fit bad.csv --columns x,y --window 0,0,1,1 --holdout 0 -o out.hplus"
CITY = "fit bad.csv --columns lon,lat --window=-74.3,40.4,-73.6,41 --holdout 0 -o out.hplus"
TIME = "fit bad.csv --time when --from 2026-01-01 --to 2026-02-01 --holdout 0 -o out.hplus"
SQUARE = [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]


def rows(*extra, header=HEADER, keep=0):
    """A good file's first rows and some others."""
    return "\n".join([header, *ROWS.split("\n")[:keep], *extra]) + "\n"


def geo(**geometry):
    return json.dumps({"type": "Feature", "properties": {}, "geometry": geometry})


def times(*stamps):
    return "\n".join(["when", *stamps]) + "\n"


# name: contents of bad.csv, command, exit code, what the sentence says
FILES = {
    "a column that is not there": (GOOD.replace("x,y", "long,y"), PLANE, 3, "it has long, y"),
    "a column with a slip": (GOOD.replace("x,y", "x,yy"), PLANE, 3, "did you mean 'yy'"),
    "a column of another case": (GOOD.replace("x,y", "X,y"), PLANE, 3, "did you mean 'X'"),
    "the same column twice": (GOOD.replace("x,y", "x,x"), PLANE, 3, "2 times"),
    "an empty file": ("", PLANE, 3, "is empty"),
    "only spaces": ("  \n \n", PLANE, 3, "is empty"),
    "a header alone": ("x,y\n", PLANE, 3, "no rows"),
    "no header": (ROWS, PLANE, 3, "must begin with a header"),
    "only text": (rows("a,b", "c,d"), PLANE, 3, "x is not a number"),
    "only empty cells": (rows(",", ","), PLANE, 3, "no x"),
    "only NaN": (rows("nan,1", "NA,1"), PLANE, 3, "no x"),
    "infinities": (rows("inf,1", "-inf,1"), PLANE, 3, "x is not a number"),
    "many bad rows": (rows(*["a,b"] * 40, keep=20), PLANE, 3, "40 of 60 rows"),
    "all outside": (rows("5,5", "6,7"), PLANE, 3, "--window 5,5,6,7"),
    "dates in a number column": (rows("2026-01-01,1"), PLANE, 3, "x is not a number"),
    "UTF-16": (GOOD.encode("utf-16"), PLANE, 3, "UTF-8"),
    "bytes that are no text": (b"x,y\n\xff\xfe\xfa,1\n", PLANE, 3, "UTF-8"),
    "zeros": (b"\x00" * 1000, PLANE, 3, "UTF-8"),
    "a spreadsheet": (b"PK\x03\x04" + b"\x00" * 100, PLANE, 3, "CSV"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(200), PLANE, 3, "CSV"),
    "half of a gzip file": (gzip.compress(GOOD.encode() * 50)[:-40], PLANE, 3, "cannot be read"),
    "gzip in name only": (b"\x1f\x8bnonsense", PLANE, 3, "cannot be read"),
    "a header of 10 MB": ("x" * 10_000_000, PLANE, 3, "longer than"),
    "nothing but a line of 10 MB": ("x,y\n" + "1" * 10_000_000, PLANE, 3, "longer than 1 MB"),
    "Parquet that is torn": (b"PAR1" + bytes(30), PLANE, 3, "cannot be read"),
    "a JSON array": ("[1, 2]", PLANE, 3, "one JSON object per line"),
    "JSON lines that are none": ('{"x": 1,\n"y": 2}', PLANE, 3, "one JSON object per line"),
    "JSON lines without the column": ('{"a": 1}\n', PLANE, 3, "'x' is not in"),
    "JSON lines of lists": ('{"x": [1], "y": 2}\n', PLANE, 3, "x is not a number"),
    "latitudes and longitudes swapped": (
        rows("40.7,-73.9", "40.8,-74", header="lon,lat"), CITY, 3, "--lonlat lat,lon"),
    "latitudes beyond the pole": (
        rows("-73.9,140.7", header="lon,lat"), CITY, 3, "not a longitude and a latitude"),
    "metres as degrees": (
        rows("583960,4507523", header="lon,lat"), CITY, 3, "not a longitude and a latitude"),
    "no times": (times("soon", "later"), TIME, 3, "when is not a time"),
    "American dates": (times("01/13/2026"), TIME, 3, "--time-format"),
    "mixed offsets": (times("2026-01-05T10:00+01:00", "2026-01-06 10:00"), TIME, 3, "no UTC off"),
    "small numbers as times": (times("3", "4"), TIME, 3, "--time-unit and --origin"),
    "times of another year": (times("2020-01-01", "2020-02-01"), TIME, 3, "outside the obs"),
    "impossible dates": (times("2026-02-30", "2026-13-01"), TIME, 3, "when is not a time"),
}  # fmt: skip

# name: command, exit code, what the sentence says
WORDS = {
    "a file that is not there": ("fit nowhere.csv --columns x,y", 3, "does not exist"),
    "a folder of other tables": ("fit . --columns x,y", 3, "column 'y' is not in"),
    "no column at all": ("fit good.csv", 2, "--columns"),
    "no window": ("fit good.csv --columns x,y", 2, "--window 0,0,0.9,0.95"),
    "no observation period": (
        "fit stamps.csv --time when", 2, "Missing --from and --to: when events could have occurred "
        "is never inferred. Your data span --from 2026-01-03T10:00:00 --to 2026-01-04T11:01:00"),
    "neither a window nor a period": (
        "fit calls.csv --columns x --time when --from 2026-01-01", 2, "Missing --window, --from "
        "and --to: where and when events could have occurred is never inferred. Your data span "
        "--window=-2,7 --from 2026-01-03T10:00:00 --to 2026-01-08T12:00:00"),
    "half a window": ("fit good.csv --columns x,y --window 0,1", 2, "4 numbers"),
    "a window of text": ("fit good.csv --columns x,y --window a,b", 2, "numbers"),
    "a window upside down": ("fit good.csv --columns x,y --window 1,1,0,0", 2, "low"),
    "a window without area": ("fit good.csv --columns x,y --window 0,0,0,1", 2, "low"),
    "an infinite window": ("fit good.csv --columns x,y --window 0,0,inf,1", 2, "finite"),
    "window and polygon": (
        "fit good.csv --columns x,y --window 0,0,1,1 --within halves.geojson", 2, "not both"),
    "four columns": (
        "fit good.csv --columns x,y,x,y --window 0,0,0,0,1,1,1,1", 2,
        "--columns must be at most three, got x, y, x, y."),
    "three columns and times": (
        "fit calls.csv --columns x,x,x --window 0,0,0,1,1,1 --time when --from 2026-01-01 "
        "--to 2026-02-01", 2, "at most two beside a column of times, got x, x, x."),
    "a cycle without times": ("fit good.csv --columns x --window 0,1 --cycle day", 2, "--time"),
    "an unknown cycle": ("fit good.csv --time x --cycle month", 2, "month"),
    "an exposure of nothing": ("fit good.csv --columns x --window 0,1 --exposure 0", 2, "positive"),
    "an exposure of words": ("fit good.csv --columns x --window 0,1 --exposure long", 2, "like"),
    "an unknown zone": (
        "fit stamps.csv --time when --from 2026-01-01 --to 2026-02-01 --timezone Mars", 2, "Mars"),
    "time that ends before it begins": (
        "fit stamps.csv --time when --from 2026-02-01 --to 2026-01-01", 2, "after --from"),
    "a date that is none": ("fit stamps.csv --time when --from soon --to 2026-01-01", 2, "--from"),
    "a share above one": ("fit good.csv --columns x,y --window 0,0,1,1 --holdout 3", 2, "holdout"),
    "no folder for the model": (
        "fit good.csv --columns x,y --window 0,0,1,1 -o nowhere/m.hplus", 5, "does not exist"),
    "a folder as model": ("fit good.csv --columns x,y --window 0,0,1,1 -o .", 5, "folder"),
    "a model that is not there": ("info nowhere.hplus", 4, "does not exist"),
    "text as model": ("info good.csv", 4, "cannot be loaded"),
    "half a model": ("expect torn.hplus --grid 2x2", 4, "cannot be loaded"),
    "a changed model": ("expect changed.hplus --grid 2x2", 4, "cannot be loaded"),
    "polygons that are not there": ("expect plane.hplus --regions no.geojson", 3, "not a file"),
    "a grid of words": ("expect plane.hplus --grid wide", 2, "20x20"),
    "a grid of three numbers": ("expect plane.hplus --grid 5x5x5", 2, "2 numbers"),
    "a picture of no grid": ("expect plane.hplus -o map.tif", 2, "needs --grid"),
    "a picture on the screen": ("expect plane.hplus --grid 2x2 --format tif", 2, "-o map.tif"),
    "a picture of a line": ("expect line.hplus --grid 4 -o map.TIF", 2, "two columns"),
    "two formats": ("expect plane.hplus --grid 2x2 --json --format geojson", 2, "not both"),
    "a grid of none": ("expect plane.hplus --grid 0x5", 2, "at least 1"),
    "a grid beyond measure": ("expect plane.hplus --grid 99999x99999", 2, "at most"),
    "grid and regions": ("expect plane.hplus --grid 2x2 --regions halves.geojson", 2, "not both"),
    "polygons on a line": ("expect line.hplus --regions halves.geojson", 2, "two columns"),
    "days of trials": ("expect line.hplus --for 7d", 2, "trial"),
    "a level of two": ("expect plane.hplus --level 2", 2, "between 0 and 1"),
    "a look ahead without times": ("expect plane.hplus --from 2026-01-01", 2, "fit with --time."),
    "a name that is no property": (
        "expect plane.hplus --regions halves.geojson --name-field beat", 3, "no property"),
    "points in other columns": ("predict plane.hplus line.csv", 3, "'x' is not in"),
    "points all outside": ("predict plane.hplus far.csv", 3, "none of the 2 rows"),
    "no patterns": ("sample plane.hplus --paths 0", 2, "at least 1"),
    "events of another kind": ("check plane.hplus line.csv", 3, "'x' is not in"),
    "an unknown data set": ("data moon", 2, "moon"),
    "an unknown command": ("fly", 2, "fly"),
}  # fmt: skip

# name: contents of a file of polygons, what the sentence says
POLYGONS = {
    "a point": (geo(type="Point", coordinates=[0, 0]), "got Point"),
    "a line": (geo(type="LineString", coordinates=[[0, 0], [1, 1]]), "got LineString"),
    "no geometry": (geo(), "got None"),
    "two corners": (geo(type="Polygon", coordinates=[[[0, 0], [1, 1]]]), "three points"),
    "corners of text": (geo(type="Polygon", coordinates=[[["a", "b"]] * 4]), "three points"),
    "no polygons": ('{"type": "FeatureCollection", "features": []}', "no polygon"),
    "a polygon that crosses itself": (
        geo(type="Polygon", coordinates=[[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]), "cross"),
    "JSON that ends early": ('{"type": "Feature', "not GeoJSON"),
    "a number": ("[7]", "Polygon"),
    "a table of other columns": ("a,b,c,d\n1,2,3,4\n", "GeoJSON"),
    "vertices of text": ("x,y\na,b\nc,d\ne,f\n", "numbers for every vertex"),
    "parts that overlap": (geo(type="MultiPolygon", coordinates=[SQUARE, SQUARE]), "overlap"),
}  # fmt: skip


@pytest.fixture
def bad(folder, kept):
    """A folder with good and bad files, and what is in it."""
    for file in kept.iterdir():
        shutil.copy(file, folder)
    (folder / "good.csv").write_text(GOOD)
    (folder / "far.csv").write_text("x,y\n7,7\n8,8\n")
    (folder / "calls.csv").write_text("when,x\n2026-01-03 10:00,-2\n2026-01-08 11:00,7\n")
    (folder / "stamps.csv").write_text("when\n2026-01-03 10:00\n2026-01-04 11:00\n")
    whole = (folder / "plane.hplus").read_bytes()
    (folder / "torn.hplus").write_bytes(whole[: len(whole) // 2])
    middle = len(whole) // 2
    (folder / "changed.hplus").write_bytes(
        whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    )
    return folder


def one_sentence(result, said):
    """Is the error one line that says something?"""
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    assert len(lines) == 1 or "Usage:" in result.stderr, result.stderr
    assert said in " ".join(result.stderr.split()), result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_refused_in_one_sentence_and_nothing_is_written(name, bad, run):
    contents, command, code, said = FILES[name]
    (bad / "bad.csv").write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    before = sorted(os.listdir(bad))
    one_sentence(run(*command.split(), code=code), said)
    assert sorted(os.listdir(bad)) == before


@pytest.mark.parametrize("name", WORDS)
def test_words_that_cannot_be_carried_out_are_refused_in_one_sentence(name, bad, run):
    command, code, said = WORDS[name]
    before = sorted(os.listdir(bad))
    assert code in CODES
    one_sentence(run(*command.split(), code=code), said)
    assert sorted(os.listdir(bad)) == before


@pytest.mark.parametrize("name", POLYGONS)
def test_polygons_that_are_none_are_refused_in_one_sentence(name, bad, run):
    contents, said = POLYGONS[name]
    (bad / "bad.geojson").write_text(contents)
    command = "fit good.csv --columns x,y --within bad.geojson --holdout 0 -o out.hplus"
    result = run(*command.split(), code=2 if "cross" in said or "overlap" in said else 3)
    one_sentence(result, said)
    assert not (bad / "out.hplus").exists()


GOOD_FILES = {
    "a byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "semicolons": GOOD.replace(",", ";").encode(),
    "tabs": GOOD.replace(",", "\t").encode(),
    "decimal commas": GOOD.replace(",", ";").replace(".", ",").encode(),
    "Windows line ends": GOOD.replace("\n", "\r\n").encode(),
    "quoted cells": "".join(
        ",".join(f'"{cell}"' for cell in line.split(",")) + "\n" for line in GOOD.splitlines()
    ).encode(),
    "spaces around": GOOD.replace(",", " , ").encode(),
    "other columns in Latin-1": GOOD.replace("\n", ",caf\xe9\n").encode("latin-1"),
    "gzip": gzip.compress(GOOD.encode()),
    "JSON lines": "".join(
        json.dumps(dict(zip("xy", map(float, line.split(",")), strict=True))) + "\n"
        for line in ROWS.splitlines()
    ).encode(),
    "no newline at the end": GOOD.rstrip().encode(),
    "a line of 10 MB after it": GOOD.encode() + b"1" * 10_000_000 + b"\n",
    "another column twice": GOOD.replace("x,y", "x,y,y")
    .replace("\n", ",1\n")
    .replace("y,1", "y")
    .encode(),
}


@pytest.mark.parametrize("name", GOOD_FILES)
def test_files_in_any_format_give_the_same_events(name, folder, run, coarsely):
    (folder / "dressed.csv").write_bytes(GOOD_FILES[name])
    with coarsely():
        found = run(
            *["fit", "dressed.csv", "--columns", "x", "--window", "0,1", "--holdout", "0", "--json"]
        )
    said = json.loads(found.stdout)
    assert said["events"] == 60
    assert said["dropped"] == ({"line longer than 1 MB": 1} if "10 MB" in name else {})


def test_one_bad_cell_costs_one_row_and_is_said(folder, run):
    (folder / "some.csv").write_text(rows("oops,0.5", ",0.5", "7,7", "0.5", keep=60))
    words = "fit some.csv --columns x --window 0,1 --holdout 0 --json"
    said = json.loads(run(*words.split()).stdout)
    assert said["events"] == 60
    assert said["dropped"] == {"x is not a number": 1, "no x": 1, "broken line": 1}
    assert said["left_out"] == {"outside the window": 1}


def test_a_file_without_permission_is_refused(bad, run, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("hplus.files.feeds.open", refuse, raising=False)
    one_sentence(run(*PLANE.replace("bad", "good").split(), code=3), "permission denied")


@pytest.mark.parametrize("failing", ["_write", "_sync", "_rename"])
def test_a_full_disk_leaves_the_old_model_as_it_was(failing, bad, run, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "plane.hplus")

    before = (bad / "plane.hplus").read_bytes()
    names = sorted(os.listdir(bad))
    monkeypatch.setattr(f"hplus.storage.files.{failing}", full)
    words = "fit line.csv --columns t --window 0,10 --holdout 0 -o plane.hplus"
    one_sentence(run(*words.split(), code=5), "no space left")
    assert (bad / "plane.hplus").read_bytes() == before
    assert sorted(os.listdir(bad)) == names


def test_there_are_at_least_sixty_cases():
    assert len(FILES) + len(WORDS) + len(POLYGONS) >= 60
    assert np.isin([1, 2, 3, 4, 5, 6, 7, 130], list(CODES)).all()
