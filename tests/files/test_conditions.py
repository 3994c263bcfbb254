"""Conditions on rows: the same rows whatever the table is, and one sentence for what is wrong."""

import json
from contextlib import suppress
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from hplus.files.conditions import Condition, Tally
from hplus.files.feeds import TableError
from hplus.files.tables import as_table

RNG = np.random.default_rng(3)
N = 200
NUMBERS = [None if u < 0.1 else round(float(x), 2) for u, x in RNG.uniform(size=(N, 2)) * [1, 10]]
WORDS = [
    None if u < 0.1 else w
    for u, w in zip(RNG.uniform(size=N), RNG.choice(["a", "b", "it is"], N), strict=True)
]
DAYS = [
    datetime(2020, 1, 1 + int(d), int(h))
    for d, h in zip(RNG.integers(0, 28, N), RNG.integers(0, 24, N), strict=True)
]
FLAGS = [bool(u < 0.5) for u in RNG.uniform(size=N)]
TABLE = pa.table({"mag": NUMBERS, "place": WORDS, "day": DAYS, "odd name": FLAGS,
                  "row": list(range(N))})  # fmt: skip


def as_csv(path):
    rows = ["mag,place,day,odd name,row"]
    rows += [
        ",".join("" if c is None else str(c) for c in row.values()) for row in TABLE.to_pylist()
    ]
    (path / "t.csv").write_text("\n".join(rows) + "\n")
    return str(path / "t.csv")


def as_json_lines(path):
    rows = (json.dumps(row | {"day": str(row["day"])}) for row in TABLE.to_pylist())
    (path / "t.json").write_text("\n".join(rows) + "\n")
    return str(path / "t.json")


def as_parquet(path):
    parquet.write_table(TABLE, path / "t.parquet", row_group_size=30)
    return str(path / "t.parquet")


DRESSES = {
    "csv": as_csv,
    "json lines": as_json_lines,
    "parquet": as_parquet,
    "arrow": lambda _: TABLE,
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "dict": lambda _: {name: TABLE[name].to_pylist() for name in TABLE.column_names},
}


@pytest.fixture(scope="module")
def dressed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dressed")
    return {name: dress(folder) for name, dress in DRESSES.items()}


def rows_where(source, text):
    table = as_table(source)
    found = [
        int(v) for c in table.chunks(["row"], Condition(text)) for v in c.columns["row"].to_pylist()
    ]
    return found, table


def holds(text, row):
    """Python's own answer, None if a cell that decides is missing."""
    mag, place, day, flag = row["mag"], row["place"], row["day"], row["odd name"]
    small, is_a = None if mag is None else mag < 2.5, None if place is None else place == "a"
    large, not_b = None if mag is None else mag >= 5, None if place is None else place != "b"
    return {
        "mag >= 5": None if mag is None else mag >= 5,
        "mag < 2.5 or place == 'a'": _either(small, is_a),
        "not (mag < 5) and place != 'b'": _both(large, not_b),
        "place in ['a', 'it is']": None if place is None else place in ("a", "it is"),
        "place not in (\"a\")": None if place is None else place != "a",
        "2 <= mag < 4": None if mag is None else 2 <= mag < 4,
        "5 > mag": None if mag is None else mag < 5,
        "mag is null": mag is None,
        "place is not null and mag IS NULL": place is not None and mag is None,
        "day >= '2020-01-10 06:00' and day < '2020-01-20'":
            datetime(2020, 1, 10, 6) <= day < datetime(2020, 1, 20),
        "`odd name` == true": flag,
        "`odd name` != TRUE or mag == 1e1": _either(not flag, None if mag is None else mag == 10),
        "mag in [1.5, 2, 3.25] or mag > -1": None if mag is None else True,
    }[text]  # fmt: skip


def _either(a, b):
    return True if a or b else None if None in (a, b) else False


def _both(a, b):
    return False if a is False or b is False else None if None in (a, b) else True


