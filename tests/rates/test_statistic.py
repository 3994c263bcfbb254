"""What a fit keeps of the events: sums over parts, whatever the parts."""

import numpy as np
import pytest

from hplus import Box, Intensity, Interval, Polygon, Statistic
from hplus.rates.binned import BinnedStatistic, finest_grid

TRIANGLE = Polygon([[0, 0], [2, 0], [0, 2]])
WINDOWS = [Interval(0, 3), Box((0, 0), (2, 1)), TRIANGLE, TRIANGLE * Interval(0, 5)]
every_window = pytest.mark.parametrize("window", WINDOWS, ids=lambda w: type(w).__name__)


def merged(window, X, weights, parts):
    """The sum of the statistics of parts of the events."""
    pieces = np.array_split(np.arange(len(X)), parts)
    each = [Statistic.of(window, X[i], weights[i], random_state=k) for k, i in enumerate(pieces)]
    return sum(each[1:], each[0])


@pytest.mark.parametrize("window", WINDOWS[:2], ids=repr)
@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_statistics_of_parts_add_up_to_that_of_the_whole(window, parts, rng):
    X, weights = window.sample(200, random_state=0), rng.uniform(0.5, 2.0, 200)
    whole, sum_ = Statistic.of(window, X, weights), merged(window, X, weights, parts)
    np.testing.assert_allclose(sum_.counts.sum(axis=0), whole.counts.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(sum_.total, weights.sum(), rtol=1e-12)
    assert sum_.events == whole.events == 200


@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_a_fit_of_merged_statistics_is_the_fit_of_the_events(parts, rng):
    window, X = Interval(0, 3), 3.0 * rng.beta(2, 3, (200, 1))
    whole = Intensity(window).fit(X)
    part = Intensity(window).fit(merged(window, X, np.ones(200), parts))
    np.testing.assert_allclose(part.predict(X), whole.predict(X), rtol=1e-8)
    np.testing.assert_allclose(part.expected_count(window), 200.0, rtol=1e-10)


def test_addition_does_not_depend_on_the_order(rng):
    window = Interval(0, 1)
    a, b = (Statistic.of(window, rng.random((n, 1))) for n in (3, 5))
    assert a + b == b + a


@every_window
def test_the_grid_has_about_square_cells_and_can_be_halved(window):
    grid = finest_grid(window)
    sides = grid.spacing / window.longest_sides()
    assert sides.max() / sides.min() < 1.5
    assert all(n % 2 == 1 for n in grid.shape)


def test_binned_weights_have_the_mean_of_the_events(rng):
    window, X = Box((0, 0), (2, 1)), rng.random((50, 2))
    statistic = Statistic.of(window, X)
    mean = statistic.counts.sum(axis=0).ravel() @ statistic.grid.nodes() / 50.0
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-12)


def test_a_statistic_is_frozen_and_equal_to_its_repeat(rng):
    X = rng.random((20, 1))
    a, b = (Statistic.of(Interval(0, 1), X, random_state=3) for _ in range(2))
    assert a == b
    assert a != Statistic.of(Interval(0, 1), X[1:], random_state=3)
    with pytest.raises(ValueError, match="read-only"):
        a.counts[0] = 1.0


FOUR_AXES = Box((0,) * 4, (1,) * 4)
ONE = Statistic.of(Interval(0, 1), [[0.5]])
REFUSED = [
    (lambda: Statistic.of(FOUR_AXES, np.zeros((1, 4))), "window must have 1, 2 or 3 axes, got 4"),
    (lambda: Statistic.of(Interval(0, 1), [[0.5]], [-1.0]), "at least 0 .* 1 events, got -1"),
    (lambda: Statistic.of(Interval(0, 1), [[0.5]], [1.0, 2.0]), "1 events, got shape"),
    (lambda: Statistic.of(Interval(0, 1), [[0.5], [2.0]]), "got 1 of 2 points outside"),
    (lambda: Statistic.of(Interval(1e9, 1e9 + 1e-6), [[1e9]]), "window must be wide enough"),
    (lambda: ONE + Statistic.of(Interval(0, 2), [[0.5]]), "must share one window to be added"),
    (lambda: Statistic(Interval(0, 1), np.ones((5, 3)), 1), "counts must be at least 0"),
    (lambda: Statistic(Interval(0, 1), -ONE.counts, 1), "counts must be at least 0"),
    (lambda: Intensity(Interval(0, 2)).fit(ONE), "have the same window"),
]


@pytest.mark.parametrize(("attempt", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused_is_refused_in_one_sentence(attempt, words):
    with pytest.raises(ValueError, match=words) as refused:
        attempt()
    text = str(refused.value)
    assert text.endswith(".")
    assert text.count(". ") == 0


def test_only_windows_and_statistics_are_accepted():
    with pytest.raises(TypeError, match=r"window must be a Window"):
        Statistic.of((0, 1), [[0.5]])
    with pytest.raises(TypeError):
        ONE + 1
