"""From losses, links, steps, budgets and methods to the numbers that the engine runs on.

Each `*_part` function returns some fields of a `Rule`; `rule` puts them together.
"""

from __future__ import annotations

from hplus import losses
from hplus._checks import shown
from hplus.features import Nystroem, RandomFourier
from hplus.losses import Loss
from hplus.streaming import budgets, steps
from hplus.streaming.budgets import Budget
from hplus.streaming.engine import layout as la
from hplus.streaming.engine import rules as ru
from hplus.streaming.links import Link, Log
from hplus.streaming.methods import LARGEST_LOG_RATE, PMD, SPPPOT, Refit, SecondOrder, SteppedMethod
from hplus.streaming.steps import Step, as_step

NOVELTY = 1e-4
"""A point becomes a landmark if its squared distance from the span of the others is larger than
this share of k(x, x)."""

AVERAGING_POWER = 3.0
"""How much more later functions count in an average: as if n events were n³ of them."""

Part = dict[str, float]
"""Some fields of a `Rule` by name."""


def rule(*parts: Part) -> la.Rule:
    """The default rule with the fields of all parts replaced."""
    fields = la.Rule()._asdict()
    for part in parts:
        fields.update(part)
    return la.Rule(**fields)


def averaging(average: bool) -> Part:
    return {"averaging": AVERAGING_POWER if average else la.NO_AVERAGE}


def loss_part(loss: Loss) -> Part:
    """The code of a loss and its parameters."""
    match loss:
        case losses.Squared():
            return {"loss": ru.SQUARED}
        case losses.Absolute():
            return {"loss": ru.PIECEWISE, "low": -1.0, "high": 1.0}
        case losses.Quantile():
            return {"loss": ru.PIECEWISE, "low": -loss.level, "high": 1.0 - loss.level}
        case losses.EpsilonInsensitive():
            return {"loss": ru.PIECEWISE, "low": -1.0, "high": 1.0, "width": loss.tube}
        case losses.Huber():
            return {"loss": ru.HUBER, "width": loss.threshold}
        case losses.Poisson():
            return {"loss": ru.POISSON}
        case losses.PoissonLog():
            raise ValueError(
                'loss "poisson_log" includes its own link: use loss="poisson" with link="log".'
            )
        case losses.Hinge():
            return {"loss": ru.HINGE}
        case losses.SquaredHinge():
            return {"loss": ru.SQUARED_HINGE}
        case losses.Logistic():
            return {"loss": ru.LOGISTIC}
        case losses.Perceptron():
            return {"loss": ru.PERCEPTRON}
    raise ValueError(
        f"loss must be one of the built-in losses for a stream, got {shown(loss)}: use a batch "
        "estimator for a loss of your own."
    )


def step_part(step: Step, decay: float) -> Part:
    """The schedule of step sizes."""
    match step:
        case steps.FixedStep():
            return {"schedule": ru.FIXED, "step": step.size, "decay": decay}
        case steps.RootStep():
            return {"schedule": ru.ROOT, "step": step.size, "decay": decay}
        case steps.InverseStep():
            if step.size is None and decay == 0.0:
                raise ValueError(
                    "InverseStep() needs a size or a decay above 0, got neither: give one of them."
                )
            size = 1.0 / decay if step.size is None else step.size
            return {"schedule": ru.HARMONIC, "step": size, "decay": decay}


def budget_part(budget: Budget) -> Part:
    """What a stream keeps."""
    match budget:
        case budgets.Unlimited():
            return {"budget": la.UNLIMITED}
        case budgets.Oldest():
            return {"budget": la.OLDEST, "size": budget.size}
        case budgets.Smallest():
            return {"budget": la.SMALLEST, "size": budget.size}
        case budgets.Forgetron():
            return {"budget": la.FORGETRON, "size": budget.size}
        case budgets.KOMP():
            size = la.MOST_ATOMS if budget.size is None else budget.size
            tolerance = {"tolerance": budget.tolerance, "relative": int(budget.relative)}
            return {"budget": la.PROJECTED, "size": size, **tolerance}
        case Nystroem():
            if budget.random_state is not None:
                raise ValueError(
                    "random_state must be None for Nystroem as a budget, which takes the first "
                    f"points that are far enough apart, got {shown(budget.random_state)}."
                )
            return {"budget": la.SUBSPACE, "tolerance": NOVELTY, "size": budget.landmarks}
        case RandomFourier():
            return {"budget": la.FOURIER, "size": 2 * budget.frequencies}
        case budgets.DoublyStochastic():
            return {"budget": la.REGENERATED, "size": 2 * budget.block, "seed": budget.seed}


def link_part(link: Link) -> Part:
    """How a prediction follows from z."""
    if not isinstance(link, Log):
        return {"link": ru.IDENTITY}
    gradient = ru.IN_Z if link.gradient == "log" else ru.IN_F
    return {"link": ru.EXPONENTIAL, "gradient": gradient, "cap": link.cap}


def method_part(method: SteppedMethod) -> Part:
    """How the rate of a Poisson process is learned."""
    match method:
        case SPPPOT():
            return {
                "loss": ru.PROCESS,
                "link": ru.EXPONENTIAL if method.mirror == "kl" else ru.RECIPROCAL,
                "gradient": {"log": ru.IN_Z, "mirror": ru.IN_F, "sign": ru.SIGN}[method.gradient],
                "cap": method.cap,
                "background": 1,
                # 1/(1 - z) may double at a single event
                "refresh": la.REFRESH_EVENTS if method.mirror == "kl" else 1,
                **step_part(as_step(method.step), 0.0),
                **averaging(method.average),
            }
        case SecondOrder():
            first = SPPPOT(method.step, average=method.average, cap=method.cap)
            return {**method_part(first), "damping": method.damping}
        case PMD():
            return {
                "loss": ru.PROCESS,
                "link": ru.EXPONENTIAL,
                "gradient": ru.IN_F,
                "cap": method.cap,
                "budget": la.GRID,
                **step_part(as_step(method.step), 0.0),
            }
        case Refit():
            # z ← z + k(x, ·) at every event: the slope of a piecewise linear loss far below y = ∞
            slope = {"loss": ru.PIECEWISE, "low": -1.0, "step": 1.0}
            return {**slope, "cap": LARGEST_LOG_RATE, "background": 1, "fading": 1}
