"""The slopes of a loss as variables of an interior-point method, next to the function's weights.

Near the current slopes u and values f every loss is linearised as  Δu = D·Δf + e  with D >= 0: the
step of its optimality conditions, relaxed by a target that goes to 0. The variables behind the
slopes, such as the multipliers of their box, form one array V (k, n); other arrays are (n,).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from hplus._checks import Floats
from hplus.losses import Huber, Loss, PiecewiseLinear, Poisson
from hplus.solvers.machines.risk import Risk


class Slopes(ABC):
    """The optimality conditions of a loss between values f and slopes u."""

    @abstractmethod
    def start(self, f: Floats) -> Floats:
        """V for the values f > 0."""

    @abstractmethod
    def slopes(self, V: Floats) -> Floats:
        """u, within the domain of the conjugate."""

    @abstractmethod
    def reach(self, V: Floats) -> Floats:
        """The expected size of |u|."""

    @abstractmethod
    def room(self, V: Floats) -> Floats:
        """The quantities that must stay positive, linear in V; shape (j, n)."""

    @abstractmethod
    def products(self, V: Floats) -> Floats:
        """Products that equal the target on the central path, 0 at the optimum; shape (i, n)."""

    @abstractmethod
    def line(self, V: Floats, f: Floats, target: float, ahead: Floats) -> tuple[Floats, Floats]:
        """D and e; `ahead` is a predicted step of V, for the second-order correction."""

    @abstractmethod
    def follow(self, V: Floats, du: Floats, target: float, ahead: Floats) -> Floats:
        """The step of V that corresponds to the step du of the slopes."""


@final
@dataclass(frozen=True)
class BoxedSlopes(Slopes):
    """Φ = sup over low <= u <= high of u·(f - y) - bend·u²/2: V = (a, b, high - u, u - low).

    f - y = bend·u + a - b,  p·a·(high - u) = target = p·b·(u - low). The distances to the sides of
    the box are variables of their own, as differences would lose digits.
    """

    y: Floats
    shares: Floats
    low: Floats
    high: Floats
    bend: float

    def start(self, f: Floats) -> Floats:
        u, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        r = f - self.y - self.bend * u
        size = max(float(np.abs(r).mean()), float(np.finfo(float).tiny))
        return np.stack([np.maximum(r, 0.0) + size, np.maximum(-r, 0.0) + size, half, half])

    def slopes(self, V: Floats) -> Floats:
        above, below = V[2:]
        return np.where(below < above, self.low + below, self.high - above)

    def reach(self, V: Floats) -> Floats:
        return 0.5 * (self.high - self.low)

    def room(self, V: Floats) -> Floats:
        return V

    def products(self, V: Floats) -> Floats:
        return self.shares * V[:2] * V[2:]

    def line(self, V: Floats, f: Floats, target: float, ahead: Floats) -> tuple[Floats, Floats]:
        # f + Δf - y = bend (u + Δu) + a + Δa - b - Δb, with Δa and Δb as in `follow`
        a, b, above, below = V
        goal_a, goal_b = self._goals(target, ahead)
        D = 1.0 / (self.bend + a / above + b / below)
        rest = f - self.y - self.bend * self.slopes(V) - goal_a / above + goal_b / below
        return D, D * rest

    def follow(self, V: Floats, du: Floats, target: float, ahead: Floats) -> Floats:
        # (a + Δa)(above - Δu) = target/p = (b + Δb)(below + Δu)
        a, b, above, below = V
        goal_a, goal_b = self._goals(target, ahead)
        return np.stack([(goal_a + a * du) / above - a, (goal_b - b * du) / below - b, -du, du])

    def _goals(self, target: float, ahead: Floats) -> Floats:
        return target / self.shares - ahead[:2] * ahead[2:]


@final
@dataclass(frozen=True)
class PoissonSlopes(Slopes):
    """Φ = f - y·log f: V = (1 - u,), and f·(1 - u) = y, whatever the target."""

    y: Floats

    def start(self, f: Floats) -> Floats:
        return (self.y / f)[None]

    def slopes(self, V: Floats) -> Floats:
        return 1.0 - V[0]

    def reach(self, V: Floats) -> Floats:
        return np.abs(1.0 - V[0])

    def room(self, V: Floats) -> Floats:
        return V[:, self.y > 0.0]

    def products(self, V: Floats) -> Floats:
        return np.empty((0, len(self.y)))

    def line(self, V: Floats, f: Floats, target: float, ahead: Floats) -> tuple[Floats, Floats]:
        # (1 - u - Δu)(f + Δf) = y without ΔuΔf, which did not help
        return V[0] / f, V[0] - self.y / f

    def follow(self, V: Floats, du: Floats, target: float, ahead: Floats) -> Floats:
        return -du[None]


@final
@dataclass(frozen=True)
class SmoothSlopes(Slopes):
    """Any differentiable Φ: V = (u,), and u = Φ'(y, f)."""

    loss: Loss
    y: Floats

    def start(self, f: Floats) -> Floats:
        return self.loss.slope(self.y, f)[None]

    def slopes(self, V: Floats) -> Floats:
        return V[0]

    def reach(self, V: Floats) -> Floats:
        return np.abs(V[0])

    def room(self, V: Floats) -> Floats:
        return np.empty((0, len(self.y)))

    products = room

    def line(self, V: Floats, f: Floats, target: float, ahead: Floats) -> tuple[Floats, Floats]:
        return self.loss.curvature(self.y, f), self.loss.slope(self.y, f) - V[0]

    def follow(self, V: Floats, du: Floats, target: float, ahead: Floats) -> Floats:
        return du[None]


def slopes_of(risk: Risk) -> Slopes:
    """The optimality conditions of the risk's loss, which must have no tube."""
    loss, y = risk.loss, risk.y
    if isinstance(loss, PiecewiseLinear):
        return BoxedSlopes(y, risk.shares, *loss.bounds(y), 0.0)
    if isinstance(loss, Huber):
        edge = np.full(y.shape, loss.threshold)
        return BoxedSlopes(y, risk.shares, -edge, edge, 1.0)
    return PoissonSlopes(y) if isinstance(loss, Poisson) else SmoothSlopes(loss, y)
