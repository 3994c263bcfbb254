"""Two columns compared with each other: as numbers, times or text, the same in every table."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from hplus.files.conditions import Condition, Tally
from hplus.files.feeds import TableError
from hplus.files.tables import as_table

ROWS = [
    {"a": 1.5, "b": 2.0, "home": "x", "won": "x", "start": "2020-01-02", "end": "2020-01-03"},
    {"a": 2.0, "b": 2.0, "home": "x", "won": "y", "start": "2020-01-02", "end": "2020-01-01"},
    {"a": None, "b": 2.0, "home": None, "won": "y", "start": None, "end": "2020-01-01"},
    {"a": 10.0, "b": 9.0, "home": "y", "won": "y", "start": "2020-03-01", "end": "2021-01-01"},
]
CONDITIONS = {
    "a < b": [0],
    "a >= b": [1, 3],
    "not a < b": [1, 3],
    "home == won": [0, 3],
    "home != won": [1],
    "start < end": [0, 3],
    "a < b or home is null": [0, 2],
    "5 < a and `a` > b": [3],
}


def of_csv(path):
    lines = [",".join(ROWS[0])]
    lines += [",".join("" if c is None else str(c) for c in row.values()) for row in ROWS]
    (path / "t.csv").write_text("\n".join(lines) + "\n")
    return str(path / "t.csv")


def of_json(path):
    (path / "t.json").write_text("\n".join(map(json.dumps, ROWS)) + "\n")
    return str(path / "t.json")


def with_times():
    frame = pd.DataFrame(ROWS)
    return frame.assign(start=pd.to_datetime(frame["start"]), end=pd.to_datetime(frame["end"]))


def of_parquet(path):
    table = pa.Table.from_pandas(with_times(), preserve_index=False)
    parquet.write_table(table, path / "t.parquet", row_group_size=2)
    return str(path / "t.parquet")


SOURCES = {
    "csv": of_csv,
    "json": of_json,
    "parquet": of_parquet,
    "pandas": lambda _: with_times(),
    "polars": lambda _: pl.DataFrame(ROWS),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_the_same_rows_are_meant_whatever_the_table_is(source, tmp_path):
    made = source(tmp_path)
    for text, expected in CONDITIONS.items():
        condition, table = Condition(text), as_table(made)
        found = [v for c in table.chunks(["b", "won"], condition) for v in c.columns["won"]]
        assert [str(v) for v in found] == [ROWS[i]["won"] for i in expected], text
        assert not table.dropped


def test_cells_that_are_not_alike_cost_the_row():
    table = as_table({"a": ["1", "x", "2020-01-01", "y"], "b": ["2", "2", "2020-01-02", "y"]})
    assert sum(map(len, table.chunks(["a"], Condition("a < b")))) == 2
    assert table.dropped == {"a and b are not alike": 2}
    assert sum(map(len, table.chunks(["a"], Condition("a == b")))) == 1
    assert not table.dropped


def test_large_whole_numbers_are_told_apart():
    ids = np.array([2**60, 2**60 + 1, 7])
    table = as_table({"a": ids, "b": ids + np.array([1, 0, 0])})
    assert sum(map(len, table.chunks(["a"], Condition("a == b")))) == 2


def test_every_row_is_either_chosen_or_tallied():
    table = as_table(pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [2.0, 2.0, 2.0]}))
    tally = Tally()
    chunk = next(table.chunks(["a", "b"]))
    assert len(Condition("a < b").chosen(chunk, tally)) == 1
    assert tally.left_out == {"not where a < b": 2}


def test_text_without_quotes_is_no_column():
    table = as_table({"place": ["north", "south"]})
    with pytest.raises(TableError, match="write text as 'north'") as caught:
        list(table.chunks(["place"], Condition("place == north")))
    assert len(str(caught.value)) < 300
