"""Non-negative regression: the mean, or any convex loss's answer, as a sum of squares."""

from __future__ import annotations

import warnings
from typing import Any, Self, final

import numpy as np
from sklearn.base import RegressorMixin

from hplus._checks import Floats, check_choice, shown
from hplus._progress import whole_or_not
from hplus.estimators.base import (
    Estimator,
    as_landmarks,
    check_fitted,
    check_points,
    check_prediction,
    training_data,
    warn_if_loose,
)
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import Absolute, Huber, Loss, Poisson, Quantile, Squared, as_loss
from hplus.positivity import Cone, Diagonal, Full, Paper, SumOfSquares, as_cone
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import SolverResult
from hplus.solvers.sos.learning import (
    feature_map,
    learn,
    learn_diagonal,
    learn_paper,
    regression,
)
from hplus.solvers.sos.psd import GAP
from hplus.storage import storable
from hplus.tuning.scales import cross_validated_squares
from hplus.windows import Window

SQUARES_LOSSES = ("squared", "poisson", "quantile", "huber", "absolute")
"""The names of the losses that SoSRegressor takes."""


@final
@storable
class SoSRegressor(RegressorMixin, Estimator):
    """Regression with a function that is never negative: a sum of squares of kernel functions.

    Minimises  Σ_i w_i Φ(y_i, f(x_i)) / Σ_i w_i + the cone's penalty  over f >= 0 in the cone; the
    optimum is found to a certified gap. f is a sum of squares in floating point too: no prediction
    is ever negative, and none is clipped.

    Parameters
    ----------
    kernel : Kernel or "auto", default="auto"
        The squares are of functions in this kernel's space. "auto" is a Gaussian whose scale in
        each column is the column's spread times one factor, learned by cross-validation from at
        most 1,000 rows (300 for "quantile", "huber" and "absolute").
    loss : str or loss, default="squared"
        "squared", "poisson" (counts y with mean f), "quantile", "huber", "absolute", or a value
        such as `Quantile(0.9)`.
    cone : Cone or str, default="full"
        `Full(trace, frobenius)`, all sums of squares; `Diagonal(penalty)`, non-negative weights on
        squared kernels at the data; `Paper(penalty)`, a smaller cone, slow, needs cvxpy; or their
        names. "auto" is `Full` with penalties learned by cross-validation. Take it unless y is of
        unit size: the effect of a given penalty depends on the unit of y, and with y in the
        hundreds the default pulls a "poisson" or "absolute" fit far down.
    landmarks : int or Nystroem, default=None
        Look for f among functions on so many data points only: needed for rough kernels and many
        rows. None uses all points, as many as the kernel can tell apart.

    Attributes
    ----------
    function_ : SumOfSquares
        f as a value: evaluate, integrate, differentiate, add, multiply, sample it.
    kernel_ : Kernel
    cone_ : Cone
    solution_ : SolverResult
        `objective` is certified to lie at most `gap` above the smallest possible value among the
        functions on the landmarks or, without any, on the points that the kernel tells apart (to
        1e-9 of k(x, x)).
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
        check_fitted(self)
        X = check_points(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            f = self.function_(X)
        return check_prediction(self, f)

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
        learned = learn(problem, features, X)
        (f,) = learned.functions
        assert isinstance(f, SumOfSquares)
        return f, learned.result

    def _loss(self) -> Loss:
        if isinstance(self.loss, str):
            check_choice("loss", self.loss, SQUARES_LOSSES)
        loss = as_loss(self.loss)
        if not isinstance(loss, Squared | Poisson | Quantile | Huber | Absolute):
            raise ValueError(
                f"loss must be one of {', '.join(map(repr, SQUARES_LOSSES))} or such a value, got "
                f"{shown(self.loss)}: use KernelRegressor for others."
            )
        return loss

    def _cone(self) -> Cone | None:
        """The cone, None if its penalties are to be learned."""
        cone = as_cone(self.cone)
        if isinstance(cone, Paper) and (self._loss() != Squared() or self.landmarks is not None):
            raise ValueError(
                "cone Paper goes with the squared loss on all points, got loss "
                f"{self._loss()} and landmarks {self.landmarks}: use Diagonal or Full."
            )
        return cone

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # where targets are negative, as in its checks
        tags.target_tags.positive_only = self.loss == "poisson" or isinstance(self.loss, Poisson)
        return tags


def _warn_if_negative(mean: float) -> None:
    if mean < 0.0:
        warnings.warn(
            f"y is {mean:.3g} on average and SoSRegressor predicts at least 0: use "
            "KernelRegressor, or fit -y if it is the negative that cannot be below zero.",
            UserWarning,
            stacklevel=3,
        )
