"""The kernel machines: regression and classification by the representer theorem."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from hplus._checks import Floats, check_choice, check_positive, shown
from hplus._progress import whole_or_not
from hplus.estimators.base import (
    LARGEST,
    Estimator,
    as_landmarks,
    check_diagonal,
    check_fitted,
    check_kernel,
    check_labels,
    check_per_row,
    check_points,
    check_prediction,
    check_targets,
    check_weights,
    merge_repeated,
    warn_if_loose,
)
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import (
    LOSSES,
    Hinge,
    Logistic,
    Loss,
    Poisson,
    PoissonLog,
    Squared,
    SquaredHinge,
    as_loss,
)
from hplus.solvers.machines.representer import (
    AllPoints,
    Basis,
    Landmarks,
    Trained,
    promised_gap,
    ridge,
    train,
)
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import SolverResult, Status
from hplus.space import Function
from hplus.storage import storable
from hplus.tuning.scales import cross_validated_scale, leave_one_out_scale

REGRESSION_LOSSES = (
    "squared", "absolute", "quantile", "huber", "epsilon_insensitive", "poisson_log",
)  # fmt: skip
"""The names of the losses that KernelRegressor takes."""


@final
@storable
class KernelRegressor(RegressorMixin, MultiOutputMixin, Estimator):
    """Regression in a kernel's function space, with any convex loss.

    Minimises  Σ_i w_i Φ(y_i, f(x_i)) / Σ_i w_i + penalty ‖f‖²  over the functions f of the
    kernel's space (the representer theorem: f is a weighted sum of kernels at the data).

    Parameters
    ----------
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale in each column is the column's spread times one factor,
        learned from at most 1,000 rows: by leave-one-out for the squared loss, by
        cross-validation for others.
    loss : str or loss, default="squared"
        A name ("squared", "absolute", "quantile", "huber", "epsilon_insensitive",
        "poisson_log"), a value such as `Quantile(0.9)`, or any object with `value(y, f)` and
        `slope(y, f)`. "poisson_log" fits counts with mean exp(f + b), b the logarithm of the mean
        of y, and predicts that mean: rates of any unit are drawn to their mean, not to 1.
    penalty : float, default=1e-3
        Larger is smoother. scikit-learn's `KernelRidge(alpha)` is `penalty = alpha / n`. For
        losses other than the squared one its effect depends on the unit of y: when y has values
        in the hundreds, try 1e-6, or bring y to unit size first.
    landmarks : int or Nystroem, default=None
        Look for f among functions on so many data points only: faster from some 2,000 rows on,
        needed from some 20,000.

    No intercept is learned: far from the data f is 0 (and exp(f + b) the mean of y). Where that is
    not wanted, add a `Constant` to the kernel, such as `Gaussian(1.0) + Constant(100.0)`.

    Attributes
    ----------
    function_ : Function
    intercept_ : float
        b for "poisson_log": the logarithm of Σ w y / Σ w exposure (0 if no y is above 0). 0 for
        other losses.
    kernel_ : Kernel
    solution_ : SolverResult
        `objective` is certified to lie at most `gap` above the smallest possible value, among
        the functions on the landmarks if there are any; for "poisson_log" that of targets y e^-b
        with weights w e^b.
    """

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        loss: Any = "squared",
        penalty: float = 1e-3,
        landmarks: int | Nystroem | None = None,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.penalty = penalty
        self.landmarks = landmarks

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None) -> Self:
        """Learn from rows X (n, d) and targets y (n,), or (n, outputs) for the squared loss.

        `exposure`, for "poisson_log" only, is how long or how often each row was watched: the
        mean of y is exposure·exp(f + b), and `predict` gives the rate exp(f + b).
        """
        with whole_or_not(self):
            loss = self._loss()
            check_kernel(self.kernel)
            penalty = check_positive("penalty", self.penalty)
            landmarks = as_landmarks(self.landmarks)
            X = check_points(self, X, reset=True)
            y = check_targets(y, X, several=isinstance(loss, Squared))
            loss.require(y)
            check_diagonal(self.kernel, X)
            weights = check_weights("sample_weight", sample_weight, len(X))
            watched = _check_exposure(loss, exposure, len(X))
            y = y / (watched if y.ndim == 1 else watched[:, None])
            X, y, shares = merge_repeated(X, y, watched * weights / weights.sum())
            level = _mean_rate(loss, y, shares)
            # e^(f + b) - y f = e^b (e^f - y e^-b f), with level = e^b
            y, shares = y / level, shares * level
            self.kernel_ = _learned_kernel(self.kernel, X, y, shares, loss, penalty)
            basis = _basis(self.kernel_, X, landmarks)
            if isinstance(loss, Squared):
                trained = ridge(basis, y, shares, penalty)
            else:
                trained = train(basis, Risk(loss, y, shares, penalty))
            self.loss_, self.solution_ = loss, trained.result
            self.function_ = basis.function(trained.coefficients)
            self.intercept_ = float(np.log(level))
            warn_if_loose(self, self.solution_, promised_gap(loss))
        return self

    def predict(self, X: Any) -> Floats:
        """f(X[i]), shape (n,) or (n, outputs); for "poisson_log" exp(f + b), the expected count."""
        check_fitted(self)
        X = check_points(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            f = self.function_(X) + self.intercept_
        return check_prediction(self, self.loss_.mean(f))

    def _loss(self) -> Loss:
        if isinstance(self.loss, str):
            check_choice("loss", self.loss, REGRESSION_LOSSES)
        loss = as_loss(self.loss)
        if isinstance(loss, Poisson):
            raise ValueError(
                'loss "poisson" needs a function that is never negative: use "poisson_log" here.'
            )
        if isinstance(loss, Hinge | SquaredHinge | Logistic):
            raise ValueError(f"loss {loss} is for labels: use KernelClassifier.")
        return loss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = isinstance(self.loss, Squared) or self.loss == "squared"
        tags.target_tags.positive_only = (
            isinstance(self.loss, PoissonLog) or self.loss == "poisson_log"
        )
        return tags


def _probabilistic(estimator: KernelClassifier) -> bool:
    loss = getattr(estimator, "loss_", None) or as_loss(estimator.loss)
    if not isinstance(loss, Logistic):
        raise AttributeError(f'probabilities need loss="logistic", got {loss}.')
    return True


@final
@storable
class KernelClassifier(ClassifierMixin, Estimator):
    """Classification in a kernel's function space: support vectors, or logistic regression.

    Minimises  Σ_i w_i Φ(y_i, f(x_i) + b) / Σ_i w_i + penalty ‖f‖²,  y_i = ±1, with a free bias b;
    several classes one against the rest. libsvm's cost is C = 1/(2·penalty·n).

    Parameters
    ----------
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale is learned by cross-validation.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        "logistic" gives probabilities.
    penalty : float, default=1e-3
        Larger is smoother.
    solver : {"auto", "dual", "primal"}, default="auto"
        For the hinge: libsvm on the dual (what "auto" takes), or an interior point method on the
        kernelised primal; both reach the same optimum. The other losses have "primal" only.
    landmarks : int or Nystroem, default=None
        Look for f among functions on so many data points only: for large n, "primal" only.

    Attributes
    ----------
    classes_ : array
    function_ : Function
        One output for two classes, one for each class otherwise.
    intercept_ : array (outputs,)
    kernel_ : Kernel
    solution_ : SolverResult
        `objective` is certified to lie at most `gap` above the smallest possible value, among
        the functions on the landmarks if there are any; both are summed over the classes.
    """

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        loss: str = "hinge",
        penalty: float = 1e-3,
        solver: str = "auto",
        landmarks: int | Nystroem | None = None,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.landmarks = landmarks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d) and labels y (n,)."""
        with whole_or_not(self):
            loss, solver = self._loss(), self._solver()
            check_kernel(self.kernel)
            penalty = check_positive("penalty", self.penalty)
            landmarks = as_landmarks(self.landmarks)
            X = check_points(self, X, reset=True)
            y = check_labels(y, X)
            check_diagonal(self.kernel, X)
            weights = check_weights("sample_weight", sample_weight, len(X))
            self.classes_ = _check_classes(y[weights > 0.0])
            codes = np.searchsorted(self.classes_, np.where(weights > 0.0, y, self.classes_[0]))
            X, codes, shares = merge_repeated(X, codes, weights / weights.sum())
            sides = _one_against_rest(codes, len(self.classes_))
            risks = [Risk(loss, side, shares, penalty, bias=True) for side in sides]
            self.kernel_: Any = self.kernel
            if not isinstance(self.kernel, Kernel):
                self.kernel_ = cross_validated_scale(X, risks, solver)
            basis = _basis(self.kernel_, X, landmarks)
            self.loss_ = loss
            self._keep(basis, [train(basis, risk, solver) for risk in risks])
            warn_if_loose(self, self.solution_, promised_gap(loss))
        return self

    def decision_function(self, X: Any) -> Floats:
        """f(X[i]) + b: shape (n,), positive for classes_[1], or (n, classes)."""
        check_fitted(self)
        X = check_points(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            f = self.function_(X) + self.intercept_
        return check_prediction(self, f[:, 0] if len(self.classes_) == 2 else f)

    def predict(self, X: Any) -> Any:
        """The label of each row."""
        f = self.decision_function(X)
        return self.classes_[f.argmax(axis=1) if f.ndim == 2 else (f > 0.0).astype(np.intp)]

    @available_if(_probabilistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, shape (n, classes)."""
        f = self.decision_function(X)
        if f.ndim == 1:
            return expit(np.stack([-f, f], axis=1))
        # proportional to 1/(1 + e^-f), which may underflow for every class
        return softmax(-np.logaddexp(0.0, -f), axis=1)

    def _keep(self, basis: Basis, trained: list[Trained]) -> None:
        c = np.stack([t.coefficients for t in trained], axis=1)
        self.function_: Function = basis.function(c)
        self.intercept_ = np.array([t.bias for t in trained])
        self.solution_ = SolverResult(
            max((t.result.status for t in trained), key=list(Status).index),
            sum(t.result.iterations for t in trained),
            sum(t.result.objective for t in trained),
            sum(t.result.gap for t in trained),
            sum(t.result.size for t in trained),
        )

    def _loss(self) -> Loss:
        unknown = isinstance(self.loss, str) and self.loss not in LOSSES
        loss = None if unknown else as_loss(self.loss)
        if not isinstance(loss, Hinge | SquaredHinge | Logistic):
            raise ValueError(
                'loss must be one of "hinge", "squared_hinge", "logistic", '
                f"got {shown(self.loss)}: use KernelRegressor for others."
            )
        return loss

    def _solver(self) -> str:
        solver = check_choice("solver", self.solver, ("auto", "dual", "primal"))
        dual = isinstance(self._loss(), Hinge) and self.landmarks is None
        if solver == "dual" and not dual:
            raise ValueError(
                'solver="dual" goes with loss="hinge" on all points: use solver="primal" for '
                "other losses and for landmarks."
            )
        return ("dual" if dual else "primal") if solver == "auto" else solver


def _basis(kernel: Kernel, X: Floats, landmarks: Nystroem | None) -> Basis:
    return AllPoints(kernel, X) if landmarks is None else Landmarks(kernel, X, landmarks)


def _learned_kernel(
    kernel: Kernel | str, X: Floats, y: Floats, shares: Floats, loss: Loss, penalty: float
) -> Kernel:
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(loss, Squared):
        return leave_one_out_scale(X, y, shares, penalty)
    return cross_validated_scale(X, [Risk(loss, y, shares, penalty)])


def _check_exposure(loss: Loss, exposure: Any, n: int) -> Floats:
    if exposure is None:
        return np.ones(n)
    if not isinstance(loss, PoissonLog):
        raise ValueError(f'exposure goes with loss="poisson_log" only, got loss {loss}.')
    watched = check_per_row("exposure", exposure, n)
    if np.any(watched < 1.0 / LARGEST):
        raise ValueError(
            f"exposure must be at least {1.0 / LARGEST:.0e} in every row, got {watched.min():.6g} "
            f"in row {watched.argmin()}: drop such rows."
        )
    return watched


def _mean_rate(loss: Loss, y: Floats, shares: Floats) -> float:
    """The mean of rates y (n,) watched for these shares, 1 if it is 0; 1 for all but counts."""
    rate = float(shares @ y / shares.sum()) if isinstance(loss, PoissonLog) else 1.0
    return rate or 1.0


def _check_classes(y: Any) -> Any:
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes with positive weight, got 1 class: {classes[0]}."
        )
    return classes


def _one_against_rest(codes: Floats, count: int) -> list[Floats]:
    """Labels ±1: of class 1 against class 0, or of every class against the others."""
    positive = [1] if count == 2 else range(count)
    return [np.where(codes == k, 1.0, -1.0) for k in positive]
