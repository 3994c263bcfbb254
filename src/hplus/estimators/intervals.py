"""Regression with uncertainty: a noise level, or several quantiles, learned with the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
from scipy.stats import norm
from sklearn.base import RegressorMixin

from hplus._checks import Floats, as_floats, check_fraction, shown
from hplus._progress import whole_or_not
from hplus.estimators.base import (
    check_fitted,
    check_points,
    check_prediction,
    check_weights,
    warn_if_loose,
)
from hplus.estimators.joint import JointRegressor
from hplus.estimators.targets import check_targets, training_data
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import Quantile
from hplus.positivity import Cone
from hplus.solvers.sos.psd import GAP
from hplus.solvers.sos.rowwise import NormalNoise, Pinballs

LEAST_PRECISION = 1e-3
"""1/s² is at least this, in units of the targets' spread: far from the data s is 32 spreads."""


@final
class HeteroscedasticRegressor(RegressorMixin, JointRegressor):
    """Regression with a noise level that depends on x, learned together with the mean.

    The target is normal with mean m(x) and variance s(x)². 1/s² is a sum of squares, and so
    positive everywhere, m/s² is a function of the kernel's space, and the negative log-likelihood
    is convex in the two. It is minimised, to a certified gap, with penalties (penalty/2)‖m/s²‖²
    and that of the cone, for targets scaled to mean 0 and variance 1.

    If the noise level varies by orders of magnitude, or the noise is not normal, use
    `QuantilesRegressor`, which assumes less.

    Parameters
    ----------
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale is learned from at most 1,000 rows by leave-one-out, plus
        a constant, so that mean and noise level are constant far from the data.
    penalty : float, default=None
        The penalty of the mean; larger values give smoother functions. None takes the frobenius
        penalty of the cone.
    cone : Full or str, default="auto"
        The penalties of the noise level: `Full(trace, frobenius)`, "full" for its defaults, or
        "auto" to learn them by cross-validation from at most 1,000 rows.
    landmarks : int or Nystroem, default=None
        Restrict functions to this many data points.

    Attributes
    ----------
    natural_ : Function
        m/s², in units of the targets' spread.
    precision_ : SumOfSquares
        1/s² - 0.001, in units of the targets' spread.
    kernel_ : Kernel
    center_, spread_ : float
        Mean and standard deviation of the targets.
    cone_ : Full
    solution_ : SolverResult
    """

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        penalty: float | None = None,
        cone: Cone | str = "auto",
        landmarks: int | Nystroem | None = None,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.cone = cone
        self.landmarks = landmarks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d) and targets y (n,)."""
        with whole_or_not(self):
            self._full_cone()
            X, y, shares = training_data(self, X, y, sample_weight)
            y = self._standardised(y, shares, float(shares @ y))
            rows = NormalNoise(y, LEAST_PRECISION)
            functions, self.solution_ = self._learn(X, rows, y, shares, (False, True), np.eye(2))
            self.natural_, self.precision_ = functions
            warn_if_loose(self, self.solution_, GAP)
        return self

    def predict(self, X: Any) -> Floats:
        """The mean m(X[i]), shape (n,)."""
        eta, theta = self._natural(X)
        return check_prediction(self, self.center_ + self.spread_ * (eta / theta))

    def predict_std(self, X: Any) -> Floats:
        """The noise level s(X[i]) > 0, shape (n,)."""
        _, theta = self._natural(X)
        return self.spread_ / np.sqrt(theta)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """(low, high), which contain a new target with probability `level`."""
        reach = float(norm.ppf(0.5 + 0.5 * check_fraction("level", level)))
        mean, std = self.predict(X), self.predict_std(X)
        return mean - reach * std, mean + reach * std

    def log_likelihood(self, X: Any, y: Any) -> float:
        """The sum of the log densities of targets y (n,) at rows X (n, d).

        Divide by n for the mean; `score` is R², as for every regressor.
        """
        mean, std = self.predict(X), self.predict_std(X)
        return float(norm.logpdf(check_targets(y, mean[:, None], several=False), mean, std).sum())

    def _natural(self, X: Any) -> tuple[Floats, Floats]:
        check_fitted(self)
        X = check_points(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            eta, theta = self.natural_(X), self.precision_(X) + LEAST_PRECISION
        return check_prediction(self, eta), check_prediction(self, theta)


@final
class QuantilesRegressor(JointRegressor):
    """Several quantiles of the target that cannot cross, learned jointly.

    The lowest is a function of the kernel's space, and each of the others lies a sum of squares
    above the one before, in floating point too. With `positive` the lowest is a sum of squares as
    well, so that quantiles of a non-negative target are never negative. The sum of the quantile
    losses is minimised, to a certified gap, with penalties, for targets scaled to unit size.

    Parameters
    ----------
    levels : sequence of float, default=(0.05, 0.5, 0.95)
        Probabilities in increasing order, each between 0 and 1.
    positive : bool, default=False
        Whether the quantiles are to be non-negative.
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale is learned from at most 1,000 rows by leave-one-out, plus
        a constant.
    penalty : float, default=None
        The penalty of the lowest quantile, not with `positive`; larger values give smoother
        functions. None takes the frobenius penalty of the cone.
    cone : Full or str, default="auto"
        The penalties of the sums of squares: `Full(trace, frobenius)`, "full" for its defaults, or
        "auto" to learn them by cross-validation from at most 300 rows.
    landmarks : int or Nystroem, default=None
        Restrict functions to this many data points.

    Attributes
    ----------
    lowest_ : Function or SumOfSquares
        The lowest quantile minus `center_`, in units of `spread_`.
    increments_ : tuple of SumOfSquares
        The distance of each quantile from the one below, in the same units.
    kernel_ : Kernel
    center_, spread_ : float
        The mean of the targets (0 if `positive`), and the root mean square of the deviations.
    levels_ : tuple of float
    cone_ : Full
    solution_ : SolverResult
    """

    def __init__(
        self,
        levels: Sequence[float] = (0.05, 0.5, 0.95),
        positive: bool = False,
        kernel: Kernel | str = "auto",
        penalty: float | None = None,
        cone: Cone | str = "auto",
        landmarks: int | Nystroem | None = None,
    ) -> None:
        self.levels = levels
        self.positive = positive
        self.kernel = kernel
        self.penalty = penalty
        self.cone = cone
        self.landmarks = landmarks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d) and targets y (n,)."""
        with whole_or_not(self):
            levels, positive = _check_levels(self.levels), self._positive()
            self._full_cone()
            X, y, shares = training_data(self, X, y, sample_weight)
            if positive and np.any(y < 0.0):
                raise ValueError(
                    f"Negative values in y: targets must be non-negative for positive=True, got "
                    f"{y.min():.6g}."
                )
            y = self._standardised(y, shares, 0.0 if positive else float(shares @ y))
            squares = (positive, *[True] * (len(levels) - 1))
            # quantile k is the sum of the blocks up to k
            mixing = np.triu(np.ones((len(levels), len(levels))))
            functions, result = self._learn(X, Pinballs(levels, y), y, shares, squares, mixing)
            self.levels_, self.solution_ = levels, result
            self.lowest_, self.increments_ = functions[0], functions[1:]
            warn_if_loose(self, self.solution_, GAP)
        return self

    def predict(self, X: Any) -> Floats:
        """The quantiles of X[i], shape (n, levels), from the lowest to the highest."""
        check_fitted(self)
        X = check_points(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = [f(X) for f in (self.lowest_, *self.increments_)]
            quantiles = self.center_ + self.spread_ * np.cumsum(steps, axis=0).T
        return check_prediction(self, quantiles)

    def predict_interval(self, X: Any, level: float | None = None) -> tuple[Floats, Floats]:
        """(low, high), the quantiles that contain a new target with probability `level`.

        None takes the lowest and the highest of `levels_`.
        """
        check_fitted(self)
        low, high = self._ends(level)
        quantiles = self.predict(X)
        return quantiles[:, low], quantiles[:, high]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The negative quantile loss, averaged over rows and levels: higher is better."""
        quantiles = self.predict(X)
        y = check_targets(y, quantiles, several=False)
        weights = check_weights("sample_weight", sample_weight, len(y))
        losses = [
            Quantile(level).value(y, q) for level, q in zip(self.levels_, quantiles.T, strict=True)
        ]
        return -float(np.average(np.mean(losses, axis=0), weights=weights))

    def _ends(self, level: float | None) -> tuple[int, int]:
        """The positions of the two quantiles that bound an interval."""
        levels = self.levels_
        if level is None:
            if len(levels) < 2:
                raise ValueError(
                    f"levels must have two quantiles for an interval, got {levels}: fit with two."
                )
            return 0, len(levels) - 1
        tail = 0.5 - 0.5 * check_fraction("level", level)
        ends = [k for k, at in enumerate(levels) if min(abs(at - tail), abs(1 - tail - at)) < 1e-9]
        if len(ends) < 2:
            raise ValueError(
                f"level {level} needs the quantiles {tail:.6g} and {1.0 - tail:.6g}, got levels "
                f"{levels}: fit with these levels."
            )
        return ends[0], ends[1]

    def _positive(self) -> bool:
        if not isinstance(self.positive, bool | np.bool_):
            raise TypeError(f"positive must be True or False, got {shown(self.positive)}.")
        if self.positive and self.penalty is not None:
            raise ValueError(
                f"penalty must be None with positive=True, got {self.penalty}: set those of "
                "the cone instead."
            )
        return bool(self.positive)


def _check_levels(levels: Any) -> tuple[float, ...]:
    numbers = as_floats("levels", levels)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise ValueError(f"levels must be a non-empty list of numbers, got {shown(levels)}.")
    checked = tuple(check_fraction("levels", float(level)) for level in numbers)
    if any(b <= a for a, b in pairwise(checked)):
        raise ValueError(f"levels must be strictly increasing, got {shown(levels)}.")
    return checked
