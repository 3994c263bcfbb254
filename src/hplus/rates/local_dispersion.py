"""LocalDispersion: how much more the counts of a place vary over time than independent events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaincinv

from hplus._checks import Floats, Ints, check_nonnegative, check_positive
from hplus._values import Value, value
from hplus.rates.statistic import Statistic

TOGETHER_DEPTH = 10
"""Depth of the cells of places and times: 1,024 blocks of time."""

PLACE_DEPTHS, TIME_DEPTHS = range(1, 8), range(3, TOGETHER_DEPTH + 1)
"""Sizes of cells and lengths of blocks in which events are counted."""

MAX_TABLE = 2**21
"""Cells times blocks of a table of counts, at most."""

MIN_EVENTS_TOGETHER = 100
"""With fewer events, nothing can be said about how their counts vary."""

CLASSES = (0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0)
"""Cells are taken together in three classes with about as many events each, quiet to busy."""

SCALES = (1e-4, 1e-2, 1.0)
"""Scales that the search begins at."""

BOUNDS = ((-14.0, 7.0), (0.0, 1.0), (0.0, 1.0))
"""Of the logarithm of the scale, and of the two exponents."""

LAW_ERROR = 0.5
"""The law is taken to be wrong by this fraction, whatever the number of events."""

SHAPE_STEP = 0.02
"""Shapes of gamma variables are rounded to this fraction, so that few of them are computed."""

MIN_DRAWS = 1024
"""Draws of a mean with local variation, at least."""


@final
@value
class LocalDispersion(Value):
    """The extra variance of counts to come in a part of the window, given that of the whole.

    A count with mean m, of a part that holds the share p of all events, over a time T has the
    variance m + m (1 - p) x with the excess x = scale m^growth (T/unit)^lasting: 0 for independent
    events. `growth` is 0 for clusters that are smaller than the parts, and 1 for a rate that
    varies alike everywhere in them.
    """

    scale: float
    growth: float
    lasting: float
    unit: float

    def __post_init__(self) -> None:
        names = ("scale", "growth", "lasting")
        self._set(**{name: check_nonnegative(name, getattr(self, name)) for name in names})
        self._set(unit=check_positive("unit", self.unit))

    def excess(self, means: Floats, time: float, share: Floats | float = 0.0) -> Floats:
        """(1 - p) x for counts with these means over a time, shape (r,)."""
        x = self.scale * means**self.growth * (time / self.unit) ** self.lasting
        return np.clip(1.0 - share, 0.0, 1.0) * x

    def varied(self, draws: Floats, time: float, shares: Floats) -> Floats:
        """Draws (r, k) of mean counts, each times a gamma variable: counts become mixtures.

        Poisson with such a mean is negative binomial.
        """
        means = draws.mean(axis=1)
        excess = self.excess(means, time, shares)
        count = draws.shape[1] * -(-MIN_DRAWS // draws.shape[1])
        # each quantile of the gamma variable is used once, with draws in a random order
        order = np.random.default_rng(0).permutation(count) % draws.shape[1]
        found, some = draws[:, order], np.flatnonzero(excess * means > 0.0)
        shapes = means[some] / excess[some]
        kinds, kind = np.unique(np.rint(np.log(shapes) / SHAPE_STEP), return_inverse=True)
        found[some] *= _gamma_quantiles(np.exp(SHAPE_STEP * kinds), count)[kind]
        return found


def _gamma_quantiles(shapes: Floats, count: int) -> Floats:
    """Equally likely values of gamma variables with mean 1, shape (s, count)."""
    u = (np.arange(count) + 0.5) / count
    found = gammaincinv(shapes[:, None], u)
    return found / np.maximum(found.mean(axis=1, keepdims=True), np.finfo(float).tiny)


class Excess(NamedTuple):
    """The excess of cells of one class: mean count, length of a block, excess, its error."""

    mean: float
    time: float
    excess: float
    error: float


def together(events: Statistic) -> Statistic:
    """Events by place and time, in cells that are coarse enough to be compared."""
    return events.coarsened(min(events.depth, TOGETHER_DEPTH))


def learn_local_dispersion(events: Statistic) -> LocalDispersion | None:
    """The law of the excess, from events by place and time (the last axis); None if too few.

    Counts of cells in later blocks of time are compared with what the cell's share of all earlier
    events expects, given the total of the block, for several sizes of cells and lengths of blocks.
    """
    if events.events < MIN_EVENTS_TOGETHER:
        return None
    found = list(_excesses(events))
    if not found:
        return None
    return _law(found, float(events.lattice.sides[-1]))


def _excesses(events: Statistic) -> Iterator[Excess]:
    depth, at = events.depth, events.lattice.indices(events.codes)
    span = float(np.ptp(events.window.bounds(), axis=0)[-1])
    length = float(events.lattice.sides[-1])
    for finer in (d for d in PLACE_DEPTHS if d <= depth):
        cells = _numbered(at[:, :-1] >> (depth - finer))
        for block in (d for d in TIME_DEPTHS if d <= depth):
            blocks = int(np.ceil(span / length * 2**block))
            if (int(cells.max()) + 1) * blocks > MAX_TABLE or cells.max() == 0:
                continue
            when = at[:, -1] >> (depth - block)
            counts = np.zeros((int(cells.max()) + 1, blocks))
            np.add.at(counts, (cells, when), events.masses)
            yield from _of_table(counts, length * 0.5**block)


def _numbered(cells: Ints) -> Ints:
    """Numbers of distinct rows, (n,)."""
    return np.unique(cells, axis=0, return_inverse=True)[1].ravel()


def _of_table(counts: Floats, time: float) -> Iterator[Excess]:
    """The excess in a table of cells × blocks, whose later half is predicted block by block."""
    before = np.cumsum(counts, axis=1) - counts
    later = slice(counts.shape[1] // 2, None)
    n, past = counts[:, later], before[:, later]
    total, earlier = n.sum(axis=0), past.sum(axis=0)
    expected = total * past / np.maximum(earlier, 1.0)
    share = counts.sum(axis=1) / counts.sum()
    mean = share[:, None] * total
    # chance in the count, and in the share that is known from earlier events
    chance = mean * (1.0 - share[:, None]) * (1.0 + total / np.maximum(earlier, 1.0))
    over = ((n - expected) ** 2 - chance).sum(axis=1)
    weight = (mean * (1.0 - share[:, None])).sum(axis=1)
    noise = (chance + 2.0 * chance**2).sum(axis=1)
    order = np.argsort(share)
    below = np.cumsum(share[order])
    for low, high in pairwise(CLASSES):
        kind = order[(below > low) & (below <= high + 1e-9)]
        if len(kind) and weight[kind].sum() > 0.0:
            held, size = weight[kind].sum(), (mean[kind] ** 2).sum() / mean[kind].sum()
            error = np.sqrt(noise[kind].sum()) / held
            yield Excess(float(size), time, float(over[kind].sum() / held), float(error))


def _law(found: list[Excess], unit: float) -> LocalDispersion:
    """The most likely law, if excesses are normal around it."""
    mean, time, excess, error = np.array(found).T
    logs = np.log([mean, time / unit])

    def misfit(free: Floats) -> float:
        law = np.exp(free[0] + free[1:] @ logs)
        variance = (error * (1.0 + law)) ** 2 + (LAW_ERROR * law) ** 2
        return float(np.sum((excess - law) ** 2 / variance + np.log(variance)))

    starts = [(np.log(scale), 0.5, 0.2) for scale in SCALES]
    tried = [minimize(misfit, start, bounds=BOUNDS, method="L-BFGS-B") for start in starts]
    best = min(tried, key=lambda result: float(result.fun))
    log_scale, growth, lasting = map(float, best.x)
    return LocalDispersion(float(np.exp(log_scale)), growth, lasting, unit)
