"""Non-negative regression by sums of squares."""

from __future__ import annotations

import warnings
from typing import Any, Self, final

import numpy as np
from sklearn.base import RegressorMixin

from hplus._checks import Floats
from hplus._progress import whole_or_not
from hplus.estimators.base import (
    Estimator,
    as_landmarks,
    check_fitted,
    check_loss,
    check_points,
    check_prediction,
    function_values,
    warn_if_loose,
)
from hplus.estimators.targets import training_data
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import Absolute, Huber, Loss, Poisson, Quantile, Squared
from hplus.positivity import Cone, Diagonal, Full, Paper, SumOfSquares, as_cone
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import SolverResult
from hplus.solvers.sos.learning import feature_map, learn, learn_diagonal, learn_paper, regression
from hplus.solvers.sos.psd import GAP
from hplus.tuning.scales import cross_validated_squares
from hplus.windows import Window

SQUARES_LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "poisson": Poisson,
    "quantile": Quantile,
    "huber": Huber,
    "absolute": Absolute,
}
"""The losses of SoSRegressor."""


@final
class SoSRegressor(RegressorMixin, Estimator):
    """Regression with a non-negative function: a sum of squares of kernel functions.

    Minimises  Σ_i w_i Φ(y_i, f(x_i)) / Σ_i w_i + the penalty of the cone  over all f >= 0 in the
    cone, to a certified gap. f is a sum of squares in floating point too, so no prediction is ever
    negative, and none is clipped.

    Parameters
    ----------
    kernel : Kernel or "auto", default="auto"
        The kernel of the functions that are squared. "auto" is a Gaussian whose scale in each
        column is the column's standard deviation times one common factor, which is learned by
        cross-validation from at most 1,000 rows (300 for "quantile", "huber" and "absolute").
    loss : str or loss, default="squared"
        "squared", "poisson" (counts y with mean f), "quantile", "huber", "absolute", or a value
        such as `Quantile(0.9)`.
    cone : Cone or str, default="full"
        `Full(trace, frobenius)`, all sums of squares; `Diagonal(penalty)`, non-negative weights on
        squared kernels at the data; `Paper(penalty)`, a smaller cone that is slow and needs cvxpy;
        or one of these names. "auto" is `Full` with penalties learned by cross-validation; use it
        unless y is of unit size. The effect of a given penalty depends on the unit of y: with y in
        the hundreds the default makes a "poisson" or "absolute" fit far too small.
    landmarks : int or Nystroem, default=None
        Restrict f to functions on this many data points: needed for rough kernels and many rows.
        None uses all points that the kernel can distinguish.

    Attributes
    ----------
    function_ : SumOfSquares
        f as a value that can be evaluated, integrated, differentiated, added, multiplied and
        sampled.
    kernel_ : Kernel
    cone_ : Cone
    solution_ : SolverResult
        `objective` is certified to be at most `gap` above its minimum over the functions on the
        landmarks or, without any, on the points that the kernel distinguishes (to 1e-9 of k(x, x)).
    """

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        loss: Any = "squared",
        cone: Cone | str = "full",
        landmarks: int | Nystroem | None = None,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.cone = cone
        self.landmarks = landmarks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d) and targets y (n,)."""
        with whole_or_not(self):
            loss, cone = self._loss(), self._cone()
            landmarks = as_landmarks(self.landmarks)
            X, y, shares = training_data(self, X, y, sample_weight)
            loss.require(y)
            _warn_if_negative(float(shares @ y))
            self.kernel_, self.cone_ = cross_validated_squares(
                X, y, shares, loss, self.kernel, cone
            )
            self.function_, self.solution_ = self._learned(X, y, shares, loss, landmarks)
            warn_if_loose(self, self.solution_, GAP)
        return self

    def predict(self, X: Any) -> Floats:
        """f(X[i]) >= 0, shape (n,)."""
        return check_prediction(self, function_values(self, X))

    def gradient(self, X: Any) -> Floats:
        """∇f(X[i]), shape (n, d)."""
        check_fitted(self)
        X = check_points(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = self.function_.gradient(X)
        return check_prediction(self, slopes)

    def integral(self, window: Window) -> float:
        """∫_W f, in closed form where the kernel has one."""
        check_fitted(self)
        return self.function_.integral(window)

    def _learned(
        self, X: Floats, y: Floats, shares: Floats, loss: Loss, landmarks: Nystroem | None
    ) -> tuple[SumOfSquares, SolverResult]:
        if isinstance(self.cone_, Paper):
            return learn_paper(self.kernel_, X, y, shares, self.cone_.penalty)
        if isinstance(self.cone_, Diagonal):
            Z = (Nystroem(len(X)) if landmarks is None else landmarks).rows(X)
            return learn_diagonal(self.kernel_, X, Z, Risk(loss, y, shares, self.cone_.penalty))
        assert isinstance(self.cone_, Full)
        features = feature_map(self.kernel_, X, landmarks)
        problem = regression(loss, y, shares, features(X), self.cone_)
        (f,), result = learn(problem, features, X)
        assert isinstance(f, SumOfSquares)
        return f, result

    def _loss(self) -> Loss:
        return check_loss(self.loss, SQUARES_LOSSES, "use KernelRegressor for others")

    def _cone(self) -> Cone | None:
        """The cone, or None if its penalties are to be learned."""
        cone = as_cone(self.cone)
        if isinstance(cone, Paper) and (self._loss() != Squared() or self.landmarks is not None):
            raise ValueError(
                "cone Paper needs the squared loss and no landmarks, got loss "
                f"{self._loss()} and landmarks {self.landmarks}: use Diagonal or Full."
            )
        return cone

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # scikit-learn's checks have negative targets
        tags.target_tags.positive_only = self.loss == "poisson" or isinstance(self.loss, Poisson)
        return tags


def _warn_if_negative(mean: float) -> None:
    if mean < 0.0:
        warnings.warn(
            f"the mean of y is {mean:.3g}, but SoSRegressor predicts non-negative values: use "
            "KernelRegressor, or fit -y if y cannot be positive.",
            UserWarning,
            stacklevel=3,
        )
