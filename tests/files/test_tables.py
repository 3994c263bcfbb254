"""Tables in files: whatever the dress, the same rows, and chunks of any size."""

from __future__ import annotations

import bz2
import gzip
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hplus.files import parquet as parquet_files
from hplus.files import tables
from hplus.files.cells import numbers
from hplus.files.feeds import TableError
from hplus.files.kinds import read_columns
from hplus.files.tables import open_table

VALUES = np.random.RandomState(0).normal(size=(500, 2)).round(6)
TEXT = "a,b\n" + "\n".join(f"{x!r},{y!r}" for x, y in VALUES.tolist()) + "\n"


def as_parquet(path):
    parquet.write_table(pa.table({"a": VALUES[:, 0], "b": VALUES[:, 1]}), path, row_group_size=77)


def as_lines(path):
    lines = (json.dumps({"b": y, "a": x, "c": None}) for x, y in VALUES.tolist())
    path.write_text("\n".join(lines))


def with_a_mark(path):
    as_lines(path)
    path.write_bytes(b"\xef\xbb\xbf\n" + path.read_bytes())


DRESSES = {
    "csv": lambda path: path.write_text(TEXT),
    "gzip": lambda path: path.write_bytes(gzip.compress(TEXT.encode())),
    "bz2": lambda path: path.write_bytes(bz2.compress(TEXT.encode())),
    "semicolons": lambda path: path.write_text(TEXT.replace(",", ";").replace(".", ",")),
    "json lines": as_lines,
    "json lines after a mark and a blank line": with_a_mark,
    "parquet": as_parquet,
}


def read(path, name):
    chunks = open_table(str(path)).chunks([name])
    return np.concatenate([numbers(c.as_numbers(name)).values for c in chunks])


@pytest.mark.parametrize("dress", DRESSES)
def test_a_column_is_the_same_in_every_dress(dress, tmp_path):
    path = tmp_path / "table"
    DRESSES[dress](path)
    np.testing.assert_array_equal(read(path, "b"), VALUES[:, 1])


@pytest.mark.parametrize("dress", ["csv", "json lines", "parquet"])
def test_chunks_of_any_size_hold_the_same_rows(dress, tmp_path, monkeypatch):
    path = tmp_path / "table"
    DRESSES[dress](path)
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(parquet_files, "ROWS_AT_ONCE", 7)
    chunks = list(open_table(str(path)).chunks(["a"]))
    assert len(chunks) > 3
    assert [chunk.first for chunk in chunks] == np.cumsum([0, *map(len, chunks)])[:-1].tolist()
    np.testing.assert_array_equal(read(path, "a"), VALUES[:, 0])


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_numbers_that_may_have_decimals_or_thousands_are_refused(delimiter, tmp_path):
    path = tmp_path / "table"
    for cells in (["1,234", "12,345"], ["999", "1,234"], ["1,234,567", "1,234"], ["1,234.5"]):
        path.write_text(delimiter.join("ab") + "\n" + "".join(f"{c}{delimiter}x\n" for c in cells))
        with pytest.raises(TableError, match=r"such as .1,234.* in column .a. .* two ways"):
            read(path, "a")


def test_one_comma_that_can_only_be_decimal_says_that_the_others_of_its_column_are(
    tmp_path, monkeypatch
):
    path = tmp_path / "table"
    for sure in ("0,5", "1,5", "1234,567", ",250", "2,5e-3"):
        path.write_text(f"a;b\n{sure};x\n" + "1,234;x\n" * 200 + "7;x\n")
        for block in (2**23, 500):
            monkeypatch.setattr(tables, "BLOCK_BYTES", block)
            want = [float(sure.replace(",", ".")), *[1.234] * 200, 7.0]
            np.testing.assert_array_equal(read(path, "a"), want)


def test_cells_stay_as_the_file_has_them_where_commas_are_decimal(tmp_path):
    path = tmp_path / "table"
    path.write_text("a;zone\n1,5;red, blue\n2,25;1,5\n3;green\n")
    table = open_table(str(path))
    (chunk,) = table.chunks(["a", "zone"])
    assert chunk.columns["a"].to_pylist() == ["1,5", "2,25", "3"]
    assert chunk.as_numbers("a").to_pylist() == ["1.5", "2.25", "3"]
    values = read_columns(table, ["a", "zone"]).values
    np.testing.assert_array_equal(values["a"], [1.5, 2.25, 3.0])
    assert list(values["zone"]) == ["red, blue", "1,5", "green"]


def test_a_column_of_text_may_hold_a_number_that_can_be_read_in_two_ways(tmp_path):
    path = tmp_path / "table"
    path.write_text("a;b\nred;1\nblue;2\n1,234;3\n")
    assert read_columns(open_table(str(path)), ["a"]).values["a"].tolist() == [
        "red",
        "blue",
        "1,234",
    ]


def test_broken_lines_are_skipped_and_counted(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3\n4,5,6\n7,8\n")
    table = open_table(str(path))
    assert sum(map(len, table.chunks(["a"]))) == 2
    assert table.dropped == {"broken line": 2}


def test_a_missing_column_is_refused_with_the_nearest_name(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("longitude,latitude\n1,2\n")
    with pytest.raises(TableError, match="did you mean 'longitude'"):
        open_table(str(path)).require("longitud")


@pytest.mark.parametrize("block", [7, 40, 2**23])
def test_a_quoted_cell_may_hold_line_breaks_and_a_stray_quote_costs_one_row(
    tmp_path, monkeypatch, block
):
    monkeypatch.setattr(tables, "BLOCK_BYTES", block)
    path = tmp_path / "notes.csv"
    path.write_bytes(
        b'a,note,b\r\n1,"two\r\nlines",10\r\n2,"three ""quoted""\n\nlines",20\n'
        b'3,plain,30\n4,"stray,40\n5,"one","50"\n6,"two\nin ","0"\n'
    )
    table = open_table(str(path))
    chunks = list(table.chunks(["a", "note"]))
    cells = {name: [str(x) for c in chunks for x in c.columns[name]] for name in ("a", "note")}
    assert cells["a"] == ["1", "2", "3", "5", "6"]
    assert cells["note"][:2] == ["two lines", 'three "quoted"  lines']
    assert dict(table.dropped) == {"broken line": 1}


def test_lines_that_end_with_a_carriage_return_alone_are_an_error(tmp_path):
    path = tmp_path / "old.csv"
    path.write_bytes(b"x,y\r1,2\r3,4\r")
    with pytest.raises(TableError, match="carriage returns alone"):
        open_table(str(path))
