"""A random part of very many events, and rates that take over what most of them have told."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, EventStudy, Intensity, Interval, Statistic, plan
from hplus.cli.summary import holdout_rows
from hplus.display.findings import against_kde
from hplus.estimators.similar_rates import similar_to
from hplus.rates import every_scale, rate_models
from hplus.rates import statistic as statistics
from hplus.rates.binned import BinnedStatistic
from hplus.rates.every_scale import Observed
from hplus.rates.exposure import exposed
from hplus.rates.folded_fit import begin_without_fold
from hplus.rates.log_gaussian import begin
from hplus.rates.positions import find_positions
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.thinning import thinned_to
from hplus.rates.trees import concentrations
from hplus.studies import split_events

WINDOW = Box((0, 0), (1, 1))


def events(n, seed=0):
    """Half of the events on a spot, the others anywhere."""
    rng = np.random.default_rng(seed)
    spot = 0.3 + 0.02 * rng.normal(size=(n // 2, 2))
    return np.clip(np.concatenate([spot, rng.random((n - n // 2, 2))]), 0.0, 1.0)


@pytest.mark.parametrize("most", [50, 700, 3000])
def test_about_as_many_events_as_asked_for_are_drawn_from_every_cell(most):
    statistic = Statistic.of(WINDOW, np.repeat(events(40), 500, axis=0))
    part = thinned_to(statistic, most, seed=3)
    assert most - 5 * np.sqrt(most) < part.events < 2 * most + 5 * np.sqrt(2 * most)
    whole = dict(zip(statistic.codes.tolist(), statistic.counts.tolist(), strict=True))
    assert all(n <= whole[code] for code, n in zip(part.codes.tolist(), part.counts, strict=True))
    expected = part.events / 40  # the same number of events is in each cell
    assert np.all(np.abs(part.counts - expected) < 6 * np.sqrt(expected))


def test_few_events_are_all_taken_and_the_draw_follows_from_the_seed():
    statistic = Statistic.of(WINDOW, events(500))
    assert thinned_to(statistic, 400, seed=0) is statistic
    draws = [thinned_to(statistic, 100, seed).codes.tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def study(X, model):
    table = {"x": X[:, 0], "y": X[:, 1]}
    return EventStudy(plan(table, ["x", "y"], window=(0, 0, 1, 1)), model=model).fit(table)


@pytest.mark.parametrize("model", ["auto", "exp", "tree"])
def test_a_rate_of_very_many_events_is_nearly_that_of_one_that_learns_everything_again(
    model, coarse_grids, monkeypatch
):
    X = events(1200)
    usual = study(X, model)
    monkeypatch.setattr(rate_models, "MAX_PRIOR_EVENTS", 500)
    monkeypatch.setattr(concentrations, "MAX_CROWDED", 64)
    monkeypatch.setattr(every_scale, "VERY_MANY_EVENTS", 1000)
    many = study(X, model)
    assert many.model_.total_ == 1200
    assert float(many.model_.expected_count(WINDOW)) == pytest.approx(1200, rel=1e-3)
    places = np.random.default_rng(5).random((200, 2))
    logs = np.log(many.model_.predict(places) / usual.model_.predict(places))
    assert np.sqrt(np.mean(logs**2)) < 0.25
    assert many.holdout_.gain == pytest.approx(usual.holdout_.gain, abs=0.07)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rates_are_weighed_by_events_where_few_cells_hold_many_of_them(seed, monkeypatch):
    """Of cells drawn at random, a position with a fifth of the events was in or out."""
    monkeypatch.setattr(every_scale, "MAX_SCORED", 500)
    X = np.round(np.random.default_rng(4).random((4000, 2)), 2)
    X[:800] = 0.5
    statistic = Statistic.of(WINDOW, X)
    seen = exposed(BinnedStatistic.of(statistic, seed), 1.0, None)
    observed = Observed(statistic, find_positions(statistic), *seen.plain(), seed)
    places, counts = every_scale._scored(observed, statistic)
    at_spot = np.all(np.abs(places - 0.5) < 0.01, axis=1)
    assert counts.sum() == pytest.approx(500)
    assert counts[at_spot].sum() / counts.sum() == pytest.approx(0.2, abs=4 * 0.4 / np.sqrt(500))


def test_a_fit_without_a_fold_is_that_of_the_other_events_and_becomes_that_of_all(coarse_grids):
    """The rate of all events starts from that of some: it must be the one learned from nothing."""
    level = exposed(BinnedStatistic.of(Statistic.of(WINDOW, events(2000)), 0), 1.0, None).level
    whole = begin(level, rate_models.LearnPrior("auto"), 0)
    priors = tuple((weight, found.prior) for weight, found in whole.parts)
    folded, alone = begin_without_fold(level, priors, 0), begin(level, priors, 0)
    ((fold, rate),) = folded.held_out()
    assert fold == 0
    kept = float(level.counts.sum() - level.folds[0].sum())
    hats = rate.grid.integrals(WINDOW)
    assert float(np.sum(rate.values * hats)) == pytest.approx(kept, rel=1e-5)
    for one, other in ((folded, alone), (folded.refined(), alone.refined())):
        found, expected = one.of_all(), other
        while expected.level.grid.size < found.level.grid.size:
            expected = expected.finer()
        assert found.level.grid == expected.level.grid
        assert found.level.total == pytest.approx(level.total)
        np.testing.assert_allclose(np.log(found.values() / expected.values()), 0.0, atol=0.05)
        assert one.rate().result.relative_gap <= one.rate().promised_gap


def test_a_single_fold_cannot_be_left_out():
    level = exposed(BinnedStatistic.of(Statistic.of(WINDOW, events(1)), 0), 1.0, None).level
    assert begin_without_fold(level, (), 0) is None


def test_events_count_in_cells_that_were_made_larger_to_hold_very_many(coarse_grids, monkeypatch):
    X = events(3000)
    fine = Intensity(WINDOW, model="tree").fit(X)
    monkeypatch.setattr(statistics, "MAX_CELLS", 1500)
    coarse = Intensity(WINDOW, model="tree").fit(X)
    assert coarse.rate_.statistic.depth < Statistic.of(WINDOW, X[:10]).depth
    peak = np.log(coarse.predict([[0.3, 0.3]]) / fine.predict([[0.3, 0.3]]))
    assert abs(float(peak[0])) < 0.3
    assert coarse.score(events(3000, seed=1)) > fine.score(events(3000, seed=1)) - 0.05


def test_a_kernel_density_estimate_of_some_of_the_events_is_said_to_be_one(monkeypatch):
    X = events(600)
    assert study(X, "tree").holdout_.kde_events == 0
    monkeypatch.setattr(split_events, "MAX_SAMPLE", 100)
    held = study(X, "tree").holdout_
    assert 0 < held.kde_events <= 200
    found = study(X, "tree").facts()["holdout"]
    assert f"(a KDE of {held.kde_events} of the other events)" in holdout_rows(found)["vs KDE"]
    assert f"of {held.kde_events} of the other events" in against_kde(held)


def test_very_many_events_on_a_line_are_averaged_over_as_many_priors_as_few(monkeypatch):
    window, times = Interval(0, 1), np.random.default_rng(6).beta(2, 5, (400, 1))
    usual = Intensity(window).fit(times)
    monkeypatch.setattr(rate_models, "MAX_PRIOR_EVENTS", 50)
    many = Intensity(window).fit(times)
    assert many.mixture_ == usual.mixture_
    places = np.linspace(0.05, 0.95, 19)[:, None]
    np.testing.assert_array_equal(many.predict(places), usual.predict(places))


def test_a_smooth_rate_without_weight_is_not_learned_again(coarse_grids, monkeypatch):
    X = events(600)
    first = Intensity(WINDOW, model="exp").fit(X[::2])
    trees = Intensity(WINDOW, model="tree").fit(X[::2]).rate_
    alone = StackedRate(first.rate_, ((1.0, trees),))
    monkeypatch.setattr(rate_models, "begin", lambda *given: pytest.fail("learned again"))
    like = similar_to(first)._replace(rate=alone, weights={"tree": 1.0})
    again = Intensity(WINDOW).fit(X, priors=like)
    assert again.rate_.smooth is alone.smooth
    assert again.rate_.integral() == pytest.approx(len(X), rel=1e-6)
    assert [weight for weight, _ in again.rate_.parts] == [1.0]
