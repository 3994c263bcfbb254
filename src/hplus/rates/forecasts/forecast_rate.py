"""A rate in time and beyond it, with all its futures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from hplus._checks import Floats, Ints
from hplus._values import Value, value
from hplus.rates.forecasts.beta_laws import draw_times
from hplus.rates.forecasts.block_edges import BlockEdges
from hplus.rates.forecasts.cycle_factor import PARTS_AT_ONCE, Cycles
from hplus.rates.forecasts.level_jumps import jump_size, jumped_again, later_chances
from hplus.rates.forecasts.log_rate import (
    JUMP_DEVIATION,
    Blocks,
    chain,
    draw_paths,
    find_mode,
    mean_rate,
    rate_of,
    variances,
)
from hplus.rates.forecasts.plausible_fields import as_fields
from hplus.rates.forecasts.weighing import first_guess
from hplus.windows import Interval, Window
from hplus.wording import quantity

PATHS_EACH = 20
"""Log rates that are drawn for each prior."""

USUAL_SHARE = 0.99
"""The share of the means of a count that its dispersion is taken from."""


@final
@value
class Dispersion(Value):
    """How much more a count to come varies than a Poisson count of the same mean.

    `index` is its variance over its mean, 1 for a Poisson process; `length` is how long is counted.
    """

    index: float
    length: float
    unit: str = ""

    def __str__(self) -> str:
        return (
            f"the count of the next {quantity(self.length, self.unit)} has {self.index:.3g} times "
            "the variance of a Poisson count of the same mean"
        )


@dataclass(frozen=True)
class ForecastRate:
    """λ(t) = base · g(z(block of t)) · Π factor(phase of t), for equally likely priors of z.

    `edges` are those of the blocks, the first `observed` of which were observed, with `counts` and
    `means`, what base · Π factor expects there. `priors` (p, 7) are those of z: `as_fields`, and
    `jumps` (p,) the block before which its level jumped, or 0; `slow_steps` is the time before each
    block that passes for its slow field.
    """

    edges: Floats
    observed: int
    counts: Floats
    means: Floats
    base: float
    priors: Floats
    jumps: Ints
    slow_steps: Floats
    cycles: Cycles
    seed: int

    @cached_property
    def timeline(self) -> BlockEdges:
        return BlockEdges(self.edges, self.observed)

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        """The mean of g(z) in each block (n,), and g(z) in each block for all paths (n, k)."""
        n = len(self.edges) - 1
        counts, means = np.zeros((2, n))
        counts[: self.observed], means[: self.observed] = self.counts, self.means
        steady = Blocks(counts, means, self.timeline.steps, self.slow_steps)
        rng, now = np.random.default_rng(self.seed), self.timeline.now
        guess, mean, paths = first_guess(steady), np.zeros(n), []
        for point, jump in zip(self.priors, self.jumps, strict=True):
            fields, blocks = as_fields(point), replace(steady, jump=int(jump))
            links = chain(fields, blocks)
            mode = find_mode(blocks, links, fields.bend, guess)
            guess = mode.rate
            spread, size = variances(links, mode), jump_size(blocks, mode, fields.bend)
            again = later_chances(self.edges[1:] - now, now - self.edges[0], jump > 0)
            stays = mean_rate(mode.path, spread, fields.bend)
            other = mean_rate(mode.path - size, spread + JUMP_DEVIATION**2, fields.bend)
            mean += (stays + again * (other - stays)) / len(self.priors)
            drawn = jumped_again(draw_paths(links, mode, PATHS_EACH, rng), again, size, rng)
            paths.append(rate_of(drawn, fields.bend)[0].T)
        return mean, np.hstack(paths)

    @cached_property
    def bends(self) -> Floats:
        """Edges of blocks, and the times between them where a factor bends."""
        return np.union1d(self.edges, self.cycles.edges(*self.edges[[0, -1]].tolist()))

    def function(self, times: Floats) -> Floats:
        """The mean rate at each time, (n,)."""
        return self.base * self._solved[0][self.timeline.blocks_of(times)] * self.cycles.at(times)

    def rate_draws(self, times: Floats) -> Floats:
        """Equally likely rates at each time, (n, k): the same paths for all times."""
        return self._times_cycles(
            self.base * self._solved[1][self.timeline.blocks_of(times)], self.cycles.draws_at(times)
        )

    def interval(self, times: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each time with probability `level`, (n,) each."""
        tail = 0.5 * (1.0 - level)
        low, high = np.quantile(self.rate_draws(times), [tail, 1.0 - tail], axis=1)
        return low, high

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫ of the mean rate over each region, (r,)."""
        found = np.zeros(len(regions))
        for r, region in enumerate(regions):
            for blocks, factors in self._parts(region):
                found[r] += self.base * float(self._solved[0][blocks] @ factors.mean(axis=1))
        return found

    def count_draws(self, regions: Sequence[Window]) -> Floats:
        """Equally likely mean counts of each region, (r, k): the same paths for all regions."""
        paths = self._solved[1]
        found = np.zeros((len(regions), paths.shape[1]))
        for r, region in enumerate(regions):
            for blocks, factors in self._parts(region):
                found[r] += self.base * self._times_cycles(paths[blocks], factors).sum(axis=0)
        return found

    def _parts(self, region: Window) -> Iterator[tuple[Ints, Floats]]:
        """Blocks of a region, and ∫ of the product of all cycles over their part of it, (b, draws).

        Chunk by chunk.
        """
        bends, (low, high) = self.bends, np.concatenate(region.bounds()).tolist()
        first = max(int(np.searchsorted(bends, low, side="right")) - 1, 0)
        last = min(int(np.searchsorted(bends, high, side="left")), len(bends) - 1)
        for start in range(first, last, PARTS_AT_ONCE):
            edges = bends[start : min(start + PARTS_AT_ONCE, last) + 1]
            each = self.cycles.masses(np.clip(edges, low, high)).sum(axis=1)
            blocks = self.timeline.blocks_of(0.5 * (edges[1:] + edges[:-1]))
            starts = np.flatnonzero(np.diff(blocks, prepend=-1))
            yield blocks[starts], np.add.reduceat(each, starts, axis=0)

    @staticmethod
    def _times_cycles(paths: Floats, factors: Floats) -> Floats:
        """Paths (n, k) times factors (n, draws), which are used in turn."""
        k = np.arange(paths.shape[1]) % factors.shape[1]
        return paths * factors[:, k]

    def dispersion(self, unit: str) -> Dispersion:
        """How much more the count of the horizon varies, or of the last block if there is none.

        Means beyond USUAL_SHARE of all count as if at its ends: the variance would be that of the
        few surges which happened to be drawn.
        """
        start, end = self.timeline.now, float(self.edges[-1])
        start = start if end > start else start - self.timeline.block
        means = self.count_draws([Interval(start, end)])[0]
        tail = 0.5 * (1.0 - USUAL_SHARE)
        means = np.clip(means, *np.quantile(means, [tail, 1.0 - tail]))
        return Dispersion(1.0 + float(np.var(means) / np.mean(means)), end - start, unit)

    def sample(self, n_paths: int, rng: np.random.RandomState) -> list[Floats]:
        """Times of events to come, (n_i, 1) each, along paths drawn at random."""
        edges = self.bends[self.bends >= self.timeline.now]
        if len(edges) < 2:
            return [np.zeros((0, 1)) for _ in range(n_paths)]
        blocks = self.timeline.blocks_of(0.5 * (edges[1:] + edges[:-1]))
        paths, found = self.base * self._solved[1], []
        for path in rng.randint(paths.shape[1], size=n_paths):
            means = paths[blocks, path, None] * self.cycles.draw(path).masses(edges)[..., 0]
            chosen: Ints = np.repeat(np.arange(means.size), rng.poisson(means).ravel())
            found.append(np.sort(draw_times(edges, chosen, means.shape[1], rng))[:, None])
        return found
