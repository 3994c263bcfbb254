"""Goodness of fit of a self-exciting rate: its count, gaps in rescaled time, counts by place."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.special import pdtr, pdtrc
from scipy.stats import chi2

from hplus._checks import Floats, frozen_array
from hplus._values import Value, value
from hplus.rates.excitation.conditional_rate import ConditionalRate, under_draws
from hplus.rates.excitation.expected_cells import expected_cells
from hplus.rates.excitation.rescaled import rescaled_times
from hplus.rates.gaps import Gaps, Neighbours, gap_test, grouped_gaps, neighbour_test
from hplus.rates.rejections import rejected
from hplus.wording import counted, listed

CELLS_PER_SIDE, CELLS = 4, 16
"""Cells of the grid of places, on each side, and of places on one axis."""

LEAST_EXPECTED = 5.0
"""Cells in which fewer events are expected are counted together."""

FAULT_LEVEL = 0.05
"""The probability, at most, that any check rejects a rate that is right."""

FEWEST_JUDGED = 10.0
"""Events, observed or expected, with fewer of which a rate is not said to fit."""


@final
@value
class TotalCount(Value):
    """A two-sided test of the number of events against what the rate expects.

    `statistic` is their difference in standard deviations, of a Poisson count and of what the
    weights of the rate leave open.
    """

    statistic: float
    p_value: float


@final
@value
class PlaceCounts(Value):
    """Observed and expected counts in cells of the region, and Pearson's test.

    Cells are (4, 4) in the plane and (16,) on one axis.

    Given the events before, counts are Poisson around what the rate expects.
    """

    observed: Floats
    expected: Floats
    statistic: float
    p_value: float

    def __post_init__(self) -> None:
        for name in ("observed", "expected"):
            self._set(**{name: frozen_array(name, getattr(self, name))})

    @property
    def residuals(self) -> Floats:
        """(observed - expected) / √expected; 0 outside the region."""
        return (self.observed - self.expected) / np.sqrt(np.maximum(self.expected, 1e-12))


@final
@value
class ExcitationCheck(Value):
    """The results of all checks of a self-exciting rate; `print` it for a table.

    `count` events were observed where `expected` were expected, each given those before it, which
    `total` tests. `gaps` and `neighbours` are None for fewer than ten gaps, `places` without
    places.
    """

    count: int
    expected: float
    total: TotalCount
    gaps: Gaps | None
    neighbours: Neighbours | None
    places: PlaceCounts | None

    @property
    def p_values(self) -> dict[str, float]:
        """The p-value of each check by name."""
        return {name: part.p_value for name, part in self._parts().items()}

    @property
    def faults(self) -> tuple[str, ...]:
        """The checks that reject the rate, by Holm's rule."""
        return rejected(self.p_values, FAULT_LEVEL)

    @property
    def verdict(self) -> str:
        """Whether the rate fits, in a sentence."""
        events = f"{counted(self.count)}, {self.expected:,.1f} expected"
        if self.faults:
            return f"The rate does not fit, according to {listed(self.faults)} ({events})."
        if max(self.count, self.expected) < FEWEST_JUDGED:
            return f"Too few events to tell whether the rate fits ({events})."
        return f"The rate fits: no check rejects it ({events})."

    def __str__(self) -> str:
        rows = [
            f"{name:<16}{part.statistic:>10.4g}{part.p_value:>10.3g}"
            for name, part in self._parts().items()
        ]
        return "\n".join(
            [self.verdict, *self._remarks(), "",
             f"{'check':<16}{'statistic':>10}{'p-value':>10}", *rows]
        )  # fmt: skip

    def _parts(self) -> dict[str, TotalCount | Gaps | Neighbours | PlaceCounts]:
        parts = {"count": self.total, "gaps": self.gaps, "neighbours": self.neighbours,
                 "places": self.places}  # fmt: skip
        return {name: part for name, part in parts.items() if part is not None}

    def _remarks(self) -> list[str]:
        """What a misfit of the gaps means."""
        if "gaps" not in self.faults or self.gaps is None:
            return []
        if self.gaps.variation > 1.0:
            return ["Events still come in bursts that the rate does not explain."]
        return ["Events are spaced more evenly than the rate expects."]


def check_excitation(known: ConditionalRate, start: float, end: float) -> ExcitationCheck:
    """Does a self-exciting rate fit the events from start to end, each given those before it?

    There are as many as the rate expects given the events before (count), also in a grid of places
    (places), and gaps between them, rescaled by ∫λ, are exponential (gaps) and independent
    (neighbours).
    """
    events, region = known.sources.since(start), known.rate.region
    table = grouped_gaps(rescaled_times(known, start))
    places = None
    if region is not None and len(events):
        low, high = region.bounds()
        shape = (CELLS,) if len(low) == 1 else (CELLS_PER_SIDE, CELLS_PER_SIDE)
        expected = expected_cells(known, start, end, shape)
        edges = [np.linspace(a, b, n + 1) for a, b, n in zip(low, high, shape, strict=True)]
        places = _place_counts(np.histogramdd(events.places, edges)[0], expected)
    total = known.integral(start, end)
    return ExcitationCheck(
        len(events),
        total,
        _total_count(len(events), total, _possible_counts(known, start, end)),
        None if table is None else gap_test(table),
        None if table is None else neighbour_test(table),
        places,
    )


def _possible_counts(known: ConditionalRate, start: float, end: float) -> Floats:
    """What the rate may expect given the events before, (k,): under each draw of its weights.

    The events that weights were learned from are as many as these expect.
    """
    if end <= known.rate.drift.start:
        return np.array([known.integral(start, end)])
    return np.array([drawn.integral(start, end) for drawn in under_draws(known, end)])


def _total_count(count: int, expected: float, possible: Floats) -> TotalCount:
    """The test of a count that is Poisson around one of the possible means (k,)."""
    fewer, more = np.mean(pdtr(count, possible)), 1.0
    if count > 0:
        more = np.mean(pdtrc(count - 1, possible))
    spread = np.sqrt(expected + np.mean((possible - expected) ** 2))
    return TotalCount(float((count - expected) / spread), float(min(1.0, 2.0 * min(fewer, more))))


def _place_counts(observed: Floats, expected: Floats) -> PlaceCounts:
    """Pearson's test, with small cells counted together."""
    small = expected < LEAST_EXPECTED
    seen = np.append(observed[~small], observed[small].sum())
    mean = np.append(expected[~small], expected[small].sum())
    seen, mean = seen[mean > 0.0], mean[mean > 0.0]
    statistic = float(np.sum((seen - mean) ** 2 / mean))
    return PlaceCounts(observed, expected, statistic, float(chi2.sf(statistic, len(mean))))
