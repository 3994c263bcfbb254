"""Array types, and the one place where input is checked and errors are worded.

Every message says the name, the rule, the value received and, where it helps, what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def check_positive(name: str, value: Any) -> float:
    """`value` as a float, refused unless it is a finite number above zero."""
    number = _number(name, "a positive finite number", value)
    if not 0.0 < number < np.inf:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}.")
    return number


def check_nonnegative(name: str, value: Any) -> float:
    """`value` as a float, refused unless it is a finite number of at least zero."""
    number = _number(name, "a finite number of at least 0", value)
    if not 0.0 <= number < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return number


def check_fraction(name: str, value: Any) -> float:
    """`value` as a float, refused unless it lies strictly between 0 and 1."""
    number = _number(name, "a number between 0 and 1", value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}.")
    return number


def check_count(name: str, value: Any, least: int = 1) -> int:
    """`value` as an int, refused unless it is a whole number of at least `least`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """`value`, refused unless it is one of the names in `choices`."""
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        listed = ", ".join(repr(choice) for choice in names)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")
    return value


def check_scales(name: str, value: Any) -> float | tuple[float, ...]:
    """One positive number, or one for each axis as a tuple."""
    if np.ndim(value) == 0:
        return check_positive(name, value)
    scales = tuple(check_positive(f"every {name}", scale) for scale in value)
    if not scales:
        raise ValueError(f"{name} must hold one number for each axis, got {value!r}.")
    return scales


def check_columns(value: Any) -> tuple[int, ...] | None:
    """Column numbers as a tuple of distinct whole numbers from 0, or None for all columns."""
    if value is None:
        return None
    columns = tuple(check_count("every column", c, least=0) for c in np.atleast_1d(value).tolist())
    if not columns or len(set(columns)) < len(columns):
        raise ValueError(f"columns must be distinct column numbers from 0, got {value!r}.")
    return columns


def as_points(name: str, value: Any, dimension: int | None = None) -> Floats:
    """`value` as a float64 array of shape (n, d), one point a row."""
    X = as_floats(name, value)
    if X.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions, one point a row, got shape {X.shape}; use "
            f"{name}.reshape(-1, 1) for points on a line, {name}.reshape(1, -1) for one point."
        )
    if dimension is not None and X.shape[1] != dimension:
        raise ValueError(
            f"{name} must have {dimension} column{'s' * (dimension != 1)}, got {X.shape[1]}."
        )
    return X


def as_floats(name: str, value: Any) -> Floats:
    """`value` as a float64 array; text, objects and complex numbers are refused."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "cmM":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        kind = getattr(value, "dtype", type(value).__name__)
        raise TypeError(f"{name} must hold real numbers only, got {kind}.") from None


def check_finite(name: str, array: Floats) -> Floats:
    """`array`, refused when it holds a NaN or an infinity, with where the first one is."""
    finite = np.isfinite(array)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        place = f"row {where[0]}" + (f", column {where[1]}" if len(where) > 1 else "")
        raise ValueError(
            f"{name} must hold finite numbers, got {(~finite).sum()} NaN or inf, the first at "
            f"{place}: drop or fill those rows first."
        )
    return array


def frozen_array(name: str, value: Any) -> Floats:
    """A read-only float64 copy of `value`, with finite entries, to be held by a frozen value."""
    array = check_finite(name, np.array(as_floats(name, value)))
    array.flags.writeable = False
    return array


def check_memory(need: float, what: str, advice: str) -> None:
    """Refuse, before anything is allocated, what would not fit in this machine's memory."""
    limit = memory_limit()
    if need > limit:
        raise MemoryError(
            f"{what} needs {need / 2**30:.1f} GiB and {limit / 2**30:.1f} GiB can be had: {advice}."
        )


def memory_limit() -> float:
    """Nine tenths of this machine's memory, in bytes."""
    return 0.9 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _number(name: str, rule: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {rule}, got {value!r}.") from None
