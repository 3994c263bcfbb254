"""What a fit keeps of the events: the same bits, whatever the parts and their order."""

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from hplus import Box, Cycle, Gaussian, Intensity, Interval, Polygon, Statistic, load, save
from hplus.rates import binned, cell_counts
from hplus.rates import statistic as module
from hplus.rates.accumulator import CellAccumulator
from hplus.rates.binned import BinnedStatistic, finest_grid
from hplus.rates.lattice import CellLattice
from hplus.rates.statistic import count_codes, merged
from hplus.rates.weight_units import in_units

TRIANGLE = Polygon([[0, 0], [2, 0], [0, 2]])
WINDOWS = [
    Interval(0, 3),
    Cycle(24.0),
    Box((0, 0), (2, 1)),
    TRIANGLE,
    TRIANGLE * Cycle(5),
    Box((0, 0, 0), (1, 2, 3)),
]
every_window = pytest.mark.parametrize("window", WINDOWS, ids=lambda w: type(w).__name__)
BINNED = Path(__file__).parents[1] / "stored" / "statistics" / "binned.hplus"


def in_parts(window, X, weights, parts, order):
    """The sum of the statistics of parts of the events, added one by one."""
    pieces = np.array_split(order, parts)
    first, *rest = (
        Statistic.of(window, X[i], None if weights is None else weights[i]) for i in pieces
    )
    return sum(rest, first)


@every_window
@pytest.mark.parametrize("parts", [1, 2, 7, 64])
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_in_any_order_add_up_to_the_same_bits(window, parts, weighted, rng):
    X = window.sample(200, random_state=0)
    X = np.concatenate([X, X[:50]])
    weights = 10.0 ** rng.uniform(-5, 5, 250) if weighted else None
    order = rng.permutation(250)
    assert in_parts(window, X, weights, parts, order) == Statistic.of(window, X, weights)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_partition_gives_the_same_bits_even_if_cells_are_made_larger(data):
    window = data.draw(st.sampled_from(WINDOWS))
    n = data.draw(st.integers(1, 60))
    exponents = data.draw(st.lists(st.floats(-5.5, 5.5), min_size=n, max_size=n))
    weights = data.draw(st.sampled_from([None, 10.0 ** np.array(exponents)]))
    order = np.array(data.draw(st.permutations(range(n))))
    scale = data.draw(st.sampled_from([1.0, 1e-3, 1e-9]))
    low, _ = window.bounds()
    X = low + scale * (window.sample(n, random_state=data.draw(st.integers(0, 9))) - low)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_CELLS", data.draw(st.sampled_from([1, 4, 16, 1000])))
        patch.setattr(module, "EVENTS_AT_ONCE", data.draw(st.sampled_from([3, 17, 1000])))
        whole = Statistic.of(window, X, weights)
        assert in_parts(window, X, weights, data.draw(st.integers(1, n)), order) == whole
        assert len(whole.codes) <= module.MAX_CELLS
        if whole.depth < whole.lattice.bits:
            dropped = np.uint64(window.dimension * (whole.lattice.bits - whole.depth - 1))
            assert len(np.unique(whole.lattice.codes(X) >> dropped)) > module.MAX_CELLS


@every_window
def test_counts_weights_and_squares_are_exact_sums(window, rng):
    X, weights = window.sample(300, random_state=0), 10.0 ** rng.uniform(-5, 5, 300)
    statistic = Statistic.of(window, X, weights).coarsened(3)
    codes = statistic.lattice.codes(X) >> np.uint64(window.dimension * (statistic.lattice.bits - 3))
    q = [round(Fraction(w) * 2**20) for w in weights]
    for code, count, weight in zip(
        statistic.codes, statistic.counts, statistic.weights, strict=True
    ):
        held = np.flatnonzero(codes == code)
        assert (count, weight) == (len(held), sum(q[i] for i in held))
    assert statistic.events == 300
    assert statistic.squares == sum(k * k for k in q)
    assert statistic.total == sum(q) / 2**20
    assert statistic.effective_events == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    np.testing.assert_allclose(statistic.masses.sum(), weights.sum())


def test_weights_of_one_are_not_stored(rng):
    X = rng.random((20, 1))
    plain = Statistic.of(Interval(0, 1), X)
    assert plain == Statistic.of(Interval(0, 1), X, np.ones(20))
    assert plain.weights.size == 0
    assert plain.effective_events == plain.total == plain.events == 20
    both = plain + Statistic.of(Interval(0, 1), X, np.full(20, 3.0))
    np.testing.assert_array_equal(both.masses, 4.0)
    assert both.effective_events == pytest.approx(80**2 / 200)


