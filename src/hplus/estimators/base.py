"""What all estimators share: nested parameters of frozen values, and validation of inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from hplus._checks import (
    Floats,
    as_floats,
    check_finite,
    check_memory,
    check_positive,
    shown,
)
from hplus._values import Value, split_params
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import Loss, as_loss
from hplus.solvers.result import SolverResult

UNSETTLED_CHANGE = 0.3
"""Share of the events by which a rate may move at the last refinement without a warning."""

LARGEST_INPUT = 1e100
"""The largest number that a fit accepts: fourth powers of larger ones would overflow."""


class Estimator(BaseEstimator):
    """scikit-learn's base class, with access to the parameters of kernels and other values."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__left__scale=2.0` replaces the kernel by a changed copy."""
        outer, inner = split_params(self, self.get_params(deep=False), params)
        super().set_params(**outer)
        for name, changes in inner.items():
            part = getattr(self, name)
            if isinstance(part, Value):
                setattr(self, name, part.replace(**changes))
            elif isinstance(part, BaseEstimator):
                part.set_params(**changes)
            else:
                key = f"{name}__{next(iter(changes))}"
                starts = {"kernel": "Gaussian(1.0)", "cone": "Full()"}
                advice = f": start from {name}={starts[name]}" if name in starts else ""
                raise ValueError(
                    f"{name} must be a value with parameters to set {key!r}, got {shown(part)}"
                    f"{advice}."
                )
        return self


def check_fitted(
    estimator: Estimator, attribute: str = "solution_", before: str = "it predicts"
) -> None:
    """Raise NotFittedError unless `fit` was called, which sets the attribute."""
    advice = f"%(name)s must be fitted before {before}: call fit first."
    check_is_fitted(estimator, attribute, msg=advice)


def as_landmarks(landmarks: int | Nystroem | None) -> Nystroem | None:
    """Landmarks from their number, drawn with a fixed seed, or as given."""
    if landmarks is None or isinstance(landmarks, Nystroem):
        return landmarks
    return Nystroem(landmarks, random_state=0)


def check_points(estimator: Estimator, X: Any, *, reset: bool) -> Floats:
    """X as finite floats (n, d); `reset` records its columns, otherwise they are compared."""
    table = check_finite("X", _as_table(X))
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except (TypeError, ValueError) as error:
        raise ValueError(_column_message(estimator, X, error)) from None
    return check_size("X", table) if reset else table


def check_per_row(name: str, numbers: Any, n: int) -> Floats:
    """One finite number for each of n points; a single number is repeated."""
    w = check_size(name, check_finite(name, as_floats(name, numbers)))
    w = np.full(n, float(w)) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one for each row of X, got {w.shape}.")
    return w


def check_weights(name: str, weights: Any, n: int) -> Floats:
    """One finite, non-negative weight for each of n points, not all 0; ones for None."""
    if weights is None:
        return np.ones(n)
    w = check_per_row(name, weights, n)
    if np.any(w < 0.0):
        raise ValueError(
            f"{name} must be non-negative in every row, got {w.min():.6g} in row {w.argmin()}."
        )
    if not np.any(w > 0.0):
        raise ValueError(f"{name} must be positive in at least one row, got zero in every row.")
    return w


def check_exposure(exposure: Any, n: int) -> Floats:
    """A positive exposure for each of n rows; ones for None."""
    if exposure is None:
        return np.ones(n)
    E = check_per_row("exposure", exposure, n)
    if np.any(E < 1.0 / LARGEST_INPUT):
        raise ValueError(
            f"exposure must be above 0 in every row, got {E.min():.6g} in row {E.argmin()}: drop "
            "such rows."
        )
    return E


def check_size(name: str, array: Floats) -> Floats:
    """`array`; raises if its numbers are so large that a fit would overflow."""
    largest = np.abs(array).max(initial=0.0)
    if largest > LARGEST_INPUT:
        raise ValueError(
            f"{name} must hold numbers of at most {LARGEST_INPUT:.0e} in size, got {largest:.3g}: "
            "use a larger unit."
        )
    return array


def check_kernel(kernel: Any) -> None:
    """Raise unless `kernel` is a kernel or "auto"."""
    if isinstance(kernel, Kernel) or (isinstance(kernel, str) and kernel == "auto"):
        return
    function = callable(kernel) and not isinstance(kernel, type)
    raise TypeError(
        f'kernel must be "auto" or a kernel such as Gaussian(1.0), got {shown(kernel)}'
        f"{': wrap it as Custom(kernel)' * function}."
    )


def check_penalty(penalty: object) -> float | None:
    """A penalty above 0, or None for "auto"."""
    if isinstance(penalty, str):
        if penalty != "auto":
            raise TypeError(
                f'penalty must be "auto" or a positive finite number, got {shown(penalty)}.'
            )
        return None
    return check_positive("penalty", penalty)


def check_loss(loss: Any, kinds: Mapping[str, type[Loss]], advice: str) -> Loss:
    """A loss, as it is or by its name, of one of the kinds that an estimator accepts."""
    named = isinstance(loss, str)
    found = kinds[loss]() if named and loss in kinds else None if named else as_loss(loss)
    if found is None or not isinstance(found, tuple(kinds.values())):
        raise ValueError(
            f"loss must be one of {', '.join(map(repr, kinds))}, got {shown(loss)}: {advice}."
        )
    return found


