"""Learners that have seen no event, and learners restored from saved arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hplus._checks import Floats, Ints
from hplus.grids import TensorGrid
from hplus.kernels import Kernel
from hplus.kernels.programs import program
from hplus.streaming.engine import atoms, layout
from hplus.streaming.engine.layout import Rule, StreamConstants
from hplus.streaming.engine.learner import Learner
from hplus.streaming.engine.nodes import Inside, nodes_within
from hplus.windows import Window

FIRST_ROOM = 60
"""The number of atoms for which memory is allocated at the start."""

MOST_GRID_NODES = 20_000
"""The largest grid of PMD, as every event changes all nodes."""


def start(rule: Rule, kernel: Kernel, inside: Inside, grid: TensorGrid | None = None) -> Learner:
    """A dictionary without atoms, except for a background: the mean of the kernel over nodes.

    If there is a grid, events are counted on it.
    """
    nodes, shares, _ = inside
    dimension = nodes.shape[1]
    steps = program(kernel, dimension)
    axes = np.zeros((3, dimension)) if grid is None else _axes(grid)
    constants = StreamConstants(steps.ops, steps.params, nodes, shares, axes)
    matrices = 0 if rule.budget < layout.PROJECTED else 3 if rule.damping > 0.0 else 1
    counted = 0 if grid is None else grid.size
    state = layout.empty(FIRST_ROOM, dimension, matrices, len(nodes), steps.depth, counted)
    learner = Learner(rule, kernel, constants, state)
    if rule.background:
        state.at_nodes[0] = kernel.dot(nodes, nodes, shares)
        state.matrices[atoms.CORRECTION :, 0, 0] = 1.0
        state.counts[layout.ATOMS] = 1
        learner.rebuild()
    return learner


def start_fixed(rule: Rule, kernel: Kernel, params: Floats, centers: Floats, size: int) -> Learner:
    """A function with `size` weights: on features with frequencies `centers`, or regenerated."""
    d = centers.shape[1]
    ops = np.zeros((0, 3), dtype=np.int64)
    constants = StreamConstants(ops, params, np.zeros((0, d)), np.zeros(0), np.zeros((3, d)))
    state = layout.empty(size, d, 0, 0, 1)._replace(centers=centers)
    state.counts[layout.ATOMS] = size
    return Learner(rule, kernel, constants, state)


def start_grid(rule: Rule, kernel: Kernel, window: Window, grid: TensorGrid) -> Learner:
    """A function given by its values z at the nodes of a grid."""
    d, size = grid.dimension, grid.size
    if size > MOST_GRID_NODES:
        raise ValueError(f"grid must have at most {MOST_GRID_NODES} nodes in total, got {size}.")
    nodes, steps, inside = grid.nodes(), program(kernel, d), nodes_within(grid, window)
    none = np.zeros((0, d)), np.zeros(0)
    constants = StreamConstants(steps.ops, steps.params, *none, _axes(grid))
    state = layout.empty(size, d, 0, 0, steps.depth)._replace(centers=nodes)
    state.counts[layout.ATOMS] = size
    state.rows[atoms.DRIFT, :size] = kernel.dot(nodes, inside.nodes, inside.shares)
    return Learner(rule, kernel, constants, state)


def restore(learner: Learner, saved: Mapping[str, Floats | Ints]) -> Learner:
    """The learner with saved arrays as its state; raises if they do not fit together."""
    fresh, arrays = learner.state, {}
    for name in layout.SAVED_ARRAYS:
        like = getattr(fresh, name)
        arrays[name] = np.array(saved[name], dtype=like.dtype, order="C")
        if arrays[name].ndim != like.ndim:
            raise ValueError(
                f"state_ must hold {name} with {like.ndim} axes: load the model again."
            )
    state = fresh._replace(**arrays)
    if not layout.fits(state, fresh, fixed=learner.rule.budget >= layout.FOURIER):
        raise ValueError(
            "state_ must hold the arrays of one stream, got arrays that do not fit together: load "
            "the model again."
        )
    stack = np.zeros((len(fresh.stack), state.rows.shape[1]))
    return Learner(learner.rule, learner.kernel, learner.constants, state._replace(stack=stack))


def _axes(grid: TensorGrid) -> Floats:
    """The corner, spacing and number of nodes of a grid on each axis."""
    return np.array([grid.low, grid.spacing, grid.shape], dtype=np.float64)
