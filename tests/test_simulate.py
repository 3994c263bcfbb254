"""Simulated Poisson patterns: oracles are quadrature, Poisson counts and the rate's integral."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, kstest

from hplus import simulate
from hplus.simulate import LAMBDA1, LAMBDA2, LAMBDA3, TRUTHS
from hplus.windows import Box, Interval, Polygon

TRIANGLE = Polygon([[0, 0], [4, 0], [0, 4]], unit="km")
WINDOWS = [Interval(-1, 3), Box((0, 0), (1, 2)), TRIANGLE, TRIANGLE * Interval(0, 3)]
every_window = pytest.mark.parametrize("window", WINDOWS, ids=repr)
every_truth = pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)


def peak(X):
    """A rate of 1e6, and thrice that on a stretch that no probe falls in."""
    return 1e6 + 2e6 * (np.abs(X[:, 0] - HIDDEN) < HALF_WIDTH)


def largest_gap(points):
    """The middle of the widest gap between sorted numbers."""
    points = np.sort(points)
    i = np.argmax(np.diff(points))
    return 0.5 * (points[i] + points[i + 1])


HALF_WIDTH = 2e-5
HIDDEN = largest_gap(
    np.concatenate(
        [
            np.linspace(0.0, 1.0, simulate.BOUND_PROBES),
            Interval(0, 1).sample(simulate.BOUND_PROBES, random_state=0)[:, 0],
        ]
    )
)


def counts_over_seeds(rate, window, n, **options):
    return np.array(
        [len(simulate.poisson(rate, window, random_state=seed, **options)) for seed in range(n)]
    )


@every_window
def test_events_of_a_constant_rate_lie_in_the_window_and_are_poisson_many(window):
    mean = 20.0
    counts = counts_over_seeds(mean / window.volume, window, 300)
    assert window.contains(simulate.poisson(100.0, window, random_state=0)).all()
    assert abs(counts.mean() - mean) < 4.0 * np.sqrt(mean / 300)
    # variance over mean is 1, with a standard error of √(2/300)
    assert abs(counts.var() / counts.mean() - 1.0) < 4.0 * np.sqrt(2.0 / 300)


@every_window
def test_events_follow_the_rate(window):
    low, high = window.bounds()

    def rate(X):
        return 3000.0 / window.volume * (1.0 + (X[:, 0] - low[0]) / (high[0] - low[0])) ** 2

    X = simulate.poisson(rate, window, random_state=1)
    nodes, weights = window.quadrature(5)
    assert abs(len(X) - weights @ rate(nodes)) < 4.0 * np.sqrt(len(X))
    many, cuts = window.sample(300_000, random_state=2), np.linspace(low[0], high[0], 7)[1:-1]
    shares = np.bincount(np.searchsorted(cuts, many[:, 0]), rate(many))
    observed = np.bincount(np.searchsorted(cuts, X[:, 0]), minlength=6)
    assert chisquare(observed, len(X) * shares / shares.sum()).pvalue > 1e-3


@every_truth
def test_mean_counts_are_the_integrals_of_the_rates(truth):
    low, high = truth.window.low, truth.window.high
    oracle, _ = quad(lambda x: truth.rate([[x]])[0], low, high, limit=200, points=[25, 50, 75])
    assert truth.mean_count == pytest.approx(oracle, rel=1e-9)


def test_mean_counts_are_those_of_the_literature():
    counts = [truth.mean_count for truth in (LAMBDA1, LAMBDA2, LAMBDA3)]
    np.testing.assert_allclose(counts, [46.647, 32.640, 225.0], atol=5e-4)


def test_rates_pass_through_known_values():
    np.testing.assert_allclose(
        LAMBDA1.rate([[0.0], [25.0]]), [2 + np.exp(-6.25), 2 * 0.1889 + 1], 1e-4
    )
    np.testing.assert_allclose(LAMBDA2.rate([[0.0], [np.sqrt(np.pi / 2)]]), [6.0, 11.0])
    np.testing.assert_allclose(
        LAMBDA3.rate([[0.0], [12.5], [62.5], [100.0]]), [2.0, 2.5, 1.75, 3.0]
    )


@every_truth
def test_simulated_counts_agree_with_the_mean_count(truth):
    counts = np.array([len(truth.sample(random_state=seed)) for seed in range(200)])
    assert abs(counts.mean() - truth.mean_count) < 4.0 * np.sqrt(truth.mean_count / 200)


@every_truth
def test_the_rate_up_to_an_event_is_uniform(truth):
    x = np.sort(truth.scaled(20.0).sample(random_state=3)[:, 0])
    grid = np.linspace(truth.window.low, truth.window.high, 20_001)
    rates = truth.rate(grid[:, None])
    integral = np.concatenate([[0.0], np.cumsum(0.5 * (rates[1:] + rates[:-1]) * np.diff(grid))])
    assert kstest(np.interp(x, grid, integral) / truth.mean_count, "uniform").pvalue > 1e-3


def test_scaling_multiplies_rate_and_count_and_leaves_the_original_alone():
    more = LAMBDA2.scaled(10.0).scaled(0.5)
    np.testing.assert_allclose(more.rate([[1.0]]), 5.0 * LAMBDA2.rate([[1.0]]))
    assert more.mean_count == pytest.approx(5.0 * LAMBDA2.mean_count)
    assert LAMBDA2.factor == 1.0
    assert more == LAMBDA2.scaled(5.0) != LAMBDA2
    assert repr(more) == "<LAMBDA2 x 5: 163.198 events on Interval(0.0, high=5.0)>"


def test_the_same_random_state_gives_the_same_events():
    a, b, c = (simulate.poisson(LAMBDA1.rate, LAMBDA1.window, random_state=s) for s in (5, 5, 6))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.parametrize("bound", [11.0, 40.0])
def test_the_bound_does_not_change_the_law(bound):
    counts = counts_over_seeds(LAMBDA2.rate, LAMBDA2.window, 200, bound=bound)
    assert abs(counts.mean() - LAMBDA2.mean_count) < 4.0 * np.sqrt(LAMBDA2.mean_count / 200)


def test_a_peak_that_the_probes_miss_is_met_while_drawing_and_adds_a_layer():
    X = simulate.poisson(peak, Interval(0, 1), random_state=0)[:, 0]
    inside = (np.abs(X - HIDDEN) < HALF_WIDTH).sum()
    assert simulate._largest(peak, Interval(0, 1)) == 1e6
    assert abs(inside - 120) < 4.0 * np.sqrt(120)
    assert abs(len(X) - inside - 1e6) < 4e3


def test_layers_add_up_to_the_whole_whatever_the_first_bound():
    def rate(X):
        return 200.0 * X[:, 0]

    starts = [
        len(simulate._layers(rate, Interval(0, 1), 5.0, np.random.RandomState(seed)))
        for seed in range(300)
    ]
    assert abs(np.mean(starts) - 100.0) < 4.0 * np.sqrt(100.0 / 300)


@pytest.mark.parametrize("zero", [0.0, lambda X: np.zeros(len(X))], ids=["number", "callable"])
def test_a_rate_of_zero_has_no_events(zero):
    assert simulate.poisson(zero, TRIANGLE, bound=0.0).shape == (0, 2)


def test_a_constant_rate_of_zero_needs_no_bound():
    assert simulate.poisson(0.0, TRIANGLE).shape == (0, 2)


@pytest.mark.parametrize(
    ("rate", "options", "error", "words"),
    [
        (-1.0, {}, ValueError, r"rate must be a finite number of at least 0, got -1\.0\.$"),
        (
            lambda X: X[:, 0] - 0.5,
            {},
            ValueError,
            r"rate must be at least 0 in .*, got -0\.5 at \(0",
        ),
        (lambda X: X[:, 0] * np.nan, {}, ValueError, "rate must contain only finite numbers"),
        (lambda X: X, {}, ValueError, r"rate must return one number .*, got shape \(\d+, 1\)\.$"),
        (lambda X: 0.0 * X[:, 0], {}, ValueError, "rate must be above 0 .* give a bound"),
        (lambda X: "much", {}, TypeError, "rate must contain only real numbers"),
        ("much", {}, TypeError, "rate must be a finite number of at least 0, got 'much'"),
        (
            LAMBDA1.rate,
            {"bound": 1.0},
            ValueError,
            "bound must be at least the largest rate, got 1 ",
        ),
        (2.0, {"bound": 1.0}, ValueError, "got 1 and a rate of 2: raise the bound"),
        (LAMBDA1.rate, {"bound": -1.0}, ValueError, "bound must be a finite number of at least 0"),
        (1e15, {}, MemoryError, "lower the rate or the bound"),
    ],
)
def test_bad_rates_and_bounds_are_refused_in_one_sentence(rate, options, error, words):
    with pytest.raises(error, match=words):
        simulate.poisson(rate, Interval(0, 1), random_state=0, **options)


def test_what_is_no_window_is_refused():
    with pytest.raises(TypeError, match="window must be a Window such as"):
        simulate.poisson(1.0, (0, 1))


def test_points_outside_the_window_have_no_rate():
    with pytest.raises(ValueError, match="X must lie in the window"):
        LAMBDA1.rate([[51.0]])


@pytest.mark.parametrize("factor", [0.0, -2.0, np.inf])
def test_a_factor_must_be_positive(factor):
    with pytest.raises(ValueError, match="factor must be a positive finite number"):
        LAMBDA1.scaled(factor)
