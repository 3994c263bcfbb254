"""Integrals over an interval in closed form, on arrays that broadcast.

A precision is 1/scale². A product of Gaussians adds precisions, so one formula covers all widths.
"""

from __future__ import annotations

import math
from math import comb, factorial
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.special import erf, gammainc

from hplus._checks import Bools, Floats
from hplus.kernels.quadrature import unit_rule
from hplus.kernels.stationary import MAX_EXPONENT

CUT_EXPONENT = 36.0
"""A Gaussian is cut where it is below exp(-36) = 2e-16 of its largest value."""

SHORT_RULE, LONG_RULE = unit_rule(10), unit_rule(48)
"""Gauss-Legendre for a short piece of a Gaussian, and for a whole one times a polynomial."""

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@compiled
def erf_difference(lower: float, upper: float) -> float:
    """erf(upper) - erf(lower) for lower <= upper, to 1e-13 relative unless it underflows."""
    if lower + upper < 0.0:
        lower, upper = -upper, -lower
    # now upper >= |lower|, and the plain difference loses digits only where lower > 0
    if lower < -6.0:
        return 2.0
    if lower > 0.0 and upper - lower < 0.1:
        side, total = upper - lower, 0.0
        for i in range(len(SHORT_RULE[0])):
            total += SHORT_RULE[1][i] * math.exp(-((lower + side * SHORT_RULE[0][i]) ** 2))
        return 2.0 / math.sqrt(math.pi) * side * total
    if lower > 0.5:
        return math.erfc(lower) - math.erfc(upper)
    return math.erf(upper) - math.erf(lower)


class GaussianSum(NamedTuple):
    """Σ_b weights[b] Π_j exp(-P[b, j](s_j - c_j)²/2 - Q[b, j](s_j - d_j)²/2) over some axes j."""

    weights: Floats
    P: Floats
    Q: Floats


class _Integrand(NamedTuple):
    """Terms in order of `most`, their largest integrals; `curved` axes have a polynomial."""

    heights: Floats
    most: Floats
    shapes: Floats
    box: Floats
    curved: Bools
    polynomials: Floats


def gaussian_integrals(
    box: Floats, C: Floats, D: Floats, total: GaussianSum, polynomials: Floats
) -> Floats:
    """∫ of a sum of Gaussians times polynomials over a box, shape (n, m), for points C and D.

    `box` has the rows low and high. A row (axis j, side, degree, offset) of `polynomials` stands
    for (s_j·x_j + offset)^degree, where x is the point c for side 0 and d for side 1.
    """
    weights, P, Q = total
    sharp = P + Q
    heights = weights * np.prod(np.sqrt(0.5 * np.pi / sharp), axis=1)
    most = weights * np.prod(np.minimum(box[1] - box[0], np.sqrt(2.0 * np.pi / sharp)), axis=1)
    order = np.argsort(-most)
    root = np.sqrt(2.0 * sharp)
    shapes = np.stack([0.5 * P * Q / sharp, P / root, Q / root], axis=1)[order]
    curved = np.isin(np.arange(box.shape[1]), polynomials[:, 0])
    terms = _Integrand(heights[order], most[order], shapes, box, curved, polynomials)
    return _gaussian_sums(terms, C, D)


@compiled
def _gaussian_sums(terms: _Integrand, C: Floats, D: Floats) -> Floats:
    out = np.empty((len(C), len(D)))
    for i in range(len(C)):
        for k in range(len(D)):
            out[i, k] = _gaussian_sum(terms, C[i], D[k])
    return out


