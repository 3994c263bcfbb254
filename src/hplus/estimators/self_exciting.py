"""SelfExciting: a rate of events that events raise."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from hplus._checks import (
    Floats,
    Ints,
    Seed,
    as_floats,
    check_choice,
    check_count,
    check_finite,
    check_memory,
    check_positive,
    shown,
)
from hplus._progress import whole_or_not
from hplus.estimators.base import Estimator, check_fitted
from hplus.estimators.futures import Futures, futures_of
from hplus.estimators.intensity import Intensity
from hplus.estimators.prior_parameters import STATISTIC_MODELS
from hplus.rates.by_region import one_or_all, rate_unit
from hplus.rates.excitation.catalogue import Catalogue, in_order
from hplus.rates.excitation.descendants import simulate
from hplus.rates.excitation.excitation_learning import Observed
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.learned_excitation import learn_excited_rate, wanted_knots
from hplus.rates.excitation.parents import Parents, find_parents
from hplus.rates.excitation.rescaled import rescaled_times
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.fitted import FittedRate
from hplus.windows import Interval, Product, Window

NEAR_ONE = 0.95
"""A branching ratio from which a warning says that bursts hardly die out."""

LEVEL = 0.9
"""The level of the band of the branching ratio."""

History = tuple[ArrayLike, ...] | ArrayLike
"""Events X, or (X, marks), or (X, marks, types)."""


class SelfExciting(Estimator):
    """How often events happen when each one raises the rate of those that follow.

    The conditional rate is a background plus what every earlier event adds: a trigger of the time
    since it and the distance from it, without a parametric form, times a productivity that may
    depend on a mark, such as a magnitude.

    >>> import numpy as np
    >>> from hplus import Interval, SelfExciting
    >>> rng = np.random.RandomState(0)
    >>> first = rng.uniform(0, 1000, size=300)
    >>> times = np.concatenate([first, first[:200] + rng.exponential(0.5, size=200)])
    >>> model = SelfExciting(Interval(0, 1001, unit="day")).fit(times[:, None])
    >>> bool(0.2 < model.branching_ratio_ < 0.6)
    True
    >>> after, before = model.predict([[500.1], [499.9]], history=[[500.0]])
    >>> bool(after > before)
    True

    Parameters
    ----------
    window : Interval, or a region in the plane times an Interval
        When, and where, events could have occurred. Time is the last axis.
    background : "tree", "exp" or "auto"
        The model of the background in place, as in `Intensity`. It is learned from events by how
        likely they were not triggered, and each block of time is predicted from the others.
    longest_lag, longest_distance : float, optional
        Beyond these an event triggers nothing. By default a third of the window's time, of which
        as much is used as the evidence asks for, and a quarter of its longer side.
    random_state : int, RandomState or None
        Seed of the background's folds and of posterior draws; None is 0.
    n_jobs : int or None
        Threads for the passes over pairs of events; -1 for all cores.

    Attributes
    ----------
    trigger_ : Trigger
        The rate that an event of average productivity adds. Call it with lags and distances;
        `by_lag`, `by_distance` and `integral` sum it up.
    effects_ : MarkEffects
        Productivity and reach by mark.
    branching_ratio_ : float
        How many events an average event triggers directly; with several types, the spectral radius
        of `branching_matrix_`. At 1 or above, bursts never die out.
    branching_interval_ : (low, high)
        A 90 % band of it.
    branching_matrix_ : array, shape (types, types)
        How many events of each type (columns) an event of each type (rows) triggers directly.
    background_ : Background
        The rate of events that were not triggered.
    solution_ : SolverResult
        The certified gap of the weights of background and trigger given all else, without
        smoothing: a convex problem.
    smoothing_cost_ : float
        By how much the log-likelihood per event is below its maximum without smoothing.
    log_posteriors_ : array
        The log posterior after each of the last rounds; it never falls.
    types_ : array
        The types of events, in the order of the rows of the matrix.
    history_ : Catalogue
        The events so far; `observed_until_` is when they end.
    """

    def __init__(
        self,
        window: Window,
        *,
        background: str = "tree",
        longest_lag: float | None = None,
        longest_distance: float | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.window = window
        self.background = background
        self.longest_lag = longest_lag
        self.longest_distance = longest_distance
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        *,
        marks: ArrayLike | None = None,
        types: ArrayLike | None = None,
    ) -> Self:
        """Learn from events X (n, d), whose last column is time.

        Events before the window are history: they trigger, and are not predicted. `marks` (n,) are
        numbers such as magnitudes, and `types` (n,) labels such as kinds of crime.
        """
        with whole_or_not(self):
            self._check_parameters()
            self.types_ = np.unique(np.asarray(["event"] if types is None else types))
            self.has_marks_ = marks is not None
            events = self._catalogue("X", X, marks, types)
            start, end = self._period.low, self._period.high
            if np.any(events.times > end):
                late = int(np.sum(events.times > end))
                raise ValueError(
                    f"X must not hold events after the window, got {late} of {len(events)} after "
                    f"{end:g}: drop them or widen the window."
                )
            inside = events.since(start)
            if len(inside) < 1:
                raise ValueError(
                    "X must hold at least one event in the window, got none: without any there is "
                    "no rate to learn."
                )
            observed = Observed(
                events, inside, start, end, self._region, len(self.types_), self._jobs
            )
            self._learn(observed)
            self.n_features_in_, self.total_ = self.window.dimension, float(len(inside))
        self._warn_near_one()
        return self

    def update(
        self,
        X: ArrayLike,
        *,
        until: float,
        marks: ArrayLike | None = None,
        types: ArrayLike | None = None,
    ) -> Self:
        """Add events X that were observed up to `until`, without learning anew."""
        check_fitted(self, "rate_")
        new = self._catalogue("X", X, marks, types)
        if not check_finite("until", as_floats("until", until)) >= self.observed_until_ or (
            len(new) and (new.times[0] < self.observed_until_ or new.times[-1] > until)
        ):
            raise ValueError(
                f"X must hold events between {self.observed_until_:g}, when what is known so far "
                f"ends, and until={shown(until)}: drop the others, or fit again."
            )
        self.history_, self.observed_until_ = self.history_.with_others(new), float(until)
        return self

    def predict(
        self, X: ArrayLike, *, history: History | None = None, types: ArrayLike | None = None
    ) -> Floats:
        """The conditional rate at each point X (n, d), given the events before it.

        `history` are those events, by default `history_`. With `types` (n,), the rate of events of
        that type; otherwise of all types together.
        """
        rate, sources = self._rate, self._history(history)
        points = self._points("X", X)
        if types is not None:
            return self._at(rate, points, self._kinds(types, len(points)), sources)
        each = [self._at(rate, points, np.full(len(points), k), sources) for k in range(rate.types)]
        return np.sum(each, axis=0)

    def expected_count(
        self, regions: Window | Sequence[Window], *, history: History | None = None
    ) -> Any:
        """∫ of the conditional rate over a region, or each of several, given the history.

        For a time to come this leaves out what events to come trigger: use `forecast`.
        """
        listed = [regions] if isinstance(regions, Window) else list(regions)
        parts = [self._part(region) for region in listed]
        rate, sources = self._rate, self._history(history)
        counts = sum(rate.region_integrals(sources, parts, kind) for kind in range(rate.types))
        return one_or_all(regions, np.asarray(counts))

    def log_likelihood(
        self,
        X: ArrayLike,
        *,
        marks: ArrayLike | None = None,
        types: ArrayLike | None = None,
        period: Interval | None = None,
    ) -> float:
        """Σ log λ(x_i | events before x_i) - ∫λ over a period, by default the window's.

        Events of X before the period are history, and so are those of `history_` before X.
        """
        events = self._catalogue("X", X, marks, types)
        span = self._period if period is None else period
        rate, sources = self._rate, events
        if len(events):
            sources = self.history_.picked(self.history_.times < events.times[0]).with_others(
                events
            )
        inside = events.since(span.low).until(span.high)
        with np.errstate(divide="ignore"):
            logs = np.log(rate.conditional(inside, sources))
        sources = sources.until(span.high)
        total = sum(rate.compensator(sources, span.low, span.high, k) for k in range(rate.types))
        return float(logs.sum() - total)

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
        span = self._period if period is None else period
        times = self._catalogue("X", X, marks, types).times
        count = int(np.sum((times >= span.low) & (times <= span.high)))
        if count == 0:
            raise ValueError(
                f"X must hold events between {span.low:g} and {span.high:g}, got none."
            )
        return self.log_likelihood(X, marks=marks, types=types, period=period) / count

    def parents(self) -> Parents:
        """Which event triggered which, and which belong to the background: a `Parents`."""
        return find_parents(self._rate, self.history_, self._period.low)

    def forecast(
        self,
        horizon: float,
        regions: Window | Sequence[Window] | None = None,
        n_paths: int = 1000,
        *,
        start: float | None = None,
        history: History | None = None,
        random_state: Seed = None,
    ) -> Futures:
        """What happens in a time to come, by simulating the descendants of the history.

        From `start`, by default `observed_until_`, for a time `horizon`. `regions` are places, by
        default the whole window. Weights are drawn anew for each group of paths.
        """
        begin = self._rate and (self.observed_until_ if start is None else float(start))
        end = begin + check_positive("horizon", horizon)
        sources = self._history(history)
        if len(sources) and sources.times[-1] > begin:
            sources = sources.picked(sources.times <= begin)
        listed = self._places(regions)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return futures_of(
            self._rate, sources, (begin, end), listed, check_count("n_paths", n_paths), rng
        )

    def sample(self, n_paths: int = 1, random_state: Seed = None) -> list[Floats]:
        """Simulated patterns of events in the window, (n_i, d) each, without earlier history."""
        rate, period = self._rate, self._period
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        nothing = self.history_.picked(slice(0, 0))
        found = simulate(
            rate, nothing, period.low, period.high, check_count("n_paths", n_paths), rng
        )
        patterns = []
        for path in range(n_paths):
            own = found.events.picked(found.paths == path)
            own = in_order(own.times, own.places, own.marks, own.types)
            patterns.append(np.column_stack([own.places, own.times]))
        return patterns

    def rescaled_times(self) -> Floats:
        """∫λ from the start of the window to each event of it: independent of what came before,
        their gaps are exponential if the rate is right."""
        return rescaled_times(self._rate, self.history_, self._period.low)

    @property
    def unit_(self) -> str:
        """The unit of the rate, such as "1/(km² day)"; "" if the window has none."""
        return rate_unit(self.window)

    def _learn(self, observed: Observed) -> None:
        knots = wanted_knots(observed, self.longest_lag, self.longest_distance)
        columns = observed.types * (len(knots.lags) - 1) * max(len(knots.distances) - 1, 1)
        check_memory(
            24.0 * len(observed.inside) * columns,
            f"a self-exciting rate of {len(observed.inside)} events with {columns} weights",
            "use a shorter longest_lag or fewer events",
        )
        learned = learn_excited_rate(observed, knots, self._learn_place, self._seed())
        self.rate_: ExcitedRate = learned.rate
        self.trigger_: Trigger = learned.rate.trigger
        self.effects_, self.background_ = learned.rate.effects, learned.rate.background
        self.solution_, self.smoothing_cost_ = learned.result, learned.smoothing_cost
        self.log_posteriors_ = np.array(learned.trace)
        self.branching_matrix_ = self.trigger_.integral()
        self.branching_ratio_ = learned.rate.branching()
        tail = 0.5 * (1.0 - LEVEL)
        ratios = [self.rate_.drawn(k).branching() for k in range(len(self.rate_.draws))]
        low, high = np.quantile(ratios, [tail, 1.0 - tail])
        self.branching_interval_ = float(low), float(high)
        self.history_, self.observed_until_ = observed.events, observed.end

    def _learn_place(self, places: Floats, weights: Floats) -> FittedRate:
        model = Intensity(self._region, model=self.background, random_state=self._seed())
        return model.fit(places, sample_weight=weights).rate_

    def _warn_near_one(self) -> None:
        if self.branching_ratio_ >= NEAR_ONE:
            warnings.warn(
                f"The branching ratio is {self.branching_ratio_:.3g} ("
                f"{self.branching_interval_[0]:.2g} to {self.branching_interval_[1]:.2g}): "
                + ("at 1 or above, simulated bursts never die out. " * (self.branching_ratio_ >= 1))
                + "Forecasts far ahead depend on it: a background that changes in time, or missing "
                "marks, can look like this.",
                UserWarning,
                stacklevel=3,
            )

    @staticmethod
    def _at(rate: ExcitedRate, points: Floats, kinds: Ints, sources: Catalogue) -> Floats:
        """λ of types (n,) at points (n, d) in any order of time."""
        order = np.argsort(points[:, -1], kind="stable")
        at = points[order]
        targets = Catalogue(at[:, -1], at[:, :-1], np.zeros(len(at)), kinds[order])
        found = np.zeros(len(at))
        found[order] = rate.conditional(targets, sources)
        return found

    @property
    def _rate(self) -> ExcitedRate:
        check_fitted(self, "rate_")
        return self.rate_

    @property
    def _region(self) -> Window | None:
        return self.window.left if isinstance(self.window, Product) else None

    @property
    def _period(self) -> Interval:
        return self.window.right if isinstance(self.window, Product) else self.window

    @property
    def _jobs(self) -> int:
        from joblib import effective_n_jobs

        return 1 if self.n_jobs is None else effective_n_jobs(self.n_jobs)

    def _seed(self) -> int:
        seed = 0 if self.random_state is None else self.random_state
        return (
            int(check_random_state(seed).randint(2**31 - 1)) if not isinstance(seed, int) else seed
        )

    def _check_parameters(self) -> None:
        line = isinstance(self.window, Interval)
        both = (
            isinstance(self.window, Product)
            and isinstance(self.window.right, Interval)
            and self.window.left.dimension == 2
        )
        if not (line or both):
            raise TypeError(
                "window must be an Interval of time or a region in the plane times one, such as "
                f"Box([0, 0], [1, 1]) * Interval(0, 365), got {shown(self.window)}."
            )
        check_choice("background", self.background, STATISTIC_MODELS)
        for name in ("longest_lag", "longest_distance"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if line and self.longest_distance is not None:
            raise ValueError(
                "longest_distance must be None for events without places, got "
                f"{shown(self.longest_distance)}."
            )
        if self.n_jobs not in (None, -1):
            check_count("n_jobs", self.n_jobs)

    def _points(self, name: str, X: ArrayLike) -> Floats:
        """Points (n, d); times may lie outside the window, places may not."""
        points = check_finite(name, as_floats(name, X))
        d = self.window.dimension
        if points.ndim == 1 and d == 1:
            points = points[:, None]
        if points.ndim != 2 or points.shape[1] != d:
            raise ValueError(f"{name} must have shape (n, {d}), time last, got {points.shape}.")
        if self._region is not None:
            self._region.require(f"{name}'s places", points[:, :-1])
        return points

    def _catalogue(
        self, name: str, X: ArrayLike, marks: ArrayLike | None, types: ArrayLike | None
    ) -> Catalogue:
        points = self._points(name, X)
        n = len(points)
        if (marks is None) == getattr(self, "has_marks_", marks is not None) and n:
            rule = "given, as in fit" if marks is None else "None: the fit had none"
            raise ValueError(f"marks must be {rule}, got {shown(marks)}.")
        return in_order(points[:, -1], points[:, :-1], _marks(marks, n), self._kinds(types, n))

    def _kinds(self, types: ArrayLike | None, n: int) -> Ints:
        if types is None:
            if len(self.types_) > 1 and n:
                raise ValueError(f"types must be given, as in fit: {shown(list(self.types_))}.")
            return np.zeros(n, dtype=np.int64)
        labels: NDArray[Any] = np.asarray(types)
        if labels.shape != (n,):
            raise ValueError(
                f"types must have shape ({n},), one for each event, got {labels.shape}."
            )
        found = np.searchsorted(self.types_, labels).clip(0, len(self.types_) - 1)
        unknown = np.flatnonzero(self.types_[found] != labels)
        if len(unknown):
            raise ValueError(
                f"types must be among those of the fit, {shown(list(self.types_))}, got "
                f"{shown(labels[unknown[0]])} in row {unknown[0]}."
            )
        return found.astype(np.int64)

    def _history(self, history: History | None) -> Catalogue:
        check_fitted(self, "rate_")
        if history is None:
            return self.history_
        given = history if isinstance(history, tuple) else (history,)
        X, marks, types = (*given, None, None)[:3]
        return self._catalogue("history", X, marks, types)

    def _part(self, region: Window) -> tuple[Window | None, float, float]:
        """A region as a place, a start and an end."""
        if self._region is None:
            if isinstance(region, Interval):
                return None, region.low, region.high
        elif isinstance(region, Product) and isinstance(region.right, Interval):
            return region.left, region.right.low, region.right.high
        rule = "intervals of time" if self._region is None else "places times intervals of time"
        raise TypeError(f"regions must be {rule}, got {shown(region)}.")

    def _places(self, regions: Window | Sequence[Window] | None) -> list[Window | None]:
        if regions is None:
            return [None]
        if self._region is None:
            raise ValueError(
                f"regions must be None for events without places, got {shown(regions)}."
            )
        listed = [regions] if isinstance(regions, Window) else list(regions)
        for region in listed:
            if not isinstance(region, Window) or region.dimension != 2:
                raise TypeError(
                    f"regions must be places such as Box([0, 0], [1, 1]), got {shown(region)}."
                )
        return list(listed)


def _marks(marks: ArrayLike | None, n: int) -> Floats:
    if marks is None:
        return np.zeros(n)
    found = as_floats("marks", marks)
    if found.shape != (n,):
        raise ValueError(f"marks must have shape ({n},), one for each event, got {found.shape}.")
    return check_finite("marks", found)
