"""The linear systems of Newton's method for Poisson counts, by conjugate gradients.

At expected counts W = ν e^z, with R = √W, u = R/√n and Q = I - uuᵀ, every system has the matrix
B = I + Q R K R Q. All functions work on a batch of problems, shape (k, *grid), and touch K by
products alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hplus._checks import Reals
from hplus.rates.torus import Circulant, Covariance

FAINTEST_ROOT = 1e-7
"""Share of the largest √W below which an inverse is bounded."""

MAX_RESIDUAL_SHARE = 1e14
"""The largest finite number over this is the most that a squared residual may reach: a product
with B must not overflow."""

STIFF_EIGENVALUE, LEVEL_RATIO = 1e5, 300.0
"""Largest eigenvalue from which systems are preconditioned, and the ratio of its levels of W."""

MAX_CG_STEPS = 250


class System:
    """B = I + Q R K R Q at expected counts W, the matrix of every Newton step."""

    def __init__(self, covariance: Covariance, W: Reals) -> None:
        # Q removes constants: keeping them in K would only cost digits
        self.K, self.W, self.R = covariance.centered(), W, np.sqrt(W)
        self.u = self.R / broadcast(np.sqrt(sums(W)), W)
        # a node without exposure has no influence, and squares must not overflow
        top = self.R.max(axis=tuple(range(1, W.ndim)), keepdims=True)
        self.inverse = 1.0 / np.maximum(self.R, FAINTEST_ROOT * top)

    def project(self, x: Reals) -> Reals:
        """Q x = x - u uᵀx."""
        return x - self.u * broadcast(sums(self.u * x), x)

    def apply(self, x: Reals) -> Reals:
        """B x for x in the range of Q."""
        return x + self.project(self.R * self.K.apply(self.R * x))

    def solve(self, b: Reals, x: Reals, accuracy: float, enough: float = 0.0) -> Reals:
        """B⁻¹b by conjugate gradients from a start x, preconditioned where B is stiff."""
        if isinstance(self.K, Circulant):
            stiffness = float(self.W.max()) * float(self.K.spectrum.max())
            if stiffness > STIFF_EIGENVALUE:
                precondition = self._preconditioner(self.K, stiffness)
                return conjugate_gradients(self.apply, b, x, accuracy, enough, precondition)
        return conjugate_gradients(self.apply, b, x, accuracy, enough)

    def _preconditioner(self, K: Circulant, stiffness: float) -> Callable[[Reals], Reals]:
        """Where W is about w, B is about circulant, with eigenvalues 1 + w·spectrum.

        Nodes are shared between levels of w, and each level has its own circulant inverse.
        """
        logs = np.log(np.maximum(self.W, np.finfo(self.W.dtype).tiny))
        top = float(logs.max())
        bottom = max(float(logs.min()), top - np.log(stiffness))
        count = max(int(np.ceil((top - bottom) / np.log(LEVEL_RATIO))), 1)
        levels = np.linspace(bottom, top, count + 1)
        place = (np.clip(logs, bottom, top) - bottom) / max(levels[1] - levels[0], 1e-9)
        parts = []
        for j, level in enumerate(levels):
            share = np.sqrt(np.maximum(1.0 - np.abs(place - j), 0.0)).astype(self.W.dtype)
            inverse = 1.0 / (1.0 + np.exp(level) * K.spectrum)
            parts.append((share, inverse.astype(self.W.dtype)))

        def precondition(r: Reals) -> Reals:
            r = self.project(r)
            total = np.zeros_like(r)
            for share, inverse in parts:
                total += share * K.torus.apply(inverse, share * r)
            return self.project(total)

        return precondition


def conjugate_gradients(
    apply: Callable[[Reals], Reals],
    b: Reals,
    x: Reals,
    accuracy: float,
    enough: float = 0.0,
    precondition: Callable[[Reals], Reals] = lambda r: r,
) -> Reals:
    """Solve k systems B x = b at once, until each residual r is a share `accuracy` of the first.

    It also stops where |r|² <= `enough`: in a Newton step |r|² is the error in nats.
    `precondition` multiplies by an approximation of B⁻¹.
    """
    r = b - apply(x)
    y = precondition(r)
    p, rr, ry = y.copy(), sums(r * r), sums(r * y)
    goal = np.maximum(accuracy**2 * rr, enough)
    tiny, most = np.finfo(b.dtype).tiny, np.finfo(b.dtype).max / MAX_RESIDUAL_SHARE
    for _ in range(MAX_CG_STEPS):
        if np.all(rr <= goal) or np.any(rr > most):
            break
        q = apply(p)
        # pᵀBp >= pᵀp, which rounding may break
        alpha = broadcast(ry / np.maximum(np.maximum(sums(p * q), sums(p * p)), tiny), p)
        x = x + alpha * p
        r -= alpha * q
        y = precondition(r)
        rr, new = sums(r * r), sums(r * y)
        p *= broadcast(new / np.maximum(ry, tiny), p)
        p += y
        ry = new
    return x


def sums(x: Reals) -> Reals:
    """The sum over the grid, shape (k,)."""
    return x.reshape(len(x), -1).sum(axis=1)


def broadcast(numbers: Reals, x: Reals) -> Reals:
    """One number for each problem (k,), shaped to be combined with x (k, *grid)."""
    return numbers.reshape((-1,) + (1,) * (x.ndim - 1))


def means(W: Reals, x: Reals) -> Reals:
    """The mean of x under W, shape (k, 1, ...)."""
    return broadcast(sums(W * x) / sums(W), x)
