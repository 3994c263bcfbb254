"""Array types and the input checks that everything shares.

Every message gives the name, the rule, the value received and, where it helps, what to do:
"penalty must be a positive finite number, got -1."
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]  # in single or double precision
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

Seed = int | np.random.RandomState | None
"""What scikit-learn calls `random_state`."""

TEXT = (str, bytes)

MAX_SHOWN_CHARACTERS = 60
"""Length at which a value is cut off in an error message: the repr of an array can be long."""


def shown(value: Any) -> str:
    """The repr of `value` on one line, cut off if it is long."""
    if isinstance(value, np.ndarray) and value.size > 3:
        return f"an array of shape {value.shape}"
    if isinstance(value, type):
        return f"the class {value.__name__}: use {value.__name__}(…)"
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"


def check_positive(name: str, value: Any) -> float:
    """`value` as a float; an error unless it is a finite number above 0."""
    return _number(name, value, "a positive finite number", lambda x: 0.0 < x < np.inf)


def check_number(name: str, value: Any) -> float:
    """`value` as a float; an error unless it is a finite number."""
    return _number(name, value, "a finite number", math.isfinite)


def check_nonnegative(name: str, value: Any) -> float:
    """`value` as a float; an error unless it is a finite number of at least 0."""
    return _number(name, value, "a finite number of at least 0", lambda x: 0.0 <= x < np.inf)


def check_fraction(name: str, value: Any) -> float:
    """`value` as a float; an error unless it lies strictly between 0 and 1."""
    if isinstance(value, int | float) and 1 < value < 100:
        raise ValueError(
            f"{name} must be a number between 0 and 1, got {shown(value)}: {value:g} % is "
            f"{value / 100:g}."
        )
    return _number(name, value, "a number between 0 and 1", lambda x: 0.0 < x < 1.0)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """`value` as an int; an error unless it is a whole number of at least `least`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {shown(value)}.")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """`value` as a bool; an error unless it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}.")
    return bool(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """`value`; an error unless it is one of the names in `choices`."""
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        listed = ", ".join(repr(choice) for choice in names)
        raise ValueError(f"{name} must be one of {listed}, got {shown(value)}.")
    return value


def check_scales(name: str, value: Any) -> float | tuple[float, ...]:
    """One positive number, or a tuple with one for each axis."""
    if np.ndim(_objects(value)) == 0:
        return check_positive(name, value)
    scales = tuple(check_positive(f"every {name}", scale) for scale in value)
    if not scales:
        raise ValueError(f"{name} must contain one number for each axis, got {shown(value)}.")
    return scales


def check_columns(value: Any) -> tuple[int, ...] | None:
    """Column numbers as a tuple of distinct integers, counted from 0, or None for all columns."""
    if value is None:
        return None
    each = np.atleast_1d(_objects(value)).tolist()
    columns = tuple(check_count("every column", column, least=0) for column in each)
    if not columns or len(set(columns)) < len(columns):
        raise ValueError(
            f"columns must be distinct column numbers, counted from 0, got {shown(value)}."
        )
    return columns


def as_points(name: str, value: Any, dimension: int | None = None) -> Floats:
    """`value` as a float64 array of shape (n, d), one point per row."""
    X = as_floats(name, value)
    if X.ndim != 2:
        advice = (
            f"; use {name}.reshape(-1, 1) for points on a line, {name}.reshape(1, -1) for one point"
        )
        raise ValueError(
            f"{name} must have two dimensions, one point per row, got shape {X.shape}"
            f"{advice * (X.ndim < 2)}."
        )
    if dimension is not None and X.shape[1] != dimension:
        raise ValueError(
            f"{name} must have {dimension} column{'s' * (dimension != 1)}, got {X.shape[1]}."
        )
    return X


def as_floats(name: str, value: Any) -> Floats:
    """`value` as a float64 array; text, dates, objects and complex numbers are errors."""
    try:
        array = np.asarray(value)
        if value is None or array.dtype.kind in "cmMSU" or np.ma.is_masked(value):
            raise TypeError
        if array.dtype.kind == "O" and any(isinstance(entry, TEXT) for entry in array.flat):
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must contain only real numbers, got {_kind(value)}.") from None


def check_finite(
    name: str, array: Floats, advice: str = ": drop or fill those rows first"
) -> Floats:
    """`array`; an error that says where the first NaN or infinity is, if there is one."""
    finite = np.isfinite(array)
    if finite.all():
        return array
    if array.ndim == 0:
        raise ValueError(f"{name} must be finite, got {array}.")
    raise ValueError(
        f"{name} must contain only finite numbers, got {(~finite).sum()} NaN or inf, the first at "
        f"{place(np.argwhere(~finite)[0])}{advice}."
    )


def place(index: Iterable[int]) -> str:
    """The position of an entry in words: row 3, column 1."""
    return ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column"), index, strict=False))


def frozen_array(name: str, value: Any) -> Floats:
    """A read-only float64 copy of `value` with finite entries, for the field of a frozen value."""
    array = check_finite(name, np.array(as_floats(name, value)))
    array.flags.writeable = False
    return array


FITS_ANYWHERE = 2.0**16
"""Bytes that every process has: to ask for the limit takes longer than a prediction at a point."""


def check_memory(need: float, what: str, advice: str) -> None:
    """An error, before anything is allocated, if `need` bytes would not fit in memory."""
    if need < FITS_ANYWHERE:
        return
    limit = memory_limit()
    if need > limit:
        raise MemoryError(
            f"{what} needs {need / 2**30:.1f} GiB, but only {limit / 2**30:.1f} GiB is available: "
            f"{advice}."
        )


def memory_limit() -> float:
    """90 % of the memory this process may use, in bytes: machine, container, ulimit.

    Infinite where the platform does not say, as on Windows.
    """
    limits = [np.inf]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        limits.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    with contextlib.suppress(ImportError):
        import resource

        limits += [float(n) for n in resource.getrlimit(resource.RLIMIT_AS) if n > 0]
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        limits.append(float(int(Path("/sys/fs/cgroup/memory.max").read_text())))
    return 0.9 * min(limits)


def check_random_state(seed: Seed) -> np.random.RandomState:
    """`seed` as a RandomState, as scikit-learn reads it: None, a whole number or a RandomState."""
    # here, since windows and kernels can do without scikit-learn, which takes a second to import
    from sklearn.utils import check_random_state as as_random_state

    try:
        if isinstance(seed, bool):
            raise ValueError
        return as_random_state(seed)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, a whole number from 0 to 4294967295 or a RandomState, got "
            f"{shown(seed)}."
        ) from None


