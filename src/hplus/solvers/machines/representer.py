"""From data to a certified function, by the representer theorem [math, Eq. 2.2].

A basis is the family of candidate functions: those on all points, or those on a few landmarks.
`train` solves the penalised problem in it and certifies the solution with fresh kernel values.
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
"""The relative gaps promised for smooth losses and for losses with kinks."""

LIBSVM_TOLERANCES, LIBSVM_GAP = (1e-5, 1e-7), 1e-6
"""Tolerances tried in turn until the relative gap is reached; the first mostly suffices."""

MOST_RESCUED_POINTS = 4000
"""Up to this many points an interior-point method takes over where libsvm, which works in single
precision, does not reach the gap."""


class Basis(ABC):
    """Functions f = Σ_i c_i k(x_i, ·), projected or not, one coefficient for each data point."""

    kernel: Kernel
    X: Floats

    @abstractmethod
    def gram(self) -> Gram:
        """The inner products of the basis functions, for a single factorisation."""

    @abstractmethod
    def reduced(self) -> Gram:
        """The same, in a compact form if that pays off over many factorisations."""

    @abstractmethod
    def function(self, c: Floats) -> Function:
        """Σ_i c_i k(x_i, ·), for c of shape (n,) or (n, outputs)."""

    @abstractmethod
    def square(self, f: Function, c: Floats, values: Floats | None = None) -> Floats:
        """‖f‖² of every output of f = function(c); `values` are f(X), if they are known."""


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

    def square(self, f: Function, c: Floats, values: Floats | None = None) -> Floats:
        return np.sum(c * (f(self.X) if values is None else values), axis=0)


@final
class Landmarks(Basis):
    """All functions on landmarks Z: f = φ(·)·v, φ(x) = rootᵀ k(Z, x), v = Σ_i c_i φ(x_i)."""

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

    def square(self, f: Function, c: Floats, values: Floats | None = None) -> Floats:
        inner = f.kernel.dot(f.centers, f.centers, f.weights)
        return np.sum(f.weights * inner, axis=0)


def basis_for(kernel: Kernel, X: Floats, landmarks: Nystroem | None) -> Basis:
    """The basis of all points, or of landmarks if there are any."""
    return AllPoints(kernel, X) if landmarks is None else Landmarks(kernel, X, landmarks)


@dataclass(frozen=True)
class Trained:
    """The coefficients of a function on its basis, its bias, and the quality of the solution."""

    coefficients: Floats
    bias: float
    result: SolverResult


@dataclass(frozen=True)
class TrainedColumns:
    """The coefficients of several outputs (n,) or (n, outputs), their biases, and the quality."""

    coefficients: Floats
    biases: Floats
    result: SolverResult


def ridge(
    basis: Basis, Y: Floats, shares: Floats, penalty: float, *, bias: bool = False
) -> TrainedColumns:
    """The squared loss for targets (n,) or (n, outputs): (K + diag(penalty/p)) c + b = Y.

    For a bias Σ c = 0, so that b = 1ᵀA⁻¹Y/1ᵀA⁻¹1 with A = K + diag(penalty/p).
    """
    targets = np.reshape(Y, (len(Y), -1))
    b = np.zeros(targets.shape[1])
    with one_thread_if_small(len(Y)):
        sides = np.column_stack([targets, np.ones(len(Y))]) if bias else targets
        C = basis.gram().solve_once(penalty / shares, sides)
        if bias:
            C, one = C[:, :-1], C[:, -1]
            b = C.sum(axis=0) / one.sum()
            C = C - np.outer(one, b)
        c = C.reshape(Y.shape)
        f = basis.function(c)
        values = f(basis.X)
    squares = np.atleast_1d(basis.square(f, c, values))
    P = D = 0.0
    columns = (np.reshape(A, (len(A), -1)).T for A in (Y, values, c))
    for y, v, weights, square, own in zip(*columns, squares.tolist(), b.tolist(), strict=True):
        risk = Risk(Squared(), y, shares, penalty, bias)
        P += risk.primal(v, own, square)
        D += risk.dual(weights, square, own)
    result = SolverResult(Status.CONVERGED, 1, P, max(P - D, 0.0), P)
    return TrainedColumns(c, b, result.judged(promised_gap(Squared())))


def train(basis: Basis, risk: Risk, solver: str = "primal") -> Trained:
    """Minimise `risk` over the functions of `basis`.

    Smooth losses use Newton's method, piecewise linear ones an interior-point method ("primal")
    or, for the hinge loss on all points, libsvm ("dual").
    """
    with one_thread_if_small(len(risk.y)):
        if solver == "dual":
            return _train_dual(basis, risk)
        method = interior_point if isinstance(risk.loss, PiecewiseLinear) else newton
        return certify(basis, risk, *method(basis.reduced(), risk))


def _train_dual(basis: Basis, risk: Risk) -> Trained:
    """Run libsvm with increasing accuracy until the certified gap is small."""
    for tol in LIBSVM_TOLERANCES:
        try:
            solution = svm_dual(basis.kernel, basis.X, risk, tol=tol)
        except ValueError:  # an overflow in libsvm
            return train(basis, risk)
        trained = certify(basis, risk, *solution)
        if trained.result.relative_gap <= LIBSVM_GAP:
            return trained
    return train(basis, risk) if len(risk.y) <= MOST_RESCUED_POINTS else trained


def certify(basis: Basis, risk: Risk, c: Floats, iterations: int, status: Status) -> Trained:
    """The function of c with its best bias, its P, and the best D available [math, Eq. 2.5].

    The dual point is c itself for a piecewise linear loss; for a smooth loss it follows from the
    slopes, which always lie in the domain of the conjugate.
    """
    f = basis.function(c)
    values = f(basis.X)
    b = risk.best_bias(values)
    square = float(basis.square(f, c, values))
    P, size = risk.primal(values, b, square), risk.size(values, b, square)
    point = c
    if not isinstance(risk.loss, PiecewiseLinear):
        point = risk.coefficients(values, b)
        g = basis.function(point)
        square = float(basis.square(g, point))
    D = risk.dual(point, square, b)
    # at the optimum rounding may leave D slightly above P
    result = SolverResult(status, iterations, P, max(P - D, 0.0), size)
    return Trained(c, b, result.judged(promised_gap(risk.loss)))


def promised_gap(loss: Loss) -> float:
    """The relative gap that a fit with this loss is expected to certify."""
    return KINKED_GAP if isinstance(loss, PiecewiseLinear) else SMOOTH_GAP
