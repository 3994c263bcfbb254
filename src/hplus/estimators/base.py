"""What the estimators share: nested parameters of frozen values, and the checks at the door."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from hplus._checks import Floats, as_floats, check_finite, check_memory, place, shown
from hplus._values import Value, split_params
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.solvers.result import SolverResult

LARGEST = 1e100
"""Data may be this large in a fit: the squares of their squares would leave floating point."""


class Estimator(BaseEstimator):
    """scikit-learn's base, with parameters of kernels and other frozen values within reach."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__left__scale=2.0` puts a changed kernel in place of the old."""
        known = self.get_params(deep=False)
        outer, inner = split_params(params)
        for name in (*outer, *inner):
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: use one of {list(known)}."
                )
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


def check_fitted(estimator: Estimator) -> None:
    """Refuse to predict before `fit`."""
    advice = "%(name)s must be fitted before it predicts: call fit first."
    check_is_fitted(estimator, "solution_", msg=advice)


def as_landmarks(landmarks: int | Nystroem | None) -> Nystroem | None:
    """A choice of landmarks from their number; always the same ones."""
    if landmarks is None or isinstance(landmarks, Nystroem):
        return landmarks
    return Nystroem(landmarks, random_state=0)


def check_points(estimator: Estimator, X: Any, *, reset: bool) -> Floats:
    """X as (n, d) finite floats; with `reset` its columns are learned, else they are compared."""
    table = check_finite("X", _as_table(X))
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except (TypeError, ValueError) as error:
        raise ValueError(_column_refusal(estimator, X, error)) from None
    return check_size("X", table) if reset else table


def check_targets(y: Any, X: Floats, *, several: bool) -> Floats:
    """y as finite floats, one for each row of X; with `several`, (n, outputs) as well."""
    _refuse_text(_given(y))
    y = _one_for_each_row(as_floats("y", y), X, several=several)
    return check_size("y", check_finite("y", y))


def check_labels(y: Any, X: Floats) -> Any:
    """y as (n,) labels, all text or all whole numbers, one for each row of X."""
    y = _one_for_each_row(_as_labels(_given(y)), X, several=False)
    _check_label_type(y)
    if y.dtype.kind == "f" and np.any(check_finite("y", y) != np.floor(y)):
        raise ValueError(
            f"y must hold labels, got continuous numbers such as {y[y != np.floor(y)][0]:.6g}: "
            "use KernelRegressor, or cut them into classes."
        )
    return y


def check_per_row(name: str, numbers: Any, n: int) -> Floats:
    """One finite number for each of n points; a single number stands for n of them."""
    w = check_size(name, check_finite(name, as_floats(name, numbers)))
    w = np.full(n, float(w)) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one for each row of X, got {w.shape}.")
    return w


def check_weights(name: str, weights: Any, n: int) -> Floats:
    """One finite weight of at least 0 for each of n points, not all 0; ones for None."""
    if weights is None:
        return np.ones(n)
    w = check_per_row(name, weights, n)
    if np.any(w < 0.0):
        raise ValueError(
            f"{name} must be at least zero in every row, got {w.min():.6g} in row {w.argmin()}."
        )
    if not np.any(w > 0.0):
        raise ValueError(f"{name} must be above zero in some row, got zero in every row.")
    return w


def check_size(name: str, array: Floats) -> Floats:
    """`array`, refused when its numbers are so large that a fit would overflow."""
    largest = np.abs(array).max(initial=0.0)
    if largest > LARGEST:
        raise ValueError(
            f"{name} must hold numbers of at most {LARGEST:.0e} in size, got {largest:.3g}: "
            "change the unit."
        )
    return array


def check_kernel(kernel: Any) -> None:
    """Refuse what is neither a kernel nor "auto"."""
    if isinstance(kernel, Kernel) or (isinstance(kernel, str) and kernel == "auto"):
        return
    got, advice = shown(kernel), ": wrap it as Custom(kernel)" if callable(kernel) else ""
    if isinstance(kernel, type):
        got, advice = f"the class {kernel.__name__}", f": write {kernel.__name__}(…)"
    raise TypeError(f'kernel must be "auto" or a kernel such as Gaussian(1.0), got {got}{advice}.')


