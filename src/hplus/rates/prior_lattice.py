"""Smooth rates on a line: the evidence of a whole lattice of priors, with dense matrices."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus._progress import step
from hplus._threads import one_thread_if_small
from hplus.rates.averaging import Averaged, Uncertainty
from hplus.rates.dense import Posteriors, posteriors, shifts
from hplus.rates.judging import FEW_EVENTS
from hplus.rates.levels import Level
from hplus.rates.prior import Field, LogRates, SumOfFields
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

DENSE_DRAWS = 128
"""Draws of the log rate that are kept: on a line they cost next to nothing."""


def average_on_line(level: Level, seed: int) -> Averaged | None:
    """The average over the whole lattice; None if the events need smaller scales.

    Log rates are averaged with the evidence as weights. The weights of bands are
    evidence^BAND_TEMPER times deviation²/scale: rough priors leave room for what was not seen.
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
        return Averaged(parts, _uncertainty(found.chosen(kept), wide[kept], level, seed))


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


def _matrices(priors: list[SumOfFields], level: Level) -> Floats:
    """The covariances of priors on a line as matrices, shape (c, G, G)."""
    n = level.grid.size
    unit = np.repeat(np.eye(1, n), len(priors), axis=0)
    first = stacked([prior.covariance(level.grid) for prior in priors]).apply(unit).astype(float)
    return first[:, np.abs(np.subtract.outer(np.arange(n), np.arange(n)))]


def _uncertainty(found: Posteriors, weights: Floats, level: Level, seed: int) -> Uncertainty:
    """Means, deviations and draws of the mixture."""
    means = found.z + shifts(found, level.exposure)
    rng = np.random.RandomState(seed)
    draws = []
    for w, mean, C in zip(weights, means, found.covariance, strict=True):
        values, vectors = np.linalg.eigh(C)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = rng.standard_normal((round(DENSE_DRAWS * float(w)), len(C)))
        draws.append(mean + noise @ root.T)
    return Uncertainty.of_mixture(weights, means, found.variance, np.concatenate(draws))
