"""Weights of events in whole units, so that their sums are exact."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hplus._checks import Ints, frozen_array, shown

Whole = TypeVar("Whole", np.int64, np.uint64)

WEIGHT_BITS = 20
"""Weights are whole multiples of 2⁻²⁰, so that their sums are exact."""

MAX_UNITS = 2**63
"""The sum of the weights in this unit is below what 64 bits hold."""

LIMB_BITS, LIMBS = 16, 4
"""A weight in parts of 16 bits, whose products can be added up without overflow."""


def in_units(weights: ArrayLike, n: int) -> Ints:
    """Weights of n events in units of 2⁻²⁰, rounded; an error unless they can be kept so."""
    w = frozen_array("sample_weight", weights)
    if w.shape != (n,) or np.any(w < 0.0):
        got = f"{w.min():.6g}" if w.shape == (n,) else f"shape {w.shape}"
        raise ValueError(
            f"sample_weight must hold one number of at least 0 for each of the {n} events, got "
            f"{got}."
        )
    q = np.rint(w * 2.0**WEIGHT_BITS)
    lost = w[(q == 0.0) & (w > 0.0)]
    if len(lost):
        raise ValueError(
            f"every sample_weight must be 0 or above 2^-21 = {2.0**-21:.2g}, got {lost[0]:.6g}: "
            "rescale the weights."
        )
    check_units(q.sum())
    q = q.astype(np.int64)
    check_units(exact_sum(q))
    return q


def check_units(units: float) -> None:
    """An error unless Σw, in units of 2⁻²⁰, fits into 64 bits."""
    if not units < MAX_UNITS:
        raise ValueError(
            f"sample_weight must add up to less than 2^43 = {2.0**43:.3g}, got "
            f"{units / 2**WEIGHT_BITS:.6g}: rescale the weights."
        )


def exact_sum(q: Ints) -> int:
    """Σ q, even if it exceeds 64 bits."""
    return (int((q >> 32).sum()) << 32) + int((q & (2**32 - 1)).sum())


def sum_of_squares(q: Ints) -> int:
    """Σ q², exact."""
    limbs = np.stack([(q >> (LIMB_BITS * k)) & (2**LIMB_BITS - 1) for k in range(LIMBS)])
    products = (limbs @ limbs.T).tolist()
    return sum(products[i][j] << LIMB_BITS * (i + j) for i in range(LIMBS) for j in range(LIMBS))


def frozen_whole(given: ArrayLike, dtype: type[Whole]) -> NDArray[Whole]:
    """A read-only array of whole numbers, copied unless it is one already."""
    array = np.asarray(given)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"codes, counts and weights must be whole numbers, got {shown(array)}.")
    if array.flags.writeable or array.dtype != dtype or not array.flags.c_contiguous:
        array = np.array(array, dtype=dtype)
        array.flags.writeable = False
    return array
