"""Rates on a cycle: laws are shifts around it, the oracle is a known rate that goes round."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hplus import Cycle, Density, Gaussian, Intensity, Interval, Linear, Periodic, load, save
from hplus.rates.binned import COARSE_CELLS, GRID_DOUBLINGS

pytestmark = pytest.mark.usefixtures("few_parts")

DAY = Cycle(24, unit="h")
HOURS = np.linspace(0.0, 24.0, 97)[:, None]


def rate(x):
    """A rate whose peak is half an hour before midnight."""
    return 20.0 * np.exp(1.2 * np.cos(2.0 * np.pi * (x - 23.5) / 24.0))


def events(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 24.0, rng.poisson(24.0 * 67.0))
    return x[rng.uniform(0.0, 67.0, len(x)) < rate(x)][:, None]


X = events(1)


@pytest.fixture(scope="module")
def fitted():
    return Intensity(DAY).fit(X)


def error(model):
    return np.sqrt(np.mean((model.predict(HOURS) - rate(HOURS[:, 0])) ** 2))


def test_both_ends_of_a_cycle_have_one_rate_and_one_band(fitted):
    ends = [[0.0], [24.0]]
    for found in (fitted.predict(ends), *fitted.predict_interval(ends)):
        assert found[0] == found[1]
    just_before = np.nextafter(24.0, 0.0)
    assert_allclose(fitted.predict([[just_before]]), fitted.predict([[0.0]]), rtol=1e-9)


@pytest.mark.parametrize("turn", [3.0, 21.0])
def test_a_shifted_pattern_has_the_shifted_rate_and_band(turn, fitted):
    shifted = Intensity(DAY).fit((X + turn) % 24.0)
    there = (HOURS + turn) % 24.0
    assert_allclose(shifted.predict(there), fitted.predict(HOURS), rtol=1e-3)
    for here, moved in zip(
        fitted.predict_interval(HOURS), shifted.predict_interval(there), strict=True
    ):
        assert_allclose(moved, here, rtol=0.01)


def test_a_rate_that_goes_round_is_found_better_on_a_cycle_than_on_an_interval():
    patterns = [events(seed) for seed in (2, 4)]
    cycle, line = (
        np.mean([error(Intensity(window).fit(x)) for x in patterns])
        for window in (DAY, Interval(0, 24))
    )
    assert cycle < 0.9 * line


def test_counts_of_parts_of_a_cycle_add_up_and_its_peak_is_near_midnight(fitted):
    night = [Interval(21, 24), Interval(0, 6)]
    parts = fitted.expected_count([*night, Interval(6, 21)])
    assert parts.sum() == pytest.approx(len(X), rel=1e-9)
    assert fitted.expected_count(DAY) == pytest.approx(len(X), rel=1e-9)
    (place,), top = fitted.peak()
    assert min(place, 24.0 - place) < 3.0
    assert top >= fitted.predict(HOURS).max()
    sample = fitted.sample(1, random_state=0)[0]
    share = np.mean((sample > 21.0) | (sample < 6.0))
    assert share == pytest.approx(parts[:2].sum() / len(X), abs=0.08)


def test_a_hard_to_tell_rate_is_nearly_constant_on_a_cycle():
    x = np.linspace(0.0, 24.0, 60, endpoint=False)[:, None]
    assert_allclose(Intensity(DAY).fit(x).predict(HOURS), 2.5, rtol=0.02)


@pytest.mark.parametrize("kernel", [Gaussian(3.0), Periodic(24.0), 0.5 * Periodic(24.0)])
@pytest.mark.usefixtures("thoroughly")
def test_a_given_kernel_goes_round_a_cycle(kernel):
    model = Intensity(DAY, kernel, penalty=1.0).fit(X)
    shifted = Intensity(DAY, kernel, penalty=1.0).fit((X + 21.0) % 24.0)
    assert_allclose(shifted.predict((HOURS + 21.0) % 24.0), model.predict(HOURS), rtol=1e-3)


def test_a_kernel_that_cannot_go_round_is_refused_with_one_sentence():
    with pytest.raises(ValueError, match="kernel must be periodic on the axis of a Cycle, or"):
        Intensity(DAY, Linear(), penalty=1.0).fit(X)


def test_place_times_cycle_is_shifted_with_its_events_and_closed_on_one_axis(tmp_path, monkeypatch):
    monkeypatch.setitem(COARSE_CELLS, 2, 32)
    monkeypatch.setitem(GRID_DOUBLINGS, 2, 1)
    window = Interval(0, 3, unit="km") * DAY
    rng = np.random.default_rng(0)
    Y = np.column_stack([rng.beta(2, 3, len(X)) * 3.0, X[:, 0]])
    Z = rng.uniform(0.0, (3.0, 24.0), (300, 2))
    turn = (0.0, 18.0)
    here = Intensity(window).fit(Y)
    there = Intensity(window, here.mixture_).fit((Y + turn) % (3.1, 24.0))
    moved = there.predict((Z + turn) % (3.1, 24.0))
    assert np.median(np.abs(moved / here.predict(Z) - 1.0)) < 0.02
    seam = Z * (1.0, 0.0)
    assert_array_equal(here.predict(seam), here.predict(np.add(seam, (0.0, 24.0))))
    assert np.ptp(here.predict([[0.0, 5.0], [3.0, 5.0]])) > 0.0
    save(here, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(Z), here.predict(Z))


def test_a_density_on_a_cycle_is_closed_and_integrates_to_one():
    model = Density(DAY).fit(X)
    assert model.probability(DAY) == pytest.approx(1.0)
    assert model.predict([[0.0]]) == model.predict([[24.0]])


def test_a_cycle_in_the_unit_of_a_line_has_a_ruler_of_its_own():
    window = Interval(0, 8760, unit="h") * DAY
    assert_allclose(window.longest_sides(), [8760.0, 24.0])
    assert window.closed_axes() == (1,)
    assert (DAY * DAY).closed_axes() == (0, 1)
