"""Intensity: laws that hold for every model and window, and answers that are known."""

import itertools
import re
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson as poisson_law
from sklearn.exceptions import ConvergenceWarning

from hplus import (
    Box,
    Gaussian,
    Intensity,
    Interval,
    Linear,
    Matern32,
    Periodic,
    Polygon,
    Statistic,
    StreamingIntensity,
    load,
    save,
)
from hplus.estimators.prior_parameters import RATE_MODELS
from hplus.simulate import poisson

pytestmark = pytest.mark.usefixtures("few_nodes", "few_parts")

SQUARE = Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], holes=[[(1, 1), (2, 1), (2, 2), (1, 2)]])
WINDOWS = {
    "interval": Interval(-2, 10, unit="s"),
    "box": Box((0, 10), (4, 12), unit="km"),
    "polygon": SQUARE,
    "cylinder": SQUARE * Interval(0, 24, unit="h"),
}
FIXED = {"kernel": Gaussian(1.5), "penalty": 1.0}
WITHOUT_PRIOR = ("auto", "tree")
"""Models that are tested as they are: given a kernel, "auto" would be "exp"."""


def events(window, n=60):
    X = window.sample(3 * n, random_state=0)
    low, high = window.bounds()
    keep = np.random.RandomState(1).random_sample(len(X)) < ((X - low) / (high - low))[:, 0]
    return X[keep][:n]


@cache
def fitted(name, model):
    window = WINDOWS[name]
    X = events(window)
    prior = {} if model in WITHOUT_PRIOR else FIXED
    return Intensity(window, model=model, **prior).fit(X, exposure=2.0), X


CASES = [
    (name, model)
    for name in WINDOWS
    for model in RATE_MODELS
    if name in ("interval", "box") or model in ("exp", "tree")
]
each = pytest.mark.parametrize(("name", "model"), CASES)


@each
def test_the_expected_total_is_the_number_of_events_over_the_exposure(name, model):
    rate, X = fitted(name, model)
    assert rate.expected_count(rate.window) == pytest.approx(len(X) / 2.0, rel=1e-6)


@each
def test_the_parts_of_a_partition_add_up_to_the_whole(name, model):
    rate, _ = fitted(name, model)
    low, high = rate.window.bounds()
    cut = low + 0.37 * (high - low)
    parts = [Box(low, [cut[0], *high[1:]]), Box([cut[0], *low[1:]], high)]
    whole = rate.expected_count(rate.window)
    assert rate.expected_count(parts).sum() == pytest.approx(whole, rel=1e-8)


@each
def test_several_regions_at_once_are_those_one_by_one(name, model, rng):
    rate, _ = fitted(name, model)
    low, high = rate.window.bounds()
    ends = np.sort(rng.uniform(low - 0.1, high + 0.1, (2, 5, len(low))), axis=0)
    parts = [rate.window, *(Box(a, b) for a, b in np.swapaxes(ends, 0, 1))]
    counts, bounds = rate.expected_count(parts), rate.count_interval(parts)
    assert counts.tolist() == [rate.expected_count(part) for part in parts]
    assert np.transpose(bounds).tolist() == [list(rate.count_interval(part)) for part in parts]
    draws = [rate.rate_.count_draws([part])[0] for part in parts]
    np.testing.assert_array_equal(rate.rate_.count_draws(parts), draws)


def parted(low, high, cuts):
    """The boxes between cuts of each axis, in percent of its length."""
    ends = [
        np.unique([a, b, *(a + np.array(c) / 100.0 * (b - a))])
        for a, b, c in zip(low, high, cuts, strict=True)
    ]
    pairs = [list(itertools.pairwise(axis)) for axis in ends]
    return [Box(*zip(*sides, strict=True)) for sides in itertools.product(*pairs)]


percents = st.lists(st.integers(1, 99), min_size=3, max_size=3)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("model", ["exp", "tree"])
@given(cuts=st.lists(percents, min_size=3, max_size=3))
@settings(max_examples=20)
def test_the_boxes_of_a_random_partition_add_up(name, model, cuts):
    rate, _ = fitted(name, model)
    low, high = rate.window.bounds()
    parts = parted(low, high, cuts[: len(low)])
    whole = rate.expected_count(rate.window)
    assert rate.expected_count(parts).sum() == pytest.approx(whole, rel=1e-8)
    if model != "exp":
        return  # draws of trees are by region
    draws, total = rate.rate_.count_draws(parts), rate.rate_.count_draws([rate.window])[0]
    np.testing.assert_allclose(draws.sum(axis=0), total, rtol=1e-8)


