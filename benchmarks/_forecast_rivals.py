"""Forecasts of counts by other means, and what is asked of any forecast.

statsmodels and prophet are used if they are installed.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import gammaincinv, gammaln, log_ndtr, logsumexp, ndtr, ndtri, pdtr

from hplus.rates.mixed_poisson import mixed_poisson_quantile

WINDOWS = (4, 8, 16, 32, 64, 128, 10**9)
"""Numbers of last counts whose mean may be the forecast; the best one so far is used."""

FIRST_JUDGED = 16
"""Counts after which windows are compared."""

GAMMA_POINTS = 400

LEAST_MEAN = 1e-9

NEWTON_STEPS = 40
"""Steps to the most probable log mean of a count; most need fewer than ten."""


class Predictive(Protocol):
    """A forecast of one count."""

    def upto(self, count: float) -> float:
        """P(N <= count)."""

    def quantile(self, p: float) -> float:
        """The smallest count with P(N <= count) >= p."""

    def log_chance(self, count: float) -> float:
        """log P(N = count)."""


class Mixed(NamedTuple):
    """A Poisson count with one of several equally likely means (k,)."""

    means: np.ndarray

    def upto(self, count: float) -> float:
        return float(pdtr(count, self.means).mean()) if count >= 0.0 else 0.0

    def quantile(self, p: float) -> float:
        return float(mixed_poisson_quantile(self.means[None], p)[0])

    def log_chance(self, count: float) -> float:
        """Logs of means are smoothed by Silverman's rule: some hundreds of them leave gaps.

        Beyond the largest of them, a Poisson tail would say how few were drawn.
        """
        logs = np.log(np.maximum(self.means, LEAST_MEAN))
        width = 0.9 * logs.std() * len(logs) ** -0.2
        at = _poisson_lognormal(count, logs, max(width, 1e-6))
        return float(logsumexp(at) - np.log(len(logs)))


def _poisson_lognormal(count: float, centers: np.ndarray, width: float) -> np.ndarray:
    """log P(N = count) for log means that are normal around each center, by Laplace's method."""
    x = np.maximum(centers, np.log(max(count, 0.5)))  # from above, Newton's steps never overshoot
    for _ in range(NEWTON_STEPS):
        slope = count - np.exp(x) - (x - centers) / width**2
        x = x + slope / (np.exp(x) + 1.0 / width**2)
    far = 0.5 * ((x - centers) / width) ** 2 + 0.5 * np.log1p(width**2 * np.exp(x))
    return count * x - np.exp(x) - gammaln(count + 1.0) - far


class Normal(NamedTuple):
    """A count, or log(1 + count), that is normal; less than 0 is 0."""

    mean: float
    deviation: float
    log: bool = False

    def upto(self, count: float) -> float:
        if count < 0.0:
            return 0.0
        at = np.log1p(count + 0.5) if self.log else count + 0.5
        return float(ndtr((at - self.mean) / self.deviation))

    def log_chance(self, count: float) -> float:
        ends = np.array([count - 0.5, count + 0.5])
        x = ((np.log1p(ends) if self.log else ends) - self.mean) / self.deviation
        x = np.array([-np.inf, x[1]]) if count == 0.0 else x
        x = -x[::-1] if x[0] > 0.0 else x  # of two numbers near 1, the difference is lost
        below, upto = log_ndtr(x)
        return float(upto + np.log(-np.expm1(min(below - upto, -1e-300))))

    def quantile(self, p: float) -> float:
        at = self.mean + self.deviation * ndtri(p)
        return max(float(np.expm1(at) if self.log else at), 0.0)


Rival = Callable[[np.ndarray, int, int], list[Predictive]]
"""From counts so far (n,), the length of their season (0 for none) and how many are to come."""


def _seasonal(y: np.ndarray, season: int) -> np.ndarray:
    """What each place of the season multiplies the mean by, (season,)."""
    if season < 2 or len(y) < 2 * season:
        return np.ones(max(season, 1))
    place = np.arange(len(y)) % season
    sums, sizes = np.bincount(place, weights=y), np.bincount(place)
    return (sums + y.mean()) / (sizes + 1) / y.mean()