def test_events_of_weight_zero_are_events():
    statistic = Statistic.of(Interval(0, 1), [[0.1], [0.2]], [0.0, 0.0])
    assert (statistic.events, statistic.total, statistic.effective_events) == (2, 0.0, 0.0)


def test_sums_are_exact_up_to_the_largest_that_fits():
    largest = Statistic.of(UNIT, [[0.5], [0.6]], [2.0**42, 2.0**42 - 2.0**-10])
    assert largest.weights.sum() == 2**63 - 2**10
    rest = Statistic.of(UNIT, [[0.5]], [2.0**-10 - 2.0**-20])
    assert (largest + rest).total == (2**63 - 1) / 2**20
    with pytest.raises(ValueError, match="rescale the weights"):
        largest + rest + Statistic.of(UNIT, [[0.5]], [2.0**-20])


def test_many_small_statistics_are_added_in_pairs(rng, monkeypatch):
    window, X, cells = Interval(0, 1), rng.random((512, 1)), []
    add = Statistic.__add__

    def counted(self, other):
        cells.append(len(self.codes) + len(other.codes))
        return add(self, other)

    monkeypatch.setattr(Statistic, "__add__", counted)
    whole = merged(Statistic.of(window, [x]) for x in X)
    assert whole == Statistic.of(window, X)
    assert sum(cells) < 2 * 512 * 9  # n log n, not n²


@pytest.mark.parametrize(("most", "in_table"), [(2**23, 0), (300, 0), (300, 2**20)])
def test_an_accumulator_counts_like_a_statistic_whatever_it_absorbs(
    rng, monkeypatch, most, in_table
):
    monkeypatch.setattr(module, "MAX_CELLS", most)
    monkeypatch.setattr("hplus.rates.filled_cells.MAX_TABLE_CELLS", in_table)
    monkeypatch.setattr("hplus.rates.accumulator.MOST_WAITING", 500)
    monkeypatch.setattr("hplus.rates.accumulator.BUFFERED_EVENTS", 64)
    window, X = Box((0, 0), (8, 5)), rng.random((5000, 2)) * [8, 5]
    ours, other = CellAccumulator(window), CellAccumulator(window)
    for i, part in enumerate(np.array_split(X[rng.permutation(len(X))], 37)):
        (ours if i % 3 else other).add(part)
    ours.absorb(other)
    assert ours.total == 5000.0
    assert ours.statistic() == Statistic.of(window, X)
    coarse = CellAccumulator(window, most_depth=4)
    coarse.add(X)
    whole = Statistic.of(window, X)
    assert coarse.statistic() == whole.coarsened(min(whole.depth, 4))


def test_what_was_handed_out_does_not_change_when_events_are_added_in_place(monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 1000)
    monkeypatch.setattr("hplus.rates.filled_cells.MAX_TABLE_CELLS", 0)
    monkeypatch.setattr("hplus.rates.accumulator.MOST_WAITING", 200)
    monkeypatch.setattr("hplus.rates.accumulator.BUFFERED_EVENTS", 64)
    window = Box((0, 0, 0), (1, 2, 3))
    parts = np.array_split(window.sample(6000, random_state=0), 60)
    cells, copied = CellAccumulator(window), CellAccumulator(window)
    for part in parts[:20]:
        cells.add(part)
        copied.add(part)
    assert cells._own is not None
    handed_out, twin = cells.statistic(), copied.copy()
    for part in parts[20:]:
        cells.add(part)
        copied.add(part)
    whole, first = (Statistic.of(window, np.concatenate(some)) for some in (parts, parts[:20]))
    assert handed_out == first
    assert twin.statistic() == first
    assert cells.statistic() == copied.statistic() == whole


@pytest.mark.parametrize("window", [Interval(0, 1), Box((0, 0), (8, 5))], ids=["line", "plane"])
def test_cells_that_fill_up_are_counted_in_a_table(rng, monkeypatch, window):
    monkeypatch.setattr(module, "MAX_CELLS", 2000)
    monkeypatch.setattr("hplus.rates.accumulator.MOST_WAITING", 700)
    X = window.sample(30_000, random_state=1)
    cells, parts = CellAccumulator(window), np.array_split(X, 60)
    for part in parts[:-5]:
        one = cells.another()
        one.add(part)
        cells.absorb(one)
    assert cells._table is not None
    copy = cells.copy()
    for part in parts[-5:]:
        cells.add(part)
    assert copy.statistic() == Statistic.of(window, np.concatenate(parts[:-5]))
    copy.add(parts[-5])
    assert copy.statistic().events == 28_000
    assert cells.copy().statistic() == Statistic.of(window, X)
    weights = in_units(np.arange(1.0, 101.0), 100)
    cells.add(X[:100], weights)
    twice = Statistic.of(window, X[:100], np.arange(1.0, 101.0))
    assert cells.statistic() == Statistic.of(window, X) + twice


