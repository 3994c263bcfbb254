"""Matérn and rational quadratic kernels as sums of Gaussians of many widths."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainccinv, gammaincinv, gammaln, loggamma

from hplus._checks import Floats
from hplus.kernels.closed_forms import GaussianSum
from hplus.kernels.domains import Axes, BoxIntegrals, Factors
from hplus.kernels.stationary import Gaussian, Matern32, Matern52, RationalQuadratic
from hplus.windows.geometry import Rule

Spread = Matern32 | Matern52 | RationalQuadratic
"""Kernels that are sums of Gaussians."""

MIXTURE_ERROR = 2e-12
"""The relative error of a sum of Gaussians; in some cases half of it."""

MIXTURE_DEPTHS = (70.0, 36.0)
"""The error holds where the kernel is above exp(-depth): the first depth for a sum on its own, the
second, 2e-16, for a product of two, which costs the square."""


def components(domain: BoxIntegrals, axes: Axes, group: Factors) -> GaussianSum:
    """The product of the Gaussians in a group, or sums of them, multiplied out."""
    depth = MIXTURE_DEPTHS[sum(isinstance(leaf, Spread) for _, leaf in group) > 1]
    weights, sides = np.ones(1), [np.zeros((1, len(axes))), np.zeros((1, len(axes)))]
    for side, leaf in group:
        if isinstance(leaf, Gaussian | Spread):
            precisions, w = _precisions(domain, axes, side, leaf, depth)
            # every product of a term so far and a term of this leaf
            weights = np.outer(weights, w).ravel()
            sides = [np.repeat(P, len(w), axis=0) for P in sides]
            sides[side] += np.tile(precisions, (len(weights) // len(w), 1))
    return GaussianSum(weights, *sides)


def _precisions(
    domain: BoxIntegrals, axes: Axes, side: int, leaf: Gaussian | Spread, depth: float
) -> Rule:
    """The precisions on all axes, shape (b, len(axes)), and the weights of a sum of Gaussians."""
    seen = list(leaf.axes(len(domain.low)))
    scales = np.array(leaf.scales(len(seen)))
    far = np.linalg.norm(domain.farthest(side)[:, seen] / scales, axis=1).max()
    precisions, weights = _spectrum(leaf, far, (domain.high - domain.low)[seen] / scales, depth)
    P = np.zeros((len(weights), len(axes)))
    P[:, [axes.index(axis) for axis in seen]] = np.outer(precisions, scales**-2.0)
    return P, weights


def _spectrum(leaf: Gaussian | Spread, far: float, sides: Floats, depth: float) -> Rule:
    """Precisions and weights in units of the scale, for points up to `far` and a box of `sides`."""
    match leaf:
        case Matern32():
            return matern_mixture(1.5, min(far, depth / np.sqrt(3.0)), sides)
        case Matern52():
            return matern_mixture(2.5, min(far, depth / np.sqrt(5.0)), sides)
        case RationalQuadratic():
            deepest = 2.0 * leaf.mixture * np.expm1(min(depth / leaf.mixture, 700.0))
            return rational_quadratic_mixture(leaf.mixture, min(far, np.sqrt(deepest)))
    return np.ones(1), np.ones(1)


def matern_mixture(smoothness: float, longest: float, sides: Iterable[float] = ()) -> Rule:
    """Precisions and weights of Gaussians that add up to the Matérn kernel for 0 <= r <= longest.

    κ(r) = 1/Γ(ν) ∫ t^{ν-1} e^{-t} exp(-νr²/2t) dt, by the trapezoid rule in log t; r and the
    `sides` of a box, if only its integrals matter, are in units of the scale.
    """
    nu = smoothness
    z = np.sqrt(2.0 * nu) * longest
    # the error does not grow with r, so κ(longest) >= (1 + z)e^{-z} sets it
    step = _trapezoid_step(nu, np.log(MIXTURE_ERROR) + np.log1p(z) - z)
    tau = np.arange(np.log(MIXTURE_ERROR) / nu - 1.0, np.log(z + 2.0 * nu + 50.0), step)
    t = np.exp(tau)
    weights = step * np.exp(nu * tau - t - gammaln(nu))
    # a Gaussian narrower than the box fills only a part of it
    parts = [np.minimum(1.0, 2.5 * np.sqrt(t) / min(side, 1.0)) for side in sides]
    shares = weights * np.prod(parts, axis=0)
    far = weights * np.exp(z - 0.5 * nu * longest**2 / t)
    keep = np.maximum(shares, far) > 0.1 * MIXTURE_ERROR
    return nu / t[keep], weights[keep]


def rational_quadratic_mixture(mixture: float, longest: float) -> Rule:
    """Precisions and weights of Gaussians that add up to the rational quadratic, r <= longest.

    (1 + r²/2α)^-α = α^α/Γ(α) ∫ u^{α-1} e^{-αu} exp(-ur²/2) du, by the trapezoid rule in log u.
    """
    alpha = mixture
    step = _trapezoid_step(alpha, np.log(MIXTURE_ERROR))
    # values of u below `bottom` are replaced by their mean, an error of second order in `bottom`
    bottom = max(MIXTURE_ERROR ** (1.0 / (alpha + 2.0)), gammaincinv(alpha, 0.1 * MIXTURE_ERROR))
    bottom /= alpha + 0.5 * longest**2
    top = gammainccinv(alpha, 0.1 * MIXTURE_ERROR) / alpha
    tau = np.arange(np.log(bottom), np.log(top), step)
    logs = alpha * tau
    # Σ_j e^{-jhα} and Σ_j e^{-jh(α+1)}, h the step, over the u at and below the first
    logs[0] -= np.log(-np.expm1(-alpha * step))
    tau[0] += np.log(np.expm1(-alpha * step) / np.expm1(-(alpha + 1.0) * step))
    weights = np.exp(logs - alpha * np.expm1(tau))
    return np.exp(tau), weights / weights.sum()


def _trapezoid_step(shape: float, log_error: float) -> float:
    """The step h in log t at which the trapezoid rule errs by e^log_error: 2|Γ(a + 2πi/h)|/Γ(a)."""

    def excess(frequency: float) -> float:
        ratio = loggamma(shape + 1j * frequency).real - gammaln(shape)
        return float(np.log(2.0) + ratio - log_error)

    largest = 100.0 * (shape + 1.0) - 10.0 * log_error
    return 2.0 * np.pi / float(brentq(excess, min(1e-3, shape), largest))
