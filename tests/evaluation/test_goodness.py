"""Goodness of fit: right rates pass, wrong ones do not; oracles are closed forms and scipy."""

import numpy as np
import pytest
from scipy.stats import chisquare, expon, kstest, poisson

from hplus import simulate
from hplus.evaluation import EdgeCorrectedKDE, check, residuals
from hplus.evaluation.residuals import CountTable
from hplus.evaluation.verdicts import DEPENDENCE
from hplus.windows import Box, Cycle, Interval, Polygon, Polygons, Window

TRIANGLE = Polygon([[0, 0], [3, 0], [0, 3]], unit="km")
WINDOWS = {
    "line": Interval(0, 3),
    "box": Box((0, 0), (3, 2)),
    "polygon": TRIANGLE,
    "islands": Polygons((TRIANGLE, Polygon([[3, 1], [3, 3], [2, 3]]))),
    "solid": TRIANGLE * Interval(0, 2, unit="day"),
}
every_window = pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)


class Slope:
    """λ(x) = base + slope·x₁: the stand-in of a fitted rate, with its integrals in closed form."""

    def __init__(self, window, base, slope):
        self.window, self.base, self.slope = window, base, slope

    def predict(self, X):
        return self.base + self.slope * X[:, 0]

    def expected_count(self, regions):
        if not isinstance(regions, Window):
            return np.array([self.expected_count(region) for region in regions])
        if isinstance(regions, Interval):
            middle = 0.5 * (regions.low + regions.high)
            return regions.volume * (self.base + self.slope * middle)
        nodes, weights = regions.quadrature(2)  # exact for a linear rate
        return weights @ self.predict(nodes)

    def score(self, X):
        return np.mean(np.log(self.predict(X) / self.expected_count(self.window)))


def right(window, count=300.0):
    """A rate that grows fivefold along the first axis."""
    shape = Slope(window, 1.0, 4.0 / 3.0)
    share = count / shape.expected_count(window)
    return Slope(window, share, share * 4.0 / 3.0)


def flat(window, count=300.0):
    return Slope(window, count / window.volume, 0.0)


def events(model, seed):
    return simulate.poisson(model.predict, model.window, random_state=seed)


# the whole


@every_window
def test_a_correct_rate_has_uniform_p_values(window, monkeypatch):
    monkeypatch.setattr(residuals, "LATTICE_POINTS", 2**14)  # many checks in a moment
    model = right(window)
    found = [check(model, events(model, seed), random_state=seed).p_values for seed in range(25)]
    for name in found[0]:
        p_values = np.array([p[name] for p in found])
        assert kstest(p_values, "uniform").pvalue > 1e-3, name


@every_window
def test_every_check_rejects_a_wrong_rate(window):
    report = check(flat(window), events(right(window), 0), quadrats=3)
    places = {"time rescaling", "quadrats", "thinning"} & set(report.p_values)
    assert set(report.faults) - set(DEPENDENCE) == places
    backwards = Slope(window, 5.0, -4.0 / 3.0)
    found = check(backwards, events(right(window), 0), quadrats=3)
    assert set(found.faults) - set(DEPENDENCE) == {*places, "calibration"}
    assert "bursts" not in {pattern.name for pattern in report.patterns}


@every_window
def test_the_total_of_a_rate_is_reported_but_not_tested(window):
    model, X = right(window, 300.0), events(right(window, 200.0), 1)
    report, same = check(model, X), check(right(window, 10.0), X)
    assert report.expected == pytest.approx(300.0)
    assert report.count == len(X)
    for name, p in report.p_values.items():
        assert same.p_values[name] == pytest.approx(p)


def test_the_checks_of_a_kernel_estimate_on_held_out_events_run_in_any_window():
    for window in WINDOWS.values():
        X = events(right(window), 2)
        model = EdgeCorrectedKDE(window, (0.7,) * window.dimension)
        report = check(model.fit(X[::2]), X[1::2])
        assert "calibration" not in report.faults


def test_the_latitude_of_a_map_around_the_world_is_not_a_time():
    around, along = Cycle(3, unit="km"), Interval(0, 2, unit="km")
    maps, history = around * along, around * Interval(0, 2, unit="day")
    for window, orders in ((maps, False), (history, True)):
        model = flat(window, 30.0)
        assert (check(model, events(model, 5)).order is not None) == orders


