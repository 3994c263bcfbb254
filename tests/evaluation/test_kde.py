"""The kernel baseline: oracles are direct sums, scipy's and scikit-learn's estimates."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.stats import gaussian_kde
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KernelDensity

from hplus.evaluation import EdgeCorrectedKDE, kde, smoothing
from hplus.grids import TensorGrid
from hplus.windows import Box, Cycle, Interval, Polygon, Polygons

BENT = Polygon([[0, 0], [3, 1], [1, 1.5], [2, 4], [-1, 2]], unit="km")
WINDOWS = {
    "line": (Interval(-1, 3), 400),
    "box": (Box((0, 0), (2, 1)), 30),
    "polygon": (BENT, 16),
    "islands": (Polygons((BENT, Polygon([[3, 2], [4, 2], [4, 4]])), unit="km"), 16),
    "solid": (Box((0, 0), (2, 1)) * Interval(0, 1.5), 11),
}
every_window = pytest.mark.parametrize(("window", "order"), WINDOWS.values(), ids=WINDOWS)


@pytest.fixture
def coarse(monkeypatch):
    """Grids that are coarse enough for a quick search of the bandwidth."""
    monkeypatch.setattr(kde, "GRID_NODES", {1: 1025, 2: 121, 3: 49})


# oracles


def gaussian(X, Z, h):
    return np.exp(-0.5 * cdist(X / h, Z / h, "sqeuclidean"))


def direct_ratios(window, X, w, h, Z):
    """Σ_i w_i k(z, x_i) / ∫_W k(z, u) du at Z, by sums over pairs and many quadrature nodes."""
    nodes, weights = window.quadrature({1: 400, 2: 60, 3: 30}[window.dimension])
    return gaussian(Z, X, h) @ w / (gaussian(Z, nodes, h) @ weights)


def direct_leave_one_out(window, order, X, w, h):
    """The mean log-density of each event under the estimate from all others."""
    nodes, weights = window.quadrature(order)
    K = gaussian(X, X, h) * (1.0 - np.eye(len(X)))
    r = (weights / (gaussian(nodes, nodes, h) @ weights)) @ gaussian(nodes, X, h)
    densities = K @ w / (gaussian(X, nodes, h) @ weights) / (w @ r - w * r)
    return w @ np.log(densities) / w.sum()


def left_out(window, X, w):
    sides = window.longest_sides()
    grid = kde._grid(window, sides)
    return smoothing.leave_one_out(grid, X, w, window, np.arange(len(X)), sides)


# the estimate


@every_window
@pytest.mark.parametrize("width", [0.1, 0.4])
def test_rates_are_in_proportion_to_the_direct_sum_up_to_the_edges(window, order, width, rng):
    X, w = window.sample(50, random_state=0), rng.uniform(0.5, 2.0, 50)
    h = width * np.ones(window.dimension)
    Z = np.vstack([window.sample(200, random_state=1), np.atleast_2d(X[:5])])
    rates = EdgeCorrectedKDE(window, bandwidth=width).fit(X, sample_weight=w).predict(Z)
    oracle = direct_ratios(window, X, w, h, Z)
    oracle *= rates.sum() / oracle.sum()
    np.testing.assert_allclose(rates, oracle, rtol=0.01, atol=0.004 * oracle.max())


def test_far_from_the_edges_it_is_scipys_estimate(rng):
    x = rng.normal(size=100)
    model = EdgeCorrectedKDE(Interval(-20, 20), bandwidth=0.5).fit(x[:, None])
    oracle = gaussian_kde(x, bw_method=0.5 / x.std(ddof=1))
    z = np.linspace(-5, 5, 101)
    np.testing.assert_allclose(model.predict(z[:, None]), 100 * oracle(z), rtol=1e-2, atol=0.01)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_far_from_the_edges_it_is_scikit_learns_estimate(dimension, rng):
    X, Z = rng.normal(size=(60, dimension)), rng.normal(size=(60, dimension))
    window = Box([-8.0] * dimension, [8.0] * dimension)
    model = EdgeCorrectedKDE(window, bandwidth=0.6).fit(X)
    oracle = 60 * np.exp(KernelDensity(bandwidth=0.6).fit(X).score_samples(Z))
    np.testing.assert_allclose(model.predict(Z), oracle, rtol=0.02, atol=0.002 * oracle.max())


@every_window
def test_events_everywhere_alike_have_a_constant_rate_up_to_the_edges(window, order):
    nodes, weights = window.quadrature(order)
    model = EdgeCorrectedKDE(window, bandwidth=0.3).fit(nodes, sample_weight=weights)
    np.testing.assert_allclose(model.predict(window.sample(500, random_state=0)), 1.0, atol=0.01)


@every_window
@pytest.mark.parametrize("bandwidth", ["auto", 0.2])
@pytest.mark.usefixtures("coarse")
def test_the_expected_count_is_the_sum_of_the_weights(window, order, bandwidth, rng):
    X, w = window.sample(40, random_state=2), rng.uniform(0.0, 3.0, 40)
    model = EdgeCorrectedKDE(window, bandwidth).fit(X, sample_weight=w)
    assert model.expected_count(window) == pytest.approx(w.sum(), rel=1e-12)
    nodes, weights = window.quadrature(order)
    assert weights @ model.predict(nodes) == pytest.approx(w.sum(), rel=0.01)


@every_window
def test_the_parts_of_the_window_add_up_to_the_whole(window, order):
    model = EdgeCorrectedKDE(window, 0.3).fit(window.sample(40, random_state=3))
    (low, high), cut = window.bounds(), 0.7
    parts = [
        Box(low, np.append(cut, high[1:])),
        Box(np.append(cut, low[1:]), high),
    ]
    counts = model.expected_count(parts)
    assert counts.shape == (2,)
    assert counts.sum() == pytest.approx(40.0, rel=1e-9)
    Z = window.sample(100_000, random_state=4)
    left = window.volume * np.mean(model.predict(Z) * (Z[:, 0] < cut))
    assert counts[0] == pytest.approx(left, rel=0.03)


@every_window
def test_no_rate_is_negative_even_where_kernels_underflow(window, order):
    X = window.sample(3, random_state=4)
    sides = window.longest_sides()
    model = EdgeCorrectedKDE(window, tuple(sides / 75)).fit(X)
    rates = model.predict(window.sample(20_000, random_state=5))
    assert rates.min() >= 0.0
    assert np.isfinite(rates).all()
    assert model.rates_.min() >= 0.0


def test_rows_that_stand_twice_are_rows_of_weight_two(rng):
    X = rng.uniform(size=(20, 2))
    twice = EdgeCorrectedKDE(Box((0, 0), (1, 1)), 0.1).fit(np.vstack([X, X[:5]]))
    heavy = EdgeCorrectedKDE(Box((0, 0), (1, 1)), 0.1).fit(X, sample_weight=[2] * 5 + [1] * 15)
    np.testing.assert_allclose(twice.rates_, heavy.rates_, rtol=1e-12)


def test_rows_of_weight_zero_are_not_there(rng):
    X, w = rng.uniform(size=(30, 1)), np.repeat([1.0, 0.0], 15)
    part = EdgeCorrectedKDE(Interval(0, 1)).fit(X[:15])
    whole = EdgeCorrectedKDE(Interval(0, 1)).fit(X, sample_weight=w)
    np.testing.assert_array_equal(part.rates_, whole.rates_)


def test_the_score_is_the_mean_log_density_whatever_the_number_of_events(rng):
    X, Z = rng.beta(2, 5, size=(50, 1)), rng.beta(2, 5, size=(50, 1))
    model = EdgeCorrectedKDE(Interval(0, 1)).fit(X)
    assert model.score(Z) == pytest.approx(np.mean(np.log(model.predict(Z) / 50.0)))
    more = EdgeCorrectedKDE(Interval(0, 1), tuple(model.bandwidth_)).fit(X, sample_weight=3.0)
    assert more.score(Z) == pytest.approx(model.score(Z))


def test_the_score_of_an_event_out_of_reach_is_minus_infinity():
    model = EdgeCorrectedKDE(Interval(0, 100), 0.2).fit([[1.0], [2.0]])
    assert model.score([[99.0]]) == -np.inf


# the bandwidth


@pytest.mark.parametrize("width", [0.03, 0.1, 0.5])
@every_window
def test_leaving_one_out_agrees_with_the_direct_sum(window, order, width, rng):
    """0.02 nats for kernels of one or two cells, 0.002 for wider ones."""
    n = 200 if window.dimension == 1 else 40
    X, w = window.sample(n, random_state=6), rng.uniform(0.5, 1.5, n)
    h = width * window.longest_sides()
    score = left_out(window, X, w).score(h)
    cells = (h / kde._grid(window, window.longest_sides()).spacing).min()
    if window.dimension < 3 or width > 0.05:  # the oracle's own nodes are too far apart there
        oracle = direct_leave_one_out(window, order, X, w, h)
        assert score == pytest.approx(oracle, abs=0.02 if cells < 13 else 0.002)


def test_leaving_one_out_of_200_points_in_the_plane_agrees_with_the_direct_sum():
    window, h = Box((0, 0), (1, 1)), np.array([0.04, 0.04])
    X = window.sample(200, random_state=7) ** 1.5
    score = left_out(window, X, np.ones(200)).score(h)
    oracle = direct_leave_one_out(window, 30, X, np.ones(200), h)
    assert score == pytest.approx(oracle, abs=0.003)


def test_lonely_events_cost_what_their_nearest_neighbours_say(rng):
    """Less their own terms the sums cancel to rounding; 15 bandwidths away, -110 nats are left."""
    X, window = np.linspace(0.02, 0.97, 20)[:, None] + rng.uniform(0, 1e-3, (20, 1)), Interval(0, 1)
    w, h = rng.uniform(0.5, 1.5, 20), np.array([1 / 300])
    score = left_out(window, X, w).score(h)
    assert score == pytest.approx(direct_leave_one_out(window, 600, X, w, h), rel=0.01)
    assert score < -100.0


@pytest.mark.parametrize("name", ["line", "box"])
def test_the_bandwidth_is_the_best_one_of_the_direct_sum(name):
    window, order = WINDOWS[name]
    low, high = window.bounds()
    X = low + (high - low) * window.sample(60, random_state=8).clip(0.0) ** 2 / high**2
    side = window.longest_sides()[0]

    def loss(log_h):
        h = np.exp(log_h) * np.ones(window.dimension)
        return -direct_leave_one_out(window, order, X, np.ones(len(X)), h)

    best = minimize_scalar(loss, bounds=np.log([side / 50, side / 2]), method="bounded").x
    bandwidth = EdgeCorrectedKDE(window).fit(X).bandwidth_
    assert loss(np.log(bandwidth[0])) < loss(best) + 1e-3


def test_a_parabola_finds_the_vertex_between_the_factors():
    factors = np.geomspace(0.5, 0.01, 9)
    best = smoothing.best_factor(lambda b: -((np.log(b) - np.log(0.07)) ** 2), factors)
    assert best == pytest.approx(0.07, rel=1e-9)


@pytest.mark.parametrize(("sign", "end"), [(1.0, 0.5), (-1.0, 0.01)])
def test_a_best_factor_at_an_end_stays_there(sign, end):
    factors = np.geomspace(0.5, 0.01, 9)
    assert smoothing.best_factor(lambda b: sign * b, factors) == pytest.approx(end)


def test_where_no_bandwidth_can_be_judged_the_widest_is_taken():
    assert smoothing.best_factor(lambda b: -np.inf, np.array([0.5, 0.1, 0.01])) == 0.5
    assert EdgeCorrectedKDE(Interval(0, 2)).fit([[0.3]]).bandwidth_ == [1.0]


@pytest.mark.usefixtures("coarse")
def test_a_change_of_unit_changes_bandwidth_and_rates_with_it(rng):
    X, Z = rng.beta(2, 5, size=(80, 2)), rng.uniform(size=(20, 2))
    km = EdgeCorrectedKDE(Box((0, 0), (1, 1))).fit(X)
    m = EdgeCorrectedKDE(Box((0, 0), (1000, 1000))).fit(1000 * X)
    np.testing.assert_allclose(m.bandwidth_, 1000 * km.bandwidth_, rtol=1e-9)
    np.testing.assert_allclose(m.predict(1000 * Z), km.predict(Z) / 1e6, rtol=1e-9)


@pytest.mark.usefixtures("coarse")
def test_axes_of_another_unit_have_a_bandwidth_of_their_own(rng):
    """A pattern that is even in the plane and bursts in time."""
    window = Box((0, 0), (1, 1), unit="km") * Interval(0, 365, unit="day")
    X = np.column_stack([rng.uniform(size=(200, 2)), rng.normal(100, 10, size=200)])
    h = EdgeCorrectedKDE(window).fit(X).bandwidth_
    assert h[0] == h[1] > 0.2
    assert h[2] < 15.0


def test_of_many_events_some_are_left_out(monkeypatch, rng):
    X = rng.beta(2, 5, size=(2000, 1))
    whole = EdgeCorrectedKDE(Interval(0, 1)).fit(X).bandwidth_
    monkeypatch.setattr(kde, "MAX_SCORED_EVENTS", 1000)
    part = EdgeCorrectedKDE(Interval(0, 1)).fit(X).bandwidth_
    assert 0.5 < part[0] / whole[0] < 2.0
    assert part[0] != whole[0]


def test_events_at_the_same_place_are_neighbours():
    X = np.array([[0.2], [0.2], [0.2], [0.7]])
    near = left_out(Interval(0, 1), X, np.ones(4))
    np.testing.assert_allclose(np.abs(near.away[:, 0]), [0.0, 0.0, 0.0, 0.5])


@pytest.mark.parametrize("closed", [(), (1,)])
def test_smoothing_is_symmetric_and_sums_over_all_nodes_and_all_ways_round(closed, rng):
    a, b, widths = rng.uniform(size=(7, 5)), rng.uniform(size=(7, 5)), np.array([1.2, 2.5])
    grid = TensorGrid((0, 0), (6, 4), (7, 5), closed)
    rounds = [(0.0, 4.0 * m) for m in range(-9, 10)] if closed else [(0.0, 0.0)]
    nodes = grid.nodes()
    oracle = sum(gaussian(nodes + turn, nodes, widths) for turn in rounds) @ a.ravel()
    np.testing.assert_allclose(smoothing.smooth(grid, a, widths).ravel(), oracle)
    left, right = (x * smoothing.smooth(grid, y, widths) for x, y in ((a, b), (b, a)))
    assert left.sum() == pytest.approx(right.sum())


def test_on_a_cycle_a_shifted_pattern_has_the_shifted_estimate(rng):
    x = rng.beta(2, 5, (60, 1)) * 24.0
    z = rng.uniform(0.0, 24.0, (200, 1))
    here = EdgeCorrectedKDE(Cycle(24)).fit(x)
    there = EdgeCorrectedKDE(Cycle(24)).fit((x + 21.0) % 24.0)
    np.testing.assert_allclose(here.bandwidth_, there.bandwidth_, rtol=1e-6)
    np.testing.assert_allclose(here.predict(z), there.predict((z + 21.0) % 24.0), rtol=1e-6)
    assert here.predict([[0.0]]) == here.predict([[24.0]])


def test_leaving_out_on_a_cycle_subtracts_the_kernel_of_all_ways_round(rng):
    X, w, h = rng.uniform(0.0, 1.0, (20, 1)), rng.uniform(0.5, 2.0, 20), np.array([0.4])
    K = sum(gaussian(X + m, X, h) for m in range(-9, 10)) * (1.0 - np.eye(20))
    # the mass of a kernel on the whole circle is the same everywhere
    oracle = w @ np.log(K @ w / (w.sum() - w) / (h[0] * np.sqrt(2.0 * np.pi))) / w.sum()
    assert left_out(Cycle(1), X, w).score(h) == pytest.approx(oracle, abs=1e-4)


# at the door


def test_it_is_a_scikit_learn_estimator():
    model = EdgeCorrectedKDE(BENT, bandwidth=0.2)
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
        (BENT, {"bandwidth": 1e-3}, ValueError, "bandwidth must be at least the spacing"),
        (
            Interval(0, 1, "km") * Interval(0, 1, "s"),
            {"bandwidth": 0.1},
            ValueError,
            r"bandwidth must be a tuple .*units differ, \('km', 's'\), got 0\.1",
        ),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(window, options, error, words):
    with pytest.raises(error, match=words):
        EdgeCorrectedKDE(window, **options).fit([[0.5, 1.0]])


@pytest.mark.parametrize("verb", ["fit", "predict", "score"])
def test_events_outside_the_window_are_refused(verb):
    model = EdgeCorrectedKDE(Interval(0, 1)).fit([[0.5], [0.6]])
    with pytest.raises(ValueError, match="X must lie in the window, got 1 of 2 points outside"):
        getattr(model, verb)([[0.5], [1.5]])
