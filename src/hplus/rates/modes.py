"""Poisson counts on the nodes of a grid with a Gaussian prior on the log rate.

With weights s_g binned on the nodes, ν_g the exposure of each node's hat function and K the prior
covariance, z = Ka + b minimises [math, Eq. 4.3]

    Σ_g (ν_g e^{z_g} - s_g z_g) + ½ aᵀKa .

b is free and profiled out: it makes Σ ν e^z = Σ s, which leaves the Hessian diag(W) - WWᵀ/n =
R Q R with W = ν e^z, R = √W, Q = I - uuᵀ, u = R/√n. Every linear system of Newton's method has the
matrix B = I + Q R K R Q and is solved by conjugate gradients. All functions work on a batch of
problems, shape (k, *grid), and touch K by products alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hplus._checks import Reals
from hplus._threads import Mapped, mapping_over_cores
from hplus.rates.torus import Circulant, Covariance
from hplus.solvers.result import SolverResult, Status

MAX_LOG_STEP = 5.0
"""Largest change of a log rate in one step."""

STALLED_ROUNDINGS = 10.0
"""Roundings of the objective by which it must fall for the search to go on."""

PATIENCE_STEPS = 4
"""Steps after which a start that led nowhere is replaced by a constant rate."""

MAX_NEWTON_STEPS, MAX_HALVINGS = 30, 12

FAINTEST_ROOT = 1e-7
"""Share of the largest √W below which an inverse is bounded."""

MAX_RESIDUAL_SHARE = 1e14
"""The largest finite number over this is the most that a squared residual may reach: a product
with B must not overflow."""

STIFF_EIGENVALUE, LEVEL_RATIO = 1e6, 300.0
"""Largest eigenvalue from which systems are preconditioned, and the ratio of its levels of W."""

FFT_LOOPS = 20
"""A product with a covariance takes about as long as so many loops over its array."""

MAX_CG_STEPS = 250

ROUNDED_SHARE = 1e-3
"""Share of the accuracy beyond which the error shrinks but a residual does not: it is rounding."""


class Optimum(NamedTuple):
    """Log rates z (k, *grid), normalised, and charges a with z = Ka + b."""

    z: Reals
    a: Reals
    iterations: int
    converged: bool


def newton(
    covariance: Covariance,
    s: Reals,
    nu: Reals,
    z: Reals,
    *,
    tolerance: float,
    accuracy: float = 0.1,
    charges: Reals | None = None,
) -> Optimum:
    """The most probable log rates, from a start z.

    `tolerance` bounds the Newton decrement, in nats; `accuracy` is that of the linear systems,
    relative. Steps after the first are shortened until the objective falls. With `charges` a the
    start is Ka + b.
    """
    if charges is None:
        z, a = normalised(z, s, nu), np.zeros_like(z)
        value = np.full(len(z), np.inf)
    else:
        z, a = normalised(covariance.apply(charges), s, nu), charges
        value = objective(s, nu, z, a)
    for k in range(MAX_NEWTON_STEPS):
        if k == PATIENCE_STEPS and np.isinf(value).any():
            z = normalised(a, s, nu)
            value = objective(s, nu, z, a)
        system = System(covariance, nu * np.exp(z))
        rhs = system.project(system.R * z + system.inverse * (s - system.W))
        # at the optimum R x = a = s - W: what is left to solve shrinks from step to step
        guess = s - system.W if np.isinf(value).any() else a
        start = system.project(system.inverse * guess)
        x = system.solve(rhs, start, accuracy, 0.005 * tolerance)
        charges = system.R * system.project(x)
        step, drift = charges - a, covariance.apply(charges) - z
        decrement = sums(system.W * (drift - means(system.W, drift)) ** 2)
        before = value
        z, a, value = _descend(s, nu, (z, a, value), (drift, step))
        if np.all(decrement <= tolerance):
            return Optimum(z, a, k + 1, True)
        rounding = np.finfo(z.dtype).eps * abs(before)
        if k > PATIENCE_STEPS and np.all(value >= before - STALLED_ROUNDINGS * rounding):
            return Optimum(z, a, k + 1, False)
    return Optimum(z, a, MAX_NEWTON_STEPS, False)


def _descend(
    s: Reals, nu: Reals, at: tuple[Reals, Reals, Reals], to: tuple[Reals, Reals]
) -> tuple[Reals, Reals, Reals]:
    """z + t dz and a + t da with the largest t of 1, ½, ¼, ... that lowers the objective.

    The first whole step ends on z = Ka + b: from there on objectives can be compared.
    """
    (z, a, value), (dz, da) = at, to
    first = bool(np.isinf(value).all())
    moves = dz - means(nu * np.exp(z), dz)
    largest = np.abs(moves).reshape(len(z), -1).max(axis=1)
    t = np.minimum(1.0, MAX_LOG_STEP / np.maximum(largest, 1e-30)).astype(z.dtype)
    if first and np.any(t < 1.0):
        return normalised(z + np.clip(moves, -MAX_LOG_STEP, MAX_LOG_STEP), s, nu), a, value
    for _ in range(MAX_HALVINGS):
        share = broadcast(t, z)
        new, charges = normalised(z + share * dz, s, nu), a + share * da
        trial = objective(s, nu, new, charges)
        worse = ~(trial <= value + 8.0 * np.finfo(z.dtype).eps * np.abs(value))
        if first or not np.any(worse):
            break
        t[worse] *= 0.5
    return new, charges, trial


def objective(s: Reals, nu: Reals, z: Reals, a: Reals) -> Reals:
    """Σ (ν e^z - s z) + ½ aᵀz for z = Ka + b with Σa = 0, shape (k,)."""
    return sums(nu * np.exp(z)) - sums(s * z) + 0.5 * sums(a * z)


def normalised(z: Reals, s: Reals, nu: Reals) -> Reals:
    """z + b with Σ ν e^{z + b} = Σ s, in each problem."""
    axes = tuple(range(1, z.ndim))
    top = z.max(axis=axes, keepdims=True)
    mass = np.sum(nu * np.exp(z - top), axis=axes, keepdims=True)
    return z - top + np.log(s.sum(axis=axes, keepdims=True) / mass)


def certify(covariance: Covariance, s: Reals, nu: Reals, mode: Optimum) -> SolverResult:
    """The objective at Ka + b and the dual value of the charges s - W [math, Eq. 4.4].

    D(c) = -Σ ℓ*(-c) - ½ cᵀKc with ℓ*(-c) = W log(W/ν) - W at W = s - c, for Σc = 0.
    """
    z = normalised(covariance.apply(mode.a), s, nu)
    W = nu * np.exp(z)
    P = float(objective(s, nu, z, mode.a)[0])
    c = s - W
    entropy = np.sum(np.where(W > 0.0, W * z - W, 0.0))
    D = float(-entropy - 0.5 * np.sum(c * covariance.apply(c)))
    status = Status.CONVERGED if mode.converged else Status.MAX_ITER
    size = max(abs(P), float(np.sum(s)))
    return SolverResult(status, mode.iterations, P, max(P - D, 0.0), size)


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
                # a product with K costs as much as several loops over its arrays
                with mapping_over_cores(FFT_LOOPS * b.size) as mapped:
                    precondition = self._preconditioner(self.K, stiffness, mapped)
                    return conjugate_gradients(self.apply, b, x, accuracy, enough, precondition)
        return conjugate_gradients(self.apply, b, x, accuracy, enough)

    def _preconditioner(
        self, K: Circulant, stiffness: float, mapped: Mapped
    ) -> Callable[[Reals], Reals]:
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

            def on_level(j: int) -> Reals:
                share, inverse = parts[j]
                return share * K.torus.apply(inverse, share * r)

            return self.project(sum(mapped(on_level, range(len(parts))), np.zeros_like(r)))

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

    It also stops where |r|² <= `enough`: in a Newton step |r|² is the error in nats; and where
    rᵀB⁻¹r says that what is left of r is rounding. A start that is worse than 0 is dropped.
    `precondition` multiplies by an approximation of B⁻¹.
    """
    r = b - apply(x)
    useless = broadcast(sums(r * r) - sums(b * b), b) > 0.0
    x, r = np.where(useless, 0.0, x), np.where(useless, b, r)
    y = precondition(r)
    p, rr, ry = y.copy(), sums(r * r), sums(r * y)
    goal = np.maximum(accuracy**2 * rr, enough)
    rounded = ROUNDED_SHARE * accuracy**2 * ry
    tiny, most = np.finfo(b.dtype).tiny, np.finfo(b.dtype).max / MAX_RESIDUAL_SHARE
    for _ in range(MAX_CG_STEPS):
        if np.all((rr <= goal) | (ry <= rounded)) or np.any(rr > most):
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