def kernel_or(kernel: Kernel | str, learned: Callable[[], Kernel]) -> Kernel:
    """The kernel as given, or a learned one for "auto"."""
    return kernel if isinstance(kernel, Kernel) else learned()


def check_diagonal(kernel: Kernel | str, X: Floats) -> None:
    """Raise if k(x, x) is negative or not finite for a row x of X.

    |k(x, z)|² <= k(x, x) k(z, z), so a kernel that is finite there is finite on all pairs.
    """
    if not isinstance(kernel, Kernel):
        return
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = kernel.diag(X)
    worst = int(np.argmin(np.where(np.isfinite(diagonal), diagonal, -np.inf)))
    if not np.isfinite(diagonal[worst]):
        raise OverflowError(
            f"kernel overflows in row {worst} of X, got {shown(kernel)}: rescale X."
        )
    if diagonal[worst] < 0.0:
        raise ValueError(
            f"kernel must be positive semi-definite, got k(x, x) = {diagonal[worst]:.6g} for row "
            f"{worst} of X."
        )


def merge_repeated(X: Floats, y: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """The distinct rows of (X, y) with a positive share, sorted, and the sums of their shares.

    A row of weight 2 and a row that is given twice thus pose the same problem, in any order.
    """
    kept = shares > 0.0
    rows = np.column_stack([X, y])[kept] + 0.0  # -0.0 becomes 0.0
    rows, inverse = np.unique(rows, axis=0, return_inverse=True)
    total = np.zeros(len(rows))
    np.add.at(total, inverse.ravel(), shares[kept])
    d = X.shape[1]
    targets = rows[:, d] if y.ndim == 1 else rows[:, d:]
    return np.ascontiguousarray(rows[:, :d]), np.ascontiguousarray(targets), total


def warn_if_loose(estimator: Estimator, result: SolverResult, tolerance: float) -> None:
    """Warn, with the solver's advice, if the certified gap is larger than the tolerance."""
    if result.relative_gap > tolerance:
        warnings.warn(
            f"{type(estimator).__name__} is certified only to a relative gap of "
            f"{result.relative_gap:.1e}, which is more than {tolerance:.0e}. "
            f"{result.status.value}",
            ConvergenceWarning,
            stacklevel=3,
        )


def warn_if_unsettled(change: float) -> None:
    """Warn where the finest grid is too coarse: events are crowded, or many of them equal."""
    if change > UNSETTLED_CHANGE:
        warnings.warn(
            "Events are too crowded for the finest grid on this window to resolve them "
            "(quadrature_error_ is the share of them that moves from one grid to the next). Use "
            'model="auto" or a smaller window; if coordinates are rounded, spread them evenly over '
            "the step of the rounding.",
            ConvergenceWarning,
            stacklevel=3,
        )


def function_values(estimator: Estimator, X: Any) -> Floats:
    """`function_` of a fitted estimator at rows X, which may be infinite."""
    check_fitted(estimator)
    X = check_points(estimator, X, reset=False)
    with np.errstate(over="ignore", invalid="ignore"):
        return estimator.function_(X)


def check_prediction(estimator: Estimator, values: Floats) -> Floats:
    """`values`; raises OverflowError where they are not finite."""
    if not np.isfinite(values).all():
        raise OverflowError(
            f"{type(estimator).__name__} predicts values beyond 1e308 for "
            f"{(~np.isfinite(values)).sum()} points of X: they lie too far from the data."
        )
    return values


def _as_table(X: Any) -> Floats:
    """X as floats (n, d) with at least one row and one column."""
    if issparse(X):
        raise TypeError(
            "Sparse data was passed for X, but dense data is required: use X.toarray() or, in a "
            "pipeline, OneHotEncoder(sparse_output=False)."
        )
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: X must hold real numbers.")
    shape = tuple(getattr(X, "shape", ()))
    check_memory(8.0 * np.prod(shape), f"X of shape {shape}", "pass fewer rows at a time")
    table = as_floats("X", X)
    if len(table.shape) != 2 and table.shape != (0,):
        raise ValueError(
            f"X must have two dimensions, one point per row, got shape {table.shape}: Reshape your "
            "data with np.reshape(X, (-1, 1)) for one column, np.reshape(X, (1, -1)) for one row."
        )
    for size, part, noun in zip(
        table.shape, ("row", "column"), ("sample", "feature"), strict=False
    ):
        if size == 0:
            raise ValueError(
                f"X must have at least one {part}, got 0 {noun}(s) (shape={table.shape}) while a "
                "minimum of 1 is required."
            )
    return table


def table_names(X: object) -> list[str]:
    """The names of the columns of a data frame or an Arrow table; none of other arrays."""
    if hasattr(X, "column_names"):  # of Arrow, whose columns are arrays
        return list(X.column_names)
    names = getattr(X, "columns", ())
    return [] if callable(names) else list(names)


def _column_message(estimator: Estimator, X: Any, error: Exception) -> str:
    """Why the columns of X do not match those of `fit`, or cannot be named."""
    names, fitted = table_names(X), getattr(estimator, "feature_names_in_", ())
    text = {isinstance(name, str) for name in names}
    if len(set(names)) < len(names) or len(text) == 2:
        return f"X must have distinct column names that are all strings, got {shown(names)}."
    if len(fitted) == 0 or True not in text:
        return str(error)
    return (
        f"X must have the columns seen in fit, in the same order, {shown(list(fitted))}, got "
        f"{shown(names)}."
    )
