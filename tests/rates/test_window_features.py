"""What models of a rate share: events, features that cover a window, bands, the search."""

import numpy as np
import pytest
from scipy import stats

from hplus.kernels import Constant, Gaussian
from hplus.rates.kernel_search import Choice, best_gaussian, best_penalty
from hplus.rates.squares_rate import laplace, square_quantile
from hplus.rates.window_features import MAX_FEATURES, as_events, setting, spread_over
from hplus.windows import Box, Interval, Polygon

L_SHAPE = Polygon([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]])
WINDOWS = [Interval(0, 10), Box((0, 0), (2, 1)), L_SHAPE, L_SHAPE * Interval(0, 3)]
every_window = pytest.mark.parametrize("window", WINDOWS, ids=lambda w: type(w).__name__)


def events_in(window, n=40, exposure=2.0):
    X = window.sample(n, random_state=0)
    return as_events(X, np.linspace(0.5, 2.0, n), window, exposure)


# Events


def test_equal_events_are_merged_and_weightless_ones_dropped():
    events = as_events([[1.0], [0.0], [1.0], [2.0]], [1, 2, 3, 0], Interval(0, 3), 1.0)
    np.testing.assert_array_equal(events.X, [[0.0], [1.0]])
    np.testing.assert_array_equal(events.w, [2.0, 4.0])


@pytest.mark.parametrize("w", [[1.0], [1.0, -1.0], [0.0, 0.0], [[1.0, 1.0]]])
def test_weights_that_are_none_are_refused(w):
    with pytest.raises(ValueError, match=r"w must be one number of at least 0 for each of 2 "):
        as_events([[1.0], [2.0]], w, Interval(0, 3), 1.0)


def test_thinned_events_have_their_share_of_the_exposure():
    events = events_in(Interval(0, 10))
    part = events.thinned(np.arange(10))
    assert part.total / part.exposure == pytest.approx(events.total / events.exposure)


@every_window
def test_spread_points_lie_in_the_window_and_fill_it_evenly(window):
    nodes = spread_over(window, 500)
    assert nodes.shape == (500, window.dimension)
    assert window.contains(nodes).all()
    centre = window.quadrature(4)[1] @ window.quadrature(4)[0] / window.volume
    side = np.subtract(*window.bounds()[::-1])
    np.testing.assert_allclose(nodes.mean(axis=0), centre, atol=0.02 * side.max())


def test_a_thin_window_has_as_many_points():
    sliver = Polygon([[0, 0], [1, 1], [1, 1.001], [0, 0.001]])
    assert sliver.contains(spread_over(sliver, 50)).all()


# Features


@pytest.mark.parametrize("window", WINDOWS[:3], ids=lambda w: type(w).__name__)
def test_the_moment_matrix_is_the_integral_of_the_features_products(window):
    s = setting(events_in(window), Gaussian(0.4 * np.subtract(*window.bounds()[::-1]).max()))
    nodes, weights = window.quadrature(24)
    Phi = s.features(nodes)
    np.testing.assert_allclose(s.T, (Phi * weights[:, None]).T @ Phi, atol=1e-6 * window.volume)
    assert np.linalg.eigvalsh(s.T)[0] >= -1e-12 * window.volume


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Gaussian((0.4, 0.2)), Constant(2.0)], ids=repr)
def test_features_stand_for_the_kernel_all_over_the_window(kernel):
    window = Box((0, 0), (2, 1))
    s = setting(as_events([[0.1, 0.1]], [1.0], window, 1.0), kernel)
    X = window.sample(200, random_state=1)
    Phi = s.features(X)
    assert Phi.shape[1] <= MAX_FEATURES
    np.testing.assert_allclose(Phi @ Phi.T, kernel(X), atol=1e-3)
    assert s.unit == pytest.approx(kernel.diag(X).mean() * 2.0, rel=1e-3)


def test_a_scale_too_small_for_the_features_is_not_resolved_but_reaches_few_events():
    window = Box((0, 0), (1, 1))
    few = setting(events_in(window, 20), Gaussian(1e-4))
    assert not few.resolved
    few.require_reach()
    many = setting(events_in(window, 900), Gaussian(1e-4))
    with pytest.raises(ValueError, match=r"kernel must reach every event from 300 centers, got "):
        many.require_reach()


def test_far_away_is_like_at_home():
    near, far = (setting(events_in(Interval(a, a + 8)), Gaussian(1.0)) for a in (0.0, 2.0**20))
    np.testing.assert_allclose(near.Phi @ near.Phi.T, far.Phi @ far.Phi.T, atol=1e-8)
    assert near.unit == pytest.approx(far.unit, rel=1e-6)


# Bands