@pytest.mark.parametrize("name", ["box", "polygon"])
@pytest.mark.parametrize("model", ["exp", "tree"])
@given(middle=st.tuples(*[st.integers(1, 99)] * 2), turn=st.integers(0, 90))
@settings(max_examples=20)
def test_the_polygons_around_a_random_point_add_up(name, model, middle, turn):
    rate, _ = fitted(name, model)
    low, high = rate.window.bounds()
    center = low + np.array(middle) / 100.0 * (high - low)
    angle = np.radians(turn + 40.0 * np.arange(10))
    rim = center + 9.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    parts = [Polygon([center, a, b]) for a, b in itertools.pairwise(rim)]
    whole = rate.expected_count(rate.window)
    assert rate.expected_count(parts).sum() == pytest.approx(whole, rel=1e-6)


@each
def test_more_exposure_gives_more_events_in_proportion_and_bounds_of_less_chance(name, model):
    rate, _ = fitted(name, model)
    low, high = rate.window.bounds()
    parts = [Box(low, (low + high) / 2.0), rate.window]
    np.testing.assert_allclose(
        rate.expected_count(parts, exposure=7.0), 7.0 * rate.expected_count(parts), rtol=1e-14
    )
    for part, bounds in zip(
        parts, np.transpose(rate.count_interval(parts, exposure=1e6)), strict=True
    ):
        draws = 1e6 * rate.rate_.count_draws([part])[0]
        # a Poisson count of a million is its mean, so that what is left is the rate's uncertainty
        np.testing.assert_allclose(bounds, np.quantile(draws, [0.05, 0.95]), rtol=0.05)
        assert rate.count_interval(part, exposure=1e6) == tuple(bounds)


@each
def test_bounds_of_a_count_contain_their_share_of_the_mixture_of_poisson_laws(name, model):
    rate, _ = fitted(name, model)
    means = 3.0 * rate.rate_.count_draws([rate.window])
    low, high = rate.count_interval(rate.window, 0.8, exposure=3.0)
    for bound, p in ((low, 0.1), (high, 0.9)):
        below, here = (poisson_law.cdf(k, means).mean() for k in (bound - 1.0, bound))
        assert below < p <= here


def test_no_regions_have_no_counts():
    rate, _ = fitted("interval", "exp")
    assert rate.expected_count([]).shape == (0,)
    assert [end.shape for end in rate.count_interval([])] == [(0,), (0,)]


@pytest.mark.parametrize("name", WINDOWS)
def test_draws_of_counts_are_those_of_the_draws_of_the_rate(name):
    """The rate times e^draw, both linear between nodes, integrated on the fine grid."""
    rate = fitted(name, "exp")[0].rate_
    f, (low, high) = rate.function, WINDOWS[name].bounds()
    part = Box(low + 0.13 * (high - low), low + 0.61 * (high - low))
    factors = [
        rate.coarse.interpolate(np.exp(draw.astype(float)), f.grid.nodes()).reshape(f.grid.shape)
        for draw in rate.draws[:3]
    ]
    oracle = [f.replace(values=f.values * factor).integral(part) for factor in factors]
    np.testing.assert_allclose(rate.count_draws([part])[0, :3], oracle, rtol=1e-10)


def test_a_stream_counts_in_proportion_to_the_exposure_too():
    rate = StreamingIntensity(WINDOWS["interval"]).partial_fit(events(WINDOWS["interval"]))
    parts = [Interval(-2, 1), Interval(1, 10)]
    np.testing.assert_allclose(
        rate.expected_count(parts, exposure=2.5), 2.5 * rate.expected_count(parts), rtol=1e-14
    )
    with pytest.raises(ValueError, match="exposure must be a positive finite number, got 0"):
        rate.expected_count(parts, exposure=0)


@pytest.mark.parametrize("exposure", [0.0, -1.0, np.inf, np.nan])
@pytest.mark.parametrize("asked", ["expected_count", "count_interval"])
def test_an_exposure_of_counts_must_be_positive_and_finite(asked, exposure):
    rate, _ = fitted("interval", "exp")
    with pytest.raises(ValueError, match="exposure must be a positive finite number, got"):
        getattr(rate, asked)(rate.window, exposure=exposure)


