"""Spread events stay in their boxes and in the window, and fill them evenly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hplus import Box, Cycle, Intensity, Interval, Polygon
from hplus.rates.spreading import spread
from hplus.rates.statistic import Statistic

WINDOWS = {
    "line": Interval(-1.0, 3.0),
    "cycle": Cycle(24.0),
    "box": Box((0.0, 0.0), (3.0, 1.0)),
    "triangle": Polygon([(0, 0), (3, 0), (0, 2)]),
    "place and hour": Box((0, 0), (1, 2), unit="km") * Cycle(24.0, unit="h"),
}


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(WINDOWS)), st.integers(0, 2**32), st.integers(1, 60), st.floats(0, 0.4)
)
def test_events_stay_in_the_window_and_in_their_box(name, seed, n, side):
    window = WINDOWS[name]
    rng = np.random.default_rng(seed)
    X = window.sample(n, seed % 2**32).repeat(rng.integers(1, 50, n), axis=0)
    s = Statistic.of(window, X)
    sides = side * np.subtract(*window.bounds()[::-1])
    depth = min(7, s.depth)
    codes, counts = spread(s, sides, depth, seed)
    assert counts.sum() == len(X)
    assert np.all(codes[1:] > codes[:-1])
    cell = s.lattice.cell_sides(depth)
    low, high = window.bounds()
    centers = low + (s.lattice.indices(codes) + 0.5) * cell
    assert np.all(centers - 0.5 * cell <= high)
    away = np.abs(centers[:, None] - X[None])
    closed = list(window.closed_axes())
    away[..., closed] = np.minimum(away[..., closed], (high - low)[closed] - away[..., closed])
    near = np.all(away <= 0.5 * (sides + cell) * (1 + 1e-6) + 1e-9, axis=-1)
    assert np.all(near.any(axis=1))
    assert np.all(near.any(axis=0))


def test_without_a_box_events_stay_where_they_are():
    s = Statistic.of(WINDOWS["box"], np.random.default_rng(0).random((500, 2)))
    codes, counts = spread(s, np.zeros(2), 9, 1)
    coarse = s.coarsened(9)
    np.testing.assert_array_equal(codes, coarse.codes)
    np.testing.assert_array_equal(counts, coarse.counts)


def test_the_draws_of_a_cell_do_not_depend_on_other_cells():
    a, b = (np.full((300, 2), x) for x in (0.3, 0.9))
    one = Statistic.of(WINDOWS["box"], a)
    both = Statistic.of(WINDOWS["box"], np.vstack([b, a]))
    codes, counts = spread(one, np.full(2, 0.1), 8, 5)
    more, sums = spread(both, np.full(2, 0.1), 8, 5)
    kept = np.isin(more, codes)
    np.testing.assert_array_equal(sums[kept], counts)
    assert not np.array_equal(spread(one, np.full(2, 0.1), 8, 6)[1], counts)


@pytest.mark.parametrize("per_position", [40, 4000, 400_000])
@pytest.mark.parametrize("depth", [4, 6, 8])
def test_counts_are_those_of_events_that_fill_the_box(per_position, depth):
    window = Interval(0.0, 1.0)
    places = (np.arange(10) + 0.5) / 10
    s = Statistic.of(window, places[:, None])
    s = s.replace(counts=np.full(10, per_position), squares=10 * per_position << 40)
    counts = np.zeros(2**depth)
    codes, drawn = spread(s, np.array([0.1]), depth, 3)
    counts[codes.astype(int)] = drawn
    expected = per_position * 10 / 2**depth
    chi2 = np.sum((counts - expected) ** 2) / expected
    assert abs(chi2 - 2**depth) < 5.0 * np.sqrt(2.0 * 2**depth) + 5.0


def test_boxes_are_cut_off_at_the_edge_and_wrap_around_cycles():
    s = Statistic.of(Interval(0.0, 24.0), np.zeros((4000, 1)))
    codes, counts = spread(s, np.array([3.0]), 4, 0)  # cells of 1.5
    assert dict(zip(codes.tolist(), counts.tolist(), strict=True)) == {0: 4000}
    s = Statistic.of(Cycle(24.0), np.zeros((4000, 1)))
    codes, counts = spread(s, np.array([3.0]), 4, 0)
    assert codes.tolist() == [0, 15]
    assert abs(counts[0] - 2000) < 200


def test_each_position_may_have_a_box_of_its_own():
    s = Statistic.of(WINDOWS["line"], np.repeat([[0.0], [2.0]], 1000, axis=0))
    codes, counts = spread(s, np.array([[0.0], [0.5]]), 6, 0)
    assert counts[0] == 1000
    assert len(codes) > 7


def test_a_rounded_position_that_very_many_events_share_is_not_blurred(thoroughly):
    rng = np.random.default_rng(3)
    window, step, many = Box((-25.0, -5.25), (25.0, 41.75)), 0.1, 2_000
    X = np.round(rng.normal((0.0, 18.0), 6.0, (20_000, 2)) / step) * step
    X = X[window.contains(X)]
    rate = Intensity(window, model="tree").fit(np.concatenate([X, np.zeros((many, 2))]))
    assert rate.expected_count(Box((-step, -step), (step, step))) == pytest.approx(many, rel=0.1)
    assert rate.resolution_ == pytest.approx(step)
