"""KernelRegressor: regression by the representer theorem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, final

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from hplus._checks import Floats, check_choice, check_flag
from hplus._progress import whole_or_not
from hplus.estimators.base import (
    Estimator,
    as_landmarks,
    check_diagonal,
    check_exposure,
    check_kernel,
    check_penalty,
    check_points,
    check_prediction,
    check_weights,
    function_values,
    merge_repeated,
    warn_if_loose,
)
from hplus.estimators.chunked_rows import (
    CheckedChunks,
    Chunks,
    LazyChunks,
    ScaledRows,
    sampled_rows,
)
from hplus.estimators.targets import check_targets
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import LABEL_LOSSES, Loss, Poisson, PoissonLog, Squared, as_loss
from hplus.rates.lazy_parts import is_lazy
from hplus.solvers.machines.passes import minimised
from hplus.solvers.machines.representer import basis_for, promised_gap, ridge, train
from hplus.solvers.machines.risk import Risk
from hplus.space import Function
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
        one common factor, which is learned. From 3,000 rows on, with `penalty="auto"`, columns
        have scales of their own if these predict better.
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
        the rate exp(f + b). X holds finite numbers: encode missing values and categories first, or
        use `QuantityStudy`, which takes them. X, y and weights may be arrays or data frames of
        Dask: see `fit_chunks`.
        """
        if is_lazy(X):
            if exposure is not None:
                raise ValueError(
                    "exposure must be None for a collection of Dask: divide y by it, and multiply "
                    "sample_weight by it."
                )
            return self.fit_chunks(LazyChunks.of(X, y, sample_weight))
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

    def fit_chunks(self, chunks: Chunks) -> Self:
        """Learn from rows that are too many for memory, in chunks (X, y) or (X, y, sample_weight).

        `chunks` is gone through twice for the squared loss and some five times for "poisson_log",
        the only losses here: a list, or any object that gives all chunks whenever `iter` is called
        on it. `landmarks` are needed. They, the kernel and the penalty are learned from at most
        20,000 distinct rows, the same ones in any order; if there are no more, the result is that
        of `fit`.
        """
        with whole_or_not(self):
            loss, landmarks = self._loss(), as_landmarks(self.landmarks)
            if landmarks is None or not isinstance(loss, Squared | PoissonLog):
                raise ValueError(
                    'fit_chunks needs landmarks and loss="squared" or "poisson_log", got '
                    f"landmarks={self.landmarks} and loss {loss}."
                )
            check_kernel(self.kernel)
            penalty = check_penalty(self.penalty)
            bias = check_flag("fit_intercept", self.fit_intercept)
            self.__dict__.pop("n_features_in_", None)
            rows = CheckedChunks(self, chunks, loss)
            some = sampled_rows(rows)
            check_diagonal(self.kernel, some.X)
            level = (some.mean or 1.0) if isinstance(loss, PoissonLog) else 1.0
            shares = some.weights * (level / some.weights.sum())
            risk = Risk(loss, some.y / level, shares, penalty or 1.0, bias)
            self.kernel_, own = kernel_and_penalty(some.X, [risk], self.kernel, penalty, "primal")
            self.penalty_ = own * (some.share if penalty is None else 1.0)
            self.loss_: Loss = loss
            features = landmarks(self.kernel_, some.X)
            scaled, bias = (
                ScaledRows(rows, level, some.total),
                bias and (some.mean > 0.0 or isinstance(loss, Squared)),
            )
            start = None
            if some.share < 1.0 and not isinstance(loss, Squared):
                few = [(some.X, some.y / level, shares)]
                start = minimised(few, features, loss, self.penalty_, bias=bias)
            found = minimised(scaled, features, loss, self.penalty_, bias=bias, start=start)
            self.function_ = Function(self.kernel_, features.centers, features.root @ found.weights)
            self.intercept_, self.solution_ = found.bias + float(np.log(level)), found.result
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
