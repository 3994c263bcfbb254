"""From data to a certified function: the representer theorem at work [math, Eq. 2.2].

A basis says among which functions to look: those on all points, or those on a few landmarks.
`train` solves the penalised problem there and certifies the answer with fresh kernel values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from hplus._checks import Floats, check_memory
from hplus._threads import one_thread_if_small
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import Loss, PiecewiseLinear, Squared
from hplus.solvers.machines.gram import DenseGram, FeatureGram, Gram, compact
from hplus.solvers.machines.interior import interior_point
from hplus.solvers.machines.newton import newton
from hplus.solvers.machines.risk import Risk
from hplus.solvers.machines.svm import svm_dual
from hplus.solvers.result import SolverResult, Status
from hplus.space import Function

SMOOTH_GAP, KINKED_GAP = 1e-8, 1e-5
"""The relative gaps that are promised for smooth losses and for losses with kinks."""

LIBSVM_TOLERANCES, LIBSVM_GAP = (1e-5, 1e-7), 1e-6
"""The first tolerance brings most machines to a relative gap of 1e-7."""

LIBSVM_RESCUE = 4000
"""AllPoints up to which an interior point method ends what libsvm, in single precision, cannot."""


class Basis(ABC):
    """Functions f = Σ_i c_i (k(x_i, ·), projected or not), one coefficient for each data point."""

    kernel: Kernel
    X: Floats

    @abstractmethod
    def gram(self) -> Gram:
        """The inner products of the basis functions, as a direct solver wants them."""

    @abstractmethod
    def reduced(self) -> Gram:
        """The same, compacted if that pays over many factorisations."""

    @abstractmethod
    def function(self, c: Floats) -> Function:
        """Σ_i c_i k(x_i, ·), for c of shape (n,) or (n, outputs)."""

    @abstractmethod
    def square(self, f: Function, values: Floats, c: Floats) -> Floats:
        """‖f‖² of every output of f = function(c) with values f(X)."""


@final
class AllPoints(Basis):
    """All functions on the data points."""

    def __init__(self, kernel: Kernel, X: Floats) -> None:
        self.kernel, self.X = kernel, X

    def gram(self) -> Gram:
        n = len(self.X)
        check_memory(
            16.0 * n * n, f"A fit on all {n} points", "set landmarks, for example landmarks=1000"
        )
        return DenseGram(self.kernel(self.X))

    def reduced(self) -> Gram:
        gram = self.gram()
        assert isinstance(gram, DenseGram)
        return compact(gram.K)

    def function(self, c: Floats) -> Function:
        used = np.any(np.reshape(c, (len(c), -1)) != 0.0, axis=1)
        return Function(self.kernel, self.X[used], c[used])

    def square(self, f: Function, values: Floats, c: Floats) -> Floats:
        return np.sum(c * values, axis=0)


@final
class Landmarks(Basis):
    """The functions on landmarks Z: f = φ(·)·v, φ(x) = rootᵀ k(Z, x), v = Σ_i c_i φ(x_i)."""

    def __init__(self, kernel: Kernel, X: Floats, landmarks: Nystroem) -> None:
        self.kernel, self.X = kernel, X
        n, m = len(X), min(len(X), landmarks.landmarks)
        need = 24.0 * n * m + 16.0 * m * m
        check_memory(need, f"A fit of {n} points on {m} landmarks", "use fewer landmarks")
        self.map = landmarks(kernel, X)
        self.features = self.map(X)

    def gram(self) -> Gram:
        return FeatureGram(self.features)

    reduced = gram

    def function(self, c: Floats) -> Function:
        return Function(self.kernel, self.map.centers, self.map.root @ (self.features.T @ c))

    def square(self, f: Function, values: Floats, c: Floats) -> Floats:
        inner = f.kernel.dot(f.centers, f.centers, f.weights)
        return np.sum(f.weights * inner, axis=0)


@dataclass(frozen=True)
class Trained:
    """The coefficients of a function on its basis, its bias, and how good they are."""

    coefficients: Floats
    bias: float
    result: SolverResult


def ridge(basis: Basis, Y: Floats, shares: Floats, penalty: float) -> Trained:
    """The squared loss for targets (n,) or (n, outputs): (K + diag(penalty/p)) c = Y."""
    with one_thread_if_small(len(Y)):
        c = basis.gram().solve_once(penalty / shares, Y)
        f = basis.function(c)
        values = f(basis.X)
    squares = np.atleast_1d(basis.square(f, values, c))
    columns = (np.reshape(A, (len(A), -1)).T for A in (Y, values, c))
    P = D = 0.0
    for y, v, weights, square in zip(*columns, squares.tolist(), strict=True):
        risk = Risk(Squared(), y, shares, penalty)
        P += risk.primal(v, 0.0, square)
        D += risk.dual(weights, square)
    return Trained(
        c,
        0.0,
        SolverResult(Status.CONVERGED, 1, P, max(P - D, 0.0), P).judged(promised_gap(Squared())),
    )


def train(basis: Basis, risk: Risk, solver: str = "primal") -> Trained:
    """Minimise `risk` over the functions of `basis`.

    Smooth losses go by Newton's method, piecewise linear ones by the interior point method
    ("primal") or, for the hinge on all points, by libsvm ("dual").
    """
    with one_thread_if_small(len(risk.y)):
        if solver == "dual":
            return _train_dual(basis, risk)
        method = interior_point if isinstance(risk.loss, PiecewiseLinear) else newton
        return certify(basis, risk, *method(basis.reduced(), risk))


def _train_dual(basis: Basis, risk: Risk) -> Trained:
    """libsvm, asked for more accuracy until the certified gap is small."""
    for tol in LIBSVM_TOLERANCES:
        try:
            solution = svm_dual(basis.kernel, basis.X, risk, tol=tol)
        except ValueError:  # what overflows in libsvm
            return train(basis, risk)
        trained = certify(basis, risk, *solution)
        if trained.result.relative_gap <= LIBSVM_GAP:
            return trained
    return train(basis, risk) if len(risk.y) <= LIBSVM_RESCUE else trained


def certify(basis: Basis, risk: Risk, c: Floats, iterations: int, status: Status) -> Trained:
    """The function of c with its best bias, P there and the largest D at hand [math, Eq. 2.5].

    A piecewise linear loss takes c itself as the dual point; a smooth one the coefficients that
    its slopes give, which always lie in the domain of the conjugate.
    """
    f = basis.function(c)
    values = f(basis.X)
    b = risk.best_bias(values)
    square = float(basis.square(f, values, c))
    P, size = risk.primal(values, b, square), risk.size(values, b, square)
    point = c
    if not isinstance(risk.loss, PiecewiseLinear):
        point = risk.coefficients(values, b)
        g = basis.function(point)
        square = float(basis.square(g, g(basis.X), point))
    D = risk.dual(point, square, b)
    # at the optimum rounding may leave D a hair above P
    return Trained(
        c,
        b,
        SolverResult(status, iterations, P, max(P - D, 0.0), size).judged(promised_gap(risk.loss)),
    )


def promised_gap(loss: Loss) -> float:
    """The relative gap that a fit is expected to certify."""
    return KINKED_GAP if isinstance(loss, PiecewiseLinear) else SMOOTH_GAP
