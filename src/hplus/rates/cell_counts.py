"""Events in sorted cells: grouped, merged, and split at random; compiled."""

from __future__ import annotations

import numpy as np

from hplus._checks import Bools, Floats, Ints
from hplus.grids.hats import compiled
from hplus.rates.lattice import Codes

MAX_DRAWN_EVENTS = 10_000
"""Events of a cell that are put into parts one by one; of more, parts are drawn as normals."""

CELLS_PER_EVENT = 2
"""Cells for each event up to which all of them are counted, instead of sorting the events."""

FAR_TOO_MANY = 1.5
"""How many times too many events, in the mean, are so even with luck: none need be drawn."""

GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)
MIX_1, MIX_2 = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
"""The constants of splitmix64, a generator whose i-th number is a hash of seed + i * GOLDEN."""

DRAW_SALT, MEMBER_SALT = np.uint64(0x5851_F42D_4C95_7F2D), np.uint64(0x1405_7B7E_F767_814F)
"""Different draws for the same seed must have nothing in common."""


def counted(codes: Codes, shift: np.uint64, cells: int) -> tuple[Codes, Ints]:
    """The distinct codes >> shift, which are below `cells`, and how often each occurs.

    Many codes are counted in an array of all cells; others are sorted in place.
    """
    if cells <= CELLS_PER_EVENT * len(codes):
        return _count_each(codes, shift, cells)
    codes.sort()
    return count_runs(codes, shift)


@compiled
def group_cells(codes: Codes, rows: Ints, shift: np.uint64) -> tuple[Codes, Ints]:
    """The distinct codes >> shift of sorted codes, and the sums of rows (v, n) over equal ones."""
    m = min(len(codes), 1)
    for i in range(1, len(codes)):
        m += codes[i] >> shift != codes[i - 1] >> shift
    out, sums = np.empty(m, dtype=np.uint64), np.zeros((len(rows), m), dtype=np.int64)
    k = -1
    for i in range(len(codes)):
        if k < 0 or codes[i] >> shift != out[k]:
            k += 1
            out[k] = codes[i] >> shift
        for v in range(len(rows)):
            sums[v, k] += rows[v, i]
    return out, sums


@compiled
def count_runs(codes: Codes, shift: np.uint64) -> tuple[Codes, Ints]:
    """The distinct codes >> shift of sorted codes, and how often each occurs."""
    m = min(len(codes), 1)
    for i in range(1, len(codes)):
        m += codes[i] >> shift != codes[i - 1] >> shift
    out, counts = np.empty(m, dtype=np.uint64), np.empty(m, dtype=np.int64)
    k, began = -1, 0
    for i in range(len(codes)):
        if k < 0 or codes[i] >> shift != out[k]:
            if k >= 0:
                counts[k] = i - began
            k, began = k + 1, i
            out[k] = codes[i] >> shift
    if k >= 0:
        counts[k] = len(codes) - began
    return out, counts


@compiled
def merge_cells(codes: Codes, rows: Ints, others: Codes, other_rows: Ints) -> tuple[Codes, Ints]:
    """Two sets of sorted cells as one; the rows (v, m) of cells in both are added."""
    m = _distinct(codes, others)
    out, sums = np.empty(m, dtype=np.uint64), np.zeros((len(rows), m), dtype=np.int64)
    i = j = 0
    for k in range(m):
        mine = j == len(others) or (i < len(codes) and codes[i] <= others[j])
        theirs = i == len(codes) or (j < len(others) and others[j] <= codes[i])
        out[k] = codes[i] if mine else others[j]
        for v in range(len(rows)):
            sums[v, k] = (rows[v, i] if mine else 0) + (other_rows[v, j] if theirs else 0)
        i += mine
        j += theirs
    return out, sums


