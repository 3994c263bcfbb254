"""Forecast: counts to come, with all that is uncertain about them."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.base import clone

from hplus import Forecast, Interval, load, save

DAYS = Interval(0.0, 120.0, unit="day")
NEXT = [Interval(120.0, 121.0), Interval(121.0, 127.0), Interval(127.0, 148.0)]


def daily(seed=0, rate=10.0):
    """A daily cycle at a flat rate, and a high rate in the last month."""
    rng = np.random.RandomState(seed)
    t = rng.uniform(0.0, 120.0, rng.poisson(4.0 * rate * 120))
    keep = (1.0 + 0.8 * np.sin(2.0 * np.pi * t)) * np.where(t > 90.0, 2.0, 1.0)
    return t[rng.uniform(0.0, 4.0, len(t)) < keep]


@pytest.fixture(scope="module")
def model():
    return Forecast(DAYS, 200.0, ("day", "year")).fit(daily())


def test_counts_of_parts_add_up_and_so_does_each_future(model):
    whole = Interval(120.0, 148.0)
    assert sum(model.expected_count(NEXT)) == pytest.approx(model.expected_count(whole), rel=1e-9)
    draws = model.count_draws([*NEXT, whole])
    np.testing.assert_allclose(draws[:3].sum(axis=0), draws[3], rtol=1e-9)
    assert draws[3].mean() == pytest.approx(model.expected_count(whole), rel=0.05)
    # neighbours share their future
    assert np.corrcoef(draws[1], draws[2])[0, 1] > 0.3


def test_the_past_is_what_was_observed(model):
    t = daily()
    for low, high in ((0.0, 90.0), (90.0, 120.0)):
        n = np.sum((t >= low) & (t < high))
        assert model.expected_count(Interval(low, high)) == pytest.approx(n, rel=0.05)


def test_the_cycle_goes_on_in_phase(model):
    phase = np.linspace(0.02, 0.98, 25)
    later = model.predict(130.0 + phase)
    assert np.corrcoef(later, np.sin(2.0 * np.pi * phase))[0, 1] > 0.95
    np.testing.assert_allclose(
        later / later.mean(), model.predict(300.0 + phase) / model.predict(300.0 + phase).mean(),
        rtol=1e-6,
    )  # fmt: skip
    day, year = model.cycles_
    assert day.kept
    assert day.gain > 0.1
    assert not year.kept
    assert "3 are needed" in year.reason


def test_intervals_widen_with_the_lead_and_the_mean_returns_to_its_level(model):
    regions = [Interval(a, a + 7.0) for a in (120.0, 148.0, 300.0)]
    low, high = model.count_interval(regions)
    assert (low < model.expected_count(regions)).all()
    ratio = np.log((high + 1.0) / (low + 1.0))
    assert (np.diff(ratio) > 0.0).all()
    expected, usual = model.expected_count(regions), model.total_ * 7.0 / 120.0
    # 90 days at half the rate of the last 30
    assert expected[0] > expected[2] > 0.5 * usual
    wide = model.count_interval(regions[0], 0.99)
    assert wide[0] <= low[0] <= high[0] <= wide[1]


def test_more_varies_than_chance_and_it_says_so(model):
    assert model.dispersion_.index > 2.0
    assert "200\xa0days has" in str(model.dispersion_)
    flat = np.random.RandomState(0).uniform(0.0, 120.0, 1200)
    other = Forecast(DAYS, 7.0, ()).fit(flat)
    assert 1.0 < other.dispersion_.index < 1.8
    assert other.dispersion_.length == 7.0


def test_how_much_counts_vary_does_not_depend_on_one_surge(model, monkeypatch):
    means = np.random.RandomState(0).normal(100.0, 10.0, 960)
    monkeypatch.setattr(type(model.rate_), "count_draws", lambda *_: means[None])
    usual = model.rate_.dispersion("day").index
    assert usual == pytest.approx(2.0, abs=0.1)
    means[7] = 1e5
    assert model.rate_.dispersion("day").index == pytest.approx(usual, abs=0.1)


@pytest.mark.usefixtures("thoroughly")
def test_what_changes_from_week_to_week_lasts_until_the_week_ends():
    rng = np.random.RandomState(0)
    rates = np.append(rng.permutation(np.tile([6.0, 8.0, 12.0, 17.0, 24.0], 4)), 36.0)
    t = np.concatenate([7 * i + rng.uniform(0, 7, rng.poisson(7 * r)) for i, r in enumerate(rates)])
    model = Forecast(Interval(0.0, 143.0, unit="day"), 14.0, ("week",)).fit(t[t < 143.0])
    rate = model.predict(np.array([143.5, 146.5, 147.5, 153.5]))
    # the level may have jumped to that of the last week
    np.testing.assert_allclose(rate, [36.0, 36.0, 14.5, 14.5], rtol=0.35)


def test_a_level_that_jumped_stays_where_it_is():
    rng = np.random.RandomState(3)
    t = np.concatenate([rng.uniform(0.0, 90.0, 900), rng.uniform(90.0, 120.0, 600)])
    model = Forecast(DAYS, 28.0, ()).fit(t)
    assert np.mean(model.rate_.jumps > 0) > 0.8
    assert np.median(model.rate_.timeline.edges[model.rate_.jumps]) == pytest.approx(90.0, abs=2.0)
    expected, (low, high) = (f(Interval(120.0, 148.0)) for f in
                             (model.expected_count, model.count_interval))  # fmt: skip
    assert expected == pytest.approx(560.0, rel=0.1)
    assert high - low < 300.0
    flat = Forecast(DAYS, 28.0, ()).fit(rng.uniform(0.0, 120.0, 1200))
    assert np.mean(flat.rate_.jumps > 0) < 0.5


def test_a_last_day_without_records_is_no_jump():
    t = np.random.RandomState(0).uniform(0.0, 119.0, 2000)
    model = Forecast(DAYS, 7.0, ()).fit(t)
    assert model.expected_count(Interval(120.0, 127.0)) == pytest.approx(7 * 2000 / 119, rel=0.15)


def test_a_known_change_makes_a_jump_then_more_likely():
    rng = np.random.RandomState(5)
    t = np.concatenate([rng.uniform(0.0, 100.0, 1000), rng.uniform(100.0, 120.0, 245)])
    unknown, known = (Forecast(DAYS, 7.0, ()).fit(t, changes=at) for at in ([], [100.0]))
    there = known.rate_.timeline.blocks_of(np.array([100.0]))
    assert np.mean(known.rate_.jumps == there) > np.mean(unknown.rate_.jumps == there) + 0.1
    with pytest.raises(ValueError, match="changes must lie in the window"):
        Forecast(DAYS, 7.0, ()).fit(t, changes=[130.0])


def test_it_can_be_kept_and_repeated(model, tmp_path):
    save(model, tmp_path / "model.hplus")
    again = load(tmp_path / "model.hplus")
    np.testing.assert_array_equal(again.count_draws(NEXT), model.count_draws(NEXT))
    np.testing.assert_array_equal(again.predict([121.3]), model.predict([[121.3]]))
    assert str(again.cycles_) == str(model.cycles_)
    assert clone(model).get_params() == model.get_params()


def test_samples_likelihood_and_bands(model):
    paths = model.sample(200, random_state=0)
    assert all(model.reach_.contains(path).all() and (path >= 120.0).all() for path in paths)
    mean = np.mean([np.sum(path < 148.0) for path in paths])
    draws = model.count_draws(Interval(120.0, 148.0))[0]
    assert abs(mean - draws.mean()) < 5.0 * draws.std() / np.sqrt(200)
    t = daily()
    constant = np.log(1.0 / model.reach_.volume)
    assert model.score(t) > constant
    part = model.log_likelihood(t[t < 60.0], region=Interval(0.0, 60.0))
    rest = model.log_likelihood(t[t >= 60.0], region=Interval(60.0, 320.0))
    assert part + rest == pytest.approx(model.log_likelihood(t), rel=1e-9)
    low, high = model.predict_interval([125.2])
    assert 0.0 < low[0] < model.predict([125.2])[0] < high[0]


def test_gaps_are_no_zeros():
    t = daily(1)
    gap = (t > 40.0) & (t < 70.0)
    model = Forecast(DAYS, 7.0, ()).fit(t[~gap], exposure=lambda x: (x < 40.0) | (x >= 70.0))
    assert model.expected_count(Interval(40.0, 70.0)) == pytest.approx(gap.sum(), rel=0.35)
    t = t[::10]
    twice, growing = (
        Forecast(DAYS, 7.0, ()).fit(t, exposure=often).predict([1.0])[0]
        for often in (2.0, np.array([1.0, 2.0]))
    )
    assert growing > 1.2 * twice
    with pytest.raises(ValueError, match="exposure must be above 0 where there are events"):
        Forecast(DAYS, 7.0, ()).fit(t, exposure=lambda x: (x[:, 0] < 40.0).astype(float))


@pytest.mark.parametrize(
    ("times", "horizon"),
    [
        ([1.0, 2.0, 2.0, 30.0, 119.0], 7.0),
        (np.full(50, 3.0), 1000.0),
        (np.random.RandomState(0).uniform(0.0, 60.0, 200), 0.0),
    ],
)
def test_few_events_ties_and_silence_give_finite_answers(times, horizon):
    model = Forecast(DAYS, horizon, ("day", 30.0)).fit(times)
    region = Interval(119.0, 120.0 + horizon)
    low, high = model.count_interval(region)
    assert 0.0 <= low <= high < 50.0 * (len(times) + 10) * region.volume
    assert np.isfinite(model.predict([0.0, 119.9, 120.0 + horizon])).all()
    assert np.isfinite(model.dispersion_.index)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"window": 3.0}, TypeError, "window must be an Interval of time"),
        ({"horizon": -1.0}, ValueError, "horizon must be a finite number of at least 0"),
        ({"cycles": ("hour",)}, ValueError, "cycles must be names among day, week, year"),
        ({"cycles": "day"}, TypeError, "cycles must be a sequence"),
        ({"cycles": (-2.0,)}, ValueError, "every cycle must be a positive"),
        ({"window": Interval(0.0, 120.0, unit="game")}, ValueError, "numbers unless the unit"),
    ],
)
def test_a_bad_parameter_gets_one_sentence(change, error, words):
    with pytest.raises(error, match=words):
        Forecast(DAYS, 7.0).set_params(**change).fit([1.0, 2.0])


def test_bad_times_and_regions_get_one_sentence(model):
    with pytest.raises(ValueError, match="at least one event"):
        Forecast(DAYS, 7.0).fit([])
    with pytest.raises(ValueError, match="must lie in the window"):
        Forecast(DAYS, 7.0).fit([130.0])
    with pytest.raises(ValueError, match="use a longer horizon"):
        model.expected_count(Interval(310.0, 330.0))
    with pytest.raises(ValueError, match=r"shape \(n,\) or \(n, 1\)"):
        model.predict(np.zeros((2, 2)))


@pytest.mark.skipif(not os.environ.get("HPLUS_SLOW"), reason="set HPLUS_SLOW=1: 40 fits")
def test_intervals_hold_as_often_as_they_say():
    inside = []
    for seed in range(40):
        rng = np.random.RandomState(seed)
        rates = 8.0 * rng.gamma(6.0, 1.0 / 6.0, 22)
        t = np.concatenate([rng.uniform(7 * i, 7 * i + 7, rng.poisson(7 * r))
                            for i, r in enumerate(rates)])  # fmt: skip
        model = Forecast(Interval(0.0, 126.0), 28.0, ()).fit(t[t < 126.0])
        regions = [Interval(126.0, 126.0 + d) for d in (1.0, 7.0, 28.0)]
        low, high = model.count_interval(regions)
        counts = [np.sum((t >= 126.0) & (t < r.high)) for r in regions]
        inside.append((low <= counts) & (counts <= high))
    assert 0.8 < np.mean(inside) < 0.99
