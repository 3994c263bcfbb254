"""The penalised mean loss of kernel machines, its dual, and the certified gap between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from hplus._checks import Floats
from hplus.losses import Loss, PiecewiseLinear

LARGEST_IMBALANCE = 1e-9
"""|Σ c_i| below this share of Σ |c_i| counts as rounding."""


@dataclass(frozen=True)
class Risk:
    """P(f, b) = Σ_i p_i Φ(y_i, f_i + b) + penalty ‖f‖², f_i = f(x_i) [math, Eq. 2.1].

    `shares` are the p_i > 0; the bias b is 0 unless `bias`. Shapes are (n,) throughout.
    """

    loss: Loss
    y: Floats
    shares: Floats
    penalty: float
    bias: bool = False

    def primal(self, f: Floats, b: float, square: float) -> float:
        """P, with square = ‖f‖²."""
        return float(self.shares @ self.loss.value(self.y, f + b)) + self.penalty * square

    def size(self, f: Floats, b: float, square: float) -> float:
        """Σ p_i |Φ(y_i, f_i + b)| + penalty ‖f‖²: P, unless the loss takes both signs."""
        absolute = np.abs(self.loss.value(self.y, f + b))
        return float(self.shares @ absolute) + self.penalty * square

    def dual(self, c: Floats, square: float, b: float = 0.0) -> float:
        """D = -Σ p_i Φ*(y_i, u_i) - penalty ‖Σ c_i k(x_i, ·)‖² <= min P, u = -2 penalty c/p.

        A bias requires Σ c_i = 0, otherwise D is -∞. What rounding leaves of this sum is charged
        at a bias of |b| + 1.
        """
        # slightly towards 0, which is in the domain, so that rounding at its edge does not matter
        u = -2.0 * self.penalty * c / self.shares * (1.0 - 8.0 * np.finfo(float).eps)
        imbalance = abs(float(c.sum())) if self.bias else 0.0
        if imbalance > LARGEST_IMBALANCE * float(np.abs(c).sum()):
            return -np.inf
        conjugates = float(self.shares @ self.loss.conjugate(self.y, u))
        return -conjugates - self.penalty * (square + 2.0 * (1.0 + abs(b)) * imbalance)

    def coefficients(self, f: Floats, b: float) -> Floats:
        """c_i = -p_i Φ'(y_i, f_i + b)/(2 penalty): at the optimum, f = Σ c_i k(x_i, ·)."""
        return self.shares * self.loss.slope(self.y, f + b) / (-2.0 * self.penalty)

    def box(self) -> tuple[Floats, Floats]:
        """The interval of each c_i for a piecewise linear loss."""
        assert isinstance(self.loss, PiecewiseLinear)
        low, high = self.loss.bounds(self.y)
        reach = self.shares / (2.0 * self.penalty)
        return -high * reach, -low * reach

    def best_bias(self, f: Floats) -> float:
        """The exact minimiser b of P for a given f."""
        if not self.bias:
            return 0.0
        if isinstance(self.loss, PiecewiseLinear):
            return self._kink_bias(f)

        def slope(b: float) -> float:
            return float(self.shares @ self.loss.slope(self.y, f + b))

        reach = 1.0 + float(np.abs(f).max())
        while slope(-reach) > 0.0 or slope(reach) < 0.0:
            reach *= 2.0
        return float(brentq(slope, -reach, reach, xtol=1e-15 * reach, rtol=1e-15))

    def _kink_bias(self, f: Floats) -> float:
        """The midpoint of the interval that minimises P, a piecewise linear function of b."""
        assert isinstance(self.loss, PiecewiseLinear)
        low, high = self.loss.bounds(self.y)
        # P in b has slope Σ p low on the far left, and bends up at y - f - tube and y - f + tube
        kinks = np.concatenate([self.y - f - self.loss.tube, self.y - f + self.loss.tube])
        bends = np.concatenate([-self.shares * low, self.shares * high])
        order = np.argsort(kinks, kind="stable")
        slopes = self.shares @ low + np.cumsum(bends[order])
        flat = 1e-12 * float(bends.sum())
        first = int(np.searchsorted(slopes, -flat))
        last = min(int(np.searchsorted(slopes, flat, side="right")), len(kinks) - 1)
        return float(0.5 * (kinks[order[first]] + kinks[order[last]]))