@each
def test_rates_are_finite_and_not_negative_and_inside_their_interval(name, model):
    rate, _ = fitted(name, model)
    Z = rate.window.sample(500, random_state=3)
    low, high = rate.predict_interval(Z, 0.95)
    f = rate.predict(Z)
    assert np.all(f >= 0.0)
    assert np.all(np.isfinite(f))
    assert np.all(low >= 0.0)
    assert np.mean((low <= f) & (f <= high)) > 0.95


@each
def test_a_higher_level_gives_wider_intervals(name, model):
    rate, _ = fitted(name, model)
    Z = rate.window.sample(50, random_state=3)
    (a, b), (c, d) = rate.predict_interval(Z, 0.5), rate.predict_interval(Z, 0.99)
    assert np.all(c <= a)
    assert np.all(b <= d)
    low, high = rate.count_interval(rate.window, 0.9)
    wide_low, wide_high = rate.count_interval(rate.window, 0.99)
    assert wide_low <= low < high <= wide_high


@each
def test_more_events_are_expected_where_there_were_more(name, model):
    rate, _ = fitted(name, model)
    low, high = rate.window.bounds()
    middle = 0.5 * (low[0] + high[0])
    few, many = rate.expected_count([Box(low, [middle, *high[1:]]), Box([middle, *low[1:]], high)])
    assert many > few


@each
def test_the_fit_is_certified(name, model):
    rate, _ = fitted(name, model)
    assert rate.solution_.relative_gap <= rate.rate_.promised_gap
    assert rate.rate_.promised_gap == (0.0 if model == "tree" else 1e-6)


@each
def test_score_is_free_of_exposure_and_the_likelihood_is_not(name, model):
    rate, X = fitted(name, model)
    total = rate.expected_count(rate.window)
    expected = len(X) * (rate.score(X) + np.log(2.0 * total)) - 2.0 * total
    assert rate.log_likelihood(X, exposure=2.0) == pytest.approx(expected)


@each
def test_gradients_are_those_of_the_rate_and_trees_have_none(name, model):
    rate, _ = fitted(name, model)
    if "tree" in "".join(getattr(rate, "weights_", {})):
        with pytest.raises(ValueError, match="gradient needs a rate without trees"):
            rate.gradient(rate.window.sample(3, random_state=0))
        return
    Z = rate.window.sample(40, random_state=4)
    low, high = rate.window.bounds()
    Z = low + 0.02 * (high - low) + 0.96 * (Z - low)
    Z = Z[rate.window.contains(Z)]
    gradient = rate.gradient(Z)
    for j in range(Z.shape[1]):
        h = 1e-6 * (high - low)[j]
        step = h * np.eye(Z.shape[1])[j]
        inside = rate.window.contains(Z + step) & rate.window.contains(Z - step)
        slope = (rate.predict((Z + step)[inside]) - rate.predict((Z - step)[inside])) / (2 * h)
        size = np.abs(gradient).max()
        # a step may cross a line of the grid
        assert np.mean(np.abs(slope - gradient[inside, j]) < 1e-3 * size) > 0.9


@each
def test_samples_lie_in_the_window_and_follow_the_rate(name, model):
    rate, X = fitted(name, model)
    paths = rate.sample(40, random_state=0)
    assert len(paths) == 40
    assert all(rate.window.contains(path).all() for path in paths)
    counts = [len(path) for path in paths]
    assert np.mean(counts) == pytest.approx(len(X) / 2.0, abs=4.0 * np.sqrt(len(X) / 2.0 / 40))


@each
def test_the_peak_is_the_highest_rate(name, model):
    rate, _ = fitted(name, model)
    point, value = rate.peak()
    assert rate.predict(point[None])[0] == pytest.approx(value, rel=1e-9)
    # the grid of a sum of squares may miss its very top
    assert value >= (1 - 1e-3) * rate.predict(rate.window.sample(2000, random_state=5)).max()


@each
def test_a_saved_model_predicts_the_same(name, model, tmp_path):
    rate, X = fitted(name, model)
    save(rate, tmp_path / "rate.hplus")
    again = load(tmp_path / "rate.hplus")
    assert np.array_equal(again.predict(X), rate.predict(X))
    assert again.count_interval(rate.window) == rate.count_interval(rate.window)


