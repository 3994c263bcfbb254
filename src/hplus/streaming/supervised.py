"""What streams of examples (x, y) share: one pass, in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from hplus._checks import Floats, as_floats, check_flag, shown
from hplus.estimators.base import (
    LARGEST,
    check_diagonal,
    check_points,
)
from hplus.losses import (
    Hinge,
    Loss,
    Perceptron,
)
from hplus.space import Function
from hplus.streaming.base import (
    ONE,
    StreamingEstimator,
    as_kernel,
    build,
    supervised_rule,
)
from hplus.streaming.budgets import Forgetron, Oldest, Smallest, as_budget
from hplus.streaming.engine.layout import FOURIER
from hplus.streaming.engine.learner import Learner, StreamStatus
from hplus.streaming.settings import averaging, loss_part
from hplus.streaming.steps import RootStep


class Supervised(StreamingEstimator):
    """What regressor and classifier share; `auto_step` is the step of step="auto"."""

    auto_step: RootStep
    kernel: Any
    step: Any
    decay: Any
    budget: Any
    average: Any

    def _new_learner(self) -> Learner:
        """A learner by the parameters as they are."""
        budget, d = as_budget(self.budget), self.n_features_in_
        if check_flag("average", self.average) and isinstance(
            budget, Oldest | Smallest | Forgetron
        ):
            raise ValueError(
                f"average needs a budget that projects what goes on what stays, got {budget}: the "
                "average would lose what it had from atoms that go."
            )
        if isinstance(budget, Forgetron) and not isinstance(self._loss(), Hinge | Perceptron):
            raise ValueError(
                f'Forgetron goes with loss="perceptron" or "hinge", got {self._loss()}.'
            )
        parts = {**self._parts(), **averaging(self.average)}
        auto = isinstance(self.step, str) and self.step == "auto"
        rule = supervised_rule(parts, self.auto_step if auto else self.step, self.decay, budget)
        return build(rule, as_kernel(self.kernel, d), d, budget)

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _parts(self) -> dict[str, Any]:
        return loss_part(self._loss())

    def _examples(self, X: Any) -> Floats:
        """X checked; the first rows set the number of columns."""
        first = not hasattr(self, "state_")
        if not first:
            self._require_learned()
        X = check_points(self, X, reset=first)
        kernel = as_kernel(self.kernel, X.shape[1])
        check_diagonal(kernel, X)
        if isinstance(as_budget(self.budget), Forgetron) and np.any(kernel.diag(X) > 1.0):
            raise ValueError(f"Forgetron needs k(x, x) <= 1, got more with {kernel}: divide it.")
        return np.require(X, requirements=("C", "W"))

    def _one(self, x: Any) -> Floats:
        """A single example as one row, with no more checks than it needs."""
        try:
            row = np.array(x, dtype=np.float64, ndmin=2)
        except (TypeError, ValueError):
            row = np.atleast_2d(as_floats("x", x))
        if row.shape != (1, self.n_features_in_) or not row[0] @ row[0] <= LARGEST**2:
            raise ValueError(
                f"x must hold {self.n_features_in_} finite numbers, got {shown(x)} (at most "
                f"{LARGEST:.0e} in size)."
            )
        return row

    def _values(self, X: Any) -> Floats:
        """z(X[i]) of every learner, shape (n, learners)."""
        self._require_learned()
        X = check_points(self, X, reset=False)
        return np.stack([m.values(X, self.average) for m in self._live(self._new_learner)], axis=1)

    @property
    def n_atoms_(self) -> int:
        """Atoms, or weights where their number is fixed; of all classes together."""
        return sum(m.status.atoms for m in self._live(self._new_learner))

    @property
    def dictionary_(self) -> Floats:
        """The atoms, shape (n_atoms_, d)."""
        return np.concatenate([m.dictionary for m in self._on_atoms("dictionary_")])

    @property
    def function_(self) -> Any:
        """z as an element of the kernel's space; a list of them for several classes."""
        learners = self._on_atoms("function_")
        functions = [Function(m.kernel, *m.function(self.average)) for m in learners]
        return functions[0] if len(functions) == 1 else functions

    def _on_atoms(self, name: str) -> list[Learner]:
        learners = self._live(self._new_learner)
        if learners[0].rule.budget >= FOURIER:
            raise AttributeError(f"{name} is on features here, not on atoms: use predict.")
        return learners

    def _learn_rows(self, X: Floats, targets: list[Floats]) -> list[Floats]:
        """Every learner learns from the rows with its targets; z of each row before it did."""
        learners, gaps = self._live(self._new_learner), ONE if len(X) == 1 else np.ones(len(X))
        try:
            return [m.learn(X, y, gaps) for m, y in zip(learners, targets, strict=True)]
        finally:  # arrays may have grown before something went wrong
            self._keep(learners)

    @property
    def status_(self) -> StreamStatus:
        """Counts of what the stream has been through."""
        each = [m.status for m in self._live(self._new_learner)]
        first = each[0]
        return first._replace(
            atoms=sum(s.atoms for s in each),
            capped=sum(s.capped for s in each),
            excess=sum(s.excess for s in each),
            compression=sum(s.compression for s in each),
            largest_compression=max(s.largest_compression for s in each),
        )
