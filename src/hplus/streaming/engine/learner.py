"""The arrays of one stream, room for them, and what the compiled loop leaves to Python."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.grids import TensorGrid
from hplus.kernels import Kernel
from hplus.kernels.compiled import DOT, TABLE
from hplus.kernels.programs import instructions, program
from hplus.streaming.engine.atoms import (
    AVERAGE,
    CORRECTION,
    CURRENT,
    DIAGONAL,
    DRIFT,
    INVERSE,
    SCATTER,
    TOTAL,
)
from hplus.streaming.engine.layout import (
    ATOMS,
    CAPPED,
    CHANGES,
    EVENTS,
    EXCESS,
    FOURIER,
    PROJECTED,
    REFRESHED,
    REGENERATED,
    SPENT,
    UNLIMITED,
    WORST,
    Rule,
    StreamConstants,
    StreamState,
)
from hplus.streaming.engine.loop import REBUILD, age, run
from hplus.streaming.engine.nodes import Inside, nodes_within
from hplus.streaming.engine.states import SAVED, empty, enlarged, fits
from hplus.windows import Window

FIRST_ROOM = 60
"""Atoms that there is room for at the start."""

JITTER = 1e-6
"""The nugget of a dictionary as a share of k(x, x) [math, Eq. 5.4]."""

MOST_NODES = 20_000
"""Of a grid: an event changes them all."""

PATIENCE = 3.0
"""Seconds after which the first call of a process says that it is compiling."""


class StreamStatus(NamedTuple):
    """What a stream has been through."""

    events: int
    """Events learned from."""
    atoms: int
    """Atoms, or weights where their number is fixed."""
    capped: int
    """Events at which a step or an exponent was held down."""
    excess: int
    """Atoms left out beyond the tolerance because of the budget's size."""
    compression: float
    """The sum of the distances, in the kernel's norm, that compressions have moved the function."""
    largest_compression: float
    """The largest of them."""