def check_diagonal(kernel: Kernel | str, X: Floats) -> None:
    """Refuse a kernel that is negative or not finite at (x, x) for a row x of X.

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
    """Sorted distinct rows of (X, y) with a positive share, and their shares added up.

    So a row with weight 2 and a row that stands twice are the same problem, in any order.
    """
    kept = shares > 0.0
    rows = np.column_stack([X, y])[kept] + 0.0  # -0.0 becomes 0.0
    rows, inverse = np.unique(rows, axis=0, return_inverse=True)
    total = np.zeros(len(rows))
    np.add.at(total, inverse.ravel(), shares[kept])
    d = X.shape[1]
    targets = rows[:, d] if y.ndim == 1 else rows[:, d:]
    return np.ascontiguousarray(rows[:, :d]), np.ascontiguousarray(targets), total


def training_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Floats, Floats, Floats]:
    """Distinct rows X (n, d), one target each (n,) and shares (n,), for an estimator's kernel."""
    check_kernel(estimator.kernel)
    X = check_points(estimator, X, reset=True)
    y = check_targets(y, X, several=False)
    check_diagonal(estimator.kernel, X)
    weights = check_weights("sample_weight", sample_weight, len(X))
    return merge_repeated(X, y, weights / weights.sum())


def warn_if_loose(estimator: Estimator, result: SolverResult, tolerance: float) -> None:
    """Warn, with the solver's advice, when the certified gap is wider than promised."""
    if result.relative_gap > tolerance:
        warnings.warn(
            f"{type(estimator).__name__} is certified to a relative gap of "
            f"{result.relative_gap:.1e} only, more than {tolerance:.0e}. {result.status.value}",
            ConvergenceWarning,
            stacklevel=3,
        )


def check_prediction(estimator: Estimator, values: Floats) -> Floats:
    """`values`, or a one-sentence error where they left the range of floating point."""
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
            "Sparse data was passed for X, dense is needed: use X.toarray() or, in a pipeline, "
            "OneHotEncoder(sparse_output=False)."
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


def _column_refusal(estimator: Estimator, X: Any, error: Exception) -> str:
    """Why the columns of X are not those of `fit`, or cannot be named."""
    names, fitted = list(getattr(X, "columns", ())), getattr(estimator, "feature_names_in_", ())
    text = {isinstance(name, str) for name in names}
    if len(set(names)) < len(names) or len(text) == 2:
        return f"X must have distinct column names, all text, got {shown(names)}."
    if len(fitted) == 0 or True not in text:
        return str(error)
    return (
        f"X must have the columns of fit in their order, {shown(list(fitted))}, got {shown(names)}."
    )


def _given(y: Any) -> Any:
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None: call fit(X, y).")
    return y


def _refuse_text(y: Any) -> None:
    """Refuse targets that are text, and name one: of words among numbers in text, the first."""
    texts = _as_labels(y)
    if texts.dtype.kind != "U" or texts.ndim == 0 or texts.size == 0:
        return
    is_word = np.vectorize(lambda text: not _reads_as_number(text), otypes=[bool])(texts)
    at = tuple(np.argwhere(is_word == is_word.any())[0].tolist())
    raise TypeError(
        f"y must contain only real numbers, got the text {shown(texts[at])} at {place(at)}: turn "
        "text into numbers first."
    )


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _one_for_each_row(y: Any, X: Floats, *, several: bool) -> Any:
    """y, of shape (n,) or, if there may be `several` outputs, (n, outputs)."""
    if y.ndim == 2 and y.shape[1] == 1 and not several:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: pass y.ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        y = y.ravel()
    if y.ndim not in (1, 1 + several):
        advice = ": fit one machine for each column" if y.ndim == 2 else ""
        raise ValueError(
            f"y must have one dimension, one target a row, got shape {y.shape}{advice}."
        )
    if len(y) != len(X):
        advice = ": transpose X" if len(y) == X.shape[1] else ""
        raise ValueError(
            f"y must have one target for each of the {len(X)} rows of X, got {len(y)}{advice}."
        )
    return y


def _as_labels(y: Any) -> Any:
    """y as an array, numbers held as objects as numbers."""
    try:
        labels = np.asarray(y)
        if labels.dtype.kind == "O" and not any(isinstance(label, str) for label in labels.flat):
            labels = np.array(labels.tolist())
    except ValueError:  # rows of unequal length
        labels = np.asarray(y, dtype=object)
    return labels


def _check_label_type(y: Any) -> None:
    rule = "Unknown label type in y: labels must be all text or all whole numbers"
    if y.dtype.kind not in "biufUO":
        raise ValueError(f"{rule}, got {y.dtype}.")
    texts = [isinstance(label, str) for label in y] if y.dtype.kind == "O" else []
    if not all(texts):
        right = str if any(texts) else Real
        other = next((i for i, label in enumerate(y) if not isinstance(label, right)), 0)
        raise ValueError(f"{rule}, got {shown(y[other])} in row {other}.")
