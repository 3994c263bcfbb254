"""Quadrature: Gauss-Legendre on panels, and rules that are refined until two orders agree."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial, reduce

import numpy as np
from numpy.polynomial.legendre import leggauss

from hplus._checks import Floats, check_memory
from hplus.windows.geometry import Rule, cross

Values = Callable[[Floats], Floats]
"""A map from nodes (q, d) to values (q, n), one column for each point."""

Gram = Callable[[Floats, Floats], Floats]
"""A map from points (n, d) and (m, d) to values (n, m)."""

MAX_CHUNK_VALUES = 2**22
"""Values computed at a time: 32 MiB."""

MAX_NODES = 2**19
"""A rule is refined up to this many nodes, but at least once."""

MAX_PAIRED_NODES = 2**13
"""The same for integrals over all pairs of nodes."""

MAX_ORDER_DIFFERENCE = 1e-10
"""Two orders of a rule agree if they differ by at most this fraction of ∫|integrand|."""


@cache
def unit_rule(order: int) -> Rule:
    """Gauss-Legendre nodes and weights on [0, 1], exact to degree 2·order - 1; shape (order,)."""
    u, w = leggauss(order)
    return (1.0 + u) / 2.0, w / 2.0


def panel_rule(breaks: Floats, length: float, order: int) -> Rule:
    """Gauss-Legendre on panels no longer than `length` that end at all `breaks`; shape (q,)."""
    edges = np.unique(breaks)
    gaps = np.diff(edges)
    pieces = np.maximum(1.0, np.ceil(gaps / length))
    nodes = order * pieces.sum()
    check_memory(
        64.0 * nodes,
        f"A quadrature of {nodes:.0f} nodes",
        "use a larger scale or a smaller window",
    )
    counts = pieces.astype(np.int64)
    sides = np.repeat(gaps / counts, counts)
    # the number of each panel within its gap
    place = np.arange(len(sides)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(edges[:-1], counts) + place * sides
    x, w = unit_rule(order)
    return (starts[:, None] + sides[:, None] * x).ravel(), np.outer(sides, w).ravel()


def box_rule(low: Floats, high: Floats, order: int) -> Rule:
    """`order` nodes on each axis of a box, at most 16 on a panel; shapes (q, d) and (q,)."""
    nodes = min(order, 16)
    x, w = panel_rule(np.array([0.0, 1.0]), nodes / order, nodes)
    sides = zip(low, high - low, strict=True)
    return reduce(cross, ((a + side * x[:, None], side * w) for a, side in sides))


def over_nodes(left: Values, right: Values, rule: Rule) -> Floats:
    """Σ_q w_q left(s_q)[i] right(s_q)[j], shape (n, m)."""
    shape = tuple(values(rule[0][:1]).shape[1] for values in (left, right))
    out = np.zeros(shape)
    for S, w in _chunks(rule, sum(shape)):
        out += (w[:, None] * left(S)).T @ right(S)
    return out


def _between_nodes(gram: Gram, rule: Rule) -> Floats:
    """Σ_pq w_p w_q k(s_p, s_q), shape (1, 1)."""
    nodes, weights = rule
    total = sum(w @ (gram(S, nodes) @ weights) for S, w in _chunks(rule, len(nodes)))
    return np.full((1, 1), total)


def _chunks(rule: Rule, width: int) -> Iterator[Rule]:
    height = max(1, MAX_CHUNK_VALUES // width)
    for start in range(0, len(rule[1]), height):
        rows = slice(start, start + height)
        yield rule[0][rows], rule[1][rows]


def refined_over(
    left: Values, right: Values, rule: Callable[[int], Rule], dimension: int
) -> Floats:
    """∫ left(s)[i] right(s)[j] ds, shape (n, m)."""
    integrate = partial(over_nodes, left, right)
    size = partial(over_nodes, lambda S: np.abs(left(S)), lambda S: np.abs(right(S)))
    return _refined(integrate, size, rule, dimension)


def refined_between(gram: Gram, rule: Callable[[int], Rule], dimension: int) -> Floats:
    """∬ k(s, t) ds dt, shape (1, 1)."""
    integrate = partial(_between_nodes, gram)
    size = partial(_between_nodes, lambda S, T: np.abs(gram(S, T)))
    return _refined(integrate, size, rule, dimension, most=MAX_PAIRED_NODES)


def _refined(
    integrate: Callable[[Rule], Floats],
    size: Callable[[Rule], Floats],
    rule: Callable[[int], Rule],
    dimension: int,
    most: int = MAX_NODES,
) -> Floats:
    """The integral by the first order of `rule` that agrees with half that order, shape (n, m).

    `size` integrates the absolute value. Warns if they still differ at `most` nodes.
    """
    # a low order could agree with its double because both miss a narrow peak
    order = 16 if dimension <= 2 else 4
    _check_order(2 * order, dimension)
    coarse = integrate(rule(order))
    while True:
        order *= 2
        nodes = rule(order)
        fine = integrate(nodes)
        gap = np.abs(fine - coarse)
        if np.all(gap <= MAX_ORDER_DIFFERENCE * np.abs(fine)):
            return fine
        whole = size(nodes)
        error = float(np.max(gap / np.where(whole > 0.0, whole, 1.0)))
        if error <= MAX_ORDER_DIFFERENCE:
            return fine
        if len(nodes[1]) * 2**dimension > most:
            _warn(error)
            return fine
        coarse = fine


def _check_order(order: int, dimension: int) -> None:
    if order**dimension > 8 * MAX_NODES:
        raise ValueError(
            f"An integral over {dimension} columns at once needs too many nodes, "
            f"{order**dimension}: use a kernel that is a product over columns."
        )


def _warn(error: float) -> None:
    warnings.warn(
        f"An integral by quadrature has a relative error of about {error:.0e}: use a smoother "
        f"kernel, a larger scale or a smaller window.",
        stacklevel=2,
    )
