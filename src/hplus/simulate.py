"""Poisson patterns with a known rate, by thinning, and three rates to test estimators with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, fresnel

from hplus._checks import (
    Floats,
    Seed,
    as_floats,
    check_finite,
    check_memory,
    check_nonnegative,
    check_positive,
    check_random_state,
    shown,
)
from hplus._values import Value, value
from hplus.windows import Interval, Window, check_window
from hplus.windows.geometry import product_points

BOUND_PROBES = 10_000
"""Number of lattice points, and of random points, at which the largest rate is searched for."""

BOUND_MARGIN = 1.25
"""Ratio of the bound to the largest rate found."""

RateFunction = Callable[[Floats], ArrayLike]
"""A rate λ >= 0, from points (n, d) to events per unit of volume (n,)."""


def poisson(
    rate: RateFunction | float,
    window: Window,
    *,
    bound: float | None = None,
    random_state: Seed = None,
) -> Floats:
    """Events of a Poisson process, shape (n, d): the expected number in A is ∫_A rate.

    A Poisson number of points (x, u) are uniform on W x [0, bound]; x is kept if u < rate(x).

    Parameters
    ----------
    rate : callable or float
        λ >= 0, from points (n, d) to events per unit of volume (n,), or one number for all of W.
    window : Window
        W, where events can occur.
    bound : float, default=None
        At least the largest rate; a rate above it is an error. None searches for it at some 20,000
        points, and adds a layer, [bound, larger bound], when a drawn point has a larger rate. Only
        a peak too narrow for any of these points can be missed: give the bound in that case.
    random_state : int, RandomState or None
        Random seed.

    >>> poisson(3.0, Interval(0, 2), random_state=0).shape
    (11, 1)
    """
    check_window("window", window)
    rng = check_random_state(random_state)
    bound = None if bound is None else check_nonnegative("bound", bound)
    if not callable(rate):
        constant = check_nonnegative("rate", rate)
        _check_bound(constant, constant if bound is None else bound)
        return _uniform(constant, window, rng)
    if bound is None:
        return _layers(rate, window, _find_bound(rate, window), rng)
    kept, met = _layer(rate, window, 0.0, bound, rng)
    _check_bound(max(met, _largest(rate, window)), bound)
    return kept


@final
@value
class Truth(Value):
    """A known rate on an interval, λ(x) = factor · curve(x), with ∫λ = factor · integral."""

    name: str
    window: Interval
    curve: Callable[[Floats], Floats]
    integral: float
    factor: float = 1.0

    def __post_init__(self) -> None:
        self._set(integral=check_positive("integral", self.integral))
        self._set(factor=check_positive("factor", self.factor))

    @property
    def mean_count(self) -> float:
        """∫_W λ, the expected number of events."""
        return self.factor * self.integral

    def rate(self, X: Any) -> Floats:
        """λ(X[i]), shape (n, 1) to (n,)."""
        return self.factor * self.curve(self.window.require("X", X)[:, 0])

    def scaled(self, factor: float) -> Truth:
        """The rate factor · λ: the same curve with more events."""
        return self.replace(factor=self.factor * check_positive("factor", factor))

    def sample(self, random_state: Seed = None) -> Floats:
        """One pattern of events, shape (n, 1)."""
        return poisson(self.rate, self.window, random_state=random_state)

    def __repr__(self) -> str:
        # the repr of a function is an address
        times = "" if self.factor == 1.0 else f" x {self.factor:g}"
        return f"<{self.name}{times}: {self.mean_count:.6g} events on {self.window}>"


def _decay_and_hump(x: Floats) -> Floats:
    return 2.0 * np.exp(-x / 15.0) + np.exp(-(((x - 25.0) / 10.0) ** 2))


def _chirp(x: Floats) -> Floats:
    return 5.0 * np.sin(x**2) + 6.0


def _broken_line(x: Floats) -> Floats:
    return np.interp(x, [0.0, 25.0, 50.0, 75.0, 100.0], [2.0, 3.0, 1.0, 2.5, 3.0])


LAMBDA1 = Truth(
    "LAMBDA1",
    Interval(0, 50),
    _decay_and_hump,
    # ∫ 2e^{-x/15} + ∫ e^{-((x-25)/10)²}
    integral=30.0 * (1.0 - np.exp(-50.0 / 15.0)) + 10.0 * np.sqrt(np.pi) * erf(2.5),
)
"""2e^{-x/15} + e^{-((x-25)/10)²} on [0, 50]: a decay with a hump, 46.647 events."""

LAMBDA2 = Truth(
    "LAMBDA2",
    Interval(0, 5),
    _chirp,
    # ∫₀^a sin x² = √(π/2) S(a √(2/π)), S of Fresnel
    integral=30.0 + 5.0 * np.sqrt(np.pi / 2.0) * fresnel(5.0 * np.sqrt(2.0 / np.pi))[0],
)
"""5 sin(x²) + 6 on [0, 5]: waves of increasing frequency, 32.640 events."""

LAMBDA3 = Truth("LAMBDA3", Interval(0, 100), _broken_line, integral=225.0)
"""Straight lines through (0, 2) (25, 3) (50, 1) (75, 2.5) (100, 3): 225 events."""

TRUTHS = (LAMBDA1, LAMBDA2, LAMBDA3)
"""All test rates."""


def _uniform(rate: float, window: Window, rng: np.random.RandomState) -> Floats:
    """Uniform points, shape (n, d), with n drawn from Poisson(rate · |W|)."""
    mean = rate * window.volume
    check_memory(
        16.0 * mean * (window.dimension + 2),
        f"A draw of {mean:.3g} points",
        "lower the rate or the bound, or draw from parts of the window",
    )
    return window.sample(int(rng.poisson(mean)), rng)


def _rates(rate: RateFunction, X: Floats) -> Floats:
    """rate(X[i]), shape (n,); an error unless finite and at least 0."""
    rates = as_floats("rate", rate(X))
    if rates.shape != (len(X),):
        raise ValueError(
            f"rate must return one number for each of the {len(X)} points, shape ({len(X)},), got "
            f"shape {rates.shape}."
        )
    check_finite("rate", rates)
    if np.any(rates < 0.0):
        raise ValueError(
            f"rate must be at least 0 in the window, got {rates.min():.6g} at "
            f"{shown(tuple(X[rates.argmin()].tolist()))}."
        )
    return rates


def _layer(
    rate: RateFunction, window: Window, low: float, high: float, rng: np.random.RandomState
) -> tuple[Floats, float]:
    """Events (n, d) of the rate's part between `low` and `high`, and the largest rate found."""
    X = _uniform(high - low, window, rng)
    # u uniform on [low, high)
    u = low + (high - low) * rng.random_sample(len(X))
    rates = _rates(rate, X)
    return X[u < rates], float(rates.max(initial=0.0))


