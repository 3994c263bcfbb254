"""Keys of rows: hashes of what they hold, so that draws do not depend on their order; compiled."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus.grids.hats import compiled, read_only
from hplus.rates.lattice import Codes

FIRST_FACTOR, SECOND_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd factors that mix the bits of 64-bit numbers."""

ZERO, NEGATIVE_ZERO = np.uint64(0), np.uint64(1 << 63)
"""The bits of 0.0 and -0.0."""


def row_keys(rows: Floats, *more: Floats) -> Codes:
    """A hash of each row of numbers (n, d), followed by those of more columns (n,); -0.0 is 0.0."""
    keys = np.zeros(len(rows), dtype=np.uint64)
    for columns in (rows, *(column[:, None] for column in more)):
        _mix_in(keys, read_only(np.asarray(columns, dtype=np.float64)).view(np.uint64))
    return keys


def both_keys(keys: Codes, others: Codes) -> Codes:
    """A key of each pair of keys, (n,)."""
    return (keys * FIRST_FACTOR) ^ others


def key_sum(keys: Codes) -> int:
    """The sum of keys, modulo 2⁶⁴, which does not depend on their order."""
    return int(keys.sum(dtype=np.uint64))


@compiled
def _mix_in(keys: Codes, bits: Codes) -> None:
    """Change keys (n,) by the bits of more numbers (n, d)."""
    for i in range(len(keys)):
        mixed = keys[i]
        for j in range(bits.shape[1]):
            mixed = (mixed ^ (bits[i, j] if bits[i, j] != NEGATIVE_ZERO else ZERO)) * FIRST_FACTOR
            mixed = (mixed ^ (mixed >> np.uint64(31))) * SECOND_FACTOR
            mixed ^= mixed >> np.uint64(29)
        keys[i] = mixed
