"""Density: how likely a value is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import (
    Floats,
    as_floats,
    as_points,
    check_count,
    check_finite,
    check_fraction,
    check_random_state,
    shown,
)
from hplus._progress import whole_or_not
from hplus.estimators.base import Estimator, check_fitted, check_points, check_weights
from hplus.estimators.intensity import Intensity
from hplus.estimators.line_quantiles import quantiles_on_line
from hplus.estimators.unit_map import UnitMap, learned_map
from hplus.kernels import Kernel
from hplus.rates.by_region import one_or_all
from hplus.rates.lazy_parts import is_lazy
from hplus.rates.trees.tree_rate import TreeRate
from hplus.windows import Box, Interval, Window

MIN_RELATIVE_SPREAD = 1e-9
"""Least standard deviation of a column, as a share of its largest absolute value."""


class Density(Estimator):
    """The density p(x) >= 0 of independent values: an `Intensity` whose integral is 1.

    In a window, p = λ/∫λ. Without one, whole space is mapped to the unit cube by the distribution
    function F of a wide normal density q on each axis, and p(x) = λ(F(x))/∫λ · Π_j q_j(x_j): the
    tails fall off like those of q, and integrals are exact. A column that is skewed and has no
    negative value is learned on the log scale, with 0 as the lower limit: q is then a normal
    density of log(x + c), and nothing lies below 0.

    >>> import numpy as np
    >>> from hplus import Density, Interval
    >>> heights = np.random.RandomState(0).normal(170, 8, size=(200, 1))
    >>> model = Density().fit(heights)
    >>> 0.6 < model.probability(Interval(162, 178)) < 0.75
    True

    Parameters
    ----------
    window : Window, optional
        Where values can lie, of 1 to 3 dimensions; None for all of space.
    kernel, penalty, model, random_state
        As in `Intensity`; a kernel other than "auto" needs a window. Without a window, the model
        "auto" is "exp".

    Attributes
    ----------
    solution_, log_evidence_
        Those of `intensity_`.
    intensity_ : Intensity
        The rate in the window, or on the unit cube, with its `weights_` and `resolution_`.
    center_, scale_ : array (d,)
        Those of q, without a window: of log(x + c) for a column on the log scale.
    offset_ : array (d,)
        c of each column on the log scale, and infinite for the others; without a window.
    """

    def __init__(
        self,
        window: Any = None,
        kernel: Any = "auto",
        penalty: Any = "auto",
        model: str = "auto",
        *,
        random_state: Any = None,
    ) -> None:
        self.window = window
        self.kernel = kernel
        self.penalty = penalty
        self.model = model
        self.random_state = random_state

    def fit(self, X: Any, y: None = None, *, sample_weight: Any = None) -> Self:
        """Learn the density of values X (n, d); weights count repeated values.

        With a window, both may be arrays or data frames of Dask.
        """
        with whole_or_not(self):
            if is_lazy(X):
                self._fit_lazy(X, sample_weight)
                return self
            X = check_points(self, X, reset=True)
            if self.window is None:
                self._set_base(X, check_weights("sample_weight", sample_weight, len(X)))
            self._learn(self._mapped(X), sample_weight)
        return self

    def _learn(self, X: object, sample_weight: object) -> None:
        """Learn the rate of values in the window, or on the unit cube."""
        window, model = self.window, self.model
        if window is None:
            d = self.n_features_in_
            window = Box((0.0,) * d, (1.0,) * d)
            model = "exp" if model == "auto" else model
        rate = Intensity(window, self.kernel, self.penalty, model, random_state=self.random_state)
        self.intensity_ = rate.fit(X, sample_weight=sample_weight)
        self.solution_ = self.intensity_.solution_
        self.log_evidence_ = self.intensity_.log_evidence_

    def _fit_lazy(self, X: object, sample_weight: object) -> None:
        """Learn from a collection of Dask."""
        if self.window is None:
            raise ValueError(
                "window must be given for a collection of Dask, got None: give one that holds the "
                "values, or X.compute()."
            )
        self._learn(X, sample_weight)
        self.n_features_in_ = self.window.dimension

    def predict(self, X: Any) -> Floats:
        """The density at each point, shape (n,)."""
        X = self._points(X)
        return self.intensity_.predict(self._mapped(X)) * self._factor(X)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """Bounds (low, high) that contain the density at each point with probability `level`."""
        X = self._points(X)
        low, high = self.intensity_.predict_interval(
            self._mapped(X), check_fraction("level", level)
        )
        return low * self._factor(X), high * self._factor(X)

    def probability(self, regions: Window | Sequence[Window]) -> Any:
        """The probability of a region, or of each of several; `Interval(50, inf)` is one."""
        check_fitted(self)
        listed = list(regions) if isinstance(regions, Iterable) else [regions]
        parts = [self._region(part) for part in listed]
        inside = [part for part in parts if part is not None]
        shares = np.zeros(len(parts))
        if inside:
            known = np.array([part is not None for part in parts])
            shares[known] = self.intensity_.expected_count(inside) / self._total
        return one_or_all(regions, shares)

    def cdf(self, x: ArrayLike) -> float | Floats:
        """P(X <= x) for a number or an array of numbers; for values of one column."""
        numbers = as_floats("x", x)
        if np.isnan(numbers).any():
            raise ValueError("x must hold numbers, got NaN.")
        low, high = self._ends()
        unique, inverse = np.unique(np.clip(numbers, low, high), return_inverse=True)
        shares = np.zeros(len(unique))
        above = unique > low
        if above.any():
            shares[above] = self.probability([Interval(low, end) for end in unique[above].tolist()])
        answer = np.minimum(shares, 1.0)[inverse].reshape(numbers.shape)
        return float(answer) if numbers.ndim == 0 else answer

    def quantile(self, probability: ArrayLike) -> float | Floats:
        """x with P(X <= x) = probability, for a number or an array; for values of one column."""
        p = as_floats("probability", probability)
        if not np.all((p > 0.0) & (p < 1.0)):
            raise ValueError(f"probability must be above 0 and below 1, got {shown(probability)}.")
        self._ends()
        unique, inverse = np.unique(p, return_inverse=True)
        found = quantiles_on_line(self.intensity_.expected_count, self.intensity_.window, unique)
        x = self._unmapped(found[:, None])[:, 0][inverse].reshape(p.shape)
        return float(x) if p.ndim == 0 else x

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """The mean of log p over values: higher is better."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.predict(X))
        weights = check_weights("sample_weight", sample_weight, len(logs))
        return float(np.average(logs, weights=weights))

    def log_likelihood(self, X: Any) -> float:
        """Σ log p(x_i)."""
        return self.score(X) * len(X)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Floats:
        """Independent values with this density, shape (n, d)."""
        check_fitted(self)
        rng, n = check_random_state(random_state), check_count("n_samples", n_samples, least=0)
        return self._unmapped(self.intensity_.rate_.on_grid.sample(n, rng))

    def peak(self) -> tuple[Floats, float]:
        """The most likely point, shape (d,), and the density there."""
        check_fitted(self)
        if self.window is not None:
            point, rate = self.intensity_.peak()
            return point, rate / self._total
        rate = self.intensity_.rate_.on_grid
        nodes = rate.candidates() if isinstance(rate, TreeRate) else rate.grid.nodes()
        X = self._unmapped(nodes[np.all((nodes > 0.0) & (nodes < 1.0), axis=1)])
        values = self.predict(X)
        return X[values.argmax()], float(values.max())

    def gradient(self, X: Any) -> Floats:
        """∇p at each point, shape (n, d)."""
        X = self._points(X)
        slopes, factor = self.intensity_.gradient(self._mapped(X)), self._factor(X)[:, None]
        if self.window is not None:
            return slopes * factor
        rate = self.intensity_.predict(self._mapped(X))[:, None]
        return factor * (slopes * self._map.slopes(X) + rate * self._map.relative_bends(X))

    @property
    def _total(self) -> float:
        return self.intensity_.rate_.integral()

    def _set_base(self, X: Floats, weights: Floats) -> None:
        """Set the center and the scale of the normal density that maps whole space to a cube."""
        if isinstance(self.kernel, Kernel):
            raise ValueError(
                f'kernel must be "auto" without a window, got {shown(self.kernel)}: give a window.'
            )
        center = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(np.average((X - center) ** 2, axis=0, weights=weights))
        flat = spread <= MIN_RELATIVE_SPREAD * np.abs(X).max(axis=0)
        if np.any(flat):
            raise ValueError(
                f"X must vary in every column, by more than {MIN_RELATIVE_SPREAD:g} of its largest "
                f"number, to have a density on whole space, got a spread of {spread[flat][0]:.3g} "
                f"in column {int(np.argmax(flat))}: drop the column, subtract a constant or give a "
                "window."
            )
        self.center_, self.scale_, self.offset_ = learned_map(X, weights)

    def _points(self, X: Any) -> Floats:
        check_fitted(self)
        X = check_points(self, X, reset=False)
        return check_finite("X", as_points("X", X, self.n_features_in_))

    @property
    def _map(self) -> UnitMap:
        # models of earlier versions have no offset
        offset = vars(self).get("offset_", np.full(len(self.center_), np.inf))
        return UnitMap(self.center_, self.scale_, offset)

    def _mapped(self, X: Floats) -> Floats:
        """F(X) in the unit cube, or X in a window."""
        return X if self.window is not None else self._map.mapped(X)

    def _unmapped(self, U: Floats) -> Floats:
        return U if self.window is not None else self._map.unmapped(U)

    def _factor(self, X: Floats) -> Floats:
        """dF/dx over the total, shape (n,)."""
        if self.window is not None:
            return np.full(len(X), 1.0 / self._total)
        return np.prod(self._map.slopes(X), axis=1) / self._total

    def _ends(self) -> tuple[float, float]:
        """The ends of the line on which values of one column lie."""
        check_fitted(self)
        if self.n_features_in_ != 1:
            raise ValueError(
                f"cdf and quantile need values of one column, got {self.n_features_in_}: use "
                "probability for a box."
            )
        if self.window is None:
            return float(self._map.lower[0]), np.inf
        low, high = self.window.box_bounds()
        return float(low[0]), float(high[0])

    def _region(self, region: Window) -> Window | None:
        """The region in the window of `intensity_`; None for an infinite one outside it."""
        bounds = region.box_bounds() if isinstance(region, Window) else None
        if self.window is not None:
            if bounds is None or np.isfinite(bounds).all():
                return region
            low, high = self.window.box_bounds()
            a, b = max(float(bounds[0][0]), low[0]), min(float(bounds[1][0]), high[0])
            return Interval(a, b, region.unit) if a < b else None
        if bounds is None or len(bounds[0]) != self.n_features_in_:
            axes = self.n_features_in_
            wanted = "intervals such as Interval(50, inf)" if axes == 1 else f"boxes of {axes} axes"
            raise ValueError(f"regions must be {wanted} without a window, got {shown(region)}.")
        low, high = (self._mapped(edge[None])[0] for edge in bounds)
        if np.any(bounds[1] <= self._map.lower):
            return None
        # a region far out in the tails may be mapped to a single point
        high = np.maximum(high, np.nextafter(low, 2.0))
        return Box(tuple(low.tolist()), tuple(high.tolist()))
