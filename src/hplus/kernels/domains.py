"""Integrals over a box, a few axes at a time: for pairs of points, or over the box twice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial, reduce
from typing import cast, final

import numpy as np

import hplus.kernels.closed_forms as forms
import hplus.kernels.quadrature as quadrature
from hplus._checks import Floats
from hplus.kernels.closed_forms import GaussianSum
from hplus.kernels.leaf import Leaf
from hplus.kernels.stationary import (
    Laplace,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    Stationary,
)
from hplus.kernels.structured import Polynomial
from hplus.windows.geometry import Rule

Axes = tuple[int, ...]

Factors = tuple[tuple[int, Leaf], ...]
"""Leaves to multiply: k(s, c) on side 0, k(s, d) on side 1."""

Exponential = tuple[float, Floats]
"""κ(r) = p(t)e^{-t}, t = rate·r: the rate, 0 for κ = 1, and the coefficients of p, lowest first."""

PANEL_NODES = 16
"""Gauss-Legendre nodes per panel of the smallest scale: error 5e-13 up to 30 scales away."""

MAX_CHUNK_ENTRIES = 2**18
"""Entries of an array computed at a time: 2 MiB, to stay in cache."""


@dataclass(frozen=True)
class BoxIntegrals(ABC):
    """Integrals over the box low <= s <= high, shape (d,) each."""

    low: Floats
    high: Floats

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, m), the shape of every integral."""

    @abstractmethod
    def length(self, axis: int) -> float:
        """The integral of 1 on one axis."""

    @abstractmethod
    def farthest(self, side: int) -> Floats:
        """The largest |s - c|, or |s - d| on side 1, on each axis, shape (n, d)."""

    @abstractmethod
    def gaussians(self, axes: Axes, total: GaussianSum, polynomials: Factors) -> Floats:
        """The integral of a sum of Gaussians times polynomials on one column each."""

    @abstractmethod
    def exponentials(self, axis: int, left: Exponential, right: Exponential) -> Floats:
        """The integral of two exponentials of one rate, or of one alone."""

    @abstractmethod
    def panels(self, axis: int, factors: Factors) -> Floats:
        """The integral of leaves that see one column, by Gauss-Legendre panels."""

    @abstractmethod
    def tensor(self, axes: Axes, factors: Factors) -> Floats:
        """The integral of any leaves, by refined quadrature."""

    def side(self, axis: int) -> float:
        return float(self.high[axis] - self.low[axis])

    def lift(self, axes: Axes, S: Floats) -> Floats:
        """Nodes on some axes, shape (q, len(axes)), as points that are 0 elsewhere, (q, d)."""
        points = np.zeros((len(S), len(self.low)))
        points[:, list(axes)] = S
        return points

    def rule(self, axes: Axes, order: int) -> Rule:
        S, w = quadrature.box_rule(self.low[list(axes)], self.high[list(axes)], order)
        return self.lift(axes, S), w


