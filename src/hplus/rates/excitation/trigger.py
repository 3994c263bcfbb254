"""Trigger: how much an event raises the rate, by the time since it and the distance from it."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats, as_floats, frozen_array
from hplus._values import Value, value
from hplus.grids.hats import read_only
from hplus.rates.excitation.visible import hat_integrals, ring_sizes


@final
@value
class Trigger(Value):
    """The rate that an event of average productivity adds, linear between knots and never negative.

    `weights` (s, t, L, D) are its values at all knots but the last, where it is 0: for each type of
    the event that triggers, each type of what is triggered, lag and distance. On a line there are
    no `distances`, and D is 1. Distances are relative to the reach of an event, which is 1 without
    marks; they are those in the plane, or along one axis if `axes` is 1.
    """

    lags: Floats
    distances: Floats
    weights: Floats
    axes: int = 2

    def __post_init__(self) -> None:
        for name in ("lags", "distances", "weights"):
            self._set(**{name: frozen_array(name, getattr(self, name))})

    def __call__(
        self,
        lags: ArrayLike,
        distances: ArrayLike | None = None,
        *,
        source: int = 0,
        target: int = 0,
    ) -> Floats:
        """The rate added at each lag and distance: per unit of time, and of area (or length)."""
        lag = _hats(self.lags, as_floats("lags", lags))
        if not len(self.distances):
            return lag @ self.weights[source, target, :, 0]
        if distances is None:
            raise ValueError("distances are needed for a trigger in place and time: use by_lag.")
        far = _hats(self.distances, as_floats("distances", distances))
        return np.einsum("...l,...d,ld->...", lag, far, self.weights[source, target])

    def by_lag(self, lags: ArrayLike, *, source: int = 0, target: int = 0) -> Floats:
        """The rate added at each lag, per unit of time, at all distances together."""
        return _hats(self.lags, as_floats("lags", lags)) @ (
            self.weights[source, target] @ self.distance_integrals
        )

    def by_distance(self, distances: ArrayLike, *, source: int = 0, target: int = 0) -> Floats:
        """The events triggered at each distance, per area (or length), at all lags together."""
        return _hats(self.distances, as_floats("distances", distances)) @ (
            self.lag_integrals @ self.weights[source, target]
        )

    def integral(self) -> Floats:
        """How many events of each type an average event of each type triggers directly, (s, t)."""
        return np.einsum("l,stld,d->st", self.lag_integrals, self.weights, self.distance_integrals)

    def branching(self) -> float:
        """The spectral radius of the matrix of direct offspring; below 1, bursts die out."""
        return float(np.abs(np.linalg.eigvals(self.integral())).max())

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """Knots of lags and of distances, and the weights: for compiled functions."""
        return self.lags, self.distances, read_only(self.weights)

    @property
    def lag_integrals(self) -> Floats:
        """∫ φ_l, (L,)."""
        return hat_integrals(self.lags, self.lags[-1:].copy())[0]

    @property
    def distance_integrals(self) -> Floats:
        """∫ ψ_d over all places, (D,); 1 on a line."""
        return ring_sizes(self.distances, self.axes) if len(self.distances) else np.ones(1)


def _hats(knots: Floats, x: Floats) -> Floats:
    """Hat functions of all knots but the last, constant before the first, (..., K)."""
    place = np.interp(x, knots, np.arange(len(knots)), left=0.0, right=len(knots))
    inside = np.maximum(1.0 - np.abs(place[..., None] - np.arange(len(knots) - 1)), 0.0)
    return np.where(np.asarray(x >= 0.0)[..., None], inside, 0.0)


def log_spaced(first: float, last: float, per_decade: float) -> Floats:
    """Knots from `first` to `last`, evenly spaced on the log scale."""
    return np.geomspace(first, last, int(np.ceil(per_decade * np.log10(last / first))) + 1)
