"""One stream: its state, and the work that the compiled loop leaves to Python."""

from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.kernels import Kernel
from hplus.kernels.compiled import DOT, TABLE
from hplus.kernels.programs import instructions
from hplus.streaming.engine import atoms, layout
from hplus.streaming.engine.layout import Rule, StreamConstants, StreamState, enlarged
from hplus.streaming.engine.loop import MAX_CHANGES, age, run

SILENT_SECONDS = 3.0
"""If the first call takes longer than this, it reports that it is compiling."""


class StreamStatus(NamedTuple):
    """Counts of what has happened in a stream."""

    events: int
    """Events learned from."""
    atoms: int
    """Atoms, or weights where their number is fixed."""
    capped: int
    """Events at which a step or an exponent was limited."""
    excess: int
    """Atoms removed beyond the tolerance because of the size of the budget."""
    compression: float
    """The total distance, in the kernel's norm, by which compressions moved the function."""
    largest_compression: float
    """The largest of these distances."""


class Learner:
    """A stream with its rule, its kernel, its constants and the state that changes."""

    def __init__(
        self, rule: Rule, kernel: Kernel, constants: StreamConstants, state: StreamState
    ) -> None:
        self.rule, self.kernel, self.constants, self.state = rule, kernel, constants, state
        self._constant = np.array([_constant_diagonal(kernel, state.centers.shape[1])])

    def learn(self, X: Floats, y: Floats, gaps: Floats) -> Floats:
        """Learn from events one at a time; z at each event before learning from it."""
        if not len(X) == len(y) == len(gaps):  # compiled code would read past the end
            raise ValueError(
                "events, targets and gaps must have the same length, got "
                f"{len(X)}, {len(y)} and {len(gaps)}."
            )
        values, sizes, at = np.empty(len(X)), self._sizes(X), 0
        engine = run if Compiler.ready else _first_run
        while True:
            at = engine(self.rule, self.constants, self.state, X, y, sizes, gaps, values, at)
            if at == len(X):
                return values
            self._maintain()

    def _sizes(self, X: Floats) -> Floats:
        """k(X[i], X[i])."""
        if self._constant[0] <= 0.0:
            return self.kernel.diag(X)
        return self._constant if len(X) == 1 else np.full(len(X), self._constant[0])

    def values(self, X: Floats, average: bool = False) -> Floats:
        """z(X[i]), of the current function or of the average."""
        if self.rule.budget in (layout.FOURIER, layout.REGENERATED):
            return self._features(X, average)
        centers, weights = self.function(average)
        return self.kernel.dot(X, centers, weights) if len(weights) else np.zeros(len(X))

    def function(self, average: bool = False) -> tuple[Floats, Floats]:
        """Centers and weights of the function; a background stands for its nodes."""
        n, nodes, shares = self.size, self.constants.nodes, self.constants.shares
        w = self.state.rows[atoms.AVERAGE if average else atoms.CURRENT, :n]
        centers = self.state.centers[:n]
        if not self.rule.background:
            return centers.copy(), w.copy()
        return np.vstack([nodes, centers[1:]]), np.concatenate([w[0] * shares, w[1:]])

    @property
    def size(self) -> int:
        return int(self.state.counts[layout.ATOMS])

    @property
    def dictionary(self) -> Floats:
        """The atoms that are points, shape (n, d)."""
        return self.state.centers[self.rule.background : self.size].copy()

    @property
    def status(self) -> StreamStatus:
        numbers, counts = self.state.numbers, [int(c) for c in self.state.counts]
        return StreamStatus(
            events=counts[layout.EVENTS],
            atoms=counts[layout.ATOMS] - self.rule.background,
            capped=counts[layout.CAPPED],
            excess=counts[layout.EXCESS],
            compression=float(numbers[layout.SPENT]),
            largest_compression=float(numbers[layout.WORST]),
        )

    def advance(self, gap: float) -> None:
        """Advance time without an event."""
        kept = age.py_func(self.rule.half_life, self.state.numbers, gap)
        if self.rule.fading:
            self.state.rows[[atoms.CURRENT, atoms.TOTAL]] *= kept

    def _features(self, X: Floats, average: bool) -> Floats:
        """z(X[i]) on random features: run the loop on a copy, with steps of size 0."""
        state = self.state._replace(
            rows=self.state.rows.copy(),
            numbers=self.state.numbers.copy(),
            counts=self.state.counts.copy(),
        )
        if average:
            state.rows[atoms.CURRENT] = state.rows[atoms.AVERAGE]
        still = self.rule._replace(step=0.0, schedule=0, decay=0.0, averaging=-1.0)
        copy = Learner(still, self.kernel, self.constants, state)
        X = np.require(X, requirements=("C", "W"))
        return copy.learn(X, np.ones(len(X)), np.zeros(len(X)))

    def _maintain(self) -> None:
        """Enlarge arrays, recompute P or the preconditioner: whatever the loop has stopped for."""
        state = self.state
        if state.counts[layout.ATOMS] == len(state.centers):
            room = 2 * len(state.centers)
            if self.rule.budget != layout.UNLIMITED:
                room = min(room, max(self.rule.background + self.rule.size, len(state.centers)) + 2)
            self.state = enlarged(state, room)
        if state.counts[layout.CHANGES] >= MAX_CHANGES:
            self.rebuild()
        if self.rule.damping > 0.0:
            self._precondition()

    def rebuild(self) -> None:
        """Recompute P from the atoms, so that rounding errors do not accumulate."""
        n, constants = self.size, self.constants
        points = self.state.centers[self.rule.background : n]
        K = gram(self.kernel, points, constants.nodes, constants.shares)
        with one_thread_if_small(n):
            P = cho_solve(cho_factor(K), np.eye(n))
        self.state.matrices[atoms.INVERSE, :n, :n] = 0.5 * (P + P.T)
        self.state.rows[atoms.DIAGONAL, :n] = np.diag(P)
        self.state.counts[layout.CHANGES] = 0

    def _precondition(self) -> None:
        """C = P (G + δP)⁻¹, which is (mean of g ⊗ g + δ)⁻¹ in weights [math, Eq. 5.5]."""
        n, matrices = self.size, self.state.matrices
        P, G = matrices[atoms.INVERSE, :n, :n], matrices[atoms.SCATTER, :n, :n]
        with one_thread_if_small(n):
            C = solve(G + self.rule.damping * P, P, assume_a="sym").T
        matrices[atoms.CORRECTION, :n, :n] = C if np.isfinite(C).all() else np.eye(n)
        self.state.counts[layout.REFRESHED] = self.state.counts[layout.EVENTS]


