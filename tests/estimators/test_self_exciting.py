"""SelfExciting: what a user sees."""

from __future__ import annotations

import warnings
from copy import copy

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from hplus import Box, Interval, Polygon, SelfExciting, _checks
from hplus.estimators import futures
from hplus.rates.excitation import excitation_fit, parents
from hplus.rates.excitation.conditional_rate import rate_given
from hplus.rates.excitation.descendants import simulate_stages
from hplus.rates.excitation.triggered_sums import triggered_by_each
from hplus.rates.gaps import gap_test, grouped_gaps

UNTIL = 1500.0


def bursts(rng, branching=0.6, until=UNTIL, level=0.4):
    """Times of events with exponential lags of mean 1; those before 0 are history."""
    t = rng.uniform(-30.0, until, rng.poisson(level * (until + 30.0)))
    found = [t]
    while len(t):
        t = np.repeat(t, rng.poisson(branching, len(t)))
        t = t + rng.exponential(1.0, len(t))
        t = t[t < until]
        found.append(t)
    return np.concatenate(found)[:, None]  # unsorted


def in_place(rng, n=400, until=400.0):
    """Events (m, 3) in the unit square, half of them triggered nearby, and their marks."""
    t = rng.uniform(0.0, until, n)
    X = np.column_stack([rng.beta(2, 3, n), rng.random(n), t])
    found, marks = [X], [rng.exponential(0.5, n)]
    while len(X):
        counts = rng.poisson(0.25 * np.exp(marks[-1]))
        X = np.repeat(X, counts, axis=0)
        X = X + np.column_stack([rng.normal(0.0, 0.01, (len(X), 2)), rng.exponential(0.5, len(X))])
        inside = np.all((X >= 0.0) & (X <= [1.0, 1.0, until]), axis=1)
        X = X[inside]
        found.append(X)
        marks.append(rng.exponential(0.5, len(X)))
    return np.concatenate(found), np.concatenate(marks)


@pytest.fixture(scope="module")
def times():
    return bursts(np.random.default_rng(0))


@pytest.fixture(scope="module")
def line(times):
    return SelfExciting(Interval(0.0, UNTIL, unit="day")).fit(times)


@pytest.fixture(scope="module")
def planar_events():
    return in_place(np.random.default_rng(1))


SQUARE = Box([0.0, 0.0], [1.0, 1.0], unit="km") * Interval(0.0, 400.0, unit="day")


@pytest.fixture(scope="module")
def planar(planar_events):
    X, marks = planar_events
    return SelfExciting(SQUARE).fit(X, marks=marks)


def test_one_event_is_enough_for_a_forecast():
    model = SelfExciting(SQUARE, random_state=0).fit([[0.3, 0.4, 50.0]])
    # all draws of its weights trigger more than one event each, the most probable ones do not
    assert model.branching_ratio_ < 1.0
    assert model.forecast(4.0, n_paths=200, random_state=0).counts.mean() < 0.2


def test_branching_ratio_and_trigger_are_recovered(line):
    low, high = line.branching_interval_
    assert low < line.branching_ratio_ < high
    assert line.branching_ratio_ == pytest.approx(0.6, abs=0.1)
    lags = np.array([0.2, 1.0, 2.0])
    np.testing.assert_allclose(line.trigger_(lags), 0.6 * np.exp(-lags), rtol=0.4)
    assert line.unit_ == "1/day"
    assert line.solution_.gap <= 1e-4 * line.total_
    assert 0.0 <= line.smoothing_cost_ < 0.05


