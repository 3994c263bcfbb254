"""Keys of rows: hashes of what they hold, so that draws do not depend on their order; compiled."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus.grids.hats import compiled, read_only
from hplus.rates.lattice import Codes

FIRST_FACTOR, SECOND_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd factors that mix the bits of 64-bit numbers."""


def row_keys(rows: Floats) -> Codes:
    """A hash of each row of numbers (n, d); -0.0 is 0.0."""
    return _mixed_rows(read_only(np.asarray(rows, dtype=np.float64) + 0.0).view(np.uint64))


def both_keys(keys: Codes, others: Codes) -> Codes:
    """A key of each pair of keys, (n,)."""
    return (keys * FIRST_FACTOR) ^ others


def key_sum(keys: Codes) -> int:
    """The sum of keys, modulo 2⁶⁴, which does not depend on their order."""
    return int(keys.sum(dtype=np.uint64))


@compiled
def _mixed_rows(bits: Codes) -> Codes:
    out = np.zeros(len(bits), dtype=np.uint64)
    for i in range(len(bits)):
        mixed = np.uint64(0)
        for j in range(bits.shape[1]):
            mixed = (mixed ^ bits[i, j]) * FIRST_FACTOR
            mixed = (mixed ^ (mixed >> np.uint64(31))) * SECOND_FACTOR
            mixed ^= mixed >> np.uint64(29)
        out[i] = mixed
    return out
