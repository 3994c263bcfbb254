"""The numbers of the report, computed by `*_data` functions with fixed seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import hplus
from hplus import Function, Gaussian, KernelClassifier, KernelRegressor, Laplace, datasets
from hplus.kernels import Kernel
from hplus.losses import Hinge, Loss, PiecewiseLinear, as_loss
from hplus.solvers.machines.risk import Risk
from hplus.space import evaluation_gradient, loss_gradient, norm_gradient

Floats = NDArray[np.float64]

DECADE = 10.0
YEARS, PLANE = Gaussian(DECADE), Gaussian(0.5)
"""The kernels for the coal data, in years, and for the banana data."""

COSTS = tuple(10.0 ** (0.5 * k) for k in range(9))
"""The costs of the support vector machine, 1 to 10,000."""

KINK = 1e-6
"""A value this close to the kink of a loss counts as on it."""


def coal_counts() -> tuple[Floats, Floats]:
    """Disasters in each year from 1851 to 1962: the middle of each (112, 1), counts (112,)."""
    counts, edges = np.histogram(datasets.coal().X[:, 0], np.arange(1851, 1964))
    return (edges[:-1] + 0.5)[:, None], counts.astype(np.float64)


def banana_sample(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """n/2 points of each class: X (n, 2) and labels y (n,) of -1 and 1."""
    data, rng = datasets.banana(), np.random.default_rng(seed)
    y = np.asarray(data.y, dtype=np.float64)
    rows = [rng.choice(np.flatnonzero(y == side), n // 2, replace=False) for side in (-1, 1)]
    chosen = np.concatenate(rows)
    return data.X[chosen], y[chosen]


def coefficients_at(f: Function, X: Floats) -> Floats:
    """The weight of f at each of the distinct points X, 0 where f has no centre; shape (n,)."""
    same = np.all(X[:, None, :] == f.centers, axis=2).astype(np.float64)
    return same @ f.weights.ravel()


@dataclass(frozen=True)
class Fit:
    """A fitted model and the representer theorem, c_i = -(w_i/2γn) u_i, u_i ∈ ∂Φ(y_i, f_i).

    f_i = f(x_i), plus the bias of a classifier or the log of the mean count; `u` are the slopes
    that correspond to the fitted c; `residual` is max |K(c - c_fix)|, where c_fix takes its
    slopes from the loss.
    """

    name: str
    machine: Any
    loss: Loss
    y: Floats
    f: Floats
    u: Floats
    residual: float


def representer_data(n: int = 200, penalty: float = 2e-3) -> list[Fit]:
    """Four losses on the coal data, one of them also with weights; two on the banana data."""
    X, y = coal_counts()
    B, labels = banana_sample(n)
    # a year has 1/e of the weight of the year 40 years later
    recent = np.exp((X[:, 0] - X.max()) / 40.0)
    names = {"squared": "squared", "huber": "huber", "poisson_log": "poisson_log"}
    losses = names | {"quantile 0.9": hplus.Quantile(0.9)}
    fits = [
        _fit(name, KernelRegressor(YEARS, loss, penalty, fit_intercept=False), X, y)
        for name, loss in losses.items()
    ]
    fits.append(
        _fit(
            "huber, weighted",
            KernelRegressor(YEARS, "huber", penalty, fit_intercept=False),
            X,
            y,
            recent,
        )
    )
    for loss in ("logistic", "hinge"):
        fits.append(_fit(loss, KernelClassifier(PLANE, loss, penalty, "primal"), B, labels))
    return fits


def _fit(name: str, machine: Any, X: Floats, y: Floats, weights: Floats | None = None) -> Fit:
    w = np.ones(len(X)) if weights is None else weights
    machine.fit(X, y, sample_weight=w)
    loss, reach = as_loss(machine.loss), w / w.sum() / (2.0 * machine.penalty)
    values = machine.function_(X).ravel()
    f = values + getattr(machine, "intercept_", 0.0)
    u = -coefficients_at(machine.function_, X) / reach
    # ∂Φ is the interval between the slopes on both sides of f: one number, except at a kink
    kink = KINK if isinstance(loss, PiecewiseLinear) else 0.0
    nearest = np.clip(u, loss.slope(y, f - kink), loss.slope(y, f + kink))
    fixed = Function(machine.kernel_, X, -reach * nearest)
    return Fit(name, machine, loss, y, f, u, float(np.abs(values - fixed(X)).max()))


@dataclass(frozen=True)
class Descent:
    """P(f_t) - min P for t = 0, …, T, the bound (1 - 2γη)^t on it, and ‖f_T - f*‖."""

    name: str
    step: float
    excess: Floats
    bound: Floats
    distance: float


def descent_data(iterations: int = 250, penalty: float = 2e-2) -> list[Descent]:
    """f ← f - η ∇P(f) from f = 0, for three losses on the coal data."""
    return [_descend(name, iterations, penalty) for name in ("squared", "huber", "poisson_log")]


def risk_gradient(f: Function, X: Floats, risk: Risk) -> Function:
    """∇P = Σ_i p_i Φ'(y_i, f(x_i)) k(x_i, ·) + 2 penalty f [math, Eq. 1.5], without bias."""
    slopes = risk.shares * risk.loss.slope(risk.y, f(X))
    if not np.isfinite(slopes).all() or np.abs(slopes).max() > 1e100:
        raise ValueError(f"loss must have finite slopes at the current function, got {risk.loss}.")
    return loss_gradient(f, slopes, X) + risk.penalty * norm_gradient(f)


