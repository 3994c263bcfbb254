"""Scales and deviations of fields, drawn by how well they forecast one block after another.

The evidence of a chain is the product of its forecasts of each block from those before it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtri
from scipy.stats import qmc

from hplus._checks import Floats, Ints
from hplus._progress import each
from hplus.rates.forecasts.level_jumps import (
    LEAST_BLOCKS,
    JumpTrials,
    jump_gains,
    log_jump_chance,
    log_jump_chances,
    make_jump_trials,
)
from hplus.rates.forecasts.log_rate import Blocks, chain, find_mode
from hplus.rates.forecasts.plausible_fields import (
    Plausible,
    as_fields,
    plausible,
    plausible_in_steps,
)

FIRST_TRIALS, CLIMBING_TRIALS = 64, 90
"""Priors tried at first, spread over what is plausible, and on each climb from the best."""

FIRST_RATIO = 20.0
"""Deviations that first trials have their center at, relative to those that are plausible."""

SIMPLEX_SIDES = (0.6, 0.4, 0.25)
"""The first steps of each climb, as a share of what is plausible: a new simplex finds new ways."""

MAX_REACH_TRIALS, MAX_FALL = 4, 4.0
"""Trials along an axis, until the log density falls by less than MAX_FALL nats."""

STEP_DEVIATIONS = (0.1, 0.3)
"""Deviations from period to period that are tried first."""

MIN_STEP_GAIN = 1.0
"""Nats by which changes from period to period must be more probable than those at any time."""

JUMP_SHRINKS = 0.2
"""How much less the smooth and the slow field may vary if the level jumped."""

WALKERS, SWEEPS = 24, 16
"""Priors that move through what is plausible, and how often each may move."""

PARTICLES, APART = 48, 5
"""Priors that are kept, all with the same weight: every fifth one that a walker was last at."""

STRETCH = 2.0
"""How far a walker may go on the line through another one."""


class Walker(NamedTuple):
    """Log scales, log deviations and bend (7,), the log posterior density and the rates there.

    `blocks` say before which of them the level jumps.
    """

    point: Floats
    log_density: float
    rate: Floats
    blocks: Blocks


class Weighed(NamedTuple):
    """Equally likely priors (p, 7) and jumps (p,), and the way in which the slow field changes."""

    way: int
    priors: Floats
    jumps: Ints


def weigh(ways: list[Blocks], block: float, span: float, rng: np.random.Generator) -> Weighed:
    """Equally likely log scales, log deviations and bends (PARTICLES, 7), given counts of blocks.

    The blocks are the same in all ways in which their slow field may change, at any time in the
    first one; the most probable way is chosen. By walkers that begin around the most probable
    points, with and without a jump of the level, and move along lines through one another
    [goodman2010].
    """
    prior = plausible(block, span)
    best, way = _best_of_many(ways[0], prior, rng), 0
    for side in SIMPLEX_SIDES:
        best = _climbed(prior, best, side)
    least = best.log_density + MIN_STEP_GAIN
    for other in range(1, len(ways)):
        changed = plausible_in_steps(prior, float(ways[other].slow_steps.max()))
        trial = _best_in_steps(ways[other], changed, best)
        if trial.log_density > least:
            best, way, least = trial, other, trial.log_density
    blocks = ways[way]
    if way > 0:
        prior = plausible_in_steps(prior, float(blocks.slow_steps.max()))
        best = _climbed(prior, best, SIMPLEX_SIDES[-1])
    walkers, trials = _first_walkers(blocks, prior, best, rng)
    kept: list[Walker] = []
    for _ in each("weighing forecasts", range(SWEEPS)):
        walkers = _moved(prior, walkers, rng)
        if trials is not None:
            walkers = [_jumped(prior, walker, trials, rng) for walker in walkers]
        kept += walkers
    kept = kept[-PARTICLES * APART :: APART]
    jumps = np.array([walker.blocks.jump for walker in kept])
    return Weighed(way, np.array([walker.point for walker in kept]), jumps)


def _first_walkers(
    blocks: Blocks, prior: Plausible, best: Walker, rng: np.random.Generator
) -> tuple[list[Walker], JumpTrials | None]:
    """Walkers around the most probable points without and with a jump, and jumps to try."""
    starts, trials, chance = [best], None, 0.0
    if len(blocks.counts) >= LEAST_BLOCKS:
        other, gains = _best_with_jump(blocks, prior, best)
        starts, trials = [best, other], make_jump_trials(blocks, gains)
        many = -trials.log_chances[other.blocks.jump]
        chance = float(expit(other.log_density + many - best.log_density))
    reaches = [np.array([_reach(prior, start, axis) for axis in range(7)]) for start in starts]
    walkers: list[Walker] = []
    for number in range(WALKERS):
        which = int((number + 0.5) / WALKERS < chance)
        start, noise = starts[which], rng.standard_normal(7)
        point = np.clip(start.point + reaches[which] * noise, prior.low, prior.high)
        walkers.append(_tried(start.blocks, prior, point, start.rate))
    return walkers, trials


def _best_with_jump(blocks: Blocks, prior: Plausible, start: Walker) -> tuple[Walker, Floats]:
    """The most probable point if the level jumps once, and what a jump before each block gains."""
    found = Walker(start.point, -np.inf, start.rate, blocks)
    for shrunk in (1.0, JUMP_SHRINKS):
        point = start.point.copy()
        point[[1, 3]] += np.log(shrunk)
        point = np.clip(point, prior.low, prior.high)
        fields = as_fields(point)
        links = chain(fields, blocks)
        mode = find_mode(blocks, links, fields.bend, start.rate)
        gains = jump_gains(blocks, links, mode, fields.bend)
        jumping = replace(blocks, jump=int((gains + log_jump_chances(blocks)).argmax()))
        trial = _tried(jumping, prior, point, start.rate)
        if trial.log_density > found.log_density:
            found, best_gains = trial, gains
    return _climbed(prior, found, SIMPLEX_SIDES[1]), best_gains


def _best_of_many(blocks: Blocks, prior: Plausible, rng: np.random.Generator) -> Walker:
    u = qmc.Sobol(7, seed=rng).random(FIRST_TRIALS)
    points = prior.center + prior.spread * ndtri(np.clip(u, 1e-6, 1.0 - 1e-6))
    # from visible deviations, the way down to none is shorter than the way up
    points[:, 1:6:2] += np.log(FIRST_RATIO)
    best = Walker(prior.center, -np.inf, first_guess(blocks), blocks)
    for point in np.clip(points, prior.low, prior.high):
        best = max(best, _tried(blocks, prior, point, best.rate), key=lambda w: w.log_density)
    return best


def _best_in_steps(blocks: Blocks, prior: Plausible, start: Walker) -> Walker:
    """The most probable point if the slow field is constant in each period, and new in the next."""
    best = Walker(start.point, -np.inf, start.rate, blocks)
    for deviation in STEP_DEVIATIONS:
        point = start.point.copy()
        point[2], point[3], point[5] = prior.center[2], np.log(deviation), prior.center[5]
        best = max(best, _tried(blocks, prior, point, best.rate), key=lambda w: w.log_density)
    return _climbed(prior, best, SIMPLEX_SIDES[1])


def _climbed(prior: Plausible, start: Walker, side: float) -> Walker:
    """The most probable point that a simplex finds."""
    best = start

    def loss(x: Floats) -> float:
        nonlocal best
        point = prior.center + prior.spread * x
        excess = np.maximum(prior.low - point, 0.0) + np.maximum(point - prior.high, 0.0)
        trial = _tried(start.blocks, prior, np.clip(point, prior.low, prior.high), best.rate)
        best = max(best, trial, key=lambda w: w.log_density)
        return float(excess.sum()) * 10.0 - trial.log_density

    x = (start.point - prior.center) / prior.spread
    simplex = np.vstack([x, x + side * np.where(x > 0.0, -1.0, 1.0) * np.eye(7)])
    options = {"initial_simplex": simplex, "maxfev": CLIMBING_TRIALS, "fatol": 0.1, "xatol": 0.01}
    minimize(loss, x, method="Nelder-Mead", options=options)
    return best


def _reach(prior: Plausible, best: Walker, axis: int) -> float:
    """How far the density falls by about half a nat along an axis, from trials at two distances."""
    step = 0.5 * prior.spread[axis]
    for _ in range(MAX_REACH_TRIALS):
        side = -1.0 if best.point[axis] + step > prior.high[axis] else 1.0
        point = best.point + side * step * np.eye(7)[axis]
        if point[axis] < prior.low[axis]:
            return float(0.5 * step)
        fall = best.log_density - _tried(best.blocks, prior, point, best.rate).log_density
        if fall < MAX_FALL:
            break
        step *= 0.7 * np.sqrt(MAX_FALL / fall)
    return float(step * np.sqrt(0.5 / max(fall, 0.5)))


def first_guess(blocks: Blocks) -> Floats:
    y, E = blocks.counts, blocks.means
    return np.divide(y + E, 2.0 * E, out=np.ones(len(y)), where=E > 0.0)


def _tried(blocks: Blocks, prior: Plausible, point: Floats, guess: Floats) -> Walker:
    fields = as_fields(point)
    mode = find_mode(blocks, chain(fields, blocks), fields.bend, guess)
    log_density = mode.log_evidence + prior.log_density(point)
    log_density += log_jump_chance(blocks, blocks.jump)
    return Walker(point, log_density, mode.rate, blocks)


def _moved(prior: Plausible, walkers: list[Walker], rng: np.random.Generator) -> list[Walker]:
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
                trial = _tried(walker.blocks, prior, point, walker.rate)
                ratio = 6.0 * np.log(g) + trial.log_density - walker.log_density
                walker = trial if np.log(chance) < ratio else walker
            moved.append(walker)
        walkers = moved + others if side.start == 0 else others + moved
    return walkers


def _jumped(
    prior: Plausible, walker: Walker, trials: JumpTrials, rng: np.random.Generator
) -> Walker:
    """A walker after its level may have jumped before another block, or not at all."""
    blocks, chance = trials.drawn(rng), rng.random()
    former = walker.blocks.jump
    if blocks.jump == former:
        return walker
    trial = _tried(blocks, prior, walker.point, walker.rate)
    ratio = trial.log_density - walker.log_density
    ratio += float(trials.log_chances[former] - trials.log_chances[blocks.jump])
    return trial if np.log(chance) < ratio else walker
