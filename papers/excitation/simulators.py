"""Self-exciting processes with known parameters: on a line, and ETAS in place and time.

Events are rows whose last column is time, sorted by it; a parent is a row number, -1 for the
background.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator
Children = Callable[[Floats], tuple[Floats, Ints]]
"""The direct offspring of events, and the parent's place among them."""

BURN_IN = 300.0
"""Time before 0 from which simulated events are history."""

DIRECTIONS = 256
"""Directions in which the distance to the border is measured."""


class LineTrigger(NamedTuple):
    """A trigger with a mean lag of 1: its density, distribution function, and draws from it."""

    density: Callable[[Floats], Floats]
    distribution: Callable[[Floats], Floats]
    draw: Callable[[Rng, int], Floats]


LINE_TRIGGERS = {
    "exponential": LineTrigger(
        lambda t: np.exp(-t), lambda t: -np.expm1(-t), lambda rng, n: rng.exponential(1.0, n)
    ),
    "power law": LineTrigger(
        lambda t: 3.0 * (1.0 + 2.0 * t) ** -2.5,
        lambda t: 1.0 - (1.0 + 2.0 * t) ** -1.5,
        lambda rng, n: 0.5 * (rng.random(n) ** (-1.0 / 1.5) - 1.0),
    ),
    "delayed": LineTrigger(
        lambda t: 128.0 / 3.0 * t**3 * np.exp(-4.0 * t),
        lambda t: 1.0 - np.exp(-4.0 * t) * (1.0 + 4.0 * t + 8.0 * t**2 + 32.0 * t**3 / 3.0),
        lambda rng, n: rng.gamma(4.0, 0.25, n),
    ),
}


