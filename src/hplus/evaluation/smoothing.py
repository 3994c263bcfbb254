"""Gaussian smoothing on a tensor grid with edge correction, on arrays.

Kernels are not normalised, exp(-Σ_j (x_j - z_j)²/2h_j²): the constant cancels in every ratio.
Products of matrices without negative entries keep rates from becoming negative; an FFT would not,
because it rounds to either side of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import final

import numpy as np
from scipy.linalg import toeplitz
from scipy.spatial import KDTree

from hplus._checks import Floats, Ints
from hplus._values import Value, value
from hplus.grids import TensorGrid
from hplus.windows import Window

MAX_KERNEL_REACH = 9.0
"""Number of widths beyond which a kernel that wraps around a closed axis is negligible."""

CANCELLATION = 1e-10
"""Below this fraction of a sum, the sum minus one term is a rounding error."""


def smooth(grid: TensorGrid, values: Floats, widths: Floats) -> Floats:
    """Σ_g' exp(-Σ_j (g_j - g'_j)² / 2 widths[j]²) values[g'] at every node g, widths in cells.

    On a closed axis the kernel wraps around: it is a sum over all ways from g' to g.
    """
    out = values
    for profile in _profiles(grid, widths):
        # the first axis becomes the last, so in the end all are back in place
        out = out.reshape(len(profile), -1).T @ toeplitz(profile)
    return out.reshape(values.shape)


def _profiles(grid: TensorGrid, widths: Floats) -> Iterator[Floats]:
    """The kernel between the first node of each axis and every node of it."""
    for axis, (n, width) in enumerate(zip(grid.shape, widths, strict=True)):
        steps = np.arange(n)
        if axis in grid.closed:
            rounds = int(np.ceil(MAX_KERNEL_REACH * width / (n - 1)))
            steps = steps + (n - 1) * np.arange(-rounds - 1, rounds + 1)[:, None]
        yield np.exp(-0.5 * (np.atleast_2d(steps) / width) ** 2).sum(axis=0)


def widths_in_cells(grid: TensorGrid, bandwidth: Floats) -> Floats:
    """The width of the kernel between nodes, in cells, (d,), for a `bandwidth` between points.

    Binning and interpolation each spread a point over its cell, with an average variance of 1/6.
    """
    return np.sqrt((bandwidth / grid.spacing) ** 2 - 1.0 / 3.0)


def corrected(sums: Floats, masses: Floats, areas: Floats) -> Floats:
    """sums / masses at the nodes whose hat overlaps the window, 0 at the others."""
    return np.divide(sums, masses, out=np.zeros_like(sums), where=areas > 0.0)


def edge_corrected_rates(
    grid: TensorGrid, binned: Floats, areas: Floats, bandwidth: Floats
) -> Floats:
    """λ(g) ∝ Σ_i w_i k(g, x_i) / ∫_W k(g, u) du at every node g, with ∫_W λ = Σ_i w_i.

    `binned` is Σ_i w_i φ_g(x_i) and `areas` ∫_W φ_g, arrays of the grid's shape.
    """
    widths = widths_in_cells(grid, bandwidth)
    rates = corrected(smooth(grid, binned, widths), smooth(grid, areas, widths), areas)
    return rates * (binned.sum() / (rates * areas).sum())


@final
@value
class LeaveOneOut(Value):
    """The leave-one-out score of a bandwidth: log λ(x) of events left out of λ, with ∫λ = 1.

    X (s, d) and weights (s,) are the events that are left out in turn, `binned` and `areas` as in
    `edge_corrected_rates`, `away` (s, d) the difference to a neighbour and `near` (s,) the weight
    of that neighbour.
    """

    grid: TensorGrid
    binned: Floats
    areas: Floats
    X: Floats
    weights: Floats
    away: Floats
    near: Floats

    def score(self, bandwidth: Floats) -> float:
        """Σ_i w_i log λ₋ᵢ(x_i) / Σ_i w_i, exact for the binned kernel; -inf if not finite.

        λ₋ᵢ(x_i) = (Σ_j w_j k(x_i, x_j) - w_i k(x_i, x_i)) / m(x_i) / (R - w_i r_i), where
        m(x) = ∫_W k(x, u) du, r_i = ∫_W k(u, x_i)/m(u) du and R = Σ_j w_j r_j.
        """
        widths, at = widths_in_cells(self.grid, bandwidth), self._at_events
        masses = smooth(self.grid, self.areas, widths)
        r = smooth(self.grid, corrected(self.areas, masses, self.areas), widths)
        others = (self.binned * r).sum() - self.weights * at(r)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_rates = self._log_sums(bandwidth) - np.log(at(masses)) - np.log(others)
        score = float(self.weights @ log_rates / self.weights.sum())
        return score if np.isfinite(score) else -np.inf

    def _log_sums(self, bandwidth: Floats) -> Floats:
        """log Σ_{j ≠ i} w_j k(x_i, x_j), shape (s,)."""
        widths = widths_in_cells(self.grid, bandwidth)
        sums = self._at_events(smooth(self.grid, self.binned, widths))
        left = sums - self.weights * self._own(widths)
        # a sum is at least one of its terms, which replaces it where the difference cancels
        near = np.log(self.near) - 0.5 * ((self.away / bandwidth) ** 2).sum(axis=1)
        return np.maximum(np.log(np.where(left > CANCELLATION * sums, left, 0.0)), near)

    def _own(self, widths: Floats) -> Floats:
        """Σ_g Σ_g' φ_g(x_i) k(g, g') φ_g'(x_i), shape (s,)."""
        u = (self.X - self.grid.low) / self.grid.spacing
        t = u - np.floor(u)
        own, next_to = np.transpose([profile[:2] for profile in _profiles(self.grid, widths)])
        # ((1 - t)² + t²) k(0) + 2t(1 - t) k(cell)
        return np.prod(own - 2.0 * t * (1.0 - t) * (own - next_to), axis=1)

    def _at_events(self, values: Floats) -> Floats:
        return self.grid.interpolate(values, self.X)


def leave_one_out(
    grid: TensorGrid, X: Floats, weights: Floats, window: Window, scored: Ints, sides: Floats
) -> LeaveOneOut:
    """Prepare the leave-one-out score of events X (n, d), of which those in `scored` are left out.

    Neighbours are found in units of `sides`, shape (d,).
    """
    _, neighbours = KDTree(X / sides).query(X[scored] / sides, k=2)
    # among events at the same place, an event may be its own second neighbour
    other = np.where(neighbours[:, 0] == scored, neighbours[:, 1], neighbours[:, 0])
    return LeaveOneOut(
        grid=grid,
        binned=grid.bin(X, weights),
        areas=grid.integrals(window),
        X=X[scored],
        weights=weights[scored],
        away=X[scored] - X[other],
        near=weights[other],
    )


def best_factor(score: Callable[[float], float], factors: Floats) -> float:
    """The factor with the largest score in a geometric sequence, refined by a parabola.

    The first one of equal scores.
    """
    scores = np.array([score(factor) for factor in factors])
    i = int(np.argmax(scores))
    if i in (0, len(factors) - 1) or not np.isfinite(scores[i - 1 : i + 2]).all():
        return float(factors[i])
    before, best, after = scores[i - 1 : i + 2]
    bend = before - 2.0 * best + after
    step = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
    return float(factors[i] * (factors[i + 1] / factors[i]) ** step)
