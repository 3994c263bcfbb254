"""Each check passes what the rule allows, normalised, and refuses the rest in one sentence."""

import numpy as np
import pandas as pd
import pytest

from hplus import _checks
from hplus._checks import (
    as_floats,
    as_points,
    check_choice,
    check_columns,
    check_count,
    check_finite,
    check_fraction,
    check_memory,
    check_nonnegative,
    check_positive,
    check_random_state,
    check_scales,
    frozen_array,
)


@pytest.mark.parametrize(
    ("check", "given", "result"),
    [
        (check_positive, np.float32(2.0), 2.0),
        (check_positive, np.array(3), 3.0),
        (check_nonnegative, 0, 0.0),
        (check_fraction, 0.25, 0.25),
        (check_count, np.int32(3), 3),
        (check_scales, 2, 2.0),
        (check_scales, [1, 2.5], (1.0, 2.5)),
        (check_scales, np.array([1.0]), (1.0,)),
    ],
)
def test_a_good_number_comes_back_as_a_plain_one(check, given, result):
    checked = check("step", given)
    assert checked == result
    assert type(checked) is type(result)


REFUSED = {
    (check_positive, ValueError, "be a positive finite number"): [0, -1.0, np.inf, np.nan],
    (check_positive, TypeError, "be a positive finite number"): [
        "1",
        b"1",
        None,
        1j,
        [1.0, 2.0],
        True,
    ],
    (check_nonnegative, ValueError, "be a finite number of at least 0"): [-1, np.inf],
    (check_fraction, ValueError, "be a number between 0 and 1"): [0, 1, -0.5, np.nan],
    (check_count, ValueError, "be a whole number of at least 1"): [0, 1.0, True, "2", None],
    (check_scales, ValueError, "contain one number for each axis"): [[]],
}


@pytest.mark.parametrize(("check", "error", "rule"), REFUSED)
def test_a_bad_number_is_refused_with_its_name_the_rule_and_its_value(check, error, rule):
    for bad in REFUSED[check, error, rule]:
        with pytest.raises(error) as caught:
            check("step", bad)
        assert str(caught.value) == f"step must {rule}, got {bad!r}."


@pytest.mark.parametrize("seed", [-1, 1.5, "a", 2**32, True, np.random.default_rng(0)])
def test_a_random_state_that_is_none_is_refused(seed):
    with pytest.raises(ValueError, match=r"^random_state must be None, a whole number from 0 to 4"):
        check_random_state(seed)


def test_a_bad_number_among_scales_is_named():
    with pytest.raises(ValueError, match=r"every scale must be a positive finite number, got -2\."):
        check_scales("scale", [1.0, -2])


def test_a_choice_is_one_of_the_listed_names():
    assert check_choice("model", "exp", ["exp", "sos"]) == "exp"
    for bad in ("Exp", 1, None):
        with pytest.raises(ValueError, match=rf"model must be one of 'exp', 'sos', got {bad!r}\."):
            check_choice("model", bad, ["exp", "sos"])


def test_columns_are_distinct_whole_numbers_from_zero():
    assert check_columns(None) is None
    assert check_columns(2) == (2,)
    assert check_columns(np.array([2, 0])) == (2, 0)
    with pytest.raises(ValueError, match="distinct column numbers, counted from 0, got"):
        check_columns([1, 1])
    with pytest.raises(ValueError, match="every column must be a whole number of at least 0"):
        check_columns([-1])


@pytest.mark.parametrize("form", [list, np.float32, np.asfortranarray, pd.DataFrame])
def test_points_become_float64_rows(form):
    X = as_points("X", form([[1, 2], [3, 4]]), dimension=2)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, [[1.0, 2.0], [3.0, 4.0]])


def test_points_that_need_no_change_are_not_copied():
    X = np.ones((3, 2))
    assert as_points("X", X) is X


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            [1.0, 2.0],
            ValueError,
            r"X must have two dimensions, .* got shape \(2,\); use X\.reshape",
        ),
        ([[1.0, 2.0]], ValueError, r"X must have 1 column, got 2\."),
        ([["1"]], TypeError, r"X must contain only real numbers, got list\."),
        (
            np.array([["a"]], dtype=object),
            TypeError,
            "X must contain only real numbers, got object",
        ),
        (np.array([[1j]]), TypeError, "X must contain only real numbers, got complex128"),
        (
            np.array([["2020"]], "M8[Y]"),
            TypeError,
            "X must contain only real numbers, got datetime64",
        ),
        ([[1.0], [2.0, 3.0]], TypeError, "X must contain only real numbers, got list"),
    ],
)
def test_what_is_not_a_table_of_numbers_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        as_points("X", given, dimension=1)


def test_the_first_number_that_is_not_finite_is_located():
    assert check_finite("X", np.ones((2, 2))).shape == (2, 2)
    X = np.array([[1.0, 2.0], [3.0, np.nan], [np.inf, 0.0]])
    with pytest.raises(ValueError, match="got 2 NaN or inf, the first at row 1, column 1: drop"):
        check_finite("X", X)
    with pytest.raises(ValueError, match="got 1 NaN or inf, the first at row 2: drop"):
        check_finite("y", np.array([0.0, 1.0, -np.inf]))


def test_a_frozen_array_is_a_read_only_copy():
    given = np.arange(3.0)
    frozen = frozen_array("weights", given)
    given[0] = 9.0
    assert frozen[0] == 0.0
    assert not frozen.flags.writeable


def test_what_does_not_fit_in_memory_is_refused_with_the_figure(monkeypatch):
    monkeypatch.setattr(_checks, "memory_limit", lambda: 2.0 * 2**30)
    check_memory(2.0 * 2**30, "A matrix", "use less")
    with pytest.raises(
        MemoryError, match=r"A matrix needs 3\.0 GiB, but only 2\.0 GiB is available: use less"
    ):
        check_memory(3.0 * 2**30, "A matrix", "use less")


def test_the_memory_of_this_machine_is_known():
    assert 2**28 < _checks.memory_limit() < 2**50


def test_what_fits_anywhere_does_not_ask_how_much_memory_there_is(monkeypatch):
    monkeypatch.setattr(_checks, "memory_limit", lambda: 0.0)
    check_memory(1e4, "A matrix", "use less")
    with pytest.raises(MemoryError, match="A matrix needs"):
        check_memory(1e6, "A matrix", "use less")


def test_text_that_looks_like_a_number_is_not_one():
    with pytest.raises(TypeError, match="must contain only real numbers"):
        as_floats("y", ["1", "2"])
