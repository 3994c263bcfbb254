"""The data of the engine, all numbers: codes, the rule, constants and arrays of a stream."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints, check_memory
from hplus.streaming.engine.atoms import ROWS
from hplus.streaming.engine.rules import FIXED, IDENTITY, IN_Z, SQUARED

MOST_ATOMS = 4096
"""The largest size of a dictionary limited by a tolerance alone, so that memory stays bounded."""

JITTER = 1e-6
"""The nugget of a dictionary, as a share of k(x, x) [math, Eq. 5.4]."""

REFRESH_EVENTS = 32
"""Events after which the integral in a step, and a preconditioner, are recomputed."""

NO_AVERAGE = -1.0

# codes of budgets: dictionaries first, then functions with a fixed number of weights
UNLIMITED, OLDEST, SMALLEST, FORGETRON, PROJECTED, SUBSPACE, FOURIER, REGENERATED, GRID = range(9)
# places in the array `counts`
EVENTS, ATOMS, CHANGES, REFRESHED, CAPPED, EXCESS, MISTAKES = range(7)
N_COUNTS = 7
# places in the array `numbers`
SEEN, EXPOSURE, SPENT, WORST, FORGETTING, STEEPNESS = range(6)
N_NUMBERS = 6

SAVED_ARRAYS = ("centers", "rows", "matrices", "at_nodes", "numbers", "counts")
"""The arrays of a state that are saved: all but scratch."""


class Rule(NamedTuple):
    """What a stream does, as numbers; the codes are in `rules` and in this module."""

    loss: int = SQUARED
    low: float = 0.0
    high: float = 0.0
    width: float = 0.0
    link: int = IDENTITY
    gradient: int = IN_Z
    cap: float = math.inf
    schedule: int = FIXED
    step: float = 1.0
    decay: float = 0.0
    averaging: float = NO_AVERAGE
    budget: int = UNLIMITED
    tolerance: float = 0.0
    relative: int = 0
    size: int = MOST_ATOMS
    jitter: float = JITTER
    half_life: float = math.inf
    fading: int = 0
    background: int = 0
    refresh: int = REFRESH_EVENTS
    damping: float = 0.0
    seed: int = 0


class StreamConstants(NamedTuple):
    """What stays fixed: the kernel's program, the nodes of a window with their shares, and a grid.

    The rows of `grid` are corner, spacing and number of nodes on each axis.
    """

    ops: Ints
    params: Floats
    nodes: Floats
    shares: Floats
    grid: Floats


class StreamState(NamedTuple):
    """What changes: arrays with room for atoms, and for nodes or a grid if these are more.

    `centers` (room, d), `rows` (ROWS, widest), `matrices` (0 to 3, room, room), `at_nodes` (room,
    nodes) the kernel between atoms and nodes, `stack` (depth, widest) scratch of the kernel.
    """

    centers: Floats
    rows: Floats
    matrices: Floats
    at_nodes: Floats
    numbers: Floats
    counts: Ints
    stack: Floats


def fits(state: StreamState, fresh: StreamState, *, fixed: bool) -> bool:
    """Could this state have come from the fresh one? The engine trusts the shapes of its arrays."""
    if (state.numbers.shape, state.counts.shape) != (fresh.numbers.shape, fresh.counts.shape):
        return False
    if fixed:
        same = all(a.shape == b.shape for a, b in zip(state[:4], fresh[:4], strict=True))
        return same and state.counts[ATOMS] == fresh.counts[ATOMS]
    room, (matrices, nodes) = len(state.centers), (len(fresh.matrices), fresh.at_nodes.shape[1])
    return (
        0 <= state.counts[ATOMS] <= room
        and state.centers.shape == (room, fresh.centers.shape[1])
        and state.rows.shape == (ROWS, max(room, fresh.rows.shape[1]))
        and state.matrices.shape == (matrices, room, room)
        and state.at_nodes.shape == (room, nodes)
    )


def empty(
    room: int, dimension: int, matrices: int, nodes: int, depth: int, counted: int = 0
) -> StreamState:
    """Zeros, with room for atoms, for nodes, and for a grid on which events are counted."""
    width = max(room, nodes, counted)
    bytes_ = 8.0 * (matrices * room * room + room * nodes + (ROWS + depth) * width)
    check_memory(bytes_, f"a stream with room for {room} atoms", "use a smaller budget")
    return StreamState(
        np.zeros((room, dimension)),
        np.zeros((ROWS, width)),
        np.zeros((matrices, room, room)),
        np.zeros((room, nodes)),
        np.zeros(N_NUMBERS),
        np.zeros(N_COUNTS, dtype=np.int64),
        np.zeros((depth, width)),
    )


def enlarged(state: StreamState, room: int) -> StreamState:
    """The same state with room for more atoms."""
    (matrices, depth), nodes = (len(state.matrices), len(state.stack)), state.at_nodes.shape[1]
    width = state.rows.shape[1]  # room for nodes and a grid, or for fewer atoms
    larger = empty(room, state.centers.shape[1], matrices, nodes, depth, width)
    for old, new in zip(state[:4], larger[:4], strict=True):
        new[tuple(slice(n) for n in old.shape)] = old
    return larger._replace(numbers=state.numbers, counts=state.counts)
