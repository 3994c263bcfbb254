"""The data of the engine, all numbers: codes, the rule, the constants and the state of a stream."""

from __future__ import annotations

import math
from typing import NamedTuple

from hplus._checks import Floats, Ints
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
