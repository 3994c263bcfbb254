"""Tables in files: whatever the dress, the same rows, and chunks of any size."""

from __future__ import annotations

import bz2
import gzip
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hplus.tables import source
from hplus.tables.cells import numbers
from hplus.tables.source import TableError, open_table

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
    return np.concatenate([numbers(c.columns[name], c.comma).values for c in chunks])


@pytest.mark.parametrize("dress", DRESSES)
def test_a_column_is_the_same_in_every_dress(dress, tmp_path):
    path = tmp_path / "table"
    DRESSES[dress](path)
    np.testing.assert_array_equal(read(path, "b"), VALUES[:, 1])


@pytest.mark.parametrize("dress", ["csv", "json lines", "parquet"])
def test_chunks_of_any_size_hold_the_same_rows(dress, tmp_path, monkeypatch):
    path = tmp_path / "table"
    DRESSES[dress](path)
    monkeypatch.setattr(source, "BLOCK", 1000)
    monkeypatch.setattr(source, "LINES", 7)
    chunks = list(open_table(str(path)).chunks(["a"]))
    assert len(chunks) > 3
    assert [chunk.first for chunk in chunks] == np.cumsum([0, *map(len, chunks)])[:-1].tolist()
    np.testing.assert_array_equal(read(path, "a"), VALUES[:, 0])


def test_broken_lines_are_skipped_and_counted(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3\n4,5,6\n7,8\n")
    table = open_table(str(path))
    assert sum(map(len, table.chunks(["a"]))) == 2
    assert table.broken == 2


def test_a_missing_column_is_refused_with_the_nearest_name(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("longitude,latitude\n1,2\n")
    with pytest.raises(TableError, match="did you mean 'longitude'"):
        open_table(str(path)).require("longitud")
