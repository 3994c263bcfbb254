"""What streaming regressors and classifiers share: one pass over examples, in bounded memory."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from hplus._checks import Floats, as_floats, check_flag, check_nonnegative, shown
from hplus.estimators.base import LARGEST_INPUT, check_diagonal, check_kernel, check_points
from hplus.features import RandomFourier
from hplus.kernels import Gaussian, Kernel, Scaled
from hplus.losses import Hinge, Loss, Perceptron
from hplus.space import Function
from hplus.streaming.base import UNIT_GAP, StreamingEstimator
from hplus.streaming.budgets import Budget, DoublyStochastic, Forgetron, Oldest, Smallest, as_budget
from hplus.streaming.engine.layout import FOURIER, Rule
from hplus.streaming.engine.learner import Learner, StreamStatus
from hplus.streaming.engine.nodes import no_nodes
from hplus.streaming.engine.starts import start, start_fixed
from hplus.streaming.settings import Part, averaging, budget_part, loss_part, rule, step_part
from hplus.streaming.steps import FixedStep, RootStep, Step, as_step


class Supervised(StreamingEstimator):
    """A stream of examples (x, y); `auto_step` is the step that step="auto" stands for."""

    auto_step: RootStep
    kernel: Kernel | str
    step: Step | float | str
    decay: float
    budget: Budget | str | None
    average: bool

    def fit(self, X: Any, y: Any) -> Self:
        """Discard everything learned so far and learn from the rows in order, once."""
        self._reset()
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any) -> Self:
        raise NotImplementedError

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _parts(self) -> Part:
        """The fields of the rule that follow from the loss, and from a link if there is one."""
        return loss_part(self._loss())

    def _new_learner(self) -> Learner:
        budget, d = as_budget(self.budget), self.n_features_in_
        if check_flag("average", self.average) and isinstance(
            budget, Oldest | Smallest | Forgetron
        ):
            raise ValueError(
                "average=True needs a budget that projects removed atoms on the remaining ones, "
                f"such as KOMP, got {budget}: the average would lose what removed atoms had "
                "contributed."
            )
        if isinstance(budget, Forgetron) and not isinstance(self._loss(), Hinge | Perceptron):
            raise ValueError(
                f'loss must be "perceptron" or "hinge" for Forgetron, got {self._loss()}.'
            )
        parts = {**self._parts(), **averaging(self.average)}
        auto = isinstance(self.step, str) and self.step == "auto"
        rule = supervised_rule(parts, self.auto_step if auto else self.step, self.decay, budget)
        return build(rule, as_kernel(self.kernel, d), d, budget)

    def _examples(self, X: Any) -> Floats:
        """X after validation; the first call sets the number of columns."""
        first = not hasattr(self, "state_")
        if not first:
            self._require_learned()
        X = check_points(self, X, reset=first)
        kernel = as_kernel(self.kernel, X.shape[1])
        check_diagonal(kernel, X)
        if isinstance(as_budget(self.budget), Forgetron) and np.any(kernel.diag(X) > 1.0):
            raise ValueError(
                f"kernel must have k(x, x) <= 1 for Forgetron, got {kernel}: scale it."
            )
        return np.require(X, requirements=("C", "W"))

    def _one(self, x: Any) -> Floats:
        """A single example as one row (1, d), validated at the least cost."""
        try:
            row = np.array(x, dtype=np.float64, ndmin=2)
        except (TypeError, ValueError):
            row = np.atleast_2d(as_floats("x", x))
        if row.shape != (1, self.n_features_in_) or not row[0] @ row[0] <= LARGEST_INPUT**2:
            raise ValueError(
                f"x must hold {self.n_features_in_} finite numbers of at most "
                f"{LARGEST_INPUT:.0e} in size, got {shown(x)}."
            )
        return row

    def _learn_rows(self, X: Floats, targets: list[Floats]) -> list[Floats]:
        """Let every learner learn from the rows with its targets; z of each row before that."""
        learners, gaps = self._live(), UNIT_GAP if len(X) == 1 else np.ones(len(X))
        try:
            return [m.learn(X, y, gaps) for m, y in zip(learners, targets, strict=True)]
        finally:  # arrays may have grown before an error
            self._keep(learners)

    def _values(self, X: Any) -> Floats:
        """z(X[i]) of every learner, shape (n, learners)."""
        self._require_learned()
        X = check_points(self, X, reset=False)
        return np.stack([m.values(X, self.average) for m in self._live()], axis=1)

    @property
    def n_atoms_(self) -> int:
        """The number of atoms, or of weights where it is fixed, over all classes."""
        return sum(m.status.atoms for m in self._live())

    @property
    def dictionary_(self) -> Floats:
        """The atoms, shape (n_atoms_, d)."""
        return np.concatenate([m.dictionary for m in self._on_atoms("dictionary_")])

    @property
    def function_(self) -> Function | list[Function]:
        """z as an element of the kernel's space; a list of them for several classes."""
        learners = self._on_atoms("function_")
        functions = [Function(m.kernel, *m.function(self.average)) for m in learners]
        return functions[0] if len(functions) == 1 else functions

    def _on_atoms(self, name: str) -> list[Learner]:
        learners = self._live()
        if learners[0].rule.budget >= FOURIER:
            raise AttributeError(
                f"{name} needs a budget of atoms, got {shown(self.budget)}: use predict."
            )
        return learners

    @property
    def status_(self) -> StreamStatus:
        """Counts of what has happened in the stream."""
        each = [m.status for m in self._live()]
        return each[0]._replace(
            atoms=sum(s.atoms for s in each),
            capped=sum(s.capped for s in each),
            excess=sum(s.excess for s in each),
            compression=sum(s.compression for s in each),
            largest_compression=max(s.largest_compression for s in each),
        )


