"""Smooth rates on a line: the evidence of a whole lattice of priors, with dense matrices.

The same problem as in `modes`, for covariances K (c, G, G) that share the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dposv, dtrtrs
from scipy.special import log_softmax

from hplus._checks import Floats, Ints
from hplus._progress import step
from hplus._threads import one_thread_if_small
from hplus.rates.judging import FEW_EVENTS
from hplus.rates.levels import Level
from hplus.rates.modes import normalised
from hplus.rates.posterior import Averaged
from hplus.rates.prior import Field, LogRates, Prior, SumOfFields, Weighted
from hplus.rates.search import shares
from hplus.rates.torus import stacked

LINE_SCALES, LINE_DEVIATIONS = np.geomspace(0.017, 1.0, 8), np.sqrt([0.1, 0.8, 6.4, 51.2])
"""The lattice of priors: scales as shares of the line's length, and standard deviations."""

LINE_SMOOTHNESS = (2.5, 4.5)

BAND_TEMPER = 0.9
"""Power of the evidence in the weights of bands: other priors could have been tried."""

MIN_DENSE_WEIGHT = 3e-3
"""Weight of a prior, as a share of the largest, below which it is left out."""

MIN_SPREAD_NODES = 15.0
"""Nodes over which events must be spread, as if evenly, for the coarsest grid to resolve them."""

MAX_ROUGH_WEIGHT = 0.5
"""Weight of the smallest scale beyond which a finer grid is needed."""

MAX_DENSE_NODES = 200
"""Nodes of the coarsest grid of a line on which priors are averaged with dense matrices."""

MIN_HELD_OUT_WEIGHT = 0.03
"""Weight of a prior, as a share of the largest, below which folds are predicted without it."""

DENSE_DRAWS = 128
"""Draws of the log rate that are kept: on a line they cost next to nothing."""

MAX_DENSE_STEPS, LAST_LOG_STEP = 40, 1e-5
"""Newton steps at most, and the change of a log rate at which they end."""

MAX_DENSE_LOG_STEP = 2.0
"""Largest change of a log rate in one step."""


def average_on_line(level: Level, seed: int) -> Averaged | None:
    """The average over the whole lattice; None if the events need smaller scales.

    Log rates are averaged with the evidence as weights. The weights of bands are
    evidence^BAND_TEMPER times deviation²/scale: rough priors leave room for variation that the
    events do not show.
    """
    if _crowded(level):
        return None
    side = float(level.window.longest_sides()[0])
    fields = _lattice(side)
    step("comparing smooth priors", 0, len(fields))
    with one_thread_if_small(level.grid.size):
        priors = [SumOfFields((field,)) for field in fields]
        found = posteriors(_matrices(priors, level), level.counts[0], level.exposure)
        step("comparing smooth priors", len(fields), len(fields))
        roughness = [field.deviation**2 / field.scales[0] for field in fields]
        weights = shares(found.log_evidence, MIN_DENSE_WEIGHT)
        wide = shares(BAND_TEMPER * found.log_evidence + np.log(roughness), MIN_DENSE_WEIGHT)
        finest = [field.scales[0] <= 1.01 * LINE_SCALES[0] * side for field in fields]
        if weights[finest].sum() > MAX_ROUGH_WEIGHT and level.total >= FEW_EVENTS:
            return None
        parts = [
            (float(weights[i]), LogRates(priors[i], found.z[i][None]))
            for i in np.flatnonzero(weights)
        ]
        kept = np.flatnonzero(wide)
        return _mixed(parts, found.chosen(kept), wide[kept], level, seed)


def modes_on_line(level: Level, known: list[Weighted], counts: Floats) -> list[Weighted]:
    """The modes of other counts (k, G) under the known priors, less those of little weight.

    Their evidence gives each of the counts its own weights, of which the logs are added to z.
    """
    least = MIN_HELD_OUT_WEIGHT * max(weight for weight, _ in known)
    kept = [(weight, found) for weight, found in known if weight >= least]
    z, evidence = np.empty((len(kept), *counts.shape)), np.empty((len(kept), len(counts)))
    with one_thread_if_small(level.grid.size):
        for i, K in enumerate(_matrices([found.prior for _, found in kept], level)):
            for k, s in enumerate(counts):
                z[i, k], evidence[i, k] = _mode(K, s, level.exposure, kept[i][1].z[0])
    for i, log_shares in enumerate(log_softmax(evidence, axis=0)):
        z[i] += (log_shares - np.log(kept[i][0]))[:, None]
    return [(w, LogRates(found.prior, x)) for (w, found), x in zip(kept, z, strict=True)]


def _crowded(level: Level) -> bool:
    """Are there enough events to learn from parts of them, and most of them at a few nodes?"""
    total, counts = level.total, level.counts
    return bool(total >= FEW_EVENTS and total**2 < MIN_SPREAD_NODES * np.sum(counts**2))


def _lattice(side: float) -> list[Field]:
    return [
        Field(smoothness, (float(scale * side),), float(deviation))
        for smoothness in LINE_SMOOTHNESS
        for scale in LINE_SCALES
        for deviation in LINE_DEVIATIONS
    ]


