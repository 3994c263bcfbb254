"""Goodness of fit of a self-exciting rate: gaps in rescaled time, and counts by place."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.stats import chi2

from hplus._checks import Floats, frozen_array
from hplus._values import Value, value
from hplus.rates.excitation.conditional_rate import ConditionalRate
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

    `count` events were observed where `expected` were expected, each given those before it. `gaps`
    and `neighbours` are None for fewer than ten gaps, `places` without places.
    """

    count: int
    expected: float
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
        events = f"{counted(self.count)}, {self.expected:.6g} expected"
        if not self._parts():
            return f"Too few events to tell whether the rate fits ({events})."
        if self.faults:
            return f"The rate does not fit, according to {listed(self.faults)} ({events})."
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

    def _parts(self) -> dict[str, Gaps | Neighbours | PlaceCounts]:
        parts = {"gaps": self.gaps, "neighbours": self.neighbours, "places": self.places}
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

    Rescaled by ∫λ, gaps between events are exponential (gaps) and independent (neighbours), and
    counts in a grid of places are what the rate expects given the events before (places).
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
    return ExcitationCheck(
        len(events),
        known.integral(start, end),
        None if table is None else gap_test(table),
        None if table is None else neighbour_test(table),
        places,
    )


def _place_counts(observed: Floats, expected: Floats) -> PlaceCounts:
    """Pearson's test, with small cells counted together."""
    small = expected < LEAST_EXPECTED
    seen = np.append(observed[~small], observed[small].sum())
    mean = np.append(expected[~small], expected[small].sum())
    seen, mean = seen[mean > 0.0], mean[mean > 0.0]
    statistic = float(np.sum((seen - mean) ** 2 / mean))
    return PlaceCounts(observed, expected, statistic, float(chi2.sf(statistic, len(mean))))
