"""ETAS, the usual model of earthquakes that trigger earthquakes, fitted by maximum likelihood.

    λ(x, y, t) = μ u(x, y) + Σ_{t_j < t} K exp(α Δm_j) (1 + (t - t_j)/c)^(-p) s_j(x, y)
    s_j = (q - 1)/(π d_j) (1 + r_j²/d_j)^(-q),  d_j = D exp(γ Δm_j),  Δm_j = m_j - m0

K = A (p - 1)/c in the normalised form; here p may be 1 or less. The background, μ events a day of
density u in the box, is given or found by stochastic declustering (Zhuang, Ogata, Vere-Jones 2002).
All pairs count; the compensator leaves out what a source spreads beyond the box. Days and km.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from scipy.spatial import cKDTree
from scipy.special import ndtr, ndtri

Floats = np.ndarray
Rng = np.random.Generator
Box = tuple[float, float, float, float]  # x from, x to, y from, y to
Columns = Sequence[Floats]  # t, x, y and, for sources, m: (n,) each, sorted by time
Magnitudes = Callable[[int, Rng], Floats]

NEIGHBOURS, LEAST_WIDTH = 5, 2.5  # whose distance is an event's bandwidth; at least so many km
MAX_ROUNDS, SETTLED = 60, 0.02  # a round that moves by fewer standard errors is the last
UNIFORM_SHARE, MAX_SIMULATED = 0.01, 20_000_000  # of the background; events in all paths together
LAGS, SIDES = np.polynomial.legendre.leggauss(48), np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True)
class EtasParams:
    """mu per day in the box, K per day at lag 0, c in days, D in km²."""

    mu: float
    K: float
    alpha: float
    c: float
    p: float
    D: float
    gamma: float
    q: float
    m0: float

    def vector(self) -> Floats:
        """log mu, log K, alpha, log c, p, log D, gamma, log(q - 1)."""
        mu, K, c, D, q = np.log([self.mu, self.K, self.c, self.D, self.q - 1.0])
        return np.array([mu, K, self.alpha, c, self.p, D, self.gamma, q])

    def at(self, v: Floats) -> EtasParams:
        mu, K, c, D, q = np.exp(v[[0, 1, 3, 5, 7]])
        return EtasParams(mu, K, v[2], c, v[4], D, v[6], 1.0 + q, self.m0)


@dataclass(frozen=True)
class Background:
    """A density u(x, y) of integral 1 in the box, and draws (n, rng) -> x, y from it."""

    density: Callable[[Floats, Floats], Floats]
    draw: Callable[[int, Rng], tuple[Floats, Floats]]


@dataclass(frozen=True)
class EtasFit:
    """Parameters, the covariance of their vector, background, log-likelihood in the window."""

    params: EtasParams
    covariance: Floats
    background: Background
    log_likelihood: float
    box: Box


def omori_integral(P: EtasParams, a: Floats, b: Floats) -> Floats:
    """∫_a^b (1 + lag/c)^(-p) and its slopes in log c and p, (3, n), by nodes in log(1 + lag/c)."""
    low, high = np.log1p(a / P.c)[:, None], np.log1p(b / P.c)[:, None]
    w = low + (high - low) * 0.5 * (LAGS[0] + 1.0)
    h = 0.5 * (high - low) * LAGS[1] * P.c * np.exp((1.0 - P.p) * w)
    return np.stack([h.sum(1), -P.p * (h * np.expm1(-w)).sum(1), -(h * w).sum(1)])


def mass_inside(P: EtasParams, x: Floats, y: Floats, dm: Floats, box: Box) -> Floats:
    """∫_box s_j and its slopes in log d_j and log(q - 1), (3, n): the mean over directions of
    1 - (1 + R²/d)^(1 - q), with R the distance to the border."""
    d, sums = (P.D * np.exp(P.gamma * dm))[:, None], np.zeros((3, len(x)))
    E, W, N, S = box[1] - x, x - box[0], box[3] - y, y - box[2]
    for ahead, right, left in ((E, S, N), (W, N, S), (N, E, W), (S, W, E)):
        low, high = -np.arctan2(right, ahead)[:, None], np.arctan2(left, ahead)[:, None]
        angle = low + (high - low) * 0.5 * (SIDES[0] + 1.0)
        z = 1.0 + (ahead[:, None] / np.cos(angle)) ** 2 / d
        outside = (high - low) * SIDES[1] / (4.0 * np.pi) * z ** (1.0 - P.q)
        sums += np.stack([(outside * s).sum(1) for s in (1.0, 1.0 - 1.0 / z, np.log(z))])
    return np.stack([1.0 - sums[0], (1.0 - P.q) * sums[1], (P.q - 1.0) * sums[2]])


@njit(nogil=True, fastmath=True, cache=True)
def _triggered(t, x, y, tj, xj, yj, dm, v):
    """Σ_j of the triggered rate at each target and its slopes in v[1:], (n, 7); log K gives it."""
    c, p, q = np.exp(v[3]), v[4], 1.0 + np.exp(v[7])
    out = np.zeros((len(t), 7))
    inverse_d = np.exp(-v[5] - v[6] * dm)
    height = np.exp(v[1] + v[2] * dm) * (q - 1.0) / np.pi * inverse_d
    for i in range(len(t)):
        s, s_alpha, s_c, s_p, s_d, s_gamma, s_q = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(np.searchsorted(tj, t[i])):
            w = 1.0 + (t[i] - tj[j]) / c
            z = 1.0 + ((x[i] - xj[j]) ** 2 + (y[i] - yj[j]) ** 2) * inverse_d[j]
            log_w, log_z = np.log(w), np.log(z)
            rate = height[j] * np.exp(-p * log_w - q * log_z)
            wide = rate * (q - 1.0 - q / z)
            s += rate
            s_alpha += rate * dm[j]
            s_c += rate * (1.0 - 1.0 / w)
            s_p -= rate * log_w
            s_d += wide
            s_gamma += wide * dm[j]
            s_q += rate * log_z
        out[i] = s, s_alpha, p * s_c, s_p, s_d, s_gamma, s - (q - 1.0) * s_q
    return out


@njit(nogil=True, fastmath=True, cache=True)
def _kernels(x, y, xj, yj, width, weight):
    """Σ_j weight_j N(x_i; x_j, width_j²), (n,)."""
    out = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(len(xj)):
            z = ((x[i] - xj[j]) ** 2 + (y[i] - yj[j]) ** 2) / (2.0 * width[j] ** 2)
            if z < 40.0:
                out[i] += weight[j] * np.exp(-z) / (2.0 * np.pi * width[j] ** 2)
    return out


def uniform_background(box: Box) -> Background:
    x0, x1, y0, y1 = box
    return Background(
        lambda x, y: np.full(len(x), 1.0 / ((x1 - x0) * (y1 - y0))),
        lambda n, rng: (rng.uniform(x0, x1, n), rng.uniform(y0, y1, n)),
    )


def kernel_background(
    x: Floats, y: Floats, weight: Floats, width: Floats, box: Box
) -> tuple[Background, Floats]:
    """The weighted kernel estimate, and its leave-one-out density at the events, (n,)."""
    uniform = uniform_background(box)
    left, right = ndtr((box[0] - x) / width), ndtr((box[1] - x) / width)
    low, high = ndtr((box[2] - y) / width), ndtr((box[3] - y) / width)
    mass = weight * (right - left) * (high - low)

    def density(px: Floats, py: Floats, own: Floats | float = 0.0, out: Floats | float = 0.0):
        u = (_kernels(px, py, x, y, width, weight) - own) / (mass.sum() - out)
        return u + UNIFORM_SHARE * (uniform.density(px, py) - u)

    def draw(n: int, rng: Rng) -> tuple[Floats, Floats]:
        j, anywhere = rng.choice(len(x), n, p=mass / mass.sum()), rng.random(n) < UNIFORM_SHARE
        px = x[j] + width[j] * ndtri(rng.uniform(left[j], right[j]))
        py = y[j] + width[j] * ndtri(rng.uniform(low[j], high[j]))
        return tuple(np.where(anywhere, uniform.draw(n, rng), (px, py)))

    return Background(density, draw), density(x, y, weight / (2.0 * np.pi * width**2), mass)


class Likelihood:
    """Σ_i log λ_i - ∫λ over start < t <= end, as a function of the parameters."""

    def __init__(self, sources: Columns, start: float, end: float, box: Box, m0: float) -> None:
        t, x, y, m = sources
        self.sources, self.days, self.box = (t, x, y, m - m0), end - start, box
        self.lags = np.maximum(start - t, 0.0), np.maximum(end - t, 0.0)
        self.targets = tuple(a[(t > start) & (t <= end)] for a in (t, x, y))

    def triggered(self, P: EtasParams) -> Floats:
        return _triggered(*self.targets, *self.sources, P.vector())

    def compensator(self, P: EtasParams) -> Floats:
        """∫λ, then its slopes in the vector, (9,)."""
        dm, (h, h_c, h_p) = self.sources[3], omori_integral(P, *self.lags)
        f, f_d, f_q = mass_inside(P, *self.sources[1:], self.box)
        size, back = P.K * np.exp(P.alpha * dm), P.mu * self.days
        rows = (h * f, h * f * dm, h_c * f, h_p * f, h * f_d, h * f_d * dm, h * f_q)
        return np.array([back + h * f @ size, back, *(row @ size for row in rows)])

    def __call__(self, P: EtasParams, G: Floats, u: Floats) -> tuple[float, Floats, Floats]:
        """The value, its slopes in the vector (8,), those of each log λ_i (n, 8); G: triggered."""
        rate, total = P.mu * u + G[:, 0], self.compensator(P)
        slopes = np.column_stack([P.mu * u, G]) / rate[:, None]
        return float(np.log(rate).sum() - total[0]), slopes.sum(0) - total[1:], slopes


def fit_etas(
    t: Floats, x: Floats, y: Floats, m: Floats, start: float, end: float, box: Box, m0: float,
    background: Background | None = None, bandwidth: float | None = None,
) -> EtasFit:  # fmt: skip
    """Maximum likelihood on start < t <= end by Fisher scoring; earlier events are parents only.

    Of a given background only the scale is fitted. Otherwise each step is followed by a kernel
    estimate of weights μ u(x_i)/λ_i, leaving one out, of fixed `bandwidth` or by NEIGHBOURS.
    """
    f = Likelihood((t, x, y, m), start, end, box, m0)
    x, y = f.targets[1:]
    P = EtasParams(0.3 * len(x) / (end - start), 5.0, 1.5, 0.01, 1.2, 30.0, 0.5, 1.8, m0)
    X, G, weight = np.stack([x, y], axis=1), f.triggered(P), np.ones(len(x))
    near = cKDTree(X).query(X, [min(NEIGHBOURS + 1, len(x))])[0][:, 0]
    width = np.maximum(near, LEAST_WIDTH) if bandwidth is None else np.full(len(x), bandwidth)
    given = None if background is None else (background, background.density(x, y))
    for _ in range(MAX_ROUNDS):
        shape, u = given or kernel_background(x, y, weight, width, box)
        value, slope, slopes = f(P, G, u)
        covariance, weight = np.linalg.inv(slopes.T @ slopes), slopes[:, 0]
        step = covariance @ slope
        if np.sqrt(slope @ step) < SETTLED:
            break
        step /= max(1.0, np.abs(step).max())
        for size in 0.5 ** np.arange(20.0):
            new = P.at(P.vector() + size * step)
            if f(new, G := f.triggered(new), u)[0] >= value:
                break
        P = new
    return EtasFit(P, covariance, shape, value, box)


def log_rates(fit: EtasFit, targets: Columns, sources: Columns) -> tuple[Floats, Floats]:
    """log λ at the targets given all earlier sources, and the log of ∫_box λ dx dy then."""
    P, (t, x, y, m) = fit.params, sources
    rate = P.mu * fit.background.density(*targets[1:])
    rate += _triggered(*targets, t, x, y, m - P.m0, P.vector())[:, 0]
    # all at one place, where s_j = 1: what is left is Σ_j K exp(α Δm_j) inside_j (1 + lag/c)^(-p)
    size = P.alpha * (m - P.m0) + np.log(mass_inside(P, x, y, m - P.m0, fit.box)[0])
    flat = replace(P, alpha=1.0, gamma=0.0, D=(P.q - 1.0) / np.pi).vector()
    here, there = np.zeros((2, len(targets[0]))), np.zeros((2, len(t)))
    in_time = _triggered(targets[0], *here, t, *there, size, flat)[:, 0]
    return np.log(rate), np.log(P.mu + in_time)


def compensator(fit: EtasFit, sources: Columns, start: float, end: float) -> float:
    """∫λ over the box and start < t <= end: the number expected, one event ahead."""
    return Likelihood(sources, start, end, fit.box, fit.params.m0).compensator(fit.params)[0]


def gutenberg_richter(beta: float, m0: float, largest: float = 10.0) -> Magnitudes:
    """Exponential magnitudes above m0, of rate beta = b log 10, cut at `largest`."""
    cut = np.expm1(-beta * (largest - m0))
    return lambda n, rng: m0 - np.log1p(cut * rng.random(n)) / beta


def simulate_etas(
    params: EtasParams, box: Box, duration: float, magnitudes: Magnitudes, rng: Rng,
    background: Background | None = None,
) -> Columns:  # fmt: skip
    """Events (t, x, y, m) in the box and 0 < t <= duration, from an empty history."""
    fit = EtasFit(params, np.empty(0), background or uniform_background(box), np.nan, box)
    events = _paths(fit, np.empty((4, 0)), 0.0, duration, 1, rng, magnitudes)[0]
    return events[:, np.argsort(events[0])]


def forecast_times(
    fit: EtasFit, history: Columns, start: float, horizon: float, n_paths: int, rng: Rng,
    magnitudes: Magnitudes,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Times of events in the box and start < t <= start + horizon, and their paths, (n,) each."""
    known = np.stack(history)[:, history[0] <= start]
    events, path = _paths(fit, known, start, start + horizon, n_paths, rng, magnitudes)
    return events[0], path