@final
@dataclass(frozen=True)
class PointIntegrals(BoxIntegrals):
    """∫ … ds for all pairs of points C[i], D[k]."""

    C: Floats
    D: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.C), len(self.D)

    def length(self, axis: int) -> float:
        return self.side(axis)

    def farthest(self, side: int) -> Floats:
        X = (self.C, self.D)[side]
        return np.maximum(np.abs(X - self.low), np.abs(X - self.high))

    def gaussians(self, axes: Axes, total: GaussianSum, polynomials: Factors) -> Floats:
        arrays = (np.vstack([self.low, self.high]), self.C, self.D)
        box, C, D = (np.ascontiguousarray(array[:, list(axes)]) for array in arrays)
        rows = [
            (axes.index(leaf.axes(len(self.low))[0]), side, leaf.degree, leaf.offset)
            for side, leaf in polynomials
            if isinstance(leaf, Polynomial)
        ]
        return forms.gaussian_integrals(box, C, D, total, np.array(rows).reshape(-1, 4))

    def exponentials(self, axis: int, left: Exponential, right: Exponential) -> Floats:
        low, high, out = self.low[axis], self.high[axis], np.empty(self.shape)
        height = max(1, MAX_CHUNK_ENTRIES // len(self.D))
        for start in range(0, len(self.C), height):
            rows = slice(start, start + height)
            c, d = self.C[rows, None, axis], self.D[None, :, axis]
            if not right[0]:
                out[rows] = forms.exponential_embedding(low, high, c, *left)
            elif not left[0]:
                out[rows] = forms.exponential_embedding(low, high, d, *right)
            else:
                out[rows] = forms.exponential_product(low, high, c, d, *left, right[1])
        return out

    def panels(self, axis: int, factors: Factors) -> Floats:
        kinked = {side for side, leaf in factors if isinstance(leaf, Laplace | Matern32 | Matern52)}
        kinks = ((self.C, self.D)[side][:, axis] for side in kinked)
        ends = self.low[axis], self.high[axis]
        breaks = np.clip(np.concatenate([ends, *kinks]), *ends)
        s, w = quadrature.panel_rule(breaks, *panel(factors))
        return quadrature.over_nodes(*self._values(factors), (self.lift((axis,), s[:, None]), w))

    def tensor(self, axes: Axes, factors: Factors) -> Floats:
        rule = partial(self.rule, axes)
        return quadrature.refined_over(*self._values(factors), rule, len(axes))

    def _values(self, factors: Factors) -> tuple[quadrature.Values, quadrature.Values]:
        left, right = ([leaf for side, leaf in factors if side == one] for one in (0, 1))
        return partial(gram, left, Z=self.C), partial(gram, right, Z=self.D)


@final
@dataclass(frozen=True)
class DoubleIntegrals(BoxIntegrals):
    """∬ … ds dt over the box twice, shape (1, 1).

    A stationary κ depends on u = |s - t| only: ∬ κ(|s - t|) f(s, t) ds dt = ∫_0^side κ(u) F(u) du,
    F(u) = 2 ∫_low^{high-u} f(t + u, t) dt.
    """

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 1

    def length(self, axis: int) -> float:
        return self.side(axis) ** 2

    def farthest(self, side: int) -> Floats:
        return (self.high - self.low)[None]

    def gaussians(self, axes: Axes, total: GaussianSum, polynomials: Factors) -> Floats:
        product = total.weights
        for axis, p in zip(axes, total.P.T, strict=True):
            if factors := seeing(axis, polynomials, len(self.low)):
                u, w = forms.half_gaussian_rule(self.side(axis), p)
                product = product * np.sum(w * self._shifts(axis, u, factors), axis=-1)
            else:
                product = product * forms.gaussian_double(self.side(axis), p)
        return np.full(self.shape, product.sum())

    def exponentials(self, axis: int, left: Exponential, right: Exponential) -> Floats:
        return np.full(self.shape, forms.exponential_double(self.side(axis), *left))

    def panels(self, axis: int, factors: Factors) -> Floats:
        u, w = quadrature.panel_rule(np.array([0.0, self.side(axis)]), *panel(factors))
        polynomials = tuple(f for f in factors if isinstance(f[1], Polynomial))
        leaves = [leaf for _, leaf in factors if not isinstance(leaf, Polynomial)]
        K = gram(leaves, self.lift((axis,), u[:, None]), np.zeros((1, len(self.low))))
        return (w * self._shifts(axis, u, polynomials))[None] @ K

    def tensor(self, axes: Axes, factors: Factors) -> Floats:
        values = partial(gram, [leaf for _, leaf in factors])
        return quadrature.refined_between(values, partial(self.rule, axes), len(axes))

    def _shifts(self, axis: int, u: Floats, factors: Factors) -> Floats:
        """F(u) for a product f of polynomials."""
        x, w = quadrature.unit_rule(1 + degree(factors))
        rest = (self.side(axis) - u)[..., None]
        t = self.low[axis] + rest * x
        return 2.0 * np.sum(rest * w * polynomial(factors, t + u[..., None], t, t), axis=-1)


def gram(leaves: Iterable[Leaf], X: Floats, Z: Floats) -> Floats:
    """Π leaves at X[i], Z[j], shape (n, m)."""
    return reduce(np.multiply, (leaf.gram(X, Z) for leaf in leaves), np.ones((len(X), len(Z))))


def seeing(axis: int, factors: Factors, dimension: int) -> Factors:
    """The factors that see this column."""
    return tuple(f for f in factors if axis in f[1].axes(dimension))


def polynomial(factors: Factors, s: Floats, c: Floats, d: Floats) -> Floats:
    """Π (s·c + offset)^degree over `Polynomial` factors on one column, with d on side 1."""
    leaves = ((side, cast(Polynomial, leaf)) for side, leaf in factors)
    values = ((s * (c, d)[side] + leaf.offset) ** leaf.degree for side, leaf in leaves)
    return reduce(np.multiply, values, np.ones(1))


def degree(factors: Factors) -> int:
    """The total degree in s of all polynomials."""
    return sum(leaf.degree for _, leaf in factors if isinstance(leaf, Polynomial))


def panel(factors: Factors) -> tuple[float, int]:
    """Length and order of panels that are exact for polynomials and resolve everything else."""
    length = min(_resolved(leaf) for _, leaf in factors)
    return length, 1 + degree(factors) + (PANEL_NODES if length < np.inf else 0)


def _resolved(leaf: Leaf) -> float:
    """A length over which PANEL_NODES resolve the leaf on either side of a kink."""
    match leaf:
        case Periodic():
            return leaf.period * min(1.0, leaf.scale) / 4.0
        case RationalQuadratic():
            # the singularities are at r = ±i√(2·mixture)
            return leaf.scales(1)[0] * min(1.0, float(np.sqrt(2.0 * leaf.mixture)))
        case Stationary():
            return leaf.scales(1)[0]
    return np.inf
