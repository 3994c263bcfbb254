"""Array types, and the checks of input that all share, with their words.

Every message says the name, the rule, the value received and, where it helps, what to do.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

TEXT = (str, bytes)

LONGEST_TEXT = 60
"""Characters of a value shown in an error message: an array's repr may run to pages."""


def shown(value: Any) -> str:
    """`value` as Python writes it, in one line and cut where it grows long."""
    if isinstance(value, np.ndarray) and value.size > 3:
        return f"an array of shape {value.shape}"
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def check_positive(name: str, value: Any) -> float:
    """`value` as a float, refused unless it is a finite number above zero."""
    number = _number(name, "a positive finite number", value)
    if not 0.0 < number < np.inf:
        raise ValueError(f"{name} must be a positive finite number, got {shown(value)}.")
    return number


def check_number(name: str, value: Any) -> float:
    """`value` as a float, refused unless it is a finite number."""
    number = _number(name, "a finite number", value)
    if not np.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {shown(value)}.")
    return number


def check_nonnegative(name: str, value: Any) -> float:
    """`value` as a float, refused unless it is a finite number of at least zero."""
    number = _number(name, "a finite number of at least 0", value)
    if not 0.0 <= number < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {shown(value)}.")
    return number


def check_fraction(name: str, value: Any) -> float:
    """`value` as a float, refused unless it lies strictly between 0 and 1."""
    number = _number(name, "a number between 0 and 1", value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be a number between 0 and 1, got {shown(value)}.")
    return number


def check_count(name: str, value: Any, least: int = 1) -> int:
    """`value` as an int, refused unless it is a whole number of at least `least`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {shown(value)}.")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """`value`, refused unless it is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {shown(value)}.")
    return value


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """`value`, refused unless it is one of the names in `choices`."""
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        listed = ", ".join(repr(choice) for choice in names)
        raise ValueError(f"{name} must be one of {listed}, got {shown(value)}.")
    return value


def check_scales(name: str, value: Any) -> float | tuple[float, ...]:
    """One positive number, or one for each axis as a tuple."""
    if np.ndim(_objects(value)) == 0:
        return check_positive(name, value)
    scales = tuple(check_positive(f"every {name}", scale) for scale in value)
    if not scales:
        raise ValueError(f"{name} must hold one number for each axis, got {shown(value)}.")
    return scales


def check_columns(value: Any) -> tuple[int, ...] | None:
    """Column numbers as a tuple of distinct whole numbers from 0, or None for all columns."""
    if value is None:
        return None
    each = np.atleast_1d(_objects(value)).tolist()
    columns = tuple(check_count("every column", column, least=0) for column in each)
    if not columns or len(set(columns)) < len(columns):
        raise ValueError(f"columns must be distinct column numbers from 0, got {shown(value)}.")
    return columns


def as_points(name: str, value: Any, dimension: int | None = None) -> Floats:
    """`value` as a float64 array of shape (n, d), one point a row."""
    X = as_floats(name, value)
    if X.ndim != 2:
        advice = (
            f"; use {name}.reshape(-1, 1) for points on a line, {name}.reshape(1, -1) for one point"
        )
        raise ValueError(
            f"{name} must have two dimensions, one point a row, got shape {X.shape}"
            f"{advice * (X.ndim < 2)}."
        )
    if dimension is not None and X.shape[1] != dimension:
        raise ValueError(
            f"{name} must have {dimension} column{'s' * (dimension != 1)}, got {X.shape[1]}."
        )
    return X


def as_floats(name: str, value: Any) -> Floats:
    """`value` as a float64 array; text, dates, objects and complex numbers are refused."""
    try:
        array = np.asarray(value)
        if value is None or array.dtype.kind in "cmMSU" or np.ma.is_masked(value):
            raise TypeError
        if array.dtype.kind == "O" and any(isinstance(entry, TEXT) for entry in array.flat):
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must hold real numbers only, got {_kind(value)}.") from None


def check_finite(name: str, array: Floats) -> Floats:
    """`array`, refused when it holds a NaN or an infinity, with where the first one is."""
    finite = np.isfinite(array)
    if finite.all():
        return array
    if array.ndim == 0:
        raise ValueError(f"{name} must be finite, got {array}.")
    raise ValueError(
        f"{name} must hold finite numbers, got {(~finite).sum()} NaN or inf, the first at "
        f"{place(np.argwhere(~finite)[0])}: drop or fill those rows first."
    )


def place(index: Iterable[int]) -> str:
    """Where an entry is, in words: row 3, column 1."""
    return ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column"), index, strict=False))


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
    """Nine tenths of the memory this process may have, in bytes: machine, container, ulimit.

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


def check_random_state(seed: Any) -> np.random.RandomState:
    """`seed` as a RandomState, as scikit-learn reads it: None, a whole number or a RandomState."""
    # here, since windows and kernels can do without scikit-learn, which takes a second to import
    from sklearn.utils import check_random_state as as_random_state

    return as_random_state(seed)


def _number(name: str, rule: str, value: Any) -> float:
    try:
        array = np.asarray(value)
        if array.ndim > 0 or array.dtype.kind in "cmMSU":
            raise TypeError
        return float(array)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {rule}, got {shown(value)}.") from None


def _objects(value: Any) -> NDArray[np.object_]:
    """`value` as an array of whatever it holds, lists of unequal length included."""
    return np.asarray(value, dtype=object)


def _kind(value: Any) -> str:
    """What `value` is, if not an array of real numbers, and what to do about it."""
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
    """The first entry that is no number, where it is and what to do about it."""
    for index, entry in np.ndenumerate(array):
        try:
            _number("", "", 0.0 if entry is None else entry)
        except TypeError:
            return (
                f" with {shown(entry)} at {place(index)}: this argument must be encoded, each "
                "string or date as a number"
            )
    return ""
