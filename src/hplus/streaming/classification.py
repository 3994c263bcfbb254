"""StreamingClassifier: kernel classification on a stream."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from hplus._checks import Floats, shown
from hplus.estimators.base import check_loss, check_prediction
from hplus.estimators.targets import Labels, check_classes, check_labels, one_against_rest
from hplus.kernels import Kernel
from hplus.losses import LABEL_LOSSES, Logistic, Loss, Perceptron
from hplus.streaming.budgets import Budget
from hplus.streaming.steps import RootStep, Step
from hplus.streaming.supervised import Supervised

STREAM_LOSSES: dict[str, type[Loss]] = {**LABEL_LOSSES, "perceptron": Perceptron}


def _probabilistic(estimator: StreamingClassifier) -> bool:
    if not isinstance(estimator._loss(), Logistic):
        raise AttributeError(f'predict_proba needs loss="logistic", got {estimator._loss()}.')
    return True


@final
class StreamingClassifier(ClassifierMixin, Supervised):
    """Kernel classification on a stream; several classes are learned one against the rest.

    >>> from hplus import KOMP, Gaussian, StreamingClassifier
    >>> from hplus.datasets import banana
    >>> X, y = banana().X, banana().y
    >>> model = StreamingClassifier(Gaussian(0.7), budget=KOMP(0.05, relative=True))
    >>> model = model.partial_fit(X[:4000], y[:4000])
    >>> model.score(X[4000:], y[4000:]) > 0.85
    True

    Parameters
    ----------
    kernel : Kernel or "auto"
        "auto" is Gaussian(√(d/2)), which suits d standardised columns.
    loss : str or Loss
        "hinge", "squared_hinge", "logistic" (which gives probabilities) or "perceptron".
    step, decay, budget, average
        As in `StreamingRegressor`, but step="auto" is RootStep(8.0), since slopes are at most 1.
    """

    auto_step = RootStep(8.0)
    classes_: Labels

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        loss: Loss | str = "hinge",
        *,
        step: Step | float | str = "auto",
        decay: float = 0.0,
        budget: Budget | str | None = "auto",
        average: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.step = step
        self.decay = decay
        self.budget = budget
        self.average = average

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from rows X (n, d) and labels y (n,); give `classes` if y lacks some of them."""
        self._learn(X, y, classes)
        return self

    def predict_then_learn(self, X: Any, y: Any, classes: Any = None) -> Labels:
        """Predict the label of each row from the rows before it, then learn from it.

        Predictions are those of the current function, even with `average`.
        """
        return self._labels(self._learn(X, y, classes))

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn from one example; the classes must be known from an earlier `partial_fit`."""
        self._require_learned()
        row = self._one(x)
        self._learn_rows(row, _known_sides(check_labels([y], row), self.classes_))

    def decision_function(self, X: Any) -> Floats:
        """f(X[i]): shape (n,), positive for classes_[1], or (n, classes)."""
        f = check_prediction(self, self._values(X))
        return f[:, 0] if len(self.classes_) == 2 else f

    def predict(self, X: Any) -> Labels:
        """The label of each row."""
        return self._labels(check_prediction(self, self._values(X)))

    @available_if(_probabilistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, shape (n, classes)."""
        f = self.decision_function(X)
        if f.ndim == 1:
            return expit(np.stack([-f, f], axis=1))
        shares = np.maximum(expit(f), np.finfo(float).tiny)
        return shares / shares.sum(axis=1, keepdims=True)

    def _learn(self, X: Any, y: Any, classes: Any) -> Floats:
        X = self._examples(X)
        y = check_labels(y, X)
        fresh = not hasattr(self, "state_")
        if fresh:
            first = y if classes is None else check_labels(classes, classes)
            known = check_classes(first, "list all of them in classes=")
        else:
            known = self.classes_
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(
                f"classes must be the same as in the first call, {shown(known.tolist())}, got "
                f"{shown(classes)}."
            )
        sides = _known_sides(y, known)
        if fresh:
            self.classes_ = known
            self._begin([self._new_learner() for _ in sides])
        return np.stack(self._learn_rows(X, sides), axis=1)

    def _labels(self, f: Floats) -> Labels:
        codes = f.argmax(axis=1) if f.shape[1] > 1 else (f[:, 0] > 0.0).astype(np.intp)
        return self.classes_[codes]

    def _loss(self) -> Loss:
        return check_loss(self.loss, STREAM_LOSSES, "use StreamingRegressor for others")


def _known_sides(y: Labels, classes: Labels) -> list[Floats]:
    """Labels as ±1, one array for each learner; raises if y holds a class that is not known."""
    unknown = ~np.isin(y, classes)
    if np.any(unknown):
        raise ValueError(
            f"y must hold the classes {shown(classes.tolist())}, got {shown(y[unknown][0])}: list "
            "all of them in classes= of the first partial_fit."
        )
    return one_against_rest(y, classes)
