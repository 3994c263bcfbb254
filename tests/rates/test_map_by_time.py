"""Maps that change with time: margins, parts that add up, draws, samples, files, evidence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, binom

from hplus import Box, Cycle, Interval, Polygon, SeparableIntensity, load, save
from hplus.rates.map_by_time import bins_of, masses_by_bin
from hplus.rates.map_learning import joint_statistic, learn_map_by_time
from hplus.rates.ratio import RateRatio
from hplus.rates.trees.evidence import mean_gain
from hplus.rates.trees.profile_trees import Shift, _splits, balanced, learned_concentrations

CITY, DAY = Box((0, 0), (8, 8), unit="km"), Cycle(24, unit="h")
CENTRE, NIGHT = Box((3, 3), (5, 5)), Interval(0, 8)


def events(n=4000, change=0.5, seed=0):
    """Places of a city, with an extra share of those of the night in the centre."""
    rng = np.random.RandomState(seed)
    X = np.column_stack([8.0 * rng.beta(2, 2, size=(n, 2)), 24.0 * rng.random_sample(n)])
    moved = (X[:, 2] < 8.0) & (rng.random_sample(n) < change)
    X[moved, :2] = 3.0 + 2.0 * rng.random_sample((int(moved.sum()), 2))
    return X


@pytest.fixture(scope="module")
def model():
    return SeparableIntensity(CITY * DAY, model="tree", random_state=0, dependence="auto").fit(
        events()
    )


def test_the_centre_is_busier_at_night_and_the_evidence_says_so(model):
    assert model.map_by_time_.log_evidence > 50.0
    night, noon = model.predict([[4.0, 4.0, 3.0], [4.0, 4.0, 14.0]])
    assert night > 2.0 * noon
    edge_night, edge_noon = model.predict([[1.0, 6.5, 3.0], [1.0, 6.5, 14.0]])
    assert edge_night < edge_noon


def test_independent_places_and_times_have_no_changing_map():
    assert learn_map_by_time(joint_statistic(CITY * DAY, events(change=0.0)), None, 0) is None


def test_rates_by_place_and_by_time_stay_as_they_are(model):
    west = Box((0, 0), (3.3, 8))
    alone = model.place_.expected_count(west)
    assert model.expected_count(west * DAY) == pytest.approx(alone, rel=1e-9)
    assert model.expected_count(CITY * NIGHT) == pytest.approx(
        model.time_.expected_count(NIGHT), rel=1e-9
    )
    assert model.rate_.integral() == pytest.approx(model.expected_count(CITY * DAY), rel=1e-9)


def test_parts_of_place_and_time_add_up(model):
    triangle = Polygon([[1, 1], [6.5, 2], [3, 7.2]])
    halves = [triangle * part for part in (Interval(0, 7), Interval(7, 24))]
    assert sum(model.expected_count(halves)) == pytest.approx(
        model.expected_count(triangle * DAY), rel=1e-6
    )
    boxes = [Box((a, 0), (b, 8)) * NIGHT for a, b in ((0, 2.7), (2.7, 5.1), (5.1, 8))]
    assert sum(model.expected_count(boxes)) == pytest.approx(
        model.expected_count(CITY * NIGHT), rel=1e-9
    )


def test_expected_counts_are_integrals_of_the_rate(model):
    region = Box((3.1, 3.2), (3.6, 3.9)) * Interval(2, 3)
    nodes, weights = region.quadrature(40)
    assert model.expected_count(region) == pytest.approx(weights @ model.predict(nodes), rel=0.03)


def test_counts_of_the_night_in_the_centre_are_near_those_observed(model):
    X = events()
    region = CENTRE * NIGHT
    observed = np.sum(region.contains(X))
    separable = model.place_.expected_count(CENTRE) * model.time_.expected_count(NIGHT) / len(X)
    # trees shrink what one place alone does towards what all do
    assert separable < 0.65 * model.expected_count(region)
    assert 0.65 * observed < model.expected_count(region) < observed
    low, high = model.count_interval(region)
    assert low < model.expected_count(region) < high
    assert high - low < 0.4 * observed


def test_bands_contain_the_rate_and_are_wider_than_without_a_change(model):
    X = [[4.0, 4.0, 3.0], [1.0, 6.5, 14.0]]
    low, high = model.predict_interval(X)
    rates = model.predict(X)
    assert np.all((low < rates) & (rates < high))
    plain = SeparableIntensity(CITY * DAY).join(model.place_, model.time_)
    below, above = plain.predict_interval(X)
    assert np.all(np.log(high / low) > np.log(above / below))


def test_samples_are_where_events_are_expected(model):
    X = model.rate_.sample(4000, np.random.RandomState(1))
    share = np.mean((CENTRE * NIGHT).contains(X))
    assert share == pytest.approx(model.expected_count(CENTRE * NIGHT) / 4000.0, abs=0.02)


def test_the_peak_is_at_night_in_the_centre_and_has_its_rate(model):
    place, rate = model.peak()
    assert (CENTRE * NIGHT).contains([place])[0]
    assert model.predict([place])[0] == pytest.approx(rate)


def test_a_file_gives_the_same_answers_and_a_ratio_is_1_with_itself(model, tmp_path):
    save(model, tmp_path / "m.hplus")
    again, X = load(tmp_path / "m.hplus"), events(50, seed=5)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X)[1], model.predict_interval(X)[1])
    ratio = RateRatio(model.window, model.rate_, again.rate_)
    np.testing.assert_allclose(ratio.predict(X), 1.0)
    low, high = ratio.count_ratio_interval(CENTRE * NIGHT)
    assert low < 1.0 < high


def test_pairs_of_statistics_do_not_say_which_place_goes_with_which_time():
    X = events(100)
    pair = tuple(joint_statistic(CITY * DAY, X) for _ in range(2))
    with pytest.raises(ValueError, match="pair of Statistics"):
        SeparableIntensity(CITY * DAY, dependence="auto")._joint(pair)


def test_the_evidence_of_halves_is_that_of_beta_binomial_counts():
    n, s, A = np.array([[3.0, 9.0], [6.0, 1.0]]), np.array([[0.4]]), 7.0
    every, found = _splits(n[:, None], s)
    total = n.sum(axis=1)
    exact = betabinom.logpmf(n[:, 0], total, A * 0.4, A * 0.6) - binom.logpmf(n[:, 0], total, 0.4)
    assert every == 1
    assert mean_gain(A, np.ones(2), found) == pytest.approx(exact.sum())


def test_a_table_moved_by_a_shift_comes_back():
    table = np.random.default_rng(0).random((4, 4, 8))
    shift = Shift((3, 1, 5), (False, False, True))
    assert shift.moved(table).shape == (8, 8, 8)
    np.testing.assert_array_equal(shift.back(shift.moved(table), table.shape), table)


def test_balanced_ratios_have_means_of_1():
    rng = np.random.default_rng(0)
    ratios, p, t = rng.random((3, 6, 5)) + 0.5, rng.random(6), rng.random(5)
    found = balanced(ratios, p, t)
    np.testing.assert_allclose(found @ (t / t.sum()), 1.0)
    np.testing.assert_allclose(np.einsum("c,kcb->kb", p / p.sum(), found), 1.0)


def test_cells_differ_at_the_sizes_where_they_do():
    """Neighbouring cells of 16 differ between the halves of the day, larger ones do not."""
    table = np.full((16, 4), 40.0)
    table[::2, :2] += 30.0
    table[1::2, 2:] += 30.0
    concentrations, gains = learned_concentrations(table, (False, True), 3.0, 0)
    assert gains[-1].max() > 50.0
    assert np.all(gains[:3] < 3.0)
    assert np.isfinite(concentrations[-1]).any()


def test_a_week_is_folded_into_days():
    window = CITY * Cycle(168, unit="h")
    assert bins_of(np.array([1.0, 25.0, 167.9, 168.0]), window, 24.0, 8).tolist() == [0, 0, 7, 7]

    class Flat:
        def integrals(self, parts):
            return np.array([part.volume for part in parts])

    masses = masses_by_bin(Flat(), window, Interval(20, 30), 24.0, 8)
    np.testing.assert_allclose(masses, [3, 3, 0, 0, 0, 0, 1, 3])