def test_a_report_says_in_words_that_the_rate_fits():
    model = right(WINDOWS["line"])
    text = str(check(model, events(model, 3)))
    assert text.startswith("The rate fits: no check rejects its shape (")
    for words in ("time rescaling", "quadrats", "thinning", "calibration", "90 % interval"):
        assert words in text
    assert len(text.splitlines()) == 1 + 1 + 8 + 1 + 11


def test_a_report_says_in_words_what_does_not_fit():
    window = WINDOWS["box"]
    text = str(check(flat(window), events(right(window), 3)))
    assert text.startswith("The rate does not fit, according to quadrats and thinning: ")
    assert "time rescaling" not in text
    assert "expected counts are off by about" in text


@pytest.mark.parametrize("off", [0.02, 0.2])
def test_the_size_of_a_misfit_does_not_grow_with_the_number_of_events(off):
    """Cells whose true counts are off by ± 2 % or 20 %, and right ones."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(400, 5.0))
    signs = np.where(np.arange(400) % 2, 1.0, -1.0)
    true = shares * (1.0 + off * signs)
    for n in (1e6, 1e8):
        wrong = CountTable(rng.poisson(n * true / true.sum()), n * shares)
        assert wrong.relative_error == pytest.approx(off, rel=0.15)
    right = CountTable(rng.poisson(n * shares), n * shares)
    assert right.relative_error < 0.1 * off


def test_a_count_outside_its_interval_has_a_star():
    backwards = Slope(Interval(0, 3), 5.0, -4.0 / 3.0)
    report = check(backwards, events(right(Interval(0, 3)), 0))
    bins = report.calibration
    outside = ((bins.observed < bins.low) | (bins.observed > bins.high)).sum()
    assert str(report).count("*") == outside > 3


def test_the_same_random_state_thins_alike():
    model = right(WINDOWS["box"])
    X = events(model, 4)
    a, b, c = (check(model, X, random_state=seed).thinned.points for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


# exposure


@every_window
@pytest.mark.parametrize("seen", [lambda X: 1.0 + X[:, 0], "array"], ids=["function", "array"])
def test_a_flat_rate_observed_longer_to_the_right_is_checked_as_one_that_rises_there(
    window, seen, monkeypatch
):
    """λE of a flat λ and E = 1 + x₁ is a slope."""
    monkeypatch.setattr(residuals, "LATTICE_POINTS", 2**15)
    rising, constant = Slope(window, 40.0, 40.0), Slope(window, 40.0, 0.0)
    X = events(rising, 12)
    if seen == "array":
        seen = np.ones((2,) * window.dimension)
        seen[1] = 4.0
    told, want = check(constant, X, exposure=seen), check(rising, X)
    for name in ("observed", "expected"):
        np.testing.assert_allclose(getattr(told.quadrats, name), getattr(want.quadrats, name))
    np.testing.assert_array_equal(told.thinned.points, want.thinned.points)
    if want.rescaling is not None:
        np.testing.assert_allclose(told.rescaling.times, want.rescaling.times, atol=1e-6)
        np.testing.assert_allclose(told.rescaling.gaps, want.rescaling.gaps, atol=1e-3)
    assert not told.faults
    assert check(constant, X).faults


def test_rates_of_a_calibration_are_free_of_exposure():
    class Steps(Slope):
        def predict(self, X):
            return np.where(X[:, 0] > 1.0, 4.0, 2.0)

    X = [[0.5], [1.2], [2.0], [2.5]]
    told = check(Steps(Interval(0, 3), 1.0, 0.0), X, exposure=lambda X: 3.0 + 3.0 * (X[:, 0] > 2.0))
    np.testing.assert_allclose(told.calibration.rates, [2.0, 4.0])
    np.testing.assert_allclose(told.calibration.expected, [4 / 7, 24 / 7], rtol=1e-4)
    np.testing.assert_array_equal(told.calibration.observed, [1.0, 3.0])


def test_tenths_of_the_events_that_are_seen_are_expected_in_each_bin():
    model = right(Interval(0, 3))
    X = events(model, 14)
    bins = check(model, X, exposure=lambda X: np.exp(2.0 * X[:, 0])).calibration
    np.testing.assert_allclose(bins.expected, len(X) / 10, rtol=1e-3)


@pytest.mark.parametrize("exposure", [7.0, lambda X: np.full(len(X), 0.3)])
@every_window
def test_an_even_exposure_changes_nothing_bit_for_bit(window, exposure, monkeypatch):
    monkeypatch.setattr(residuals, "LATTICE_POINTS", 2**15)
    model = right(window)
    X = events(model, 13)
    assert check(model, X, exposure=exposure) == check(model, X)


# time rescaling


def test_rescaled_times_are_the_integral_of_the_rate_up_to_each_event():
    model = Slope(Interval(0, 3), 1.0, 2.0)
    X = np.array([[2.0], [0.5], [3.0], [2.0]])
    found = check(model, X).rescaling
    # Λ(t) = t + t², Λ(3) = 12
    np.testing.assert_allclose(found.times, [0.75 / 12, 6 / 12, 6 / 12, 1.0])
    np.testing.assert_allclose(found.gaps, 4 * np.array([0.75, 5.25, 0.0, 6.0]) / 12)
    oracle = kstest(found.times, "uniform")
    assert (found.statistic, found.p_value) == (oracle.statistic, oracle.pvalue)


def test_gaps_of_a_right_rate_are_exponential():
    model = right(Interval(0, 3), 2000.0)
    gaps = check(model, events(model, 5)).rescaling.gaps
    assert gaps.mean() == pytest.approx(1.0, abs=0.01)
    assert kstest(gaps, expon.cdf).pvalue > 1e-3


def test_an_event_at_the_beginning_has_nothing_before_it():
    found = check(Slope(Interval(0, 3), 1.0, 0.0), [[0.0], [1.5]]).rescaling
    np.testing.assert_allclose(found.times, [0.0, 0.5])


# quadrats


@pytest.mark.parametrize("quadrats", [None, 4, (2, 7)])
def test_quadrats_expect_the_integral_of_the_rate(quadrats):
    model = right(Box((0, 0), (3, 2)))
    X = events(model, 6)
    found = check(model, X, quadrats=quadrats).quadrats
    boxes = [Box(low, high) for low, high in zip(found.low, found.high, strict=True)]
    scale = len(X) / model.expected_count(model.window)
    np.testing.assert_allclose(found.expected, scale * model.expected_count(boxes), rtol=1e-4)
    np.testing.assert_allclose([b.contains(X).sum() for b in boxes], found.observed)
    assert len(boxes) == {None: 25, 4: 16, (2, 7): 14}[quadrats]


def test_quadrats_are_cut_off_at_the_border_of_the_window():
    found = check(flat(TRIANGLE), events(flat(TRIANGLE), 7), quadrats=3).quadrats
    # of 9 squares 3 lie inside, 3 are cut in half, 3 lie outside
    share = found.expected / found.expected.sum()
    np.testing.assert_allclose(np.sort(share), np.repeat([1 / 9, 2 / 9], 3), rtol=0.02)


def test_residuals_are_pearsons():
    counts = residuals.CountTable([3.0, 12.0, 1.0, 0.0], [4.0, 9.0, 0.0, 0.0])
    np.testing.assert_array_equal(counts.residuals, [-0.5, 1.0, np.inf, 0.0])


def test_the_chi_square_of_large_cells_is_scipys(rng):
    expected = rng.uniform(10.0, 20.0, 12)
    observed = rng.multinomial(150, expected / expected.sum()).astype(float)
    expected *= 150 / expected.sum()
    oracle = chisquare(observed, expected)
    found = residuals.chi_square(observed, expected)
    np.testing.assert_allclose(found, [oracle.statistic, oracle.pvalue])


def test_small_cells_are_joined_until_five_events_are_expected(rng):
    expected = rng.exponential(3.0, 50)
    groups = residuals._groups(expected)
    sums = np.bincount(groups, expected)
    assert sums.min() >= 5.0
    assert sums.sum() == pytest.approx(expected.sum())
    large = groups[expected >= 10.0]
    assert len(np.unique(large)) == len(large)


def test_a_single_cell_proves_nothing():
    assert residuals.chi_square(np.array([3.0, 1.0]), np.array([2.0, 2.0])) == (0.0, 1.0)


# thinning


@every_window
def test_thinned_events_have_the_level_as_their_rate_where_it_was_more(window):
    model = right(window, 2000.0)
    X = events(model, 8)
    thinned = check(model, X).thinned
    assert (model.predict(thinned.points) >= thinned.level).all()
    assert {tuple(x) for x in thinned.points} <= {tuple(x) for x in X}
    Z = window.sample(100_000, random_state=9)
    mean = thinned.level * window.volume * np.mean(model.predict(Z) >= thinned.level)
    assert abs(len(thinned.points) - mean) < 4.0 * np.sqrt(mean)
    below = model.predict(Z) * (model.predict(Z) < thinned.level)
    assert below.sum() / model.predict(Z).sum() == pytest.approx(0.05, abs=0.005)


def test_a_constant_rate_is_not_thinned():
    X = events(flat(TRIANGLE), 10)
    np.testing.assert_array_equal(check(flat(TRIANGLE), X).thinned.points, X)


# calibration


@every_window
@pytest.mark.usefixtures("thoroughly")
def test_tenths_of_the_events_are_expected_at_rising_rates(window):
    model = right(window)
    X = events(model, 11)
    bins = check(model, X).calibration
    np.testing.assert_allclose(bins.expected, len(X) / 10, rtol=0.08)
    assert (np.diff(bins.rates) > 0.0).all()
    assert bins.observed.sum() == len(X)
    np.testing.assert_array_equal([bins.low, bins.high], poisson.interval(0.9, bins.expected))
    cuts = 0.5 * (bins.rates[1:] + bins.rates[:-1])
    rough = np.bincount(np.searchsorted(cuts, model.predict(X)), minlength=10)
    assert np.abs(rough - bins.observed).max() < 0.05 * len(X)


def test_a_rate_of_few_values_has_as_few_bins():
    class Steps(Slope):
        def predict(self, X):
            return 1.0 + (X[:, 0] > 1.0) * (3.0 + 1e-13 * X[:, 0])

    bins = check(Steps(Interval(0, 3), 1.0, 0.0), [[0.5], [1.2], [2.0], [2.5]]).calibration
    np.testing.assert_allclose(bins.rates, [1.0, 4.0])
    np.testing.assert_allclose(bins.expected, [4 / 9, 32 / 9], rtol=1e-4)
    np.testing.assert_array_equal(bins.observed, [1.0, 3.0])


# at the door


@pytest.mark.parametrize(
    ("model", "X", "options", "words"),
    [
        (flat(TRIANGLE), [[9.0, 9.0]], {}, "X must lie in the window"),
        (flat(TRIANGLE), np.empty((0, 2)), {}, "X must contain at least one event, got none"),
        (flat(TRIANGLE), [[1.0, 1.0]], {"quadrats": (1, 2, 3)}, "quadrats must be one number or 2"),
        (flat(TRIANGLE), [[1.0, 1.0]], {"quadrats": 0}, "quadrats must be a whole number"),
        (flat(TRIANGLE), [[1.0, 1.0]], {"exposure": 0}, "exposure must be a positive"),
        (flat(TRIANGLE), [[1, 1]], {"exposure": lambda X: -X[:, 0]}, "exposure must be at least 0"),
        (flat(TRIANGLE), [[1, 1]], {"exposure": lambda X: X}, "exposure must give one number for"),
        (flat(TRIANGLE), [[1, 1]], {"exposure": [1.0, 2.0]}, "exposure must be an array with 2"),
        (flat(TRIANGLE), [[1, 1]], {"exposure": lambda X: X[:, 0] > 1}, "above 0 at every event"),
        (Slope(TRIANGLE, 0.0, 0.0), [[1.0, 1.0]], {}, "a rate above 0 somewhere, got 0 every"),
        (Slope(TRIANGLE, -1.0, 0.0), [[1.0, 1.0]], {}, "rate must be at least 0, got -1"),
        (Slope(TRIANGLE, np.nan, 0.0), [[1.0, 1.0]], {}, "rate must contain only finite numbers"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(model, X, options, words):
    with pytest.raises(ValueError, match=words):
        check(model, X, **options)