@compiled
def _gaussian_sum(terms: _Integrand, c: Floats, d: Floats) -> float:
    heights, most, shapes, box, curved, polynomials = terms
    bound, size, total = _largest(polynomials, box, c, d), 0.0, 0.0
    for b in range(len(heights)):
        # most·bound bounds a term and decreases with b: negligible terms are left out
        if most[b] * bound * len(heights) <= 1e-12 * size:
            break
        exponent = 0.0
        for j in range(len(c)):
            exponent += shapes[b, 0, j] * (c[j] - d[j]) ** 2
        term = math.exp(-exponent)
        if most[b] * bound * term < 1e-15 * size:
            continue
        # x = (s - mean)√((p + q)/2) at both ends, the mean being (pc + qd)/(p + q)
        for j in range(len(c)):
            p, q, low, high = shapes[b, 1, j], shapes[b, 2, j], box[0, j], box[1, j]
            lower = p * (low - c[j]) + q * (low - d[j])
            upper = p * (high - c[j]) + q * (high - d[j])
            if curved[j]:
                term *= _polynomial_side(lower, upper, low, high, j, c[j], d[j], polynomials)
            else:
                term *= erf_difference(lower, upper)
        total += heights[b] * term
        size += abs(heights[b] * term)
    return total


@compiled
def _largest(polynomials: Floats, box: Floats, c: Floats, d: Floats) -> float:
    """A bound on the polynomials over the box: each is largest at one of the ends."""
    bound = 1.0
    for axis, side, degree, offset in polynomials:
        j = int(axis)
        z = d[j] if side else c[j]
        ends = max(abs(box[0, j] * z + offset), abs(box[1, j] * z + offset))
        bound *= ends**degree
    return bound


@compiled
def _polynomial_side(
    lower: float,
    upper: float,
    low: float,
    high: float,
    j: int,
    c: float,
    d: float,
    polynomials: Floats,
) -> float:
    """(2/√π) ∫ e^{-x²} dx times the polynomials of axis j; s goes from low to high as x does."""
    # cut at |top| + reach, where (|top| + reach)² = top² + CUT_EXPONENT
    top = min(max(0.0, lower), upper)
    reach = CUT_EXPONENT / (math.sqrt(top * top + CUT_EXPONENT) + abs(top))
    start, stop = max(lower, top - reach), min(upper, top + reach)
    total, scale = 0.0, (high - low) / max(upper - lower, 1e-300)
    for i in range(len(LONG_RULE[0])):
        x = start + (stop - start) * LONG_RULE[0][i]
        s, value = low + scale * (x - lower), LONG_RULE[1][i] * math.exp(-x * x)
        for f in range(len(polynomials)):
            if polynomials[f, 0] == j:
                z = d if polynomials[f, 1] else c
                value *= (s * z + polynomials[f, 3]) ** int(polynomials[f, 2])
        total += value
    return 2.0 / math.sqrt(math.pi) * (stop - start) * total


