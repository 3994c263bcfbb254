"""papers/excitation still runs, on small sizes, and shows what it says."""

import importlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from hplus.rates.excitation.log_weights import log_likelihood
from hplus.rates.excitation.trigger import Trigger

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "papers" / "excitation"


@pytest.fixture(scope="module")
def fits(paper):
    return importlib.import_module("fits")


@pytest.fixture(scope="module")
def etas(fits):
    return fits.ETAS


@pytest.fixture(scope="module")
def line(paper, fits):
    """The fit of section 4 on a line."""
    return fits.line_fit("exponential", 0.5, paper.FEW["until"], 0)


def test_every_table_and_picture_has_its_place_in_the_report(paper, data):
    text = (PAPER / "report.md").read_text("utf-8")
    assert set(re.findall(r"{(\w+)}", text)) == set(data)
    drawn = {name for section in paper.SECTIONS for name in section.pictures}
    assert set(re.findall(r"\((\w+)\.png\)", text)) == drawn
    report = text.format(**{s.name: s.table(data[s.name]) for s in paper.SECTIONS})
    assert report.count("\n| --- |") == len(data)


def test_smoothing_lowers_the_error_of_the_triggers(data):
    for item in data["triggers"]:
        assert item.smoothed.max() < item.unsmoothed.min()
        assert item.smoothed.max() < 0.35
        np.testing.assert_allclose(item.ratios, item.branching, atol=0.12)


def test_the_error_of_a_trigger_is_relative_to_its_integral(fits):
    known, lags = fits.LINE_TRIGGERS["exponential"], np.geomspace(1e-3, 30.0, 200)
    exact = Trigger(lags, np.zeros(0), 0.5 * known.density(lags[:-1])[None, None, :, None])
    assert fits.trigger_error(exact, known, 0.5) < 0.01
    twice = exact.replace(weights=2.0 * exact.weights)
    assert fits.trigger_error(twice, known, 0.5) == pytest.approx(1.0, abs=0.01)


def test_known_triggers_have_a_mean_lag_of_one_and_the_stated_distribution(fits):
    for known in fits.LINE_TRIGGERS.values():
        for lag in (0.3, 2.0):
            assert known.distribution(lag) == pytest.approx(quad(known.density, 0.0, lag)[0])
        drawn = known.draw(np.random.default_rng(0), 20_000)
        assert np.mean(drawn < 2.0) == pytest.approx(known.distribution(2.0), abs=0.01)
        assert quad(lambda t, g=known: t * g.density(t), 0.0, np.inf)[0] == pytest.approx(1.0)


def test_events_come_after_their_parents(fits, etas):
    events, parents = fits.etas_events(200.0, 0)
    triggered = parents >= 0
    assert np.all(np.diff(events[:, -1]) >= 0.0)
    assert np.all(events[parents[triggered], -1] < events[triggered, -1])
    far = np.hypot(*(events[triggered] - events[parents[triggered]])[:, 2:4].T)
    assert np.median(far) < 0.1 * np.median(np.hypot(*(events[1:] - events[:-1])[:, 2:4].T))


def test_the_parts_of_etas_integrate_to_one_and_to_the_branching_ratio(etas, rng):
    assert quad(etas.by_lag, 0.0, 3.0)[0] == pytest.approx(1.0 - etas.later(3.0))
    ring = quad(lambda r: 2.0 * np.pi * r * etas.by_distance(r, 5.0), 0.0, np.inf)[0]
    assert ring == pytest.approx(1.0)
    assert etas.offspring(etas.marks(200_000, rng)).mean() == pytest.approx(0.6, rel=0.1)
    m, x, y = np.array([[6.0], [3.0], [190.0]])
    places = rng.uniform(0.0, etas.side, (400_000, 2))
    inside = etas.by_distance(np.hypot(*(places - [x[0], y[0]]).T), 6.0).mean() * etas.side**2
    assert etas._inside(m, x, y)[0] == pytest.approx(inside, rel=0.05)