@every_window
def test_folds_add_up_and_follow_from_cell_and_seed(window):
    X = window.sample(400, random_state=0)
    whole, half = Statistic.of(window, X), Statistic.of(window, X[::2])
    folds = whole.folds(3)
    assert folds.shape == (5, len(whole.codes))
    np.testing.assert_array_equal(folds.sum(axis=0), whole.counts)
    np.testing.assert_array_equal(folds[:, np.isin(whole.codes, half.codes)], half.folds(3))
    assert np.any(folds != whole.folds(4))
    assert chisquare(folds.sum(axis=1)).pvalue > 1e-3


@pytest.mark.parametrize("count", [1_000, 10_000, 10_001, 1_000_000])
def test_events_at_one_position_are_spread_over_the_folds_like_a_multinomial(count):
    one = Statistic.of(Interval(0, 1), [[0.3]])
    statistic = one.replace(counts=[count], squares=count << 40)
    draws = np.stack([statistic.folds(seed)[:, 0] for seed in range(2000)])
    assert np.all(draws.sum(axis=1) == count)
    p = 1 / 5
    covariance = count * (p * np.eye(5) - p * p)
    np.testing.assert_allclose(draws.mean(axis=0), count * p, atol=4 * np.sqrt(count * p / 2000))
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.2 * count * p)


@every_window
def test_the_grid_has_about_square_cells_and_can_be_halved(window):
    grid = finest_grid(window)
    sides = grid.spacing / window.longest_sides()
    assert sides.max() / sides.min() < 1.5
    assert all(n % 2 == 1 for n in grid.shape)


def test_binned_weights_have_the_total_and_the_mean_of_the_events(rng):
    window, X, weights = Box((0, 0), (2, 1)), rng.random((50, 2)), rng.integers(0, 9, 50) / 4.0
    X[25:] = X[:25]
    binned = BinnedStatistic.of(Statistic.of(window, X, weights), 0)
    mean = binned.counts.sum(axis=0).ravel() @ binned.grid.nodes() / weights.sum()
    np.testing.assert_allclose(mean, np.average(X, axis=0, weights=weights), rtol=1e-7)
    assert binned.total == pytest.approx(weights.sum(), rel=1e-12)
    assert binned.events == 50


