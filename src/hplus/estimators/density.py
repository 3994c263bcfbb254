"""Density: how likely a value is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import norm
from sklearn.utils import check_random_state

from hplus._checks import Floats, as_points, check_count, check_finite, check_fraction, shown
from hplus._progress import whole_or_not
from hplus.estimators.base import Estimator, check_fitted, check_points, check_weights
from hplus.estimators.intensity import Intensity
from hplus.kernels import Kernel
from hplus.rates.lazy_parts import is_lazy
from hplus.rates.trees.tree_rate import TreeRate
from hplus.windows import Box, Window

BASE_WIDTH = 3.0
"""Standard deviation of the normal density on whole space, in those of the data."""

MIN_RELATIVE_SPREAD = 1e-9
"""Least standard deviation of a column, as a share of its largest absolute value."""


class Density(Estimator):
    """The density p(x) >= 0 of independent values: an `Intensity` whose integral is 1.

    In a window, p = λ/∫λ. Without one, whole space is mapped to the unit cube by the distribution
    function F of a wide normal density q on each axis, and p(x) = λ(F(x))/∫λ · Π_j q_j(x_j): the
    tails fall off like those of q, and integrals are exact.

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
            cube = Box((0.0,) * X.shape[1], (1.0,) * X.shape[1])
            window, seed = cube if self.window is None else self.window, self.random_state
            model = "exp" if self.window is None and self.model == "auto" else self.model
            rate = Intensity(window, self.kernel, self.penalty, model, random_state=seed)
            self.intensity_ = rate.fit(self._mapped(X), sample_weight=sample_weight)
            self.solution_ = self.intensity_.solution_
            self.log_evidence_ = self.intensity_.log_evidence_
        return self

    def _fit_lazy(self, X: object, sample_weight: object) -> None:
        """Learn from a collection of Dask."""
        if self.window is None:
            raise ValueError(
                "window must be given for a collection of Dask, got None: give one that holds the "
                "values, or X.compute()."
            )
        seed = self.random_state
        rate = Intensity(self.window, self.kernel, self.penalty, self.model, random_state=seed)
        self.intensity_ = rate.fit(X, sample_weight=sample_weight)
        self.n_features_in_ = self.window.dimension
        self.solution_ = self.intensity_.solution_
        self.log_evidence_ = self.intensity_.log_evidence_

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
        """The probability of a region, or of each of several."""
        check_fitted(self)
        if not isinstance(regions, Iterable):
            return self.intensity_.expected_count(self._region(regions)) / self._total
        counts = self.intensity_.expected_count([self._region(region) for region in regions])
        return counts / self._total

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
        U = self.intensity_.rate_.on_grid.sample(n, rng)
        return U if self.window is not None else self._unmapped(U)

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
        t = (X - self.center_) / self.scale_
        rate = self.intensity_.predict(self._mapped(X))[:, None]
        return factor * (slopes * norm.pdf(t) / self.scale_ - rate * t / self.scale_)

    @property
    def _total(self) -> float:
        return self.intensity_.rate_.integral()

    def _set_base(self, X: Floats, weights: Floats) -> None:
        """Set the center and the scale of the normal density that maps whole space to a cube."""
        if isinstance(self.kernel, Kernel):
            raise ValueError(
                f'kernel must be "auto" without a window, got {shown(self.kernel)}: give a window.'
            )
        self.center_ = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(np.average((X - self.center_) ** 2, axis=0, weights=weights))
        flat = spread <= MIN_RELATIVE_SPREAD * np.abs(X).max(axis=0)
        if np.any(flat):
            raise ValueError(
                f"X must vary in every column, by more than {MIN_RELATIVE_SPREAD:g} of its largest "
                f"number, to have a density on whole space, got a spread of {spread[flat][0]:.3g} "
                f"in column {int(np.argmax(flat))}: drop the column, subtract a constant or give a "
                "window."
            )
        self.scale_ = BASE_WIDTH * spread

    def _points(self, X: Any) -> Floats:
        check_fitted(self)
        X = check_points(self, X, reset=False)
        return check_finite("X", as_points("X", X, self.n_features_in_))

    def _mapped(self, X: Floats) -> Floats:
        """F(X) in the unit cube, or X in a window."""
        return X if self.window is not None else ndtr((X - self.center_) / self.scale_)

    def _unmapped(self, U: Floats) -> Floats:
        tiny = np.finfo(float).tiny
        return self.center_ + self.scale_ * ndtri(np.clip(U, tiny, 1.0 - 2.0**-53))

    def _factor(self, X: Floats) -> Floats:
        """dF/dx over the total, shape (n,)."""
        if self.window is not None:
            return np.full(len(X), 1.0 / self._total)
        t = (X - self.center_) / self.scale_
        return np.prod(norm.pdf(t) / self.scale_, axis=1) / self._total

    def _region(self, region: Any) -> Any:
        if self.window is not None:
            return region
        bounds = region.box_bounds() if isinstance(region, Window) else None
        if bounds is None or len(bounds[0]) != self.n_features_in_:
            raise ValueError(
                f"regions must be boxes with {self.n_features_in_} axes without a window, got "
                f"{shown(region)}."
            )
        low, high = (self._mapped(edge[None])[0] for edge in bounds)
        # a region far out in the tails may be mapped to a single point
        high = np.maximum(high, np.nextafter(low, 2.0))
        return Box(tuple(low.tolist()), tuple(high.tolist()))
