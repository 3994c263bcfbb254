"""Poisson counts on the nodes of a grid with a Gaussian prior on the log rate.

With weights s_g binned on the nodes, ν_g the exposure of each node's hat function and K the prior
covariance, z = Ka + b minimises [math, Eq. 4.3]

    Σ_g (ν_g e^{z_g} - s_g z_g) + ½ aᵀKa .

b is free and profiled out: it makes Σ ν e^z = Σ s, which leaves the Hessian diag(W) - WWᵀ/n =
R Q R with W = ν e^z, R = √W, Q = I - uuᵀ, u = R/√n. All functions work on a batch of problems,
shape (k, *grid), and touch K by products alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Reals
from hplus.rates.systems import System, broadcast, means, sums
from hplus.rates.torus import Covariance
from hplus.solvers.result import SolverResult, Status

MAX_LOG_STEP = 5.0
"""Largest change of a log rate in one step."""

STALLED_ROUNDINGS = 10.0
"""Roundings of the objective by which it must fall for the search to go on."""

PATIENCE_STEPS = 4
"""Steps after which a start that led nowhere is replaced by a constant rate."""

MAX_NEWTON_STEPS, MAX_HALVINGS = 30, 12


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
        # at the optimum R x = a: what is left to solve shrinks from step to step
        start = system.project(system.inverse * a)
        x = system.solve(rhs, start, accuracy, 0.1 * tolerance)
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
