"""Validation of targets and labels: what an estimator accepts as y."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import DataConversionWarning

from hplus._checks import Floats, as_floats, check_finite, place, shown
from hplus.estimators.base import (
    Estimator,
    check_diagonal,
    check_kernel,
    check_points,
    check_size,
    check_weights,
    merge_repeated,
)

Labels = npt.NDArray[Any]
"""Labels (n,): text or whole numbers."""


def check_targets(y: Any, X: Floats, *, several: bool) -> Floats:
    """y as finite floats, one for each row of X; with `several`, also (n, outputs)."""
    _reject_text(_required(y))
    y = _one_per_row(as_floats("y", y), X, several=several)
    return check_size("y", check_finite("y", y))


def check_labels(y: Any, X: Floats) -> Labels:
    """y as labels (n,), all text or all whole numbers, one for each row of X."""
    y = _one_per_row(_as_labels(_required(y)), X, several=False)
    _check_label_type(y)
    if y.dtype.kind == "f" and np.any(check_finite("y", y) != np.floor(y)):
        raise ValueError(
            f"y must hold labels, got continuous numbers such as {y[y != np.floor(y)][0]:.6g}: "
            "use a regressor, or cut y into classes."
        )
    return y


def check_classes(y: Labels, advice: str) -> Labels:
    """The distinct labels of y, at least two."""
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got 1 class: {classes[0]}: {advice}.")
    return classes


def one_against_rest(y: Labels, classes: Labels) -> list[Floats]:
    """Labels as ±1: class 1 against class 0, or each of several classes against the others."""
    positive = classes[1:] if len(classes) == 2 else classes
    return [np.where(y == label, 1.0, -1.0) for label in positive]


def training_data(
    estimator: Estimator, X: Any, y: Any, sample_weight: Any
) -> tuple[Floats, Floats, Floats]:
    """Distinct rows (n, d), their targets (n,) and shares (n,), for an estimator with a kernel."""
    check_kernel(estimator.kernel)
    X = check_points(estimator, X, reset=True)
    y = check_targets(y, X, several=False)
    check_diagonal(estimator.kernel, X)
    weights = check_weights("sample_weight", sample_weight, len(X))
    return merge_repeated(X, y, weights / weights.sum())


def _required(y: Any) -> Any:
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None: call fit(X, y).")
    return y


def _reject_text(y: Any) -> None:
    """Raise if targets are text, naming the first that is no number if there is one."""
    texts = _as_labels(y)
    if texts.dtype.kind != "U" or texts.ndim == 0 or texts.size == 0:
        return
    is_word = np.vectorize(lambda text: not _reads_as_number(text), otypes=[bool])(texts)
    at = tuple(np.argwhere(is_word == is_word.any())[0].tolist())
    raise TypeError(
        f"y must contain only real numbers, got the text {shown(texts[at])} at {place(at)}: "
        "convert text to numbers first."
    )


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _one_per_row(y: Labels, X: Floats, *, several: bool) -> Labels:
    """y of shape (n,) or, with `several`, (n, outputs)."""
    if y.ndim == 2 and y.shape[1] == 1 and not several:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: pass y.ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        y = y.ravel()
    if y.ndim not in (1, 1 + several):
        advice = ": fit one estimator for each column" if y.ndim == 2 else ""
        raise ValueError(
            f"y must have one dimension, with one target per row, got shape {y.shape}{advice}."
        )
    if len(y) != len(X):
        advice = ": transpose X" if len(y) == X.shape[1] else ""
        raise ValueError(
            f"y must have one target for each of the {len(X)} rows of X, got {len(y)}{advice}."
        )
    return y


def _as_labels(y: Any) -> Labels:
    """y as an array; numbers of dtype object become numbers."""
    try:
        labels = np.asarray(y)
        if labels.dtype.kind == "O" and not any(isinstance(label, str) for label in labels.flat):
            labels = np.array(labels.tolist())
    except ValueError:  # rows of unequal length
        labels = np.asarray(y, dtype=object)
    return labels


def _check_label_type(y: Labels) -> None:
    rule = "Unknown label type in y: labels must be all text or all whole numbers"
    if y.dtype.kind not in "biufUO":
        raise ValueError(f"{rule}, got {y.dtype}.")
    texts = [isinstance(label, str) for label in y] if y.dtype.kind == "O" else []
    if not all(texts):
        right = str if any(texts) else Real
        other = next((i for i, label in enumerate(y) if not isinstance(label, right)), 0)
        raise ValueError(f"{rule}, got {shown(y[other])} in row {other}.")
