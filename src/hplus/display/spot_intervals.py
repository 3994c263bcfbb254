"""Intervals of the counts of hot spots, which include how much counts have varied."""

from __future__ import annotations

from hplus._checks import Floats
from hplus.display.data.framing import cuboid
from hplus.display.data.hot_spots import HotSpots
from hplus.display.data.margins import BAND_LEVEL
from hplus.rates.local_dispersion import LocalDispersion
from hplus.rates.mixed_poisson import mixed_poisson_quantile
from hplus.rates.separable import SeparableRate
from hplus.studies.event_study import EventStudy
from hplus.studies.event_weights import weight_unit
from hplus.studies.expect import Region, count_means
from hplus.studies.periods import Period, in_days
from hplus.windows import Window


def varied(study: EventStudy, spots: HotSpots) -> HotSpots:
    """Hot spots whose intervals include how much more their counts vary, if it is known."""
    means = _means(study, spots)
    if means is None:
        return spots
    unit, tail = weight_unit(study), 0.5 * (1.0 - BAND_LEVEL)
    fewest, most = (unit * mixed_poisson_quantile(means, p) for p in (tail, 1.0 - tail))
    return spots.replace(fewest=fewest, most=most)


def provided(study: EventStudy) -> str:
    """When nine out of ten counts lie in their intervals, in words."""
    if _of_trials(study):
        unit = study.exposure_.unit
        return f"if counts vary from {unit} to {unit} as before"
    if _local_law(study) is None:
        return "if events do not depend on each other"
    return (
        "if the total is the same; it includes how much more the counts of places have varied than "
        "those of independent events"
    )


def _means(study: EventStudy, spots: HotSpots) -> Floats | None:
    """Equally likely means of the counts, (k, m); None if nothing is known of how they vary."""
    law, rate, clock = _local_law(study), study.model_.rate_, study.frame.clock
    if _of_trials(study):
        regions = [
            Region("", window, {}, None) for window in _cells(study.frame.window.axis_units, spots)
        ]
        return count_means(study, regions, Period("", study.exposure_.amount))
    if law is None or clock is None or not isinstance(rate, SeparableRate):
        return None
    shares, draws = rate.shares(_cells(rate.window.left.axis_units, spots))
    counts = draws * (spots.expected / shares / weight_unit(study))[:, None]
    return law.varied(counts, in_days(clock.end - clock.start), shares)


def _cells(units: tuple[str, ...], spots: HotSpots) -> list[Window]:
    return [cuboid(a, b, units) for a, b in zip(spots.low, spots.high, strict=True)]


def _of_trials(study: EventStudy) -> bool:
    """Is it known how counts vary from trial to trial, and are spots parts of the window?"""
    return getattr(study, "trials_", None) is not None and study.frame.window.dimension < 3


def _local_law(study: EventStudy) -> LocalDispersion | None:
    outlook = getattr(study, "outlook_", None)
    return None if outlook is None else outlook.local
