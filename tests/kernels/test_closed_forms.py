"""Formulas on an interval against mpmath, and kernels as sums of Gaussians."""

from math import comb

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from hplus.kernels import (
    Gaussian,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
)
from hplus.kernels.closed_forms import erf_difference
from hplus.kernels.integrals import double_integral, mean_embedding, product_integral
from hplus.kernels.mixtures import matern_mixture, rational_quadratic_mixture
from hplus.windows import Interval


@pytest.mark.parametrize("width", [1e-12, 3e-4, 0.0999, 0.1, 0.3, 1.0, 4.0, 40.0])
def test_a_difference_of_erf_keeps_thirteen_digits_inside_outside_and_for_close_arguments(width):
    lower = np.array(
        [-40.0, -20.5, -7.0, -3.0, -1.0, -0.55, -0.2, -1e-7, 0.0, 1e-9, 0.3, 2.0, 26.0]
    )
    upper = lower + width
    with mp.workdps(330):
        exact = [float(mp.erf(u) - mp.erf(v)) for u, v in zip(upper, lower, strict=True)]
    assert_allclose(np.vectorize(erf_difference)(lower, upper), exact, rtol=1e-13, atol=0.0)


def test_a_difference_of_erf_too_small_for_a_double_is_zero():
    assert erf_difference(30.0, 31.0) == 0.0
    assert erf_difference(-31.0, -30.0) == 0.0


def profile(leaf, s, x):
    """k(s, x) of a leaf on a line, from its definition."""
    r = abs(s - x) / mp.mpf(getattr(leaf, "scale", 1.0))
    match leaf:
        case Gaussian():
            return mp.exp(-(r**2) / 2)
        case Laplace():
            return mp.exp(-r)
        case Matern32():
            return (1 + mp.sqrt(3) * r) * mp.exp(-mp.sqrt(3) * r)
        case Matern52():
            return (1 + mp.sqrt(5) * r + 5 * r**2 / 3) * mp.exp(-mp.sqrt(5) * r)
        case RationalQuadratic():
            return (1 + r**2 / (2 * mp.mpf(leaf.mixture))) ** -mp.mpf(leaf.mixture)
        case Periodic():
            return mp.exp(-2 * (mp.sin(mp.pi * (s - x) / leaf.period) / leaf.scale) ** 2)
        case Linear():
            return s * x
        case Polynomial():
            return (s * x + leaf.offset) ** leaf.degree


def exact(kernel, s, x):
    """k(s, x) of any kernel on a line."""
    match kernel:
        case Sum():
            return exact(kernel.left, s, x) + exact(kernel.right, s, x)
        case Product():
            return exact(kernel.left, s, x) * exact(kernel.right, s, x)
        case Scaled():
            return mp.mpf(kernel.factor) * exact(kernel.kernel, s, x)
    return profile(kernel, s, x)


def integral(f, low, high, *kinks):
    """∫ f by mpmath, cut at the kinks."""
    ends = sorted({low, (low + high) / 2, high, *(min(max(x, low), high) for x in kinks)})
    with mp.workdps(40):
        return mp.quad(f, ends, method="gauss-legendre", maxdegree=6)


STATIONARY = [
    Gaussian(0.4),
    Laplace(0.3),
    Matern32(0.5),
    Matern52(0.6),
    RationalQuadratic(0.5, mixture=0.02),
    Periodic(0.9, scale=0.7),
    Gaussian(0.5) * Gaussian(0.7),
    Laplace(0.6) * Matern32(0.8),
    Matern32(0.4) + Matern52(0.9),
    2.0 * Laplace(1.0) + 0.5 * Matern32(np.sqrt(3.0)),  # of one rate
]
LINE = [*STATIONARY, Linear(), Polynomial(3, offset=0.5), Gaussian(0.5) * Linear()]
LOW, HIGH, X = 0.25, 1.5, [-2.0, 0.5, 0.5 + 1e-9, 1.4, 4.25]


@pytest.mark.parametrize("k", LINE, ids=repr)
def test_mean_embedding_on_a_line_agrees_with_mpmath(k):
    truth = [integral(lambda s, x=x: exact(k, s, x), LOW, HIGH, x) for x in X]
    found = mean_embedding(k, Interval(LOW, HIGH), np.array(X)[:, None])
    assert_allclose(found, np.array(truth, dtype=float), rtol=2e-13)


