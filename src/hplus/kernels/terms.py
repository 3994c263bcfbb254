"""Kernels as sums of products of leaves, as far as possible of leaves on one column each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np

from hplus._checks import Floats
from hplus.kernels.base import Kernel, Product, Scaled, Sum, check_kernel
from hplus.kernels.domains import Axes, gram
from hplus.kernels.leaf import Leaf
from hplus.kernels.stationary import Gaussian, Laplace, Periodic
from hplus.kernels.structured import Constant, Finite, Linear, Nugget, Polynomial, multinomial

Term = tuple[float, tuple[Leaf, ...]]
"""A coefficient times a product of leaves."""


def as_terms(kernel: Kernel, dimension: int) -> list[Term]:
    """k = Σ coefficient · Π leaves, except on sets of measure zero."""
    match kernel:
        case Sum(left, right):
            return as_terms(left, dimension) + as_terms(right, dimension)
        case Product(left, right):
            both = product(as_terms(left, dimension), as_terms(right, dimension))
            return [(a * b, F + G) for (a, F), (b, G) in both]
        case Scaled(factor, inner):
            return [(factor * a, F) for a, F in as_terms(inner, dimension)]
        case Leaf():
            return _leaf_terms(kernel, kernel.axes(dimension))
    check_kernel("kernel", kernel)
    raise TypeError(f"kernel must be made of the kernels of hplus.kernels, got {kernel!r}.")


def _leaf_terms(leaf: Leaf, axes: Axes) -> list[Term]:
    """A leaf as a sum of products over its columns, where it is one."""
    match leaf:
        case Finite():
            raise ValueError("Finite has no integral over a window: sum over its points instead.")
        case Nugget():
            return []
        case Constant():
            return [(leaf.value, ())]
        case Gaussian() | Laplace():
            scales = zip(axes, leaf.scales(len(axes)), strict=True)
            return [(1.0, tuple(leaf.replace(scale=h, columns=(j,)) for j, h in scales))]
        case Periodic():
            return [(1.0, tuple(leaf.replace(columns=(j,)) for j in axes))]
        case Linear():
            return [(1.0, (Polynomial(1, offset=0.0, columns=(j,)),)) for j in axes]
        case Polynomial() if len(axes) > 1:
            return list(_monomials(leaf, axes))
    return [(1.0, (leaf,))]


def _monomials(leaf: Polynomial, axes: Axes) -> Iterator[Term]:
    """(x·z + c)^p = Σ_|m|=p p!/(m_0!…m_d!) c^m_0 Π_j (x_j z_j)^m_j."""
    for chosen in combinations_with_replacement((-1, *axes), leaf.degree):
        powers = Counter(chosen)
        coefficient = multinomial(chosen) * leaf.offset ** powers.pop(-1, 0)
        monomial = (Polynomial(m, offset=0.0, columns=(j,)) for j, m in powers.items())
        if coefficient > 0.0:
            yield coefficient, tuple(monomial)


def sum_of_terms(terms: list[Term], X: Floats, Z: Floats) -> Floats:
    """Σ coefficient · Π leaves at X[i], Z[j], shape (n, m)."""
    return sum((a * gram(F, X, Z) for a, F in terms), np.zeros((len(X), len(Z))))
