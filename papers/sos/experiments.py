"""The numbers of the report, computed by `*_data` functions with fixed seeds.

This module has regression in the three cones; see also `likelihoods.py` and `quantiles.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hplus import Diagonal, Full, Gaussian, KernelRegressor, Nugget, Paper, SoSRegressor
from hplus.kernels import Kernel
from hplus.losses import Squared
from hplus.positivity import Cone
from hplus.tuning.scales import held_out_squares

Floats = NDArray[np.float64]

PENALTY, NUGGET, NOISE, N = 0.01, 0.01, 0.5, 50
"""λ, the nugget of the kernel, the standard deviation of the noise and the number of points."""

SCALES = (0.25, 0.75)
CONES = ("Full", "Diagonal", "Paper")

GRID = np.linspace(-5.0, 5.0, 1001)
"""Where functions are compared; it contains no data point, where the nugget would matter."""


def truth(x: Floats) -> Floats:
    """sin x + cos 3x - (x/2)² + 3, negative on both sides."""
    return np.sin(x) + np.cos(3.0 * x) - (0.5 * x) ** 2 + 3.0


def sample(n: int, seed: int) -> tuple[Floats, Floats]:
    """n uniform points on [-5, 5], (n, 1), and the noisy truth there, (n,)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-5.0, 5.0, n)
    return x[:, None], truth(x) + NOISE * rng.normal(size=n)


def kernel_of(scale: float) -> Kernel:
    return Gaussian(scale) + NUGGET * Nugget()


def cone_of(name: str, penalty: float, n: int) -> Cone:
    """The cone whose mean loss plus penalty is 1/n times Σ (f - y)² + penalty ‖f‖²."""
    share = penalty / n
    cones = {"Full": Full(0.0, 2.0 * share), "Diagonal": Diagonal(share), "Paper": Paper(share)}
    return cones[name]


def error_of(f: Floats) -> float:
    """The RMS distance on the grid to max(truth, 0), the best non-negative function."""
    return float(np.sqrt(np.mean((f - np.maximum(truth(GRID), 0.0)) ** 2)))


def ridge(X: Floats, y: Floats, scale: float, penalty: float) -> Floats:
    """The unconstrained minimiser in H', the space of k², on the grid."""
    machine = KernelRegressor(
        kernel_of(scale).squared(), penalty=penalty / len(y), fit_intercept=False
    )
    return machine.fit(X, y).predict(GRID[:, None])


@dataclass(frozen=True)
class Figure:
    """One panel of figure 1: data, the fit in the full cone and ridge regression, on the grid."""

    scale: float
    X: Floats
    y: Floats
    ours: Floats
    ridge: Floats
    gap: float


def figure_data(n: int = N, scales: Sequence[float] = SCALES, seed: int = 0) -> list[Figure]:
    """One panel per scale, with the same draw."""
    X, y = sample(n, seed)
    return [_figure(scale, X, y) for scale in scales]


def _figure(scale: float, X: Floats, y: Floats) -> Figure:
    machine = SoSRegressor(kernel_of(scale), cone=cone_of("Full", PENALTY, len(y))).fit(X, y)
    ours = machine.predict(GRID[:, None])
    free = ridge(X, y, scale, PENALTY)
    return Figure(scale, X, y, ours, free, machine.solution_.relative_gap)


@dataclass(frozen=True)
class ConeFits:
    """One cone at one scale over several draws: n · objective, error, CPU seconds, relative gap.

    Each has shape (draws,); `first` is the function of the first draw on the grid.
    """

    scale: float
    cone: str
    objective: Floats
    error: Floats
    seconds: Floats
    gap: Floats
    first: Floats


def cones_data(
    draws: int = 5, n: int = N, scales: Sequence[float] = SCALES, cones: Sequence[str] = CONES
) -> list[ConeFits]:
    """Every cone at every scale, on the same draws."""
    data = [sample(n, seed) for seed in range(draws)]
    return [_cone_fits(scale, cone, data) for scale in scales for cone in cones]


def _cone_fits(scale: float, cone: str, data: list[tuple[Floats, Floats]]) -> ConeFits:
    rows, curves = [], []
    for X, y in data:
        machine = SoSRegressor(kernel_of(scale), cone=cone_of(cone, PENALTY, len(y)))
        start = time.process_time()
        solution = machine.fit(X, y).solution_
        seconds = time.process_time() - start
        curves.append(machine.predict(GRID[:, None]))
        error = error_of(curves[-1])
        rows.append((len(y) * solution.objective, error, seconds, solution.relative_gap))
    objective, error, seconds, gap = np.array(rows).T
    return ConeFits(scale, cone, objective, error, seconds, gap, curves[0])