def _descend(name: str, iterations: int, penalty: float) -> Descent:
    X, y = coal_counts()
    machine = KernelRegressor(YEARS, name, penalty, fit_intercept=False).fit(X, y)
    # 1, except for counts, which are learned as multiples of their mean
    mean = float(np.exp(machine.intercept_))
    risk = Risk(as_loss(name), y / mean, np.full(len(X), mean / len(X)), penalty)
    # η = 1/(max Φ'' · largest eigenvalue of K/n + 2γ), with Φ'' between 0 and f*
    curvature = mean * risk.loss.curvature(y, np.maximum(machine.function_(X), 0.0)).max()
    step = 1.0 / (curvature * np.linalg.eigvalsh(YEARS(X) / len(X))[-1] + 2.0 * penalty)
    f, P = Function(YEARS, X, np.zeros(len(X))), []
    for _ in range(iterations + 1):
        P.append(risk.primal(f(X), 0.0, f @ f))
        last, f = f, (f - step * risk_gradient(f, X, risk)).merged()
    excess = np.array(P) - machine.solution_.objective
    bound = excess[0] * (1.0 - 2.0 * penalty * step) ** np.arange(iterations + 1)
    return Descent(name, step, excess, bound, last.distance(machine.function_))


def updates_data(step: float = 0.8, penalty: float = 0.1) -> list[tuple[float, float, Function]]:
    """x_t, y_t and f after f ← f - η ∇[(1 - y_t f(x_t))₊ + λ‖f‖²], for three labelled points."""
    x, y = np.array([[1.0], [2.6], [4.6]]), np.array([1.0, -1.0, 1.0])
    steps = [(0.0, 0.0, Function(Gaussian(0.7), x, np.zeros(3)))]
    for t in range(3):
        risk, f = Risk(Hinge(), y[[t]], np.ones(1), penalty), steps[-1][2]
        f = (f - step * risk_gradient(f, x[[t]], risk)).merged()
        steps.append((float(x[t, 0]), float(y[t]), f))
    return steps[1:]


@dataclass(frozen=True)
class Svm:
    """One cost c of ½‖f‖² + (c/n) Σ (1 - y_i(f(x_i) + b))₊, solved by two solvers.

    `primal` is P of the interior point method, `dual` is D of libsvm's α (n,); `bias` is
    computed from the free α, or else is the midpoint of `biases`, the interval of optimal b.
    """

    cost: float
    primal: float
    dual: float
    alpha: Floats
    free: NDArray[np.bool_]
    biases: tuple[float, float]
    bias: float
    machine: KernelClassifier