def as_kernel(kernel: Kernel | str, dimension: int) -> Kernel:
    """The kernel, or for "auto" a Gaussian that suits standardised columns."""
    check_kernel(kernel)
    return kernel if isinstance(kernel, Kernel) else Gaussian(float(np.sqrt(0.5 * dimension)))


def supervised_rule(parts: Part, step: Step | float | str, decay: float, budget: Budget) -> Rule:
    """The rule of a regressor or classifier; raises where its parts do not go together."""
    step = as_step(step)
    decay = check_nonnegative("decay", decay)
    if isinstance(budget, Forgetron) and (not isinstance(step, FixedStep) or decay > 0.0):
        raise ValueError(
            f"Forgetron needs steps of a fixed size and no decay, got {step} and decay {decay:g}: "
            "use step=1.0 and decay=0.0."
        )
    return rule(parts, step_part(step, decay), budget_part(budget))


def build(rule: Rule, kernel: Kernel, dimension: int, budget: Budget) -> Learner:
    """A learner that has seen no example."""
    if isinstance(budget, RandomFourier):
        features = budget(kernel, np.zeros((1, dimension)))
        params, centers = np.array([features.amplitude]), np.array(features.frequencies, order="C")
        return start_fixed(rule, kernel, params, centers, 2 * len(centers))
    if isinstance(budget, DoublyStochastic):
        params = _gaussian_params(kernel, dimension)
        return start_fixed(rule, kernel, params, np.zeros((1, dimension)), 2 * budget.frequencies)
    return start(rule, kernel, no_nodes(dimension))


def _gaussian_params(kernel: Kernel, dimension: int) -> Floats:
    """The amplitude of a Gaussian kernel, and 1/scale for each column."""
    factor, inside = 1.0, kernel
    while isinstance(inside, Scaled):
        factor, inside = factor * inside.factor, inside.kernel
    if not isinstance(inside, Gaussian):
        raise ValueError(
            f"DoublyStochastic needs a Gaussian kernel, got {shown(kernel)}: use RandomFourier."
        )
    rates, axes = np.zeros(dimension), list(inside.axes(dimension))
    rates[axes] = np.reciprocal(inside.scales(len(axes)))
    return np.array([factor, *rates])
