"""The answers of a fitted self-exciting rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import (
    Floats,
    Ints,
    Seed,
    as_floats,
    check_count,
    check_number,
    check_positive,
    check_random_state,
)
from hplus.estimators.base import Estimator, check_fitted
from hplus.estimators.column_names import check_names
from hplus.estimators.event_rows import EventRows, History
from hplus.estimators.excited_parameters import check_ahead, check_period
from hplus.estimators.futures import Futures, futures_of
from hplus.estimators.marks_and_types import Labels, check_known_scale
from hplus.rates.by_region import one_or_all, rate_unit
from hplus.rates.excitation.bearings import compass_of
from hplus.rates.excitation.catalogue import Catalogue, in_order
from hplus.rates.excitation.conditional_rate import ConditionalRate, rate_given
from hplus.rates.excitation.descendants import Simulated, simulate
from hplus.rates.excitation.excitation_check import ExcitationCheck, check_excitation
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.parents import Parents, find_parents
from hplus.rates.excitation.past_events import past_of
from hplus.rates.excitation.rescaled import rescaled_times
from hplus.windows import Interval, Product, Window


class ExcitedEstimator(Estimator):
    """An estimator with a `window` and, once fitted, a `rate_` and a `history_` of events."""

    window: Window
    rate_: ExcitedRate
    history_: Catalogue
    observed_until_: float
    types_: Labels
    has_marks_: bool

    def predict(
        self, X: ArrayLike, *, history: History | None = None, types: ArrayLike | None = None
    ) -> Floats:
        """The conditional rate at each point X (n, d), given the events before it.

        `history` are those events, by default `history_`: X, or (X, marks) if the fit had marks, or
        (X, marks, types) if it had types (with None for marks if it had none), or a catalogue such
        as `history_`. With `types` (n,), the rate of events of that type; otherwise of all types
        together. After `observed_until_`, or the last event of a `history` that is given, events
        are not known: the background stays at its last level, and what events in between would
        trigger is left out.
        """
        check_names(self, X, reset=False)
        points = self._rows.points("X", X)
        known = self._given(history)
        if types is not None:
            return self._at(known, points, self._rows.kinds(types, len(points)))
        kinds = range(known.rate.types)
        return np.sum([self._at(known, points, np.full(len(points), k)) for k in kinds], axis=0)

    def expected_count(
        self, regions: Window | Sequence[Window], *, history: History | None = None
    ) -> float | Floats:
        """∫ of the conditional rate over a region, or each of several, given the history.

        `history` is as in `predict`.

        For a time to come, which begins where `predict` says, the background stays at its last
        level, and what events to come trigger is left out: use `forecast`.
        """
        parts = self._rows.parts(regions)
        known = self._given(history)
        return one_or_all(regions, known.integrals(parts))

    def log_likelihood(
        self,
        X: ArrayLike,
        *,
        marks: ArrayLike | None = None,
        types: ArrayLike | None = None,
        period: Interval | None = None,
    ) -> float:
        """Σ log λ(x_i | events before x_i) - ∫λ over a period, by default the window's.

        Events of X before the period are history, and so are those of `history_` before both X and
        the period. X is all that happened in the period, which the level of the background follows.
        """
        events = self._scored(X, marks, types)
        span = self._period if period is None else check_period(period)
        first = float(np.min(events.times, initial=span.low))
        sources = self.history_.picked(self.history_.times < first).with_others(events)
        known = rate_given(self.rate_, sources.until(span.high), span.high)
        with np.errstate(divide="ignore"):
            logs = np.log(known.at(events.since(span.low).until(span.high)))
        return float(logs.sum() - known.integral(span.low, span.high))

    def score(
        self,
        X: ArrayLike,
        y: None = None,
        *,
        marks: ArrayLike | None = None,
        types: ArrayLike | None = None,
        period: Interval | None = None,
    ) -> float:
        """The log-likelihood per event, each predicted from those before it: higher is better."""
        times = self._scored(X, marks, types).times
        span = self._period if period is None else check_period(period)
        count = int(np.sum((times >= span.low) & (times <= span.high)))
        if count == 0:
            raise ValueError(
                f"X must hold events between {span.low:g} and {span.high:g}, got none."
            )
        return self.log_likelihood(X, marks=marks, types=types, period=period) / count

    def parents(self) -> Parents:
        """Which event triggered which, and which belong to the background: a `Parents`."""
        return find_parents(self._given(), self._period.low)

    def background_shares(self) -> Floats:
        """The probability that each event since the window began was not triggered, (n,).

        Those of `parents()`, without looking at each pair of events.
        """
        known = self._given()
        inside = known.sources.since(self._period.low)
        background = known.background_at(inside)
        return background / (background + known.triggered_at(inside))

    def forecast(
        self,
        horizon: float,
        regions: Window | Sequence[Window] | None = None,
        n_paths: int = 1000,
        *,
        start: float | None = None,
        history: History | None = None,
        stages: ArrayLike = (),
        random_state: Seed = None,
    ) -> Futures:
        """What happens in a time to come, by simulating the descendants of the history.

        From `start`, by default `observed_until_`, for a time `horizon`; it may not be before the
        window. If `start` is later, the time in between is simulated too: what happened then is not
        known. A `history` that is given, as in `predict`, is all that happened before `start`, by
        default until the last event of it if that is later than `observed_until_`. `regions` are
        places, by default the whole window. Weights are drawn anew for each group of paths.
        `stages` are times since the start, up to the horizon: what happens before each of them is
        the same for every longer horizon.
        """
        events = self._history(history)
        last = self.observed_until_
        if history is not None:
            last = float(np.max(events.times, initial=last))
        begin = last if start is None else check_number("start", start)
        if begin < self._period.low:
            raise ValueError(
                f"start must not be before {self._period.low:g}, where the window begins, got "
                f"{begin:g}."
            )
        length, inner = check_positive("horizon", horizon), as_floats("stages", stages).ravel()
        check_ahead(self.window, begin, length)
        wrong = ~((inner >= 0.0) & (inner <= length))
        if wrong.any():
            raise ValueError(
                f"stages must lie between 0 and the horizon, {length:g}, got {inner[wrong][0]:g}."
            )
        edges = np.unique(begin + np.array([0.0, *inner, length]))
        until = begin if history is not None else min(begin, last)
        listed = self._rows.places(regions)
        known = rate_given(self.rate_, events.until(until), until)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        paths = check_count("n_paths", n_paths)
        found = futures_of(known, edges, listed, paths, rng, until)
        return replace(found, marked=self.has_marks_)

    def simulate_window(self, n_paths: int = 1, random_state: Seed = None) -> Simulated:
        """Simulated events of the window on each path, with marks and types, as in `sample`."""
        check_fitted(self, "rate_")
        low, high = self._period.low, self._period.high
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        past = past_of(rate_given(self.rate_, self.history_.picked(slice(0, 0)), low), low)
        past = past._replace(compass=compass_of(self.rate_.with_bearings(self.history_)))
        return simulate(self.rate_, past, low, high, check_count("n_paths", n_paths), rng)

    def sample(self, n_paths: int = 1, random_state: Seed = None) -> list[Floats]:
        """Simulated patterns of events in the window, (n_i, d) each, without earlier history.

        They trigger others in the directions in which the events that were learned from do.
        """
        found = self.simulate_window(n_paths, random_state)
        patterns = []
        for path in range(n_paths):
            own = found.events.picked(found.paths == path)
            own = in_order(own.times, own.places, own.marks, own.types)
            patterns.append(np.column_stack([own.places, own.times]))
        return patterns

    def rescaled_times(self) -> Floats:
        """∫λ from the start of the window to each event of it, (n,).

        If the rate is right, the gaps are independent and exponential.
        """
        return rescaled_times(self._given(), self._period.low)

    def check(self, start: float | None = None) -> ExcitationCheck:
        """Does the rate fit the events that it knows since `start`? `print` it for a table.

        How many there are, gaps between them in rescaled time, and counts by place; the default is
        the start of the window. For events that were learned from, p-values are too large.
        """
        check_fitted(self, "rate_")
        low, end = self._period.low, self.observed_until_
        begin = low if start is None else check_number("start", start)
        if not low <= begin < end:
            raise ValueError(
                f"start must be at least {low:g}, where the window begins, and before {end:g}, "
                f"when what is known so far ends, got {begin:g}."
            )
        return check_excitation(self._given(), begin, end)

    @property
    def unit_(self) -> str:
        """The unit of the rate, such as "1/(km² day)"; "" if the window has none."""
        return rate_unit(self.window)

    @staticmethod
    def _at(known: ConditionalRate, points: Floats, kinds: Ints) -> Floats:
        """λ of types (n,) at points (n, d) in any order of time."""
        order = np.argsort(points[:, -1], kind="stable")
        at = points[order]
        targets = Catalogue(at[:, -1], at[:, :-1], np.zeros(len(at)), kinds[order])
        found = np.zeros(len(at))
        found[order] = known.at(targets)
        return found

    def _given(self, history: History | None = None) -> ConditionalRate:
        """The rate given all that is known or, with a history, what happened until its end."""
        sources = self._history(history)
        known = self.observed_until_ if history is None else -np.inf
        return rate_given(self.rate_, sources, float(np.max(sources.times, initial=known)))

    @property
    def _rows(self) -> EventRows:
        check_fitted(self, "types_")
        return EventRows(self.window, self.types_, self.has_marks_)

    @property
    def _period(self) -> Interval:
        period = self.window.right if isinstance(self.window, Product) else self.window
        assert isinstance(period, Interval)
        return period

    def _history(self, history: History | None) -> Catalogue:
        check_fitted(self, "rate_")
        if history is None:
            return self.history_
        events = self._rows.history(history)
        check_known_scale(events.marks, self.rate_.effects.knots)
        return events

    def _scored(self, X: ArrayLike, marks: ArrayLike | None, types: ArrayLike | None) -> Catalogue:
        """Events to score, whose marks the rate can tell of."""
        check_fitted(self, "rate_")
        events = self._rows.catalogue("X", X, marks, types)
        check_known_scale(events.marks, self.rate_.effects.knots)
        return events
