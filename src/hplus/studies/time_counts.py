"""Counts of all events in periods: from the fitted rate while observed, afterwards a forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.fitted import FittedRate
from hplus.rates.separable import SeparableRate, pairs_of_draws
from hplus.studies.event_weights import weight_unit
from hplus.studies.periods import Period, in_days
from hplus.studies.spans import SECONDS, Clock, moment, phases
from hplus.windows import Interval

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy

Spans = Sequence[tuple[float, float]]
"""Beginnings and ends in seconds since 1970; a span that ends before it begins is empty."""


class MeanCounts(NamedTuple):
    """Mean counts (p,), and equally likely values of them together (p, k)."""

    means: Floats
    draws: Floats

    def plus(self, other: MeanCounts) -> MeanCounts:
        """The counts of both, whose draws are independent."""
        i, j = pairs_of_draws(self.draws.shape[1], other.draws.shape[1])
        return MeanCounts(self.means + other.means, self.draws[:, i] + other.draws[:, j])

    def scaled(self, factors: Floats) -> MeanCounts:
        """Each count times a factor (p,)."""
        return MeanCounts(self.means * factors, self.draws * factors[:, None])


def time_counts(study: EventStudy, periods: Sequence[Period]) -> MeanCounts:
    """Counts in the whole window during each period of a study with times."""
    clock = study.frame.clock
    assert clock is not None
    if not is_forecast(study):
        return _as_fitted(study, [(p.start, p.end) for p in periods])
    past = [(p.start, min(p.end, clock.end)) for p in periods]
    coming = [(max(p.start, clock.end), p.end) for p in periods]
    if not any(a < b for a, b in past):
        return _forecast(study, coming)
    if not any(a < b for a, b in coming):
        return _as_fitted(study, past)
    return _as_fitted(study, past).plus(_forecast(study, coming))


def is_forecast(study: EventStudy) -> bool:
    """Does a study have a forecast of times to come?"""
    outlook = getattr(study, "outlook_", None)
    return outlook is not None and outlook.forecast is not None


def time_rate(study: EventStudy) -> FittedRate:
    """The rate by time of a study with times."""
    rate = study.model_.rate_
    return rate.time if isinstance(rate, SeparableRate) else rate


def _forecast(study: EventStudy, spans: Spans) -> MeanCounts:
    """Counts after the observation period."""
    clock, outlook = study.frame.clock, study.outlook_
    assert clock is not None
    assert outlook is not None
    assert outlook.forecast is not None
    some = [(a, b) for a, b in spans if a < b]
    last, reach = max(b for _, b in some), outlook.forecast.reach_.high * SECONDS["day"]
    if last > reach:
        raise ValueError(f"forecasts reach as far as {moment(reach)}, got {moment(last)}.")
    parts = [Interval(in_days(a), in_days(b)) for a, b in some]
    forecast, exposure = outlook.forecast, outlook.exposure
    found = forecast.expected_count(parts, exposure=exposure)
    draws = forecast.count_draws(parts, exposure=exposure)
    # a cycle's rates are of the whole count, others of one unit of exposure
    units = (1.0 if clock.cycle else study.exposure_.amount) / weight_unit(study)
    where = [i for i, (a, b) in enumerate(spans) if a < b]
    means, all_draws = np.zeros(len(spans)), np.zeros((len(spans), draws.shape[1]))
    means[where], all_draws[where] = found / units, draws / units
    return MeanCounts(means, all_draws)


def _as_fitted(study: EventStudy, spans: Spans) -> MeanCounts:
    """Counts of the fitted rate: of its cycle, or of the observation period and its mean after."""
    clock, rate = study.frame.clock, time_rate(study)
    assert clock is not None
    parts = [part for span in spans for part in _on_axis(clock, *span)]
    owners = [i for i, span in enumerate(spans) for _ in _on_axis(clock, *span)]
    if not parts:
        return MeanCounts(np.zeros(len(spans)), np.zeros((len(spans), 1)))
    windows = [window for window, _ in parts]
    weights = np.zeros((len(spans), len(parts)))
    weights[owners, range(len(parts))] = [times for _, times in parts]
    return MeanCounts(weights @ rate.integrals(windows), weights @ rate.count_draws(windows))


def _on_axis(clock: Clock, a: float, b: float) -> list[tuple[Interval, float]]:
    """Parts of the axis of time, each with how often it occurs from a to b."""
    if not a < b:
        return []
    if clock.cycle:
        return [(Interval(u, v), times) for u, v, times in phases(clock, a, b - a)]
    scale, found = SECONDS[clock.unit], []
    if a < clock.end:
        low, high = (a - clock.start) / scale, (min(b, clock.end) - clock.start) / scale
        found.append((Interval(low, high), 1.0))
    if b > clock.end:
        whole = Interval(0.0, (clock.end - clock.start) / scale)
        found.append((whole, (b - max(a, clock.end)) / (clock.end - clock.start)))
    return found
