"""The data of the engine, all numbers: codes, the rule, the constants and the state of a stream."""

from __future__ import annotations

from typing import NamedTuple

from hplus._checks import Floats, Ints

# codes of budgets: dictionaries first, then functions with a fixed number of weights
UNLIMITED, OLDEST, SMALLEST, FORGETRON, PROJECTED, SUBSPACE, FOURIER, REGENERATED, GRID = range(9)
# places in the array `counts`
EVENTS, ATOMS, CHANGES, REFRESHED, CAPPED, EXCESS, MISTAKES = range(7)
N_COUNTS = 7
# places in the array `numbers`
SEEN, EXPOSURE, SPENT, WORST, FORGETTING, STEEPNESS = range(6)
N_NUMBERS = 6


class Rule(NamedTuple):
    """What a stream does, as numbers; the codes are in `rules` and in this module."""

    loss: int
    low: float
    high: float
    width: float
    link: int
    gradient: int
    cap: float
    schedule: int
    step: float
    decay: float
    averaging: float
    budget: int
    tolerance: float
    relative: int
    size: int
    jitter: float
    half_life: float
    fading: int
    background: int
    refresh: int
    damping: float
    seed: int


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
