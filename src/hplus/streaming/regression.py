"""StreamingRegressor: kernel regression on a stream."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
from sklearn.base import RegressorMixin

from hplus._checks import Floats, check_choice, check_number
from hplus.estimators.base import LARGEST_INPUT, check_prediction
from hplus.estimators.targets import check_targets
from hplus.kernels import Kernel
from hplus.losses import Hinge, Logistic, Loss, Perceptron, Poisson, SquaredHinge, as_loss
from hplus.streaming.budgets import Budget
from hplus.streaming.engine.rules import POISSON
from hplus.streaming.links import Identity, Link, as_link
from hplus.streaming.settings import Part, link_part, loss_part
from hplus.streaming.steps import RootStep, Step
from hplus.streaming.supervised import Supervised

REGRESSION_LOSSES = ("squared", "absolute", "quantile", "huber", "epsilon_insensitive", "poisson")


@final
class StreamingRegressor(RegressorMixin, Supervised):
    """Kernel regression on a stream, one step for each example.

    z ← (1 - step·decay) z - step·Φ'(y, f(x)) k(x, ·), with f = z or e^z, and then the budget is
    applied. The result is the same, bit for bit, for chunks of any size.

    >>> import numpy as np
    >>> from hplus import Gaussian, StreamingRegressor
    >>> X = np.random.RandomState(0).uniform(size=(2000, 1))
    >>> model = StreamingRegressor(Gaussian(0.1), loss="poisson", link="log")
    >>> model = model.partial_fit(X, np.exp(3 * X[:, 0]))
    >>> model.predict([[0.5]]).round(1).tolist()
    [4.6]

    Parameters
    ----------
    kernel : Kernel or "auto"
        "auto" is Gaussian(√(d/2)), which suits d standardised columns.
    loss : str or Loss
        "squared", "absolute", "quantile", "huber", "epsilon_insensitive" or "poisson".
    link : "identity", "log" or Log
        "log" gives predictions above 0.
    step : "auto", float or step
        A number (a fixed size), `RootStep` or `InverseStep`; "auto" is RootStep(0.5). For a smooth
        loss, a step never moves f(x) past the value that fits y best.
    decay : float
        Weights shrink by a factor 1 - step·decay at every example.
    budget : "auto", None or budget
        `KOMP`, `Oldest`, `Smallest`, `Forgetron`, `Nystroem`, `RandomFourier` or
        `DoublyStochastic`; None keeps every atom. "auto" is KOMP(0.1, 1000, relative=True).
    average : bool
        Predict with an average of the functions along the stream, in which later ones count more.
    """

    auto_step = RootStep(0.5)

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        loss: Loss | str = "squared",
        link: Link | str = "identity",
        *,
        step: Step | float | str = "auto",
        decay: float = 0.0,
        budget: Budget | str | None = "auto",
        average: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.link = link
        self.step = step
        self.decay = decay
        self.budget = budget
        self.average = average

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X (n, d) and targets y (n,), one at a time."""
        self._learn(X, y)
        return self

    def predict_then_learn(self, X: Any, y: Any) -> Floats:
        """Predict each row from the rows before it, then learn from it.

        Predictions are those of the current function, even with `average`.
        """
        return self._predictions(self._learn(X, y))

    def learn_one(self, x: Any, y: float) -> None:
        """Learn from one example."""
        if not hasattr(self, "state_"):
            self.partial_fit(np.reshape(x, (1, -1)), [y])
            return
        (learner,), row = self._live(), self._one(x)
        number = y if isinstance(y, float) else check_number("y", y)
        if not abs(number) <= LARGEST_INPUT or (learner.rule.loss == POISSON and number < 0.0):
            number = check_number("y", number)
            self._loss().require(check_targets([number], row, several=False))
        self._learn_rows(row, [np.array([number])])

    def predict(self, X: Any) -> Floats:
        """f(X[i]), shape (n,)."""
        return self._predictions(self._values(X)[:, 0])

    def _learn(self, X: Any, y: Any) -> Floats:
        X = self._examples(X)
        y = np.require(check_targets(y, X, several=False), requirements=("C", "W"))
        self._loss().require(y)
        if not hasattr(self, "state_"):
            self._begin([self._new_learner()])
        return self._learn_rows(X, [y])[0]

    def _predictions(self, z: Floats) -> Floats:
        link = as_link(self.link)
        if not isinstance(link, Identity):
            z = np.exp(np.clip(z, -link.cap, link.cap))
        return check_prediction(self, z)

    def _parts(self) -> Part:
        return {**loss_part(self._loss()), **link_part(as_link(self.link))}

    def _loss(self) -> Loss:
        if isinstance(self.loss, str):
            check_choice("loss", self.loss, REGRESSION_LOSSES)
        loss = as_loss(self.loss)
        if isinstance(loss, Hinge | SquaredHinge | Logistic | Perceptron):
            raise ValueError(
                f"loss must be a regression loss, got {loss}: use StreamingClassifier for labels."
            )
        if isinstance(loss, Poisson) and isinstance(as_link(self.link), Identity):
            raise ValueError('loss "poisson" needs positive predictions: use link="log".')
        return loss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = isinstance(self.loss, Poisson) or self.loss == "poisson"
        return tags