def _recent(y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The mean of the best number of last counts, and what it forecast for each earlier count."""
    total = np.concatenate([[0.0], np.cumsum(y)])
    at = np.arange(min(FIRST_JUDGED, len(y) // 2), len(y))
    tried = []
    for window in WINDOWS:
        first = np.maximum(at - window, 0)
        means = np.maximum((total[at] - total[first]) / (at - first), 1e-3)
        first = max(len(y) - window, 0)
        loss = float((means - y[at] * np.log(means)).sum())
        tried.append((loss, (total[-1] - total[first]) / (len(y) - first), means))
    _, mean, means = min(tried, key=lambda t: t[0])
    return max(mean, 1e-3), means, y[at]


def poisson(y: np.ndarray, season: int, ahead: int) -> list[Predictive]:
    """Poisson counts around the mean of the last counts, times the season."""
    factor = _seasonal(y, season)
    mean, _, _ = _recent(y / factor[np.arange(len(y)) % len(factor)])
    places = (len(y) + np.arange(ahead)) % len(factor)
    return [Mixed(np.array([mean * factor[place]])) for place in places]


def negative_binomial(y: np.ndarray, season: int, ahead: int) -> list[Predictive]:
    """The same with as much variance as earlier forecasts missed their counts by."""
    factor = _seasonal(y, season)
    place = np.arange(len(y)) % len(factor)
    mean, means, _ = _recent(y / factor[place])
    later = y[-len(means) :]
    expected = means * factor[place[-len(means) :]]
    excess = float(((later - expected) ** 2 - expected).sum() / (expected**2).sum())
    shape = 1.0 / max(excess, 1e-6)
    gamma = gammaincinv(shape, (np.arange(GAMMA_POINTS) + 0.5) / GAMMA_POINTS) / shape
    places = (len(y) + np.arange(ahead)) % len(factor)
    return [Mixed(mean * factor[place] * gamma) for place in places]


def _smoothing(log: bool) -> Rival:
    def forecast(y: np.ndarray, season: int, ahead: int) -> list[Predictive]:
        import pandas as pd
        from statsmodels.tsa.exponential_smoothing.ets import ETSModel

        x = pd.Series(np.log1p(y) if log else y)
        has_season = season >= 2 and len(y) >= 3 * season
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ETSModel(
                x, error="add", trend="add", damped_trend=True,
                seasonal="add" if has_season else None,
                seasonal_periods=season if has_season else None,
            ).fit(disp=False)  # fmt: skip
            frame = model.get_prediction(len(y), len(y) + ahead - 1).summary_frame(alpha=0.1)
        half = (frame["pi_upper"] - frame["pi_lower"]).to_numpy() / 2.0 / ndtri(0.95)
        means = frame["mean"].to_numpy()
        return [Normal(m, max(d, 1e-6), log) for m, d in zip(means, half, strict=True)]

    return forecast


def prophet(y: np.ndarray, season: int, ahead: int) -> list[Predictive]:
    """Facebook's additive model, with its own 90 % interval."""
    import pandas as pd
    from prophet import Prophet

    for name in ("cmdstanpy", "prophet"):
        logging.getLogger(name).setLevel(logging.ERROR)
    days = pd.date_range("2000-01-01", periods=len(y) + ahead, freq="D")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Prophet(
            interval_width=0.9, uncertainty_samples=300, daily_seasonality=False,
            weekly_seasonality=False, yearly_seasonality=False,
        )  # fmt: skip
        if season >= 2 and len(y) >= 2 * season:
            model.add_seasonality("season", period=season, fourier_order=min(season // 2, 10))
        model.fit(pd.DataFrame({"ds": days[: len(y)], "y": y}))
        found = model.predict(pd.DataFrame({"ds": days[len(y) :]}))
    half = (found["yhat_upper"] - found["yhat_lower"]).to_numpy() / 2.0 / ndtri(0.95)
    return [Normal(m, max(d, 1e-6)) for m, d in zip(found["yhat"].to_numpy(), half, strict=True)]


def rivals() -> tuple[dict[str, Rival], list[str]]:
    """Forecasts by name, and what is not installed."""
    found: dict[str, Rival] = {"Poisson": poisson, "negative binomial": negative_binomial}
    missing = [name for name in ("statsmodels", "prophet") if find_spec(name) is None]
    if "statsmodels" not in missing:
        found |= {"ETS": _smoothing(False), "ETS of logs": _smoothing(True)}
    if "prophet" not in missing:
        found["prophet"] = prophet
    return found, missing
