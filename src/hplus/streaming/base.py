"""What the streaming estimators share: a learner, its state, and the door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hplus._checks import Floats, check_nonnegative, shown
from hplus.estimators.base import Estimator, check_kernel
from hplus.features import RandomFourier
from hplus.kernels import Gaussian, Kernel, Scaled
from hplus.streaming.budgets import DoublyStochastic, Forgetron
from hplus.streaming.engine.layout import Rule
from hplus.streaming.engine.learner import Learner, restore, start, start_fixed
from hplus.streaming.engine.nodes import nowhere
from hplus.streaming.engine.states import SAVED
from hplus.streaming.settings import budget_part, rule, step_part
from hplus.streaming.steps import FixedStep, as_step

ONE = np.ones(1)
"""The gap before a single event."""

MADE_AGAIN = ("_learners", "_seen", "_known", "_solution", "_box")
"""What follows from parameters and `state_`."""

FREE = ("step", "decay", "forget")
"""Parameters that may change while a stream goes on."""


class StreamingEstimator(Estimator):
    """Holds `state_`, the arrays of one learner or of several."""

    _learners: list[Learner] | None
    state_: tuple[dict[str, Any], ...]
    made_with_: dict[str, str]

    def _live(self, build: Callable[[], Learner]) -> list[Learner]:
        """The learners at work, made from the saved arrays if there are none yet."""
        learners = self.__dict__.get("_learners")
        if learners is None:
            self._require_learned()
            most = len(getattr(self, "classes_", (None,)))
            if len(self.state_) > most:
                raise ValueError(
                    f"state_ must hold at most {most} states, got {len(self.state_)}: load the "
                    "model again."
                )
            learners = self._learners = [restore(build(), kept) for kept in self.state_]
        return learners

    def _keep(self, learners: list[Learner]) -> None:
        kept = [part["rows"] for part in self.__dict__.get("state_", ())]
        if kept and all(old is m.state.rows for old, m in zip(kept, learners, strict=True)):
            return  # the same arrays, which have what was learned
        self._learners = learners
        self.state_ = tuple({name: getattr(m.state, name) for name in SAVED} for m in learners)

    def _begin(self, learners: list[Learner]) -> None:
        """The first state, and the parameters that it belongs to."""
        self._keep(learners)
        params = self.get_params(deep=False)
        self.made_with_ = {name: repr(p) for name, p in params.items() if name not in FREE}
        self._require_learned()

    def _start_again(self) -> None:
        """Forget all that was learned."""
        learned = [name for name in self.__dict__ if name.endswith("_") and name[0] != "_"]
        for name in (*learned, *MADE_AGAIN):
            self.__dict__.pop(name, None)

    def set_params(self, **params: Any) -> Any:
        """Set parameters; while a stream goes on, only those of its steps and of forgetting."""
        for name in MADE_AGAIN:
            self.__dict__.pop(name, None)
        return super().set_params(**params)

    def __getstate__(self) -> Any:
        kept = super().__getstate__()
        return {name: part for name, part in kept.items() if name not in MADE_AGAIN}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "state_")

    def _require_learned(self) -> None:
        """Refuse to go on before anything was learned, or with what the state was not made by."""
        advice = "%(name)s must have learned something before it predicts: call partial_fit first."
        check_is_fitted(self, msg=advice)
        seen = self.__dict__.setdefault("_seen", {})
        for name, text in self.made_with_.items():
            now = getattr(self, name)
            if seen.get(name, self) is now:
                continue
            if repr(now) != text:
                raise ValueError(
                    f"{name} must stay as it was while a stream goes on, got {shown(now)} after "
                    f"{text:.60}: call fit to start again."
                )
            seen[name] = now


def as_kernel(kernel: Any, dimension: int) -> Kernel:
    """The kernel, or for "auto" a Gaussian that suits standardised columns."""
    check_kernel(kernel)
    return kernel if isinstance(kernel, Kernel) else Gaussian(float(np.sqrt(0.5 * dimension)))


def supervised_rule(parts: dict[str, Any], step: Any, decay: Any, budget: Any) -> Rule:
    """The rule of a regressor or a classifier, refused where its parts do not go together."""
    step = as_step(step)
    decay = check_nonnegative("decay", decay)
    if isinstance(budget, Forgetron) and (not isinstance(step, FixedStep) or decay > 0.0):
        raise ValueError(
            f"Forgetron needs steps of a fixed size and no decay, got {step} and decay {decay:g}: "
            "use step=1.0."
        )
    return rule(parts, step_part(step, decay), budget_part(budget))


def build(rule: Rule, kernel: Kernel, dimension: int, budget: Any) -> Learner:
    """A learner that has learned nothing."""
    if isinstance(budget, RandomFourier):
        features = budget(kernel, np.zeros((1, dimension)))
        params, centers = np.array([features.amplitude]), np.array(features.frequencies, order="C")
        return start_fixed(rule, kernel, params, centers, 2 * len(centers))
    if isinstance(budget, DoublyStochastic):
        params = _gaussian(kernel, dimension)
        return start_fixed(rule, kernel, params, np.zeros((1, dimension)), 2 * budget.frequencies)
    return start(rule, kernel, nowhere(dimension))


def _gaussian(kernel: Kernel, dimension: int) -> Floats:
    """Amplitude, and 1/scale on each column, of a Gaussian kernel."""
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