TEXTS = [
    "mag >= 5", "mag < 2.5 or place == 'a'", "not (mag < 5) and place != 'b'",
    "place in ['a', 'it is']", 'place not in ("a")', "2 <= mag < 4", "5 > mag", "mag is null",
    "place is not null and mag IS NULL", "day >= '2020-01-10 06:00' and day < '2020-01-20'",
    "`odd name` == true", "`odd name` != TRUE or mag == 1e1", "mag in [1.5, 2, 3.25] or mag > -1",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_every_kind_of_table_has_the_rows_that_python_finds(text, dressed):
    wanted = [row["row"] for row in TABLE.to_pylist() if holds(text, row)]
    assert 0 < len(wanted) < N
    for dress, source in dressed.items():
        found, table = rows_where(source, text)
        assert found == wanted, dress
        assert table.left_out == {f"not where {text}": N - len(wanted)}, dress
        assert table.dropped == {}


def test_rows_of_parquet_that_are_left_out_are_not_even_decoded(dressed, monkeypatch):
    text, seen = "row >= 170 and mag >= 0", []
    inner = Condition.chosen
    monkeypatch.setattr(
        Condition,
        "chosen",
        lambda self, chunk, tally, **k: (seen.append(len(chunk)), inner(self, chunk, tally, **k))[
            1
        ],
    )
    found, _ = rows_where(dressed["parquet"], text)
    assert sum(seen) == len(found) < 40
    seen.clear()
    assert rows_where(dressed["csv"], text)[0] == found
    assert sum(seen) == N


def test_the_rows_that_are_given_are_numbered_without_the_others(dressed, monkeypatch):
    from hplus.files import parquet as parquet_files
    from hplus.files import tables, typed_tables

    monkeypatch.setattr(tables, "BLOCK_BYTES", 500)
    monkeypatch.setattr(typed_tables, "ROWS_AT_ONCE", 20)
    monkeypatch.setattr(parquet_files, "ROWS_AT_ONCE", 20)
    for source in dressed.values():
        chunks = list(as_table(source).chunks(["row"], Condition("mag >= 5")))
        assert [c.first for c in chunks] == np.cumsum([0, *map(len, chunks)])[:-1].tolist()


def test_a_cell_that_cannot_be_read_costs_its_row_unless_the_rest_decides(tmp_path):
    (tmp_path / "t.csv").write_text("mag,place,row\n5,a,0\nx,a,1\nx,b,2\n1,b,3\n,b,4\n")
    found, table = rows_where(str(tmp_path / "t.csv"), "mag >= 3 and place == 'a'")
    assert found == [0]
    assert table.dropped == {"mag is not a number": 1}
    assert table.left_out.total() == 3
    found, table = rows_where(str(tmp_path / "t.csv"), "mag >= 3 or place == 'a'")
    assert found == [0, 1]
    assert table.dropped == {"mag is not a number": 1}


def test_times_with_an_offset_are_compared_on_the_clock_of_the_zone(tmp_path):
    stamps = pa.array(
        [datetime(2020, 6, 30, 22, 30), datetime(2020, 6, 30, 21, 30)], pa.timestamp("us", "UTC")
    )
    parquet.write_table(pa.table({"at": stamps, "row": [0, 1]}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("at,row\n2020-06-30T22:30Z,0\n2020-06-30T21:30Z,1\n")
    for name in ("t.parquet", "t.csv"):
        for zone, wanted in (("UTC", []), ("Europe/Paris", [0])):
            chunks = as_table(str(tmp_path / name)).chunks(
                ["row"], Condition("at >= '2020-07-01'", zone)
            )
            assert [int(v) for c in chunks for v in c.columns["row"].to_pylist()] == wanted, (
                name,
                zone,
            )


def test_times_of_a_column_with_a_format_are_compared_as_times(tmp_path):
    (tmp_path / "t.csv").write_text("at,row\n03/04/2026,0\n12/01/2025,1\n")
    condition = Condition("at >= '2026-01-01'", time="at", form="%m/%d/%Y")
    chunks = list(as_table(str(tmp_path / "t.csv")).chunks(["row"], condition))
    assert [len(c) for c in chunks] == [1]


def test_both_conditions_hold_where_each_of_them_does(dressed):
    a, b = Condition("mag >= 5 or place == 'a'"), Condition("place == 'a' or mag < 1")
    both = set(rows_where(TABLE, a.also(b).text)[0])
    assert both == set(rows_where(TABLE, a.text)[0]) & set(rows_where(TABLE, b.text)[0])


BAD = {
    "nothing": ("  ", r"must be a condition such as"),
    "one sign": ("mag = 5", "compares with =="),
    "another one": ("mag <> 5", "compares with !="),
    "no value": ("mag >=", "number or a quoted text at the end of 'mag >='"),
    "no comparison": ("mag 5", "comparison such as == or >= after mag, got '5'"),
    "a column alone": ("mag", "comparison such as"),
    "text without quotes": ("place in [north]", "write text as 'north'"),
    "a date without quotes": ("day >= 2020-01-01", "write '2020-01-01'"),
    "an open quote": ("place == 'a", "close every quote"),
    "an open bracket": ("(mag > 1", r"closing \)"),
    "a bracket too many": ("mag > 1)", "and or or between two conditions, got"),
    "an empty list": ("mag in []", "number or a quoted text"),
    "no list": ("mag in 5", r"list such as \[1, 2\]"),
    "a mixed list": ("mag in [1, 'a']", "values of one kind"),
    "null compared": ("mag == null", "is null"),
    "arithmetic": ("mag + 1 > 5", "knows columns"),
    "a function": ("abs(mag) > 1", "comparison such as"),
    "a call of Python": ("__import__('os').system('x')", "knows columns"),
    "an attribute": ("mag.__class__ == 'a' ; x", "knows columns"),
    "a sign of nothing": ("mag & 5", "joins conditions with and, got & in"),
    "two values": ("1 < 2", "a column, got '2'"),
    "brackets without end": ("(" * 200 + "mag > 1" + ")" * 200, "nest at most"),
    "a long text": ("mag > 1 or " * 2000 + "mag > 1", "characters"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "pattern"), BAD.values(), ids=BAD)
def test_a_bad_condition_is_refused_in_one_sentence(text, pattern):
    with pytest.raises(ValueError, match=pattern) as caught:
        Condition(text)
    said = str(caught.value)
    assert said.startswith("where")
    assert said.count("\n") == 0
    assert len(said) < 300


WRONG_KINDS = {
    "text against a number": (
        "place >= 5",
        "'place' of .* must hold numbers .* 5, got '.* in place >= '5'",
    ),
    "a number against text": ("row == 'a'", "'row' of .* must hold text .* 'a', got"),
    "text against a time": ("place > '2020-01-01'", "'place' of .* must hold times"),
    "the order of numbers against text": ("mag > '10'", "'mag' .* leave out the quotes around a"),
    "a number against true": ("mag == true", "'mag' of .* must hold true or false"),
    "an unknown column": ("magnitude > 5", "'magnitude' is not in"),
    "a misspelt column": ("plaice == 'a'", "did you mean 'place'"),
}


@pytest.mark.parametrize(("text", "pattern"), WRONG_KINDS.values(), ids=WRONG_KINDS)
@pytest.mark.parametrize("dress", ["csv", "parquet", "polars"])
def test_a_column_of_another_kind_is_refused(text, pattern, dress, dressed):
    if (dress, text) == ("csv", "row == 'a'"):  # cells of CSV are text
        return
    with pytest.raises(TableError, match=pattern):
        rows_where(dressed[dress], text)


@given(st.text(max_size=40))
@settings(max_examples=80, deadline=None)
def test_any_text_is_a_condition_or_a_value_error(text):
    with suppress(ValueError):  # no other error
        assert Condition(text).columns


def test_categories_decimals_and_other_types_are_read_as_what_they_stand_for():
    frame = pd.DataFrame(
        {
            "c": pd.Categorical(["a", "b", "a"]),
            "x": pd.array([1, None, 3], "Int64"),
            "row": [0, 1, 2],
        }
    )
    assert rows_where(frame, "c == 'a'")[0] == [0, 2]
    assert rows_where(frame, "x is null")[0] == [1]
    assert rows_where(
        pl.DataFrame(frame).with_columns(pl.col("c").cast(pl.Categorical)), "c != 'a'"
    )[0] == [1]


def test_only_columns_that_are_asked_for_are_converted():
    frame = pd.DataFrame({"row": [0, 1], "mixed": [{"a": 1}, "text"]})
    assert rows_where(frame, "row >= 1")[0] == [1]
    with pytest.raises(TableError, match="column 'mixed' must hold values of one type"):
        list(as_table(frame).chunks(["mixed"]))


@pytest.mark.parametrize("source", [5, None, [1, 2], np.zeros((3, 2)), b"x"])
def test_what_is_no_table_is_refused(source):
    with pytest.raises(TypeError, match="must be the path of a file, a data frame"):
        as_table(source)


def test_columns_of_a_dict_must_be_equally_long_and_named_by_text():
    with pytest.raises(TableError, match="same number of rows"):
        list(as_table({"a": [1, 2], "b": [1]}).chunks(["a", "b"]))
    with pytest.raises(TypeError, match="text as names"):
        as_table(pd.DataFrame(np.zeros((2, 2))))


def test_chosen_rows_are_tallied_once():
    tally = Tally()
    (chunk,) = as_table(TABLE).chunks(TABLE.column_names)
    kept = Condition("mag >= 5").chosen(chunk, tally)
    assert len(kept) + tally.left_out.total() == N
