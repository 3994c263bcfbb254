"""Outlooks: what a study knows of times to come, learned in the same pass over its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from hplus._checks import Floats, Ints
from hplus._values import Value, value
from hplus.estimators.forecast import Forecast
from hplus.rates.accumulator import CellAccumulator
from hplus.rates.forecasts.block_edges import Exposure
from hplus.rates.lattice import CellLattice
from hplus.rates.local_dispersion import (
    TOGETHER_DEPTH,
    LocalDispersion,
    learn_local_dispersion,
    shared_axis,
)
from hplus.rates.recent_shares import RecentShares, learn_recent_shares
from hplus.rates.statistic import Statistic
from hplus.rates.trial_variation import MAX_PLACE_DEPTH
from hplus.studies.frames import Frame
from hplus.studies.periods import Period, in_days, natural_unit
from hplus.studies.silences import find_silences
from hplus.studies.spans import SECONDS, Amount, Clock, moment
from hplus.studies.trial_names import TRIALS
from hplus.windows import Interval

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy

MOST_TIMES = 2**20
"""Events whose times are kept one by one; of more, counts in short blocks."""

LENGTHS = tuple(
    seconds / SECONDS["day"]
    for seconds in (0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 21_600.0, 86_400.0,
                    604_800.0, 2_419_200.0, 7_862_400.0, 31_557_600.0)
)  # fmt: skip
"""Lengths in days of the blocks in which counts of places are compared: seconds to years."""

MOST_BLOCKS = 200
"""Blocks of the observation period whose counts are kept for a chart."""

MIN_FORECAST_EVENTS = 20
"""With fewer events, there is no forecast but the mean rate."""

MOST_SPANS_AHEAD, MOST_DAYS_AHEAD = 10.0, 3652.5
"""Forecasts reach ten times as far ahead as was observed, or ten years, but at least as far."""


class Occurrences:
    """Events of a file by time or trial, and by place too, in statistics of bounded size."""

    def __init__(self, frame: Frame) -> None:
        self._frame, clock, region = frame, frame.clock, frame.region
        self.cells: dict[str, CellAccumulator] = {}
        if clock is not None:
            ends = in_days(clock.start), in_days(clock.end)
            self._line = Interval(*ends, unit="day")
            self.cells["times"] = CellAccumulator(self._line)
            if region is not None:
                both = region * shared_axis(*ends, LENGTHS)
                self.cells["both"] = CellAccumulator(both, most_depth=TOGETHER_DEPTH)
        elif frame.trial and region is not None:
            self.cells["trials"] = CellAccumulator(TRIALS)
            if region.dimension in MAX_PLACE_DEPTH:
                self.cells["both"] = CellAccumulator(region * TRIALS)

    def add(self, X: Floats, seconds: Floats, units: Ints | None = None) -> None:
        """Points of the window (n, d), their times in seconds since 1970, and weights (n,).

        Weights are in units of 2⁻²⁰, None if all are 1.
        """
        if not self.cells:
            return
        if self._frame.trial:
            self._add_trials(X, seconds)
            return
        days = np.clip(in_days(seconds), self._line.low, self._line.high)[:, None]
        self.cells["times"].add(days, units)
        if "both" in self.cells:
            d = self._frame.window.dimension - 1
            self.cells["both"].add(np.hstack([X[:, :d], days]), units)

    def _add_trials(self, X: Floats, trials: Floats) -> None:
        """Points, in cells that are coarse enough to be compared, and their trials (n,)."""
        self.cells["trials"].add(trials[:, None])
        if "both" in self.cells:
            assert self._frame.region is not None
            lattice = CellLattice(self._frame.region)
            depth = MAX_PLACE_DEPTH[lattice.dimension]
            codes = lattice.codes(X) >> np.uint64(lattice.dimension * (lattice.bits - depth))
            # the middle of a cell at the edge of the window may lie beyond it
            low, high = lattice.window.bounds()
            middles = np.clip(lattice.centers(codes, depth), low, high)
            self.cells["both"].add(np.column_stack([middles, trials]))

    def absorb(self, other: Occurrences) -> None:
        """The events of another part of the same file or files."""
        for name, cells in other.cells.items():
            self.cells[name].absorb(cells)

    @property
    def times(self) -> Statistic:
        """Events by time, in days since 1970."""
        found = self.cells["times"].statistic()
        return found if found.events <= MOST_TIMES else found.coarsened(min(found.depth, 20))

    @property
    def both(self) -> Statistic | None:
        """Events by place and by time or trial, None if there are no places."""
        return self.cells["both"].statistic() if "both" in self.cells else None


@final
@value
class Outlook(Value):
    """What is known of times to come: a forecast of the total, or the reason why there is none.

    `local` is how much more counts of parts of the window vary; None if there are no parts, or too
    few events to tell. `blocks` are the counts in equal blocks of the observation period. `recent`
    are the parts whose shares have changed; None if none have. `silences` (k, 2) are times without
    events that are much longer than others, in days since 1970.
    """

    forecast: Forecast | None
    reason: str
    local: LocalDispersion | None
    blocks: Ints
    recent: RecentShares | None = None
    silences: Floats | None = None

    @property
    def exposure(self) -> float:
        """That of times to come: how much more all events are since shares have changed."""
        return 1.0 if self.recent is None else self.recent.growth

    @property
    def changed(self) -> float | None:
        """When shares of places have changed, in seconds since 1970; None if they have not."""
        return None if self.recent is None else SECONDS["day"] * self.recent.since


def learn_outlook(clock: Clock | None, events: Occurrences, random_state: int) -> Outlook | None:
    """The outlook of a study; None if it has no times."""
    if clock is None:
        return None
    both, local, recent = events.both, None, None
    if both is not None:
        span = in_days(clock.end - clock.start)
        local = learn_local_dispersion(both, span, LENGTHS)
        recent = learn_recent_shares(both, span, local, random_state)
    forecast, reason = _forecast(clock, events.times, recent, random_state)
    at = events.times.lattice.centers(events.times.codes, events.times.depth)[:, 0]
    silences = find_silences(at, *(float(end[0]) for end in events.times.window.bounds()))
    return Outlook(forecast, reason, local, _blocks(clock, events.times), recent, silences)


def _forecast(
    clock: Clock, times: Statistic, recent: RecentShares | None, random_state: int
) -> tuple[Forecast | None, str]:
    """The forecast of all events for an exposure of 1 until shares changed, or None and why.

    Places that gain or lose events change the total, unless its own counts say otherwise.
    """
    if times.events < MIN_FORECAST_EVENTS:
        return None, f"there are fewer than {MIN_FORECAST_EVENTS} events"
    span = times.window.volume
    horizon = min(MOST_SPANS_AHEAD * span, max(span, MOST_DAYS_AHEAD))
    line = Interval(in_days(clock.start), in_days(clock.end), unit="day")
    forecast = Forecast(line, horizon, random_state=random_state)
    at = times.lattice.centers(times.codes, times.depth)[:, 0]
    exposure: Exposure = 1.0 if recent is None else recent.exposure
    changes = [] if recent is None else [recent.since]
    try:
        if times.events <= MOST_TIMES and not times.weights.size:
            # one by one, so that rounded times are recognised
            at = np.repeat(at, times.counts)
            return forecast.fit(at, exposure=exposure, changes=changes), ""
        masses = times.masses
        return forecast.fit(at, sample_weight=masses, exposure=exposure, changes=changes), ""
    except ValueError as error:
        return None, str(error).rstrip(".")


def _blocks(clock: Clock, times: Statistic) -> Ints:
    """Counts in whole units of time before the end, as many as a chart can show."""
    unit, span = (
        in_days(SECONDS[natural_unit(clock)]),
        in_days(clock.end - clock.start),
    )
    many = int(np.clip(np.floor(span / unit + 1e-9), 1, MOST_BLOCKS))
    ends = in_days(clock.end) + unit * np.arange(-many, 1)
    at = times.lattice.centers(times.codes, times.depth)[:, 0]
    return np.rint(np.histogram(at, ends, weights=times.masses)[0]).astype(np.int64)


def outlook_for(study: EventStudy, period: Period) -> Outlook | None:
    """The outlook of a study, if it has one and the period is one to come."""
    outlook, clock = getattr(study, "outlook_", None), study.frame.clock
    if outlook is None or clock is None or not period.end > clock.end:
        return None
    found: Outlook = outlook
    return found


def basis_words(study: EventStudy, period: Period) -> str:
    """What counts of a period rest on, in a sentence; "" if there are neither times nor units."""
    clock, outlook = study.frame.clock, getattr(study, "outlook_", None)
    if clock is None:
        if study.exposure_ == Amount(1.0):
            return ""
        if getattr(study, "trials_", None) is not None:
            unit = study.exposure_.unit
            return f"Intervals include how much counts vary from {unit} to {unit}."
        unknown = f"from {study.exposure_}" if study.frame.trial else "without times"
        return (
            f"Intervals are those of independent events: {unknown}, it is not known how much more "
            "counts vary."
        )
    if period.end <= clock.end:
        return "From the fitted rate."
    if outlook is not None and outlook.forecast is not None:
        if period.start >= clock.end:
            return "From a forecast."
        return f"From the fitted rate until {moment(clock.end)}, and a forecast after it."
    mean = f"the mean {clock.cycle}" if clock.cycle else "the mean rate"
    reason = "the model file is of an earlier version" if outlook is None else outlook.reason
    return f"From {mean}; there is no forecast, because {reason}."
