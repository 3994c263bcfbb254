"""Places and times learned apart: the product of two rates, which adds up and knows its limits."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Cycle, Intensity, Interval, SeparableIntensity, load, save

pytestmark = pytest.mark.usefixtures("few_parts")

PLACE, DAY = Interval(0.0, 10.0, unit="km"), Cycle(24.0, unit="h")


def pattern(n=400, seed=0):
    rng = np.random.RandomState(seed)
    return np.column_stack([10 * rng.beta(2, 5, n), (rng.normal(22, 3, n)) % 24])


@pytest.fixture(scope="module")
def model():
    return SeparableIntensity(PLACE * DAY).fit(pattern(), exposure=8.0)


def test_the_rate_is_the_product_of_the_two_fits(model):
    X = (PLACE * DAY).sample(50, 1)
    place, time = (
        Intensity(PLACE).fit(pattern()[:, :1]),
        Intensity(DAY).fit(pattern()[:, 1:]),
    )
    want = place.predict(X[:, :1]) * time.predict(X[:, 1:]) / 400 / 8.0
    np.testing.assert_allclose(model.predict(X), want, rtol=1e-9)


def test_counts_of_parts_add_up_to_the_events_per_exposure(model):
    parts = [
        Interval(a, b) * Interval(s, t) for a, b in ((0, 3), (3, 10)) for s, t in ((0, 7), (7, 24))
    ]
    assert sum(model.expected_count(parts)) == pytest.approx(50.0, rel=1e-9)
    assert model.expected_count(PLACE * DAY, exposure=2.0) == pytest.approx(100.0, rel=1e-9)


def test_bands_contain_the_rate_and_count_intervals_the_count(model):
    X = (PLACE * DAY).sample(50, 2)
    low, high = model.predict_interval(X)
    assert (low >= 0).all()
    assert np.mean((low <= model.predict(X)) & (model.predict(X) <= high)) > 0.9
    a, b = model.count_interval(PLACE * DAY)
    assert 0 < 50 - a < 5 * np.sqrt(50)
    assert 0 < b - 50 < 5 * np.sqrt(50)


def test_midnight_is_one_moment_and_samples_lie_in_the_window(model):
    np.testing.assert_array_equal(model.predict([[2.0, 0.0]]), model.predict([[2.0, 24.0]]))
    (events,) = model.sample(random_state=0)
    assert (PLACE * DAY).contains(events).all()
    where, rate = model.peak()
    assert rate == pytest.approx(model.predict(where[None])[0])
    assert rate >= model.predict(events).max()


def test_it_can_be_kept(model, tmp_path):
    save(model, tmp_path / "model.hplus")
    X = (PLACE * DAY).sample(20, 3)
    np.testing.assert_array_equal(load(tmp_path / "model.hplus").predict(X), model.predict(X))


def test_regions_and_windows_must_be_products(model):
    with pytest.raises(ValueError, match="product of a place and a time"):
        model.expected_count(Box((0, 0), (1, 1)))
    with pytest.raises(TypeError, match="must be a product"):
        SeparableIntensity(PLACE).fit(pattern()[:, :1])


def test_priors_that_another_fit_learned_give_the_same_rate_without_a_search(coarsely):
    window = Box((0.0, 0.0), (1.0, 1.0))
    X = np.random.RandomState(0).beta(2, 3, (60, 2))
    with coarsely():
        slow = Intensity(window).fit(X)
        quick = Intensity(window, slow.mixture_).fit(X)
        again = Intensity(window).learn_mixture(X)
    assert [prior for _, prior in quick.mixture_] == [prior for _, prior in slow.mixture_]
    at = window.sample(50, 0)
    np.testing.assert_allclose(quick.predict(at), slow.predict(at), rtol=0.02)
    # without the rate, priors are as those of a fit
    assert again == slow.mixture_
    assert Intensity(Interval(0, 1)).learn_mixture(X[:, :1]) == "auto"