@dataclass(frozen=True)
class Cases:
    """Random α and Gram matrices of n points: how often each condition holds.

    `both` counts the cases where α >= 0 and GA ⪰ 0 agree.
    """

    n: int
    cases: int
    nonnegative: int
    both: int
    inequality: int


def inequality_data(cases: int = 2000, sizes: Sequence[int] = (2, 3, 5, 10)) -> list[Cases]:
    """α uniform on [-0.1, 1], points uniform on [0, 3], the kernel of scale 0.75."""
    return [_cases(n, cases, np.random.default_rng(n)) for n in sizes]


def _cases(n: int, cases: int, rng: np.random.Generator) -> Cases:
    counts = np.zeros(3, dtype=np.int64)
    for _ in range(cases):
        alpha = rng.uniform(-0.1, 1.0, n)
        G = kernel_of(0.75)(rng.uniform(0.0, 3.0, (n, 1)))
        product, inequality = conditions(G, alpha)
        nonnegative = bool(np.all(alpha >= 0.0))
        counts += nonnegative, nonnegative == product, inequality
    return Cases(n, cases, *counts.tolist())


def conditions(G: Floats, alpha: Floats) -> tuple[bool, bool]:
    """Whether GA has no negative eigenvalue, and whether GA + AG ⪰ 0; A = diag(α), G ≻ 0."""
    # GA and LᵀAL have the same eigenvalues for G = LLᵀ
    L = np.linalg.cholesky(G)
    product = np.linalg.eigvalsh(L.T @ (alpha[:, None] * L))
    inequality = np.linalg.eigvalsh(G * (alpha[:, None] + alpha))
    return bool(product[0] >= 0.0), bool(inequality[0] >= 0.0)


@dataclass(frozen=True)
class Selection:
    """The mean held-out loss (scales, penalties) of the full cone, and the data used."""

    X: Floats
    y: Floats
    scales: Floats
    penalties: Floats
    losses: Floats


@dataclass(frozen=True)
class Choice:
    """A scale and a penalty, how they were chosen, their held-out loss, and the fit on the grid."""

    name: str
    scale: float
    penalty: float
    loss: float
    fit: Floats
    selection: Selection


def selection_data(
    n: int = N, scales: Floats | None = None, penalties: Floats | None = None, seed: int = 0
) -> list[Choice]:
    """The paper's two scales and the choice of cross-validation, all in the full cone."""
    X, y = sample(n, seed)
    scales = np.array([0.15, 0.25, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0]) if scales is None else scales
    penalties = 10.0 ** np.arange(1.5, -5.0, -0.5) if penalties is None else penalties
    losses = np.array([_held_out(scale, X, y, penalties) for scale in scales])
    selection = Selection(X, y, scales, penalties, losses)
    i, j = np.unravel_index(np.argmin(losses), losses.shape)
    best = ("cross-validation", float(scales[i]), float(penalties[j]))
    settings = [*(("the paper's", scale, PENALTY) for scale in SCALES), best]
    return [_choice(*setting, selection) for setting in settings]


def _held_out(scale: float, X: Floats, y: Floats, penalties: Floats, splits: int = 4) -> Floats:
    """The mean squared error in 5-fold cross-validation, for penalties from strong to weak.

    Averaged over several random splits.
    """
    n, k, rng = len(y), kernel_of(scale), np.random.default_rng(0)
    cones = [Full(0.0, 2.0 * penalty / n) for penalty in penalties.tolist()]
    orders = [rng.permutation(n) for _ in range(splits)]
    shares = np.full(n, 1.0 / n)
    losses = [held_out_squares(k, X[o], y[o], shares, Squared(), cones) for o in orders]
    return np.mean(losses, axis=0)


def _choice(name: str, scale: float, penalty: float, selection: Selection) -> Choice:
    X, y = selection.X, selection.y
    loss = float(_held_out(scale, X, y, np.array([penalty]))[0])
    machine = SoSRegressor(kernel_of(scale), cone=cone_of("Full", penalty, len(y))).fit(X, y)
    return Choice(name, scale, penalty, loss, machine.predict(GRID[:, None]), selection)
