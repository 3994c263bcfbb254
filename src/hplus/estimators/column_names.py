"""Names of columns: recorded by `fit`, and compared with those of every other table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hplus._checks import shown
from hplus.estimators.base import Estimator, table_names


def check_names(estimator: Estimator, X: object, *, reset: bool) -> None:
    """Record the names of X's columns in `feature_names_in_`, or compare them with it.

    Data frames of pandas and polars, and Arrow tables, have names; other arrays are not compared.
    """
    names: Sequence[str] = table_names(X)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(
            f"X must have distinct column names that are all strings, got {shown(list(names))}."
        )
    if reset:
        if names:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    fitted = list(getattr(estimator, "feature_names_in_", ()))
    if fitted and names and fitted != list(names):
        raise ValueError(
            f"X must have the columns seen in fit, in the same order, {shown(fitted)}, got "
            f"{shown(list(names))}: select them as X[{shown(fitted)}]."
        )
