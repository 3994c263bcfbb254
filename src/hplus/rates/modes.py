"""Poisson counts on the nodes of a grid with a Gaussian prior on the log rate.

With weights s_g binned on the nodes, ν_g the exposure of each node's hat function and K the prior
covariance, z = Ka + b minimises [math, Eq. 4.3]

    Σ_g (ν_g e^{z_g} - s_g z_g) + ½ aᵀKa .

b is free and profiled out: it makes Σ ν e^z = Σ s, which leaves the Hessian diag(W) - WWᵀ/n =
R Q R with W = ν e^z, R = √W, Q = I - uuᵀ, u = R/√n. All functions work on a batch of problems,
shape (k, *grid), and touch K by products alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.solvers.result import SolverResult, Status
from hplus.rates.torus import Circulant, Covariance

LONGEST_STEP = 5.0
"""Largest change of a log rate in one step."""

STALLED = 10.0
"""Roundings of the objective by which it must fall for the search to go on."""

PATIENCE = 4
"""Steps after which a start that led nowhere is given up for a constant rate."""

FAINTEST = 1e-7
"""Least share of the largest √W that is told from 0."""

DIVERGED = 1e14
"""Share of the largest number that a squared residual may reach: a product with B must not."""

STIFF, APART = 1e5, 300.0
"""Largest eigenvalue from which systems are preconditioned, and how far its levels are apart."""


class Mode(NamedTuple):
    """Log rates z (k, *grid), normalised, and charges a with z = Ka + b."""

    z: Any
    a: Any
    iterations: int
    converged: bool


def newton(
    prior: Covariance,
    s: Any,
    nu: Any,
    z: Any,
    *,
    tolerance: float,
    accuracy: float = 0.1,
    charges: Any = None,
    max_iter: int = 30,
) -> Mode:
    """The most probable log rates, from a start z; `tolerance` is in nats, of the Newton decrement.

    `accuracy` is that of the linear systems, relative. Steps after the first are shortened until
    the objective falls. With `charges` a the start is Ka + b.
    """
    if charges is None:
        z, a = normalised(z, s, nu), np.zeros_like(z)
        value = np.full(len(z), np.inf)
    else:
        z, a = normalised(prior.apply(charges), s, nu), charges
        value = objective(s, nu, z, a)
    for k in range(max_iter):
        if k == PATIENCE and np.isinf(value).any():
            z = normalised(a, s, nu)
            value = objective(s, nu, z, a)
        system = System(prior, nu * np.exp(z))
        rhs = system.project(system.R * z + system.inverse * (s - system.W))
        # at the optimum R x = a: what is left to solve shrinks from step to step
        start = system.project(system.inverse * a)
        x = system.solve(rhs, start, accuracy, 0.1 * tolerance)
        charges = system.R * system.project(x)
        step, drift = charges - a, prior.apply(charges) - z
        decrement = _sum(system.W * (drift - _mean(system.W, drift)) ** 2)
        before = value
        z, a, value = _descend(s, nu, (z, a, value), (drift, step))
        if np.all(decrement <= tolerance):
            return Mode(z, a, k + 1, True)
        if k > PATIENCE and np.all(value >= before - STALLED * np.finfo(z.dtype).eps * abs(before)):
            return Mode(z, a, k + 1, False)
    return Mode(z, a, max_iter, False)


def _descend(
    s: Any, nu: Any, at: tuple[Any, Any, Any], to: tuple[Any, Any]
) -> tuple[Any, Any, Any]:
    """z + t dz and a + t da with the largest t of 1, ½, ¼, ... that lowers the objective.

    The first whole step ends on z = Ka + b: from there on objectives can be compared.
    """
    (z, a, value), (dz, da) = at, to
    first = bool(np.isinf(value).all())
    moves = dz - _mean(nu * np.exp(z), dz)
    largest = np.abs(moves).reshape(len(z), -1).max(axis=1)
    t = np.minimum(1.0, LONGEST_STEP / np.maximum(largest, 1e-30)).astype(z.dtype)
    if first and np.any(t < 1.0):
        return normalised(z + np.clip(moves, -LONGEST_STEP, LONGEST_STEP), s, nu), a, value
    for _ in range(12):
        share = t.reshape((-1,) + (1,) * (z.ndim - 1))
        new, charges = normalised(z + share * dz, s, nu), a + share * da
        trial = objective(s, nu, new, charges)
        worse = ~(trial <= value + 8.0 * np.finfo(z.dtype).eps * np.abs(value))
        if first or not np.any(worse):
            break
        t[worse] *= 0.5
    return new, charges, trial


def objective(s: Any, nu: Any, z: Any, a: Any) -> Any:
    """Σ (ν e^z - s z) + ½ aᵀz for z = Ka + b with Σa = 0, shape (k,)."""
    return _sum(nu * np.exp(z)) - _sum(s * z) + 0.5 * _sum(a * z)


def normalised(z: Any, s: Any, nu: Any) -> Any:
    """z + b with Σ ν e^{z + b} = Σ s, in each problem."""
    axes = tuple(range(1, z.ndim))
    top = z.max(axis=axes, keepdims=True)
    mass = np.sum(nu * np.exp(z - top), axis=axes, keepdims=True)
    return z - top + np.log(s.sum(axis=axes, keepdims=True) / mass)


class System:
    """B = I + Q R K R Q at expected counts W, the matrix of every Newton step."""

    def __init__(self, prior: Covariance, W: Any) -> None:
        # Q takes constants away: what they are multiplied with would only cost digits
        self.prior, self.W, self.R = prior.centered(), W, np.sqrt(W)
        self.u = self.R / np.sqrt(_sum(W)).reshape((-1,) + (1,) * (W.ndim - 1))
        # a node that nobody watched has no say, and squares must not overflow
        top = self.R.max(axis=tuple(range(1, W.ndim)), keepdims=True)
        self.inverse = 1.0 / np.maximum(self.R, FAINTEST * top)

    def project(self, x: Any) -> Any:
        """Q x = x - u uᵀx."""
        return x - self.u * _sum(self.u * x).reshape((-1,) + (1,) * (x.ndim - 1))

    def apply(self, x: Any) -> Any:
        """B x for x in the range of Q."""
        return x + self.project(self.R * self.prior.apply(self.R * x))

    def solve(self, b: Any, x: Any, accuracy: float, enough: float = 0.0) -> Any:
        """B⁻¹b by conjugate gradients from a start x, preconditioned where B is stiff."""
        if isinstance(self.prior, Circulant):
            stiffness = float(self.W.max()) * float(self.prior.spectrum.max())
            if stiffness > STIFF:
                ease = self._eased(self.prior, stiffness)
                return conjugate_gradients(self.apply, b, x, accuracy, enough, ease)
        return conjugate_gradients(self.apply, b, x, accuracy, enough)

    def _eased(self, prior: Circulant, stiffness: float) -> Callable[[Any], Any]:
        """Where W is about w, B is about circulant, with eigenvalues 1 + w·spectrum.

        Nodes are shared between levels of w, and each level has its own circulant inverse.
        """
        logs = np.log(np.maximum(self.W, np.finfo(self.W.dtype).tiny))
        top = float(logs.max())
        bottom = max(float(logs.min()), top - np.log(stiffness))
        count = max(int(np.ceil((top - bottom) / np.log(APART))), 1)
        levels = np.linspace(bottom, top, count + 1)
        place = (np.clip(logs, bottom, top) - bottom) / max(levels[1] - levels[0], 1e-9)
        parts = []
        for j, level in enumerate(levels):
            share = np.sqrt(np.maximum(1.0 - np.abs(place - j), 0.0)).astype(self.W.dtype)
            inverse = 1.0 / (1.0 + np.exp(level) * prior.spectrum)
            parts.append((share, inverse.astype(self.W.dtype)))

        def ease(r: Any) -> Any:
            r = self.project(r)
            sums = (share * prior.torus.apply(inv, share * r) for share, inv in parts)
            return self.project(sum(sums))

        return ease


def conjugate_gradients(
    apply: Callable[[Any], Any],
    b: Any,
    x: Any,
    accuracy: float,
    enough: float = 0.0,
    ease: Callable[[Any], Any] = lambda r: r,
    max_iter: int = 250,
) -> Any:
    """B x = b for each of k systems at once, the residual r of the start x lowered to a share.

    It also ends where |r|² <= `enough`: in a Newton step |r|² is what log rates are off, in nats.
    `ease` multiplies by something like B⁻¹.
    """
    shape = (len(b),) + (1,) * (b.ndim - 1)
    r = b - apply(x)
    y = ease(r)
    p, rr, ry = y.copy(), _sum(r * r), _sum(r * y)
    goal = np.maximum(accuracy**2 * rr, enough)
    tiny, most = np.finfo(b.dtype).tiny, np.finfo(b.dtype).max / DIVERGED
    for _ in range(max_iter):
        if np.all(rr <= goal) or np.any(rr > most):
            break
        q = apply(p)
        # pᵀBp >= pᵀp, which rounding may forget
        alpha = (ry / np.maximum(np.maximum(_sum(p * q), _sum(p * p)), tiny)).reshape(shape)
        x = x + alpha * p
        r -= alpha * q
        y = ease(r)
        rr, new = _sum(r * r), _sum(r * y)
        p *= (new / np.maximum(ry, tiny)).reshape(shape)
        p += y
        ry = new
    return x


def certify(prior: Covariance, s: Floats, nu: Floats, mode: Mode) -> SolverResult:
    """The objective at Ka + b and the dual value of the charges s - W [math, Eq. 4.4].

    D(c) = -Σ ℓ*(-c) - ½ cᵀKc with ℓ*(-c) = W log(W/ν) - W at W = s - c, for Σc = 0.
    """
    z = normalised(prior.apply(mode.a), s, nu)
    W = nu * np.exp(z)
    P = float(objective(s, nu, z, mode.a)[0])
    c = s - W
    entropy = np.sum(np.where(W > 0.0, W * z - W, 0.0))
    D = float(-entropy - 0.5 * np.sum(c * prior.apply(c)))
    status = Status.CONVERGED if mode.converged else Status.MAX_ITER
    size = max(abs(P), float(np.sum(s)))
    return SolverResult(status, mode.iterations, P, max(P - D, 0.0), size)


def log_determinant(
    prior: Covariance, W: Any, rng: np.random.RandomState, probes: int = 8, steps: int = 30
) -> float:
    """log det(I + QRKRQ) by stochastic Lanczos quadrature, W of shape (1, *grid).

    Equal `rng` states give equal probes, so that differences between priors are far more exact.
    """
    system = System(prior, np.broadcast_to(W, (probes, *W.shape[1:])))
    v = system.project(rng.choice([-1.0, 1.0], size=system.W.shape).astype(W.dtype))
    lengths = _sum(v * v)
    shape = (probes,) + (1,) * (W.ndim - 1)
    q, before, beta = v / np.sqrt(lengths).reshape(shape), np.zeros_like(v), np.zeros(probes)
    T = np.zeros((probes, steps, steps))
    for j in range(steps):
        w = system.apply(q) - beta.reshape(shape).astype(W.dtype) * before
        alpha = _sum(w * q)
        w -= alpha.reshape(shape) * q
        beta = np.sqrt(_sum(w * w))
        T[:, j, j] = alpha
        if j + 1 < steps:
            T[:, j, j + 1] = T[:, j + 1, j] = beta
        before, q = q, w / np.maximum(beta, 1e-30).reshape(shape)
    nodes, vectors = np.linalg.eigh(T)
    estimates = np.sum(vectors[:, 0] ** 2 * np.log(np.maximum(nodes, 1.0)), axis=1)
    return float(np.mean(lengths * estimates))


def deviations(
    prior: Covariance, W: Any, k: int, rng: np.random.RandomState, accuracy: float = 0.05
) -> Any:
    """k draws of the log rate around its mode, N(0, (K⁻¹ + RQR)⁻¹), shape (k, *grid).

    A draw y of the prior and noise e: y - KRQ B⁻¹ Q(Ry + e) [math, Eq. 4.6]; its mean under W is
    a draw of the constant, of variance 1/n.
    """
    y = prior.draw(k, rng).reshape((k, *W.shape[1:]))
    system = System(prior, np.broadcast_to(W, y.shape))
    e = rng.standard_normal(y.shape).astype(y.dtype)
    x = system.solve(system.project(system.R * y + e), 0.0 * e, accuracy)
    y = y - prior.apply(system.R * system.project(x))
    n = float(np.sum(W))
    noise = rng.standard_normal((k,) + (1,) * (y.ndim - 1)).astype(y.dtype) / np.sqrt(n)
    return y - _mean(system.W, y) + noise


def shifted_means(prior: Covariance, W: Any, variances: Any) -> Any:
    """How far the mean of log rates lies from their mode, -½ (K⁻¹ + RQR)⁻¹(W∘v), (1, *grid).

    Counts pull less on the low side of a log rate than on the high side [math, Eq. 4.9].
    """
    system = System(prior, W)
    rhs = system.project(0.5 * system.R * variances)
    x = system.solve(rhs, 0.0 * rhs, 1e-2)
    y = -prior.apply(system.R * system.project(x))
    return y - _mean(W, y + 0.5 * variances)


def _sum(x: Any) -> Any:
    """The sum over the grid, shape (k,)."""
    return x.reshape(len(x), -1).sum(axis=1)


def _mean(W: Any, x: Any) -> Any:
    """The mean of x under W, shape (k, 1, ...)."""
    return (_sum(W * x) / _sum(W)).reshape((-1,) + (1,) * (x.ndim - 1))
