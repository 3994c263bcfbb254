"""Rounded and repeated positions are found with their step, and nothing in continuous ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hplus import Box, Cycle, Intensity, Interval
from hplus.rates.positions import Positions, find_positions, find_step, spread_sides
from hplus.rates.rounding import common_step
from hplus.rates.statistic import Statistic

SQUARE = Box((-1.0, -1.0), (2.0, 2.0))

SHAPES = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.normal(size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: np.exp(3.0 * rng.normal(size=n)),
    "clusters": lambda rng, n: rng.integers(0, 9, n) ** 0.5 + 1e-4 * rng.normal(size=n),
    "tight clusters": lambda rng, n: rng.integers(0, 99, n) ** 0.5 + 1e-8 * rng.normal(size=n),
}
"""Continuous distributions, smooth or not."""


def axis(x, low, side, bits):
    """Values of one axis in units of the lattice and how often each occurs."""
    return np.unique((np.floor((x - low) / side * 2.0**bits)).astype(np.int64), return_counts=True)


def found(X, window=SQUARE):
    return find_positions(Statistic.of(window, np.asarray(X).reshape(-1, window.dimension)))


seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(sorted(SHAPES)), st.integers(2, 400), st.sampled_from([20, 26, 50]))
def test_continuous_values_have_no_step(seed, shape, n, bits):
    x = SHAPES[shape](np.random.default_rng(seed), n)
    assert common_step(*axis(x, x.min(), 1.01 * np.ptp(x), bits)) == 0.0


@settings(max_examples=40, deadline=None)
@given(seeds, st.floats(1e-3, 0.02), st.floats(-1e3, 1e3), st.integers(50, 500), st.booleans())
def test_the_step_of_rounded_values_is_found_whatever_its_size_and_offset(
    seed, step, offset, n, strays
):
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    rounded = step * np.rint(x / step)
    if strays:
        rounded[: n // 10] = x[: n // 10]
    unit = 1.2 / 2.0**26
    h = common_step(*axis(rounded + offset, offset - 0.1, 1.2, 26)) * unit
    assert h == pytest.approx(step, rel=1e-4)


@settings(max_examples=8, deadline=None)
@given(seeds, st.floats(0.002, 0.02), st.floats(0.002, 0.02))
def test_each_axis_has_its_own_step(seed, a, b):
    X = np.random.default_rng(seed).random((300, 2))
    steps = np.array([a, b])
    np.testing.assert_allclose(found(np.rint(X / steps) * steps).rounding, steps, rtol=1e-4)
    X[:, 0] = a * np.rint(X[:, 0] / a)
    np.testing.assert_allclose(found(X).rounding, [a, 0.0], rtol=1e-4)


@pytest.mark.parametrize("n", [50, 2000, 200_000])
def test_times_floored_to_milliseconds_are_found_in_seconds_since_1970(n):
    t = np.floor(1e3 * (1.7e9 + 3600.0 * np.random.default_rng(n).random(n))) / 1e3
    p = found(t, Interval(1.7e9 - 1.0, 1.7e9 + 3601.0, unit="s"))
    assert p.rounding[0] == pytest.approx(1e-3, rel=1e-4)
    assert p.words(("s",)) == "positions are rounded to 1 ms: nothing finer is claimed"


def test_values_that_are_in_part_rounded_further_have_the_finer_step():
    x = np.round(np.random.default_rng(0).random(400), 4)
    x[:160] = np.round(x[:160], 2)
    assert found(x, Interval(0.0, 1.0)).rounding[0] == pytest.approx(1e-4)


def test_rounded_values_under_a_curve_have_the_typical_gap():
    latitude = np.round(40.0 + 0.5 * np.random.default_rng(1).random(50_000), 4)
    y = 6371.0 * np.sin(np.radians(latitude))
    step = found(y, Interval(4090.0, 4160.0, unit="km")).step[0]
    assert step == pytest.approx(6371.0 * np.radians(1e-4) * np.cos(np.radians(40.25)), rel=0.02)


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(50, 1000))
def test_stations_stop_the_map_at_the_distance_between_them(seed, stations):
    rng = np.random.default_rng(seed)
    places = rng.random((stations, 2))
    p = found(places[rng.integers(0, stations, 10 * stations)])
    assert p.repeated > 0.99
    np.testing.assert_allclose(p.step * stations**0.5, 0.5, rtol=0.5)


def test_half_of_the_events_at_addresses_stop_the_map_there():
    rng = np.random.default_rng(2)
    X = rng.random((5000, 2))
    X[:2500] = X[rng.integers(2500, 3750, 2500)]
    p = found(X, Box((0, 0), (1, 1), unit="km"))
    assert 0.4 < p.repeated < 0.9
    assert 0.003 < p.step[0] < 0.02


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(1, 5), st.floats(0.05, 0.2))
def test_piles_of_events_leave_the_map_of_the_others_fine(seed, piles, share):
    rng = np.random.default_rng(seed)
    X = rng.random((4000, 2))
    typical = 0.5 / 4000**0.5
    k = int(share * 4000)
    X[:k] = X[rng.integers(k, k + piles, k)]
    s = Statistic.of(SQUARE, X)
    p = find_positions(s)
    assert np.all(p.step < 0.3 * typical)
    units = s.lattice.cell_sides(s.depth)
    sides = spread_sides(s.lattice.indices(s.codes), s.counts, p.step / units) * units
    assert np.all(sides[s.counts == 1] <= p.step * 1.0001)
    assert np.median(sides[s.counts > 10]) > 0.3 * typical


def test_accidental_repeats_hardly_limit_the_map():
    X = np.random.default_rng(3).random((2000, 2))
    X[0] = X[1]
    assert np.all(found(X).step < 0.1 * 0.5 / 2000**0.5)


def test_addresses_with_times_stop_the_map_in_place_and_days_in_time():
    rng = np.random.default_rng(4)
    places = rng.random((300, 2))[rng.integers(0, 300, 6000)]
    X = np.c_[places, np.floor(365.0 * rng.random(6000))]
    p = found(X, Box((0, 0), (1, 1), unit="km") * Interval(0, 365, unit="day"))
    assert 0.015 < p.step[0] == p.step[1] < 0.06
    assert p.step[2] == pytest.approx(1.0, rel=1e-3)
    assert p.words(("km", "km", "day")).endswith("m and 1 day")


@pytest.mark.parametrize("n", [30, 1000])
def test_a_coarse_lattice_is_its_own_step(n):
    X = np.random.default_rng(n).integers(0, 5, (n, 2)) / 4
    np.testing.assert_allclose(found(X).step, 0.25, rtol=1e-6)


def test_few_positions():
    assert not found(np.empty((0, 2))).step.any()
    assert not found([[0.3, 0.3]]).step.any()
    assert not found([[0.3, 0.3], [0.7, 0.3], [0.46, 0.4]]).step.any()
    assert not found(np.c_[np.random.default_rng(5).random(99), np.zeros(99)]).step.any()
    np.testing.assert_allclose(found([[0.3, 0.3], [0.7, 0.3]] * 5).step, 0.4, rtol=1e-6)
    np.testing.assert_allclose(found([[0.3, 0.3]] * 5).step, 3.0)
    assert found([[0.3, 0.3]] * 5).repeated == 1.0
    assert found(np.arange(24.0).repeat(3), Cycle(24.0)).step[0] == pytest.approx(1.0)


@pytest.mark.parametrize("others", [0.0, 0.05])
@pytest.mark.parametrize("sites", [1, 2, 5])
def test_events_at_a_few_sites_stay_there(sites, others, rng):
    places = rng.uniform(-1.0, 2.0, (sites, 2))
    X = places[rng.integers(sites, size=400)]
    X = np.where(rng.uniform(size=(400, 1)) < others, rng.uniform(-1.0, 2.0, (400, 2)), X)
    model = Intensity(SQUARE, model="tree").fit(X)
    assert model.positions_.step == pytest.approx(3.0 / 64.0)
    halves = [Box((-1.0, -1.0), (0.5, 2.0)), Box((0.5, -1.0), (2.0, 2.0))]
    left = np.sum(X[:, 0] < 0.5)
    np.testing.assert_allclose(model.expected_count(halves), [left, 400 - left], atol=3.0)
    again = model.positions_.spread(SQUARE, X, np.random.RandomState(1))
    assert model.score(again) > 3.0


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 40), st.integers(1, 3))
def test_repeats_are_counted_as_events(seed, m, d):
    rng = np.random.default_rng(seed)
    indices = np.unique(rng.integers(0, 2**20, (m, d)), axis=0)
    counts = rng.integers(1, 4, len(indices))
    share = counts[counts > 1].sum() / counts.sum()
    assert find_step(indices, counts, np.empty((d, 0))).repeated == pytest.approx(share)


FINER = "nothing finer is claimed"
REPEATS = "of the events share their exact position with another: the map stops at"


@pytest.mark.parametrize(
    ("rounding", "spacing", "repeated", "unit", "words"),
    [
        ((0.1, 0.1), (0, 0), 0.3, "ft", f"positions are rounded to 0.1 ft: {FINER}"),
        ((0.001, 0), (0, 0), 0, "km", f"positions along x are rounded to 1 m: {FINER}"),
        ((0, 0), (0.0401, 0.0401), 0.51, "km", f"half {REPEATS} 40 m"),
        ((0.001, 0.001), (0.04, 0.04), 0.12, "", f"12 % {REPEATS} 0.04"),
        ((0, 0), (3, 3), 1.0, "", f"all {REPEATS} 3"),
        ((0, 0), (0, 0), 0, "", ""),
    ],
)
def test_what_limits_the_map_is_said_in_a_sentence(rounding, spacing, repeated, unit, words):
    p = Positions(np.array(rounding, float), np.array(spacing, float), repeated)
    assert p.words((unit, unit)).replace("\u00a0", " ") == words
