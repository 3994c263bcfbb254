"""Random cascades: rates that trees draw, their kernel in closed form, and events from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cascade:
    """A density that is constant in the smallest cells of one random tree over the unit cube."""

    shares: Floats
    offset: Floats

    @classmethod
    def drawn(cls, dimension: int, depth: int, concentrations: Floats, seed: int) -> Cascade:
        """Shares of 2ᵈ halves are Dirichlet(A/2ᵈ, …), A by level; the root has twice the side."""
        rng = np.random.default_rng(seed)
        values = np.ones((2,) * dimension)
        for A in concentrations[:depth]:
            values = _divided(values, A, rng)
        return cls(values, rng.random(dimension))

    def density(self, X: Floats) -> Floats:
        """The density at points (n, d) of the unit cube, up to its total."""
        side = self.shares.shape[0] // 2
        at = np.floor((X + self.offset) * side).astype(int)
        return self.shares[tuple(at.T)] / self._total

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """n independent points with this density, (n, d)."""
        d, top, found = self.shares.ndim, float(self.shares.max()), np.empty((0, self.shares.ndim))
        while len(found) < n:
            X = rng.random((4 * n, d))
            side = self.shares.shape[0] // 2
            at = np.floor((X + self.offset) * side).astype(int)
            found = np.vstack([found, X[rng.random(len(X)) * top < self.shares[tuple(at.T)]]])
        return found[:n]

    @property
    def _total(self) -> float:
        """The mean of the shares over the unit cube, by exact overlaps of cells along each axis."""
        side, values = self.shares.shape[0] // 2, self.shares
        for offset in self.offset:
            edges = np.arange(2 * side + 1) / side - offset
            lengths = np.clip(np.minimum(edges[1:], 1.0) - np.maximum(edges[:-1], 0.0), 0.0, None)
            values = np.tensordot(lengths, values, 1)
        return float(values)


def _divided(values: Floats, A: float, rng: np.random.Generator) -> Floats:
    """The densities of the halves of cells, relative to the base."""
    d = values.ndim
    factors = np.ones((*values.shape, 2**d))
    if np.isfinite(A):
        g = rng.gamma(A / 2**d, size=factors.shape)
        factors = 2**d * g / np.maximum(g.sum(axis=-1, keepdims=True), 1e-300)
    inner = (values[..., None] * factors).reshape(*values.shape, *(2,) * d)
    axes = [axis for j in range(d) for axis in (j, d + j)]
    return inner.transpose(axes).reshape([2 * n for n in values.shape])


def drawn_ratios(
    concentrations: Floats, cells: int, draws: int, rng: np.random.Generator
) -> Floats:
    """Rates over the base on a line of cells, one random tree each, (draws, cells)."""
    found = np.empty((draws, cells))
    levels = len(concentrations)
    side = cells // 2 ** (levels - 1)
    for i in range(draws):
        values = np.ones(1)
        for A in concentrations:
            values = _divided(values, A, rng)
        offset = int(rng.integers(cells))
        found[i] = np.repeat(values, side)[offset : offset + cells]
    return found


def kernel(distances: Floats, concentrations: Floats) -> Floats:
    """E[r(x) r(x + d)] under random trees on a line of length 1, in closed form.

    Both places are in one cell of side h with probability (1 - d/h)₊, the kernel of random binning.
    While they are, the second moment of a share over its mean is (A/2 + 1)/((A + 1)/2); where they
    part, it is A/(A + 1).
    """
    total, together, before = np.zeros(len(distances)), 1.0, np.ones(len(distances))
    for level, A in enumerate(concentrations):
        same = np.clip(1.0 - distances / 0.5**level, 0.0, 1.0)
        apart = A / (A + 1.0) if np.isfinite(A) else 1.0
        total += (before - same) * together * apart
        together *= (A + 2.0) / (A + 1.0) if np.isfinite(A) else 1.0
        before = same
    return total + before * together


def same_cell(steps: int, levels: int, cells: int, trees: int, rng: np.random.Generator) -> Floats:
    """The share of random trees in which two places are in one cell, by level, (levels,)."""
    offset = rng.integers(0, cells, trees)
    place = rng.integers(0, cells - steps, trees) if steps < cells else np.zeros(trees, int)
    sides = (cells / 2 ** np.arange(levels)).astype(int)
    first, second = (place + offset)[:, None] // sides, (place + steps + offset)[:, None] // sides
    return np.mean(first == second, axis=0)
