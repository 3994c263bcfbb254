"""The kernel baselines: oracles are direct sums, scipy's and scikit-learn's estimates."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.stats import gaussian_kde, norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KernelDensity

from hplus.evaluation import AdaptiveKDE, EdgeCorrectedKDE, bandwidths, best_kde, gain, smoothing
from hplus.evaluation.edges import Edges
from hplus.evaluation.pair_sums import REACH
from hplus.evaluation.smoothing import Layer, kernel_rates
from hplus.windows import Box, Cycle, Interval, Polygon, Polygons

BENT = Polygon([[0, 0], [3, 1], [1, 1.5], [2, 4], [-1, 2]], unit="km")
WINDOWS = {
    "line": (Interval(-1, 3), 400),
    "cycle": (Cycle(4), 400),
    "box": (Box((0, 0), (2, 1)), 40),
    "polygon": (BENT, 24),
    "islands": (Polygons((BENT, Polygon([[3, 2], [4, 2], [4, 4]])), unit="km"), 16),
    "tube": (Box((0, 0), (2, 1)) * Cycle(1.5), 14),
    "prism": (BENT * Interval(0, 2), 12),
}
every_window = pytest.mark.parametrize(("window", "order"), WINDOWS.values(), ids=WINDOWS)
both_estimates = pytest.mark.parametrize("KDE", [EdgeCorrectedKDE, AdaptiveKDE])


# oracles


def folded(window, X, Z, h):
    """Kernels between Z and X in a box, mirrored at walls and around cycles, by a sum over images.

    Shape (m, n); each has mass 1 in the window.
    """
    out, (low, high) = np.ones((len(Z), len(X))), window.bounds()
    for j in range(window.dimension):
        x, z, side = X[:, j], Z[:, [j]], high[j] - low[j]
        if j in window.closed_axes():
            images = [x + m * side for m in range(-9, 10)]
        else:
            images = [y + 2 * m * side for m in range(-9, 10) for y in (x, 2 * low[j] - x)]
        out *= sum(norm.pdf(z, y, h[j]) for y in images)
    return out


def whole(window):
    """Points at the middle of many equal parts of the window."""
    low, high = window.bounds()
    n = {1: (3000,), 2: (200, 200), 3: (60, 60, 20)}[window.dimension]
    index = np.indices(n).reshape(len(n), -1).T
    Z = low + (index + 0.5) / n * (high - low)
    return Z[window.contains(Z)]


def events(window, n=60, seed=0):
    """More of them towards the lowest corner, up to its edges."""
    Z = window.sample(20 * n, random_state=seed)
    low, high = window.bounds()
    return Z[np.argsort(((Z - low) / (high - low)).sum(axis=1))][: 4 * n : 4]


# the kernels


BOXES = {name: WINDOWS[name][0] for name in ("line", "cycle", "box", "tube")}


@pytest.mark.parametrize("window", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("width", [0.05, 0.3, 2.0])
def test_kernels_in_a_box_are_sums_over_images(window, width, rng):
    X, Z, w = window.sample(50, 0), window.sample(80, 1), rng.uniform(0.5, 2.0, 50)
    h = width * np.linspace(1.0, 0.7, window.dimension)
    rates = kernel_rates(Edges(window), Layer(X, w, h), Z)
    oracle = folded(window, X, Z, h) @ w
    # a kernel wider than 1.2 sides counts as flat
    np.testing.assert_allclose(rates, oracle, rtol=2e-3, atol=1e-6 * oracle.max())


@every_window
@pytest.mark.parametrize("width", [0.1, 0.5])
def test_merging_very_close_events_hardly_changes_the_rate(window, order, width, rng, monkeypatch):
    X, Z, w = events(window, 1000), window.sample(200, 1), rng.uniform(0.5, 2.0, 1000)
    layer = Layer(X, w, width * np.linspace(1.0, 0.7, window.dimension))
    few = smoothing.merged(layer)
    assert len(few.X) < 1000
    np.testing.assert_allclose(few.weights @ few.X / few.weights.sum(), w @ X / w.sum(), rtol=1e-9)
    monkeypatch.setattr(smoothing, "FEW_PAIRS", 0)
    monkeypatch.setattr(smoothing, "NODE_COST", 1e12)
    rates = kernel_rates(Edges(window), layer, Z)
    monkeypatch.setattr(smoothing, "FEW_PAIRS", 10**12)
    oracle = kernel_rates(Edges(window), layer, Z)
    np.testing.assert_allclose(rates, oracle, rtol=0.02, atol=0.003 * oracle.max())


@every_window
@pytest.mark.parametrize("width", [0.2, 0.5])
def test_a_grid_gives_what_sums_over_pairs_give(window, order, width, rng, monkeypatch):
    X, Z, w = events(window, 200), window.sample(300, 1), rng.uniform(0.5, 2.0, 200)
    layer = Layer(X, w, width * np.linspace(1.0, 0.7, window.dimension))
    monkeypatch.setattr(smoothing, "FEW_PAIRS", 0)
    monkeypatch.setattr(smoothing, "NODE_COST", 0.0)
    assert smoothing._cells(Edges(window), layer, Z) is None
    grid = kernel_rates(Edges(window), layer, Z)
    monkeypatch.setattr(smoothing, "FEW_PAIRS", 10**12)
    pairs = kernel_rates(Edges(window), layer, Z)
    np.testing.assert_allclose(grid, pairs, atol=0.01 * pairs.max())
    dense = pairs > 0.02 * pairs.max()
    assert np.mean(np.log(grid[dense] / pairs[dense])) == pytest.approx(0.0, abs=2e-3)


@every_window
@pytest.mark.parametrize("width", [0.15, 0.6])
def test_each_kernel_has_mass_one_inside_the_window(window, order, width):
    Z, edges, h = whole(window), Edges(window), width * np.ones(window.dimension)
    for x in window.sample(5, random_state=3):
        mass = kernel_rates(edges, Layer(x[None], np.ones(1), h), Z).mean() * window.volume
        assert mass == pytest.approx(1.0, abs=0.06)


@every_window
@pytest.mark.parametrize("width", [0.3, 0.8])
def test_events_everywhere_alike_have_a_constant_rate_up_to_the_edges(window, order, width):
    nodes, weights = window.quadrature(order)
    rates = kernel_rates(
        Edges(window),
        Layer(nodes, weights, width * np.ones(window.dimension)),
        window.sample(500, 0),
    )
    np.testing.assert_allclose(rates, 1.0, atol=0.04)


def test_sums_over_pairs_are_those_of_all_pairs_within_reach(rng):
    for d in (1, 2, 3):
        U, Z, w = rng.normal(0, 9, (300, d)), rng.normal(0, 12, (200, d)), rng.uniform(size=300)
        cells = smoothing.cell_list(U, w)
        K = np.exp(-0.5 * cdist(Z, U, "sqeuclidean"))
        near = cdist(Z, U) < REACH
        np.testing.assert_allclose(smoothing.pair_sums(cells, Z), (K * near) @ w, rtol=1e-12)


# the estimates


def test_far_from_the_edges_it_is_scipys_estimate(rng):
    x = rng.normal(size=100)
    model = EdgeCorrectedKDE(Interval(-20, 20), bandwidth=0.5).fit(x[:, None])
    z = np.linspace(-5, 5, 101)
    oracle = gaussian_kde(x, bw_method=0.5 / x.std(ddof=1))(z)
    share = model.uniform_share_
    rates = 100 * ((1 - share) * oracle + share / 40)
    np.testing.assert_allclose(model.predict(z[:, None]), rates, rtol=1e-5)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_far_from_the_edges_it_is_scikit_learns_estimate(dimension, rng):
    X, Z = rng.normal(size=(60, dimension)), rng.normal(size=(60, dimension))
    window = Box([-8.0] * dimension, [8.0] * dimension)
    model = EdgeCorrectedKDE(window, bandwidth=0.6).fit(X)
    oracle = np.exp(KernelDensity(bandwidth=0.6).fit(X).score_samples(Z))
    share = model.uniform_share_
    rates = 60 * ((1 - share) * oracle + share / window.volume)
    np.testing.assert_allclose(model.predict(Z), rates, rtol=1e-4)


def test_local_bandwidths_are_those_of_abramson(rng):
    X, Z = rng.normal(size=(200, 2)) ** 3 / 9, rng.normal(size=(100, 2))
    window = Box([-20.0] * 2, [20.0] * 2)
    X, Z = X[np.abs(X).max(axis=1) < 10], Z[np.abs(Z).max(axis=1) < 10]
    model = AdaptiveKDE(window, bandwidth=0.3).fit(X)
    pilot = model.pilot_.predict(X)
    h = 0.3 * (pilot / np.exp(np.log(pilot).mean())) ** -0.5
    oracle = (np.exp(-0.5 * cdist(Z, X, "sqeuclidean") / h**2) / (2 * np.pi * h**2)).sum(axis=1)
    share = model.uniform_share_
    rates = (1 - share) * oracle + share * len(X) / window.volume
    # bandwidths are rounded to a ladder
    assert np.mean(np.log(model.predict(Z) / rates)) == pytest.approx(0.0, abs=0.02)
    np.testing.assert_allclose(model.predict(Z), rates, rtol=0.3)
    assert model.bandwidth_.tolist() == [0.3, 0.3]


@every_window
@both_estimates
@pytest.mark.parametrize("bandwidth", ["auto", 0.2])
def test_the_expected_count_is_the_sum_of_the_weights(window, order, bandwidth, KDE, rng):
    X, w = events(window, 40), rng.uniform(0.0, 3.0, 40)
    if len(set(window.axis_units)) > 1 and bandwidth != "auto":
        bandwidth = (bandwidth,) * window.dimension
    model = KDE(window, bandwidth).fit(X, sample_weight=w)
    assert model.expected_count(window) == pytest.approx(w.sum(), rel=1e-9)
    assert model.predict(whole(window)).mean() * window.volume == pytest.approx(w.sum(), rel=0.02)


@every_window
@both_estimates
def test_the_parts_of_the_window_add_up_to_the_whole(window, order, KDE):
    model = KDE(window, (0.1,) * window.dimension).fit(window.sample(40, random_state=3))
    low, high = window.bounds()
    cut = 0.6 * low[0] + 0.4 * high[0]
    parts = [
        Box(low, np.append(cut, high[1:])),
        Box(np.append(cut, low[1:]), high),
    ]
    counts = model.expected_count(parts)
    assert counts.shape == (2,)
    assert counts.sum() == pytest.approx(40.0, rel=1e-9)
    Z = whole(window)
    left = window.volume * np.mean(model.predict(Z) * (Z[:, 0] < cut))
    assert counts[0] == pytest.approx(left, rel=0.03)


@every_window
@both_estimates
def test_every_rate_is_positive_even_far_from_all_events(window, order, KDE):
    X = window.sample(3, random_state=4)
    model = KDE(window, tuple(window.longest_sides() / 3000)).fit(X)
    rates = model.predict(window.sample(2000, random_state=5))
    assert rates.min() > 0.0
    assert np.isfinite(rates).all()
    assert np.isfinite(model.score(window.sample(10, random_state=6)))


@both_estimates
def test_rows_that_stand_twice_are_rows_of_weight_two(KDE, rng):
    X, Z, window = rng.uniform(size=(20, 2)), rng.uniform(size=(9, 2)), Box((0, 0), (1, 1))
    twice = EdgeCorrectedKDE(window, 0.1).fit(np.vstack([X, X[:5]])).mixture_
    heavy = EdgeCorrectedKDE(window, 0.1).fit(X, sample_weight=[2] * 5 + [1] * 15).mixture_
    rates = (mixture._replace(share=0.0).rates(Z) for mixture in (twice, heavy))
    np.testing.assert_allclose(*rates, rtol=1e-12)


@both_estimates
def test_rows_of_weight_zero_are_not_there(KDE, rng):
    X, w, Z = rng.uniform(size=(30, 1)), np.repeat([1.0, 0.0], 15), rng.uniform(size=(9, 1))
    part = KDE(Interval(0, 1)).fit(X[:15])
    other = KDE(Interval(0, 1)).fit(X, sample_weight=w)
    np.testing.assert_array_equal(part.predict(Z), other.predict(Z))


@both_estimates
def test_the_score_is_the_mean_log_density_whatever_the_number_of_events(KDE, rng):
    X, Z = rng.beta(2, 5, size=(50, 1)), rng.beta(2, 5, size=(50, 1))
    model = KDE(Interval(0, 1)).fit(X)
    assert model.score(Z) == pytest.approx(np.mean(np.log(model.predict(Z) / 50.0)))
    more = KDE(Interval(0, 1)).fit(X, sample_weight=3.0)
    assert more.score(Z) == pytest.approx(model.score(Z))


# the bandwidth


def test_cross_validation_is_the_mean_log_density_of_the_folds(rng):
    X, window, h = rng.beta(1, 4, size=(57, 1)), Interval(0, 1), np.array([0.04])
    trial = bandwidths.Trial(window, X, np.ones(57))
    score, share = trial.fixed(h)
    assert sorted(np.concatenate([fold.Z for fold in trial.folds]).ravel()) == sorted(X.ravel())
    densities = np.concatenate(
        [folded(window, fold.X, fold.Z, h).mean(axis=1) for fold in trial.folds]
    )
    assert score == pytest.approx(np.mean(np.log((1 - share) * densities + share)))


def test_the_uniform_share_maximises_the_likelihood_as_if_half_an_event_more_were_uniform(rng):
    ratios, weights = rng.exponential(size=400) + 1.0, rng.uniform(0.5, 1.5, size=400)
    ratios[0] = 0.0
    weights *= 400 / weights.sum()

    def loss(log_share):
        share = np.exp(log_share)
        return -weights @ np.log((1 - share) * ratios + share) - 0.5 * log_share

    score, share = bandwidths.best_share(ratios, weights)
    best = minimize_scalar(loss, bounds=(np.log(1e-9), np.log(0.01)), method="bounded").x
    assert np.log(share) == pytest.approx(best, abs=1e-3)
    assert score == pytest.approx(weights @ np.log((1 - share) * ratios + share) / 400)
    assert bandwidths.best_share(np.zeros(9), np.ones(9))[1] == pytest.approx(0.01)


@pytest.mark.parametrize("name", ["line", "box"])
def test_the_bandwidth_is_the_one_that_predicts_best(name):
    window, _ = WINDOWS[name]
    X = events(window, 150)
    trial, side = bandwidths.Trial(window, X, np.ones(150)), window.longest_sides()[0]

    def loss(log_h):
        return -trial.fixed(np.exp(log_h) * np.ones(window.dimension)).score

    best = minimize_scalar(loss, bounds=np.log([side / 100, side / 2]), method="bounded").x
    bandwidth = EdgeCorrectedKDE(window).fit(X).bandwidth_
    assert loss(np.log(bandwidth[0])) < loss(best) + 2e-3


def test_a_parabola_finds_the_vertex_between_the_factors():
    best = bandwidths.best_factor(lambda b: -((np.log(b) - np.log(0.07)) ** 2), 0.01, 0.5)
    assert best == pytest.approx(0.07, rel=1e-9)


@pytest.mark.parametrize(("sign", "end"), [(1.0, 0.5), (-1.0, 0.01)])
def test_a_best_factor_at_an_end_stays_there(sign, end):
    assert bandwidths.best_factor(lambda b: sign * b, 0.01, 0.5) == pytest.approx(end)


@both_estimates
@pytest.mark.parametrize("X", [[[0.3]], [[0.3]] * 7])
def test_events_at_one_place_have_the_widest_bandwidth(KDE, X):
    model = KDE(Interval(0, 2)).fit(X)
    assert model.bandwidth_.max() <= 1.0 + 1e-9
    assert EdgeCorrectedKDE(Interval(0, 2)).fit(X).bandwidth_ == [1.0]
    assert np.isfinite(model.predict([[0.0], [2.0]])).all()


def test_the_search_goes_from_the_finest_spacing_to_half_the_window(rng):
    window = Box((0, 0), (1000, 500))
    X = rng.uniform((0, 0), (1000, 500), size=(400, 2))
    X[:200] = rng.normal((300, 200), 0.01, size=(200, 2))
    bounds = bandwidths.limits(window, X)
    assert bounds.widest.tolist() == [500.0, 500.0]
    assert bounds.narrowest[0] < 0.001
    h = EdgeCorrectedKDE(window).fit(X[:200]).bandwidth_
    assert 0.001 < h[0] < 0.02


def test_repeated_positions_do_not_ask_for_bandwidths_below_their_spacing(rng):
    """Half of the events stand at addresses 40 m apart or more."""
    addresses = 40.0 * np.stack(np.meshgrid(np.arange(20), np.arange(20)), axis=-1).reshape(-1, 2)
    X = addresses[rng.integers(400, size=900)]
    window = Box((-20, -20), (800, 800))
    model = best_kde(window, X)
    assert all(layer.h.min() >= 40.0 for layer in model.mixture_.layers)
    assert np.isfinite(model.score(window.sample(50, 0)))


@both_estimates
def test_a_change_of_unit_changes_bandwidth_and_rates_with_it(KDE, rng):
    X, Z = rng.beta(2, 5, size=(80, 2)), rng.uniform(size=(20, 2))
    km = KDE(Box((0, 0), (1, 1))).fit(X)
    m = KDE(Box((0, 0), (1000, 1000))).fit(1000 * X)
    np.testing.assert_allclose(m.bandwidth_, 1000 * km.bandwidth_, rtol=1e-6)
    np.testing.assert_allclose(m.predict(1000 * Z), km.predict(Z) / 1e6, rtol=1e-6)


def test_axes_of_another_unit_have_a_bandwidth_of_their_own(rng):
    """A pattern that is even in the plane and bursts in time."""
    window = Box((0, 0), (1, 1), unit="km") * Interval(0, 365, unit="day")
    X = np.column_stack([rng.uniform(size=(200, 2)), rng.normal(100, 10, size=200)])
    h = EdgeCorrectedKDE(window).fit(X).bandwidth_
    assert h[0] == h[1] > 0.2
    assert h[2] < 15.0


def test_of_many_events_some_are_predicted(monkeypatch, rng):
    X = rng.beta(2, 5, size=(2000, 1))
    monkeypatch.setattr(bandwidths, "KDE_FOLDS", 10)
    all_folds = bandwidths.split(X, np.ones(2000))
    monkeypatch.setattr(bandwidths, "ENOUGH_SCORED", 500)
    some = bandwidths.split(X, np.ones(2000))
    assert (len(all_folds), len(some)) == (10, 3)
    assert all(len(fold.X) == 1800 for fold in some)


@pytest.mark.parametrize("n", [1, 2, 11, 30])
def test_every_event_is_predicted_from_others(n, rng):
    X = rng.uniform(size=(n, 1))
    folds = bandwidths.split(X, np.ones(n))
    assert sum(len(fold.Z) for fold in folds) == (n if n > 1 else 0)
    assert all(len(fold.X) + len(fold.Z) == n and len(fold.X) for fold in folds)


# which is better


def test_the_better_estimate_is_the_one_that_predicts_better(rng):
    """A needle in a plain needs two bandwidths, an even pattern does not."""
    window = Box((0, 0), (1, 1))
    even, needle = rng.uniform(size=(300, 2)), 0.5 + 0.001 * rng.normal(size=(300, 2))
    mixed = np.vstack([even, needle])[rng.permutation(600)]
    best = best_kde(window, mixed[:400])
    assert isinstance(best, AdaptiveKDE)
    assert best.cv_score_ > best.pilot_.cv_score_
    assert gain(best, mixed[400:]) > gain(best.pilot_, mixed[400:]) + 0.03
    plain = best_kde(window, even)
    assert gain(plain, rng.uniform(size=(300, 2))) > -0.05


def test_cross_validation_foretells_the_score_of_new_events(rng):
    X = rng.beta(0.7, 5, size=(1500, 2))
    model = best_kde(Box((0, 0), (1, 1)), X[::2])
    assert model.cv_score_ == pytest.approx(model.score(X[1::2]), abs=0.12)


@both_estimates
def test_on_a_cycle_a_shifted_pattern_has_the_shifted_estimate(KDE, rng):
    x = rng.beta(2, 5, (60, 1)) * 24.0
    z = rng.uniform(0.0, 24.0, (200, 1))
    here = KDE(Cycle(24), 1.7).fit(x)
    there = KDE(Cycle(24), 1.7).fit((x + 21.0) % 24.0)
    np.testing.assert_allclose(here.predict(z), there.predict((z + 21.0) % 24.0), rtol=1e-6)
    np.testing.assert_allclose(here.predict([[0.0]]), here.predict([[24.0]]), rtol=1e-12)


# at the door


@both_estimates
def test_it_is_a_scikit_learn_estimator(KDE):
    model = KDE(BENT, bandwidth=0.2)
    assert clone(model).get_params(deep=False) == {"window": BENT, "bandwidth": 0.2}
    with pytest.raises(NotFittedError, match="must be fitted before it predicts: call fit first"):
        model.predict([[0.0, 1.0]])


@pytest.mark.parametrize(
    ("window", "options", "error", "words"),
    [
        ((0, 1), {}, TypeError, r"window must be a Window such as Interval\(0, 1\), got \(0, 1\)"),
        (Box([0] * 4, [1] * 4), {}, ValueError, "window must have 1, 2 or 3 axes, got 4"),
        (BENT, {"bandwidth": "silverman"}, ValueError, 'bandwidth must be "auto" or a positive'),
        (BENT, {"bandwidth": -1.0}, ValueError, "bandwidth must be a positive finite number"),
        (BENT, {"bandwidth": (1.0,) * 3}, ValueError, "bandwidth must be one number or 2"),
        (BENT, {"bandwidth": 1e-12}, ValueError, "bandwidth must be at least"),
        (
            Interval(0, 1, "km") * Interval(0, 1, "s"),
            {"bandwidth": 0.1},
            ValueError,
            r"bandwidth must be a tuple .*units differ, \('km', 's'\), got 0\.1",
        ),
    ],
)
@both_estimates
def test_bad_parameters_are_refused_in_one_sentence(KDE, window, options, error, words):
    with pytest.raises(error, match=words):
        KDE(window, **options).fit([[0.5, 1.0]])


@pytest.mark.parametrize("verb", ["fit", "predict", "score"])
def test_events_outside_the_window_are_refused(verb):
    model = EdgeCorrectedKDE(Interval(0, 1)).fit([[0.5], [0.6]])
    with pytest.raises(ValueError, match="X must lie in the window, got 1 of 2 points outside"):
        getattr(model, verb)([[0.5], [1.5]])
