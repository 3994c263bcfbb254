"""The numbers of the report on noise levels and densities; see `experiments.py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity

from hplus import Density, Full, Gaussian, HeteroscedasticRegressor, SumOfSquares
from hplus.solvers.sos.learning import feature_map, learn, likelihood

Floats = NDArray[np.float64]
Sample = tuple[Floats, Floats]

UNIT = np.linspace(0.0, 1.0, 401)
LINE = np.linspace(-3.0, 3.0, 601)
WIDE = np.linspace(-4.0, 4.0, 2001)

NOISE_SETTINGS = tuple(product((0.1, 0.15, 0.2, 0.3), (1e-3, 1e-2), (3e-3, 1e-2, 3e-2)))
"""Scale of the kernel, penalty of the mean, penalties of the noise level."""

DENSITY_PENALTIES = tuple(10.0 ** -np.arange(4.0, 9.0))


def true_mean(x: Floats) -> Floats:
    return 2.0 * (np.exp(-30.0 * (x - 0.25) ** 2) + np.sin(np.pi * x**2))


def true_noise(x: Floats) -> Floats:
    return np.exp(0.5 * np.sin(2.0 * np.pi * x))


def noisy_sample(n: int, seed: int) -> Sample:
    """n uniform points on [0, 1], (n, 1), and normal targets around the mean, (n,)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 1.0, n)
    return x[:, None], true_mean(x) + true_noise(x) * rng.normal(size=n)


@dataclass(frozen=True)
class NoiseModel:
    """Negative log-likelihoods per point (draws,): `held_out` in 5 folds, `fresh` on new points.

    `mean` and `noise` are learned from the first draw, on a grid of [0, 1].
    """

    name: str
    held_out: Floats
    fresh: Floats
    mean: Floats
    noise: Floats


def noise_data(
    draws: int = 5, n: int = 80, settings: Sequence[tuple[float, float, float]] = NOISE_SETTINGS
) -> list[NoiseModel]:
    """The truth, a learned noise level, and a Gaussian process with a constant noise level."""
    samples, fresh = [noisy_sample(n, seed) for seed in range(draws)], noisy_sample(20_000, 1000)
    machines = [HeteroscedasticRegressor(Gaussian(s), p, Full(c, c)) for s, p, c in settings]
    candidates: dict[str, Sequence[Any]] = {
        "truth": [Truth()],
        "HeteroscedasticRegressor": machines,
        "Gaussian process, one noise level": [_process()],
    }
    with warnings.catch_warnings():
        # the Gaussian process ends at a bound where a fold shows no signal
        warnings.filterwarnings("ignore", "The optimal value found")
        return [_noise_model(name, models, samples, fresh) for name, models in candidates.items()]


class Truth:
    """The distribution of the data, with the methods of a model."""

    def fit(self, X: Floats, y: Floats) -> Truth:
        return self

    def predict(self, X: Floats) -> Floats:
        return true_mean(X[:, 0])

    def predict_std(self, X: Floats) -> Floats:
        return true_noise(X[:, 0])


def _process() -> GaussianProcessRegressor:
    """Its three parameters are learned by the marginal likelihood, in every fold anew."""
    k = ConstantKernel(1.0, (1e-5, 1e3)) * RBF(0.2, (5e-2, 1e1)) + WhiteKernel(0.5, (1e-3, 1e1))
    return GaussianProcessRegressor(k, normalize_y=True, n_restarts_optimizer=2, random_state=0)


def _noise_model(
    name: str, models: Sequence[Any], samples: Sequence[Sample], fresh: Sample
) -> NoiseModel:
    rows, curves = [], []
    for X, y in samples:
        scores = [held_out_surprise(model, X, y) for model in models]
        best = models[int(np.argmin(scores))].fit(X, y)
        rows.append((min(scores), surprise(best, *fresh).mean()))
        curves.append(mean_and_noise(best, UNIT[:, None]))
    held_out, new = np.array(rows).T
    return NoiseModel(name, held_out, new, *curves[0])


def held_out_surprise(model: Any, X: Floats, y: Floats) -> float:
    """The mean of -log p(y | x) on fifths that the model did not see."""
    values = [
        surprise(model.fit(X[inside], y[inside]), X[outside], y[outside])
        for inside, outside in KFold(5).split(X)
    ]
    return float(np.concatenate(values).mean())


def surprise(model: Any, X: Floats, y: Floats) -> Floats:
    """-log p(y | x), shape (n,)."""
    return -norm.logpdf(y, *mean_and_noise(model, X))


def mean_and_noise(model: Any, X: Floats) -> Sample:
    if isinstance(model, GaussianProcessRegressor):
        return model.predict(X, return_std=True)
    return model.predict(X), model.predict_std(X)


BASE = 5.0
"""The standard deviation of the base measure ν = N(0, BASE²); densities are f·ν."""

LogDensity = Callable[[Floats], Floats]


def true_log_density(x: Floats) -> Floats:
    return np.log(0.5 * norm.pdf(x, -1.0, 0.3) + 0.5 * norm.pdf(x, 1.0, 0.3))


def expected_log_density(log_density: LogDensity) -> float:
    """∫ p log q for the truth p: the expectation over new points."""
    return float(np.exp(true_log_density(WIDE)) @ log_density(WIDE) * (WIDE[1] - WIDE[0]))


def density_sample(n: int, seed: int) -> Floats:
    """n points of ½N(-1, 0.3²) + ½N(1, 0.3²), shape (n,)."""
    rng = np.random.default_rng(seed)
    return rng.choice([-1.0, 1.0], n) + 0.3 * rng.normal(size=n)