def half_gaussian_rule(side: float, p: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights of ∫_0^side f(u) exp(-p u²/2) du for polynomials f, shapes (b, q)."""
    reach = np.minimum(side, np.sqrt(2.0 * CUT_EXPONENT / p))[:, None]
    u = reach * LONG_RULE[0]
    return u, reach * LONG_RULE[1] * np.exp(-0.5 * p[:, None] * u * u)


def gaussian_double(side: float, p: Floats) -> Floats:
    """∬ exp(-p(s - t)²/2) ds dt over a square of this side."""
    x = side * np.sqrt(0.5 * p)
    # 2h² expm1(-L²/2h²) + L h √(2π) erf(L/h√2), h² = 1/p
    return (2.0 * np.expm1(-x * x) + 2.0 * np.sqrt(np.pi) * x * erf(x)) / p


def exponential_embedding(low: float, high: float, x: Floats, rate: float, poly: Floats) -> Floats:
    """∫_low^high κ(|s - x|) ds for κ(r) = poly(t)e^{-t}, t = rate·r; coefficients ascending."""
    return _right(low, high, x, rate, poly) + _right(-high, -low, -x, rate, poly)


def _right(low: float, high: float, x: Floats, rate: float, poly: Floats) -> Floats:
    """The part s >= x: e^{-A}/rate Σ_k poly_{A,k} γ(k+1, L), poly_A(t) = poly(A + t)."""
    start = np.maximum(low, x)
    A = np.minimum(rate * (start - x), MAX_EXPONENT)
    L = rate * np.maximum(high - start, 0.0)
    terms = (a * _gamma(k, L) for k, a in enumerate(_shifted(poly, A)))
    return np.exp(-A) / rate * sum(terms)


def exponential_product(
    low: float, high: float, c: Floats, d: Floats, rate: float, p: Floats, q: Floats
) -> Floats:
    """∫_low^high p(t)e^{-t} q(u)e^{-u} ds, t = rate·|s - c|, u = rate·|s - d|."""
    # mirrored where c > d, so that c <= d below
    mirror = c > d
    a, b = np.where(mirror, -high, low), np.where(mirror, -low, high)
    c, d = np.where(mirror, -c, c), np.where(mirror, -d, d)
    right = _outside(a, b, c, d, rate, p, q)
    left = _outside(-b, -a, -d, -c, rate, q, p)
    return np.asarray(left + _between(a, b, c, d, rate, p, q) + right)


def _outside(
    low: Floats, high: Floats, c: Floats, d: Floats, rate: float, p: Floats, q: Floats
) -> Floats:
    """The part s >= d >= c: e^{-A-B}/rate Σ_ij p_{A,i} q_{B,j} γ(i+j+1, 2L)/2^{i+j+1}."""
    start = np.maximum(low, d)
    A = np.minimum(rate * (start - c), MAX_EXPONENT)
    B = np.minimum(rate * (start - d), MAX_EXPONENT)
    L = rate * np.maximum(high - start, 0.0)
    powers = [_gamma(k, 2.0 * L) / 2.0 ** (k + 1) for k in range(len(p) + len(q) - 1)]
    a, b = _shifted(p, A), _shifted(q, B)
    terms = (a[i] * b[j] * powers[i + j] for i in range(len(p)) for j in range(len(q)))
    return np.exp(-A - B) / rate * sum(terms)


def _between(
    low: Floats, high: Floats, c: Floats, d: Floats, rate: float, p: Floats, q: Floats
) -> Floats:
    """The part c <= s <= d: e^{-rate(d-c)}/rate Σ_ij p_{A,i} q_{B,j} L^{i+j+1} i!j!/(i+j+1)!."""
    start, stop = np.maximum(low, c), np.minimum(high, d)
    A = np.clip(rate * (start - c), 0.0, MAX_EXPONENT)
    B = np.clip(rate * (d - stop), 0.0, MAX_EXPONENT)
    L = np.clip(rate * (stop - start), 0.0, MAX_EXPONENT)
    a, b = _shifted(p, A), _shifted(q, B)
    terms = (
        a[i] * b[j] * L ** (i + j + 1) / ((i + j + 1) * comb(i + j, i))
        for i in range(len(p))
        for j in range(len(q))
    )
    return np.exp(-np.minimum(rate * (d - c), MAX_EXPONENT)) / rate * sum(terms)


def exponential_double(side: float, rate: float, poly: Floats) -> float:
    """∬ κ(|s - t|) ds dt over a square of this side: 2/rate² ∫_0^L (L - t) poly(t)e^{-t} dt."""
    L = np.asarray(rate * side)
    terms = (a * (L * _gamma(k, L) - _gamma(k + 1, L)) for k, a in enumerate(poly))
    return float(2.0 / rate**2 * sum(terms))


def _gamma(k: int, x: Floats) -> Floats:
    """γ(k+1, x) = ∫_0^x t^k e^{-t} dt."""
    return factorial(k) * gammainc(k + 1, x)


def _shifted(poly: Floats, A: Floats) -> list[Floats]:
    """The coefficients of poly(A + t) in t: Σ_{j>=k} poly_j C(j, k) A^{j-k}."""
    n = len(poly)
    return [
        np.asarray(sum(poly[j] * comb(j, k) * A ** (j - k) for j in range(k, n))) for k in range(n)
    ]