def test_simulated_events_are_likeliest_under_their_own_parameters(fits, etas):
    events, _ = fits.etas_events(200.0, 1)
    own = etas.log_likelihood(events, 200.0)
    for name, factor in (("mu", 2.0), ("branching", 0.4), ("alpha", 0.3), ("c", 10.0), ("D", 8.0),
                         ("p", 1.3), ("q", 1.5)):  # fmt: skip
        other = replace(etas, **{name: factor * getattr(etas, name)})
        assert other.log_likelihood(events, 200.0) < own - 0.005, name


def test_a_fit_of_etas_comes_close_to_the_truth(data):
    truth, fit = data["etas"]
    assert truth.score - 0.12 < fit.score < truth.score + 0.02
    assert fit.slope == pytest.approx(truth.slope, abs=0.5)
    assert fit.growth > 0.0
    assert max(fit.errors) < 0.5


def test_the_certified_gap_bounds_what_is_missing_and_the_barrier_method_ends(data):
    for item in data["certificate"]:
        assert -1e-6 <= item.missing <= item.gap + 1e-9
    for problem in ("line", "place and time"):
        own = [i for i in data["certificate"] if i.problem == problem]
        em = [i.missing for i in own if i.solver == "EM"]
        assert em == sorted(em, reverse=True)
        last = {i.solver: i for i in own}
        assert last["barrier"].gap < 1e-4 < last["EM"].gap
        assert last["barrier"].steps < last["EM"].steps + 1


def test_an_update_of_em_raises_the_likelihood_and_counts_responsibilities(fits, line):
    parts = fits.parts_of(line)
    n, B = parts.rows.shape
    a = n / (B * parts.integrals)
    shares = parts.rows * a / (parts.rows @ a)[:, None]
    new = fits.em_update(parts, a)
    np.testing.assert_allclose(new * parts.integrals, shares.sum(axis=0))
    assert new @ parts.integrals == pytest.approx(n)
    assert log_likelihood(parts, new) > log_likelihood(parts, a)


def test_probabilities_of_the_background_are_shares_of_the_rate(data, fits, line):
    parts, levels = fits.parts_of(line), line.background_.levels[0]
    weights = np.concatenate([levels, line.trigger_.weights.ravel()])
    T = len(levels)
    shares = parts.rows[:, :T] @ levels / (parts.rows @ weights)
    np.testing.assert_allclose(data["declustering"][0].background, shares, rtol=1e-8)


def test_probabilities_of_the_background_agree_with_how_often_it_was(data):
    for case in data["declustering"]:
        assert case.background.sum() == pytest.approx(case.was.sum(), rel=0.1)
        assert case.right.mean() == pytest.approx(case.most.mean(), abs=0.06)
        high = case.background > 0.5
        assert case.was[high].mean() > case.was[~high].mean() + 0.3
    events = [len(case.was) for case in data["declustering"]]
    assert np.sum([b.counts for b in data["calibration"]], axis=0).tolist() == events
    line = [(b.predicted[0], b.observed[0]) for b in data["calibration"] if b.counts[0] >= 50]
    np.testing.assert_allclose(*np.transpose(line), atol=0.12)


def test_bounds_are_quantiles_and_coverage_is_of_the_forecast(data):
    for item in data["forecasts"]:
        low, middle, high = item.bounds(item.forecast)
        assert low <= middle <= high
        assert np.mean(item.forecast < low) <= 0.05 <= np.mean(item.forecast <= low)
        inside = (item.truth >= low) & (item.truth <= high)
        assert item.covered == pytest.approx(inside.mean())


def test_forecasts_follow_the_truth_and_a_poisson_rate_does_not(data):
    weeks = [f for f in data["forecasts"] if f.horizon == 7.0]
    truth = [f.truth.mean() for f in weeks]
    forecast = [f.forecast.mean() for f in weeks]
    assert truth == sorted(truth)
    assert forecast == sorted(forecast)
    np.testing.assert_allclose(forecast, truth, rtol=0.5)
    assert weeks[-1].poisson.mean() < 0.5 * forecast[-1]
    # from few events, what follows the largest magnitude is uncertain
    assert all(f.covered > 0.7 for f in data["forecasts"] if "7.5" not in f.moment)
