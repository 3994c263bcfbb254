"""Integrals of kernels over a window: ∫k(s, x)ds, ∫k(s, c)k(s, d)ds and ∬k.

A kernel is first written as a sum of products of leaves. Over a box, the integral of a product of
leaves is a product over groups that share no column, and an isotropic Matérn or rational quadratic
kernel is a sum of Gaussians, which are products over columns. So nearly everything reduces to an
interval, in closed form or by Gauss-Legendre panels, with a relative error of at most 1e-11 for
points inside and outside the box. The rest, and windows that are not boxes, are integrated by a
quadrature that is refined until two orders agree to 1e-10, with a warning if they never do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from hplus._checks import Floats, as_points, check_finite, check_memory
from hplus.kernels.base import Kernel
from hplus.kernels.distances import shared_origin
from hplus.kernels.domains import (
    Axes,
    BoxIntegrals,
    DoubleIntegrals,
    Exponential,
    Factors,
    PointIntegrals,
    seeing,
)
from hplus.kernels.leaf import Leaf
from hplus.kernels.mixtures import Spread, components
from hplus.kernels.quadrature import refined_between, refined_over
from hplus.kernels.stationary import (
    Gaussian,
    Laplace,
    Matern32,
    Matern52,
    Periodic,
    Stationary,
)
from hplus.kernels.structured import Polynomial
from hplus.kernels.terms import Term, as_terms, sum_of_terms
from hplus.windows import Box, Window, check_window

EXPONENTIALS: dict[type[Stationary], tuple[float, list[float]]] = {
    Laplace: (1.0, [1.0]),
    Matern32: (np.sqrt(3.0), [1.0, 1.0]),
    Matern52: (np.sqrt(5.0), [1.0, 1.0, 1.0 / 3.0]),
}
"""Kernels that are an `Exponential` on one column: rate·scale, and p."""

Plain = Gaussian | Laplace | Periodic | Polynomial
"""Kernels that see one column each once a kernel is a sum of products."""

MAX_UNSPLIT_ROWS = 32
"""A symmetric matrix of integrals with more rows is assembled from the blocks of two halves."""


def mean_embedding(kernel: Kernel, window: Window, X: Any) -> Floats:
    """∫_W k(s, X[i]) ds, shape (n,).

    >>> from hplus.kernels import Laplace
    >>> from hplus.windows import Interval
    >>> mean_embedding(Laplace(1.0), Interval(0.0, 1.0), [[0.0]]).round(6).tolist()
    [0.632121]
    """
    X = _points("X", X, window)
    terms = as_terms(kernel, X.shape[1])
    window, origin = _near_origin(window, terms, X)
    nothing = np.zeros((1, X.shape[1]))
    return _integrals(terms, [(1.0, ())], window, X - origin, nothing)[:, 0]


def product_integral(kernel: Kernel, window: Window, C: Any, D: Any = None) -> Floats:
    """∫_W k(s, C[i]) k(s, D[j]) ds, shape (n, m); D defaults to C, with a symmetric result."""
    C = _points("C", C, window)
    D = C if D is None else _points("D", D, window)
    need = 8.0 * len(C) * len(D)
    check_memory(need, f"Integrals of {len(C)} x {len(D)} products", "use fewer points")
    terms = as_terms(kernel, C.shape[1])
    window, origin = _near_origin(window, terms, np.vstack([C, D]))
    near = C - origin
    return _integrals(terms, terms, window, near, near if D is C else D - origin)


def double_integral(kernel: Kernel, window: Window) -> float:
    """∬ k(s, t) ds dt over W x W, the squared norm of the mean embedding of W."""
    check_window("window", window)
    terms = as_terms(kernel, window.dimension)
    bounds = _near_origin(window, terms, np.zeros((0, window.dimension)))[0].box_bounds()
    if bounds is None:
        whole = partial(sum_of_terms, terms)
        return float(refined_between(whole, window.quadrature, window.dimension)[0, 0])
    pairs = DoubleIntegrals(*bounds)
    return float(sum(a * _over_box(pairs, _sided(F))[0, 0] for a, F in terms))


def _points(name: str, value: Any, window: Window) -> Floats:
    check_window("window", window)
    return check_finite(name, as_points(name, value, window.dimension))


def _near_origin(window: Window, terms: list[Term], X: Floats) -> tuple[Window, Floats]:
    """A box moved towards the origin, where that does not round, and by how much.

    Nodes far out keep their digits this way; only for kernels of differences of points.
    """
    bounds = window.box_bounds()
    leaves = (leaf for _, leaves in terms for leaf in leaves)
    if bounds is None or not all(isinstance(leaf, Stationary | Periodic) for leaf in leaves):
        return window, np.zeros(X.shape[1])
    origin = shared_origin(np.stack(bounds), X)
    low, high = ((bound - origin).tolist() for bound in bounds)
    return Box(tuple(low), tuple(high)), origin


def _integrals(left: list[Term], right: list[Term], window: Window, C: Floats, D: Floats) -> Floats:
    """∫_W (Σ left)(s, C[i]) (Σ right)(s, D[j]) ds, shape (n, m)."""
    out, bounds, symmetric = np.zeros((len(C), len(D))), window.box_bounds(), C is D
    if out.size == 0:
        return out
    if bounds is None:
        sums = partial(sum_of_terms, left, Z=C), partial(sum_of_terms, right, Z=D)
        out += refined_over(*sums, window.quadrature, window.dimension)
    elif symmetric and len(C) > MAX_UNSPLIT_ROWS:
        return _by_halves(partial(_integrals, left, right, window), C)
    else:
        points = PointIntegrals(*bounds, C, D)
        for coefficient, F, G in _pairs(left, right, symmetric):
            out += coefficient * _over_box(points, _sided(F, G))
    return (out + out.T) / 2.0 if symmetric else out


def _by_halves(integrals: Callable[[Floats, Floats], Floats], C: Floats) -> Floats:
    A, B = C[: len(C) // 2], C[len(C) // 2 :]
    corner = integrals(A, B)
    return np.block([[integrals(A, A), corner], [corner.T, integrals(B, B)]])


def _pairs(
    left: list[Term], right: list[Term], symmetric: bool
) -> Iterator[tuple[float, tuple[Leaf, ...], tuple[Leaf, ...]]]:
    """Every left term times every right term; by symmetry, (i, j) counts twice for (j, i)."""
    for (i, (a, F)), (j, (b, G)) in product(enumerate(left), enumerate(right)):
        if not symmetric or i <= j:
            yield (2.0 if symmetric and i < j else 1.0) * a * b, F, G


def _over_box(domain: BoxIntegrals, factors: Factors) -> Floats:
    """The integral of a product of leaves, shape (n, m)."""
    groups = _groups(factors, len(domain.low))
    seen = {axis for axes, _ in groups for axis in axes}
    free = prod(domain.length(axis) for axis in range(len(domain.low)) if axis not in seen)
    parts = (_over_group(domain, axes, group) for axes, group in groups)
    return reduce(np.multiply, parts, np.full(domain.shape, free))


def _groups(factors: Factors, dimension: int) -> list[tuple[Axes, Factors]]:
    """The factors in groups that share no column, each with its columns."""
    groups: list[tuple[Axes, Factors]] = []
    for factor in factors:
        axes = set(factor[1].axes(dimension))
        members: Factors = (factor,)
        for group in [group for group in groups if axes & set(group[0])]:
            groups.remove(group)
            axes, members = axes | set(group[0]), members + group[1]
        groups.append((tuple(sorted(axes)), members))
    return groups


def _over_group(domain: BoxIntegrals, axes: Axes, group: Factors) -> Floats:
    """The integral of leaves that share columns."""
    spreads = [f for f in group if isinstance(f[1], Spread)]
    rest = tuple(f for f in group if not isinstance(f[1], Spread))
    if not all(isinstance(leaf, Plain) for _, leaf in rest):
        return domain.tensor(axes, group)
    if len(axes) == 1:
        return _over_axis(domain, axes[0], group)
    # a sum of Gaussians has some 70 terms, a product of two the square of that, three are too many
    if len(spreads) <= 2 and all(isinstance(leaf, Gaussian | Polynomial) for _, leaf in rest):
        return _gaussians(domain, axes, group)
    if len(spreads) == 1:
        return _one_spread(domain, axes, spreads[0], rest)
    return domain.tensor(axes, group)


def _over_axis(domain: BoxIntegrals, axis: int, group: Factors) -> Floats:
    """The integral of leaves that see this column only."""
    kinds = {type(leaf) for _, leaf in group}
    if Gaussian in kinds and kinds <= {Gaussian, Polynomial}:
        return _gaussians(domain, (axis,), group)
    if kinds <= EXPONENTIALS.keys():
        # the closed form of a product needs equal rates
        left, right = _exponential(group, 0), _exponential(group, 1)
        if left[0] == right[0] or 0.0 in (left[0], right[0]):
            return domain.exponentials(axis, left, right)
    return domain.panels(axis, group)


def _one_spread(
    domain: BoxIntegrals, axes: Axes, spread: tuple[int, Leaf], rest: Factors
) -> Floats:
    """Σ_k w_k Π_axes ∫ of the k-th Gaussian of a spread kernel times the rest on that axis."""
    weights, *precisions = components(domain, axes, (spread,))
    out = np.zeros(domain.shape)
    for w, scales in zip(weights, 1.0 / np.sqrt(precisions[spread[0]]), strict=True):
        part = np.full(domain.shape, w)
        for axis, scale in zip(axes, scales, strict=True):
            narrow = (spread[0], Gaussian(scale, columns=(axis,)))
            part *= _over_axis(domain, axis, (narrow, *seeing(axis, rest, len(domain.low))))
        out += part
    return out


def _gaussians(domain: BoxIntegrals, axes: Axes, group: Factors) -> Floats:
    """The integral of Gaussians, or sums of them, times polynomials on one column each."""
    polynomials = tuple(f for f in group if isinstance(f[1], Polynomial))
    return domain.gaussians(axes, components(domain, axes, group), polynomials)


def _exponential(group: Factors, side: int) -> Exponential:
    """The product of the exponentials on one side: rates add, polynomials multiply."""
    leaves = [leaf for own, leaf in group if own == side and isinstance(leaf, Stationary)]
    rates = [EXPONENTIALS[type(leaf)][0] / leaf.scales(1)[0] for leaf in leaves]
    rate, poly = sum(rates), np.ones(1)
    for own, leaf in zip(rates, leaves, strict=True):
        p = np.array(EXPONENTIALS[type(leaf)][1])
        # from a polynomial in own·r to one in rate·r
        poly = np.convolve(poly, p * (own / rate) ** np.arange(len(p)))
    return rate, poly


def _sided(*sides: tuple[Leaf, ...]) -> Factors:
    return tuple((side, leaf) for side, leaves in enumerate(sides) for leaf in leaves)