@settings(max_examples=8, deadline=None)
@given(
    places=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30),
    low=st.floats(-1e6, 1e6),
    size=st.sampled_from([1e-3, 1.0, 1e5]),
    weight=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_any_events_on_any_line_give_a_finite_rate_with_their_total(places, low, size, weight):
    window = Interval(low, low + size)
    X = np.clip(low + size * np.array(places), *np.ravel(window.bounds()))[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        # heavy heaps of equal events are said to be too close
        warnings.simplefilter("ignore", ConvergenceWarning)
        rate = Intensity(window).fit(X, sample_weight=np.full(len(X), weight))
    Z = window.sample(200, random_state=0)
    assert np.all(np.isfinite(rate.predict(Z)) & (rate.predict(Z) >= 0.0))
    rounding = 0.5**21 / weight
    assert rate.expected_count(window) == pytest.approx(weight * len(X), rel=1e-6 + rounding)


@pytest.mark.parametrize("model", RATE_MODELS)
@settings(max_examples=10, deadline=None)
@given(places=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20), scale=st.floats(0.05, 3.0))
def test_no_rate_is_negative_or_infinite_whatever_the_model(model, places, scale):
    X = np.array(places)[:, None]
    prior = () if model == "tree" else (Gaussian(scale), 1.0)
    rate = Intensity(Interval(0, 1), *prior, model=model).fit(X)
    f = rate.predict(np.linspace(0, 1, 301)[:, None])
    assert np.all(np.isfinite(f) & (f >= 0.0))


def test_twice_the_exposure_is_half_the_rate():
    X = events(WINDOWS["interval"])
    once, twice = (
        Intensity(WINDOWS["interval"]).fit(X, exposure=exposure) for exposure in (1.0, 2.0)
    )
    assert np.allclose(once.predict(X), 2.0 * twice.predict(X), rtol=1e-6)


def test_an_exposure_that_varies_is_divided_out():
    window, observed = Interval(0, 10), np.repeat([1.0, 0.2], 200)
    X = poisson(lambda x: np.where(x[:, 0] < 5, 50.0, 10.0), window, random_state=0)
    rate = Intensity(window).fit(X, exposure=observed)
    naive = Intensity(window).fit(X)
    left, right = rate.expected_count([Interval(0, 4.9), Interval(5.1, 10)])
    assert left / 4.9 == pytest.approx(50.0, rel=0.15)
    assert right / 4.9 == pytest.approx(50.0, rel=0.3)
    assert naive.predict([[8.0]])[0] < 20.0


def test_a_function_and_an_array_say_the_same_exposure():
    window = Interval(0, 10)
    X = events(window)
    by_function = Intensity(window).fit(X, exposure=lambda x: 1.0 + x[:, 0])
    by_array = Intensity(window).fit(X, exposure=1.0 + np.linspace(0, 10, 11))
    assert np.allclose(by_function.predict(X), by_array.predict(X))


def test_place_and_hour_of_the_day_with_a_periodic_kernel():
    window = Box((0, 0), (4, 4)) * Interval(0, 24, unit="h")

    def truth(x):
        return 4.0 * (1 + x[:, 0] / 4) * (1.1 + np.cos(2 * np.pi * (x[:, 2] - 1) / 24))

    X = poisson(truth, window, random_state=0)
    kernel = Gaussian(2.0, columns=[0, 1]) * Periodic(24.0, 1.0, columns=[2])
    rate = Intensity(window, kernel, 1.0).fit(X)
    evening, morning = rate.predict([[2, 2, 23.999], [2, 2, 0.0]])
    assert evening == pytest.approx(morning, rel=1e-2)
    Z = window.sample(300, random_state=1)
    assert np.corrcoef(np.log(rate.predict(Z)), np.log(truth(Z)))[0, 1] > 0.95


def test_covariates_have_the_coefficients_that_made_the_events():
    window = Box((0, 0), (10, 10))
    height = np.linspace(0, 3, 41)[:, None] + np.sin(np.linspace(0, 6, 41))[None, :]

    def truth(x):
        return np.exp(1.0 + 0.7 * (0.3 * x[:, 0] + np.sin(0.6 * x[:, 1])))

    X = poisson(truth, window, random_state=0)
    rate = Intensity(window, Matern32(3.0), 10.0, covariates={"height": height}).fit(X)
    error = rate.coefficient_errors_["height"]
    assert abs(rate.coefficients_["height"] - 0.7) < 3.0 * error
    assert 0.0 < error < 0.3
    Z = window.sample(200, random_state=1)
    assert np.corrcoef(rate.predict(Z), truth(Z))[0, 1] > 0.95


