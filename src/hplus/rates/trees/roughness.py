"""How rough the rate was along a path of a tree, and what that says about the next cells; compiled.

Where the counts of cells departed from their shares of the base measure, those of the cells inside
them will too: coasts are rough at all sizes, plains at none. The roughness of a cell is a mean of
|log(count / expected count)| over the cells that it lies in, the smallest with most weight. The
concentration of its children is that of their level, times powers of its roughness and its count.
"""

from __future__ import annotations

import math

import numpy as np

from hplus.rates.trees.polygon_edges import compiled, inner

MEMORY = 0.5
"""The weight of all cells above a cell in its roughness, its own being the rest."""

PRIOR_EVENTS = 0.5
"""Events shared like the base measure, without which empty cells would be infinitely rough."""

MIN_ROUGHNESS = 0.2
"""Added to the roughness: paths that are smoother than this are all the same."""


@inner
def roughness_of(above, n, before, f):
    """The roughness of a cell with n events whose parent has `before`, f its expected share."""
    ratio = (n + PRIOR_EVENTS * f) / ((before + PRIOR_EVENTS) * f)
    return MEMORY * above + (1.0 - MEMORY) * abs(math.log(ratio))


@inner
def factor_of(powers, roughness, n):
    """What multiplies the concentration of a level for the children of a cell with n events."""
    if powers[0] == 0.0 and powers[1] == 0.0:
        return 1.0
    rough = math.log(MIN_ROUGHNESS + roughness)
    return math.exp(powers[1] * math.log(max(n, 1.0)) - powers[0] * rough)


@compiled
def factors_of(powers, roughness, counts):
    """The factors of many cells, from their roughness and counts, (n,) each."""
    out = np.empty(len(counts))
    for i in range(len(counts)):
        out[i] = factor_of(powers, roughness[i], counts[i])
    return out


@inner
def inner_concentration(forest, level, roughness, n):
    """The concentration of the children of a cell of some level with n events."""
    if level + 1 == len(forest.concentrations):
        return np.inf
    return forest.concentrations[level + 1] * factor_of(forest.powers, roughness, n)


@inner
def enter_cell(forest, k, walk, level):
    """Write down the roughness of the open cell of a level and the concentration inside it."""
    counts, runs, rough = forest.counts[k], walk.runs, walk.rough[level - 1]
    n = counts[runs[level, 1]] - counts[runs[level, 0]]
    if walk.mass[level] > 0.0:
        before = counts[runs[level - 1, 1]] - counts[runs[level - 1, 0]]
        rough = roughness_of(rough, n, before, walk.mass[level] / walk.mass[level - 1])
    walk.rough[level], walk.inner[level] = rough, inner_concentration(forest, level, rough, n)


@inner
def empty_second_moment(concentrations, powers, level, roughness, dimension):
    """E[(rate/mean)²] in a smallest cell, of a uniform base, inside an empty cell of a level."""
    f, second = 0.5**dimension, 1.0
    for below in range(level + 1, len(concentrations)):
        A = concentrations[below] * factor_of(powers, roughness, 0.0)
        if A < np.inf:
            second *= (A * f + 1.0) / (f * (A + 1.0))
        roughness *= MEMORY
    return second