def _paths(fit, history, start, end, n_paths, rng, magnitudes):
    """Background, descendants of the history and theirs, (4, n), and their paths (n,)."""
    n = rng.poisson(fit.params.mu * (end - start) * n_paths)
    background = np.stack([rng.uniform(start, end, n), *fit.background.draw(n, rng)])
    young = np.hstack([background, _children(fit, history, start, end, n_paths, rng)[0]])
    path = rng.integers(n_paths, size=young.shape[1])
    events, paths = np.empty((4, 0)), path[:0]
    while len(path):
        young = np.vstack([young, magnitudes(len(path), rng)])
        events, paths = np.hstack([events, young]), np.hstack([paths, path])
        if len(paths) > MAX_SIMULATED:
            raise ValueError(f"the process explodes: more than {MAX_SIMULATED} events simulated")
        young, parent = _children(fit, young, young[0], end, 1, rng)
        path = path[parent]
    return events, paths


def _children(fit, parents, start, end, copies, rng):
    """Direct aftershocks (t, x, y) of `copies` of each parent, (3, n), and the parents' indices."""
    P, (t, x, y, m) = fit.params, parents
    e = 1.0 - P.p if P.p != 1.0 else 1e-9
    a, b = np.expm1(e * np.log1p((start - t) / P.c)), np.expm1(e * np.log1p((end - t) / P.c))
    mean = copies * P.K * np.exp(P.alpha * (m - P.m0)) * P.c * (b - a) / e
    parent = np.repeat(np.arange(len(t)), rng.poisson(mean))
    z = a[parent] + (b - a)[parent] * rng.random(len(parent))
    lag = P.c * np.expm1(np.log1p(z) / e)
    d = P.D * np.exp(P.gamma * (m[parent] - P.m0))
    r = np.sqrt(d * np.expm1(-np.log1p(-rng.random(len(parent))) / (P.q - 1.0)))
    angle = rng.uniform(0.0, 2.0 * np.pi, len(parent))
    x, y = x[parent] + r * np.cos(angle), y[parent] + r * np.sin(angle)
    kept = (x >= fit.box[0]) & (x <= fit.box[1]) & (y >= fit.box[2]) & (y <= fit.box[3])
    return np.stack([t[parent] + lag, x, y])[:, kept], parent[kept]
