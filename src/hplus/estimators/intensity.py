"""Intensity: how often events happen, where and when."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from hplus._checks import Floats, Seed, as_floats, check_positive, check_random_state, shown
from hplus._progress import whole_or_not
from hplus.estimators.base import check_fitted, warn_if_loose, warn_if_unsettled
from hplus.estimators.column_names import check_names
from hplus.estimators.prior_parameters import (
    CONSTANT,
    STATISTIC_MODELS,
    Given,
    check_known,
    check_prior,
    criterion_of,
    model_meant,
    wanted_prior,
)
from hplus.estimators.rate_estimator import RateEstimator
from hplus.kernels import Kernel
from hplus.rates.binned import AnyStatistic, BinnedStatistic
from hplus.rates.by_region import warn_of_degrees
from hplus.rates.grid_rate import GridRate
from hplus.rates.lazy_parts import is_lazy
from hplus.rates.prior import KernelPrior, Mixture
from hplus.rates.rate_models import Similar, learn, learn_constant, learn_like, learn_priors
from hplus.rates.ratio import RateRatio
from hplus.rates.sos_rate import learn_sos_rate
from hplus.rates.square_rate import learn_square_rate
from hplus.rates.squares_rate import SquaresRate
from hplus.rates.statistic import Statistic
from hplus.rates.trees.spectrum import ScaleSpectrum
from hplus.rates.window_features import as_events
from hplus.windows import check_window


class Intensity(RateEstimator):
    """How many events to expect per unit of length, area or volume, everywhere in a window.

    The rate λ(x) >= 0 of a Poisson process, by a smooth field and random dyadic trees, which find
    structure of every size, weighted by how well they predict events held out (`model="auto"`).

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
    model : "auto", "exp", "tree", "sos" or "square"
        "exp" is the most probable log rate under a Gaussian field; "tree" the mean of random
        dyadic trees, in closed form; "auto" learns "exp", "tree" and trees on the rate of "exp",
        and weighs the three. Given a kernel, a `mixture_` or a penalty, "auto" is "exp". "sos" is
        a sum of squares, "square" a square.
    covariates : function, array, or dict of them by name, optional
        What log rates depend on linearly (not for "sos" and "square"). A function takes
        points (n, d); an array holds values on a regular grid over the window's bounding box,
        edges included.
    random_state : int, RandomState or None
        Seed of the held-out parts and of posterior draws; None is 0, so that fits are repeatable.

    Attributes
    ----------
    weights_ : dict
        The weights above 0 of "exp", "tree" and "tree on exp" in the rate; they add up to 1.
    resolution_ : float or array, shape (d,)
        The side of the smallest cell that the rate tells apart, on each axis if units differ: for
        trees, the smallest in which events cluster; for "exp", the spacing of its grid. Never
        below the step of `positions_`. The rate may still be as smooth as the events ask for.
    positions_ : Positions
        Whether positions are rounded or repeated, and the step below which they say nothing.
    solution_ : SolverResult
        Status, iterations, objective and its certified gap: those of "exp", for the leading prior
        if several are averaged. "tree" is a closed form with gap 0.
    log_evidence_ : float
        The log evidence of the leading prior of "exp"; for "tree", relative to a constant rate;
        NaN for "sos".
    kernel_, penalty_
        The leading prior of "exp": the kernel or, for "auto", the fields that were learned; and
        the penalty that it is divided by. Like the next two, absent for "tree".
    mixture_ : tuple of (weight, prior)
        The priors over which "exp" averages.
    quadrature_error_ : float
        How much the rate of "exp" moved when its grid was last refined, as a share of all events;
        NaN if it was not refined, as for kernels that are not stationary.
    coefficients_, coefficient_errors_ : dict
        The coefficients of the covariates by name, and their standard errors.
    """

    def __init__(
        self,
        window: Any,
        kernel: Any = "auto",
        penalty: Any = "auto",
        model: str = "auto",
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
        self,
        X: Any,
        y: None = None,
        *,
        sample_weight: Any = None,
        exposure: Any = 1.0,
        priors: Given = "auto",
    ) -> Self:
        """Learn the rate of events X (n, d), which may be of Dask, or of a `Statistic` of them.

        `exposure` is how long or how often the window was observed: a number, a function of
        points, or an array over the window's bounding box. Rates are per unit of it. `priors` are
        those of the smooth field if they need not be learned: what `learn_mixture` found, or
        "constant" for a rate that does not vary.
        """
        with whole_or_not(self):
            self._check_parameters()
            check_known(priors, self.window.dimension)
            statistic, points, weights = self._events(X, sample_weight)
            if self.model in STATISTIC_MODELS:
                self._fit_statistic(statistic, exposure, priors)
            else:
                self._fit_squares(points, weights, exposure)
            self.n_features_in_, self.total_ = self.window.dimension, statistic.total
            self.solution_, self.log_evidence_ = self.rate_.result, self.rate_.log_evidence
            warn_if_loose(self, self.solution_, self.rate_.promised_gap)
            if getattr(self, "weights_", {}).keys() == {"exp"}:
                warn_if_unsettled(self.quadrature_error_)
        return self

    def learn_mixture(
        self, X: Any, *, sample_weight: Any = None, exposure: Any = 1.0
    ) -> Mixture | str:
        """The priors that a fit of "auto" would learn, for the `priors` of other fits.

        The same events, or parts of them, can then be fitted in several ways without learning the
        priors again. On a line, where learning them takes no time, it is "auto".
        """
        self._check_parameters()
        if self.window.dimension == 1:
            return "auto"
        statistic, _, _ = self._events(X, sample_weight)
        criterion, seed = criterion_of(self.penalty), self._drawn_seed()
        return learn_priors(statistic, exposure, self.covariates, criterion, seed)

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
        if not isinstance(self.rate_, GridRate | SquaresRate):
            raise ValueError(
                "gradient needs a rate without trees, which are constant in each cell, got weights "
                f'{self.weights_}: fit with model="exp".'
            )
        return self.rate_.function.gradient(X)

    def scale_spectrum(self) -> ScaleSpectrum:
        """At which sizes events cluster, down to the step of their positions: a `ScaleSpectrum`.

        Relative to the exposure and to what covariates explain; `ScaleSpectrumDisplay` draws it.
        """
        check_fitted(self)
        if (spectrum := getattr(self, "spectrum_", None)) is None:
            raise ValueError(
                'scale_spectrum needs events themselves or a Statistic and model="auto", "exp" or '
                f'"tree", got model={self.model!r}: fit again.'
            )
        return spectrum

    def _check_parameters(self) -> None:
        check_window("window", self.window)
        check_prior(self.model, self.kernel, self.penalty, self.window.dimension)
        if self.covariates is not None and self.model not in STATISTIC_MODELS:
            raise ValueError(
                f'covariates need model="auto", "exp" or "tree", got model={self.model!r}.'
            )
        warn_of_degrees(self.window)

    def _events(self, X: Any, sample_weight: Any) -> tuple[AnyStatistic, Floats, Floats]:
        """The statistic of the events, and the events and weights themselves if they were given."""
        if is_lazy(X):
            X, sample_weight = Statistic.of(self.window, X, sample_weight), None
        if isinstance(X, AnyStatistic):
            former = isinstance(X, BinnedStatistic)
            usable = self._model in (("exp",) if former else STATISTIC_MODELS)
            if not usable or sample_weight is not None or X.window != self.window:
                models = 'model="exp"' if former else 'model="auto", "exp" or "tree"'
                raise ValueError(
                    f"a Statistic{' of an earlier version' * former} must have the same window and "
                    f"needs {models} and no sample_weight, got one on {shown(X.window)} and "
                    f"model={self.model!r}: fit the events themselves."
                )
            statistic: AnyStatistic = X
            points, weights = np.zeros((0, self.window.dimension)), np.zeros(0)
        else:
            check_names(self, X, reset=True)
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

    def _fit_statistic(self, statistic: AnyStatistic, exposure: Any, priors: Given) -> None:
        wanted, seed = wanted_prior(self.kernel, self.penalty, priors), self._drawn_seed()
        if isinstance(statistic, Statistic) and isinstance(priors, str) and priors == CONSTANT:
            learned = learn_constant(statistic, exposure, seed)
        elif isinstance(statistic, Statistic) and isinstance(priors, Similar):
            learned = learn_like(statistic, exposure, priors, seed)
        else:
            learned = learn(statistic, self._model, exposure, self.covariates, wanted, seed)
        self.rate_: Any = learned.rate
        self.weights_, self.resolution_ = learned.weights, learned.resolution
        if learned.observed is not None:
            self.positions_ = learned.observed.positions
            self.spectrum_ = learned.observed.spectrum
        if learned.exposed.effects is not None:
            self.coefficients_ = learned.exposed.effects.coefficients
            self.coefficient_errors_ = learned.errors
        if learned.smooth is not None:
            leader = learned.smooth.leader
            self.kernel_: Any = leader.kernel if isinstance(leader, KernelPrior) else leader
            self.penalty_ = leader.penalty if isinstance(leader, KernelPrior) else 1.0
            self.mixture_ = learned.smooth.mixture
            self.quadrature_error_ = learned.smooth.quadrature_error

    @property
    def _model(self) -> str:
        return model_meant(self.model, self.kernel, self.penalty)

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
    def _seed(self) -> Seed:
        return 0 if self.random_state is None else self.random_state

    def _drawn_seed(self) -> int:
        """A seed of the folds and of posterior draws."""
        return int(check_random_state(self._seed).randint(2**31 - 1))
