"""The unknown functions of a convex problem, and their responses to slopes at the rows.

A block is a family of functions g(x) = g(φ(x)) with a penalty. Its `Response` to slopes a (n,) at
the rows of Φ (n, m) is the g that minimises Σ_i a_i g(φ_i) + penalty(g).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self, final

import numpy as np
from scipy.linalg import eigh

from hplus._checks import Floats
from hplus.solvers.sos.rowwise import Rows
from hplus.solvers.sos.sweeps import products_gram, row_products, weighted_gram


class Relaxation(NamedTuple):
    """Frobenius penalties of at least `softness`, and a barrier -smoothing·log det A for A ≻ 0."""

    softness: float = 0.0
    smoothing: float = 0.0


class Response(ABC):
    """The minimiser g of a block for slopes a."""

    values: Floats
    """g(φ_i), shape (n,)."""
    penalty: float
    """The penalty of g."""
    conjugate: float
    """ψ(a) = max_g -Σ a_i g(φ_i) - penalty(g)."""
    smoothed: float
    """ψ(a) of the relaxed problem; its gradient is -values."""
    weights: Floats
    """Coordinates of g: w (m,) with g = φ·w, or R (m, rank) with g = ‖Rᵀφ‖²."""

    @abstractmethod
    def curve(self, d: Floats) -> Floats:
        """∇²ψ(a) d of the smoothed ψ, shape (n,)."""

    @abstractmethod
    def curve_diagonal(self) -> Floats:
        """An approximation of the diagonal of ∇²ψ(a)."""

    @abstractmethod
    def curve_matrix(self) -> Floats:
        """∇²ψ(a), shape (n, n)."""


@dataclass(frozen=True)
class FunctionBlock(ABC):
    """A family of functions on features Φ (n, m), and its penalty."""

    features: Floats

    @property
    @abstractmethod
    def stiffness(self) -> float:
        """The frobenius penalty of a sum of squares, ∞ for other functions."""

    @cached_property
    def norms(self) -> Floats:
        """‖φ_i‖², shape (n,)."""
        return np.einsum("ij,ij->i", self.features, self.features)

    @abstractmethod
    def response(self, a: Floats, relaxation: Relaxation) -> Response:
        """The minimiser of Σ a_i g(φ_i) + penalty(g), with a relaxed penalty."""

    @abstractmethod
    def penalty_of(self, weights: Floats) -> float:
        """The penalty of the function with these weights."""

    @abstractmethod
    def conjugate(self, a: Floats) -> float:
        """ψ(a), without relaxation."""

    def part(self, rows: Rows) -> Self:
        """This block at some of the rows."""
        return replace(self, features=np.ascontiguousarray(self.features[rows]))

    def narrowed(self, width: int) -> Self:
        """This block on the first features only."""
        return replace(self, features=np.ascontiguousarray(self.features[:, :width]))


@final
@dataclass(frozen=True)
class Plain(FunctionBlock):
    """g = φ·w of any sign, with penalty (scale/2)‖w‖²."""

    scale: float

    @property
    def stiffness(self) -> float:
        return np.inf

    def response(self, a: Floats, relaxation: Relaxation) -> PlainResponse:
        return PlainResponse(self, -(self.features.T @ a) / self.scale)

    def penalty_of(self, weights: Floats) -> float:
        return 0.5 * self.scale * float(weights @ weights)

    def conjugate(self, a: Floats) -> float:
        g = self.features.T @ a
        return float(g @ g) / (2.0 * self.scale)


@final
class PlainResponse(Response):
    """w = -Φᵀa/scale."""

    def __init__(self, block: Plain, weights: Floats) -> None:
        self.block, self.weights = block, weights
        self.values = block.features @ weights
        self.penalty = self.conjugate = self.smoothed = block.penalty_of(weights)

    def curve(self, d: Floats) -> Floats:
        Phi = self.block.features
        return Phi @ (Phi.T @ d) / self.block.scale

    def curve_diagonal(self) -> Floats:
        return self.block.norms / self.block.scale

    def curve_matrix(self) -> Floats:
        return self.block.features @ self.block.features.T / self.block.scale


@final
@dataclass(frozen=True)
class Squares(FunctionBlock):
    """g = φᵀAφ with A ⪰ 0, with penalty trace·tr A + (frobenius/2)‖A‖² + <T, A> [math, Eq. 3.4].

    T is the symmetric matrix `measure` (m, m), or 0.
    """

    trace: float
    frobenius: float
    measure: Floats | None = None

    @property
    def stiffness(self) -> float:
        return self.frobenius

    def response(self, a: Floats, relaxation: Relaxation) -> SquaresResponse | InteriorResponse:
        # A = M₊/frobenius, M = -(Φᵀ diag(a) Φ + T + trace I)
        s, P = eigh(self._matrix(a), overwrite_a=True, check_finite=False, driver="evd")
        soft = max(self.frobenius, relaxation.softness)
        if relaxation.smoothing > 0.0:
            return InteriorResponse(self, s, P, soft, relaxation.smoothing)
        return SquaresResponse(self, s, P, soft)

    def penalty_of(self, weights: Floats) -> float:
        square = float(np.sum((weights.T @ weights) ** 2))
        return self.linear_penalty(weights) + 0.5 * self.frobenius * square

    def linear_penalty(self, weights: Floats) -> float:
        """trace·tr A + <T, A> for A = RRᵀ."""
        penalty = self.trace * np.sum(weights**2)
        if self.measure is not None:
            penalty += np.sum(weights * (self.measure @ weights))
        return float(penalty)

    def conjugate(self, a: Floats) -> float:
        s = eigh(self._matrix(a), eigvals_only=True, overwrite_a=True, check_finite=False)
        return float(np.sum(np.maximum(s, 0.0) ** 2)) / (2.0 * self.frobenius)

    def narrowed(self, width: int) -> Self:
        T = None if self.measure is None else self.measure[:width, :width]
        return replace(super().narrowed(width), measure=T)

    def _matrix(self, a: Floats) -> Floats:
        M = -weighted_gram(self.features, a[:, None], self.features)
        if self.measure is not None:
            M -= self.measure
        M[np.diag_indices(len(M))] -= self.trace
        return M


@final
class SquaresResponse(Response):
    """A = P diag(s₊/soft) Pᵀ from the eigenvalues s and eigenvectors P of M."""

    def __init__(self, block: Squares, s: Floats, P: Floats, soft: float) -> None:
        self.block, self.s, self.P, self.soft = block, s, P, soft
        self.rank = int(np.sum(s > 0.0))
        top = s[len(s) - self.rank :]
        self.U = block.features @ P[:, len(s) - self.rank :]
        self.values = (self.U * self.U) @ (top / soft)
        self.conjugate = self.smoothed = float(top @ top) / (2.0 * soft)
        self.weights = P[:, len(s) - self.rank :] * np.sqrt(top / soft)
        self.penalty = block.linear_penalty(self.weights) + self.conjugate

    @cached_property
    def _ratios(self) -> Floats:
        """Ω (rank, m): 1 between positive eigenvalues, 2 s_k/(s_k - s_l) with the others."""
        ratios = np.ones((self.rank, len(self.s)))
        top, rest = self.s[len(self.s) - self.rank :, None], self.s[None, : len(self.s) - self.rank]
        ratios[:, : rest.shape[1]] = 2.0 * top / (top - rest)
        return ratios

    def curve(self, d: Floats) -> Floats:
        return _swept([self], d[:, None])[0]

    def rotated(self, W: Floats) -> Floats:
        """(Ω ∘ W)/soft in the axes of `swept`, for W = U₊ᵀ diag(d) V in the same axes."""
        ratios = self._ratios / self.soft
        return ratios * W if self._few_rows else (ratios * (W @ self.P)) @ self.P.T

    @cached_property
    def swept(self) -> Floats:
        """V = ΦP, or Φ if there are so many rows that rotating every W is cheaper."""
        return self.block.features @ self.P if self._few_rows else self.block.features

    @property
    def _few_rows(self) -> bool:
        return self.U.shape[0] <= 4 * len(self.s)

    def curve_diagonal(self) -> Floats:
        # features outside the span of the positive eigenvectors count with the mean ratio
        if self.rank == 0:
            return np.zeros(len(self.U))
        squares = self.U * self.U
        inside = squares.sum(axis=1)
        rest = self._ratios[:, : len(self.s) - self.rank]
        ratio = rest.mean(axis=1) if rest.size else np.zeros(self.rank)
        outside = np.maximum(self.block.norms - inside, 0.0)
        return (inside**2 + (squares @ ratio) * outside) / self.soft

    def curve_matrix(self) -> Floats:
        return products_gram(self.U, self.block.features @ self.P, self._ratios / self.soft)


@final
class InteriorResponse(Response):
    """A = P diag(h) Pᵀ ≻ 0 with soft·h - smoothing/h = s, for a barrier [math, Eq. 3.14]."""

    def __init__(self, block: Squares, s: Floats, P: Floats, soft: float, smoothing: float) -> None:
        self.block, self.s, self.P, self.soft = block, s, P, soft
        self.root = np.sqrt(s**2 + 4.0 * soft * smoothing)
        # the two roots of soft·h² - s·h - smoothing multiply to -smoothing/soft: no cancellation
        larger = (np.abs(s) + self.root) / (2.0 * soft)
        h = np.where(s > 0.0, larger, smoothing / (soft * larger))
        h = np.maximum(h, np.finfo(float).tiny)  # for the logarithm
        self.U = block.features @ P
        self.values = (self.U * self.U) @ h
        self.weights = P * np.sqrt(h)
        self.conjugate = float(np.sum(np.maximum(s, 0.0) ** 2)) / (2.0 * soft)
        self.smoothed = float(np.sum(s * h - 0.5 * soft * h**2 + smoothing * np.log(h)))
        self.penalty = block.linear_penalty(self.weights) + 0.5 * soft * float(h @ h)

    def relaxed(self, smoothing: float) -> InteriorResponse:
        """The response to the same slopes with another barrier."""
        return InteriorResponse(self.block, self.s, self.P, self.soft, smoothing)

    @cached_property
    def _ratios(self) -> Floats:
        """(h_k - h_l)/(s_k - s_l), shape (m, m)."""
        sums, roots = self.s[:, None] + self.s, self.root[:, None] + self.root
        return (1.0 + sums / roots) / (2.0 * self.soft)

    def curve(self, d: Floats) -> Floats:
        W = self._ratios * weighted_gram(self.U, d[:, None], self.U)
        return row_products(self.U, self.U, W)[:, 0]

    def curve_diagonal(self) -> Floats:
        squares = self.U * self.U
        return row_products(squares, squares, self._ratios)[:, 0]

    def curve_matrix(self) -> Floats:
        return products_gram(self.U, self.U, self._ratios)


def curves(responses: Sequence[Response], a: Floats) -> list[Floats]:
    """∇²ψ_b a_b of every response, for a (n, B), in one pass for responses on the same features."""
    squares = {b: p for b, p in enumerate(responses) if isinstance(p, SquaresResponse)}
    if len({id(response.swept) for response in squares.values()}) != 1:
        return [response.curve(a[:, b]) for b, response in enumerate(responses)]
    together = dict(zip(squares, _swept(list(squares.values()), a[:, list(squares)]), strict=True))
    return [together[b] if b in together else p.curve(a[:, b]) for b, p in enumerate(responses)]


def _swept(responses: Sequence[SquaresResponse], a: Floats) -> Floats:
    """∇²ψ_b a_b, shape (B, n), of responses with the same V, in two passes over V."""
    # diag(U₊ (Ω ∘ (U₊ᵀ diag(a_b) U)) Uᵀ)/soft, U = ΦP [math, Eq. 3.8]
    V, U = responses[0].swept, np.hstack([response.U for response in responses])
    ranks = [response.rank for response in responses]
    W = weighted_gram(U, np.repeat(a, ranks, axis=1), V)
    parts = zip(responses, np.split(W, np.cumsum(ranks)[:-1]), strict=True)
    W = np.vstack([response.rotated(part) for response, part in parts])
    return row_products(U, V, W, np.repeat(np.eye(len(responses)), ranks, axis=0)).T
