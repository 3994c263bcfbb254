"""Intensity: how often events happen, where and when."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hplus._checks import (
    Floats,
    as_floats,
    check_choice,
    check_positive,
    shown,
)
from hplus._progress import whole_or_not
from hplus.estimators.base import check_fitted, check_kernel, warn_if_loose
from hplus.estimators.rate_estimator import FittedRate
from hplus.rates.exposure import (
    check_window,
    covariates_at_nodes,
    watched_events,
)
from hplus.rates.squares_rate import (
    CRITERIA,
    MODELS,
    SquaresRate,
    Wanted,
    explained,
    learn_exp,
    learn_mixture,
    learn_squares,
    learn_with_covariates,
)
from hplus.rates.ratio import RateRatio
from hplus.kernels import Kernel
from hplus.rates.prior import Given, Texture
from hplus.rates.grid_rate import GridRate
from hplus.rates.statistic import Statistic
from hplus.storage import storable
from hplus.rates.selection import is_mixture
from hplus.windows import Window

UNSETTLED = 0.3
"""Share of the events by which the rate may move at the last refinement without a warning."""

DEGREES = ("deg", "degree", "degrees", "°")


@storable
class Intensity(FittedRate):
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
        Where events could have been seen: `Interval`, `Box`, `Polygon` or a product of them, of 1
        to 3 dimensions. It is never guessed from the events.
    kernel : "auto", Kernel or the `mixture_` of another fit
        How alike log rates at two points are; "auto" learns scales, smoothness and shape. What
        another fit has learned of them is used as it is, which takes a part of the time.
    penalty : "auto", "evidence", "thinning" or float
        How strongly variation is held down: the kernel is divided by it. Otherwise it is learned,
        together with what "auto" leaves open, by the evidence or by how well events are predicted
        that were held out by random thinning; "auto" takes the evidence for less than 50 events
        and, where the kernel is learned too, for smooth rates on a line, thinning elsewhere.
    model : "exp", "sos" or "square"
    covariates : function, array, or dict of them by name, optional
        What log rates depend on linearly (model "exp"). A function takes points (n, d); an array
        holds values on a regular grid over the window's bounding box, edges included.
    random_state : int, RandomState or None
        For the parts that are held out and for draws; None is 0, so that a fit can be repeated.

    Attributes
    ----------
    solution_ : SolverResult
        Status, iterations, objective and its certified gap; of the leading prior if several are
        averaged.
    log_evidence_ : float
        Of the leading prior; NaN for "sos".
    kernel_, penalty_
        The leading prior: the kernel or, for "auto" with "exp", the fields that were learned; and
        what it is divided by.
    mixture_ : tuple of (weight, prior)
        The priors over which "exp" averages.
    quadrature_error_ : float
        How much the rate moved when the grid was refined last, as a share of all events; NaN if
        it was not, as for kernels that are not stationary.
    coefficients_, coefficient_errors_ : dict
        Of the covariates, with standard errors.
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

        `exposure` says how long or how often the window was watched: a number, a function of
        points, or an array over the window's bounding box. Rates are per unit of it.
        """
        with whole_or_not(self):
            self._check_parameters()
            statistic, points, weights = self._events(X, sample_weight)
            if self.model == "exp":
                self._fit_exp(statistic, exposure)
            else:
                self._fit_squares(points, weights, exposure)
            self.n_features_in_ = self.window.dimension
            self.total_ = statistic.total
            self.solution_, self.log_evidence_ = self.rate_.result, self.rate_.log_evidence
            warn_if_loose(self, self.solution_, self.rate_.promised_gap)
            self._warn_if_unsettled()
        return self

    def learn_mixture(self, X: Any, *, sample_weight: Any = None, exposure: Any = 1.0) -> Any:
        """What a fit of "auto" would learn about priors, for the `kernel` of other fits.

        The same events can then be fitted in several ways, or parts of them, without learning it
        again; "auto" again on a line, where it takes no time.
        """
        self._check_parameters()
        if self.window.dimension == 1:
            return "auto"
        statistic, _, _ = self._events(X, sample_weight)
        statistic, watched = watched_events(exposure, statistic)
        if self.covariates is not None:
            given = covariates_at_nodes(self.covariates, statistic, watched)
            watched = watched * np.exp(explained(statistic, watched, given.columns).linear)
        return learn_mixture(statistic, watched, self._wanted().criterion)

    def __truediv__(self, other: Any) -> RateRatio:
        """How many times as high this rate is as another one of the same window: a `RateRatio`."""
        if not isinstance(other, Intensity):
            return NotImplemented
        for rate in (self, other):
            check_fitted(rate)
        if self.window != other.window:
            raise ValueError(
                f"rates must have the same window to be divided, got {shown(self.window)} and "
                f"{shown(other.window)}: fit both on one window."
            )
        return RateRatio(self.window, self.rate_, other.rate_)

    def gradient(self, X: Any) -> Floats:
        """∇λ at each point, shape (n, d)."""
        X = self._points(X)
        return self.rate_.function.gradient(X)

    def _check_parameters(self) -> None:
        check_window(self.window)
        check_choice("model", self.model, MODELS)
        if is_mixture(self.kernel):
            self._check_mixture()
        else:
            check_kernel(self.kernel)
        if isinstance(self.penalty, str):
            check_choice("penalty", self.penalty, CRITERIA if self.model == "exp" else ("auto",))
        else:
            check_positive("penalty", self.penalty)
        if self.covariates is not None and self.model != "exp":
            raise ValueError(f'covariates need model="exp", got model={self.model!r}.')
        warn_of_degrees(self.window)

    def _warn_if_unsettled(self) -> None:
        """The finest grid is too coarse where events crowd, or are heaps of equal ones."""
        if getattr(self, "quadrature_error_", 0.0) > UNSETTLED:
            warnings.warn(
                "Events crowd too closely for a grid on this window to show how closely "
                "(quadrature_error_ says how much of them moves from one grid to the next). Take a "
                "smaller window; if coordinates are rounded, spread them evenly over the step of "
                "the rounding.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_mixture(self) -> None:
        """What another fit has learned leaves nothing open, and is of its own model and axes."""
        if self.model != "exp" or not (isinstance(self.penalty, str) and self.penalty == "auto"):
            raise ValueError(
                'kernel may be the mixture_ of another fit with model="exp" and penalty="auto" '
                f"alone, got model={self.model!r} and penalty={self.penalty!r}."
            )
        d = self.window.dimension
        for _, prior in self.kernel:
            if isinstance(prior, Texture) and prior.dimension != d:
                raise ValueError(
                    f"kernel must be the mixture_ of a fit with {d} axes, got one of "
                    f"{prior.dimension}."
                )

    def _events(self, X: Any, sample_weight: Any) -> tuple[Statistic, Floats, Floats]:
        """The statistic of the events, and for models that need them the events themselves."""
        if isinstance(X, Statistic):
            if self.model != "exp" or sample_weight is not None or X.window != self.window:
                raise ValueError(
                    'a Statistic must be of the same window and needs model="exp" and no '
                    f"sample_weight, got one of {shown(X.window)}: fit the events themselves."
                )
            statistic, points, weights = X, np.zeros((0, self.window.dimension)), np.zeros(0)
        else:
            points = self.window.require("X", X)
            statistic = Statistic.of(self.window, points, sample_weight, self._seed)
            weights = np.ones(len(points))
            if sample_weight is not None:
                weights = as_floats("sample_weight", sample_weight)
        if not statistic.total > 0.0:
            raise ValueError(
                f"X must hold at least one event with a weight above 0, got {len(points)} events: "
                "without any there is no rate to learn."
            )
        return statistic, points, weights

    def _fit_exp(self, statistic: Statistic, exposure: Any) -> None:
        statistic, watched = watched_events(exposure, statistic)
        wanted, seed = self._wanted(), self._seed
        if self.covariates is None:
            rate = learn_exp(statistic, watched, wanted, seed)
        else:
            given = covariates_at_nodes(self.covariates, statistic, watched)
            rate, values, covariance = learn_with_covariates(
                statistic, watched, given.columns, wanted, seed
            )
            self.coefficients_ = given.by_name(values)
            self.coefficient_errors_ = given.by_name(np.sqrt(np.diagonal(covariance)))
        self.rate_: GridRate | SquaresRate = rate
        leader = rate.leader
        self.kernel_: Any = leader.kernel if isinstance(leader, Given) else leader
        self.penalty_ = leader.penalty if isinstance(leader, Given) else 1.0
        self.mixture_, self.quadrature_error_ = rate.mixture, rate.quadrature_error

    def _wanted(self) -> Wanted:
        """What is given of the prior, and by what the rest is learned."""
        learned = isinstance(self.penalty, str)
        if isinstance(self.kernel, Kernel):
            penalty = float("nan") if learned else float(self.penalty)
            return Wanted(Given(self.kernel, penalty), self.penalty if learned else "auto")
        if learned:
            return Wanted(self.kernel if is_mixture(self.kernel) else None, self.penalty)
        raise ValueError(
            f'penalty must be "auto", "evidence" or "thinning" with kernel="auto", got '
            f"{self.penalty}: give a kernel too."
        )

    @property
    def _seed(self) -> Any:
        return 0 if self.random_state is None else self.random_state

    def _fit_squares(self, points: Floats, weights: Floats, exposure: Any) -> None:
        if np.ndim(exposure) > 0 or callable(exposure):
            raise ValueError(
                f"exposure must be a number with model={self.model!r}, got {shown(exposure)}: use "
                'model="exp".'
            )
        rate = learn_squares(
            self.model,
            points,
            weights,
            self.window,
            check_positive("exposure", exposure),
            self.kernel if isinstance(self.kernel, Kernel) else None,
            None if isinstance(self.penalty, str) else float(self.penalty),
            self._seed,
        )
        self.rate_, self.kernel_, self.penalty_ = rate, rate.kernel, rate.penalty


def warn_of_degrees(window: Window) -> None:
    """Degrees of longitude and latitude are no distances."""
    units = [unit.lower() for unit in window.axis_units]
    low, high = window.bounds()
    bare = window.dimension >= 2 and units[:2] == ["", ""]
    lonlat = np.all(np.abs([low[:2], high[:2]]) <= [180.0, 90.0])
    apart = np.min(np.abs([low[:2], high[:2]])) > 4.0 * np.max((high - low)[:2]) if bare else False
    world = bare and np.allclose([*low[:2], *high[:2]], [-180, -90, 180, 90])
    named = sum(unit in DEGREES for unit in units) >= 2
    if named or (bare and lonlat and (apart or world)):
        warnings.warn(
            "window looks like degrees of longitude and latitude, which are not distances: a "
            "degree of longitude shrinks towards the poles. Scale x to (longitude - center) * "
            "111.32 * cos(latitude) km and y to (latitude - center) * 110.57 km first, or give "
            "the window another unit.",
            UserWarning,
            stacklevel=4,
        )
