"""Features of functions with a fixed number of weights: Fourier features and grids; compiled."""

from __future__ import annotations

import math

import numpy as np

from hplus.kernels.compiled import inner


@inner
def fourier_row(frequencies, x, amplitude, out):
    """√(amplitude/D)·(cos ω·x, …, sin ω·x, …) for the D rows ω of `frequencies`."""
    D = len(frequencies)
    scale = math.sqrt(amplitude / D)
    for i in range(D):
        angle = 0.0
        for c in range(len(x)):
            angle += frequencies[i, c] * x[c]
        out[i] = scale * math.cos(angle)
        out[D + i] = scale * math.sin(angle)


@inner
def regenerated_row(params, seed, n, x, out):
    """Like `fourier_row`, for n features whose frequencies are regenerated every time.

    `params` are the amplitude of a Gaussian kernel and 1/scale for each column; cosine and sine of
    a frequency are adjacent, so that a block of features is a range.
    """
    scale = math.sqrt(2.0 * params[0] / n)
    for i in range(n // 2):
        angle = 0.0
        for c in range(len(x)):
            if x[c] != 0.0:
                angle += _normal(seed, i * len(x) + c) * params[1 + c] * x[c]
        out[2 * i] = scale * math.cos(angle)
        out[2 * i + 1] = scale * math.sin(angle)


@inner
def _normal(seed, i):
    """The i-th of a sequence of normal numbers, by the Box-Muller transform."""
    u, v = _uniform(seed, 2 * i), _uniform(seed, 2 * i + 1)
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


@inner
def _uniform(seed, i):
    """The i-th of a sequence in (0, 1): Steele, Lea and Flood's SplitMix64 [steele2014]."""
    word = np.uint64(seed) + np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word = word ^ (word >> np.uint64(31))
    return (np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53


@inner
def interpolate(grid, x, values):
    """Multilinear interpolation of `values` on the nodes of a grid; constant beyond its edges.

    The rows of `grid` are corner, spacing and number of nodes on each axis.
    """
    total = 0.0
    for vertex in range(2 ** len(x)):
        index, weight = _corner(grid, x, vertex)
        total += weight * values[index]
    return total


@inner
def spread(grid, x, counts):
    """Count an event at x on the nodes around it, with interpolation weights."""
    for vertex in range(2 ** len(x)):
        index, weight = _corner(grid, x, vertex)
        counts[index] += weight


@inner
def _corner(grid, x, vertex):
    """A corner of the cell of x: its node and its interpolation weight."""
    weight, index = 1.0, 0
    for c in range(len(x)):
        nodes = int(grid[2, c])
        u = min(max((x[c] - grid[0, c]) / grid[1, c], 0.0), nodes - 1.0)
        cell = min(int(u), nodes - 2)
        upper = (vertex >> c) & 1
        weight *= u - cell if upper else 1.0 - (u - cell)
        index = index * nodes + cell + upper
    return index, weight