def bump_mass(m: Floats, variance: float) -> Floats:
    """∫ exp(-(s - m)²/2v) dν(s) = √(2πv) N(m; 0, BASE² + v)."""
    return np.sqrt(2.0 * np.pi * variance) * norm.pdf(m, 0.0, np.sqrt(BASE**2 + variance))


def base_moments(centers: Floats) -> Floats:
    """∫ k(s, c_i) k(s, c_j) dν(s), shape (m, m), for Gaussian(1.0) and centers (m, 1)."""
    # k(s, a) k(s, b) = exp(-(a - b)²/4) exp(-(s - (a + b)/2)²)
    return np.exp(-0.25 * (centers - centers.T) ** 2) * bump_mass(0.5 * (centers + centers.T), 0.5)


def squares_density(x: Floats, penalty: float) -> LogDensity:
    """f·ν/∫f dν with the sum of squares f that minimises -mean log f + ∫f dν + penalty."""
    X = x[:, None]
    features = feature_map(Gaussian(1.0), X, None)
    T = features.root.T @ base_moments(features.centers) @ features.root
    shares = np.full(len(x), 1.0 / len(x))
    problem = likelihood(shares, features(X), T, Full(penalty, penalty), 1.0)
    (f,), _ = learn(problem, features, X)
    assert isinstance(f, SumOfSquares)
    log_mass = np.log(np.sum(f.factor * (base_moments(f.centers) @ f.factor)))
    return lambda s: np.log(f(s[:, None])) + norm.logpdf(s, 0.0, BASE) - log_mass


def bumps_density(x: Floats, variance: float) -> LogDensity:
    """Σ α_j exp(-(s - x_j)²/2v) · ν with the α >= 0 of largest likelihood."""
    masses = bump_mass(x, variance)

    def bumps(s: Floats) -> Floats:
        return np.exp(-0.5 * (s[:, None] - x) ** 2 / variance) / masses

    B, weights = bumps(x), np.full(len(x), 1.0 / len(x))
    for _ in range(2000):  # EM for a mixture with fixed components
        weights = weights * np.mean(B / (B @ weights)[:, None], axis=0)
    return lambda s: np.log(bumps(s) @ weights) + norm.logpdf(s, 0.0, BASE)


def squares_densities(x: Floats, penalties: Sequence[float]) -> dict[str, LogDensity]:
    """One density for each way to choose the penalty."""
    fits = [squares_density(x, penalty) for penalty in penalties]
    folds = [(x[i], x[o]) for i, o in KFold(5).split(x)]
    unseen = np.array([sum(squares_density(a, p)(b).sum() for a, b in folds) for p in penalties])
    shares = softmax(unseen)[:, None]

    def averaged(s: Floats) -> Floats:
        return logsumexp([fit(s) for fit in fits], axis=0, b=shares)

    return {
        "sum of squares, averaged": averaged,
        "sum of squares, one penalty": fits[int(np.argmax(unseen))],
        "sum of squares, chosen by the truth": max(fits, key=expected_log_density),
    }


def kernel_density(x: Floats) -> LogDensity:
    """The bandwidth maximises the likelihood in 5-fold cross-validation."""
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.05, 1.0, 30)}, cv=KFold(5))
    best = search.fit(x[:, None]).best_estimator_
    return lambda s: best.score_samples(s[:, None])


def mixture_density(x: Floats) -> LogDensity:
    """Five parameters, and the truth is one of the candidates."""
    mixture = GaussianMixture(2, random_state=0, means_init=[[-1.0], [1.0]]).fit(x[:, None])
    return lambda s: mixture.score_samples(s[:, None])


def default_density(x: Floats) -> LogDensity:
    """`Density` with its defaults."""
    model = Density(random_state=0).fit(x[:, None])
    return lambda s: np.log(model.predict(s[:, None]))


@dataclass(frozen=True)
class DensityModel:
    """The expected log density of a new point, (draws,), and the density of the first draw.

    `truth` is that of the true density, `alike` (draws,) says which draws are as lucky as the one
    of [marteau2020].
    """

    name: str
    scores: Floats
    truth: float
    alike: NDArray[np.bool_]
    first: Floats
    x: Floats


LUCKY = -1.459
"""The score of non-negative weights on k on draws like that of [marteau2020]: -1.458."""


def density_data(
    draws: int = 300, n: int = 80, penalties: Sequence[float] = DENSITY_PENALTIES
) -> list[DensityModel]:
    """Every model on the same draws."""
    samples = [density_sample(n, seed) for seed in range(draws)]
    fits = [_all_densities(x, penalties) for x in samples]
    scores = {
        name: np.array([expected_log_density(models[name]) for models in fits]) for name in fits[0]
    }
    alike = scores["α ≥ 0 on k"] >= LUCKY
    truth = expected_log_density(true_log_density)
    return [
        DensityModel(name, scores[name], truth, alike, np.exp(model(LINE)), samples[0])
        for name, model in fits[0].items()
    ]


def _all_densities(x: Floats, penalties: Sequence[float]) -> dict[str, LogDensity]:
    return {
        "truth": true_log_density,
        **squares_densities(x, penalties),
        "Density()": default_density(x),
        "mixture of two normals": mixture_density(x),
        "kernel density": kernel_density(x),
        "α ≥ 0 on k²": bumps_density(x, 0.5),
        "α ≥ 0 on k": bumps_density(x, 1.0),
    }
