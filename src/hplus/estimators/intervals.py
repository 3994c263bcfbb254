"""How sure is a prediction? The noise level, or several quantiles, learned with the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
from scipy.stats import norm
from sklearn.base import RegressorMixin

from hplus._checks import Floats, as_floats, check_fraction, check_positive, shown
from hplus._progress import whole_or_not
from hplus.estimators.base import (
    Estimator,
    as_landmarks,
    check_fitted,
    check_points,
    check_prediction,
    check_targets,
    check_weights,
    training_data,
    warn_if_loose,
)
from hplus.features import Nystroem
from hplus.kernels import Constant, Kernel
from hplus.losses import Quantile
from hplus.positivity import Cone, Full, as_cone
from hplus.solvers.sos.blocks import FunctionBlock, Plain, Squares
from hplus.solvers.sos.learning import Learned, feature_map, learn
from hplus.solvers.sos.psd import GAP, Problem
from hplus.solvers.sos.rowwise import NormalNoise, Pinballs, RowLoss
from hplus.storage import storable
from hplus.tuning.scales import learned_cone, leave_one_out_scale

USUAL_PENALTY = 5e-4
"""Of the kernel ridge by which scales are learned."""

LEAST_PRECISION = 1e-3
"""1/σ² is at least this, in units of the targets' spread: far from the data σ is 32 spreads."""


class _Several(Estimator):
    """What estimators of several functions share: one kernel, targets of unit size."""

    kernel: Kernel | str
    penalty: float | None
    cone: Cone | str
    landmarks: int | Nystroem | None

    def _full_cone(self) -> Full | None:
        """The cone, None if its penalties are to be learned."""
        cone = as_cone(self.cone)
        if not (cone is None or isinstance(cone, Full)):
            raise ValueError(
                f"cone must be 'auto', 'full' or Full(trace, frobenius) here, got {shown(cone)}."
            )
        return cone

    def _learned_kernel(self, X: Floats, y: Floats, shares: Floats) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        return leave_one_out_scale(X, y, shares, USUAL_PENALTY) + Constant(1.0)

    def _learn(
        self, X: Floats, rows: RowLoss, shares: Floats, squares: Sequence[bool], mixing: Floats
    ) -> Learned:
        """A function for each entry of `squares`: a sum of squares, or one of any sign."""
        plain = None if self.penalty is None else check_positive("penalty", self.penalty)

        def problem(rows: RowLoss, shares: Floats, Phi: Floats, cone: Full) -> Problem:
            blocks: list[FunctionBlock] = [
                Squares(Phi, cone.trace, cone.frobenius)
                if positive
                else Plain(Phi, cone.frobenius if plain is None else plain)
                for positive in squares
            ]
            return Problem(rows, shares, tuple(blocks), mixing)

        self.cone_ = self._full_cone() or learned_cone(self.kernel_, X, rows, shares, problem)
        features = feature_map(self.kernel_, X, as_landmarks(self.landmarks))
        return learn(problem(rows, shares, features(X), self.cone_), features, X)


