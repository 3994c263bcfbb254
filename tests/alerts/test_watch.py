"""A watch finds changes, keeps to its false alarms, and treats what overlaps as one."""

import math

import numpy as np
import pytest
from scipy.stats import nbinom

from hplus.alerts.false_alarms import correction, tick_of
from hplus.alerts.overlapping_blocks import OverlappingBlocks
from hplus.alerts.watch import FACTORS, PRIOR_CHANCES, WEEK, Watch

HOUR = 3600.0


def flat(blocks, total):
    return np.full((blocks.cells,) * blocks.dimension, total / blocks.cells**blocks.dimension)


def watched(watch, truth, known, hours, seed=0, start=0):
    """All episodes of some hours of events."""
    rng, found = np.random.default_rng(seed), []
    for i in range(start, start + hours):
        counts = rng.poisson(truth * HOUR / WEEK).astype(float)
        found += watch.advance((i + 1) * HOUR, counts, known * HOUR / WEEK)
    return found


@pytest.mark.parametrize(("cells", "dimension"), [(1, 1), (5, 1), (10, 2), (16, 2), (3, 3)])
def test_the_sum_of_a_block_is_that_of_its_cells(cells, dimension):
    blocks = OverlappingBlocks(cells, dimension)
    grid = np.random.default_rng(0).random((cells,) * dimension)
    sums, (low, high) = blocks.sums(grid), blocks.corners
    for total, a, b in zip(sums, low, high, strict=True):
        here = tuple(slice(i, j) for i, j in zip(a, b, strict=True))
        assert total == pytest.approx(grid[here].sum())
    assert sums[-1] == pytest.approx(grid.sum())
    assert np.bincount(blocks.levels)[0] == cells**dimension


def test_blocks_overlap_if_they_share_a_cell():
    blocks = OverlappingBlocks(8, 2)
    low, high = blocks.corners
    corner, other = 0, 63
    assert blocks.overlaps(corner)[-1]
    assert not blocks.overlaps(corner)[other]
    assert not blocks.overlaps(corner)[1]
    assert blocks.overlaps(corner)[np.flatnonzero((high - low)[:, 0] == 2)[0]]


def test_the_evidence_grows_on_average_by_the_events_expected():
    blocks, m = OverlappingBlocks(1, 1), 0.7
    weekly = np.array([20.0])
    total = np.zeros(len(FACTORS))
    for n in range(120):
        watch = Watch(blocks, weekly, 1.0, learned=WEEK)
        watch.evidence[:] = 2.0
        a = watch.known[0, 0]
        watch.advance(HOUR, np.array([float(n)]), np.array([m]))
        total += nbinom.pmf(n, a, a / (a + m)) * watch.evidence[0]
    assert total == pytest.approx(np.full(len(FACTORS), 2.0 + m))
    assert PRIOR_CHANCES.sum() == pytest.approx(1.0)


def test_a_burst_is_found_where_and_when_it_is_and_ends():
    blocks = OverlappingBlocks(8, 2)
    known = flat(blocks, 64 * 168.0)  # one event an hour in each cell
    watch = Watch(blocks, known, 1.0, correction=0.45)
    truth = known.copy()
    truth[2, 5] *= 12.0
    assert watched(watch, known, known, 20) == []
    during = watched(watch, truth, known, 12, start=20)
    after = watched(watch, known, known, 30, start=32)
    ended = [e for e in during + after if not math.isnan(e.end)]
    assert [e.number for e in ended] == [1]
    assert ended[0].low == (2 / 8, 5 / 8)
    assert ended[0].high == (3 / 8, 6 / 8)
    assert 18 * HOUR <= ended[0].start <= 22 * HOUR
    assert 20 * HOUR <= ended[0].found <= 24 * HOUR
    assert 32 * HOUR <= ended[0].end <= 36 * HOUR
    assert ended[0].observed > 8.0 * ended[0].expected
    assert ended[0].weeks > 100.0


def test_silence_is_found():
    blocks = OverlappingBlocks(4, 1)
    known = flat(blocks, 4 * 1680.0)
    watch = Watch(blocks, known, 1.0, correction=0.45)
    truth = known.copy()
    truth[3] = 0.0
    found = watched(watch, known, known, 20) + watched(watch, truth, known, 10, start=20)
    assert {e.number for e in found} == {1}
    assert not found[-1].is_excess
    assert found[-1].high == (1.0,)


def test_false_alarms_are_as_many_as_asked_for():
    blocks = OverlappingBlocks(6, 2)
    known = flat(blocks, 600.0)
    found = correction(blocks, known, 4.0, random_state=0, alarms=60)
    watch = Watch(blocks, known, 4.0, correction=found)
    watched(watch, known, known, 25 * 168, seed=1)
    assert 100 / 1.5 <= watch.found <= 100 * 1.5


def test_theory_alone_allows_at_least_as_many_false_alarms_as_there_are():
    blocks = OverlappingBlocks(6, 2)
    known = flat(blocks, 600.0)
    watch = Watch(blocks, known, 4.0)
    watched(watch, known, known, 25 * 168, seed=2)
    assert watch.found <= 100


def test_a_level_that_was_wrong_is_learned():
    blocks = OverlappingBlocks(2, 1)
    known = flat(blocks, 2000.0)
    watch = Watch(blocks, known, 1.0, memory=WEEK / 4, learned=WEEK)
    watched(watch, 1.5 * known, known, 4 * 168)
    before = watch.found
    watched(watch, 1.5 * known, known, 4 * 168, seed=1, start=4 * 168)
    assert watch.found - before <= 4
    level = watch.known[-1, 0] / watch.known[-1, 1]
    assert level == pytest.approx(1.5, rel=0.1)


def test_other_expectations_leave_the_level_of_a_place_as_it_was():
    blocks = OverlappingBlocks(2, 1)
    watch = Watch(blocks, flat(blocks, 2000.0), 1.0, learned=WEEK)
    before = watch.known[:, 0] / watch.known[:, 1] * watch.rates
    watch.expect(flat(blocks, 3000.0))
    assert watch.known[:, 0] / watch.known[:, 1] * watch.rates == pytest.approx(before, rel=2e-3)


def test_ticks_are_shorter_for_more_events():
    assert tick_of(1e3) == 600.0
    assert tick_of(1e9) == 1.0
    assert 1.0 < tick_of(1e5) < 600.0


def test_many_ticks_at_once_are_the_same_as_one_by_one():
    blocks, rng = OverlappingBlocks(5, 2), np.random.default_rng(3)
    known = flat(blocks, 2000.0)
    per_tick = rng.poisson(12.0, 400)
    cells = rng.integers(0, 25, per_tick.sum())
    cells[np.cumsum(per_tick)[200] :][:60] = 7  # a burst
    one, many = (Watch(blocks, known, 3.0) for _ in range(2))
    many.run(HOUR, per_tick, cells, known * HOUR / WEEK)
    one.now = 0.0
    ends = np.cumsum(per_tick)
    for i, (n, end) in enumerate(zip(per_tick, ends, strict=True), 1):
        counts = np.bincount(cells[end - n : end], minlength=25).astype(float)
        one.advance(i * HOUR, counts, known * HOUR / WEEK)
    assert many.found == one.found > 0
    assert many.now == one.now
    assert many.evidence == pytest.approx(one.evidence, rel=1e-4)  # whose levels are learned
    assert many.since == pytest.approx(one.since)
