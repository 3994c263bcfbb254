"""KernelClassifier: classification by the representer theorem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, final

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from hplus._checks import Floats, check_choice
from hplus._progress import whole_or_not
from hplus.estimators.base import (
    Estimator,
    as_landmarks,
    check_diagonal,
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
from hplus.estimators.targets import Labels, check_classes, check_labels, one_against_rest
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import LABEL_LOSSES, Hinge, Logistic, Loss, as_loss
from hplus.solvers.machines.representer import basis_for, promised_gap, train
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import SolverResult
from hplus.tuning.penalties import kernel_and_penalty


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
        "auto" is a Gaussian whose scale in each column is the column's standard deviation times
        one common factor, which is learned. From 3,000 rows on, with `penalty="auto"`, columns
        have scales of their own if these predict better.
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
        """Learn from rows X (n, d) and labels y (n,).

        X holds finite numbers: encode missing values and categories first.
        """
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
