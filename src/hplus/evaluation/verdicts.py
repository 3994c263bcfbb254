"""What the checks of a rate found: p-values, patterns and a verdict in words."""

from __future__ import annotations

from typing import final

from hplus._values import Value, value
from hplus.evaluation.dependence import Dependence, patterns
from hplus.evaluation.dispersion import CountDispersion
from hplus.evaluation.near_repeats import NearRepeats
from hplus.evaluation.rescaling import Rescaling
from hplus.evaluation.residuals import Calibration, Quadrats, Thinned
from hplus.evaluation.time_order import TimeOrder
from hplus.rates.gaps import Gaps, Neighbours
from hplus.rates.rejections import rejected
from hplus.wording import counted, listed, off_by, times

SIGNIFICANCE = 0.05
"""The probability, at most, that any check rejects a rate that is right."""

Tested = Quadrats | Calibration | Rescaling | Gaps | Neighbours | CountDispersion | NearRepeats
"""What a check found, with a `statistic` and a `p_value`."""

DEPENDENCE = ("gaps", "neighbours", "dispersion", "near repeats")
"""Checks that events are independent of each other; the others are of the rate."""

CLUSTERED = ("bursts", "uneven counts", "near repeats")
"""Patterns of events whose counts vary more than those of independent events."""


@final
@value
class Check(Value):
    """The results of all checks of a rate; `print` it for a table.

    `count` events were observed and `expected` were expected per unit of exposure; the checks
    scale the rate to the count. `rescaling` is None unless the window has one axis, such as time;
    `order` and `repeats` are None unless the times of events are known.
    """

    count: int
    expected: float
    quadrats: Quadrats
    thinned: Thinned
    calibration: Calibration
    rescaling: Rescaling | None = None
    order: TimeOrder | None = None
    repeats: NearRepeats | None = None

    @property
    def p_values(self) -> dict[str, float]:
        """The p-value of each check by name: the chance of as large a misfit of a right rate."""
        return {name: part.p_value for name, part in self._parts().items()}

    @property
    def statistics(self) -> dict[str, float]:
        """The statistic of each check by name."""
        return {name: part.statistic for name, part in self._parts().items()}

    @property
    def faults(self) -> tuple[str, ...]:
        """The checks that reject the rate, by Holm's rule: 5 % for any if the rate is right."""
        return rejected(self.p_values, SIGNIFICANCE)

    @property
    def misfits(self) -> tuple[str, ...]:
        """Those of them that reject the rate itself, and not the independence of events."""
        return tuple(name for name in self.faults if name not in DEPENDENCE)

    @property
    def clustered(self) -> bool:
        """Do checks find that events come together, whatever those of the rate say?"""
        found = {name: p if name in DEPENDENCE else 1.0 for name, p in self.p_values.items()}
        named = patterns(self.order, self.repeats, rejected(found, SIGNIFICANCE))
        return any(pattern.name in CLUSTERED for pattern in named)

    @property
    def relative_error(self) -> float:
        """How far expected counts are off beyond chance, by place or by rate: 0.02 is 2 %."""
        return max(self.quadrats.relative_error, self.calibration.relative_error)

    @property
    def patterns(self) -> tuple[Dependence, ...]:
        """How events depend on each other, in words; empty if no check says that they do."""
        return patterns(self.order, self.repeats, self.faults)

    def __str__(self) -> str:
        said = [line for found in self.patterns for line in (found.sentence, found.meaning)]
        said += self._allowance()
        return "\n".join([self._verdict(), *said, "", *self._tests(), "", *self._bins()])

    def _allowance(self) -> list[str]:
        """What the checks of the rate allow for, if counts vary more than Poisson counts."""
        more = self.quadrats.variation
        if more <= 1.0:
            return []
        return [
            "The checks of the rate allow for this: counts of quadrats vary "
            f"{times(more)} times as much as those of independent events."
        ]

    def _parts(self) -> dict[str, Tested]:
        order, counts = self.order, None if self.order is None else self.order.dispersion
        parts: dict[str, Tested | None] = {
            "time rescaling": self.rescaling,
            "gaps": None if order is None else order.gaps,
            "neighbours": None if order is None else order.neighbours,
            "dispersion": counts,
            "near repeats": self.repeats,
            "quadrats": self.quadrats,
            "thinning": self.thinned.quadrats,
            "calibration": self.calibration,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def _verdict(self) -> str:
        scaled = f"{counted(self.count)}; the rate is scaled to that number"
        if self.misfits:
            size = f"expected counts are {off_by(self.relative_error)}"
            return f"The rate does not fit, according to {listed(self.misfits)}: {size} ({scaled})."
        if self.faults:
            return f"The rate fits, but events are not independent ({scaled})."
        return f"The rate fits: no check rejects its shape ({scaled})."

    def _tests(self) -> list[str]:
        rows = [
            f"{name:<16}{part.statistic:>10.4g}{part.p_value:>10.3g}"
            for name, part in self._parts().items()
        ]
        return [f"{'check':<16}{'statistic':>10}{'p-value':>10}", *rows]

    def _bins(self) -> list[str]:
        bins = self.calibration
        columns = (bins.rates, bins.expected, bins.observed, bins.low, bins.high)
        rows = [
            f"{rate:<16.4g}{expected:>10.1f}{observed:>10.0f}   {low:.0f} to {high:.0f}"
            f"{'' if low <= observed <= high else ' *'}"
            for rate, expected, observed, low, high in zip(*columns, strict=True)
        ]
        return [f"{'mean rate':<16}{'expected':>10}{'observed':>10}   90 % interval", *rows]
