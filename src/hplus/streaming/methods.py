"""Methods to learn the rate of a Poisson process from a stream of its events."""

from __future__ import annotations

from typing import Any, final

from hplus._checks import check_choice, check_count, check_flag, check_positive
from hplus._values import Value, as_value, value
from hplus.streaming.links import check_cap
from hplus.streaming.steps import InverseStep, RootStep, Step, as_step

GRADIENTS = ("log", "mirror", "sign")
MIRRORS = ("kl", "itakura_saito")
LARGEST_CAP = 300.0
LARGEST_LOG_RATE = 30.0
"""The largest |log f| of a stream's function f, in units of the constant rate."""


@final
@value
class SPPPOT(Value):
    """Projected pseudo-mirror descent: steps on z = log f in the kernel's space, then a budget.

    Parameters
    ----------
    step : float or step
        The step size; a number is a fixed size.
    gradient : "log", "mirror" or "sign"
        The pseudo-gradient: the gradient of the loss in z, the gradient in f in its place (which
        divides by f and is limited where f is small), or the sign of the first at every atom.
    mirror : "kl" or "itakura_saito"
        z = log f, or z = 1 - 1/f for the Itakura-Saito divergence.
    average : bool
        Predict with an average of the functions along the stream, in which later ones count more;
        this allows larger steps.
    cap : float
        The largest |log f|, with f in units of the constant rate: beyond it f is held at the cap,
        and `status_` counts the events where this happens.
    """

    step: Step | float | str = RootStep(4.0)
    gradient: str = "log"
    mirror: str = "kl"
    average: bool = True
    cap: float = LARGEST_LOG_RATE

    def __post_init__(self) -> None:
        check_choice("gradient", self.gradient, GRADIENTS)
        check_choice("mirror", self.mirror, MIRRORS)
        average = check_flag("average", self.average)
        self._set(step=_step(self.step), average=average, cap=check_cap(self.cap, LARGEST_CAP))


@final
@value
class SecondOrder(Value):
    """SPPPOT preconditioned by the inverse of the mean outer product of its pseudo-gradients.

    Parameters
    ----------
    step : float or step
    damping : float
        Added to the eigenvalues of that mean: smaller values follow the curvature more closely.
    average : bool
    cap : float
    """

    step: Step | float | str = RootStep(0.1)
    damping: float = 0.01
    average: bool = True
    cap: float = LARGEST_LOG_RATE

    def __post_init__(self) -> None:
        average = check_flag("average", self.average)
        self._set(step=_step(self.step), average=average, cap=check_cap(self.cap, LARGEST_CAP))
        self._set(damping=check_positive("damping", self.damping))


@final
@value
class PMD(Value):
    """Pseudo-mirror descent on a fixed grid: z = log f at its nodes, linear between them.

    Parameters
    ----------
    grid : int or tuple of int
        Nodes along each axis.
    step : float or step
    cap : float
    """

    grid: Any = 100
    step: Step | float | str = RootStep(1.0)
    cap: float = LARGEST_LOG_RATE

    def __post_init__(self) -> None:
        many = isinstance(self.grid, tuple | list)
        nodes = [check_count("grid", n, least=2) for n in (self.grid if many else [self.grid])]
        grid = tuple(nodes) if many else nodes[0]
        self._set(grid=grid, step=_step(self.step), cap=check_cap(self.cap, LARGEST_CAP))


@final
@value
class Refit(Value):
    """Count events on a fine grid, keep atoms, and solve the batch problem on them on demand.

    Parameters
    ----------
    every : int
        Predictions leave out at most this many of the last events, and at most one in 32 of all:
        the problem is solved again only after more have arrived.
    penalty : "auto" or float
        Minimises the negative log-likelihood plus (penalty/2)‖z‖²; "auto" chooses the penalty with
        the largest evidence.
    """

    every: int = 256
    penalty: Any = "auto"

    def __post_init__(self) -> None:
        if isinstance(self.penalty, str):
            check_choice("penalty", self.penalty, ("auto",))
        else:
            self._set(penalty=check_positive("penalty", self.penalty))
        self._set(every=check_count("every", self.every))


@final
@value
class Tree(Value):
    """Count events in the cells of a fine lattice, and average random dyadic trees on demand.

    The rate, with its uncertainty, is that of `Intensity(window, model="tree")` on the same events,
    bit for bit, in whatever order and chunks they came. There is no step size, no kernel and no
    budget: if there are more than 2²³ distinct cells, they are made larger.

    Parameters
    ----------
    random_state : int
        Seed of the trees, as in `Intensity`.
    """

    random_state: int = 0

    def __post_init__(self) -> None:
        self._set(random_state=check_count("random_state", self.random_state, least=0))


Method = SPPPOT | SecondOrder | PMD | Refit | Tree
SteppedMethod = SPPPOT | SecondOrder | PMD | Refit
"""Methods that learn a function on atoms or nodes, event by event."""

METHODS: dict[str, type[Method]] = {
    "tree": Tree,
    "spppot": SPPPOT,
    "second_order": SecondOrder,
    "pmd": PMD,
    "refit": Refit,
}
"""Every method by name."""


def as_method(method: Any) -> Method:
    """A method from its name or a method."""
    return as_value("method", method, METHODS, "SPPPOT(0.1)")


def _step(step: Any) -> Step:
    step = as_step(step)
    if step == InverseStep():
        raise ValueError(
            "step must have a size here, as there is no decay, got InverseStep(): give its size."
        )
    return step
