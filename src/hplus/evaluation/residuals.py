"""Residuals of a rate: counts of events beside counts expected, by place and by predicted rate.

All expected counts are scaled to the number of events, so that the shape of a rate is judged, not
its total: a rate fitted to a part of the events may be checked on the rest.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from scipy.stats import chi2, kstest, poisson

from hplus._checks import Bools, Floats, Ints, frozen_array
from hplus._values import Value, value
from hplus.windows import Window

LEAST_EXPECTED = 5.0
"""Cells that expect fewer events are joined before a chi-square test."""

LATTICE = 2**18
"""Points of the lattice that stands for a window, about."""

THINNED_SHARE = 0.05
"""Share of the expected events that is left out of the thinning, where the rate is lowest."""

LEVEL = 0.9
"""Level of the intervals of a calibration table."""

ROUNDING = 1e-9
"""Rates that differ by this share are the same."""


@final
@value
class Predicted(Value):
    """Events X (n, d) and nodes (q, d) for equal volumes, with rate λ and exposure E at each.

    Events are seen at the intensity λE.
    """

    X: Floats
    rates: Floats
    exposures: Floats
    nodes: Floats
    node_rates: Floats
    node_exposures: Floats

    @property
    def intensities(self) -> Floats:
        """λE at each event, shape (n,)."""
        return self.rates * self.exposures

    @property
    def node_intensities(self) -> Floats:
        """λE at each node, shape (q,)."""
        return self.node_rates * self.node_exposures


@value
class Counts(Value):
    """Observed and expected counts of events in cells, shape (k,) each."""

    observed: Floats
    expected: Floats

    def __post_init__(self) -> None:
        for name, array in self.get_params(deep=False).items():
            self._set(**{name: frozen_array(name, array)})

    @property
    def residuals(self) -> Floats:
        """Pearson's (observed - expected)/√expected, about N(0, 1) if the rate is right, (k,).

        Infinite for an event where none was expected.
        """
        off = self.observed - self.expected
        unexpected = np.where(off > 0.0, np.inf, 0.0)
        return np.divide(off, np.sqrt(self.expected), out=unexpected, where=self.expected > 0.0)

    @property
    def statistic(self) -> float:
        """Pearson's chi-square, Σ (observed - expected)²/expected over cells that expect 5."""
        return chi_square(self.observed, self.expected)[0]

    @property
    def p_value(self) -> float:
        """The chance of a larger chi-square if the rate is right; 1 for a single cell."""
        return chi_square(self.observed, self.expected)[1]


@final
@value
class Quadrats(Counts):
    """Counts in the boxes low[i] <= x <= high[i], shape (k, d) each, within the window."""

    low: Floats
    high: Floats


@final
@value
class Thinned(Value):
    """Events kept so that their rate is `level` wherever it was more; uniform there if it fits.

    Where exposure is uneven, rates are those where it is largest.
    """

    points: Floats
    level: float
    quadrats: Quadrats


@final
@value
class Calibration(Counts):
    """Counts where the rate is about so high, from the lowest tenth of events to the highest.

    `rates` are the mean rates of the bins, `low` and `high` bound 90 % of the Poisson counts.
    """

    rates: Floats
    low: Floats
    high: Floats


@final
@value
class Rescaling(Value):
    """Times Λ(t_i)/Λ(T), sorted, uniform on [0, 1] if the rate is right, and a test of that.

    `gaps` between them, n times as long, are about exponential with mean 1; shape (n,) each.
    """

    times: Floats
    gaps: Floats
    statistic: float
    p_value: float


def rescale_time(increments: Floats) -> Rescaling:
    """Kolmogorov and Smirnov's test of Λ(t_i)/Λ(T), from ∫λ up to, between and after n events.

    Shape (n + 1,), in the order of time.
    """
    total = np.cumsum(increments)
    times = total[:-1] / total[-1]
    test = kstest(times, "uniform")
    gaps = len(times) * increments[:-1] / total[-1]
    return Rescaling(times, gaps, float(test.statistic), float(test.pvalue))


def chi_square(observed: Floats, expected: Floats) -> tuple[float, float]:
    """Σ (o - e)²/e over groups of cells with e >= 5, and its p-value; Σ o = Σ e.

    Cells that expect too little are joined, from the least expected on, unseen what they observed.
    """
    groups = _groups(expected)
    o, e = np.bincount(groups, observed), np.bincount(groups, expected)
    if len(e) < 2:
        return 0.0, 1.0
    statistic = float((((o - e) ** 2) / e).sum())
    return statistic, float(chi2.sf(statistic, len(e) - 1))


def _groups(expected: Floats) -> Ints:
    """The number of each cell's group, shape (k,): in every group 5 events are expected."""
    groups, sums = np.zeros(len(expected), dtype=np.int64), [0.0]
    for cell in np.argsort(expected, kind="stable"):
        if sums[-1] >= LEAST_EXPECTED:
            sums.append(0.0)
        groups[cell] = len(sums) - 1
        sums[-1] += expected[cell]
    return groups


