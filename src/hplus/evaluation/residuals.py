"""Residuals of a rate: observed and expected counts, by place and by predicted rate.

All expected counts are scaled to the number of events, so that the shape of a rate is tested and
not its total: a rate fitted to one part of the events can be checked on the rest.
"""

from __future__ import annotations

from dataclasses import field
from typing import final

import numpy as np
from scipy.stats import chi2, poisson

from hplus._checks import Bools, Floats, Ints, frozen_array
from hplus._values import Value, value
from hplus.windows import Window

MIN_EXPECTED = 5.0
"""Cells with fewer expected events are merged before a chi-square test."""

LATTICE_POINTS = 2**18
"""Approximate number of points of the lattice that represents a window."""

THINNED_SHARE = 0.05
"""Share of the expected events, where the rate is lowest, that the thinning leaves out."""

CALIBRATION_LEVEL = 0.9
"""Confidence level of the intervals of a calibration."""

RATE_TOLERANCE = 1e-9
"""Rates with a relative difference of at most this are equal."""


@final
@value
class Predicted(Value):
    """Points X (n, d), events or nodes of equal volumes, with rate λ and exposure E at each.

    Events are observed with intensity λE.
    """

    X: Floats
    rates: Floats
    exposures: Floats

    @property
    def intensities(self) -> Floats:
        """λE at each point, shape (n,)."""
        return self.rates * self.exposures


@value
class CountTable(Value):
    """Observed and expected counts of events in cells, shape (k,) each.

    `variation` φ is the variance of a count over its mean: 1 for independent events. Counts in
    units of φ events have their mean as variance.
    """

    observed: Floats
    expected: Floats
    variation: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        for name, array in self.get_params(deep=False).items():
            if name != "variation":
                self._set(**{name: frozen_array(name, array)})

    @property
    def residuals(self) -> Floats:
        """Pearson's (observed - expected)/√(φ expected), about N(0, 1) if the rate is right, (k,).

        Infinite for an event in a cell with expected count 0.
        """
        off, variance = self.observed - self.expected, self.variation * self.expected
        unexpected = np.where(off > 0.0, np.inf, 0.0)
        return np.divide(off, np.sqrt(variance), out=unexpected, where=variance > 0.0)

    @property
    def statistic(self) -> float:
        """Pearson's chi-square, Σ (observed - expected)²/(φ expected), small cells merged."""
        return self._tested()[0]

    @property
    def p_value(self) -> float:
        """The probability of a larger chi-square if the rate is right; 1 for a single cell."""
        return self._tested()[1]

    def _tested(self) -> tuple[float, float]:
        return chi_square(self.observed / self.variation, self.expected / self.variation)

    @property
    def relative_error(self) -> float:
        """How far expected counts are off, relative to them, beyond what chance explains.

        If the true counts are e(1 + δ), chi-square is about the degrees of freedom plus Σ eδ²: this
        is the root of the mean of δ² over events, 0 where chi-square is no larger than by chance.
        """
        expected = self.expected / self.variation
        excess = self.statistic - (len(np.unique(_groups(expected))) - 1)
        return float(np.sqrt(max(0.0, excess) / expected.sum()))


@final
@value
class Quadrats(CountTable):
    """Counts in the boxes low[i] <= x <= high[i], shape (k, d) each, within the window."""

    low: Floats
    high: Floats


@final
@value
class Thinned(Value):
    """Events kept so that their rate is `level` wherever it was higher: uniform there if it fits.

    With uneven exposure, rates are those where the exposure is largest.
    """

    points: Floats
    level: float
    quadrats: Quadrats


@final
@value
class Calibration(CountTable):
    """Counts in bins of the predicted rate, from the lowest tenth of the events to the highest.

    `rates` are the mean rates of the bins, `low` and `high` a 90 % interval of the counts.
    """

    rates: Floats
    low: Floats
    high: Floats


def chi_square(observed: Floats, expected: Floats) -> tuple[float, float]:
    """Σ (o - e)²/e over groups of cells with e >= 5, and its p-value; Σ o = Σ e.

    Cells that expect too few events are merged in order of their expected counts, whatever was
    observed in them.
    """
    groups = _groups(expected)
    o, e = np.bincount(groups, observed), np.bincount(groups, expected)
    if len(e) < 2:
        return 0.0, 1.0
    statistic = float((((o - e) ** 2) / e).sum())
    return statistic, float(chi2.sf(statistic, len(e) - 1))


def _groups(expected: Floats) -> Ints:
    """The group of each cell, shape (k,): every group expects at least 5 events."""
    groups, sums = np.zeros(len(expected), dtype=np.int64), [0.0]
    for cell in np.argsort(expected, kind="stable"):
        if sums[-1] >= MIN_EXPECTED:
            sums.append(0.0)
        groups[cell] = len(sums) - 1
        sums[-1] += expected[cell]
    return groups


