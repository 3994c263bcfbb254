"""What cells mean."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hplus.files.cells import numbers, texts
from hplus.files.commas import with_points
from hplus.files.times import Zone, times

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_are_read_as_python_writes_them(values):
    cells = numbers(pa.array([repr(v) for v in values]))
    np.testing.assert_array_equal(cells.values, values)
    assert not cells.missing.any()
    assert not cells.wrong.any()


@given(st.lists(st.one_of(st.none(), st.text(max_size=8)), min_size=1))
def test_any_text_is_a_number_or_missing_or_wrong_and_only_one_of_them(values):
    cells = numbers(pa.array(values, pa.string()))
    kinds = np.isfinite(cells.values).astype(int) + cells.missing + cells.wrong
    np.testing.assert_array_equal(kinds, 1)


def test_one_wrong_cell_leaves_the_others_as_they_are():
    cells = numbers(pa.array(["1.5", "oops", None, "2.5", " 3 ", "inf", "1_000"]))
    np.testing.assert_array_equal(cells.values[[0, 3, 4]], [1.5, 2.5, 3.0])
    assert cells.wrong.tolist() == [False, True, False, False, False, True, True]
    assert cells.missing.tolist() == [False, False, True, False, False, False, False]


def test_a_comma_is_decimal_only_if_its_column_says_so():
    column = pa.array(["999", "1,036", "2,5"])
    assert numbers(column).wrong.tolist() == [False, True, True]
    assert numbers(with_points(column)).wrong.tolist() == [False, True, False]
    assert numbers(with_points(column, settled=True)).values.tolist() == [999.0, 1.036, 2.5]


def test_nulls_of_binary_files_are_missing_and_not_wrong():
    cells = numbers(pa.array([1.5, None, float("nan"), float("inf")]))
    assert cells.missing.tolist() == [False, True, True, False]
    assert cells.wrong.tolist() == [False, False, False, True]


SPELLINGS = {
    "ISO": "2026-11-16 12:00",
    "T": "2026-11-16T12:00:00",
    "seconds": str(int(NOON)),
    "milliseconds": str(int(NOON * 1e3)),
    "points": "16.11.2026 12:00",
    "slashes": "2026/11/16 12:00:00",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_same_moment_in_every_spelling(spelling):
    found = times(pa.array([SPELLINGS[spelling], None]), "UTC")
    assert found.seconds[0] == NOON
    assert found.missing.tolist() == [False, True]
    assert found.zone is (Zone.AWARE if "seconds" in spelling else Zone.NAIVE)


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_one_bad_cell_in_a_column_of_times_since_1970_costs_one_row(unit):
    seconds = int(NOON) + 3600 * np.arange(200)
    found = times(pa.array([*(str(s * unit) for s in seconds.tolist()), "oops", "1e300"]), "UTC")
    np.testing.assert_array_equal(found.seconds[:200], seconds)
    assert np.flatnonzero(found.wrong).tolist() == [200, 201]
    assert found.zone is Zone.AWARE


def test_one_bad_cell_in_a_column_of_dates_costs_one_row():
    found = times(pa.array(["20261116"] * 7 + ["20261399", "oops", "7", "0", None]), "UTC")
    np.testing.assert_array_equal(found.seconds[:7], NOON - 43200)
    assert np.flatnonzero(found.wrong).tolist() == [7, 8, 9, 10]
    assert np.flatnonzero(found.missing).tolist() == [11]


def test_a_number_among_dates_is_not_one_of_the_year_1702():
    cells = ["2026-11-16", "16.11.2026", "1702010101212", "20261116"]
    found = times(pa.array(cells), "UTC")
    assert found.aware.tolist() == [False, False, True, False]
    assert found.zone is Zone.NAIVE
    np.testing.assert_array_equal(found.seconds[~found.aware], NOON - 43200)


def test_seconds_since_1970_are_put_on_the_clock_of_the_zone_too():
    found = times(pa.array([int(NOON), None]), "America/New_York").seconds
    assert found[0] == NOON - 5 * 3600
    assert np.isnan(found[1])


def test_times_with_an_offset_are_put_on_the_clock_of_the_zone():
    found = times(pa.array(["2026-11-16T12:00:00Z", "2026-07-16T12:00:00+00:00"]), "Europe/Paris")
    hours = found.seconds % 86400 / 3600
    np.testing.assert_array_equal(hours, [13.0, 14.0])  # winter, summer
    assert found.zone is Zone.AWARE


def test_binary_times_and_dates_are_read_too():
    stamps = pa.array([datetime(2026, 11, 16, 12)], pa.timestamp("ms"))
    assert times(stamps, "UTC").seconds.tolist() == [NOON]
    assert times(stamps.cast(pa.date32()), "UTC").seconds.tolist() == [NOON - 43200]
    assert times(pa.array([20261116]), "UTC").seconds.tolist() == [NOON - 43200]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Paris"])
def test_binary_times_are_read_in_every_unit_with_and_without_a_zone(unit, zone):
    odd = unit == "ns"  # a nanosecond that microseconds cannot hold
    ticks = int(NOON) * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit] + odd
    stamps = pa.array([ticks, None], pa.int64()).cast(pa.timestamp(unit, zone))
    assert times(stamps, "UTC").seconds[0] == NOON
    assert times(stamps, "Europe/Paris").seconds[0] == NOON + 3600 * (zone is not None)


def test_dates_that_can_be_read_in_two_ways_need_a_format():
    column = pa.array(["03/04/2026"])
    assert times(column, "UTC").wrong.tolist() == [True]
    april, march = (times(column, "UTC", f"%{a}/%{b}/%Y").seconds for a, b in ("dm", "md"))
    assert april - march == 31 * 86400 - 86400


def test_a_leap_second_is_the_second_after_it():
    after = datetime(2017, 1, 1, tzinfo=UTC).timestamp()
    spellings = ["2016-12-31 23:59:60", "2016-12-31T23:59:60Z", "2016/12/31 23:59:60"]
    spellings += ["2017-01-01T05:29:60+05:30", "2016-12-31 23:59:60.25"]
    found = times(pa.array(spellings), "UTC")
    np.testing.assert_array_equal(found.seconds, [after] * 4 + [after + 0.25])
    formatted = times(pa.array(["31.12.16 23:59:60"]), "UTC", "%d.%m.%y %H:%M:%S")
    assert formatted.seconds.tolist() == [after]
    assert times(pa.array(["2016-12-31 23:58:60", "2016-12-31 23:59:61"]), "UTC").wrong.all()


def test_texts_know_what_is_empty():
    assert texts(pa.array(["a ", "NA", None, "-", "0"])) == ["a", None, None, None, "0"]
