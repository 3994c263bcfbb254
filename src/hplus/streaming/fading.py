"""Weights of events that halve with their age, in fixed point: the same in any order of arrival.

An event at time t has the weight 2^(t/h - 8e) in its epoch e = ⌊t/8h⌋ of eight half-lives h, from 1
to 256. Events of an epoch are added up exactly; an older epoch counts 2⁻⁸ of the next one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.statistic import Statistic, merged
from hplus.rates.weight_units import WEIGHT_BITS

EPOCH_HALF_LIVES = 8
"""Half-lives of an epoch, by which the weights of one epoch are shifted to add them to the next."""

KEPT_EPOCHS = 4
"""Epochs that are kept: events are forgotten at an age of 24 to 32 half-lives."""


def epochs(times: Floats, half_life: float) -> Ints:
    """The epoch of each time, (n,)."""
    return np.floor(times / half_life / EPOCH_HALF_LIVES).astype(np.int64)


def weight(times: Floats, half_life: float, epoch: Ints | int) -> Floats:
    """Weights relative to the beginning of an epoch, (n,)."""
    return np.exp2(times / half_life - EPOCH_HALF_LIVES * np.asarray(epoch, dtype=float))


def weight_units(times: Floats, half_life: float, epoch: int) -> Ints:
    """Weights of events of an epoch in units of 2⁻²⁰, (n,)."""
    return np.rint(weight(times, half_life, epoch) * 2.0**WEIGHT_BITS).astype(np.int64)


def shifted(total: float, epochs_ago: int) -> float:
    """A sum of weights so many epochs later."""
    return total * 2.0 ** (-EPOCH_HALF_LIVES * epochs_ago)


def kept(epoch: int, newest: int) -> bool:
    """Do events of an epoch still count?"""
    return epoch > newest - KEPT_EPOCHS


def faded(parts: Mapping[int, Statistic], newest: int) -> Statistic:
    """Statistics of epochs as one, with weights relative to the beginning of the newest epoch."""
    return merged(_older(part, newest - epoch) for epoch, part in parts.items())


def _older(part: Statistic, epochs_ago: int) -> Statistic:
    """The same events with the weights of so many epochs later, rounded in each cell."""
    if epochs_ago == 0:
        return part
    shift = EPOCH_HALF_LIVES * epochs_ago
    weights = part.weights if part.weights.size else part.counts << WEIGHT_BITS
    weights = (weights + (1 << (shift - 1))) >> shift
    units = int(weights.sum())
    # of rounded weights the sum of squares is at least that of equal ones
    least = -(-(units**2) // max(part.events, 1))
    squares = max(part.squares >> (2 * shift), least)
    return Statistic(part.window, part.depth, part.codes, part.counts, weights, squares)