@pytest.fixture
def posterior_and_hessian(rng):
    """A posterior of a factor with two columns, and its precision the long way."""
    s = setting(events_in(Interval(0, 10), 30), Gaussian(2.5))
    m = len(s.T)
    R, M = rng.normal(size=(m, 2)), rng.normal(size=(m, m))
    D, w = M @ M.T + np.eye(m), s.events.w
    U = s.Phi @ R
    J = np.einsum("ij,ik->ijk", s.Phi, U).reshape(len(U), -1)
    H = 2.0 * np.kron(D, np.eye(2)) + 4.0 * (J.T * (w / np.sum(U**2, axis=1) ** 2)) @ J
    return s, R, laplace(s, R, D, 1e-6, w), H


def test_the_spread_of_the_root_is_that_of_the_dense_precision(posterior_and_hessian):
    s, R, posterior, H = posterior_and_hessian
    X = np.linspace(0, 10, 7)[:, None]
    Phi = s.features(X)
    U = Phi @ R
    G = np.einsum("ij,ik->ijk", Phi, U / np.linalg.norm(U, axis=1, keepdims=True)).reshape(7, -1)
    expected = np.sqrt(np.sum(G * np.linalg.solve(H, G.T).T, axis=1))
    np.testing.assert_allclose(posterior.root_sd(X), expected, rtol=1e-6)


def test_the_spread_of_a_log_count_is_that_of_the_dense_precision(posterior_and_hessian):
    s, R, posterior, H = posterior_and_hessian
    region = Interval(2, 5)
    nodes, weights = region.quadrature(30)
    Phi = s.features(nodes)
    count = weights @ np.sum((Phi @ R) ** 2, axis=1)
    G = (2.0 / count * (Phi * weights[:, None]).T @ (Phi @ R)).ravel()
    expected = np.sqrt(G @ np.linalg.solve(H, G))
    assert posterior.log_count_sd(region) == pytest.approx(expected, rel=1e-6)


def test_turning_the_columns_changes_no_band(posterior_and_hessian, rng):
    s, R, *_ = posterior_and_hessian
    Q = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    D, X = np.eye(len(R)), np.linspace(0, 10, 7)[:, None]
    one, other = (laplace(s, factor, D, 1e-6, s.events.w) for factor in (R, R @ Q))
    np.testing.assert_allclose(one.interval(X, 0.9), other.interval(X, 0.9), rtol=1e-8)


def test_a_band_holds_the_rate_and_widens_with_its_level(posterior_and_hessian):
    *_, posterior, _ = posterior_and_hessian
    X = np.linspace(0, 10, 20)[:, None]
    (low, high), (lower, higher) = (posterior.interval(X, level) for level in (0.5, 0.95))
    f = posterior.function(X)
    assert np.all((lower >= 0) & (lower <= low) & (low <= f) & (f <= high) & (high < higher))


@pytest.mark.parametrize("p", [0.01, 0.05, 0.5, 0.95])
def test_the_quantile_of_a_square_is_that_of_noncentral_chi_square(p):
    mean, sd = np.array([0.0, 0.5, 2.0, 5.9, 6.1, 20.0]), 0.3
    expected = sd**2 * stats.ncx2.ppf(p, 1, np.maximum((mean / sd) ** 2, 1e-12))
    np.testing.assert_allclose(square_quantile(mean, np.full(6, sd), p), expected, rtol=1e-5)


def test_the_quantile_of_a_square_is_exact_for_sharp_and_for_no_spread():
    sharp = square_quantile(np.array([1e8, 3.0]), np.array([1.0, 0.0]), 0.95)
    np.testing.assert_allclose(sharp, [(1e8 + stats.norm.ppf(0.95)) ** 2, 9.0])


# The search


def test_the_search_finds_the_best_scale_of_every_unit():
    window = Box((0, 0), (4, 2), unit="km") * Interval(0, 100, unit="day")

    def judge(kernel, penalty):
        miss = np.log(np.array(kernel.scale) / [0.3, 0.3, 20.0])
        return Choice(-np.sum(miss**2), kernel, 1.0)

    space, also, time = best_gaussian(window, judge).kernel.scale
    assert space == also
    assert abs(np.log(space / 0.3)) < 0.3
    assert abs(np.log(time / 20.0)) < 0.3


def test_the_search_stops_where_scales_are_hopeless():
    tried = []

    def judge(kernel, penalty):
        tried.append(kernel.scale)
        return Choice(100.0 * np.log(kernel.scale), kernel, 1.0)

    best_gaussian(Interval(0, 1), judge)
    assert min(tried) > 0.15


@pytest.mark.parametrize("best", [1e-3, 1.0, 50.0])
def test_the_best_penalty_is_found_up_or_down_hill(best):
    choice = best_penalty(lambda p: -(np.log(p / best) ** 2), 1.0, Gaussian(1.0))
    assert abs(np.log10(choice.penalty / best)) <= 0.25 + 1e-9