@compiled
def merge_counts(codes: Codes, counts: Ints, others: Codes, more: Ints) -> tuple[Codes, Ints]:
    """Two sets of sorted cells as one; the counts (m,) of cells in both are added."""
    most = len(codes) + len(others)
    out, sums = np.empty(most, dtype=np.uint64), np.empty(most, dtype=np.int64)
    i = j = k = 0
    while i < len(codes) and j < len(others):
        a, b = codes[i], others[j]
        mine, theirs = a <= b, b <= a
        out[k] = min(a, b)
        sums[k] = counts[i] * mine + more[j] * theirs
        i, j, k = i + mine, j + theirs, k + 1
    last = k + len(codes) - i + len(others) - j
    out[k:last] = codes[i:] if i < len(codes) else others[j:]
    sums[k:last] = counts[i:] if i < len(codes) else more[j:]
    if 2 * last < most:
        return out[:last].copy(), sums[:last].copy()
    return out[:last], sums[:last]  # what is beyond was never written, and takes no memory


@compiled
def _distinct(codes: Codes, others: Codes) -> int:
    """How many codes are in either of two sorted sets."""
    shared = j = 0
    for code in codes:
        while j < len(others) and others[j] < code:
            j += 1
        shared += j < len(others) and others[j] == code
    return len(codes) + len(others) - shared


@compiled
def cells_by_drop(codes: Codes, others: Codes, d: int, depth: int) -> Ints:
    """How many distinct cells two sorted sets have if 0, 1, ..., `depth` levels are dropped."""
    out, m = np.zeros(depth + 1, dtype=np.int64), 0
    i = j = 0
    before = np.uint64(0)
    while i < len(codes) or j < len(others):
        mine = j == len(others) or (i < len(codes) and codes[i] <= others[j])
        code = codes[i] if mine else others[j]
        i += mine
        j += j < len(others) and others[j] == code
        differing, dropped = code ^ before, 0
        while differing:
            differing >>= np.uint64(d)
            dropped += 1
        if m:
            out[dropped] += 1  # neighbours share a cell once all levels that differ are dropped
        before, m = code, m + 1
    return m - np.cumsum(out)


@compiled
def _count_each(codes: Codes, shift: np.uint64, cells: int) -> tuple[Codes, Ints]:
    """What `counted` does, in an array of all cells."""
    counts = np.zeros(cells, dtype=np.int64)
    for code in codes:
        counts[code >> shift] += 1
    m = 0
    for c in range(cells):
        m += counts[c] > 0
    out, found = np.empty(m, dtype=np.uint64), np.empty(m, dtype=np.int64)
    k = 0
    for c in range(cells):
        if counts[c]:
            out[k], found[k] = np.uint64(c), counts[c]
            k += 1
    return out, found


@compiled
def thinned(codes: Codes, counts: Ints, seed: np.uint64, parts: int) -> Ints:
    """Each count split at random into equally likely parts, shape (parts, m).

    The numbers are a hash of the seed and the cell's code: they do not depend on other cells.
    """
    out = np.zeros((parts, len(codes)), dtype=np.int64)
    for i in range(len(codes)):
        state = mixed(codes[i] + mixed(seed + GOLDEN))
        if counts[i] <= MAX_DRAWN_EVENTS:
            for _ in range(counts[i]):
                state += GOLDEN
                high = mixed(state) >> np.uint64(32)
                out[np.int64((high * np.uint64(parts)) >> np.uint64(32)), i] += 1
        else:
            _split_normally(state, counts[i], out[:, i])
    return out


@compiled
def _split_normally(state: np.uint64, count: int, out: Ints) -> None:
    """A multinomial with equal chances as binomials, each rounded from a normal variable."""
    left = count
    for k in range(len(out) - 1):
        p = 1.0 / (len(out) - k)
        state += GOLDEN
        u = (np.float64(mixed(state) >> np.uint64(12)) + 0.5) * 2.0**-52
        state += GOLDEN
        v = np.float64(mixed(state) >> np.uint64(12)) * 2.0**-52
        z = np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)
        drawn = int(np.floor(left * p + np.sqrt(left * p * (1.0 - p)) * z + 0.5))
        drawn = min(max(drawn, 0), left)
        out[k] = drawn
        left -= drawn
    out[len(out) - 1] = left


