"""Prediction intervals from ratios of targets to predictions: never negative."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.optimize import nnls

from hplus._checks import Floats, frozen_array
from hplus._values import Value, value

TAILS = np.geomspace(1e-4, 0.5, 200)
"""Shares of rows outside on each side, for which quantiles are stored."""

MIN_BIN_ROWS = 150
"""Rows of a bin of predictions with quantiles of its own, at least."""

MAX_BINS = 10

MIN_SPREAD = 0.05
"""Spreads of log ratios are at least this, so that powers do not overflow."""


@final
@value
class Ratios(Value):
    """The quantiles of r = (y/m)^(1/σ(m)), σ² = log(1 + φ₁/m + φ₂), for rows not learned from.

    y has the expected value m; σ brings small and large m together, and where there are enough rows
    quantiles follow m, linearly between the `knots` of log m. An interval leaves out a share t on
    each side, chosen so that a share `level` of these rows is inside: where y = 0 is frequent, no
    row is below the interval and t is larger.

    noise : φ. reach : (2,), the smallest and the largest m of these rows; beyond them σ and the
    quantiles stay as they are. lows, highs : (tails, knots), the t- and (1 - t)-quantiles of r.
    covered : (tails,).
    """

    noise: Floats
    reach: Floats
    knots: Floats
    lows: Floats
    highs: Floats
    covered: Floats

    def __post_init__(self) -> None:
        names = ("noise", "reach", "knots", "lows", "highs", "covered")
        self._set(**{name: frozen_array(name, getattr(self, name)) for name in names})

    def interval(self, m: Floats, level: float) -> tuple[Floats, Floats]:
        """0 <= low <= m <= high, each (n,), that contain about a share `level` of such y."""
        tail = np.interp(level, self.covered[::-1], TAILS[::-1])
        high = np.array([np.interp(tail, TAILS, column) for column in self.highs.T])
        # not between two tails: a bound barely above 0 would leave out every y = 0
        low = self.lows[max(0, int(np.searchsorted(TAILS, tail, side="right")) - 1)]
        usual = np.clip(m, *self.reach)
        place, power = np.log(usual), spread(self.noise, usual)
        below = np.minimum(np.interp(place, self.knots, low), 1.0) ** power
        above = np.maximum(np.interp(place, self.knots, high), 1.0) ** power
        return m * below, m * above


def learned_ratios(y: Floats, m: Floats) -> Ratios:
    """The ratios of targets y (n,) to what was expected without them, m > 0 (n,)."""
    noise = _noise(y, m)
    with np.errstate(over="ignore"):
        r = np.minimum((y / m) ** (1.0 / spread(noise, m)), 1e100)
    order = np.argsort(m, kind="stable")
    bins = np.array_split(order, int(np.clip(len(y) // MIN_BIN_ROWS, 1, MAX_BINS)))
    knots = np.maximum.accumulate([np.log(m[rows]).mean() for rows in bins])
    lows = np.stack([_quantiles(r[rows], TAILS) for rows in bins], axis=1)
    highs = np.stack([_quantiles(r[rows], 1.0 - TAILS) for rows in bins], axis=1)
    place = np.log(m)
    inside = [
        np.mean((np.interp(place, knots, low) <= r) & (r <= np.interp(place, knots, high)))
        for low, high in zip(lows, highs, strict=True)
    ]
    # (1 - 2t)(n + 1) of n rows lie between their own t- and (1 - t)-quantiles, on average over t
    own = len(y) / len(bins)
    covered = np.minimum.accumulate(np.array(inside) * own / (own + 1.0))
    reach = np.array([m.min(), m.max()])
    return Ratios(noise, reach, knots, lows, highs, covered)


def spread(noise: Floats, m: Floats) -> Floats:
    """σ(m), about the standard deviation of log y where E y = m, var y = φ₁ m + φ₂ m²."""
    return np.maximum(np.sqrt(np.log1p(noise[0] / m + noise[1])), MIN_SPREAD)


def _noise(y: Floats, m: Floats) -> Floats:
    """φ with (y - m)²/m ≈ φ₁ + φ₂ m on average, φ >= 0."""
    unit = m.mean()
    x = m / unit
    phi = nnls(np.stack([np.ones(len(x)), x], axis=1), (y / unit - x) ** 2 / x)[0]
    return np.array([phi[0] * unit, phi[1]])


def _quantiles(r: Floats, levels: Floats) -> Floats:
    """Quantiles: r_(i) at i/(n + 1); 0 at 0, and at 1 one spread beyond the largest.

    Linear between them, but 0 until the first r above 0, so that zeros are left out only together.
    """
    known = np.concatenate([[0.0], np.sort(r), [np.e * max(r.max(), 1.0)]])
    found = np.interp(levels, np.linspace(0.0, 1.0, len(known)), known)
    zeros = np.count_nonzero(r == 0.0)
    return np.where((levels * (len(r) + 1) < zeros + 1) & (zeros > 0), 0.0, found)