@final
@value
class Tiling(Value):
    """The bounding box of a window, divided into equal cells, `shape` of them on each axis."""

    window: Window
    shape: tuple[int, ...]

    def index(self, X: Floats) -> Ints:
        """The index of the cell of X[i], shape (n,); the last axis is the fastest."""
        low, high = self.window.bounds()
        u = np.floor((X - low) / (high - low) * self.shape).astype(np.int64)
        inside = np.clip(u, 0, np.subtract(self.shape, 1))
        return np.ravel_multi_index(tuple(inside.T), self.shape)

    def totals(self, X: Floats, weights: Floats | None = None) -> Floats:
        """The number of points of X in each cell, or the sum of their weights, shape (cells,)."""
        return np.bincount(self.index(X), weights, minlength=int(np.prod(self.shape))).astype(float)

    def corners(self) -> tuple[Floats, Floats]:
        """The low and the high corner of each cell, shape (cells, d) each."""
        low, high = self.window.bounds()
        sides = (high - low) / self.shape
        cells = np.indices(self.shape).reshape(len(self.shape), -1).T
        return low + cells * sides, low + (cells + 1) * sides

    def quadrats(self, X: Floats, nodes: Floats, masses: Floats) -> Quadrats:
        """Counts of events X (n, d), and n times the share of the masses (q,) at nodes (q, d).

        Cells without either are left out.
        """
        observed, expected = self.totals(X), self.totals(nodes, len(X) * masses / masses.sum())
        kept = (expected > 0.0) | (observed > 0.0)
        low, high = self.corners()
        return Quadrats(observed[kept], expected[kept], low=low[kept], high=high[kept])


def quadrat_shape(count: float, dimension: int) -> tuple[int, ...]:
    """The number of quadrats on each axis, for 2√count in total, or count/5 if that is fewer."""
    total = min(2.0 * np.sqrt(count), count / MIN_EXPECTED)
    return (max(1, int(total ** (1.0 / dimension))),) * dimension


def lattice(window: Window, shape: tuple[int, ...]) -> Floats:
    """One point in each cell of a tiling finer than `shape`, those in the window, (q, d)."""
    side = LATTICE_POINTS ** (1.0 / len(shape))
    finer = Tiling(window, tuple(int(k * np.ceil(side / k)) for k in shape))
    low, high = finer.corners()
    nodes = low + (high - low) * _inside(len(low), len(shape))
    return nodes[window.contains(nodes)]


def _inside(n: int, d: int) -> Floats | float:
    """The position of each node in its cell, (n, d): the middle or, with 3 axes, anywhere.

    There a lattice has so few nodes on each axis that it would miss small features: a Kronecker
    sequence gives every node different coordinates.
    """
    if d < 3:
        return 0.5
    return np.outer(np.arange(1, n + 1), np.sqrt([2.0, 3.0, 5.0][:d])) % 1.0


def thin_to_level(
    events: Predicted, nodes: Predicted, rng: np.random.RandomState
) -> tuple[Bools, float, Bools]:
    """Keep events with probability level/λE where λE >= level: their intensity is level there.

    The level is the intensity below which 5 % of the events are expected: at the lowest intensity
    hardly any would be left. It depends on the rate alone, not on the events. Returns whether each
    event is kept, (n,), the level, and whether λE >= level at each node, (q,).
    """
    at_events, at_nodes = events.intensities, nodes.intensities
    share = np.array([THINNED_SHARE])
    level = float(_levels(at_nodes, at_nodes, share)[0]) * (1.0 - RATE_TOLERANCE)
    kept = rng.random_sample(len(events.X)) * at_events < level
    return kept & (at_events >= level), level, at_nodes >= level


def calibration(events: Predicted, nodes: Predicted, bins: int = 10) -> Calibration:
    """Observed and expected counts by tenths of the expected events, in order of their rate.

    Bins with equal rates are merged.
    """
    cuts = _cuts(nodes.rates, nodes.intensities, bins)
    cell, size = np.searchsorted(cuts, nodes.rates), len(cuts) + 1
    exposure, mass = (np.bincount(cell, w, size) for w in (nodes.exposures, nodes.intensities))
    expected = len(events.X) * mass / mass.sum()
    observed = np.bincount(np.searchsorted(cuts, events.rates), minlength=size).astype(float)
    low, high = count_limits(expected)
    return Calibration(observed, expected, rates=mass / exposure, low=low, high=high)


def count_limits(expected: Floats, variation: float = 1.0) -> tuple[Floats, Floats]:
    """A 90 % interval of counts whose variance is φ times their mean, shape (k,) each."""
    low, high = poisson.interval(CALIBRATION_LEVEL, expected / variation)
    return variation * low, variation * high


def _cuts(node_rates: Floats, masses: Floats, bins: int) -> Floats:
    """Rates that separate bins of equal expected count, slightly above those of nodes.

    Shape (bins - 1,), or fewer where the rate has plateaus, so that no bin is empty.
    """
    cuts = _levels(node_rates, masses, np.arange(1, bins) / bins) * (1.0 + RATE_TOLERANCE)
    cuts = cuts[cuts < node_rates.max()]
    return cuts[cuts > np.append(0.0, cuts[:-1]) * (1.0 + 2.0 * RATE_TOLERANCE)]


def _levels(node_rates: Floats, masses: Floats, shares: Floats) -> Floats:
    """The rates below which these shares of the mass at the nodes lie, shape (k,)."""
    order = np.argsort(node_rates, kind="stable")
    mass = np.cumsum(masses[order])
    return node_rates[order][np.searchsorted(mass, shares * mass[-1])]