def test_a_statistic_of_parts_gives_the_same_rate():
    window = WINDOWS["interval"]
    X = events(window)
    whole = Intensity(window).fit(X)
    merged = sum(
        (Statistic.of(window, part) for part in np.array_split(X, 7)[1:]),
        start=Statistic.of(window, np.array_split(X, 7)[0]),
    )
    assert np.allclose(Intensity(window).fit(merged).predict(X), whole.predict(X), rtol=1e-8)


def test_a_weight_of_two_is_an_event_that_happened_twice():
    """For a smooth rate: to trees, repeated positions say how finely positions are known."""
    window = WINDOWS["interval"]
    X = events(window)
    weighted = Intensity(window, model="exp").fit(X, sample_weight=np.full(len(X), 2.0))
    twice = Intensity(window, model="exp").fit(np.vstack([X, X]))
    assert np.allclose(weighted.predict(X), twice.predict(X), rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "factor"),
    [(name, 0.25) for name in WINDOWS] + [("interval", 1.0), ("interval", 1024.0), ("box", 1024.0)],
)
def test_a_constant_weight_scales_the_rate_of_trees_and_leaves_its_shape_and_evidence(name, factor):
    window = WINDOWS[name]
    X = clustered(window)
    plain = Intensity(window, model="tree").fit(X)
    weighted = Intensity(window, model="tree").fit(X, sample_weight=np.full(len(X), factor))
    np.testing.assert_allclose(weighted.predict(X), factor * plain.predict(X), rtol=1e-12)
    assert weighted.log_evidence_ == pytest.approx(plain.log_evidence_, rel=1e-12)
    assert weighted.resolution_ == pytest.approx(plain.resolution_)
    assert plain.log_evidence_ > 10.0


def test_weights_count_as_many_events_as_tell_as_much():
    """Few heavy events say less of a rate by trees than many light ones of the same sum."""
    window = WINDOWS["box"]
    X = clustered(window)
    heavy = np.where(np.arange(len(X)) % 10 == 0, 100.0, 0.01)
    sure = Intensity(window, model="tree").fit(X)
    unsure = Intensity(window, model="tree").fit(X, sample_weight=heavy)
    assert 0.0 <= unsure.log_evidence_ < 0.5 * sure.log_evidence_
    assert unsure.expected_count(window) == pytest.approx(heavy.sum(), rel=1e-6)


def clustered(window, n=300):
    """Events of which two thirds lie in 1 % of the window's sides around a place of it."""
    X = window.sample(n, random_state=0)
    low, high = window.bounds()
    near = X[0] + 0.01 * (high - low) * np.random.RandomState(1).uniform(-1, 1, (n, len(low)))
    near = np.where(window.contains(np.clip(near, low, high))[:, None], near, X[:1])
    return np.clip(np.where(np.arange(n)[:, None] % 3 > 0, near, X), low, high)


@each
def test_the_weights_of_parts_add_up_and_say_what_the_rate_is_made_of(name, model):
    rate, _ = fitted(name, model)
    if model in ("sos", "square"):
        assert not hasattr(rate, "weights_")
        return
    assert set(rate.weights_) <= {"exp", "tree", "tree on exp"}
    assert sum(rate.weights_.values()) == pytest.approx(1.0)
    if model != "auto":
        assert rate.weights_ == {model: 1.0}
    assert hasattr(rate, "mixture_") == (model != "tree")


def test_given_a_prior_the_default_is_the_smooth_rate():
    X = events(LINE)
    learned = Intensity(LINE, model="exp").fit(X)
    for prior in ({"kernel": Gaussian(1.5)}, {"penalty": "evidence"}, {"kernel": learned.mixture_}):
        rate, smooth = (Intensity(LINE, model=m, **prior).fit(X) for m in ("auto", "exp"))
        assert rate.weights_ == {"exp": 1.0}
        np.testing.assert_array_equal(rate.predict(X), smooth.predict(X))


@pytest.mark.parametrize("model", ["exp", "tree", "auto"])
def test_no_cell_is_finer_than_the_step_of_rounded_positions(model):
    X = np.round(clustered(Interval(0, 100), 3000), 1)
    rate = Intensity(Interval(0, 100), model=model).fit(X)
    assert rate.positions_.step == pytest.approx(0.1)
    assert 0.1 <= rate.resolution_ <= 100.0
    assert rate.scale_spectrum().sizes.min() >= 0.1