def _layers(rate: RateFunction, window: Window, bound: float, rng: np.random.RandomState) -> Floats:
    """Events (n, d), layer by layer of the rate, until no rate found lies above the layers.

    Layers of a Poisson process are independent, so lower layers are kept. Starting over would
    favour draws without the points that showed the bound to be too low.
    """
    low, high, layers = 0.0, bound, []
    while high > low:
        kept, largest = _layer(rate, window, low, high, rng)
        layers.append(kept)
        low, high = high, BOUND_MARGIN * largest if largest > high else high
    return np.concatenate([np.empty((0, window.dimension)), *layers])


def _find_bound(rate: RateFunction, window: Window) -> float:
    """A bound somewhat above the largest rate found; an error if it is 0: a peak may be hidden."""
    largest = _largest(rate, window)
    if largest == 0.0:
        raise ValueError(
            f"rate must be above 0 somewhere in the window, got 0 at more than {BOUND_PROBES} "
            "points: give a bound."
        )
    return BOUND_MARGIN * largest


def _largest(rate: RateFunction, window: Window) -> float:
    """The largest rate on a lattice and on random points of W, always the same ones."""
    X = np.vstack([_lattice(window), window.sample(BOUND_PROBES, random_state=0)])
    return float(_rates(rate, X).max())


def _lattice(window: Window) -> Floats:
    """About `BOUND_PROBES` lattice points of the box around W, those in W, shape (q, d)."""
    low, high = window.bounds()
    side = int(BOUND_PROBES ** (1.0 / len(low)))
    axes = [np.linspace(a, b, side) for a, b in zip(low, high, strict=True)]
    X = product_points(axes)
    return X[window.contains(X)]


def _check_bound(largest: float, bound: float) -> None:
    if largest > bound:
        raise ValueError(
            f"bound must be at least the largest rate, got {bound:.6g} and a rate of "
            f"{largest:.6g}: raise the bound, or omit it to have it found."
        )
