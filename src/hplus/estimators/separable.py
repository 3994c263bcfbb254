"""SeparableIntensity: where and when events happen, learned apart."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from hplus._checks import check_choice, check_random_state, shown
from hplus._progress import whole_or_not
from hplus.estimators.column_names import check_names
from hplus.estimators.intensity import Intensity
from hplus.estimators.prior_parameters import STATISTIC_MODELS
from hplus.estimators.rate_estimator import RateEstimator
from hplus.rates.lattice import LATTICE_BITS
from hplus.rates.map_by_time import MapByTime, masses_of
from hplus.rates.map_learning import joint_statistic, learn_map_by_time
from hplus.rates.prior import Mixture
from hplus.rates.separable import SeparableRate
from hplus.rates.statistic import Statistic
from hplus.windows import Product

DEPENDENCES = ("none", "auto")
"""May the map change with time?"""


class SeparableIntensity(RateEstimator):
    """How often events happen, by place and by time, where place and time are independent.

    λ(x, t) = p(x) q(t): two fits of `Intensity`, one of the places and one of the times, which
    resolve far finer structure than a joint fit of both could. With `dependence="auto"` the map may
    change with time, λ(x, t) = p(x) q(t) r(x, t), if there is evidence that it does.

    >>> import numpy as np
    >>> from hplus import Cycle, Interval, SeparableIntensity
    >>> X = np.random.RandomState(0).beta(2, 4, size=(500, 2)) * [1.0, 24.0]
    >>> model = SeparableIntensity(Interval(0, 1, unit="km") * Cycle(24, unit="h")).fit(X)
    >>> round(model.expected_count(Interval(0, 1) * Cycle(24)))
    500

    Parameters
    ----------
    window : Product
        A window of places times a window of times.
    kernels : pair of "auto" or the `mixture_` of another fit
        The `kernel` of the fit by place and of the fit by time, as in `Intensity`.
    model : "auto", "exp" or "tree"
        That of both fits, as in `Intensity`.
    random_state : int, RandomState or None
        As in `Intensity`.
    dependence : "none" or "auto", default="none"
        "auto" learns by trees how the map changes with time, if events are at least 3 nats, and
        10⁻⁴ nats per event, more likely at some size of cells. Bursts at one place look like such a
        change too: whether it lasts, only later events can tell, as in `EventStudy`.

    Attributes
    ----------
    place_, time_ : Intensity
        The two fits, each of all events.
    map_by_time_ : MapByTime or None
        How the map changes with time, with its `log_evidence` in nats; None if it does not.
    solution_ : SolverResult
        The solution of the two with the wider gap.
    """

    def __init__(
        self,
        window: Any,
        *,
        kernels: Any = ("auto", "auto"),
        model: str = "auto",
        random_state: Any = None,
        dependence: str = "none",
    ) -> None:
        self.window = window
        self.kernels = kernels
        self.model = model
        self.random_state = random_state
        self.dependence = dependence

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        exposure: Any = 1.0,
        priors: tuple[Mixture | str, ...] = ("auto", "auto"),
    ) -> Self:
        """Learn both rates from events X (n, d), or from a pair of their `Statistic`s.

        `exposure` is how long or how often the window was observed: a number, or a function of
        the times (n, 1). `priors` are those of the two smooth fields, as in `Intensity.fit`.
        """
        with whole_or_not(self):
            self._check_parameters()
            places, times = self._statistics(X)
            window, (by_place, by_time), seed = self.window, self.kernels, self.random_state
            place = Intensity(window.left, by_place, model=self.model, random_state=seed)
            time = Intensity(window.right, by_time, model=self.model, random_state=seed)
            time.fit(times, exposure=exposure, priors=priors[1])
            place.fit(places, priors=priors[0])
            by_time = None
            if self.dependence == "auto":
                by_time = self.learn_map(self._joint(X), place, time)
            self.join(place, time, by_time)
        return self

    def learn_map(self, events: Statistic, place: Intensity, time: Intensity) -> MapByTime | None:
        """How the map of events by place and time changes with time, given the rates of both."""
        margins = partial(masses_of, place.rate_, time.rate_, self.window)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return learn_map_by_time(events, margins, seed)

    def join(self, place: Intensity, time: Intensity, by_time: MapByTime | None = None) -> Self:
        """Take two rates of the same events, already learned by place and by time.

        `by_time` is how the map changes with time, if it does.
        """
        self.place_, self.time_ = place, time
        self.total_, self.n_features_in_ = place.total_, self.window.dimension
        self.map_by_time_ = by_time
        self.rate_ = SeparableRate(self.window, place.rate_, time.rate_, self.total_, by_time)
        self.solution_ = self.rate_.result
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.window, Product):
            raise TypeError(
                f"window must be a product such as Box(...) * Cycle(24), got {shown(self.window)}."
            )
        check_choice("model", self.model, STATISTIC_MODELS)
        check_choice("dependence", self.dependence, DEPENDENCES)
        if self.dependence == "auto" and self.window.dimension > max(LATTICE_BITS):
            raise ValueError(
                f'window must have at most {max(LATTICE_BITS)} axes for dependence="auto", got '
                f"{self.window.dimension}."
            )
        if not isinstance(self.kernels, tuple | list) or len(self.kernels) != 2:
            raise TypeError(
                "kernels must be a pair, one for places and one for times, such as "
                f'("auto", "auto"), got {shown(self.kernels)}.'
            )

    def _joint(self, X: Any) -> Statistic:
        if isinstance(X, tuple):
            raise ValueError(
                'X must be events for dependence="auto", got a pair of Statistics, which do not '
                "say which place goes with which time."
            )
        return joint_statistic(self.window, self.window.require("X", X))

    def _statistics(self, X: Any) -> tuple[Statistic, Statistic]:
        if isinstance(X, tuple):
            if [type(part) for part in X] != [Statistic] * 2 or X[0].events != X[1].events:
                raise ValueError(
                    "X must be events or a pair of Statistics of the same events, one by place and "
                    f"one by time, got {shown(X)}."
                )
            return X
        check_names(self, X, reset=True)
        X = self.window.require("X", X)
        d = self.window.left.dimension
        left = Statistic.of(self.window.left, X[:, :d])
        return left, Statistic.of(self.window.right, X[:, d:])