def _number(name: str, value: Any, rule: str, holds: Callable[[float], bool]) -> float:
    """`value` as a float; an error that quotes the rule unless it holds."""
    message = f"{name} must be {rule}, got {shown(value)}."
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = _as_number(value)
    except (TypeError, ValueError):
        raise TypeError(message) from None
    if not holds(number):
        raise ValueError(message)
    return number


def _as_number(value: Any) -> float:
    array = np.asarray(value)
    if array.ndim > 0 or array.dtype.kind in "cmMSU":
        raise TypeError
    try:
        return float(array)
    except OverflowError:
        return np.inf


def _objects(value: Any) -> NDArray[np.object_]:
    """`value` as an array of objects, lists of unequal length included."""
    return np.asarray(value, dtype=object)


def _kind(value: Any) -> str:
    """What `value` is instead of an array of real numbers, and what to do about it."""
    if value is None:
        return "None"
    from scipy.sparse import issparse  # here, since only this message needs SciPy

    if issparse(value):
        return "a sparse matrix: use its toarray()"
    if np.ma.is_masked(value):
        return "masked entries: drop or fill those rows first"
    kind = str(getattr(value, "dtype", type(value).__name__))
    try:
        array = np.asarray(value)
    except ValueError:
        return f"{kind} with rows of unequal length"
    if array.dtype.kind in "mM":
        return f"{kind}: count days or seconds instead"
    if array.dtype.kind == "c" and array is not value:
        return f"{kind} of complex numbers"
    if array.dtype.kind == "O" and array.ndim > 0:
        return kind + _first_object(array)
    return "text" if kind.startswith(("<U", "|S")) else kind


def _first_object(array: NDArray[np.object_]) -> str:
    """The first entry that is not a number, where it is and what to do about it."""
    for index, entry in np.ndenumerate(array):
        try:
            _as_number(0.0 if entry is None else entry)
        except (TypeError, ValueError):
            where = f" with {shown(entry)} at {place(index)}: "
            if type(entry).__name__ in ("NAType", "NaTType"):  # of pandas, which is not imported
                return where + "drop or fill those rows first"
            return where + "this argument must be numeric: encode each string or date as a number"
    return ""