def grown(first: Floats, children: Children) -> tuple[Floats, Ints]:
    """The first events and all their descendants, with the parent of each event."""
    rows, parents, generation, before = [first], [np.full(len(first), -1)], first, 0
    while len(generation):
        young, own = children(generation)
        rows.append(young)
        parents.append(before + own)
        before, generation = before + len(generation), young
    events, parent = np.concatenate(rows), np.concatenate(parents)
    order = np.argsort(events[:, -1], kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return events[order], np.where(parent < 0, -1, rank[parent])[order]


def simulate_line(
    trigger: LineTrigger, branching: float, until: float, rng: Rng
) -> tuple[Floats, Ints]:
    """Events (n, 1) with a mean gap of 1 and their parents; those before 0 are history."""
    n = rng.poisson((1.0 - branching) * (until + BURN_IN))

    def children(rows: Floats) -> tuple[Floats, Ints]:
        parent = np.repeat(np.arange(len(rows)), rng.poisson(branching, len(rows)))
        young = rows[parent] + trigger.draw(rng, len(parent))[:, None]
        seen = young[:, 0] < until
        return young[seen], parent[seen]

    return grown(rng.uniform(-BURN_IN, until, (n, 1)), children)


@dataclass(frozen=True)
class Etas:
    """λ(x, t) = μ/|W| + Σ_{t_j < t} κ(m_j) h(t - t_j) s_j(|x - x_j|) in a square W.

    κ = A e^(α Δm), h = (p - 1)/c (1 + t/c)^(-p), s_j = (q - 1)/(π d_j) (1 + r²/d_j)^(-q) with
    d_j = D e^(γ Δm), Δm = m - m0, and A such that an average event triggers `branching` others.
    Magnitudes are exponential with rate β, cut at `largest`. Days and km. Rows have the columns
    path, magnitude, x, y, t.
    """

    mu: float = 1.0
    branching: float = 0.6
    alpha: float = 1.5
    c: float = 0.01
    p: float = 1.25
    D: float = 4.0
    gamma: float = 0.8
    q: float = 1.8
    beta: float = 2.3
    m0: float = 4.0
    largest: float = 8.0
    side: float = 200.0

    def offspring(self, marks: Floats) -> Floats:
        """κ(m): how many events each one triggers directly, (n,)."""
        top, less = self.largest - self.m0, self.beta - self.alpha
        mean = self.beta / less * np.expm1(-less * top) / np.expm1(-self.beta * top)
        return self.branching / mean * np.exp(self.alpha * (marks - self.m0))

    def by_lag(self, lags: Floats) -> Floats:
        """h at each lag."""
        return (self.p - 1.0) / self.c * (1.0 + lags / self.c) ** -self.p

    def later(self, lags: Floats) -> Floats:
        """∫h beyond each lag."""
        return (1.0 + lags / self.c) ** (1.0 - self.p)

    def by_distance(self, r: Floats, mark: Any) -> Floats:
        """s at each distance from an event of this magnitude."""
        d = self.D * np.exp(self.gamma * (mark - self.m0))
        return (self.q - 1.0) / (np.pi * d) * (1.0 + r**2 / d) ** -self.q

    def marks(self, n: int, rng: Rng) -> Floats:
        """n independent magnitudes."""
        cut = np.expm1(-self.beta * (self.largest - self.m0))
        return self.m0 - np.log1p(cut * rng.random(n)) / self.beta

    def simulate(
        self, start: float, end: float, rng: Rng, history: Floats | None = None, paths: int = 1
    ) -> tuple[Floats, Ints]:
        """Events from start to end: the background, offspring of the history, all descendants."""
        n = rng.poisson(paths * self.mu * (end - start))
        x, y = rng.uniform(0.0, self.side, (2, n))
        t = rng.uniform(start, end, n)
        first = np.column_stack([rng.integers(paths, size=n), self.marks(n, rng), x, y, t])
        if history is not None:
            young, _ = self._children(history, end, rng, start, paths)
            young[:, 0] = rng.integers(paths, size=len(young))
            first = np.concatenate([first, young])
        return grown(first, lambda rows: self._children(rows, end, rng))

    def _children(
        self, rows: Floats, end: float, rng: Rng, start: float = -np.inf, copies: int = 1
    ) -> tuple[Floats, Ints]:
        """Direct offspring of `copies` of each event, from start to end and inside the square."""
        path, m, x, y, t = rows.T
        early = self.later(np.maximum(start - t, 0.0))
        room = early - self.later(end - t)
        parent = np.repeat(np.arange(len(t)), rng.poisson(copies * self.offspring(m) * room))
        n = len(parent)
        u = early[parent] - room[parent] * rng.random(n)
        lag = self.c * (u ** (1.0 / (1.0 - self.p)) - 1.0)
        d = self.D * np.exp(self.gamma * (m[parent] - self.m0))
        r = np.sqrt(d * (rng.random(n) ** (1.0 / (1.0 - self.q)) - 1.0))
        angle = rng.uniform(0.0, 2.0 * np.pi, n)
        at = np.column_stack([x[parent] + r * np.cos(angle), y[parent] + r * np.sin(angle)])
        young = np.column_stack([path[parent], self.marks(n, rng), at, t[parent] + lag])
        inside = np.all((at >= 0.0) & (at <= self.side), axis=1)
        return young[inside], parent[inside]

    def log_likelihood(self, rows: Floats, end: float) -> float:
        """Σ log λ - ∫λ over the square and (0, end), per event; rows before 0 are history."""
        _, m, x, y, t = rows.T
        first, size = int(np.searchsorted(t, 0.0)), self.offspring(m)
        logs = np.zeros(len(t))
        for i in range(first, len(t)):
            far = np.hypot(x[i] - x[:i], y[i] - y[:i])
            each = size[:i] * self.by_lag(t[i] - t[:i]) * self.by_distance(far, m[:i])
            logs[i] = np.log(self.mu / self.side**2 + each.sum())
        room = self.later(np.maximum(-t, 0.0)) - self.later(end - t)
        total = self.mu * end + float(size * room @ self._inside(m, x, y))
        return (float(logs.sum()) - total) / (len(t) - first)

    def _inside(self, m: Floats, x: Floats, y: Floats) -> Floats:
        """∫ of s_j over the square: the mean over directions of 1 - (1 + R²/d)^(1 - q), (n,)."""
        angles = 2.0 * np.pi * (np.arange(DIRECTIONS) + 0.5) / DIRECTIONS
        along_x, along_y = np.cos(angles), np.sin(angles)
        to_x = np.where(along_x > 0.0, self.side - x[:, None], x[:, None]) / np.abs(along_x)
        to_y = np.where(along_y > 0.0, self.side - y[:, None], y[:, None]) / np.abs(along_y)
        d = self.D * np.exp(self.gamma * (m - self.m0))[:, None]
        beyond = (1.0 + np.minimum(to_x, to_y) ** 2 / d) ** (1.0 - self.q)
        return 1.0 - beyond.mean(axis=1)
