"""The arrays of a stream: allocated, enlarged, and validated when loaded."""

from __future__ import annotations

import numpy as np

from hplus._checks import check_memory
from hplus.streaming.engine.atoms import ROWS
from hplus.streaming.engine.layout import ATOMS, N_COUNTS, N_NUMBERS, StreamState

SAVED_ARRAYS = ("centers", "rows", "matrices", "at_nodes", "numbers", "counts")
"""The arrays of a state that are saved: all but scratch."""


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
