"""The step of rounded coordinates: a lattice that holds the values of one axis, if there is one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hplus._checks import Bools, Floats, Ints

MIN_LATTICE_STEP = 16
"""Steps shorter than this many units are not told from the rounding of the units themselves."""

MAX_LATTICE_STEP = 2.0**63
"""No axis is as long as this many units."""

MAX_LATTICE_VALUES = 1024
"""Values of an axis that are looked at."""

CANDIDATE_GAPS = 32
"""Gaps between neighbouring values, the smallest ones, whose common divisors are tried."""

STEP_TOLERANCE = 1.0 / 16.0
"""How far from a multiple of the step a value may lie, as a share of the step."""

MIN_ON_LATTICE = 0.75
"""Share of the lattice's occupied places with values near their centre alone."""

GROWING_SHARES = (0.02, 0.1, 0.3, 0.6, 1.0)
"""Shares of the gaps, the smallest first, from which a step is improved in turn."""

MIN_NEAR_GAPS = 0.4
"""Share of gaps near multiples of a step; in continuous data a quarter is, by chance."""

LATTICE_EVIDENCE = math.log(1e5)
"""Nats by which a lattice must explain the values better than chance, for one trial."""

MULTIPLES = (2, 3, 5, 7)
"""A step that holds for some values only is divided by these, and one that holds multiplied."""


def common_step(values: Ints, counts: Ints, likely: Sequence[float] = ()) -> float:
    """The longest h such that sorted distinct values are near multiples of h plus a constant.

    Values are whole units, each up to one unit below the number that it stands for; `counts` says
    how many events have each. Steps that are `likely` are tried among others. 0 if there is no
    such step or if it could be chance: values of a continuous variable lie within t of the places
    of a lattice with chance 2t/h for each place, and the lattices that were tried are counted.
    """
    values = _frequent(values, counts)
    gaps = np.diff(values)
    gaps = np.sort(gaps[gaps >= MIN_LATTICE_STEP]).astype(float)
    if len(gaps) < 2:
        return 0.0
    x = (values[sampled_rows(len(values), MAX_LATTICE_VALUES)] - values[0]).astype(float)
    usable = (h for h in likely if MIN_LATTICE_STEP <= h < MAX_LATTICE_STEP)
    candidates = {*_divisors(gaps), *usable}
    gaps = gaps[np.unique(np.geomspace(1, len(gaps), MAX_LATTICE_VALUES).astype(np.int64)) - 1]
    tried = {_refined(gaps, x, h) for h in candidates}
    best = max((h for h in tried if _holds(x, h)), default=0.0)
    return _polished(x, _longest(x, best)) if best else 0.0


def _frequent(values: Ints, counts: Ints) -> Ints:
    """The values of more than one event, if nearly all events have such a value; otherwise all."""
    often = counts > 1
    nearly_all = counts[often].sum() >= MIN_ON_LATTICE * counts.sum()
    return values[often] if nearly_all else values


def sampled_rows(n: int, most: int) -> Ints:
    """Rows of n, in order, not more than `most`: all, or some that are the same in every run."""
    return np.arange(n) if n <= most else np.unique(np.random.default_rng(0).integers(0, n, most))


def _divisors(gaps: Floats) -> set[float]:
    """Approximate common divisors of the smallest gaps, in pairs, and the most frequent gap."""
    small = gaps[:CANDIDATE_GAPS]
    found = {_divisor(a, b) for i, a in enumerate(small) for b in small[i + 1 : i + 4] if b > a + 2}
    sizes, times = np.unique(gaps, return_counts=True)
    frequent = sizes[np.argsort(-times, kind="stable")[:4]]
    found |= {*frequent, *(g / k for g in frequent for k in MULTIPLES), small[0]}
    return {h for h in found if h >= MIN_LATTICE_STEP}


def _divisor(a: float, b: float) -> float:
    """Euclid's algorithm, until what is left may be the rounding of the units."""
    first, error, amplified = a, 1.0, 2.0
    while b > 3.0 * amplified:
        k = math.floor(a / b + 0.5)
        a, b = b, abs(a - k * b)
        error, amplified = amplified, error + k * amplified
    return first / round(first / a) if a >= MIN_LATTICE_STEP else 0.0


def _refined(gaps: Floats, x: Floats, h: float) -> float:
    """h by least squares from ever longer differences; 0 if too few are near multiples of it."""
    lag = 1
    gaps = gaps[gaps > 0.75 * h]
    while h and len(gaps):
        for share in GROWING_SHARES:
            some = gaps[: math.ceil(share * len(gaps))]
            k = np.rint(some / h)
            near = np.abs(some - k * h) <= 2.0 * STEP_TOLERANCE * h + 2.0
            total = float(np.sum(k[near] ** 2))
            h = float(np.sum(some[near] * k[near])) / total if total else h
        h *= float(np.mean(near) >= MIN_NEAR_GAPS)
        gaps = np.sort(x[lag:] - x[:-lag])
        lag *= 2
    return h


def _on_lattice(x: Floats, h: float, tolerance: float) -> tuple[Ints, Bools]:
    """The nearest place of a lattice of step h for each value, and whether it is near."""
    turns = x / h
    turns -= np.angle(np.mean(np.exp(2j * np.pi * turns))) / (2.0 * np.pi)
    places = np.rint(turns)
    return places.astype(np.int64), np.abs(turns - places) <= tolerance


def _holds(x: Floats, h: float) -> bool:
    """Whether the values lie on a lattice of step h, and not by chance."""
    if h < MIN_LATTICE_STEP:
        return False
    tolerance = STEP_TOLERANCE + 1.0 / h
    places, near = _on_lattice(x, h, tolerance)
    starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
    sizes = np.diff(np.append(starts, len(x)))
    share = float(np.mean(np.add.reduceat(near.astype(float), starts) / sizes))
    trials = math.log(len(x) * (x[-1] / h + 1.0) / tolerance)
    return share >= MIN_ON_LATTICE and (
        len(starts) * _divergence(share, 2.0 * tolerance) >= LATTICE_EVIDENCE + trials
    )


def _divergence(share: float, chance: float) -> float:
    """KL(share | chance) of two coins, in nats: what a mean of [0, 1] variables seldom exceeds."""
    rest = (1.0 - share) * math.log((1.0 - share) / (1.0 - chance)) if share < 1.0 else 0.0
    return share * math.log(share / chance) + rest if share > chance else 0.0


def _longest(x: Floats, h: float) -> float:
    """The longest multiple of a step that holds as well."""
    places, near = _on_lattice(x, h, STEP_TOLERANCE + 1.0 / h)
    gaps = np.diff(places[near])
    common, times = np.unique(np.gcd(gaps[1:], gaps[:-1]), return_counts=True)
    likely = common[np.argsort(-times, kind="stable")[:4]].tolist()
    longer = [m * h for m in {*MULTIPLES, *likely} if m > 1 and _holds(x, m * h)]
    return _longest(x, max(longer)) if longer else h


def _polished(x: Floats, h: float) -> float:
    """h by least squares from the values on its lattice, those far off left out step by step."""
    places, near = _on_lattice(x, h, STEP_TOLERANCE + 1.0 / h)
    most = np.count_nonzero(near) / 2
    for _ in range(4):
        slope, start = np.polyfit(places[near], x[near], 1)
        away = np.abs(x - start - slope * places)
        closer = away <= max(1.0, 0.25 * float(np.max(away[near])))
        if np.count_nonzero(closer) < most:
            break
        h, near = float(slope), closer
    return h