def test_the_resolution_has_one_number_for_each_unit():
    for name, shape in {"interval": (), "box": (), "polygon": (), "cylinder": (3,)}.items():
        assert np.shape(fitted(name, "tree")[0].resolution_) == shape
    rate = fitted("box", "exp")[0]
    assert rate.resolution_ == pytest.approx(rate.rate_.function.grid.spacing.max())
    fine = Intensity(LINE, model="tree").fit(clustered(LINE))
    assert fine.resolution_ < 0.2
    assert Intensity(LINE, model="tree").fit([[0.5]]).resolution_ == 10.0


def test_a_file_of_trees_is_about_as_large_as_its_distinct_cells(tmp_path):
    sizes = []
    for n in (20_000, 40_000):
        rate = Intensity(UNIT_SQUARE, model="tree").fit(clustered(UNIT_SQUARE, n))
        save(rate, tmp_path / "trees.hplus")
        sizes.append(((tmp_path / "trees.hplus").stat().st_size, len(rate.rate_.statistic.codes)))
    (small, few), (large, many) = sizes
    assert (large - small) / (many - few) == pytest.approx(16.0, rel=0.01)
    assert small < 16 * few + 16_384


@pytest.mark.parametrize("kernel", [Gaussian(3.0), Linear() + Gaussian(2.0)])
def test_a_kernel_of_your_own_may_have_its_penalty_learned(kernel):
    window = Interval(0, 10)
    X = poisson(lambda x: 3.0 * (1 + x[:, 0]), window, random_state=0)
    rate = Intensity(window, kernel, penalty="evidence").fit(X)
    assert rate.predict([[9.0]])[0] == pytest.approx(30.0, rel=0.3)
    assert rate.kernel_ == kernel
    assert 0.05 < rate.penalty_ < 200.0
    assert sum(weight for weight, _ in rate.mixture_) == pytest.approx(1.0)


def test_the_criterion_for_the_penalty_is_used_with_a_given_kernel_too():
    X = poisson(lambda x: 20.0 * np.exp(np.sin(9 * x[:, 0])), Interval(0, 10), random_state=0)
    scores = [
        [
            weight
            for weight, _ in Intensity(Interval(0, 10), Gaussian(0.2), criterion).fit(X).mixture_
        ]
        for criterion in ("evidence", "thinning")
    ]
    assert scores[0] != scores[1]


def test_a_fit_that_would_not_fit_in_memory_is_refused_with_the_figure(monkeypatch):
    monkeypatch.setattr("hplus._checks.memory_limit", lambda: 2.0**20)
    with pytest.raises(MemoryError, match=r"A fit on \d+ nodes needs .* GiB"):
        Intensity(LINE).fit(GOOD)


def test_sampling_and_fitting_again_finds_the_rate_again():
    rate, _ = fitted("interval", "exp")
    Z, inside = rate.window.sample(200, random_state=2), []
    for seed in (1, 2, 3, 4):
        path = np.vstack(rate.sample(30, random_state=seed))
        low, high = Intensity(rate.window).fit(path, exposure=30.0).predict_interval(Z, 0.99)
        inside.append((low <= rate.predict(Z)) & (rate.predict(Z) <= high))
    assert np.mean(inside) > 0.9


def test_degrees_of_longitude_and_latitude_are_warned_of():
    window = Box((-74.3, 40.5), (-73.7, 40.9))
    X = window.sample(30, random_state=0)
    with pytest.warns(UserWarning, match=r"longitude.*cos"):
        Intensity(window, Gaussian(0.1), 1.0).fit(X)


def test_units_are_carried_into_the_rate():
    assert fitted("interval", "exp")[0].unit_ == "1/s"
    assert fitted("box", "exp")[0].unit_ == "1/km²"


