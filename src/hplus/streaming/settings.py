"""From values to the numbers that the engine runs on."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from hplus._checks import shown
from hplus.features import Nystroem, RandomFourier
from hplus.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Perceptron,
    Poisson,
    PoissonLog,
    Quantile,
    Squared,
    SquaredHinge,
)
from hplus.streaming.budgets import (
    KOMP,
    MOST_ATOMS,
    DoublyStochastic,
    Forgetron,
    Oldest,
    Smallest,
    Unlimited,
)
from hplus.streaming.engine import layout as la
from hplus.streaming.engine import rules as ru
from hplus.streaming.engine.learner import JITTER
from hplus.streaming.links import Identity, Log
from hplus.streaming.methods import CAP, PMD, SPPPOT, Refit, SecondOrder
from hplus.streaming.steps import FixedStep, InverseStep, RootStep

NOVEL = 1e-4
"""Squared distance, as a share of k(x, x), from which on a point is a new landmark."""

LATER = 3.0
"""How much more later functions count in an average: as if n events were n³ of them."""

REFRESH = 32
"""Events after which the integral in a step, and a preconditioner, are computed afresh."""

PLAIN = la.Rule(
    loss=ru.SQUARED,
    low=0.0,
    high=0.0,
    width=0.0,
    link=ru.IDENTITY,
    gradient=ru.IN_Z,
    cap=math.inf,
    schedule=ru.FIXED,
    step=1.0,
    decay=0.0,
    averaging=-1.0,
    budget=la.UNLIMITED,
    tolerance=0.0,
    relative=0,
    size=MOST_ATOMS,
    jitter=JITTER,
    half_life=math.inf,
    fading=0,
    background=0,
    refresh=REFRESH,
    damping=0.0,
    seed=0,
)
"""What a rule says unless something is asked for."""

Part = dict[str, Any]


def rule(*parts: Part) -> la.Rule:
    """One rule from what several values say."""
    return PLAIN._replace(**{name: number for part in parts for name, number in part.items()})


def averaging(average: bool) -> Part:
    return {"averaging": LATER if average else -1.0}


@singledispatch
def loss_part(loss: Loss) -> Part:
    """The code of a loss and its numbers."""
    raise ValueError(f"loss must be one that streams have compiled, got {shown(loss)}.")


@loss_part.register
def _(loss: Squared) -> Part:
    return {"loss": ru.SQUARED}


@loss_part.register
def _(loss: Absolute) -> Part:
    return {"loss": ru.PIECEWISE, "low": -1.0, "high": 1.0}


@loss_part.register
def _(loss: Quantile) -> Part:
    return {"loss": ru.PIECEWISE, "low": -loss.level, "high": 1.0 - loss.level}


@loss_part.register
def _(loss: EpsilonInsensitive) -> Part:
    return {"loss": ru.PIECEWISE, "low": -1.0, "high": 1.0, "width": loss.tube}


@loss_part.register
def _(loss: Huber) -> Part:
    return {"loss": ru.HUBER, "width": loss.threshold}


@loss_part.register
def _(loss: Poisson) -> Part:
    return {"loss": ru.POISSON}


@loss_part.register
def _(loss: PoissonLog) -> Part:
    raise ValueError('loss "poisson_log" has its link inside: use loss="poisson", link="log".')


@loss_part.register
def _(loss: Hinge) -> Part:
    return {"loss": ru.HINGE}


@loss_part.register
def _(loss: SquaredHinge) -> Part:
    return {"loss": ru.SQUARED_HINGE}


@loss_part.register
def _(loss: Logistic) -> Part:
    return {"loss": ru.LOGISTIC}


@loss_part.register
def _(loss: Perceptron) -> Part:
    return {"loss": ru.PERCEPTRON}


@singledispatch
def step_part(step: Any, decay: float) -> Part:
    """How large steps are."""
    raise TypeError(f"step must be a step such as RootStep(0.5), got {shown(step)}.")


@step_part.register
def _(step: FixedStep, decay: float) -> Part:
    return {"schedule": ru.FIXED, "step": step.size, "decay": decay}


@step_part.register
def _(step: RootStep, decay: float) -> Part:
    return {"schedule": ru.ROOT, "step": step.size, "decay": decay}


@step_part.register
def _(step: InverseStep, decay: float) -> Part:
    if step.size is None and decay == 0.0:
        raise ValueError("InverseStep() needs a size or a decay above 0, got 0: give one of them.")
    size = 1.0 / decay if step.size is None else step.size
    return {"schedule": ru.HARMONIC, "step": size, "decay": decay}


@singledispatch
def budget_part(budget: Any) -> Part:
    """What is kept."""
    raise TypeError(f"budget must be a budget such as KOMP(1e-3), got {shown(budget)}.")


@budget_part.register
def _(budget: Unlimited) -> Part:
    return {"budget": la.UNLIMITED}


@budget_part.register
def _(budget: Oldest) -> Part:
    return {"budget": la.OLDEST, "size": budget.size}


@budget_part.register
def _(budget: Smallest) -> Part:
    return {"budget": la.SMALLEST, "size": budget.size}


@budget_part.register
def _(budget: Forgetron) -> Part:
    return {"budget": la.FORGETRON, "size": budget.size}


@budget_part.register
def _(budget: KOMP) -> Part:
    return {
        "budget": la.PROJECTED,
        "tolerance": budget.tolerance,
        "relative": int(budget.relative),
        "size": MOST_ATOMS if budget.size is None else budget.size,
    }


@budget_part.register
def _(budget: Nystroem) -> Part:
    if budget.random_state is not None:
        raise ValueError(
            "Nystroem takes the first points of a stream that are far enough apart: leave "
            f"random_state out, got {shown(budget.random_state)}."
        )
    return {"budget": la.SUBSPACE, "tolerance": NOVEL, "size": budget.landmarks}


@budget_part.register
def _(budget: RandomFourier) -> Part:
    return {"budget": la.FOURIER, "size": 2 * budget.frequencies}


@budget_part.register
def _(budget: DoublyStochastic) -> Part:
    return {"budget": la.REGENERATED, "size": 2 * budget.block, "seed": budget.seed}


@singledispatch
def link_part(link: Any) -> Part:
    """What z is to the prediction."""
    raise TypeError(f'link must be "identity", "log" or a link such as Log(), got {shown(link)}.')


@link_part.register
def _(link: Identity) -> Part:
    return {"link": ru.IDENTITY}


@link_part.register
def _(link: Log) -> Part:
    gradient = ru.IN_Z if link.gradient == "log" else ru.IN_F
    return {"link": ru.EXPONENTIAL, "gradient": gradient, "cap": link.cap}


@singledispatch
def method_part(method: Any) -> Part:
    """How the rate of a process is learned."""
    raise TypeError(f"method must be a method such as SPPPOT(0.1), got {shown(method)}.")


@method_part.register
def _(method: SPPPOT) -> Part:
    return {
        "loss": ru.PROCESS,
        "link": ru.EXPONENTIAL if method.mirror == "kl" else ru.RECIPROCAL,
        "gradient": {"log": ru.IN_Z, "mirror": ru.IN_F, "sign": ru.SIGN}[method.gradient],
        "cap": method.cap,
        "background": 1,
        # 1/(1 - z) may double at a single event
        "refresh": REFRESH if method.mirror == "kl" else 1,
        **step_part(method.step, 0.0),
        **averaging(method.average),
    }


@method_part.register
def _(method: SecondOrder) -> Part:
    first = SPPPOT(method.step, average=method.average, cap=method.cap)
    return {**method_part(first), "damping": method.damping}


@method_part.register
def _(method: PMD) -> Part:
    return {
        "loss": ru.PROCESS,
        "link": ru.EXPONENTIAL,
        "gradient": ru.IN_F,
        "cap": method.cap,
        "budget": la.GRID,
        **step_part(method.step, 0.0),
    }


@method_part.register
def _(method: Refit) -> Part:
    # z ← z + k(x, ·) at every event: the slope of a piecewise linear loss far below its y = inf
    steps = {"loss": ru.PIECEWISE, "low": -1.0, "step": 1.0}
    return {**steps, "cap": CAP, "background": 1, "fading": 1}
