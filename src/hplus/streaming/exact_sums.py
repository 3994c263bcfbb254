"""Sums of floating-point numbers as whole numbers: exact, so that order and parts do not matter."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats

MANTISSA_BITS = 53

SMALLEST_EXPONENT = -1126
"""All finite numbers are whole multiples of 2 to this power."""

HALF_BITS = 27
"""Mantissas are added up in two halves, which cannot overflow."""


def exact_sum(numbers: Floats) -> int:
    """Σ numbers in units of 2⁻¹¹²⁶, exact."""
    mantissas, exponents = np.frexp(np.ravel(numbers))
    whole = np.ldexp(mantissas, MANTISSA_BITS).astype(np.int64)
    total = 0
    for exponent in np.unique(exponents).tolist():
        some = whole[exponents == exponent]
        high, low = some >> HALF_BITS, some & (2**HALF_BITS - 1)
        units = (int(high.sum()) << HALF_BITS) + int(low.sum())
        total += units << (exponent - MANTISSA_BITS - SMALLEST_EXPONENT)
    return total


def as_float(total: int) -> float:
    """A sum in these units as the nearest floating-point number."""
    return total / (1 << -SMALLEST_EXPONENT)
