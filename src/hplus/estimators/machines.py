"""Kernel machines: regression and classification by the representer theorem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, final

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from hplus._checks import Floats, check_choice, check_flag
from hplus._progress import whole_or_not
from hplus.estimators.base import (
    Estimator,
    as_landmarks,
    check_diagonal,
    check_exposure,
    check_kernel,
    check_loss,
    check_penalty,
    check_points,
    check_prediction,
    check_weights,
    function_values,
    merge_repeated,
    warn_if_loose,
)
from hplus.estimators.targets import (
    Labels,
    check_classes,
    check_labels,
    check_targets,
    one_against_rest,
)
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import LABEL_LOSSES, Hinge, Logistic, Loss, Poisson, PoissonLog, Squared, as_loss
from hplus.solvers.machines.representer import basis_for, promised_gap, ridge, train
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import SolverResult
from hplus.tuning.penalties import kernel_and_penalty

REGRESSION_LOSSES = (
    "squared", "absolute", "quantile", "huber", "epsilon_insensitive", "poisson_log")  # fmt: skip
"""The losses that KernelRegressor accepts by name."""


@final
class KernelRegressor(RegressorMixin, MultiOutputMixin, Estimator):
    """Regression in a kernel's function space, with any convex loss.

    Minimises  Σ_i w_i Φ(y_i, f(x_i) + b) / Σ_i w_i + penalty ‖f‖²  over the functions f of the
    kernel's space and numbers b. By the representer theorem f is a weighted sum of kernels at the
    data points.

    Parameters
    ----------
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale in each column is the column's standard deviation times
        one common factor. The factor is learned from at most 1,000 rows: by leave-one-out for the
        squared loss, by cross-validation for the others.
    loss : str or loss, default="squared"
        A name ("squared", "absolute", "quantile", "huber", "epsilon_insensitive",
        "poisson_log"), a value such as `Quantile(0.9)`, or any object with `value(y, f)` and
        `slope(y, f)`. "poisson_log" fits counts with mean exp(f + b), where b is the logarithm of
        the mean of y, and predicts exp(f + b): rates shrink towards their mean, whatever their
        unit.
    penalty : float or "auto", default="auto"
        Larger values give smoother functions. "auto" is learned from at most 1,500 rows, together
        with the scale of the kernel if that is "auto" too: by approximate leave-one-out for smooth
        losses, by cross-validation for those with kinks. It follows the unit of y: 1,000 y gives
        1,000 times the predictions. scikit-learn's `KernelRidge(alpha)` has `penalty = alpha / n`
        and no intercept.
    landmarks : int or Nystroem, default=None
        Restrict f to functions on this many data points: faster from about 2,000 rows, and
        necessary from about 20,000.
    fit_intercept : bool, default=True
        Add a number b, which is not penalised, to f: far from the data, predictions are b. False
        leaves b at 0, or for "poisson_log" at the logarithm of the mean of y.

    Attributes
    ----------
    function_ : Function
    intercept_ : float, or array (outputs,)
        b. For "poisson_log" without `fit_intercept`, the logarithm of Σ w y / Σ w exposure, or 0
        if no y is positive.
    kernel_ : Kernel
    penalty_ : float
    solution_ : SolverResult
        `objective` is certified to be at most `gap` above its minimum, over the functions on the
        landmarks if there are any; for "poisson_log" that of targets y e^-b with weights w e^b.
    """

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        loss: Any = "squared",
        penalty: float | str = "auto",
        landmarks: int | Nystroem | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.penalty = penalty
        self.landmarks = landmarks
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None) -> Self:
        """Learn from rows X (n, d) and targets y (n,), or (n, outputs) for the squared loss.

        `exposure`, for "poisson_log" only, is the time, area or number of trials in which the
        count of each row was observed: the mean of y is exposure·exp(f + b), and `predict` returns
        the rate exp(f + b).
        """
        with whole_or_not(self):
            loss = self._loss()
            check_kernel(self.kernel)
            penalty = check_penalty(self.penalty)
            as_landmarks(self.landmarks)
            bias = check_flag("fit_intercept", self.fit_intercept)
            X = check_points(self, X, reset=True)
            y = check_targets(y, X, several=isinstance(loss, Squared))
            loss.require(y)
            check_diagonal(self.kernel, X)
            weights = check_weights("sample_weight", sample_weight, len(X))
            if exposure is not None and not isinstance(loss, PoissonLog):
                raise ValueError(f'exposure needs loss="poisson_log", got loss {loss}.')
            E = check_exposure(exposure, len(X))
            y = y / (E if y.ndim == 1 else E[:, None])
            X, y, shares = merge_repeated(X, y, E * weights / weights.sum())
            # e^(f + b) - y f = e^b (e^f - y e^-b f), with level = e^b the mean rate
            mean = float(shares @ y / shares.sum()) if isinstance(loss, PoissonLog) else 1.0
            level = mean or 1.0
            bias = bias and mean > 0.0
            b = self._learn(X, loss, y / level, shares * level, penalty, bias=bias)
            self.intercept_ = b + float(np.log(level))
            warn_if_loose(self, self.solution_, promised_gap(loss))
        return self

    def _learn(
        self, X: Floats, loss: Loss, y: Floats, shares: Floats, penalty: float | None, *, bias: bool
    ) -> float | Floats:
        """Set the kernel, the penalty and the function, and return the bias of each output."""
        columns = np.reshape(y, (len(y), -1)).T
        risks = [Risk(loss, column, shares, penalty or 1.0, bias) for column in columns]
        self.kernel_, self.penalty_ = kernel_and_penalty(X, risks, self.kernel, penalty, "primal")
        basis = basis_for(self.kernel_, X, as_landmarks(self.landmarks))
        self.loss_ = loss
        if isinstance(loss, Squared):
            each = ridge(basis, y, shares, self.penalty_, bias=bias)
            self.function_, self.solution_ = basis.function(each.coefficients), each.result
            return each.biases if y.ndim == 2 else float(each.biases[0])
        trained = train(basis, replace(risks[0], penalty=self.penalty_))
        self.function_, self.solution_ = basis.function(trained.coefficients), trained.result
        return trained.bias

    def predict(self, X: Any) -> Floats:
        """f(X[i]) + b, shape (n,) or (n, outputs); for "poisson_log" the rate exp(f + b)."""
        f = function_values(self, X) + self.intercept_
        return check_prediction(self, self.loss_.mean(f))

    def _loss(self) -> Loss:
        if isinstance(self.loss, str):
            check_choice("loss", self.loss, REGRESSION_LOSSES)
        loss = as_loss(self.loss)
        if isinstance(loss, Poisson):
            raise ValueError(
                'loss "poisson" needs a non-negative function: use "poisson_log" here.'
            )
        if isinstance(loss, tuple(LABEL_LOSSES.values())):
            raise ValueError(
                f"loss must be a regression loss, got {loss}: use KernelClassifier for labels."
            )
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
        raise AttributeError(f'predict_proba needs loss="logistic", got {loss}.')
    return True


@final
class KernelClassifier(ClassifierMixin, Estimator):
    """Classification in a kernel's function space: support vectors, or logistic regression.

    Minimises  Σ_i w_i Φ(y_i, f(x_i) + b) / Σ_i w_i + penalty ‖f‖²,  y_i = ±1, with a free bias b.
    Several classes are learned one against the rest. libsvm's cost is C = 1/(2·penalty·n).

    Parameters
    ----------
    kernel : Kernel or "auto", default="auto"
        "auto" is a Gaussian whose scale is learned by cross-validation.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        "logistic" gives probabilities.
    penalty : float or "auto", default="auto"
        Larger values give smoother functions. "auto" is learned from at most 1,500 rows, together
        with the scale of the kernel if that is "auto" too.
    solver : {"auto", "dual", "primal"}, default="auto"
        For the hinge loss: libsvm on the dual (the choice of "auto"), or an interior-point method
        on the kernelised primal; both reach the same optimum. Other losses use "primal" only.
    landmarks : int or Nystroem, default=None
        Restrict f to functions on this many data points, for large n; "primal" only.

    Attributes
    ----------
    classes_ : array
    function_ : Function
        One output for two classes, one for each class otherwise.
    intercept_ : array (outputs,)
    kernel_ : Kernel
    penalty_ : float
    solution_ : SolverResult
        `objective` is certified to be at most `gap` above its minimum, over the functions on the
        landmarks if there are any; both are summed over the classes.
    """

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        loss: str = "hinge",
        penalty: float | str = "auto",
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
            penalty = check_penalty(self.penalty)
            landmarks = as_landmarks(self.landmarks)
            X = check_points(self, X, reset=True)
            y = check_labels(y, X)
            check_diagonal(self.kernel, X)
            weights = check_weights("sample_weight", sample_weight, len(X))
            self.classes_ = check_classes(y[weights > 0.0], "give another class a positive weight")
            codes = np.searchsorted(self.classes_, np.where(weights > 0.0, y, self.classes_[0]))
            X, codes, shares = merge_repeated(X, codes, weights / weights.sum())
            sides = one_against_rest(codes, np.arange(len(self.classes_)))
            risks = [Risk(loss, side, shares, penalty or 1.0, bias=True) for side in sides]
            self.kernel_, self.penalty_ = kernel_and_penalty(X, risks, self.kernel, penalty, solver)
            basis = basis_for(self.kernel_, X, landmarks)
            self.loss_ = loss
            trained = [train(basis, replace(r, penalty=self.penalty_), solver) for r in risks]
            self.function_ = basis.function(np.stack([t.coefficients for t in trained], axis=1))
            self.intercept_ = np.array([t.bias for t in trained])
            self.solution_ = SolverResult.total([t.result for t in trained])
            warn_if_loose(self, self.solution_, promised_gap(loss))
        return self

    def decision_function(self, X: Any) -> Floats:
        """f(X[i]) + b: shape (n,), positive for classes_[1], or (n, classes)."""
        f = function_values(self, X) + self.intercept_
        return check_prediction(self, f[:, 0] if len(self.classes_) == 2 else f)

    def predict(self, X: Any) -> Labels:
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

    def _loss(self) -> Loss:
        return check_loss(self.loss, LABEL_LOSSES, "use KernelRegressor for other losses")

    def _solver(self) -> str:
        solver = check_choice("solver", self.solver, ("auto", "dual", "primal"))
        dual = isinstance(self._loss(), Hinge) and self.landmarks is None
        if solver == "dual" and not dual:
            raise ValueError(
                'solver="dual" needs loss="hinge" and no landmarks, got '
                f'loss {self._loss()} and landmarks {self.landmarks}: use solver="primal".'
            )
        return ("dual" if dual else "primal") if solver == "auto" else solver