def svm_data(costs: Sequence[float] = COSTS, n: int = 200) -> list[Svm]:
    """Both solvers over a range of costs, on n points of the banana data."""
    X, y = banana_sample(n)
    return [_svm(float(cost), X, y) for cost in costs]


def _svm(cost: float, X: Floats, y: Floats) -> Svm:
    # ½‖f‖² + (c/n) Σ is c times the library's (1/n) Σ + penalty ‖f‖² with penalty 1/2c
    primal, dual = (
        KernelClassifier(PLANE, "hinge", 0.5 / cost, solver).fit(X, y)
        for solver in ("primal", "dual")
    )
    alpha, top = y * coefficients_at(dual.function_, X), cost / len(X)
    u = y - dual.function_(X).ravel()
    zero, full = alpha <= 1e-9 * top, alpha >= (1.0 - 1e-9) * top
    free = ~zero & ~full
    # b >= u_i where α_i y_i could still grow, b <= u_i where it could still shrink
    least = float(u[free | np.where(y > 0, zero, full)].max())
    most = float(u[free | np.where(y > 0, full, zero)].min())
    bias = float(u[free].mean()) if free.any() else 0.5 * (least + most)
    D = float(alpha.sum() - 0.5 * (alpha * y) @ PLANE(X) @ (alpha * y))
    P = cost * primal.solution_.objective
    return Svm(cost, P, D, alpha, free, (least, most), bias, dual)


def closure_data(n: int = 40) -> list[tuple[str, str, int, float]]:
    """Rule, kernel, number of features and max |φ(w)·φ(x) - k(w, x)| on n points.

    φ is constructed from φ₁ and φ₂ as in the proof of the rule; Gaussian and Laplace kernels, which
    have no finite φ on the plane, use a root of their Gram matrix.
    """
    X, rows = banana_sample(n, seed=1)[0], np.arange(float(n))[:, None]
    linear, poly, smooth, rough = hplus.Linear(), hplus.Polynomial(2), PLANE, Laplace(1.0)
    a, b = linear.features(X), poly.features(X)
    g, h = (hplus.Finite(k(X)).features(rows) for k in (smooth, rough))
    rules: list[tuple[str, Kernel, Floats]] = [
        ("k₁ + k₂", linear + poly, np.hstack([a, b])),
        ("k₁ + k₂", smooth + rough, np.hstack([g, h])),
        ("k₁ · k₂", linear * poly, np.einsum("ni,nj->nij", a, b)),
        ("k₁ · k₂", smooth * rough, np.einsum("ni,nj->nij", g, h)),
        ("α k", 3.0 * poly, np.sqrt(3.0) * b),
        ("f(w) f(x)", hplus.Scalar(_wave), _wave(X)),
    ]
    return [_closure(rule, kernel, phi.reshape(n, -1), X) for rule, kernel, phi in rules]


def _wave(X: Floats) -> Floats:
    return np.sin(2.0 * X[:, 0]) + X[:, 1]


def _closure(rule: str, kernel: Kernel, phi: Floats, X: Floats) -> tuple[str, str, int, float]:
    name = "Scalar(f)" if isinstance(kernel, hplus.Scalar) else str(kernel)
    return rule, name, phi.shape[1], float(np.abs(phi @ phi.T - kernel(X)).max())


def finite_data() -> list[tuple[Function, Floats, float]]:
    """Two weight vectors on {0, 1, 2, 3}: f, <f, k(i, ·)> for each i, the distance to the other."""
    N = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    kernel, points = hplus.Finite(N @ N.T), np.arange(4.0)[:, None]
    f = Function(kernel, points, np.array([1.0, 0.5, 0.5, -0.5]))
    g = Function(kernel, points, f.weights + np.array([1.0, 1.0, -1.0, 0.0]))  # which K maps to 0
    inner = [np.array([h @ evaluation_gradient(kernel, x) for x in points]) for h in (f, g)]
    return [(f, inner[0], f.distance(g)), (g, inner[1], g.distance(f))]


