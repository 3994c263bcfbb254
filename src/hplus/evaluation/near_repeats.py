"""Near repeats: are events close in place also close in time, more than by chance?

Knox's statistic: pairs of events within a distance and a lag of each other. Times are permuted
among the events of a part of the period, so that places and times stay what they are, and slow
changes of where events happen do not count.
"""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.spatial import cKDTree

from hplus._checks import Floats, Ints
from hplus._values import Value, value
from hplus.evaluation.lags import round_lags
from hplus.evaluation.timelines import Timeline
from hplus.grids.hats import compiled
from hplus.wording import nice_step

MIN_REPEAT_EVENTS = 50
"""Fewer events are not tested."""

MAX_REPEAT_EVENTS = 30_000
"""Of more events a random sample is tested."""

MAX_PAIRS, MAX_PAIR_SHARE = 400_000, 0.05
"""Most pairs within the longest distance, in number and as a share of all."""

DISTANCES = (0.1, 0.2, 0.5, 1.0)
"""Distances, as shares of the longest."""

LAGS = 4
"""Number of lags."""

LONGEST_LAG = 0.01
"""The longest lag, as a share of the period."""

PERMUTATIONS = 499
"""Permutations of the times."""

MAX_BLOCKS, MIN_PERMUTED = 16, 50
"""Most parts of the period within which times are permuted, and the fewest events of each."""

MIN_KNOX_PAIRS = 1.0
"""Expected pairs below which a distance and a lag say nothing."""


@final
@value
class NearRepeats(Value):
    """Knox's test over a table of distances and lags.

    `statistic` is the largest excess of pairs in standard deviations: `ratio` times as many within
    `distance` and `lag` as if places and times were independent. `unit` is that of the distance.
    """

    statistic: float
    p_value: float
    distance: float
    lag: float
    ratio: float
    unit: str = ""


def near_repeats(
    places: Floats, line: Timeline, unit: str, rng: np.random.RandomState
) -> NearRepeats | None:
    """Knox's test of events at places (n, d), with times; None if there are too few to tell."""
    order = np.argsort(line.times, kind="stable")
    if len(order) > MAX_REPEAT_EVENTS:
        order = order[np.sort(rng.permutation(len(order))[:MAX_REPEAT_EVENTS])]
    if len(order) < MIN_REPEAT_EVENTS:
        return None
    span = float(np.ptp(line.times))
    lags = round_lags(2.0 * line.step, LONGEST_LAG * span, line.unit)[::-1][: 2 * LAGS : 2][::-1]
    order, distance = _reach(places, order, rng)
    if not len(lags) or not distance:
        return None
    times = line.times[order]
    pairs, far = close_pairs(places[order], distance)
    blocks = min(MAX_BLOCKS, max(1, len(times) // MIN_PERMUTED))
    block = np.arange(len(times)) * blocks // len(times)
    near = np.abs(block[pairs[:, 0]] - block[pairs[:, 1]]) <= 1  # others are never close in time
    parts = np.split(times, np.flatnonzero(np.diff(block)) + 1)
    shuffled = [np.concatenate([rng.permutation(x) for x in parts]) for _ in range(PERMUTATIONS)]
    distances = distance * np.array(DISTANCES)
    within = np.searchsorted(distances[:-1], far[near])
    tables = knox_tables(np.stack([times, *shuffled]), pairs[near], within, lags)
    return _judged(tables, distances, lags, unit)


def _reach(places: Floats, order: Ints, rng: np.random.RandomState) -> tuple[Ints, float]:
    """Events, fewer if too many are at one place, and a round distance with enough pairs."""
    while len(order) >= MIN_REPEAT_EVENTS:
        n = len(order)
        most = min(MAX_PAIRS, MAX_PAIR_SHARE * n * (n - 1) / 2)
        a, b = rng.randint(n, size=(2, 200_000))
        far = np.linalg.norm(places[order[a[a != b]]] - places[order[b[a != b]]], axis=1)
        distance = float(np.quantile(far, 2.0 * most / (n * (n - 1.0))))
        tree = cKDTree(places[order])
        distance = nice_step(distance) if distance > 0.0 else 0.0
        if distance and (tree.count_neighbors(tree, distance) - n) / 2 <= 3 * MAX_PAIRS:
            return order, distance
        order = np.sort(order[rng.permutation(n)[: n // 2]])
    return order, 0.0


def close_pairs(places: Floats, distance: float) -> tuple[Ints, Floats]:
    """Pairs of rows within a distance of each other, (m, 2), and their distances (m,)."""
    pairs = cKDTree(places).query_pairs(distance, output_type="ndarray")
    return pairs, np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)


def knox_tables(times: Floats, pairs: Ints, within: Ints, lags: Floats) -> Floats:
    """Pairs within each distance and lag, (rows, distances, lags), for each row of times (r, n).

    `within` (m,) is the index of the shortest distance that each pair is within.
    """
    counts = _counts(times, pairs, within, np.ascontiguousarray(lags), len(DISTANCES))
    return np.cumsum(np.cumsum(counts, axis=1), axis=2).astype(float)


@compiled
def _counts(times: Floats, pairs: Ints, within: Ints, lags: Floats, distances: int) -> Ints:
    out = np.zeros((len(times), distances, len(lags)), np.int64)
    for r in range(len(times)):
        row = times[r]
        for p in range(len(pairs)):
            lag = abs(row[pairs[p, 0]] - row[pairs[p, 1]])
            if lag <= lags[-1]:
                j = 0
                while lag > lags[j]:
                    j += 1
                out[r, within[p], j] += 1
    return out


def _judged(tables: Floats, distances: Floats, lags: Floats, unit: str) -> NearRepeats | None:
    """The first table (distances, lags) among those of permutations: its largest excess."""
    mean, deviation = tables.mean(axis=0), tables.std(axis=0)
    usable = (mean >= MIN_KNOX_PAIRS) & (deviation > 0.0)
    if not usable.any():
        return None
    z = np.where(usable, (tables - mean) / np.where(usable, deviation, 1.0), -np.inf)
    largest = z.max(axis=(1, 2))
    p_value = float(np.mean(largest >= largest[0]))
    at = np.unravel_index(int(z[0].argmax()), mean.shape)
    # the mean of the permutations alone
    chance = (len(tables) * mean[at] - tables[0][at]) / (len(tables) - 1.0)
    ratio = float(tables[0][at] / max(chance, 1e-9))
    return NearRepeats(
        float(largest[0]), p_value, float(distances[at[0]]), float(lags[at[1]]), ratio, unit
    )
