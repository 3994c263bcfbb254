"""StreamingRegressor and StreamingClassifier: one pass over examples, in bounded memory."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from hplus._checks import Floats, check_choice, shown
from hplus.estimators.base import (
    check_diagonal,
    check_labels,
    check_points,
    check_prediction,
    check_targets,
)
from hplus.kernels import Kernel
from hplus.losses import (
    Hinge,
    Logistic,
    Loss,
    Perceptron,
    Poisson,
    SquaredHinge,
    as_loss,
)
from hplus.space import Function
from hplus.storage import storable
from hplus.streaming.base import (
    StreamingEstimator,
    as_kernel,
    budget_of,
    build,
    supervised_rule,
)
from hplus.streaming.budgets import Forgetron
from hplus.streaming.layout import FOURIER
from hplus.streaming.links import Identity, as_link
from hplus.streaming.machine import Machine, StreamStatus
from hplus.streaming.rules import POISSON
from hplus.streaming.settings import averaging, link_part, loss_part

LABEL_LOSSES = ("hinge", "squared_hinge", "logistic", "perceptron")
REGRESSION_LOSSES = ("squared", "absolute", "quantile", "huber", "epsilon_insensitive", "poisson")


class Supervised(StreamingEstimator):
    """What regressor and classifier share."""

    kernel: Any
    step: Any
    decay: Any
    budget: Any
    average: Any

    def _machine(self) -> Machine:
        """A machine by the parameters as they are."""
        budget, d = budget_of(self.budget), self.n_features_in_
        if not isinstance(self.average, bool):
            raise TypeError(f"average must be True or False, got {shown(self.average)}.")
        if isinstance(budget, Forgetron) and not isinstance(self._loss(), Hinge | Perceptron):
            raise ValueError(
                f'Forgetron goes with loss="perceptron" or "hinge", got {self._loss()}.'
            )
        parts = {**self._parts(), **averaging(self.average)}
        rule = supervised_rule(parts, self.step, self.decay, budget)
        return build(rule, as_kernel(self.kernel, d), d, budget)

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _parts(self) -> dict[str, Any]:
        return loss_part(self._loss())

    def _examples(self, X: Any) -> Floats:
        """X checked; the first rows set the number of columns."""
        first = not hasattr(self, "state_")
        X = check_points(self, X, reset=first)
        check_diagonal(as_kernel(self.kernel, X.shape[1]), X)
        return np.require(X, requirements=("C", "W"))

    def _one(self, x: Any) -> Floats:
        """A single example as one row, with no more checks than it needs."""
        row = np.array(x, dtype=np.float64, ndmin=2)
        if row.shape != (1, self.n_features_in_) or not np.isfinite(row).all():
            raise ValueError(f"x must hold {self.n_features_in_} finite numbers, got {shown(x)}.")
        return row

    def _values(self, X: Any) -> Floats:
        """z(X[i]) of every machine, shape (n, machines)."""
        self._require_learned()
        X = check_points(self, X, reset=False)
        return np.stack([m.values(X, self.average) for m in self._live(self._machine)], axis=1)

    @property
    def n_atoms_(self) -> int:
        """Atoms, or weights where their number is fixed; of all classes together."""
        return sum(m.status.atoms for m in self._live(self._machine))

    @property
    def dictionary_(self) -> Floats:
        """The atoms, shape (n_atoms_, d)."""
        return np.concatenate([m.dictionary for m in self._live(self._machine)])

    @property
    def function_(self) -> Any:
        """z as an element of the kernel's space; a list of them for several classes."""
        machines = self._live(self._machine)
        if machines[0].rule.budget >= FOURIER:
            raise AttributeError("function_ is on features here, not on atoms: use predict.")
        functions = [Function(m.kernel, *m.function(self.average)) for m in machines]
        return functions[0] if len(functions) == 1 else functions

    @property
    def status_(self) -> StreamStatus:
        """Counts of what the stream has been through."""
        each = [m.status for m in self._live(self._machine)]
        first = each[0]
        return first._replace(
            atoms=sum(s.atoms for s in each),
            capped=sum(s.capped for s in each),
            excess=sum(s.excess for s in each),
            compression=sum(s.compression for s in each),
            largest_compression=max(s.largest_compression for s in each),
        )


