"""SelfExciting: a rate of events that events raise."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from hplus._checks import Floats, Seed, check_choice, check_memory, check_number, check_random_state
from hplus._progress import whole_or_not
from hplus._threads import check_jobs
from hplus.estimators.base import UNSETTLED_CHANGE, check_fitted
from hplus.estimators.column_names import check_names
from hplus.estimators.event_rows import check_new, observed_part, warn_of_one_place, warn_of_ties
from hplus.estimators.excited_estimator import ExcitedEstimator
from hplus.estimators.excited_parameters import check_excited_window, check_longest
from hplus.estimators.forecast import as_cycles
from hplus.estimators.intensity import Intensity
from hplus.estimators.marks_and_types import (
    check_known_scale,
    check_one_scale,
    check_types_inside,
    labels_of,
)
from hplus.estimators.prior_parameters import STATISTIC_MODELS
from hplus.estimators.similar_rates import learned_place
from hplus.rates.excitation.branching_band import branching_band
from hplus.rates.excitation.excitation_fit import ObservedEvents
from hplus.rates.excitation.learned_excitation import learn_excited_rate, wanted_knots
from hplus.rates.excitation.learned_places import LearnedPlace
from hplus.rates.forecasts.block_edges import as_exposure
from hplus.rates.forecasts.cycle_factor import Cycles
from hplus.rates.forecasts.forecast_learning import ObservedTimes, learn_cycles
from hplus.rates.grid_rate import GridRate
from hplus.windows import Window

NEAR_ONE = 0.95
"""A branching ratio from which a warning says that bursts hardly die out."""

BYTES_PER_WEIGHT = 48.0
"""Memory of a fit for each event and weight: several copies of a matrix of numbers."""

MATRICES = 11
"""Square matrices of the weights that a fit holds at once, for each type and once more."""

LEVEL = 0.9
"""The level of the band of the branching ratio."""


class SelfExciting(ExcitedEstimator):
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

    A fit needs about 48 bytes for each event and weight of the trigger, of which there are some 500
    in place and time: a gigabyte for 40,000 events. If that is too much, it says so before it
    begins.

    Parameters
    ----------
    window : Interval, or a region in the plane or an Interval times an Interval
        When, and where, events could have occurred: at a place in the plane, or along one axis
        such as a road. Time is the last axis.
    background : "auto", "exp" or "tree"
        The model of the background in place, as in `Intensity`. It is learned from events by how
        likely they were not triggered. Trees, which are quick, are used while learning; "auto"
        keeps them if they predict each half of the time better from the other half.
    cycles : sequence of "day", "week", "year" or numbers
        Cycles that may multiply the background, as in `Forecast`: one is kept only if it predicts
        later cycles of events that were not triggered.
    origin : float
        When cycles begin, on the axis of time.
    longest_lag, longest_distance : float, optional
        Beyond these an event triggers nothing. By default a third of the window's time, of which
        as much is used as the evidence asks for, and a quarter of its longer side, but no more than
        its width.
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
    factor_law_ : FactorLaw
        How much events of one mark differ in how many they trigger. Those that are not expected to
        trigger next to none have a factor each, which is updated by what follows them.
    direction_strength_ : float
        How strongly events trigger others along the lines on which earlier ones lie; 0 if they do
        so alike in all directions. `trigger_` is the mean over these.
    branching_ratio_ : float
        How many events an average event triggers directly; with several types, the spectral radius
        of `branching_matrix_`. At 1 or above, bursts never die out.
    branching_interval_ : (low, high)
        A 90 % band of it, wide enough for every longest lag that the evidence hardly tells from
        the one that was chosen, and for how much events differ in how many they trigger.
    evidence_ : float
        How much likelier the events are with triggering than without, in nats: as the log evidence
        of this rate less that of the best rate of independent events. Below 3, the band of the
        branching ratio begins at 0.
    rival_ : str
        What that rate has: "a background that changes in time", "places that are always busy" or
        "".
    branching_matrix_ : array, shape (types, types)
        How many events of each type (columns) an average event of each type (rows) triggers
        directly.
    background_ : Background
        The rate of events that were not triggered.
    solution_ : SolverResult
        The certified gap of the weights of background and trigger given all else, without
        smoothing: a convex problem.
    smoothing_cost_ : float
        By how much the log-likelihood per event is below its maximum without smoothing.
    log_posteriors_ : array
        The log posterior after each of the last rounds; it never falls. Empty on a line without
        marks, where there is nothing to alternate with.
    cycles_ : tuple of CycleGain
        For each cycle, whether it was kept, and why.
    types_ : array
        The types of events, in the order of the rows of the matrix.
    history_ : Catalogue
        The events so far; `observed_until_` is when they end.
    """

    def __init__(
        self,
        window: Window,
        *,
        background: str = "auto",
        cycles: Sequence[str | float] = (),
        origin: float = 0.0,
        longest_lag: float | None = None,
        longest_distance: float | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.window = window
        self.background = background
        self.cycles = cycles
        self.origin = origin
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
        numbers such as magnitudes, and `types` (n,) labels such as kinds of crime, at most 20
        different ones: join rare ones. With 10, a fit takes seconds, and with 20 a quarter of a
        minute or more.
        """
        with whole_or_not(self):
            self._check_parameters()
            self.types_ = labels_of(types)
            self.has_marks_ = marks is not None
            check_names(self, X, reset=True)
            events = self._rows.catalogue("X", X, marks, types)
            start, end = self._period.low, self._period.high
            inside = observed_part(events, start, end)
            check_one_scale(events.marks)
            check_types_inside(self.types_, inside.types)
            self.history_, self.observed_until_ = events, end
            kinds, region = len(self.types_), self._rows.region
            self._learn(
                ObservedEvents(events, inside, start, end, region, kinds, check_jobs(self.n_jobs))
            )
            self.n_features_in_, self.total_ = self.window.dimension, float(len(inside))
        self._warn_near_one()
        self._warn_if_crowded()
        warn_of_one_place(inside)
        warn_of_ties(inside)
        return self

    def update(
        self,
        X: ArrayLike,
        *,
        until: float,
        marks: ArrayLike | None = None,
        types: ArrayLike | None = None,
    ) -> Self:
        """Add events X that were observed up to `until`, without learning anew.

        They are those from `observed_until_` on, at which time only events that are not known yet
        may be added, until `until`, included.
        """
        check_fitted(self, "rate_", "it is updated")
        new = self._rows.catalogue("X", X, marks, types)
        check_known_scale(new.marks, self.effects_.knots)
        check_new(new, self.history_, self.observed_until_, check_number("until", until))
        self.history_, self.observed_until_ = self.history_.with_others(new), float(until)
        return self

    def _learn(self, observed: ObservedEvents) -> None:
        knots = wanted_knots(observed, self.longest_lag, self.longest_distance)
        columns = observed.types * (len(knots.lags) - 1) * max(len(knots.distances) - 1, 1)
        rows, matrices = len(observed.inside), MATRICES * (observed.types + 1)
        check_memory(
            BYTES_PER_WEIGHT * rows * columns + 8.0 * matrices * columns**2,
            f"a self-exciting rate of {rows} events with {columns} weights",
            "use fewer events, fewer types if there are several or, in Python, a shorter "
            "longest_lag",
        )
        # trees, which are quick, in each round of the alternation
        trees, other = (partial(self._learn_place, m) for m in ("tree", self.background))
        last = {"tree": [], "exp": [other], "auto": [trees, other]}[self.background]
        learned = learn_excited_rate(observed, knots, trees, last, self._learn_cycles, self._seed())
        self.rate_ = rate = learned.rate
        self.trigger_, self.effects_, self.background_ = rate.trigger, rate.effects, rate.background
        self.factor_law_, self.direction_strength_ = rate.factor_law, rate.direction_strength
        self.solution_, self.smoothing_cost_ = learned.result, learned.smoothing_cost
        self.log_posteriors_ = np.array(learned.trace)
        average = rate.average_trigger
        self.branching_matrix_, self.branching_ratio_ = average.integral(), average.branching()
        self.branching_interval_ = branching_band(learned, observed, LEVEL)
        self.evidence_, self.rival_ = learned.evidence, learned.rival

    def _learn_place(self, model: str, places: Floats, weights: Floats) -> LearnedPlace:
        rate = Intensity(self._rows.region, model=model, random_state=self._seed())
        return learned_place(rate, places, weights)

    def _learn_cycles(self, times: Floats, shares: Floats) -> Cycles:
        low, high = self._period.low, self._period.high
        exposure, changes = as_exposure(1.0, low, high), np.zeros(0)
        observed = ObservedTimes(times, shares, low, high, exposure, changes)
        asked = as_cycles(self.cycles, self._period.unit)
        cycles, self.cycles_ = learn_cycles(observed, asked, float(self.origin), self._seed())
        return cycles

    def _warn_near_one(self) -> None:
        if self.branching_ratio_ >= NEAR_ONE:
            warnings.warn(
                f"The branching ratio is {self.branching_ratio_:.3g} ("
                f"{self.branching_interval_[0]:.2g} to {self.branching_interval_[1]:.2g})"
                + (": at 1 or above, simulated bursts never die out" * (self.branching_ratio_ >= 1))
                + ". Forecasts far ahead depend on it, and a background that changes in time, or "
                "missing marks, can look like this.",
                UserWarning,
                stacklevel=3,
            )

    def _warn_if_crowded(self) -> None:
        grids = [rate for rate in self.background_.places if isinstance(rate, GridRate)]
        if any(rate.quadrature_error > UNSETTLED_CHANGE for rate in grids):
            warnings.warn(
                "Events are too crowded for the finest grid on this window to resolve their "
                'background: use background="tree" or a smaller window; if they lie along a line, '
                "give the place on it as the only axis besides time.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _seed(self) -> int:
        seed = 0 if self.random_state is None else self.random_state
        return int(check_random_state(seed).randint(2**31 - 1))

    def _check_parameters(self) -> None:
        check_excited_window(self.window)
        check_choice("background", self.background, STATISTIC_MODELS)
        as_cycles(self.cycles, self._period.unit)
        check_random_state(self.random_state)
        check_number("origin", self.origin)
        check_longest(self.window, self.longest_lag, self.longest_distance)
        check_jobs(self.n_jobs)
