"""Products of straight lines between edges, exactly: sums of Beta laws."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats, Ints


def times_line(masses: Floats, left: Floats, right: Floats) -> Floats:
    """Masses (parts, m, n) of Beta laws, times lines with these ends (parts, n): (parts, m + 1, n).

    With u the share of a part that is past, and β_{k,m} the density of Beta(k + 1, m - k),
    u β_{k,m} = (k + 1)/(m + 1) β_{k+1,m+1} and (1 - u) β_{k,m} = (m - k)/(m + 1) β_{k,m+1}.
    """
    m = masses.shape[1]
    shares = np.arange(1.0, m + 1.0)[:, None] / (m + 1.0)
    falling, rising = shares[::-1] * left[:, None] * masses, shares * right[:, None] * masses
    nothing = np.zeros_like(rising[:, :1])
    return np.hstack([falling, nothing]) + np.hstack([nothing, rising])


def edge_weights(masses: Floats) -> Floats:
    """Weights of edges (parts + 1,) whose sum over f is ∫ of the laws (parts, m) times f.

    For every f that is a straight line between edges: of a law, it is f at its mean.
    """
    m = masses.shape[1]
    ends = masses @ (np.arange(1.0, m + 1.0) / (m + 1.0))
    return np.append(masses.sum(axis=1) - ends, 0.0) + np.append(0.0, ends)


def draw_times(
    edges: Floats, chosen: Ints, laws: int, rng: np.random.Generator | np.random.RandomState
) -> Floats:
    """A time from each law chosen (n,), by its number: so many laws a part, part after part."""
    part, k = np.divmod(chosen, laws)
    return edges[part] + np.diff(edges)[part] * rng.beta(k + 1.0, laws - k)