def _matrices(priors: Sequence[Prior], level: Level) -> Floats:
    """The covariances of priors on a line as matrices, shape (c, G, G)."""
    n = level.grid.size
    unit = np.repeat(np.eye(1, n), len(priors), axis=0)
    first = stacked([prior.covariance(level.grid) for prior in priors]).apply(unit).astype(float)
    # each matrix in one piece of memory, which indexing does not give
    return np.take(first, np.abs(np.subtract.outer(np.arange(n), np.arange(n))), axis=1)


def _mixed(
    parts: list[Weighted], found: Posteriors, weights: Floats, level: Level, seed: int
) -> Averaged:
    """Means, deviations and draws of the mixture."""
    means = found.z + shifts(found, level.exposure)
    rng = np.random.RandomState(seed)
    draws = []
    for w, mean, C in zip(weights, means, found.covariance, strict=True):
        values, vectors = np.linalg.eigh(C)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = rng.standard_normal((round(DENSE_DRAWS * float(w)), len(C)))
        draws.append(mean + noise @ root.T)
    return Averaged.of_mixture(parts, weights, means, found.variance, np.concatenate(draws))


@dataclass(frozen=True)
class Posteriors:
    """For every prior K (c, G, G): modes z (c, G), log evidence (c,), R = √W there (c, G)."""

    z: Floats
    log_evidence: Floats
    K: Floats
    R: Floats

    def chosen(self, which: Ints) -> Posteriors:
        """The posteriors under some of the priors."""
        return Posteriors(self.z[which], self.log_evidence[which], self.K[which], self.R[which])

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the log rates under each prior, shape (c, G, G)."""
        return np.stack([_covariance(K, R) for K, R in zip(self.K, self.R, strict=True)])

    @property
    def variance(self) -> Floats:
        """The variance of the log rate at each node, shape (c, G)."""
        return np.diagonal(self.covariance, axis1=1, axis2=2)


def posteriors(K: Floats, s: Floats, nu: Floats) -> Posteriors:
    """Laplace's approximation of every posterior, for counts s (G,) and exposures ν (G,).

    log evidence = Σ(sz - νe^z) - ½aᵀKa - ½ log det(I + RKR) - ½ log(1ᵀ(K + W⁻¹)⁻¹1), with a flat
    prior on the constant [math, Eq. 4.5].
    """
    z, evidence = np.empty(K.shape[:2]), np.empty(len(K))
    start = normalised(np.zeros((1, len(s))), s[None], nu[None])[0]
    for i, prior in enumerate(K):
        # the mode under one prior is a good guess for the next
        start, evidence[i] = _mode(prior, s, nu, start)
        z[i] = start
    return Posteriors(z, evidence, K, np.sqrt(nu * np.exp(z)))


def _mode(K: Floats, s: Floats, nu: Floats, z: Floats) -> tuple[Floats, float]:
    """The most probable log rates under one prior by Newton's method, and the log evidence."""
    for _ in range(MAX_DENSE_STEPS):
        W = nu * np.exp(z)
        R = np.sqrt(W)
        exposed = R > 1e-150
        pull = np.where(exposed, (s - W) / np.where(exposed, R, 1.0), 0.0)
        L, x = _solved(K, R, np.stack([R * z + pull, R], axis=1))
        p, ones = R * x[:, 0], R * x[:, 1]
        b = p.sum() / ones.sum()
        a = p - b * ones
        Ka = K @ a
        dz = Ka + b - z
        largest = np.abs(dz).max()
        z = z + dz * min(1.0, MAX_DENSE_LOG_STEP / max(largest, MAX_DENSE_LOG_STEP))
        if largest < LAST_LOG_STEP:
            break
    z = normalised(z[None], s[None], nu[None])[0]
    fit = s @ z - s.sum() - 0.5 * (a @ Ka)
    return z, float(fit - np.log(np.diagonal(L)).sum() - 0.5 * np.log(ones.sum()))


def _solved(K: Floats, R: Floats, rhs: Floats) -> tuple[Floats, Floats]:
    """The Cholesky factor L of I + RKR, and (I + RKR)⁻¹ rhs."""
    B = R[:, None] * K
    B *= R
    B.flat[:: len(R) + 1] += 1.0
    L, x, _ = dposv(B.T, rhs, lower=True, overwrite_a=True)
    return L, x


def _covariance(K: Floats, R: Floats) -> Floats:
    """K - KR(I + RKR)⁻¹RK + uuᵀ, u = (1 - KRx)/√(1ᵀRx) for the constant, x = (I + RKR)⁻¹R1."""
    L, x = _solved(K, R, R[:, None])
    ones = R * x[:, 0]
    V, _ = dtrtrs(L, R[:, None] * K, lower=True)
    u = (1.0 - K @ ones) / np.sqrt(ones.sum())
    return K - V.T @ V + np.outer(u, u)


def shifts(found: Posteriors, nu: Floats) -> Floats:
    """How far means lie from modes, -½ C(W∘v), shape (c, G) [math, Eq. 4.9]."""
    pull = nu * np.exp(found.z) * found.variance
    return -0.5 * np.matmul(found.covariance, pull[..., None])[..., 0]