class Learner:
    """One stream: its rule, the kernel, the constants constants it and the state that changes."""

    def __init__(
        self, rule: Rule, kernel: Kernel, constants: StreamConstants, state: StreamState
    ) -> None:
        self.rule, self.kernel, self.constants, self.state = rule, kernel, constants, state
        self._constant = np.array([_constant_diagonal(kernel, state.centers.shape[1])])

    def learn(self, X: Floats, y: Floats, gaps: Floats) -> Floats:
        """Learn from the events one after the other; z at each before it was learned from."""
        if not len(X) == len(y) == len(gaps):  # compiled code would read beyond their ends
            raise ValueError(f"got {len(X)} events, {len(y)} targets and {len(gaps)} gaps.")
        values, sizes, at = np.empty(len(X)), self._sizes(X), 0
        engine = run if Compiler.ready else _first_run
        while True:
            at = engine(self.rule, self.constants, self.state, X, y, sizes, gaps, values, at)
            if at == len(X):
                return values
            self._make_ready()

    def _sizes(self, X: Floats) -> Floats:
        """k(X[i], X[i])."""
        if self._constant[0] <= 0.0:
            return self.kernel.diag(X)
        return self._constant if len(X) == 1 else np.full(len(X), self._constant[0])

    def values(self, X: Floats, average: bool = False) -> Floats:
        """z(X[i]), of the current function or of the average."""
        if self.rule.budget in (FOURIER, REGENERATED):
            return self._features(X, average)
        centers, weights = self.function(average)
        return self.kernel.dot(X, centers, weights) if len(weights) else np.zeros(len(X))

    def function(self, average: bool = False) -> tuple[Floats, Floats]:
        """Centers and weights of the function; the background's are those of its nodes."""
        n, constants = self.size, self.constants
        w, centers = self.state.rows[AVERAGE if average else CURRENT, :n], self.state.centers[:n]
        if not self.rule.background:
            return centers.copy(), w.copy()
        nodes, shares = constants.nodes, constants.shares
        return np.vstack([nodes, centers[1:]]), np.concatenate([w[0] * shares, w[1:]])

    @property
    def size(self) -> int:
        return int(self.state.counts[ATOMS])

    @property
    def dictionary(self) -> Floats:
        """The atoms that are points, shape (n, d)."""
        return self.state.centers[self.rule.background : self.size].copy()

    @property
    def status(self) -> StreamStatus:
        numbers, counts = self.state.numbers, [int(c) for c in self.state.counts]
        atoms = counts[ATOMS] - self.rule.background
        spent, worst = float(numbers[SPENT]), float(numbers[WORST])
        return StreamStatus(counts[EVENTS], atoms, counts[CAPPED], counts[EXCESS], spent, worst)

    def pass_by(self, gap: float) -> None:
        """Time in which no event came."""
        kept = age.py_func(self.rule.half_life, self.state.numbers, gap)
        if self.rule.fading:
            self.state.rows[[CURRENT, TOTAL]] *= kept

    def _features(self, X: Floats, average: bool) -> Floats:
        """z(X[i]) where features stand for the kernel: a rehearsal that learns nothing."""
        state = self.state._replace(
            rows=self.state.rows.copy(),
            numbers=self.state.numbers.copy(),
            counts=self.state.counts.copy(),
        )
        if average:
            state.rows[CURRENT] = state.rows[AVERAGE]
        still = self.rule._replace(step=0.0, schedule=0, decay=0.0, averaging=-1.0)
        rehearsal = Learner(still, self.kernel, self.constants, state)
        X = np.require(X, requirements=("C", "W"))
        return rehearsal.learn(X, np.ones(len(X)), np.zeros(len(X)))

    def _make_ready(self) -> None:
        state = self.state
        if state.counts[ATOMS] == len(state.centers):
            room = 2 * len(state.centers)
            if self.rule.budget != UNLIMITED:
                room = min(room, max(self.rule.background + self.rule.size, len(state.centers)) + 2)
            self.state = enlarged(state, room)
        if state.counts[CHANGES] >= REBUILD:
            self.rebuild()
        if self.rule.damping > 0.0:
            self._precondition()

    def rebuild(self) -> None:
        """P afresh from the atoms, so that rounding does not pile up."""
        n, constants = self.size, self.constants
        points = self.state.centers[self.rule.background : n]
        K = gram(self.kernel, points, constants.nodes, constants.shares)
        with one_thread_if_small(n):
            P = cho_solve(cho_factor(K), np.eye(n))
        self.state.matrices[INVERSE, :n, :n] = 0.5 * (P + P.T)
        self.state.rows[DIAGONAL, :n] = np.diag(P)
        self.state.counts[CHANGES] = 0

    def _precondition(self) -> None:
        """C = P (G + δP)⁻¹, what (mean of g ⊗ g + δ)⁻¹ is to the weights [math, Eq. 5.5]."""
        n, matrices = self.size, self.state.matrices
        P, G = matrices[INVERSE, :n, :n], matrices[SCATTER, :n, :n]
        with one_thread_if_small(n):
            C = solve(G + self.rule.damping * P, P, assume_a="sym").T
        matrices[CORRECTION, :n, :n] = C if np.isfinite(C).all() else np.eye(n)
        self.state.counts[REFRESHED] = self.state.counts[EVENTS]


def gram(kernel: Kernel, points: Floats, nodes: Floats, shares: Floats) -> Floats:
    """Inner products of the atoms at `points`, with the nugget; the background first, if any."""
    first = int(len(nodes) > 0)
    n = first + len(points)
    K = np.empty((n, n))
    K[first:, first:] = kernel(points) if len(points) else 0.0
    if first:
        K[0, 1:] = K[1:, 0] = kernel.dot(points, nodes, shares) if len(points) else 0.0
        own = shares @ kernel.dot(nodes, nodes, shares)
        # a background that vanishes, as that of Linear() constants 0, is an atom that does nothing
        K[0, 0] = own if own > JITTER**2 * (shares @ kernel.diag(nodes)) else 1.0
    K[np.diag_indices(n)] *= 1.0 + JITTER
    return K


