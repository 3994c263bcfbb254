"""How sure is a prediction? The noise level, or several quantiles, learned with the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
from scipy.stats import norm
from sklearn.base import RegressorMixin

from hplus._checks import Floats, as_floats, check_fraction, check_positive, shown
from hplus.estimators.base import (
    Estimator,
    as_landmarks,
    check_diagonal,
    check_fitted,
    check_kernel,
    check_points,
    check_prediction,
    check_targets,
    check_weights,
    merge_repeated,
    warn_if_loose,
)
from hplus.features import Nystroem
from hplus.kernels import Constant, Kernel
from hplus.losses import Quantile
from hplus.positivity import Cone, Full, SumOfSquares, as_cone
from hplus.solvers.blocks import Block, Plain, Squares
from hplus.solvers.psd import GAP, Problem
from hplus.solvers.rowwise import NormalNoise, Pinballs, RowLoss
from hplus.solvers.squares import feature_map, learn
from hplus.space import Function
from hplus.storage import storable
from hplus.tuning import leave_one_out_scale

LEAST_PRECISION = 1e-3
"""1/σ² is at least this, in units of the targets' spread: far from the data σ is 32 spreads."""


class _Spread(Estimator):
    """What the two estimators share: one kernel, targets in units of their spread."""

    kernel: Kernel | str
    penalty: float
    cone: Cone | str
    landmarks: int | Nystroem | None

    def _data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
        """Distinct rows, their targets and shares."""
        check_kernel(self.kernel)
        X = check_points(self, X, reset=True)
        y = check_targets(y, X, several=False)
        check_diagonal(self.kernel, X)
        weights = check_weights("sample_weight", sample_weight, len(X))
        return merge_repeated(X, y, weights / weights.sum())

    def _full_cone(self) -> Full:
        cone = as_cone(self.cone)
        if not isinstance(cone, Full):
            raise ValueError(f"cone must be Full(trace, frobenius) or 'full', got {shown(cone)}.")
        return cone

    def _learned_kernel(self, X: Floats, y: Floats, shares: Floats, penalty: float) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        return leave_one_out_scale(X, y, shares, 0.5 * penalty) + Constant(1.0)

    def _learn(
        self, X: Floats, rows: RowLoss, shares: Floats, squares: Sequence[bool], mixing: Floats
    ) -> tuple[Function | SumOfSquares, ...]:
        """A function for each entry of `squares`: a sum of squares, or one of any sign."""
        cone = self._full_cone()
        features = feature_map(self.kernel_, X, as_landmarks(self.landmarks))
        Phi = features(X)
        blocks: list[Block] = [
            Squares(Phi, cone.trace, cone.frobenius) if positive else Plain(Phi, self.penalty)
            for positive in squares
        ]
        learned = learn(Problem(rows, shares, tuple(blocks), mixing), features, X)
        self.solution_ = learned.result
        warn_if_loose(self, self.solution_, GAP)
        return learned.functions