LINE = Interval(0, 10)
UNIT_SQUARE = Box((0, 0), (1, 1))
GOOD = np.array([[1.0], [2.0], [5.0]])
BAD = {
    "outside": (lambda: Intensity(LINE).fit([[1.0], [11.0], [12.0]]), "2 of 3 points outside"),
    "no events": (lambda: Intensity(LINE).fit(np.zeros((0, 1))), "at least one event"),
    "weights of zero": (
        lambda: Intensity(LINE).fit(GOOD, sample_weight=np.zeros(3)),
        "at least one event",
    ),
    "nan": (lambda: Intensity(LINE).fit([[np.nan]]), "finite"),
    "negative weight": (
        lambda: Intensity(LINE).fit(GOOD, sample_weight=[1, -1, 1]),
        "sample_weight must",
    ),
    "exposure of zero": (lambda: Intensity(LINE).fit(GOOD, exposure=0.0), "exposure must be a pos"),
    "exposure zero at events": (
        lambda: Intensity(LINE).fit(GOOD, exposure=lambda x: 1.0 * (x[:, 0] > 6)),
        "above 0 where events occurred",
    ),
    "negative exposure": (
        lambda: Intensity(LINE).fit(GOOD, exposure=lambda x: x[:, 0] - 20),
        "exposure must be at least 0",
    ),
    "exposure of a wrong shape": (
        lambda: Intensity(LINE).fit(GOOD, exposure=np.ones((3, 3))),
        "exposure must be an array with 1 axes",
    ),
    "exposure that varies with squares": (
        lambda: Intensity(LINE, model="sos").fit(GOOD, exposure=np.ones(5)),
        "exposure must be a number",
    ),
    "no window": (lambda: Intensity((0, 10)).fit(GOOD), "window must be a Window"),
    "four axes": (
        lambda: Intensity(Box([0] * 4, [1] * 4)).fit(np.full((3, 4), 0.5)),
        "1, 2 or 3 axes",
    ),
    "model": (lambda: Intensity(LINE, model="log").fit(GOOD), "model must be one of"),
    "penalty": (lambda: Intensity(LINE, penalty=-1.0).fit(GOOD), "penalty must be a positive"),
    "penalty without a kernel": (lambda: Intensity(LINE, penalty=1.0).fit(GOOD), "give a kernel"),
    "kernel of trees": (
        lambda: Intensity(LINE, Gaussian(1.0), model="tree").fit(GOOD),
        'kernel and penalty must be "auto" with model="tree"',
    ),
    "penalty of trees": (
        lambda: Intensity(LINE, penalty="evidence", model="tree").fit(GOOD),
        'kernel and penalty must be "auto" with model="tree"',
    ),
    "mixture of trees": (
        lambda: Intensity(LINE, fitted("interval", "exp")[0].mixture_, model="tree").fit(GOOD),
        "kernel may be the mixture_ of another fit only",
    ),
    "spectrum of squares": (
        lambda: Intensity(LINE, model="square").fit(GOOD).scale_spectrum(),
        'scale_spectrum needs events themselves or a Statistic and model="auto"',
    ),
    "kernel": (lambda: Intensity(LINE, kernel="rbf").fit(GOOD), "kernel must be"),
    "constant covariate": (
        lambda: Intensity(LINE, covariates=lambda x: 0 * x[:, 0]).fit(GOOD),
        "must vary",
    ),
    "covariates of squares": (
        lambda: Intensity(LINE, model="square", covariates=np.arange(5.0)).fit(GOOD),
        "covariates need",
    ),
    "statistic of another window": (
        lambda: Intensity(LINE).fit(Statistic.of(Interval(0, 9), GOOD)),
        "same window",
    ),
    "predict outside": (lambda: fitted("interval", "exp")[0].predict([[99.0]]), "1 of 1 points"),
    "region of other axes": (
        lambda: fitted("interval", "exp")[0].expected_count(Box((0, 0), (1, 1))),
        "regions must be windows with 1 axes",
    ),
    "level": (lambda: fitted("interval", "exp")[0].predict_interval([[1.0]], 90), "level must be"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence(name):
    call, words = BAD[name]
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", RATE_MODELS)
@pytest.mark.parametrize("places", [[5.0], [2.0, 7.0], [4.0] * 20])
def test_few_events_and_equal_ones_give_a_sensible_rate(places, model):
    rate = Intensity(LINE, model=model).fit(np.array(places)[:, None])
    grid = np.linspace(0, 10, 101)[:, None]
    f = rate.predict(grid)
    assert np.all(np.isfinite(f) & (f >= 0.0))
    assert rate.expected_count(LINE) == pytest.approx(len(places), rel=1e-6)
    assert rate.predict([[places[0]]])[0] >= 0.9 * len(places) / 10.0
