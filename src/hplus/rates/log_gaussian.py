"""From binned events to a rate on a grid with its uncertainty.

A prior is learned on a coarse grid, by the evidence of many where dense matrices are small, else by
the search of `textures`. The rates under the best priors are averaged, and grids are refined until
the answer does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hplus._checks import Floats
from hplus._progress import each, step
from hplus._threads import one_thread_if_small
from hplus.positivity.exp import GridFunction
from hplus.rates.dense import Posteriors, posteriors, shifts
from hplus.rates.prior import Field, Texture
from hplus.rates.grid_rate import GridRate, promised_gap
from hplus.rates.modes import certify, deviations, newton, shifted_means
from hplus.rates.levels import Level, descend
from hplus.solvers.result import SolverResult
from hplus.rates.torus import stacked
from hplus.rates.statistic import DOUBLINGS
from hplus.rates.selection import FEW, Mixture, effort_for, judged, tuning_levels
from hplus.rates.search import Shape, Tried, log_evidence, shares
from hplus.windows import Window

SCALES, DEVIATIONS = np.geomspace(0.017, 1.0, 8), np.sqrt([0.1, 0.8, 6.4, 51.2])
"""The lattice of priors on a line: scales as shares of its length, and standard deviations."""

CURVED = (2.5, 4.5)
"""Their smoothness."""

TEMPER = 0.9
"""Power of the evidence in the weights of bands: other priors could have been tried."""

NEGLIGIBLE = 3e-3
"""Weight of a prior, as a share of the largest, below which it is left out."""

CROWD = 15.0
"""Nodes of the coarsest grid over which events must be spread, as if evenly, to be seen on it."""

ROUGHEST = 0.5
"""Weight of the smallest scale beyond which a line needs a finer grid."""

LONGEST_SHIFT = 2.0
"""Standard deviations that the mean of a log rate may lie from its mode."""

DENSE_DRAWS = 128
"""Draws of the log rate that are kept on a line, where they cost next to nothing."""

SETTLED = 0.01
"""Share of the events by which the rate may still move when a grid is refined."""

FINAL, ACCURACIES = 5e-7, (1e-2, 1e-2, 1e-3, 1e-4)
"""The relative gap to which a mode is certified, and how exactly its systems are solved for it."""


@dataclass(frozen=True)
class Component:
    """A prior with its weight, the log rates under it (1, *grid), and their charges."""

    weight: float
    prior: Shape
    z: Any
    a: Any = None


@dataclass(frozen=True)
class Uncertainty:
    """What is known about log rates on the coarse grid: means, deviations and draws of them."""

    center: Floats
    spread: Floats
    draws: Any


def learn_rate(
    window: Window, finest: Level, prior: Shape | Mixture | None, criterion: str, seed: Any
) -> GridRate:
    """The rate of binned events under a prior, under several, or under those that suit them.

    `prior` may be a kernel with penalty NaN: then the penalty is learned. `criterion` is "auto",
    "evidence" or "thinning".
    """
    d = window.dimension
    levels = descend(finest, DOUBLINGS[d])
    if prior is None and d == 1 and criterion != "thinning" and not _crowded(levels[-1]):
        found = _by_dense_evidence(levels[-1], window.longest_sides(), seed)
        if found is not None:
            return _assembled(window, levels, *found)
    effort = effort_for(finest)
    levels = tuning_levels(window, levels, prior, effort)
    parts = judged(window, levels, prior, criterion, effort)
    return _assembled(window, levels, *_averaged(levels[-1], parts, effort.draws, seed))


def _crowded(level: Level) -> bool:
    """Are there enough events to learn from parts of them, and most of them at a few nodes?"""
    counts = level.counts
    return bool(counts.sum() >= FEW and counts.sum() ** 2 < CROWD * np.sum(counts**2))


def _averaged(
    level: Level, parts: list[tuple[float, Tried]], draws: int, seed: Any
) -> tuple[list[Component], Uncertainty]:
    """The modes under priors with their weights on one level, and draws around them."""
    s, nu = level.counts.astype(np.float32), level.nu.astype(np.float32)
    rng = np.random.RandomState(seed)
    components, matrices, clouds = [], [], []
    for weight, trial in each("averaging priors", parts):
        matrix = trial.prior.prior(level.grid).single()
        mode = newton(matrix, s, nu, trial.z.mean(axis=0, keepdims=True), tolerance=level.tolerance)
        components.append(Component(weight, trial.prior, mode.z, mode.a))
        count = max(round(draws * weight), 1)
        clouds.append(deviations(matrix, nu * np.exp(mode.z), count, rng))
        matrices.append(matrix)
    # few draws of each: they share one variance
    variance = np.mean(np.concatenate(clouds) ** 2, axis=0, keepdims=True)
    reach = LONGEST_SHIFT * np.sqrt(variance)
    means = []
    for part, matrix in zip(components, matrices, strict=True):
        shift = shifted_means(matrix, nu * np.exp(part.z), variance)
        # an expansion: beyond a few deviations it says nothing
        means.append(part.z + np.clip(shift, -reach, reach))
    drawn = np.concatenate([mean + cloud for mean, cloud in zip(means, clouds, strict=True)])
    weights = np.array([part.weight for part in components])
    return components, _mixed(weights, np.concatenate(means).astype(float), variance, drawn)


def _mixed(weights: Floats, means: Floats, variances: Floats, draws: Any) -> Uncertainty:
    """The mean and the deviation of a mixture, for means and variances (c, *grid)."""
    center = np.tensordot(weights, means, axes=1)
    spread = np.sqrt(np.tensordot(weights, variances + (means - center) ** 2, axes=1))
    return Uncertainty(center, spread, draws)


def _by_dense_evidence(
    level: Level, sides: Floats, seed: Any
) -> tuple[list[Component], Uncertainty] | None:
    """All priors of the lattice on a line; None if the events ask for smaller scales.

    The rate is averaged with the evidence as weights. Those of bands are evidence^TEMPER times
    deviation²/scale: rough priors leave room for what was not seen.
    """
    lattice = [
        Texture((Field(smoothness, (float(scale * sides[0]),), float(deviation)),))
        for smoothness in CURVED
        for scale in SCALES
        for deviation in DEVIATIONS
    ]
    step("comparing smooth priors", 0, len(lattice))
    with one_thread_if_small(level.grid.size):
        K = _dense(lattice, level)
        found = posteriors(K, level.counts[0], level.measure)
        step("comparing smooth priors", len(lattice), len(lattice))
        roughness = [t.fields[0].deviation ** 2 / t.fields[0].scales[0] for t in lattice]
        weights = shares(found.log_evidence, NEGLIGIBLE)
        wide = shares(TEMPER * found.log_evidence + np.log(roughness), NEGLIGIBLE)
        finest = [t.fields[0].scales[0] <= 1.01 * SCALES[0] * sides[0] for t in lattice]
        if weights[finest].sum() > ROUGHEST and level.counts.sum() >= FEW:
            return None
        components = [
            Component(float(weights[i]), lattice[i], found.z[i][None])
            for i in np.flatnonzero(weights)
        ]
        kept = np.flatnonzero(wide)
        return components, _dense_uncertainty(found.chosen(kept), wide[kept], level, seed)


def _dense(priors: list[Texture], level: Level) -> Floats:
    """The covariances of priors on a line as matrices, shape (c, G, G)."""
    n = level.grid.size
    unit = np.repeat(np.eye(1, n), len(priors), axis=0)
    first = stacked([prior.prior(level.grid) for prior in priors]).apply(unit)
    return first[:, np.abs(np.subtract.outer(np.arange(n), np.arange(n)))]


def _dense_uncertainty(found: Posteriors, weights: Floats, level: Level, seed: Any) -> Uncertainty:
    """Means, deviations and draws of a mixture."""
    means = found.z + shifts(found, level.measure)
    rng = np.random.RandomState(seed)
    draws = []
    for w, mean, C in zip(weights, means, found.covariance, strict=True):
        values, vectors = np.linalg.eigh(C)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = rng.standard_normal((round(DENSE_DRAWS * float(w)), len(C)))
        draws.append(mean + noise @ root.T)
    return _mixed(weights, means, found.variance, np.concatenate(draws))


def _assembled(
    window: Window, levels: list[Level], components: list[Component], known: Uncertainty
) -> GridRate:
    """Refine the grid, certify the leading mode, and put the answer together."""
    coarse = levels[-1]
    rate = _rate(components, coarse)
    evidence = _evidence(coarse, max(components, key=lambda part: part.weight))
    level, components, values, error = _refined(levels, components, rate)
    leader = max(components, key=lambda part: part.weight)
    step("certifying the answer", 0, 1)
    result = _certified(level, leader)
    step("certifying the answer", 1, 1)
    function, log_rate = GridFunction(window, level.grid, values), np.log(rate)
    return GridRate(
        function,
        coarse.grid,
        known.center - log_rate,
        known.spread,
        (known.draws - log_rate).astype(np.float32),
        tuple((part.weight, part.prior) for part in components),
        result,
        evidence,
        error,
    )


def _certified(level: Level, leader: Component) -> SolverResult:
    """The leading mode solved to the end, with a certificate."""
    prior, s, nu = leader.prior.prior(level.grid), level.counts, level.nu
    tolerance, promised = FINAL * float(s.sum()), promised_gap(level.grid.size)
    z, a = leader.z.astype(float), None if leader.a is None else leader.a.astype(float)
    for accuracy in ACCURACIES:
        mode = newton(prior, s, nu, z, tolerance=tolerance, accuracy=accuracy, charges=a)
        result = certify(prior, s, nu, mode)
        if result.relative_gap <= 0.5 * promised:
            break
        # a stiff system hides what charges are off from the decrement
        z, a, tolerance = mode.z, mode.a, 0.01 * tolerance
    return result.judged(promised)


def _evidence(level: Level, leader: Component) -> float:
    """The log evidence of the leading prior on the coarse grid."""
    prior = leader.prior.prior(level.grid)
    z = leader.z.astype(float)
    mode = newton(prior, level.counts, level.nu, z, tolerance=1e-3)
    return log_evidence(level, leader.prior, mode.z, mode.a)


def _refined(
    levels: list[Level], components: list[Component], values: Floats
) -> tuple[Level, list[Component], Floats, float]:
    """Finer and finer grids, until the rate moves by less than SETTLED of the events."""
    error, total = np.nan, float(levels[-1].counts.sum())
    level, stage, most = levels[-1], "refining the grid", len(levels) - 1
    for done, level in enumerate(levels[-2::-1]):
        step(stage, done, most)
        components = _prolonged(components, level)
        new = _rate(components, level)
        error = float(np.sum(level.measure * np.abs(new - level.grid.prolong(values)))) / total
        values = new
        if error < SETTLED:
            break
    step(stage, most, most)
    return level, components, values, error


def _prolonged(components: list[Component], level: Level) -> list[Component]:
    """The modes under all priors on the next finer grid.

    The leading one is solved for. The others differ from it in what is smooth, which the coarser
    grid has seen: they are corrected by what it gained.
    """
    dtype = np.float64 if level.grid.dimension == 1 else np.float32
    first = int(np.argmax([part.weight for part in components]))
    z = [level.grid.prolong(part.z[0].astype(float))[None].astype(dtype) for part in components]
    prior: Any = components[first].prior.prior(level.grid)
    prior = prior if dtype is np.float64 else prior.single()
    s, nu = level.counts.astype(dtype), level.nu.astype(dtype)
    mode = newton(prior, s, nu, z[first], tolerance=level.tolerance)
    gained = mode.z - z[first]
    finer = [replace(part, z=y + gained, a=None) for part, y in zip(components, z, strict=True)]
    finer[first] = replace(components[first], z=mode.z, a=mode.a)
    return finer


def _rate(components: list[Component], level: Level) -> Floats:
    """Σ weights · e^z, with as many events as were seen."""
    logs = [np.log(part.weight) + part.z[0].astype(float) for part in components]
    log_rate = np.logaddexp.reduce(logs)
    rate = np.exp(log_rate - log_rate.max())
    return rate * (float(level.counts.sum()) / np.sum(level.measure * rate))