def test_the_longest_lag_may_be_chosen_from_a_part_of_the_events(line, times, monkeypatch):
    monkeypatch.setattr(excitation_fit, "MAX_EVIDENCE_EVENTS", len(times) // 3)
    found = SelfExciting(Interval(0.0, UNTIL, unit="day")).fit(times)
    low, high = line.branching_interval_
    assert low <= found.branching_ratio_ <= high


def test_the_rate_rises_after_an_event_and_is_positive_everywhere(line, planar):
    before, after, later = line.predict([[700.0], [700.2], [1400.0]], history=[[700.1]])
    assert after > before > 0.0
    assert later == pytest.approx(line.background_.at(np.array([1400.0]), np.zeros((1, 0)), 0)[0])
    near, far = planar.predict(
        [[0.5, 0.5, 100.1], [0.9, 0.9, 100.1]], history=([[0.5, 0.5, 100.0]], [0.5])
    )
    assert near > 10.0 * far > 0.0
    weak, strong = (
        planar.predict([[0.5, 0.5, 100.1]], history=([[0.5, 0.5, 100.0]], [mark]))[0]
        for mark in (0.1, 2.0)
    )
    assert strong > weak


def test_the_expected_count_of_the_window_is_the_number_of_events(
    line, planar, times, planar_events
):
    assert line.expected_count(Interval(0.0, UNTIL)) == pytest.approx(
        np.sum(times >= 0.0), rel=0.02
    )
    assert planar.expected_count(SQUARE) == pytest.approx(len(planar_events[0]), rel=0.05)
    left, right = Box([0, 0], [0.4, 1]) * SQUARE.right, Box([0.4, 0], [1, 1]) * SQUARE.right
    parts = planar.expected_count([left, right])
    assert parts.sum() == pytest.approx(planar.expected_count(SQUARE), rel=1e-3)


def test_a_certificate_holds_in_place_and_rounds_never_fall(planar):
    assert planar.solution_.gap <= 1e-4 * planar.total_
    assert len(planar.log_posteriors_) >= 2
    assert np.all(np.diff(planar.log_posteriors_) >= 0.0)
    assert planar.effects_.productivity(np.array([2.0])) > planar.effects_.productivity(
        np.array([0.0])
    )


def test_log_likelihood_is_the_sum_over_events_less_the_integral(line, times):
    inside = times[times[:, 0] >= 0.0]
    rates = line.predict(inside)
    expected = np.log(rates).sum() - line.expected_count(Interval(0.0, UNTIL))
    assert line.log_likelihood(times) == pytest.approx(expected, rel=1e-9)
    assert line.score(times) == pytest.approx(expected / len(inside), rel=1e-9)


def test_known_events_of_the_period_do_not_happen_again_when_others_are_scored(line):
    period = Interval(1000.0, 1100.0)
    known = line.history_.times[line.history_.times < 1000.0][:, None]
    history = np.vstack([known, [[1050.0]]])
    expected = line.expected_count([period], history=history)[0]
    rate = line.predict([[1050.0]], history=known)[0]
    found = line.log_likelihood([[1050.0]], period=period)
    assert found == pytest.approx(np.log(rate) - expected, rel=1e-9)


def test_a_self_exciting_rate_predicts_fresh_bursts_better_than_a_constant(line):
    fresh = bursts(np.random.default_rng(5))
    n = np.sum(fresh >= 0.0)
    assert line.score(fresh) > np.log(n / UNTIL) - 1.0 + 0.1


def test_rescaled_gaps_are_exponential(line):
    found = gap_test(grouped_gaps(line.rescaled_times()))
    assert found.p_value > 0.001
    assert found.variation == pytest.approx(1.0, abs=0.1)


def test_forecasts_come_from_the_history(line):
    quiet = line.forecast(5.0, random_state=0, history=np.zeros((0, 1)), start=UNTIL)
    burst = np.linspace(UNTIL - 0.5, UNTIL, 30)[:, None]
    busy = line.forecast(5.0, random_state=0, history=burst, start=UNTIL)
    assert busy.expected_count[0] > quiet.expected_count[0] + 8.0
    low, high = busy.count_interval()
    assert low[0] < busy.expected_count[0] < high[0]
    again = line.forecast(5.0, random_state=0, history=burst, start=UNTIL)
    np.testing.assert_array_equal(again.counts, busy.counts)
    assert busy.period == Interval(UNTIL, UNTIL + 5.0)


def test_an_event_at_the_very_start_of_a_forecast_triggers(line):
    at_start = np.full((30, 1), UNTIL)
    quiet, busy = (
        line.forecast(5.0, random_state=0, history=events, start=UNTIL).expected_count[0]
        for events in (np.zeros((0, 1)), at_start)
    )
    assert busy > quiet + 10.0


def test_few_paths_are_of_other_weights_for_other_seeds(line, monkeypatch):
    ratios = []

    def recorded(stages, *rest):
        ratios.append(stages[0].rate.trigger.branching())
        return simulate_stages(stages, *rest)

    monkeypatch.setattr(futures, "simulate_stages", recorded)
    for seed in range(6):
        line.forecast(1.0, n_paths=1, random_state=seed)
    assert len(set(ratios)) > 3


def test_a_forecast_from_later_on_is_that_of_a_long_one(line):
    later = line.forecast(5.0, n_paths=400, start=UNTIL + 200.0, random_state=0)
    long = line.forecast(205.0, n_paths=400, stages=[200.0], random_state=1)
    times, paths = long.simulated.events.times, long.simulated.paths
    counts = np.bincount(paths[times >= UNTIL + 200.0], minlength=400)
    error = np.hypot(later.counts.std(), counts.std()) / 20.0
    assert abs(later.counts.mean() - counts.mean()) < 4.0 * error


def test_a_simulation_that_is_too_large_is_refused_at_once(line):
    said = "on all paths together, got more: use fewer paths, or forecast a shorter time"
    with pytest.raises(OverflowError, match=said):
        line.forecast(1e7, n_paths=1000, random_state=0)
    with pytest.raises(OverflowError, match=said):
        line.sample(100_000)


def test_forecasts_by_place_add_up_and_know_marks(planar):
    parts = [Box([0, 0], [0.5, 1]), Box([0.5, 0], [1, 1])]
    both = planar.forecast(10.0, parts, 200, random_state=1)
    whole = planar.forecast(10.0, None, 200, random_state=1)
    np.testing.assert_array_equal(both.counts.sum(axis=0), whole.counts[0])
    assert np.all(both.chance <= 1.0)
    assert whole.chance_above(0.5)[0] > whole.chance_above(2.0)[0]


def test_an_update_adds_history_without_learning(line, times):
    model = SelfExciting(Interval(0.0, UNTIL)).fit(times)
    ratio = model.branching_ratio_
    model.update([[UNTIL + 1.0], [UNTIL + 1.5]], until=UNTIL + 2.0)
    assert model.branching_ratio_ == ratio
    assert model.predict([[UNTIL + 1.6]]) > line.predict([[UNTIL + 1.6]])
    assert model.forecast(1.0, n_paths=10, random_state=0).period.low == UNTIL + 2.0
    with pytest.raises(ValueError, match="until"):
        model.update([[UNTIL + 1.0]], until=UNTIL + 3.0)


def test_samples_have_as_many_events_as_were_fitted(line, times):
    counts = [len(pattern) for pattern in line.sample(20, random_state=0)]
    assert np.mean(counts) == pytest.approx(np.sum(times >= 0.0), rel=0.25)
    assert np.all(np.diff(line.sample(1, random_state=1)[0][:, 0]) >= 0.0)


def test_parents_are_earlier_events(line, planar):
    for model in (line, planar):
        found = model.parents()
        assert found.background.mean() == pytest.approx(1.0 - model.branching_ratio_, abs=0.2)
        assert np.all(model.history_.times[found.parents] < model.history_.times[found.children])


def test_shares_of_the_background_are_probabilities_of_no_parent(line, planar):
    for model in (line, planar):
        np.testing.assert_allclose(model.background_shares(), model.parents().background)


def test_unlikely_parents_in_place_count_as_much_as_likely_ones(planar):
    known = rate_given(planar.rate_, planar.history_, planar.observed_until_)
    sums = triggered_by_each(known, 0.0)
    assert sums.sum() == pytest.approx(np.sum(1.0 - planar.parents().background))
    listed = planar.parents()
    assert np.all(sums >= np.bincount(listed.parents, listed.probabilities, len(sums)) - 1e-9)


def test_types_tell_who_triggers_whom():
    rng = np.random.default_rng(3)
    cause = rng.uniform(0.0, 1000.0, 600)
    effect = (cause + rng.exponential(0.5, 600))[rng.random(600) < 0.7]
    other = rng.uniform(0.0, 1000.0, 300)
    X = np.concatenate([cause, effect, other])[:, None]
    types = np.repeat(["cause", "effect", "other"], [len(cause), len(effect), len(other)])
    model = SelfExciting(Interval(0.0, 1001.0)).fit(X, types=types)
    assert list(model.types_) == ["cause", "effect", "other"]
    matrix = model.branching_matrix_
    assert matrix[0, 1] == pytest.approx(0.7, abs=0.15)
    matrix = matrix.copy()
    matrix[0, 1] = 0.0
    assert matrix.max() < 0.3
    history = (X, None, types)
    each = [model.predict([[500.0]], types=[kind], history=history)[0] for kind in model.types_]
    assert model.predict([[500.0]], history=history)[0] == pytest.approx(sum(each))


def two_types(rng, until=500.0):
    """Times (n, 1) of events of two types, of which the second has larger marks; marks; types."""
    generation = rng.uniform(0.0, until, 300), rng.integers(0, 2, 300)
    offspring, found = np.array([[0.3, 0.1], [0.05, 0.2]]), []
    while len(generation[0]):
        times, types = generation
        marks = 0.5 * types + rng.exponential(0.5, len(times))
        found.append((times, marks, types))
        counts = rng.poisson(0.5 * np.exp(marks)[:, None] * offspring[types])
        i, kinds = (np.repeat(each.ravel(), counts.ravel()) for each in np.indices(counts.shape))
        later = times[i] + rng.exponential(0.3, len(i))
        generation = later[later < until], kinds[later < until]
    times, marks, types = (np.concatenate(each) for each in zip(*found, strict=True))
    return times[:, None], marks, types


def test_the_branching_matrix_counts_probable_parents_by_type(rng, monkeypatch):
    X, marks, types = two_types(rng)
    model = SelfExciting(Interval(0.0, 500.0)).fit(X, marks=marks, types=types)
    monkeypatch.setattr(parents, "LEAST_PROBABILITY", 0.0)
    listed, kinds, sums = model.parents(), model.history_.types, np.zeros((2, 2))
    np.add.at(sums, (kinds[listed.parents], kinds[listed.children]), listed.probabilities)
    each = sums / np.bincount(kinds)[:, None]
    np.testing.assert_allclose(model.branching_matrix_, each, atol=0.04)
    np.testing.assert_allclose(model.branching_matrix_.sum(axis=1), each.sum(axis=1), rtol=0.15)


def test_a_polygon_is_a_region_too(planar_events):
    X, marks = planar_events
    ring = Polygon([(0, 0), (1, 0), (1, 1), (0, 1)], unit="km")
    early = X[:, 2] < 8.0
    model = SelfExciting(ring * Interval(0.0, 8.0), n_jobs=2).fit(X[early], marks=marks[early])
    counts = model.expected_count([half * Interval(0.0, 8.0) for half in (
        Box([0, 0], [0.5, 1]), Box([0.5, 0], [1, 1]))])  # fmt: skip
    assert counts.sum() == pytest.approx(early.sum(), rel=0.3)


@pytest.mark.filterwarnings("ignore:40 of 40 events have the same time")
@pytest.mark.parametrize(
    "X", [[[5.0]], [[5.0], [5.0], [5.0]], [[1.0], [2.0]], np.repeat([[3.0], [7.0]], 20, axis=0)]
)
def test_few_events_and_ties_have_a_sensible_rate(X):
    model = SelfExciting(Interval(0.0, 10.0)).fit(X)
    rates = model.predict(np.linspace(0.0, 12.0, 50)[:, None])
    assert np.all(np.isfinite(rates))
    assert np.all(rates > 0.0)
    assert model.expected_count(Interval(0.0, 10.0)) == pytest.approx(len(X), rel=0.6)
    assert np.isfinite(model.forecast(1.0, n_paths=20, random_state=0).expected_count[0])


def test_times_rounded_to_days_are_warned_of_and_those_spread_are_not(rng):
    days = np.floor(bursts(rng, until=100.0))
    days = days[days >= 0.0][:, None]
    window = Interval(0.0, 101.0)
    with pytest.warns(UserWarning, match=r"have the same time as another.* X\[:, -1\] \+= rng"):
        SelfExciting(window).fit(days)
    SelfExciting(window).fit(days + rng.uniform(0, 1, days.shape))  # warnings are errors


def test_equal_positions_and_few_events_in_place():
    X = np.array([[0.5, 0.5, 1.0], [0.5, 0.5, 1.0], [0.5, 0.5, 2.0], [0.2, 0.2, 9.0]])
    model = SelfExciting(Box([0, 0], [1, 1]) * Interval(0.0, 10.0)).fit(X)
    rates = model.predict(np.array([[0.5, 0.5, 2.1], [0.9, 0.9, 5.0]]))
    assert np.all(np.isfinite(rates))
    assert np.all(rates > 0.0)


def test_a_ratio_near_one_is_warned_of(times, monkeypatch):
    with pytest.warns(UserWarning, match=r"\(.* to .*\): at 1 or above, .* never die out"):
        SelfExciting(Interval(0.0, 6.0)).fit(explosion(np.random.default_rng(1), 6.0))
    monkeypatch.setattr("hplus.estimators.self_exciting.NEAR_ONE", 0.1)
    with pytest.warns(UserWarning, match=r"branching ratio is 0\..*\)\. Forecasts far ahead"):
        SelfExciting(Interval(0.0, UNTIL, unit="day")).fit(times)


@pytest.mark.usefixtures("thoroughly")
def test_a_crowded_background_is_warned_of_once(rng):
    window = Box([0.0, 0.0], [10.0, 10.0]) * Interval(0.0, 100.0)
    X = np.column_stack([rng.uniform(0, 10, 60), np.full(60, 5.0), rng.uniform(0, 100, 60)])
    with pytest.warns(ConvergenceWarning, match='use background="tree"') as warned:
        SelfExciting(window, background="exp").fit(X)
    assert len(warned) == 1


def explosion(rng, until):
    """Each event triggers two others, on average."""
    found = [rng.uniform(0.0, until, 3)]
    while len(found[-1]):
        later = np.repeat(found[-1], rng.poisson(2.0, len(found[-1])))
        later = later + rng.exponential(1.0, len(later))
        found.append(later[later < until])
    return np.sort(np.concatenate(found))[:, None]


LINE = Interval(0.0, 1.0)

BAD = {
    "window": (lambda X: SelfExciting(Box([0, 0], [1, 1])).fit(X), TypeError, "window must be"),
    "background": (lambda X: SelfExciting(LINE, background="sos").fit(X), ValueError, "one of"),
    "lag": (lambda X: SelfExciting(LINE, longest_lag=-1).fit(X), ValueError, "longest_lag"),
    "distance": (
        lambda X: SelfExciting(LINE, longest_distance=1.0).fit(X),
        ValueError,
        "without places",
    ),
    "late": (lambda X: SelfExciting(Interval(0, 0.5)).fit(X), ValueError, "after the window"),
    "none": (lambda X: SelfExciting(Interval(2, 3)).fit(X), ValueError, "at least one event"),
    "marks": (lambda X: SelfExciting(LINE).fit(X, marks=[1.0]), ValueError, "marks must have"),
    "missing": (
        lambda X: SelfExciting(LINE).fit(X, marks=[1.0, np.nan]),
        ValueError,
        "finite numbers",
    ),
    "types": (lambda X: SelfExciting(LINE).fit(X, types=["a"]), ValueError, "types must have"),
    "shape": (lambda X: SelfExciting(LINE).fit([[1.0, 2.0]]), ValueError, "time last"),
    "nan": (lambda X: SelfExciting(LINE).fit([[np.nan]]), ValueError, "finite"),
    "jobs": (lambda X: SelfExciting(LINE, n_jobs=0).fit(X), ValueError, "or -1 for all cores"),
    "long lag": (lambda X: SelfExciting(LINE, longest_lag=2.0).fit(X), ValueError, "window's time"),
    "short lag": (
        lambda X: SelfExciting(LINE, longest_lag=1e-300).fit(X),
        ValueError,
        "longest_lag must be at least 1e-12, 1e-12 of the window's time, got 1e-300",
    ),
    "long distance": (
        lambda X: SelfExciting(SQUARE, longest_distance=1.5).fit([[0.5, 0.5, 1.0]]),
        ValueError,
        "longest_distance must not be longer than the window's diagonal, 1.41421, got 1.5",
    ),
    "long distance on a road": (
        lambda X: SelfExciting(LINE * LINE, longest_distance=1.5).fit([[0.5, 0.5]]),
        ValueError,
        "the window's length, 1, got 1.5",
    ),
    "short distance": (
        lambda X: SelfExciting(SQUARE, longest_distance=1e-100).fit([[0.5, 0.5, 1.0]]),
        ValueError,
        "of the window's diagonal, got 1e-100: shorter distances are lost",
    ),
    "short cycle": (
        lambda X: SelfExciting(LINE, cycles=(1e-13,)).fit(X),
        MemoryError,
        "a cycle of 1e-13 in a time of 1 needs .* use longer cycles",
    ),
    "large marks": (
        lambda X: SelfExciting(LINE).fit(X, marks=[1.0, 1e300]),
        ValueError,
        r"marks must lie between -1e\+100 and 1e\+100, got 1e\+300: use logarithms",
    ),
    "nan beside text": (
        lambda X: SelfExciting(LINE).fit(X, types=[np.nan, "b"]),
        ValueError,
        "types must be known for each event, got nan in row 0",
    ),
    "no type": (
        lambda X: SelfExciting(LINE).fit(X, types=["a", None]),
        ValueError,
        "got None in row 1",
    ),
    "nan type": (
        lambda X: SelfExciting(LINE).fit(X, types=[np.nan, 1.0]),
        ValueError,
        "got nan in row 0",
    ),
    "many types": (
        lambda X: SelfExciting(LINE).fit(np.linspace(0, 1, 42), types=np.arange(42) // 2),
        ValueError,
        "types must have at most 20 different values, got 21: join rare ones",
    ),
    "complex types": (
        lambda X: SelfExciting(LINE).fit(X, types=[1j, 2.0]),
        TypeError,
        "types must be text or whole numbers, got complex128",
    ),
    "short window": (
        lambda X: SelfExciting(Interval(0, 1e-200)).fit(np.zeros((1, 1))),
        ValueError,
        r"window must have sides between 1e-30 and 1e\+30, got 1e-200: use other units",
    ),
    "long window": (
        lambda X: SelfExciting(Interval(-1e300, 1e300)).fit(X),
        ValueError,
        r"window must have sides between .* got 2e\+300",
    ),
    "large box": (
        lambda X: SelfExciting(Box([0, 0], [1e99, 1e99]) * LINE).fit([[0.5, 0.5, 0.5]]),
        ValueError,
        r"window must have sides between .* got 1e\+99",
    ),
    "a lag that is none": (
        lambda X: SelfExciting(LINE, longest_lag=True).fit(X),
        TypeError,
        "longest_lag must be a positive finite number, got True",
    ),
    "a seed that is none": (
        lambda X: SelfExciting(LINE, random_state=1.5).fit(X),
        ValueError,
        "random_state must be None, a whole number from 0 to 4294967295 or .* got 1.5",
    ),
    "types inside": (
        lambda X: SelfExciting(Interval(0.5, 1)).fit(X, types=["a", "b"]),
        ValueError,
        "types must each have an event in the window, got none of 'a'",
    ),
    "scale of history": (
        lambda X: SelfExciting(Interval(0.5, 1)).fit(
            np.linspace(0, 1, 12), marks=[1e9, *np.linspace(1, 2, 11)]
        ),
        ValueError,
        "on one scale",
    ),
    "one scale": (
        lambda X: SelfExciting(LINE).fit(np.linspace(0, 1, 9), marks=[1, 2, 1, 2, 1, 2, 1, 2, 1e9]),
        ValueError,
        "on one scale, got 1e.09 where their median is 2: check that mark, or use logarithms",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence(name):
    call, kind, words = BAD[name]
    with pytest.raises(kind, match=words) as error:
        call([[0.2], [0.9]])
    assert str(error.value).count("\n") == 0


def test_a_catalogue_that_would_not_fit_in_memory_is_refused_beforehand(monkeypatch, planar_events):
    X, marks = planar_events
    monkeypatch.setattr(_checks, "FITS_ANYWHERE", 0.0)
    monkeypatch.setattr(_checks, "memory_limit", lambda: 2.0**20)
    with pytest.raises(MemoryError, match=r"weights needs .* GiB, but .* shorter longest_lag") as e:
        SelfExciting(SQUARE).fit(X, marks=marks)
    assert str(e.value).count("\n") == 0


def test_questions_after_the_fit_are_checked(line, planar):
    for call, kind, words in (
        (lambda: line.predict([[1.0]], types=["x"]), ValueError, "types must be None: the fit had"),
        (lambda: line.predict([[1.0]], types=[None]), ValueError, "got None in row 0"),
        (lambda: line.forecast(1.0, start=-1e6), ValueError, "start must not be before 0, where"),
        (lambda: line.predict([[1.0]], history=([[0.5]], [1.0])), ValueError, "marks must be None"),
        (
            lambda: planar.predict([[0.1, 0.1, 1.0]], history=[[0.1, 0.1, 0.5]]),
            ValueError,
            r"history must be \(X, marks\), as in fit, got no marks\.",
        ),
        (lambda: line.predict([[1.0]], history=([[0.5]],) * 4), ValueError, "got a tuple of 4"),
        (lambda: line.forecast(1.0, stages=[2.0]), ValueError, "stages must lie between 0 and the"),
        (lambda: line.forecast(1.0, stages=[np.nan]), ValueError, "horizon, 1, got nan"),
        (lambda: line.forecast(1e-300), ValueError, "horizon must lie between .*, got 1e-300"),
        (lambda: line.forecast(1e300), ValueError, r"horizon must lie between .*, got 1e\+300"),
        (lambda: line.forecast(1.0, start=1e300), ValueError, "start must be at most .* after the"),
        (lambda: line.forecast(True), TypeError, "horizon must be a positive finite number"),
        (lambda: line.forecast(1.0, random_state=-1), ValueError, "random_state must be None, a"),
        (
            lambda: line.check(UNTIL),
            ValueError,
            "start must be at least 0, .* and before 1500, whe",
        ),
        (lambda: planar.predict([[2.0, 0.1, 1.0]]), ValueError, "in the window"),
        (
            lambda: planar.forecast(1.0, history=([[0.1, 0.1, 0.5]], [5000.0])),
            ValueError,
            "marks must be on the scale of the fit",
        ),
        (
            lambda: planar.update([[0.1, 0.1, 400.5]], marks=[5000.0], until=401.0),
            ValueError,
            "marks must be on the scale of the fit",
        ),
        (lambda: line.forecast(-1.0), ValueError, "horizon"),
        (lambda: line.forecast(1.0, Box([0, 0], [1, 1])), ValueError, "without places"),
        (lambda: planar.forecast(1.0, [Interval(0, 1)]), TypeError, "places such as"),
        (lambda: line.expected_count(Box([0, 0], [1, 1])), TypeError, "intervals of time"),
        (
            lambda: line.expected_count(3),
            TypeError,
            r"regions must be intervals of time such as Interval\(0, 1\), got 3\.",
        ),
        (
            lambda: planar.expected_count(3),
            TypeError,
            r"such as Box.* \* Interval\(0, 1\), got 3\.",
        ),
        (lambda: planar.forecast(1.0, 3), TypeError, "regions must be places such as Box.*got 3"),
        *(
            (
                lambda ask=ask: ask([[0.1, 0.1, 1.0]], marks=[5000.0]),
                ValueError,
                "marks must be on the scale of the fit, .* got 5e.03: check that mark, or fit",
            )
            for ask in (planar.log_likelihood, planar.score)
        ),
        *(
            (
                lambda ask=ask, period=period: ask([[1.0]], period=period),
                kind,
                words,
            )
            for ask in (line.log_likelihood, line.score)
            for period, kind, words in (
                ((0, 5), TypeError, r"period must be an Interval.*\(0, 5\), got \(0, 5\)\."),
                (Interval(0, np.inf), ValueError, "period must have finite ends"),
            )
        ),
        (lambda: line.score([[5000.0]]), ValueError, "must hold events between"),
        (lambda: SelfExciting(Interval(0, 1)).predict([[0.5]]), Exception, "must be fitted"),
        (lambda: SelfExciting(Interval(0, 1)).forecast(1.0), NotFittedError, "must be fitted"),
        (
            lambda: SelfExciting(LINE).update([[0.5]], until=2.0),
            NotFittedError,
            "must be fitted before it is updated",
        ),
        (lambda: line.forecast(1.0, n_paths=2).chance_above(1.0), ValueError, "with marks"),
    ):
        with pytest.raises(kind, match=words):
            call()


def test_a_history_may_be_a_catalogue(line, planar, rng):
    for model, X in ((line, [[500.1]]), (planar, [[0.4, 0.5, 200.0]])):
        np.testing.assert_array_equal(model.predict(X, history=model.history_), model.predict(X))
    typed = SelfExciting(LINE).fit(rng.uniform(0.0, 1.0, 60), types=[*"abc"] * 20)
    later = typed.predict([[0.5]], history=typed.history_)
    np.testing.assert_array_equal(later, typed.predict([[0.5]]))
    with pytest.raises(ValueError, match="history must have types among those of the fit"):
        line.predict([[500.1]], history=typed.history_)
    marked = SelfExciting(LINE).fit([[0.1], [0.5]], marks=[1.0, 2.0])
    with pytest.raises(ValueError, match="marks must be None: the fit had none"):
        line.predict([[500.1]], history=marked.history_)
    with pytest.raises(ValueError, match=r"must be \(X, None, types\), as in fit, got no types"):
        typed.predict([[0.5]], history=[[0.1]])


def test_an_event_at_the_end_of_what_is_known_is_added_once(line):
    model = copy(line).update([[UNTIL], [UNTIL + 1.0]], until=UNTIL + 1.0)
    with pytest.raises(ValueError, match=r"known already, got one at 1501, when .*: drop it"):
        model.update([[UNTIL + 1.0]], until=UNTIL + 2.0)
    assert len(model.update([[UNTIL + 1.5]], until=UNTIL + 2.0).history_) == len(line.history_) + 3


def test_too_many_paths_are_refused_before_they_are_simulated(line, monkeypatch):
    def never(*_):
        raise AssertionError("simulated")

    monkeypatch.setattr("hplus.rates.excitation.descendants._background", never)
    with pytest.raises(OverflowError, match=r"must stay below 5,000,000 .* fewer paths"):
        line.forecast(1000.0, n_paths=10**7)
    with pytest.raises(MemoryError, match=r"of 1,000,000,000,000 paths needs .* fewer paths"):
        line.forecast(1.0, n_paths=10**12)


@pytest.mark.parametrize("side", [1e-30, 1e30])
def test_windows_in_any_usual_unit_have_the_same_rate(times, line, side):
    model = SelfExciting(Interval(0.0, side)).fit(times * (side / UNTIL))
    assert model.branching_ratio_ == pytest.approx(line.branching_ratio_, rel=1e-6)
    X = np.array([[0.1, 0.2, 0.3], [0.5, 0.5, 0.6], [0.5, 0.6, 0.7]]) * side
    box = Box([0.0, 0.0], [side, side]) * Interval(0.0, side)
    assert np.isfinite(SelfExciting(box, background="tree").fit(X).predict(X)).all()


def test_nothing_may_be_asked_of_and_known(line, planar):
    assert line.predict([[1.0]], history=()) == line.predict([[1.0]], history=(None,))
    assert line.predict(np.zeros((0, 1))).shape == (0,)
    assert planar.predict(np.zeros((0, 3))).shape == (0,)
    (rate,) = planar.predict([[0.5, 0.5, 1.0]], history=(None,))
    assert rate == pytest.approx(planar.background_.at(np.array([1.0]), np.full((1, 2), 0.5), 0)[0])


def test_what_lies_outside_the_window_does_not_count(planar):
    whole = planar.expected_count(SQUARE)
    around = Box([-1.0, -2.0], [3.0, 1.5]) * SQUARE.right
    assert planar.expected_count(around) == pytest.approx(whole, rel=1e-6)
    half, wide = (Box([low, 0.0], [0.5, 1.0]) * Interval(399.0, 401.0) for low in (0.0, -4.0))
    assert planar.expected_count(wide) == pytest.approx(planar.expected_count(half), rel=1e-6)
    polygon = Polygon([(-1, -1), (2, -1), (2, 2), (-1, 2)]) * SQUARE.right
    assert planar.expected_count(polygon) == pytest.approx(whole, rel=0.02)
    assert planar.expected_count(Box([2.0, 2.0], [3.0, 3.0]) * SQUARE.right) == 0.0


def office_hours(rng, days):
    """Independent events from 9 to 17 o'clock, from Monday to Friday: (n, 1), in days."""
    t = np.arange(days)[np.arange(days) % 7 < 5]
    t = np.repeat(t, rng.poisson(8.0, len(t)))
    return np.sort(t + rng.uniform(9 / 24, 17 / 24, len(t)))[:, None]


def triggered(rng, t, ratio, lag):
    """Times (n, 1) and their descendants, each of which triggers `ratio` others."""
    parts = [t]
    while len(t):
        t = np.repeat(t, rng.poisson(ratio, len(t)), axis=0)
        t = t + rng.exponential(lag, t.shape)
        parts.append(t)
    return np.concatenate(parts)


def test_independent_events_that_follow_a_cycle_trigger_nothing():
    rng = np.random.default_rng(0)
    window = Interval(0.0, 84.0, unit="day")
    t = office_hours(rng, 84)
    assert SelfExciting(window).fit(t).branching_ratio_ > 0.5  # what the cycle looks like
    assert SelfExciting(window, cycles=("week",)).fit(t).branching_ratio_ < 0.1
    t = triggered(rng, t, 0.4, 0.02)
    model = SelfExciting(window, cycles=("week",)).fit(t[t[:, 0] < 84.0])
    assert 0.3 < model.branching_ratio_ < 0.5


def test_a_cycle_of_the_background_is_found_beside_bursts():
    rng = np.random.default_rng(8)
    t = rng.uniform(0.0, 60.0, 2400)
    t = t[rng.random(len(t)) < 0.5 + 0.45 * np.sin(2.0 * np.pi * t)]
    t = np.concatenate([t, t[: len(t) // 2] + rng.exponential(0.01, len(t) // 2)])
    t = t[t < 60.0][:, None]
    window = Interval(0.0, 60.0, unit="day")
    model = SelfExciting(window, cycles=("day", 0.37)).fit(t)
    assert [gain.kept for gain in model.cycles_] == [True, False]
    peak, trough = model.predict([[70.25], [70.75]], history=np.zeros((0, 1)))
    assert peak > 4.0 * trough > 0.0
    assert model.expected_count(window) == pytest.approx(len(t), rel=0.05)
    rescaled = model.rescaled_times()
    assert rescaled[-1] == pytest.approx(model.expected_count(Interval(0.0, t.max())), rel=1e-3)
    plain = SelfExciting(window).fit(t)
    assert model.score(t) > plain.score(t) + 0.02


@pytest.mark.parametrize("seed", [2, 4, 8])
def test_types_that_mean_nothing_make_no_events_trigger_others(seed):
    rng = np.random.default_rng(seed)
    X, types = rng.uniform(0.0, 100.0, 100)[:, None], rng.integers(0, 4, 100)
    model = SelfExciting(Interval(0.0, 100.0)).fit(X, types=types)
    assert model.branching_ratio_ < 0.2


def test_types_at_random_leave_ratio_band_and_forecast_as_they_are():
    rng, period = np.random.default_rng(5), Interval(0.0, 300.0)
    times = bursts(rng, until=300.0)
    types = rng.integers(0, 5, len(times))
    plain, typed = SelfExciting(period).fit(times), SelfExciting(period).fit(times, types=types)
    assert typed.branching_ratio_ == pytest.approx(plain.branching_ratio_, abs=0.15)
    assert typed.branching_interval_[0] < 0.6 < typed.branching_interval_[1]
    # what is not known of the trigger of all types is not known of those of single types
    spread = np.diff(np.log([plain.branching_interval_, typed.branching_interval_]), axis=1)
    assert spread[1] > 0.6 * spread[0]
    means = [m.forecast(28.0, n_paths=400).counts.mean() for m in (plain, typed)]
    assert means[1] == pytest.approx(means[0], rel=0.2)


@pytest.mark.parametrize("kind", ["copies", "one place"])
def test_copies_and_a_single_place_are_warned_of(rng, kind):
    window = Box([0.0, 0.0], [10.0, 10.0]) * Interval(0.0, 100.0)
    X = np.column_stack([rng.uniform(0.0, 10.0, (40, 2)), rng.uniform(0.0, 100.0, 40)])
    words = "40 of 80 events are exact copies of others"
    if kind == "one place":
        X[:, :2], words = 5.0, "All 40 events are at one place: leave out the coordinates"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.filterwarnings("error", words)
        with pytest.raises(UserWarning, match=words):
            SelfExciting(window, background="tree").fit(np.vstack([X] * (1 + (kind == "copies"))))
