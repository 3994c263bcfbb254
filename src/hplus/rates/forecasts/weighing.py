"""Scales and deviations of fields, drawn by how well they forecast one block after another.

The evidence of a chain is the product of its forecasts of each block from those before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from hplus._checks import Floats
from hplus._progress import each
from hplus.rates.forecasts.log_rate import Blocks, Fields, chain, find_mode

FIRST_TRIALS = 96
"""Priors tried at first, spread over what is plausible."""

WALKERS, SWEEPS = 24, 24
"""Priors that move through what is plausible, and how often each may move."""

PARTICLES = 48
"""Priors that are kept, all with the same weight: the last ones of each walker."""

STRETCH = 2.0
"""How far a walker may go on the line through another one."""

TEMPER = 4.0
"""Walkers begin at first trials, drawn by their posterior density to the power of 1/TEMPER."""

LEAST_DEVIATION, MOST_DEVIATION = 0.001, 2.0
"""Deviations of the fields of a log rate."""


class Plausible(NamedTuple):
    """Log scales and log deviations of the three fields: their centers, spreads and bounds (6,)."""

    center: Floats
    spread: Floats
    low: Floats
    high: Floats


def plausible(block: float, span: float) -> Plausible:
    """What is plausible for blocks of this length in an observation period of this span."""
    middle = np.sqrt(8.0 * block * span)
    center = np.log([span, 0.06, middle, 0.06, 2.0 * block, 0.08])
    spread = np.array([0.7, 1.5, 1.2, 1.5, 1.0, 1.5])
    s, S = LEAST_DEVIATION, MOST_DEVIATION
    low = np.log([0.2 * span, s, 2.0 * block, s, 0.25 * block, s])
    high = np.log([5.0 * span, S, 3.0 * span, S, max(16.0 * block, 0.05 * span), S])
    return Plausible(center, spread, low, high)


class Walker(NamedTuple):
    """Log scales and log deviations (6,), their log posterior density, and the log rates there."""

    point: Floats
    log_density: float
    log_rate: Floats


def weigh(blocks: Blocks, block: float, span: float, rng: np.random.Generator) -> Floats:
    """Equally likely log scales and log deviations (PARTICLES, 6), given the counts of blocks.

    By walkers that move along lines through one another [goodman2010].
    """
    prior = plausible(block, span)
    u = qmc.Sobol(6, seed=rng).random(128)[:FIRST_TRIALS]
    points = prior.center + prior.spread * ndtri(np.clip(u, 1e-6, 1.0 - 1e-6))
    walker = Walker(prior.center, -np.inf, _first_guess(blocks))
    trials = []
    for point in np.clip(points, prior.low, prior.high):
        trial = _tried(blocks, prior, point, walker.log_rate)
        walker = max(walker, trial, key=lambda w: w.log_density)
        trials.append(trial)
    density = np.array([trial.log_density for trial in trials])
    chance = np.exp((density - density.max()) / TEMPER) + 1e-12
    order = rng.choice(len(trials), WALKERS, replace=False, p=chance / chance.sum())
    walkers, kept = [trials[i] for i in order], []
    for _ in each("weighing forecasts", range(SWEEPS)):
        walkers = _moved(blocks, prior, walkers, rng)
        kept += walkers
    return np.array([walker.point for walker in kept[-PARTICLES * 4 :: 4]])


def as_fields(point: Floats) -> Fields:
    """Fields from log scales and log deviations (6,)."""
    h, s, h1, s1, h2, s2 = np.exp(point).tolist()
    return Fields((h, s), (h1, s1), (h2, s2))


def _first_guess(blocks: Blocks) -> Floats:
    y, E = blocks.counts, blocks.means
    return np.log(np.divide(y + E, 2.0 * E, out=np.ones(len(y)), where=E > 0.0))


def _tried(blocks: Blocks, prior: Plausible, point: Floats, guess: Floats) -> Walker:
    mode = find_mode(blocks, chain(as_fields(point), blocks.steps), guess)
    x = (point - prior.center) / prior.spread
    return Walker(point, mode.log_evidence - 0.5 * float(x @ x), mode.log_rate)


def _moved(
    blocks: Blocks, prior: Plausible, walkers: list[Walker], rng: np.random.Generator
) -> list[Walker]:
    """Each walker after one possible move: half of them relative to the other half, and back."""
    half = len(walkers) // 2
    for side in (slice(0, half), slice(half, None)):
        others = walkers[half:] if side.start == 0 else walkers[:half]
        moved = []
        for walker in walkers[side]:
            # density of the stretch ∝ 1/√g on [1/STRETCH, STRETCH]
            g = ((STRETCH - 1.0) * rng.random() + 1.0) ** 2 / STRETCH
            anchor = others[rng.integers(len(others))].point
            point, chance = anchor + g * (walker.point - anchor), rng.random()
            if np.all((point >= prior.low) & (point <= prior.high)):
                trial = _tried(blocks, prior, point, walker.log_rate)
                ratio = 5.0 * np.log(g) + trial.log_density - walker.log_density
                walker = trial if np.log(chance) < ratio else walker
            moved.append(walker)
        walkers = moved + others if side.start == 0 else others + moved
    return walkers
