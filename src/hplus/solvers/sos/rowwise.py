"""Losses of one or several outputs at each row, and their convex conjugates.

The solver in `psd` sees the data only through these. Outputs and slopes have shape (n, outputs).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from hplus._checks import Bools, Floats, Ints
from hplus.losses import Loss, Quantile

Rows = slice | Bools | Ints
"""An index of some rows of an array."""


class RowLoss(ABC):
    """ℓ_i(z_i), convex in the outputs z_i of row i, and ℓ_i*(x_i) = sup_z x_i·z - ℓ_i(z).

    `low` and `high` (n, outputs) bound the slopes x; a slope with low = high is fixed.
    """

    low: Floats
    high: Floats

    @property
    def free(self) -> Bools:
        """The slopes that are not fixed."""
        return self.low < self.high

    @property
    def boxed(self) -> Bools:
        """The slopes that are bounded on both sides, and free between."""
        return np.isfinite(self.low) & np.isfinite(self.high) & self.free

    @abstractmethod
    def value(self, z: Floats) -> Floats:
        """ℓ_i(z_i), shape (n,), infinite outside the domain."""

    @abstractmethod
    def conjugate(self, x: Floats) -> Floats:
        """ℓ_i*(x_i), shape (n,), infinite outside the domain."""

    @abstractmethod
    def conjugate_slope(self, x: Floats) -> Floats:
        """∇ℓ_i*(x_i), shape (n, outputs)."""

    @abstractmethod
    def conjugate_curvature(self, x: Floats) -> Floats:
        """∇²ℓ_i*(x_i), shape (n, outputs, outputs)."""

    @abstractmethod
    def start(self, z: Floats) -> Floats:
        """Slopes (n, outputs) inside the domain, near those at outputs z (n, outputs)."""

    @abstractmethod
    def part(self, rows: Rows) -> RowLoss:
        """Some of the rows."""


@final
class OneOutput(RowLoss):
    """A loss Φ(y, f) of one function."""

    def __init__(self, loss: Loss, y: Floats) -> None:
        self.loss, self.y = loss, y
        low, high = loss.slope_range(y)
        self.low, self.high = low[:, None], high[:, None]

    def value(self, z: Floats) -> Floats:
        return self.loss.value(self.y, z[:, 0])

    def conjugate(self, x: Floats) -> Floats:
        return self.loss.conjugate(self.y, x[:, 0])

    def conjugate_slope(self, x: Floats) -> Floats:
        return self.loss.conjugate_slope(self.y, x[:, 0])[:, None]

    def conjugate_curvature(self, x: Floats) -> Floats:
        return self.loss.conjugate_curvature(self.y, x[:, 0])[:, None, None]

    def start(self, z: Floats) -> Floats:
        slopes = self.loss.slope(self.y, z[:, 0])[:, None]
        return np.where(self.free, slopes, self.high)

    def part(self, rows: Rows) -> OneOutput:
        return OneOutput(self.loss, self.y[rows])


@final
class Surprise(RowLoss):
    """-log f, the loss of an event where the rate or the density is f."""

    def __init__(self, n: int) -> None:
        self.low, self.high = np.full((n, 1), -np.inf), np.zeros((n, 1))

    def value(self, z: Floats) -> Floats:
        f = z[:, 0]
        return np.where(f > 0.0, -np.log(np.where(f > 0.0, f, 1.0)), np.inf)

    def conjugate(self, x: Floats) -> Floats:
        u = x[:, 0]
        return np.where(u < 0.0, -1.0 - np.log(np.where(u < 0.0, -u, 1.0)), np.inf)

    def conjugate_slope(self, x: Floats) -> Floats:
        return -1.0 / x

    def conjugate_curvature(self, x: Floats) -> Floats:
        return 1.0 / x[:, :, None] ** 2

    def start(self, z: Floats) -> Floats:
        return -1.0 / z

    def part(self, rows: Rows) -> Surprise:
        return Surprise(len(self.low[rows]))


@final
class Pinballs(RowLoss):
    """The sum of the quantile losses of several levels, Σ_k Φ_k(y, z_k)."""

    def __init__(self, levels: tuple[float, ...], y: Floats) -> None:
        self.losses, self.y = [Quantile(level) for level in levels], y
        bounds = [loss.bounds(y) for loss in self.losses]
        self.low, self.high = (np.stack(side, axis=1) for side in zip(*bounds, strict=True))

    def value(self, z: Floats) -> Floats:
        parts = zip(self.losses, z.T, strict=True)
        return np.sum([loss.value(self.y, q) for loss, q in parts], axis=0)

    def conjugate(self, x: Floats) -> Floats:
        parts = zip(self.losses, x.T, strict=True)
        return np.sum([loss.conjugate(self.y, u) for loss, u in parts], axis=0)

    def conjugate_slope(self, x: Floats) -> Floats:
        return np.repeat(self.y[:, None], x.shape[1], axis=1)

    def conjugate_curvature(self, x: Floats) -> Floats:
        return np.zeros((*x.shape, x.shape[1]))

    def start(self, z: Floats) -> Floats:
        return 0.5 * (self.low + self.high)

    def part(self, rows: Rows) -> Pinballs:
        return Pinballs(tuple(loss.level for loss in self.losses), self.y[rows])


@final
class NormalNoise(RowLoss):
    """-log of a normal density with mean η/θ and precision θ = floor + f; the outputs are (η, f).

    ℓ = η²/2θ - ½ log θ - ηy + θy²/2 and, with c = -(t + u²/2 + uy) > 0,
    ℓ*(u, t) = -½ - ½ log 2c - floor·t [math, Eq. 3.12].
    """

    def __init__(self, y: Floats, floor: float) -> None:
        self.y, self.floor = y, floor
        self.low, self.high = np.full((len(y), 2), -np.inf), np.full((len(y), 2), np.inf)

    def value(self, z: Floats) -> Floats:
        eta, theta = z[:, 0], z[:, 1] + self.floor
        fit = eta**2 / (2.0 * theta) - eta * self.y + 0.5 * theta * self.y**2
        return fit - 0.5 * np.log(theta)

    def conjugate(self, x: Floats) -> Floats:
        c = self._slack(x)
        logs = np.log(2.0 * np.where(c > 0.0, c, 1.0))
        return np.where(c > 0.0, -0.5 - 0.5 * logs - self.floor * x[:, 1], np.inf)

    def conjugate_slope(self, x: Floats) -> Floats:
        slope = 0.5 * self._downhill(x) / self._slack(x)[:, None]
        slope[:, 1] -= self.floor
        return slope

    def conjugate_curvature(self, x: Floats) -> Floats:
        c, d = self._slack(x), self._downhill(x)
        curvature = 0.5 * d[:, :, None] * d[:, None, :] / (c**2)[:, None, None]
        curvature[:, 0, 0] += 0.5 / c
        return curvature

    def start(self, z: Floats) -> Floats:
        # ∇ℓ = (m - y, y²/2 - m²/2 - 1/2θ) with the mean m = η/θ
        theta = z[:, 1] + self.floor
        mean = z[:, 0] / theta
        return np.stack([mean - self.y, 0.5 * (self.y**2 - mean**2 - 1.0 / theta)], axis=1)

    def part(self, rows: Rows) -> NormalNoise:
        return NormalNoise(self.y[rows], self.floor)

    def _slack(self, x: Floats) -> Floats:
        return -(x[:, 1] + 0.5 * x[:, 0] ** 2 + x[:, 0] * self.y)

    def _downhill(self, x: Floats) -> Floats:
        """-∇c, shape (n, 2)."""
        return np.stack([x[:, 0] + self.y, np.ones(len(x))], axis=1)
