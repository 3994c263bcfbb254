"""Intensity: how often events happen, where and when."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hplus._checks import (
    Floats,
    Seed,
    as_floats,
    check_choice,
    check_positive,
    check_random_state,
    shown,
)
from hplus._progress import whole_or_not
from hplus.estimators.base import check_fitted, check_kernel, warn_if_loose
from hplus.estimators.rate_estimator import RateEstimator
from hplus.kernels import Kernel
from hplus.rates.binned import AnyStatistic, BinnedStatistic
from hplus.rates.by_region import warn_of_degrees
from hplus.rates.exposure import exposed
from hplus.rates.grid_rate import GridRate
from hplus.rates.judging import CRITERIA, Criterion
from hplus.rates.log_gaussian import learn_rate
from hplus.rates.prior import KernelPrior, Mixture, SumOfFields, is_mixture
from hplus.rates.ratio import RateRatio
from hplus.rates.selection import LearnPrior, Wanted, learn_mixture
from hplus.rates.sos_rate import learn_sos_rate
from hplus.rates.square_rate import learn_square_rate
from hplus.rates.squares_rate import SquaresRate
from hplus.rates.statistic import Statistic
from hplus.rates.window_features import as_events
from hplus.windows import check_window

MODELS = ("exp", "sos", "square")

UNSETTLED_CHANGE = 0.3
"""Share of the events by which the rate may move at the last refinement without a warning."""


class Intensity(RateEstimator):
    """How many events to expect per unit of length, area or volume, everywhere in a window.

    The rate λ(x) >= 0 of a Poisson process, by the most probable log rate under a Gaussian field
    (`model="exp"`), a sum of squares (`"sos"`) or a square (`"square"`).

    >>> import numpy as np
    >>> from hplus import Intensity, Interval
    >>> times = np.random.RandomState(0).beta(2, 5, size=300)[:, None] * 24
    >>> model = Intensity(Interval(0, 24, unit="h")).fit(times)
    >>> round(model.expected_count(Interval(0, 24)))
    300
    >>> bool(model.predict([[6.0]]) > model.predict([[20.0]]))
    True

    Parameters
    ----------
    window : Window
        Where events could have occurred: `Interval`, `Box`, `Polygon` or a product of them, of 1 to
        3 dimensions. It is never inferred from the events.
    kernel : "auto", Kernel or the `mixture_` of another fit
        The covariance of log rates at two points; "auto" learns its scales, smoothness and form.
        A `mixture_` is used as it is, which saves most of the time of a fit.
    penalty : "auto", "evidence", "thinning" or float
        How strongly variation is penalised: the kernel is divided by it. A name says how it is
        learned, together with the kernel if that is "auto": by the evidence, or by how well events
        held out by random thinning are predicted. "auto" takes the evidence for fewer than 50
        events and, where the kernel is learned too, for smooth rates on a line; thinning elsewhere.
    model : "exp", "sos" or "square"
    covariates : function, array, or dict of them by name, optional
        What log rates depend on linearly (model "exp"). A function takes points (n, d); an array
        holds values on a regular grid over the window's bounding box, edges included.
    random_state : int, RandomState or None
        Seed of the held-out parts and of posterior draws; None is 0, so that fits are repeatable.

    Attributes
    ----------
    solution_ : SolverResult
        Status, iterations, objective and its certified gap, for the leading prior if several are
        averaged.
    log_evidence_ : float
        The log evidence of the leading prior; NaN for "sos".
    kernel_, penalty_
        The leading prior: the kernel or, for "auto" with "exp", the fields that were learned; and
        the penalty that it is divided by.
    mixture_ : tuple of (weight, prior)
        The priors over which "exp" averages.
    quadrature_error_ : float
        How much the rate moved when the grid was last refined, as a share of all events; NaN if
        it was not refined, as for kernels that are not stationary.
    coefficients_, coefficient_errors_ : dict
        The coefficients of the covariates by name, and their standard errors.
    """

    def __init__(
        self,
        window: Any,
        kernel: Any = "auto",
        penalty: Any = "auto",
        model: str = "exp",
        *,
        covariates: Any = None,
        random_state: Any = None,
    ) -> None:
        self.window = window
        self.kernel = kernel
        self.penalty = penalty
        self.model = model
        self.covariates = covariates
        self.random_state = random_state

    def fit(
        self, X: Any, y: None = None, *, sample_weight: Any = None, exposure: Any = 1.0
    ) -> Self:
        """Learn the rate of events X (n, d), or of a `Statistic` of them.

        `exposure` is how long or how often the window was observed: a number, a function of
        points, or an array over the window's bounding box. Rates are per unit of it.
        """
        with whole_or_not(self):
            self._check_parameters()
            statistic, points, weights = self._events(X, sample_weight)
            if self.model == "exp":
                self._fit_exp(statistic, exposure)
            else:
                self._fit_squares(points, weights, exposure)
            self.n_features_in_, self.total_ = self.window.dimension, statistic.total
            self.solution_, self.log_evidence_ = self.rate_.result, self.rate_.log_evidence
            warn_if_loose(self, self.solution_, self.rate_.promised_gap)
            self._warn_if_unsettled()
        return self

    def learn_mixture(
        self, X: Any, *, sample_weight: Any = None, exposure: Any = 1.0
    ) -> Mixture | str:
        """The priors that a fit of "auto" would learn, for the `kernel` of other fits.

        The same events, or parts of them, can then be fitted in several ways without learning the
        priors again. On a line, where learning them takes no time, it is "auto".
        """
        self._check_parameters()
        if self.window.dimension == 1:
            return "auto"
        statistic, _, _ = self._events(X, sample_weight)
        binned = BinnedStatistic.of(statistic, self._drawn_seed())
        level, _ = exposed(binned, exposure, self.covariates)
        return learn_mixture(level, self._criterion)

    def __truediv__(self, other: Any) -> RateRatio:
        """The ratio of this rate to another one of the same window: a `RateRatio`."""
        if not isinstance(other, Intensity):
            return NotImplemented
        for rate in (self, other):
            check_fitted(rate)
        if self.window != other.window:
            raise ValueError(
                f"rates must have the same window to be divided, got {shown(self.window)} and "
                f"{shown(other.window)}: fit both on the same window."
            )
        return RateRatio(self.window, self.rate_, other.rate_)

    def gradient(self, X: Any) -> Floats:
        """∇λ at each point, shape (n, d)."""
        X = self._points(X)
        return self.rate_.function.gradient(X)

    def _check_parameters(self) -> None:
        check_window("window", self.window)
        check_choice("model", self.model, MODELS)
        if is_mixture(self.kernel):
            self._check_mixture()
        else:
            check_kernel(self.kernel)
        if isinstance(self.penalty, str):
            check_choice("penalty", self.penalty, CRITERIA if self.model == "exp" else ("auto",))
        else:
            check_positive("penalty", self.penalty)
            if self.model == "exp" and not isinstance(self.kernel, Kernel):
                raise ValueError(
                    f'penalty must be "auto", "evidence" or "thinning" with kernel="auto", got '
                    f"{self.penalty}: give a kernel too."
                )
        if self.covariates is not None and self.model != "exp":
            raise ValueError(f'covariates need model="exp", got model={self.model!r}.')
        warn_of_degrees(self.window)

    def _warn_if_unsettled(self) -> None:
        """Warn where the finest grid is too coarse: events are crowded, or many of them equal."""
        if getattr(self, "quadrature_error_", 0.0) > UNSETTLED_CHANGE:
            warnings.warn(
                "Events are too crowded for the finest grid on this window to resolve them "
                "(quadrature_error_ is the share of them that moves from one grid to the next). "
                "Use a smaller window; if coordinates are rounded, spread them evenly over the "
                "step of the rounding.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_mixture(self) -> None:
        """A mixture leaves nothing to learn, and belongs to a model and a number of axes."""
        if self.model != "exp" or not (isinstance(self.penalty, str) and self.penalty == "auto"):
            raise ValueError(
                'kernel may be the mixture_ of another fit only with model="exp" and '
                f'penalty="auto", got model={self.model!r} and penalty={self.penalty!r}.'
            )
        d = self.window.dimension
        for _, prior in self.kernel:
            if isinstance(prior, SumOfFields) and prior.dimension != d:
                raise ValueError(
                    f"kernel must be the mixture_ of a fit with {d} axes, got one with "
                    f"{prior.dimension}."
                )

    def _events(self, X: Any, sample_weight: Any) -> tuple[AnyStatistic, Floats, Floats]:
        """The statistic of the events, and the events and weights themselves if they were given."""
        if isinstance(X, AnyStatistic):
            if self.model != "exp" or sample_weight is not None or X.window != self.window:
                raise ValueError(
                    'a Statistic must have the same window and needs model="exp" and no '
                    f"sample_weight, got one on {shown(X.window)}: fit the events themselves."
                )
            statistic: AnyStatistic = X
            points, weights = np.zeros((0, self.window.dimension)), np.zeros(0)
        else:
            points = self.window.require("X", X)
            statistic = Statistic.of(self.window, points, sample_weight)
            weights = np.ones(len(points))
            if sample_weight is not None:
                weights = as_floats("sample_weight", sample_weight)
        if not statistic.total > 0.0:
            raise ValueError(
                f"X must hold at least one event with a weight above 0, got {len(points)} events: "
                "without any there is no rate to learn."
            )
        return statistic, points, weights

    def _fit_exp(self, statistic: AnyStatistic, exposure: Any) -> None:
        seed = self._drawn_seed()
        level, effects = exposed(BinnedStatistic.of(statistic, seed), exposure, self.covariates)
        rate = learn_rate(level, self._wanted(), seed)
        if effects is not None:
            self.coefficients_ = effects.coefficients
            self.coefficient_errors_ = effects.errors(rate, level)
            rate = effects.applied(rate, level)
        self.rate_: GridRate | SquaresRate = rate
        leader = rate.leader
        self.kernel_: Any = leader.kernel if isinstance(leader, KernelPrior) else leader
        self.penalty_ = leader.penalty if isinstance(leader, KernelPrior) else 1.0
        self.mixture_, self.quadrature_error_ = rate.mixture, rate.quadrature_error

    def _wanted(self) -> Wanted:
        """The priors that are given, or what is to be learned of them."""
        if is_mixture(self.kernel):
            return self.kernel
        if not isinstance(self.kernel, Kernel):
            return LearnPrior(self._criterion)
        if isinstance(self.penalty, str):
            return LearnPrior(self._criterion, self.kernel)
        return ((1.0, KernelPrior(self.kernel, float(self.penalty))),)

    def _fit_squares(self, points: Floats, weights: Floats, exposure: Any) -> None:
        if np.ndim(exposure) > 0 or callable(exposure):
            raise ValueError(
                f"exposure must be a number with model={self.model!r}, got {shown(exposure)}: use "
                'model="exp".'
            )
        events = as_events(points, weights, self.window, check_positive("exposure", exposure))
        kernel = self.kernel if isinstance(self.kernel, Kernel) else None
        penalty = None if isinstance(self.penalty, str) else float(self.penalty)
        if self.model == "square":
            rate = learn_square_rate(events, kernel, penalty)
        else:
            rate = learn_sos_rate(events, kernel, penalty, self._seed)
        self.rate_, self.kernel_, self.penalty_ = rate, rate.kernel, rate.penalty

    @property
    def _criterion(self) -> Criterion:
        """How the parts of the prior that are not given are learned."""
        return next((name for name in CRITERIA if name == self.penalty), "auto")

    @property
    def _seed(self) -> Seed:
        return 0 if self.random_state is None else self.random_state

    def _drawn_seed(self) -> int:
        """A seed of the folds and of posterior draws."""
        return int(check_random_state(self._seed).randint(2**31 - 1))