@pytest.mark.parametrize("window", [Interval(0, 3), Cycle(3)], ids=repr)
@pytest.mark.parametrize("parts", [2, 7])
def test_a_fit_of_merged_statistics_is_the_fit_of_the_events(window, parts, rng):
    X = 3.0 * rng.beta(2, 3, (200, 1)).round(2)
    whole = Intensity(window).fit(X)
    part = Intensity(window).fit(in_parts(window, X, None, parts, rng.permutation(200)))
    np.testing.assert_array_equal(part.predict(X), whole.predict(X))
    np.testing.assert_allclose(part.expected_count(window), 200.0, rtol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_saved_statistic_takes_its_cells_and_comes_back(weighted, tmp_path, rng):
    window, X = TRIANGLE, TRIANGLE.sample(2000, random_state=0)
    statistic = Statistic.of(window, X, 10.0 ** rng.uniform(-5, 5, 2000) if weighted else None)
    save(statistic, tmp_path / "events.hplus")
    again = load(tmp_path / "events.hplus")
    assert again == statistic
    assert again + again == statistic + statistic
    assert (tmp_path / "events.hplus").stat().st_size < (24 if weighted else 16) * 2000 + 4000


@pytest.mark.usefixtures("few_nodes")
def test_a_binned_statistic_of_an_earlier_version_loads_and_fits_as_it_did(tmp_path, monkeypatch):
    monkeypatch.setitem(binned.COARSE_CELLS, 3, 24)  # the usual grid, on which it was made
    old = load(BINNED)
    assert (type(old), old.events, old.total) == (BinnedStatistic, 120, pytest.approx(124.5))
    save(old, tmp_path / "again.hplus")
    assert load(tmp_path / "again.hplus") == old
    model = Intensity(old.window, Gaussian(0.1), 1.0).fit(old)
    found = model.predict([[0.417, 0.072, 0.0], [0.302, 0.015, 0.009], [0.539, 0.042, 0.069]])
    np.testing.assert_allclose(found, [23181.189290, 76376.702951, 12205.055523], rtol=0.01)
    assert (old + old).total == pytest.approx(249.0)


def test_a_statistic_is_frozen_and_equal_to_its_repeat(rng):
    X = rng.random((20, 1))
    a, b = (Statistic.of(Interval(0, 1), X) for _ in range(2))
    assert a == b
    assert a != Statistic.of(Interval(0, 1), X[1:])
    assert repr(a) == "<Statistic of 20 events in 20 cells of Interval(0.0, high=1.0)>"
    with pytest.raises(ValueError, match="read-only"):
        a.counts[0] = 1


UNIT = Interval(0, 1)
FOUR_AXES = Box((0,) * 4, (1,) * 4)
NARROW = Interval(1e9, 1e9 + 1e-6)


@cache
def one():
    return Statistic.of(UNIT, [[0.5]])


@cache
def old():
    return BinnedStatistic.of(one(), 0)


def heavy():
    return Statistic.of(UNIT, [[0.5]], [2.0**42])


REFUSED = [
    (lambda: Statistic.of(FOUR_AXES, np.zeros((1, 4))), "window must have 1, 2 or 3 axes, got 4"),
    (lambda: Statistic.of(UNIT, [[0.5]], [-1.0]), "at least 0 .* 1 events, got -1"),
    (lambda: Statistic.of(UNIT, [[0.5]], [np.nan]), "sample_weight must contain only finite"),
    (lambda: Statistic.of(UNIT, [[0.5]], [1.0, 2.0]), "1 events, got shape"),
    (lambda: Statistic.of(UNIT, [[0.5]], [1e-7]), "0 or above .* got 1e-07: rescale the weights"),
    (lambda: Statistic.of(UNIT, [[0.5]], [1e300]), "less than .* got 1e.300: rescale the weights"),
    (lambda: Statistic.of(UNIT, [[0.5]] * 2, [2.0**42] * 2), "less than .* rescale the weights"),
    (lambda: heavy() + heavy(), "sample_weight must add up to less than .* rescale the weights"),
    (lambda: Statistic.of(UNIT, [[0.5], [2.0]]), "got 1 of 2 points outside"),
    (lambda: Intensity(NARROW).fit([[1e9]]), "window must be wide enough"),
    (lambda: one() + Statistic.of(Interval(0, 2), [[0.5]]), "must share one window to be added"),
    (lambda: old() + old().replace(window=Interval(0, 2)), "must share one window to be added"),
    (lambda: one() + old(), "version 0.1.0 cannot be added to one of this version"),
    (lambda: old() + one(), "version 0.1.0 cannot be added to one of this version"),
    (lambda: one().replace(counts=[0]), "must be those of events in sorted cells"),
    (lambda: one().replace(codes=[5, 5], counts=[1, 1]), "must be those of events in sorted cells"),
    (lambda: one().replace(codes=[2**51]), "must be those of events in sorted cells"),
    (lambda: one().replace(weights=[2**30]), "must be those of events in sorted cells"),
    (lambda: one().replace(depth=51), "must be those of events in sorted cells"),
    (lambda: one().coarsened(51), "depth must be from 0 to 50"),
    (lambda: BinnedStatistic(UNIT, np.ones((5, 3)), 1), "counts must be at least 0"),
    (lambda: BinnedStatistic(UNIT, -old().counts, 1), "counts must be at least 0"),
    (lambda: Intensity(Interval(0, 2)).fit(one()), "have the same window"),
    (lambda: Intensity(UNIT, model="sos").fit(old()), "needs model=.exp."),
]


@pytest.mark.parametrize(("attempt", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused_is_refused_in_one_sentence(attempt, words):
    with pytest.raises(ValueError, match=words) as refused:
        attempt()
    text = str(refused.value)
    assert text.endswith(".")
    assert text.count(". ") == 0


def test_only_windows_statistics_and_whole_numbers_are_accepted():
    with pytest.raises(TypeError, match=r"window must be a Window"):
        Statistic.of((0, 1), [[0.5]])
    with pytest.raises(TypeError, match="must be whole numbers"):
        one().replace(counts=[1.5])
    for statistic in (one(), old()):
        with pytest.raises(TypeError):
            statistic + 1


@pytest.mark.parametrize(("n", "depth"), [(300, 3), (300, 12), (0, 2)])
def test_cells_are_counted_alike_in_an_array_of_all_and_sorted(n, depth, monkeypatch, rng):
    lattice = CellLattice(Box((0, 0), (1, 1)))
    codes = lattice.codes(rng.random((n, 2)) ** 2)
    found = []
    for per_event in (0, 10**9):
        monkeypatch.setattr(cell_counts, "CELLS_PER_EVENT", per_event)
        found.append(count_codes(lattice, codes.copy(), None, depth))
    assert found[0] == found[1]
    assert found[0].events == n
    cells = np.unique(codes >> np.uint64(2 * (lattice.bits - depth)))
    np.testing.assert_array_equal(found[0].codes, cells)