@final
@storable
class HeteroscedasticRegressor(RegressorMixin, _Spread):
    """Regression with a noise level that depends on x, learned together with the mean.

    The target is normal with mean m(x) and variance s(x)²: 1/s² is a sum of squares, so that it is
    positive everywhere, m/s² a function of the kernel's space, and their negative log-likelihood is
    convex in the two. It is minimised, to a certified gap, with the penalties
    (penalty/2)‖m/s²‖² + cone, for targets brought to mean 0 and variance 1.

    Parameters
    ----------
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale is learned from at most 1,000 rows by leave-one-out, plus
        a constant, so that far from the data mean and noise are those of all rows.
    penalty : float, default=1e-3
        Of the mean. Larger is smoother.
    cone : Full, default="full"
        Penalties of the noise level.
    landmarks : int or Nystroem, default=None
        Look for functions on so many data points only.

    Attributes
    ----------
    natural_ : Function
        m/s², in units of the targets' spread.
    precision_ : SumOfSquares
        1/s² - 0.001, in units of the targets' spread.
    kernel_ : Kernel
    center_, spread_ : float
        Mean and standard deviation of the targets.
    solution_ : SolverResult
    """

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        penalty: float = 1e-3,
        cone: Cone | str = "full",
        landmarks: int | Nystroem | None = None,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.cone = cone
        self.landmarks = landmarks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d) and targets y (n,)."""
        penalty = check_positive("penalty", self.penalty)
        self._full_cone()
        X, y, shares = self._data(X, y, sample_weight)
        self.center_ = float(shares @ y)
        self.spread_ = _spread_of(y - self.center_, shares)
        y = (y - self.center_) / self.spread_
        self.kernel_ = self._learned_kernel(X, y, shares, penalty)
        rows = NormalNoise(y, LEAST_PRECISION)
        self.natural_, self.precision_ = self._learn(X, rows, shares, (False, True), np.eye(2))
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
        """(low, high), between which a new target lies with probability `level`."""
        reach = float(norm.ppf(0.5 + 0.5 * check_fraction("level", level)))
        mean, std = self.predict(X), self.predict_std(X)
        return mean - reach * std, mean + reach * std

    def log_likelihood(self, X: Any, y: Any) -> float:
        """The mean log density of targets y (n,) at rows X (n, d)."""
        mean, std = self.predict(X), self.predict_std(X)
        return float(norm.logpdf(check_targets(y, mean[:, None], several=False), mean, std).mean())

    def _natural(self, X: Any) -> tuple[Floats, Floats]:
        check_fitted(self)
        X = check_points(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.natural_(X), self.precision_(X) + LEAST_PRECISION


@final
@storable
class QuantilesRegressor(_Spread):
    """Several quantiles of the target that cannot cross, learned together.

    The lowest one is a function of the kernel's space, and each of the others lies a sum of squares
    above the one before it, in floating point too. With `positive` the lowest is a sum of squares
    as well, so that a target that is never negative gets quantiles that never are. Their quantile
    losses are added and minimised, to a certified gap, with penalties, for targets in units of
    their spread.

    Parameters
    ----------
    levels : sequence of float, default=(0.05, 0.5, 0.95)
        In increasing order, each between 0 and 1.
    positive : bool, default=False
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale is learned from at most 1,000 rows by leave-one-out, plus
        a constant.
    penalty : float, default=1e-3
        Of the lowest quantile, unless it is a sum of squares. Larger is smoother.
    cone : Full, default="full"
        Penalties of the sums of squares.
    landmarks : int or Nystroem, default=None
        Look for functions on so many data points only.

    Attributes
    ----------
    lowest_ : Function or SumOfSquares
        The lowest quantile, in units of the targets' spread, less the center.
    increments_ : tuple of SumOfSquares
        How far each quantile lies above the one before it, in the same units.
    kernel_ : Kernel
    center_, spread_ : float
        The targets' mean (0 if `positive`) and standard deviation.
    solution_ : SolverResult
    """

    def __init__(
        self,
        levels: Sequence[float] = (0.05, 0.5, 0.95),
        positive: bool = False,
        kernel: Kernel | str = "auto",
        penalty: float = 1e-3,
        cone: Cone | str = "full",
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
        levels, penalty = _check_levels(self.levels), check_positive("penalty", self.penalty)
        self._full_cone()
        X, y, shares = self._data(X, y, sample_weight)
        if self.positive and np.any(y < 0.0):
            raise ValueError(
                f"Negative values in y: positive=True needs targets of at least 0, got "
                f"{y.min():.6g}."
            )
        self.center_ = 0.0 if self.positive else float(shares @ y)
        self.spread_ = _spread_of(y - float(shares @ y), shares)
        y = (y - self.center_) / self.spread_
        self.kernel_ = self._learned_kernel(X, y, shares, penalty)
        count = len(levels)
        squares = (bool(self.positive), *[True] * (count - 1))
        # quantile k is the sum of the blocks up to k
        mixing = np.triu(np.ones((count, count)))
        functions = self._learn(X, Pinballs(levels, y), shares, squares, mixing)
        self.lowest_, self.increments_ = functions[0], functions[1:]
        return self

    def predict(self, X: Any) -> Floats:
        """The quantiles of X[i], shape (n, levels), from the lowest to the highest."""
        check_fitted(self)
        X = check_points(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = [f(X) for f in (self.lowest_, *self.increments_)]
            quantiles = self.center_ + self.spread_ * np.cumsum(steps, axis=0).T
        return check_prediction(self, quantiles)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """(low, high), the quantiles between which a share `level` of targets is expected."""
        level, levels = check_fraction("level", level), _check_levels(self.levels)
        ends = [
            next((k for k, at in enumerate(levels) if abs(at - end) < 1e-9), None)
            for end in (0.5 - 0.5 * level, 0.5 + 0.5 * level)
        ]
        if None in ends:
            raise ValueError(
                f"level {level} needs the quantiles {0.5 - 0.5 * level:.6g} and "
                f"{0.5 + 0.5 * level:.6g}, got levels {levels}: fit with these levels."
            )
        quantiles = self.predict(X)
        return quantiles[:, ends[0]], quantiles[:, ends[1]]

    def score(self, X: Any, y: Any) -> float:
        """Minus the quantile loss, averaged over rows and levels: higher is better."""
        quantiles = self.predict(X)
        y = check_targets(y, quantiles, several=False)
        losses = [
            Quantile(level).value(y, q).mean()
            for level, q in zip(_check_levels(self.levels), quantiles.T, strict=True)
        ]
        return -float(np.mean(losses))


def _spread_of(centred: Floats, shares: Floats) -> float:
    """The standard deviation, 1 if there is none."""
    return float(np.sqrt(shares @ centred**2)) or 1.0


def _check_levels(levels: Any) -> tuple[float, ...]:
    numbers = as_floats("levels", levels)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise ValueError(f"levels must be a list of numbers, got {shown(levels)}.")
    checked = tuple(check_fraction("levels", float(level)) for level in numbers)
    if any(b <= a for a, b in pairwise(checked)):
        raise ValueError(f"levels must increase, got {shown(levels)}.")
    return checked
