"""Intensity: how often events happen, where and when."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from hplus._checks import (
    Floats,
    as_floats,
    check_choice,
    check_count,
    check_fraction,
    check_positive,
    shown,
)
from hplus.estimators.base import Estimator, check_fitted, check_kernel, warn_if_loose
from hplus.estimators.rate_models import (
    CRITERIA,
    MODELS,
    SquaresRate,
    grid_function,
    integral,
    learn_exp,
    learn_squares,
    learn_with_covariates,
    on_nodes,
)
from hplus.kernels import Kernel
from hplus.solvers.fields import Given
from hplus.solvers.grid_rate import GridRate, mixed_poisson_quantile
from hplus.statistic import Statistic
from hplus.storage import storable
from hplus.windows import Window

GAP = 1e-6
"""The relative gap that a fit promises."""

DEGREES = ("deg", "degree", "degrees", "°")


@storable
class Intensity(Estimator):
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
    kernel : "auto" or Kernel
        How alike log rates at two points are; "auto" learns scales, smoothness and shape.
    penalty : "auto", "evidence", "thinning" or float
        How strongly variation is held down: the kernel is divided by it. Otherwise it is learned,
        together with what "auto" leaves open, by the evidence or by how well events are predicted
        that were held out by random thinning; "auto" takes the evidence on a line and for less
        than 50 events, thinning elsewhere.
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
        What was learned: a kernel, or for "auto" with "exp" a tuple of priors with their weights.
    quadrature_error_ : float
        How much the rate moved when the grid was refined last, as a share of all events.
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
        self._check_parameters()
        statistic, points, weights = self._events(X, sample_weight)
        if self.model == "exp":
            self._fit_exp(statistic, exposure)
        else:
            self._fit_squares(points, weights, exposure)
        self.n_features_in_ = self.window.dimension
        self.total_ = statistic.total
        self.solution_, self.log_evidence_ = self.rate_.result, self.rate_.log_evidence
        warn_if_loose(self, self.solution_, GAP)
        return self

    def predict(self, X: Any) -> Floats:
        """The rate at each point of the window, per unit of `unit_`, shape (n,)."""
        return self.rate_.function(self._points(X))

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """Bounds (low, high) that hold the rate at each point with probability `level`."""
        X = self._points(X)
        return self.rate_.interval(X, check_fraction("level", level))

    def expected_count(self, regions: Window | Sequence[Window]) -> Any:
        """∫λ over a region, or over each of several, per unit of exposure."""
        return self._each(regions, lambda region: integral(self.rate_, region))

    def count_interval(
        self, regions: Window | Sequence[Window], level: float = 0.9
    ) -> tuple[Any, Any]:
        """Bounds (low, high) that hold the count of a region with probability `level`.

        The count that one more unit of exposure would give: its own chance is included.
        """
        tail = 0.5 * (1.0 - check_fraction("level", level))
        check_fitted(self)
        ends = []
        for p in (tail, 1.0 - tail):

            def end(region: Window, p: float = p) -> float:
                return mixed_poisson_quantile(self.rate_.count_draws(region), p)

            ends.append(self._each(regions, end))
        return ends[0], ends[1]

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """The mean of log(λ/∫λ) over events: free of exposure, higher is better."""
        X = self._points(X)
        with np.errstate(divide="ignore"):
            logs = np.log(self.rate_.function(X)) - np.log(integral(self.rate_, None))
        return float(np.average(logs, weights=sample_weight))

    def log_likelihood(self, X: Any, exposure: float = 1.0) -> float:
        """Σ log(E λ(x_i)) - E∫λ of events seen during an exposure E."""
        X, E = self._points(X), check_positive("exposure", exposure)
        with np.errstate(divide="ignore"):
            logs = np.log(E * self.rate_.function(X))
        return float(logs.sum() - E * integral(self.rate_, None))

    def sample(self, n_paths: int = 1, random_state: Any = None) -> list[Floats]:
        """Patterns of events that the rate gives in one unit of exposure, (n_i, d) each."""
        check_fitted(self)
        rng = check_random_state(random_state)
        total, function = integral(self.rate_, None), grid_function(self.rate_)
        counts = rng.poisson(total, size=check_count("n_paths", n_paths))
        return [function.sample(int(n), rng) for n in counts]

    def peak(self) -> tuple[Floats, float]:
        """The point of the window with the highest rate, shape (d,), and the rate there."""
        check_fitted(self)
        return grid_function(self.rate_).peak()

    def gradient(self, X: Any) -> Floats:
        """∇λ at each point, shape (n, d)."""
        return self.rate_.function.gradient(self._points(X))

    @property
    def unit_(self) -> str:
        """The unit of the rate, such as "1/km²"; "" if the window has none."""
        unit = self.window.volume_unit
        return f"1/({unit})" if " " in unit else f"1/{unit}" if unit else ""

    def _points(self, X: Any) -> Floats:
        check_fitted(self)
        return self.window.require("X", X)

    def _each(self, regions: Any, measure: Any) -> Any:
        """A number for one region, an array for several."""
        check_fitted(self)
        if isinstance(regions, Window):
            return measure(self._region(regions))
        return np.array([measure(self._region(region)) for region in regions])

    def _region(self, region: Any) -> Window:
        if not isinstance(region, Window) or region.dimension != self.window.dimension:
            raise ValueError(
                f"regions must be windows with {self.window.dimension} axes such as "
                f"{shown(self.window)}, got {shown(region)}."
            )
        return region

    def _check_parameters(self) -> None:
        if not isinstance(self.window, Window):
            raise TypeError(
                f"window must be a Window such as Interval(0, 24), got {shown(self.window)}: say "
                "where events could have been seen."
            )
        check_kernel(self.kernel)
        check_choice("model", self.model, MODELS)
        if isinstance(self.penalty, str):
            check_choice("penalty", self.penalty, CRITERIA if self.model == "exp" else ("auto",))
        else:
            check_positive("penalty", self.penalty)
        if self.covariates is not None and self.model != "exp":
            raise ValueError(f'covariates need model="exp", got model={self.model!r}.')
        if self.kernel == "auto":
            _warn_of_degrees(self.window)

    def _events(self, X: Any, sample_weight: Any) -> tuple[Statistic, Floats, Floats]:
        """The statistic of the events, and for models that need them the events themselves."""
        seed = 0 if self.random_state is None else self.random_state
        if isinstance(X, Statistic):
            if self.model != "exp" or sample_weight is not None or X.window != self.window:
                raise ValueError(
                    'a Statistic must be of the same window and needs model="exp" and no '
                    f"sample_weight, got one of {shown(X.window)}: fit the events themselves."
                )
            statistic, points, weights = X, np.zeros((0, self.window.dimension)), np.zeros(0)
        else:
            points = self.window.require("X", X)
            statistic = Statistic.of(self.window, points, sample_weight, seed)
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
        grid = statistic.grid
        watched = self._exposure_at_nodes(exposure, statistic)
        columns, names, units = self._columns(grid, watched)
        prior: Any = self.penalty if isinstance(self.penalty, str) else "auto"
        if isinstance(self.kernel, Kernel):
            known = not isinstance(self.penalty, str)
            prior = Given(self.kernel, float(self.penalty) if known else float("nan"))
        elif not isinstance(self.penalty, str):
            raise ValueError(
                f'penalty must be "auto", "evidence" or "thinning" with kernel="auto", got '
                f"{self.penalty}: give a kernel too."
            )
        seed = 0 if self.random_state is None else self.random_state
        if columns is None:
            rate = learn_exp(statistic, watched, prior, seed)
        else:
            rate, values, covariance = learn_with_covariates(
                statistic, watched, columns, prior, seed
            )
            errors = np.sqrt(np.diagonal(covariance))
            self.coefficients_ = dict(zip(names, (values / units).tolist(), strict=True))
            self.coefficient_errors_ = dict(zip(names, (errors / units).tolist(), strict=True))
        self.rate_: GridRate | SquaresRate = rate
        self.kernel_: Any = rate.mixture
        self.quadrature_error_ = rate.quadrature_error
        self.penalty_ = self.penalty

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
            0 if self.random_state is None else self.random_state,
        )
        self.rate_, self.kernel_, self.penalty_ = rate, rate.kernel, rate.penalty

    def _exposure_at_nodes(self, exposure: Any, statistic: Statistic) -> Floats:
        grid = statistic.grid
        if np.ndim(exposure) == 0 and not callable(exposure):
            return np.full(grid.shape, check_positive("exposure", exposure))
        watched = on_nodes("exposure", exposure, grid)
        if np.any(watched < 0.0) or not np.any(watched > 0.0):
            raise ValueError(
                f"exposure must be at least 0 everywhere and above 0 somewhere, got values from "
                f"{watched.min():.6g} to {watched.max():.6g}."
            )
        unseen = float(statistic.counts.sum(axis=0)[watched <= 0.0].sum())
        if unseen > 1e-6 * statistic.total:
            raise ValueError(
                f"exposure must be above 0 where events were seen, got 0 around {unseen:.6g} of "
                f"{statistic.total:.6g} events: correct the exposure or drop them."
            )
        return watched

    def _columns(self, grid: Any, watched: Floats) -> tuple[Floats | None, list[str], Floats]:
        """Covariates at the nodes, centred and of unit size, their names and sizes."""
        given = self.covariates
        if given is None:
            return None, [], np.ones(0)
        named = given if isinstance(given, dict) else {"covariate": given}
        mass = grid.integrals(self.window) * watched
        mass = mass / mass.sum()
        columns, sizes = [], []
        for name, one in named.items():
            values = on_nodes(f"covariate {name!r}", one, grid)
            values = values - np.sum(mass * values)
            size = float(np.sqrt(np.sum(mass * values**2)))
            if not size > 1e-12 * (1.0 + np.abs(values).max()):
                raise ValueError(f"covariate {name!r} must vary over the window, got a constant.")
            columns.append(values / size)
            sizes.append(size)
        return np.stack(columns), list(named), np.array(sizes)


def _warn_of_degrees(window: Window) -> None:
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