@final
@value
class Cells(Value):
    """The box around a window, cut into equal boxes, `shape` of them on each axis."""

    window: Window
    shape: tuple[int, ...]

    def of(self, X: Floats) -> Ints:
        """The number of the cell of X[i], shape (n,); the last axis counts fastest."""
        low, high = self.window.bounds()
        u = np.floor((X - low) / (high - low) * self.shape).astype(np.int64)
        inside = np.clip(u, 0, np.subtract(self.shape, 1))
        return np.ravel_multi_index(tuple(inside.T), self.shape)

    def totals(self, X: Floats, weights: Any = None) -> Floats:
        """How many points of X lie in each cell, or the sum of their weights, shape (cells,)."""
        return np.bincount(self.of(X), weights, minlength=int(np.prod(self.shape))).astype(float)

    def corners(self) -> tuple[Floats, Floats]:
        """The low and the high corner of each cell, shape (cells, d) each."""
        low, high = self.window.bounds()
        sides = (high - low) / self.shape
        index = np.indices(self.shape).reshape(len(self.shape), -1).T
        return low + index * sides, low + (index + 1) * sides

    def quadrats(self, X: Floats, nodes: Floats, masses: Floats) -> Quadrats:
        """Events X (n, d) beside n shares of the masses (q,) at nodes (q, d); empty cells go."""
        observed, expected = self.totals(X), self.totals(nodes, len(X) * masses / masses.sum())
        kept = (expected > 0.0) | (observed > 0.0)
        low, high = self.corners()
        return Quadrats(observed[kept], expected[kept], low=low[kept], high=high[kept])


def quadrat_shape(count: float, dimension: int) -> tuple[int, ...]:
    """As many quadrats on each axis as make 2√count of them, or count/5 if that is fewer."""
    total = min(2.0 * np.sqrt(count), count / LEAST_EXPECTED)
    return (max(1, int(total ** (1.0 / dimension))),) * dimension


def lattice(window: Window, shape: tuple[int, ...]) -> Floats:
    """Midpoints, those in the window, of cells that cut each of `shape` boxes finer, (q, d)."""
    side = LATTICE ** (1.0 / len(shape))
    finer = Cells(window, tuple(int(k * np.ceil(side / k)) for k in shape))
    low, high = finer.corners()
    nodes = low + (high - low) * _inside(len(low), len(shape))
    return nodes[window.contains(nodes)]


def _inside(n: int, d: int) -> Any:
    """Where in its cell each node is, (n, d): in the middle or, in space and time, anywhere.

    There a lattice has so few nodes on each axis that it would miss what is small: a Kronecker
    sequence gives every node coordinates of its own.
    """
    if d < 3:
        return 0.5
    return np.outer(np.arange(1, n + 1), np.sqrt([2.0, 3.0, 5.0][:d])) % 1.0


def thin_to_level(seen: Predicted, rng: Any) -> tuple[Floats, float, Bools]:
    """Events kept with probability level/λE where λE >= level: they are seen at level there.

    The level is the intensity below which 5 % of the events are expected: at the lowest of all
    hardly any would be left. It depends on the rate alone, not on the events. Returns the events
    (m, d), the level, and whether each node lies where λE >= level, (q,).
    """
    at_events, at_nodes = seen.intensities, seen.node_intensities
    share = np.array([THINNED_SHARE])
    level = float(_levels(at_nodes, at_nodes, share)[0]) * (1.0 - ROUNDING)
    kept = rng.random_sample(len(seen.X)) * at_events < level
    return seen.X[kept & (at_events >= level)], level, at_nodes >= level


def calibration(seen: Predicted, bins: int = 10) -> Calibration:
    """Events and expected events by tenths of the expected events in order of their rate.

    Bins between which the rate does not differ are joined.
    """
    cuts = _cuts(seen.node_rates, seen.node_intensities, bins)
    cell, size = np.searchsorted(cuts, seen.node_rates), len(cuts) + 1
    watched, mass = (
        np.bincount(cell, weights, size) for weights in (seen.node_exposures, seen.node_intensities)
    )
    expected = len(seen.X) * mass / mass.sum()
    observed = np.bincount(np.searchsorted(cuts, seen.rates), minlength=size).astype(float)
    low, high = poisson.interval(LEVEL, expected)
    return Calibration(observed, expected, rates=mass / watched, low=low, high=high)


def _cuts(node_rates: Floats, masses: Floats, bins: int) -> Floats:
    """Rates between bins of equal expected count, a little above those of nodes, (bins - 1,).

    Fewer where the rate has plateaus, so that no bin is empty.
    """
    cuts = _levels(node_rates, masses, np.arange(1, bins) / bins) * (1.0 + ROUNDING)
    cuts = cuts[cuts < node_rates.max()]
    return cuts[cuts > np.append(0.0, cuts[:-1]) * (1.0 + 2.0 * ROUNDING)]


def _levels(node_rates: Floats, masses: Floats, shares: Floats) -> Floats:
    """The rates below which these shares of the masses at the nodes lie, shape (k,)."""
    order = np.argsort(node_rates, kind="stable")
    mass = np.cumsum(masses[order])
    return node_rates[order][np.searchsorted(mass, shares * mass[-1])]