@final
@storable
class StreamingRegressor(RegressorMixin, Supervised):
    """Kernel regression on a stream, one step for each example.

    z ← (1 - step·decay) z - step·Φ'(y, f(x)) k(x, ·), f = z or e^z, then the budget. All at once or
    one by one, in chunks of any size, the result is the same, bit for bit.

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
        A number is a fixed size; `RootStep`, `InverseStep`; "auto" is RootStep(0.5). A step never
        carries f(x) past the value that fits y best.
    decay : float
        Weights shrink by 1 - step·decay at every example.
    budget : "auto", None or budget
        `KOMP`, `Oldest`, `Smallest`, `Forgetron`, `Nystroem`, `RandomFourier`,
        `DoublyStochastic`; None keeps all. "auto" is KOMP(0.1, 1000, relative=True).
    average : bool
        Predict by the average of the functions along the stream, later ones counting more.
    """

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        loss: Any = "squared",
        link: Any = "identity",
        *,
        step: Any = "auto",
        decay: float = 0.0,
        budget: Any = "auto",
        average: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.link = link
        self.step = step
        self.decay = decay
        self.budget = budget
        self.average = average

    def fit(self, X: Any, y: Any) -> Self:
        """Forget all, and learn from the rows in their order, once."""
        self.__dict__.pop("state_", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X (n, d) and targets y (n,), one after the other."""
        self._learn(X, y)
        return self

    def predict_then_learn(self, X: Any, y: Any) -> Floats:
        """Predictions of each row from the rows before it, which are then learned from."""
        return self._predictions(self._learn(X, y))

    def learn_one(self, x: Any, y: float) -> None:
        """Learn from one example."""
        if not hasattr(self, "state_"):
            self.partial_fit(np.reshape(x, (1, -1)), [y])
            return
        (machine,), target = self._live(self._machine), np.array([y], dtype=np.float64)
        if not np.isfinite(target[0]) or (machine.rule.loss == POISSON and target[0] < 0.0):
            check_targets(target, target, several=False)
            self._loss().require(target)
        state = machine.state
        machine.learn(self._one(x), target, np.ones(1))
        if machine.state is not state:
            self._keep([machine])

    def predict(self, X: Any) -> Floats:
        """f(X[i]), shape (n,)."""
        return self._predictions(self._values(X)[:, 0])

    def _learn(self, X: Any, y: Any) -> Floats:
        X = self._examples(X)
        y = np.require(check_targets(y, X, several=False), requirements=("C", "W"))
        self._loss().require(y)
        if not hasattr(self, "state_"):
            self._keep([self._machine()])
        (machine,) = self._live(self._machine)
        values = machine.learn(X, y, np.ones(len(X)))
        self._keep([machine])
        return values

    def _predictions(self, z: Floats) -> Floats:
        link = as_link(self.link)
        if not isinstance(link, Identity):
            z = np.exp(np.clip(z, -link.cap, link.cap))
        return check_prediction(self, z)

    def _parts(self) -> dict[str, Any]:
        return {**loss_part(self._loss()), **link_part(as_link(self.link))}

    def _loss(self) -> Loss:
        if isinstance(self.loss, str):
            check_choice("loss", self.loss, REGRESSION_LOSSES)
        loss = as_loss(self.loss)
        if isinstance(loss, Hinge | SquaredHinge | Logistic | Perceptron):
            raise ValueError(f"loss {loss} is for labels: use StreamingClassifier.")
        if isinstance(loss, Poisson) and isinstance(as_link(self.link), Identity):
            raise ValueError('loss "poisson" needs predictions above 0: use link="log".')
        return loss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = isinstance(self.loss, Poisson) or self.loss == "poisson"
        return tags


def _probabilistic(estimator: StreamingClassifier) -> bool:
    if not isinstance(estimator._loss(), Logistic):
        raise AttributeError(f'probabilities need loss="logistic", got {estimator._loss()}.')
    return True


@final
@storable
class StreamingClassifier(ClassifierMixin, Supervised):
    """Kernel classification on a stream; several classes one against the rest.

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
        As in `StreamingRegressor`.
    """

    def __init__(
        self,
        kernel: Kernel | str = "auto",
        loss: Any = "hinge",
        *,
        step: Any = "auto",
        decay: float = 0.0,
        budget: Any = "auto",
        average: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.step = step
        self.decay = decay
        self.budget = budget
        self.average = average

    def fit(self, X: Any, y: Any) -> Self:
        """Forget all, and learn from the rows in their order, once."""
        for name in ("state_", "classes_"):
            self.__dict__.pop(name, None)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from rows X (n, d) and labels y (n,); `classes` are needed if y lacks some."""
        self._learn(X, y, classes)
        return self

    def predict_then_learn(self, X: Any, y: Any, classes: Any = None) -> Any:
        """The label of each row predicted from the rows before it, which are then learned from."""
        return self._labels(self._learn(X, y, classes))

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn from one example; the classes must be known from a `partial_fit`."""
        self._require_learned()
        row, machines = self._one(x), self._live(self._machine)
        sides = self._sides(check_labels([y], row))
        before = [m.state for m in machines]
        for machine, side in zip(machines, sides, strict=True):
            machine.learn(row, side, np.ones(1))
        if any(m.state is not state for m, state in zip(machines, before, strict=True)):
            self._keep(machines)

    def decision_function(self, X: Any) -> Floats:
        """f(X[i]): shape (n,), positive for classes_[1], or (n, classes)."""
        f = check_prediction(self, self._values(X))
        return f[:, 0] if len(self.classes_) == 2 else f

    def predict(self, X: Any) -> Any:
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
        if not hasattr(self, "state_"):
            self.classes_ = _classes(y if classes is None else check_labels(classes, classes))
            count = 1 if len(self.classes_) == 2 else len(self.classes_)
            self._keep([self._machine() for _ in range(count)])
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {shown(self.classes_.tolist())}, got "
                f"{shown(classes)}."
            )
        machines, gaps = self._live(self._machine), np.ones(len(X))
        sides = self._sides(y)
        values = [m.learn(X, s, gaps) for m, s in zip(machines, sides, strict=True)]
        self._keep(machines)
        return np.stack(values, axis=1)

    def _labels(self, f: Floats) -> Any:
        codes = f.argmax(axis=1) if f.shape[1] > 1 else (f[:, 0] > 0.0).astype(np.intp)
        return self.classes_[codes]

    def _sides(self, y: Any) -> list[Floats]:
        """Labels as ±1: of class 1 against class 0, or of every class against the others."""
        unknown = ~np.isin(y, self.classes_)
        if np.any(unknown):
            raise ValueError(
                f"y must hold the classes {shown(self.classes_.tolist())}, got "
                f"{shown(y[unknown][0])}: name them all in the first partial_fit(…, classes=…)."
            )
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return [np.where(y == label, 1.0, -1.0) for label in positive]

    def _loss(self) -> Loss:
        if isinstance(self.loss, str) and self.loss == "perceptron":
            return Perceptron()
        loss = None if isinstance(self.loss, str) and self.loss not in LABEL_LOSSES else self.loss
        loss = None if loss is None else as_loss(loss)
        if not isinstance(loss, Hinge | SquaredHinge | Logistic | Perceptron):
            raise ValueError(
                f"loss must be one of {', '.join(map(repr, LABEL_LOSSES))}, got "
                f"{shown(self.loss)}: use StreamingRegressor for others."
            )
        return loss


def _classes(y: Any) -> Any:
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes, got 1 class: {classes[0]}: name them all with "
            "classes=."
        )
    return classes