@compiled
def mixed(x: np.uint64) -> np.uint64:
    """The finaliser of splitmix64: every bit of x changes half of the bits of the result."""
    x = (x ^ (x >> np.uint64(30))) * MIX_1
    x = (x ^ (x >> np.uint64(27))) * MIX_2
    return x ^ (x >> np.uint64(31))


@compiled
def drawn_counts(codes: Codes, counts: Ints, seed: np.uint64, shares: Floats) -> Ints:
    """How many of each count are drawn, (m,), if each event is with the probability of its cell.

    As in `thinned`, the numbers are a hash of the seed and the code, here with another salt.
    """
    out = np.zeros(len(codes), dtype=np.int64)
    for i in range(len(codes)):
        state, share = mixed(codes[i] ^ mixed(seed + DRAW_SALT)), shares[i]
        if counts[i] <= MAX_DRAWN_EVENTS:
            for _ in range(counts[i]):
                state += GOLDEN
                out[i] += uniform(state) < share
        else:
            state += GOLDEN
            u, v = uniform(state), uniform(state + GOLDEN)
            z = np.sqrt(-2.0 * np.log(1.0 - u)) * np.cos(2.0 * np.pi * v)
            mean = counts[i] * share
            drawn = int(np.floor(mean + np.sqrt(mean * (1.0 - share)) * z + 0.5))
            out[i] = min(max(drawn, 0), counts[i])
    return out


def drawn_at_most(codes: Codes, counts: Ints, seed: np.uint64, shares: Floats, most: int) -> Ints:
    """What `drawn_counts` draws if shares are halved until they are at most so many in all."""
    while counts @ shares > FAR_TOO_MANY * most:
        shares = 0.5 * shares
    drawn = drawn_counts(codes, counts, seed, shares)
    while drawn.sum() > most:
        shares = 0.5 * shares
        drawn = drawn_counts(codes, counts, seed, shares)
    return drawn


@compiled
def drawn_members(cells: Ints, keys: Codes, counts: Ints, drawn: Ints, seed: np.uint64) -> Bools:
    """Which members of cells are among those drawn, (n,), if `drawn` of `counts` events are.

    Members are some or all of the events of cells; each of a cell's events is as likely as any.
    """
    left, wanted = counts.copy(), drawn.copy()
    out = np.zeros(len(cells), dtype=np.bool_)
    for i in range(len(cells)):
        c = cells[i]
        out[i] = uniform(mixed(keys[i] ^ mixed(seed + MEMBER_SALT))) * left[c] < wanted[c]
        left[c] -= 1
        wanted[c] -= out[i]
    return out


@compiled
def uniform(state: np.uint64) -> float:
    """A number from 0 to 1, 1 excluded, that is a hash of a state."""
    return np.float64(mixed(state) >> np.uint64(11)) * 2.0**-53


@compiled
def mixed_copies(keys: Codes, counts: Ints) -> Codes:
    """A key for each of `counts` copies of each key, (Σ counts,)."""
    out, n = np.empty(counts.sum(), dtype=np.uint64), 0
    for i in range(len(keys)):
        for j in range(counts[i]):
            out[n] = mixed(keys[i] + np.uint64(j) * GOLDEN)
            n += 1
    return out


@compiled
def uniforms(keys: Codes) -> Floats:
    """A number from 0 to 1 for each key, (n,)."""
    out = np.empty(len(keys))
    for i in range(len(keys)):
        out[i] = uniform(keys[i])
    return out


@compiled
def copy_numbers(counts: Ints) -> Ints:
    """0, 1, ... for each of `counts` copies, one after another, (Σ counts,)."""
    out, n = np.empty(counts.sum(), dtype=np.int64), 0
    for count in counts:
        for j in range(count):
            out[n] = j
            n += 1
    return out