@final
@storable
class HeteroscedasticRegressor(RegressorMixin, _Several):
    """Regression with a noise level that depends on x, learned together with the mean.

    The target is normal with mean m(x) and variance s(x)²: 1/s² is a sum of squares, so that it is
    positive everywhere, m/s² a function of the kernel's space, and their negative log-likelihood is
    convex in the two. It is minimised, to a certified gap, with the penalties
    (penalty/2)‖m/s²‖² + cone, for targets brought to mean 0 and variance 1.

    Where the noise level varies by orders of magnitude, or the noise is not normal, use
    `QuantilesRegressor`, which assumes less.

    Parameters
    ----------
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale is learned from at most 1,000 rows by leave-one-out, plus
        a constant, so that far from the data mean and noise level are constants.
    penalty : float, default=None
        Of the mean. Larger is smoother. None takes the frobenius penalty of the cone.
    cone : Full or str, default="auto"
        Penalties of the noise level: `Full(trace, frobenius)`, "full" for its defaults, or "auto"
        to learn them by cross-validation from at most 1,000 rows.
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
            self.center_ = float(shares @ y)
            self.spread_ = _size(y - self.center_, y, shares)
            y = (y - self.center_) / self.spread_
            self.kernel_ = self._learned_kernel(X, y, shares)
            rows = NormalNoise(y, LEAST_PRECISION)
            learned = self._learn(X, rows, shares, (False, True), np.eye(2))
            (self.natural_, self.precision_), self.solution_ = learned.functions, learned.result
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
            eta, theta = self.natural_(X), self.precision_(X) + LEAST_PRECISION
        return check_prediction(self, eta), check_prediction(self, theta)


@final
@storable
class QuantilesRegressor(_Several):
    """Several quantiles of the target that cannot cross, learned together.

    The lowest one is a function of the kernel's space, and each of the others lies a sum of squares
    above the one before it, in floating point too. With `positive` the lowest is a sum of squares
    as well, so that a target that is never negative gets quantiles that never are. Their quantile
    losses are added and minimised, to a certified gap, with penalties, for targets brought to unit
    size.

    Parameters
    ----------
    levels : sequence of float, default=(0.05, 0.5, 0.95)
        In increasing order, each between 0 and 1.
    positive : bool, default=False
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale is learned from at most 1,000 rows by leave-one-out, plus
        a constant.
    penalty : float, default=None
        Of the lowest quantile, not with `positive`. Larger is smoother. None takes the frobenius
        penalty of the cone.
    cone : Full or str, default="auto"
        Penalties of the sums of squares: `Full(trace, frobenius)`, "full" for its defaults, or
        "auto" to learn them by cross-validation from at most 300 rows.
    landmarks : int or Nystroem, default=None
        Look for functions on so many data points only.

    Attributes
    ----------
    lowest_ : Function or SumOfSquares
        The lowest quantile, in units of `spread_`, less the center.
    increments_ : tuple of SumOfSquares
        How far each quantile lies above the one before it, in the same units.
    kernel_ : Kernel
    center_, spread_ : float
        The targets' mean (0 if `positive`), and the root mean square of what is left.
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
                    f"Negative values in y: positive=True needs targets of at least 0, got "
                    f"{y.min():.6g}."
                )
            self.center_ = 0.0 if positive else float(shares @ y)
            self.spread_ = _size(y - self.center_, y, shares)
            y = (y - self.center_) / self.spread_
            self.kernel_ = self._learned_kernel(X, y, shares)
            squares = (positive, *[True] * (len(levels) - 1))
            # quantile k is the sum of the blocks up to k
            mixing = np.triu(np.ones((len(levels), len(levels))))
            learned = self._learn(X, Pinballs(levels, y), shares, squares, mixing)
            self.levels_, self.solution_ = levels, learned.result
            self.lowest_, self.increments_ = learned.functions[0], learned.functions[1:]
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
        """(low, high), the quantiles between which a share `level` of targets is expected.

        None takes the lowest and the highest of `levels_`.
        """
        check_fitted(self)
        low, high = self._ends(level)
        quantiles = self.predict(X)
        return quantiles[:, low], quantiles[:, high]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the quantile loss, averaged over rows and levels: higher is better."""
        quantiles = self.predict(X)
        y = check_targets(y, quantiles, several=False)
        weights = check_weights("sample_weight", sample_weight, len(y))
        losses = [
            Quantile(level).value(y, q) for level, q in zip(self.levels_, quantiles.T, strict=True)
        ]
        return -float(np.average(np.mean(losses, axis=0), weights=weights))

    def _ends(self, level: float | None) -> tuple[int, int]:
        """Which quantiles an interval goes between."""
        levels = self.levels_
        if level is None:
            if len(levels) < 2:
                raise ValueError(f"an interval needs two quantiles, got levels {levels}: fit two.")
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
                f"penalty goes with positive=False only, got {self.penalty}: with positive=True "
                "the penalties are those of the cone."
            )
        return bool(self.positive)


def _size(part: Floats, y: Floats, shares: Floats) -> float:
    """The root mean square of a part of y; of y itself, or 1, where the part is rounding only."""
    for numbers, least in ((part, 1e-12 * float(np.abs(y).max())), (y, 0.0)):
        size = float(np.sqrt(shares @ numbers**2))
        if size > least:
            return size
    return 1.0


def _check_levels(levels: Any) -> tuple[float, ...]:
    numbers = as_floats("levels", levels)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise ValueError(f"levels must be a list of numbers, got {shown(levels)}.")
    checked = tuple(check_fraction("levels", float(level)) for level in numbers)
    if any(b <= a for a, b in pairwise(checked)):
        raise ValueError(f"levels must increase, got {shown(levels)}.")
    return checked