def test_a_gaussian_times_a_polynomial_far_from_the_window_keeps_its_digits():
    h, x = 0.1, -3.4
    with mp.workdps(330):
        # ∫ s e^{-(s-x)²/2h²} ds = x h√(π/2) (erf - erf) - h² (e - e)
        ends = [(mp.mpf(s) - x) / (h * mp.sqrt(2)) for s in (LOW, HIGH)]
        mass = h * mp.sqrt(mp.pi / 2) * (mp.erf(ends[1]) - mp.erf(ends[0]))
        truth = x * mass - mp.mpf(h) ** 2 * (mp.exp(-(ends[1] ** 2)) - mp.exp(-(ends[0] ** 2)))
    found = mean_embedding(Gaussian(h) * Linear(), Interval(LOW, HIGH), [[x]])
    assert_allclose(found, float(x * truth), rtol=1e-12)


@pytest.mark.parametrize("k", LINE, ids=repr)
def test_product_integral_on_a_line_agrees_with_mpmath(k):
    found = product_integral(k, Interval(LOW, HIGH), np.array(X)[:, None])
    for i, j in [(0, 1), (1, 2), (3, 1), (3, 4)]:
        c, d = X[i], X[j]
        truth = integral(lambda s, c=c, d=d: exact(k, s, c) * exact(k, s, d), LOW, HIGH, c, d)
        assert_allclose(found[i, j], float(truth), rtol=5e-13)


@pytest.mark.parametrize("side", [1e-6, 0.3, 2.0])
@pytest.mark.parametrize("k", STATIONARY, ids=repr)
def test_double_integral_of_a_stationary_kernel_agrees_with_mpmath(k, side):
    # ∬ κ(|s - t|) ds dt = 2 ∫_0^side (side - u) κ(u) du
    truth = 2 * integral(lambda u: (side - u) * exact(k, u, 0), 0.0, side)
    assert_allclose(double_integral(k, Interval(0.0, side)), float(truth), rtol=2e-13)


@pytest.mark.parametrize(("degree", "offset"), [(1, 0.0), (2, 0.7), (5, 0.5)])
def test_double_integral_of_a_polynomial_is_the_sum_of_squared_moments(degree, offset):
    # ∬ (st + c)^p ds dt = Σ_j C(p, j) c^{p-j} (∫ s^j ds)²
    moments = [(HIGH ** (j + 1) - LOW ** (j + 1)) / (j + 1) for j in range(degree + 1)]
    truth = sum(comb(degree, j) * offset ** (degree - j) * m**2 for j, m in enumerate(moments))
    assert_allclose(double_integral(Polynomial(degree, offset), Interval(LOW, HIGH)), truth)


def test_double_integral_of_a_gaussian_times_a_polynomial_agrees_with_mpmath():
    def shifted(u):
        # 2 ∫_low^{high-u} (t + u) t dt
        return sum(2 * sign * (t**3 / 3 + u * t**2 / 2) for sign, t in ((1, HIGH - u), (-1, LOW)))

    truth = integral(lambda u: shifted(u) * exact(Gaussian(0.5), u, 0), 0.0, HIGH - LOW)
    assert_allclose(double_integral(LINE[-1], Interval(LOW, HIGH)), float(truth), rtol=2e-13)


RADII = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 200), np.linspace(1.0, 30.0, 200)])


def summed(precisions, weights):
    """Σ_k weights[k] exp(-precisions[k] r²/2) at RADII."""
    return np.exp(-0.5 * RADII[:, None] ** 2 * precisions) @ weights


@pytest.mark.parametrize(("smoothness", "family"), [(1.5, Matern32), (2.5, Matern52)])
def test_a_matern_kernel_is_a_positive_sum_of_gaussians(smoothness, family):
    precisions, weights = matern_mixture(smoothness, 30.0)
    assert weights.min() > 0.0
    k = family(1.0)(RADII[:, None], np.zeros((1, 1)))[:, 0]
    assert_allclose(summed(precisions, weights), k, rtol=1e-11, atol=0.0)


@pytest.mark.parametrize("mixture", [1e-3, 0.05, 0.3, 1.0, 2.5, 20.0, 1e3, 1e7])
def test_a_rational_quadratic_kernel_is_a_positive_sum_of_gaussians(mixture):
    precisions, weights = rational_quadratic_mixture(mixture, 30.0)
    assert weights.min() > 0.0
    k = RationalQuadratic(1.0, mixture)(RADII[:, None], np.zeros((1, 1)))[:, 0]
    assert_allclose(summed(precisions, weights), k, rtol=1e-11, atol=0.0)