@dataclass(frozen=True)
class Spectrum:
    """The operator e -> ∫ k(·, z) e(z) dz on [0, 1], evaluated at q nodes x.

    `values` are the λ_i (q,), `functions` the e_i(x), one per column; `errors[m]` is the largest
    |k - Σ_{i<=m} λ_i e_i e_i| at the nodes; `double` is ∬ k² in closed form, equal to Σ λ_i².
    """

    kernel: Kernel
    x: Floats
    values: Floats
    functions: Floats
    errors: Floats
    double: float


def mercer_data(nodes: int = 300, terms: int = 100) -> list[Spectrum]:
    """A smooth and a rough kernel of the same scale."""
    return [_spectrum(kernel, nodes, terms) for kernel in (Gaussian(0.2), Laplace(0.2))]


def _spectrum(kernel: Kernel, nodes: int, terms: int) -> Spectrum:
    """∫ k(x, z) e(z) dz = λ e(x) by a Gauss-Legendre rule: eigenvectors of W^½ K W^½."""
    window = hplus.Interval(0.0, 1.0)
    x, w = window.quadrature(nodes)
    root, K = np.sqrt(w), kernel(x)
    s, V = np.linalg.eigh(root[:, None] * K * root)
    s, E = s[::-1], V[:, ::-1] / root[:, None]
    E = E * np.where(E[0] < 0.0, -1.0, 1.0)
    rest, errors = K.copy(), [np.abs(K).max()]
    for i in range(terms):
        rest -= s[i] * np.outer(E[:, i], E[:, i])
        errors.append(np.abs(rest).max())
    double = hplus.double_integral(kernel.squared(), window)
    return Spectrum(kernel, x[:, 0], s, E, np.array(errors), double)


def laplace_eigenvalues(scale: float, count: int) -> Floats:
    """λ_i = 2c/(c² + ω_i²), c = 1/scale; ω tan ω/2 = c for even i, ω cot ω/2 = -c for odd i."""
    c = 1.0 / scale

    def crossing(omega: float, i: int) -> float:
        sine, cosine = np.sin(omega / 2.0), np.cos(omega / 2.0)
        return float(c * cosine - omega * sine if i % 2 == 0 else c * sine + omega * cosine)

    roots = [brentq(crossing, i * np.pi, (i + 1) * np.pi, args=(i,)) for i in range(count)]
    return 2.0 * c / (c**2 + np.square(roots))


def ridge_data(penalties: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1)) -> list[tuple[float, ...]]:
    """γ, γn and the largest differences between predictions in three comparisons.

    hplus with penalty γ against scikit-learn's KernelRidge with alpha = γn and with alpha = γ,
    both on the coal data; the linear kernel against Ridge on the columns, on the banana data.
    """
    return [_differences(penalty) for penalty in penalties]


def _differences(penalty: float) -> tuple[float, ...]:
    (X, y), (B, labels) = coal_counts(), banana_sample(200)
    ours = KernelRegressor(YEARS, penalty=penalty, fit_intercept=False).fit(X, y).predict(X)
    # centred years: |x|² + |z|² - 2x·z in KernelRidge has errors of 1e-9 on plain years
    Z, peer = X - X.mean(), KernelRidge(kernel="rbf", gamma=0.5 / DECADE**2)
    peers = [peer.set_params(alpha=a).fit(Z, y).predict(Z) for a in (penalty * len(X), penalty)]
    linear = (
        KernelRegressor(hplus.Linear(), penalty=penalty, fit_intercept=False)
        .fit(B, labels)
        .predict(B)
    )
    columns = Ridge(alpha=penalty * len(B), fit_intercept=False).fit(B, labels).predict(B)
    gaps = [ours - peers[0], ours - peers[1], linear - columns]
    return penalty, penalty * len(X), *(float(np.abs(gap).max()) for gap in gaps)