def start(rule: Rule, kernel: Kernel, inside: Inside, grid: TensorGrid | None = None) -> Learner:
    """A dictionary with no atom but the background's, if there is one: the mean over nodes.

    On a grid events are counted.
    """
    nodes, shares, _ = inside
    dimension = nodes.shape[1]
    steps = program(kernel, dimension)
    layout = np.zeros((3, dimension)) if grid is None else _layout(grid)
    constants = StreamConstants(steps.ops, steps.params, nodes, shares, layout)
    matrices = 0 if rule.budget < PROJECTED else 3 if rule.damping > 0.0 else 1
    counted = 0 if grid is None else grid.size
    state = empty(FIRST_ROOM, dimension, matrices, len(nodes), steps.depth, counted)
    learner = Learner(rule, kernel, constants, state)
    if rule.background:
        state.at_nodes[0] = kernel.dot(nodes, nodes, shares)
        state.matrices[CORRECTION:, 0, 0] = 1.0
        state.counts[ATOMS] = 1
        learner.rebuild()
    return learner


def start_fixed(rule: Rule, kernel: Kernel, params: Floats, centers: Floats, size: int) -> Learner:
    """A function with `size` weights: on features with frequencies `centers`, or regenerated."""
    constants = StreamConstants(
        np.zeros((0, 3), dtype=np.int64),
        params,
        np.zeros((0, centers.shape[1])),
        np.zeros(0),
        np.zeros((3, centers.shape[1])),
    )
    state = empty(size, centers.shape[1], 0, 0, 1)._replace(centers=centers)
    state.counts[ATOMS] = size
    return Learner(rule, kernel, constants, state)


def start_grid(rule: Rule, kernel: Kernel, window: Window, grid: TensorGrid) -> Learner:
    """z at the nodes of a grid."""
    d, size = grid.dimension, grid.size
    if size > MOST_NODES:
        raise ValueError(f"grid must have at most {MOST_NODES} nodes in all, got {size}.")
    nodes, steps, inside = grid.nodes(), program(kernel, d), nodes_within(grid, window)
    constants = StreamConstants(
        steps.ops, steps.params, np.zeros((0, d)), np.zeros(0), _layout(grid)
    )
    state = empty(size, d, 0, 0, steps.depth)._replace(centers=nodes)
    state.counts[ATOMS] = size
    state.rows[DRIFT, :size] = kernel.dot(nodes, inside.nodes, inside.shares)
    return Learner(rule, kernel, constants, state)


def _layout(grid: TensorGrid) -> Floats:
    """A grid as the engine knows it: corner, spacing and number of nodes on each axis."""
    return np.array([grid.low, grid.spacing, grid.shape], dtype=np.float64)


def restore(learner: Learner, kept: Mapping[str, Any]) -> Learner:
    """The learner with a state that was saved, refused if its arrays do not fit together."""
    fresh, arrays = learner.state, {}
    for name in SAVED:
        like = getattr(fresh, name)
        arrays[name] = np.array(kept[name], dtype=like.dtype, order="C")
        if arrays[name].ndim != like.ndim:
            raise ValueError(f"state_ must hold {name} with {like.ndim} axes.")
    state = fresh._replace(**arrays)
    if not fits(state, fresh, fixed=learner.rule.budget >= FOURIER):
        raise ValueError("state_ must hold the arrays of one stream: they do not fit together.")
    stack = np.zeros((len(fresh.stack), state.rows.shape[1]))
    return Learner(learner.rule, learner.kernel, learner.constants, state._replace(stack=stack))


def _constant_diagonal(kernel: Kernel, dimension: int) -> float:
    """k(x, x) if it is the same everywhere, else 0."""
    pushes = {step.code for step in instructions(kernel, dimension)}
    varies = pushes & {DOT, TABLE}
    return 0.0 if varies else float(kernel.diag(np.zeros((1, dimension)))[0])


class Compiler:
    """Whether the engine has its machine code in this process."""

    ready = False


def _first_run(*arguments: Any) -> int:
    """`run`; if it takes long it says that it is compiling."""
    message = "hplus is compiling its streaming engine: about 15 seconds, once."
    timer = threading.Timer(PATIENCE, print, [message], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        rule, constants, state, X, *rest = arguments
        run(rule, constants, state, X[:0], *rest[:-1], 0)
    finally:
        timer.cancel()
        Compiler.ready = True
    return int(run(*arguments))