def gram(kernel: Kernel, points: Floats, nodes: Floats, shares: Floats) -> Floats:
    """Inner products of atoms at `points`, with the nugget; the background first, if any."""
    first = int(len(nodes) > 0)
    n = first + len(points)
    K = np.empty((n, n))
    K[first:, first:] = kernel(points) if len(points) else 0.0
    if first:
        K[0, 1:] = K[1:, 0] = kernel.dot(points, nodes, shares) if len(points) else 0.0
        own = shares @ kernel.dot(nodes, nodes, shares)
        # a background that vanishes, such as that of Linear() around 0, is an atom without effect
        K[0, 0] = own if own > layout.JITTER**2 * (shares @ kernel.diag(nodes)) else 1.0
    K[np.diag_indices(n)] *= 1.0 + layout.JITTER
    return K


def _constant_diagonal(kernel: Kernel, dimension: int) -> float:
    """k(x, x) if it is constant, else 0."""
    pushes = {step.code for step in instructions(kernel, dimension)}
    varies = pushes & {DOT, TABLE}
    return 0.0 if varies else float(kernel.diag(np.zeros((1, dimension)))[0])


class Compiler:
    """Whether this process has loaded the machine code of the engine."""

    ready = False


def _first_run(*arguments: Any) -> int:
    """`run`, with a message if compilation takes long."""
    message = "hplus is compiling its streaming engine: about 15 seconds, once."
    timer = threading.Timer(SILENT_SECONDS, print, [message], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        rule, constants, state, X, *rest = arguments
        run(rule, constants, state, X[:0], *rest[:-1], 0)
    finally:
        timer.cancel()
        Compiler.ready = True
    return int(run(*arguments))
