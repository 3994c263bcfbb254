"""Jumps of the level: how much more likely counts are if it jumped once, and jumps to come.

After a jump, the level differs by a normal variable from the long-run one, until it jumps again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from hplus._checks import Floats
from hplus.rates.forecasts.kalman import smoothed
from hplus.rates.forecasts.log_rate import JUMP_DEVIATION, Blocks, Chain, Mode, rate_of

JUMP_CHANCE = 0.1
"""The chance that the level jumped during the observation period, before any count is seen."""

JUMP_SHAPE = 0.2
"""The shape of the gamma distribution of how often it jumps."""

CHANGE_SHARE = 0.5
"""The share of it that is for the times of changes, if some are known."""

JUMP_NODES = 48
"""Blocks at which the information on a jump is computed; it is interpolated between them."""

LASTING_SHARE, LASTING_BLOCKS = 0.04, 8
"""How long a jump has lasted, at least; else it may be an outlier or an incomplete record."""

LEAST_BLOCKS = 16
"""Blocks that must be observed before a jump is looked for."""


@dataclass(frozen=True)
class JumpTrials:
    """Blocks with a jump of the level before one of them or, for number 0, with none.

    `log_chances` (n,) are those with which each number is tried.
    """

    blocks: Blocks
    log_chances: Floats

    @cached_property
    def _ends(self) -> Floats:
        return np.exp(self.log_chances).cumsum()

    @cached_property
    def _made(self) -> dict[int, Blocks]:
        return {self.blocks.jump: self.blocks}

    def at(self, jump: int) -> Blocks:
        """The blocks with a jump before this one."""
        if jump not in self._made:
            self._made[jump] = replace(self.blocks, jump=jump)
        return self._made[jump]

    def drawn(self, rng: np.random.Generator) -> Blocks:
        """The blocks with a jump drawn by its chance."""
        return self.at(int(np.searchsorted(self._ends, rng.random() * self._ends[-1])))


def make_jump_trials(blocks: Blocks, gains: Floats) -> JumpTrials:
    """As often none as any; before each block by its chance, given what it gains (n,)."""
    logs = gains + log_jump_chances(blocks)
    logs -= logsumexp(logs)
    logs[0] = 0.0
    return JumpTrials(blocks, logs)


def log_jump_chances(blocks: Blocks) -> Floats:
    """Logs of the chances of a jump before each block (n,), or of none, without any count."""
    jumps = range(len(blocks.counts))
    return np.array([log_jump_chance(blocks, jump) for jump in jumps])


def log_jump_chance(blocks: Blocks, jump: int) -> float:
    """The log of the chance of a jump before this block, or of none, without any count."""
    n, changes = len(blocks.counts), blocks.changes
    if not jump:
        return math.log1p(-JUMP_CHANCE)
    last = n - max(LASTING_BLOCKS, int(LASTING_SHARE * n))
    known = CHANGE_SHARE if changes else 0.0
    share = (1.0 - known) / last if jump <= last else 0.0
    share += known / len(changes) if jump in changes else 0.0
    return math.log(JUMP_CHANCE * share) if share > 0.0 else -math.inf


def jump_size(blocks: Blocks, mode: Mode, bend: float) -> float:
    """The most probable size of the jump of the level, 0 if there is none."""
    if not blocks.jump:
        return 0.0
    return JUMP_DEVIATION**2 * float(_score(blocks, mode, bend)[blocks.jump :].sum())


def later_chances(ends: Floats, span: float, jumps: int) -> Floats:
    """The chances that the level jumps again until each of the times after the last count.

    From a gamma distribution of how often it jumps, with mean JUMP_CHANCE in the span, given the
    jumps in the span.
    """
    hazard = (JUMP_SHAPE + jumps) / (JUMP_SHAPE / JUMP_CHANCE + 1.0) / span
    return -np.expm1(-hazard * np.maximum(ends, 0.0))


def jumped_again(paths: Floats, chances: Floats, size: float, rng: np.random.Generator) -> Floats:
    """Paths (m, n) some of which have a new level from a block on, instead of a jump so far."""
    when = np.searchsorted(chances, rng.random(len(paths)), side="right")
    new = JUMP_DEVIATION * rng.standard_normal(len(paths)) - size
    return paths + np.where(np.arange(len(chances)) >= when[:, None], new[:, None], 0.0)


def jump_gains(blocks: Blocks, links: Chain, mode: Mode, bend: float) -> Floats:
    """What a jump before each block adds to the log evidence (n,), to second order; -∞ for 0.

    With A the inverse covariance of what is observed, Aseen is the score of the counts at the
    mode, and a jump before block b adds J²uuᵀ to the covariance, u = 1 from b on.
    """
    n, w = len(blocks.counts), mode.precision
    at = np.unique(np.linspace(1, n - 1, JUMP_NODES).astype(int))
    information = np.empty(len(at))
    for i, b in enumerate(at):
        u = (np.arange(n) >= b).astype(float)
        rest = u - smoothed(links.F, links.kind, w, mode.variance, mode.gain, u)
        information[i] = (w * rest)[b:].sum()
    known = JUMP_DEVIATION**2 * np.interp(np.arange(n), at, information)
    forward = _score(blocks, mode, bend)[::-1].cumsum()[::-1]
    found = 0.5 * (JUMP_DEVIATION**2 * forward**2 / (1.0 + known) - np.log1p(known))
    found[0] = -np.inf
    return found


def _score(blocks: Blocks, mode: Mode, bend: float) -> Floats:
    """The derivative of the log likelihood by the path at the mode, (n,)."""
    g, slope = rate_of(mode.path, bend)
    return slope * (blocks.counts / g - blocks.means)
