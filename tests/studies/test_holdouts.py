"""Events held out of a study: scores computed anew, and a week that was observed in part."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Cycle, EventStudy, Intensity, Interval, SeparableIntensity
from hplus.evaluation import AdaptiveKDE, best_kde
from hplus.files.tables import open_table
from hplus.rates.positions import Positions
from hplus.studies.events import SplitEvents, read_events
from hplus.studies.plans import plan

MONDAY, TWICE = np.datetime64("2026-01-05T00:00:00", "ms"), 84.0
"""Of 10.5 days from a Monday on, the first 84 hours of the week are observed twice."""


def written(path, n, wave):
    """Events of 10.5 days, busier by a wave in the mornings, more of them on the left."""
    rng = np.random.RandomState(1)
    days = 10.5 * rng.uniform(size=n)
    days = days[rng.uniform(size=n) < 1.0 + wave * (np.sin(2.0 * np.pi * days) - 1.0) / 2.0]
    stamps = MONDAY + (86_400e3 * days).astype("timedelta64[ms]")
    rows = (f"{t},{x:.4f}" for t, x in zip(stamps, rng.beta(1, 2, len(days)), strict=True))
    path.write_text("when,x\n" + "\n".join(rows) + "\n")
    return str(path)


def planned(path, columns=()):
    times = {"time": "when", "start": "2026-01-05", "end": "2026-01-15 12:00", "cycle": "week"}
    return plan(path, columns, window=(0, 1) if columns else None, **times)


def often(X):
    """How often the hour of each point was observed in 10.5 days."""
    return np.where(X[:, -1] < TWICE, 2.0, 1.0)


def midpoints(window):
    """Points that stand for equal volumes, none of them at the end of what was observed twice."""
    low, high = window.bounds()
    shape = (40, 1680) if window.dimension == 2 else (1680,)
    index = np.indices(shape).reshape(len(shape), -1).T
    return low + (index + 0.5) / shape * (high - low)


def gained(values, nodes, X):
    """Mean log of the density of events beside that of a constant rate, by sums over nodes."""
    ours = values(X) / values(nodes).mean()
    return np.mean(np.log(ours / (often(X) / often(nodes).mean())))


@pytest.fixture(scope="module", params=[(), ("x",)], ids=["times", "places and times"])
def partly(request, tmp_path_factory):
    """A study of 10.5 days, and its file."""
    path = written(tmp_path_factory.mktemp("partly") / "events.csv", 3000, wave=1.0)
    return EventStudy(planned(path, request.param)).fit(path), path


def test_the_scores_of_a_hold_out_are_those_of_densities_of_what_is_seen(partly):
    study, path = partly
    window, held, events = study.frame.window, study.holdout_, SplitEvents(study.frame, 0.2, 0)
    read_events(open_table(path), study.frame, events.add)
    X, nodes, parts = events.held_sample.X, midpoints(window), events.learned
    if len(parts) == 1:
        rate = Intensity(window, random_state=0).fit(*parts, exposure=often)
    else:
        rate = SeparableIntensity(window, random_state=0).fit(parts, exposure=often)
    ours = gained(lambda Z: rate.predict(Z) * often(Z), nodes, X)
    kdes = [best_kde(part.window, events.learned_sample.X[:, [i]]) for i, part in enumerate(parts)]
    theirs = gained(
        lambda Z: np.prod([kde.predict(Z[:, [i]]) for i, kde in enumerate(kdes)], axis=0), nodes, X
    )
    found = [held.gain, held.kde_gain, held.over_kde]
    np.testing.assert_allclose(found, [ours, theirs, ours - theirs], rtol=0, atol=1e-3)
    assert min(ours, theirs) > 0.05
    kinds = ["adaptive" if isinstance(kde, AdaptiveKDE) else "fixed" for kde in kdes]
    assert all(kind in held.kde for kind in kinds)
    assert ("for places" in held.kde) == (len(set(kinds)) == 2)
    assert held.events == len(X)


def test_a_partly_observed_week_does_not_count_against_the_rate(partly):
    held = partly[0].holdout_
    assert not held.check.faults
    assert min(held.check.p_values.values()) > 1e-3
    assert held.over_kde > -3.0 * held.over_kde_error


def test_a_steady_rate_gains_nothing_whatever_the_exposure(tmp_path):
    path = written(tmp_path / "events.csv", 4000, wave=0.0)
    held = EventStudy(planned(path)).fit(path).holdout_
    assert abs(held.gain) < 4.0 * held.gain_error < 0.01


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"holdout": 1.0}, "holdout must be a share from 0 to 0.9, got 1.0"),
        ({"holdout": 7}, "holdout must be a share from 0 to 0.9, got 7"),
        ({"holdout": -0.1}, "holdout must be a share from 0 to 0.9, got -0.1"),
        ({"n_jobs": "x"}, "n_jobs must be a whole number of at least 1, got 'x'"),
        ({"n_jobs": 0}, "n_jobs must be a whole number of at least 1, got 0"),
    ],
)
def test_shares_and_jobs_that_cannot_be_are_refused(partly, words, said):
    study, path = partly
    with pytest.raises(ValueError, match=said):
        EventStudy(study.frame, **words).fit(path)


def test_priors_learned_before_make_the_same_rate():
    X, window = np.random.RandomState(3).beta(2, 5, (400, 2)), Box([0, 0], [1, 1])
    model = Intensity(window)
    priors = model.learn_mixture(X)
    Z = window.quadrature(5)[0]
    known, learned = Intensity(window).fit(X, priors=priors), model.fit(X)
    assert known.weights_.keys() == learned.weights_.keys()
    np.testing.assert_allclose(known.predict(Z), learned.predict(Z), rtol=0.05)
    with pytest.raises(ValueError, match="priors must be the mixture_ of a fit with 1 axes"):
        Intensity(Interval(0, 1)).fit(X[:, :1], priors=priors)
    with pytest.raises(TypeError, match='priors must be "auto" or what learn_mixture found'):
        Intensity(window).fit(X, priors=3)


def test_models_are_compared_at_the_step_of_positions(tmp_path):
    """Rounding more finely than the rate varies must not change who predicts better."""
    X = np.random.RandomState(4).normal(0.5, 0.15, (3000, 2)) % 1.0
    gains = []
    for digits in (9, 2):
        path = tmp_path / f"{digits}.csv"
        rows = "\n".join(f"{x:.{digits}f},{y:.{digits}f}" for x, y in X)
        path.write_text(f"x,y\n{rows}\n")
        study = EventStudy(plan(str(path), ["x", "y"], window=(0, 0, 1, 1))).fit(str(path))
        gains.append((study.holdout_.gain, study.holdout_.kde_gain))
    np.testing.assert_allclose(*gains, atol=0.03)


@pytest.mark.parametrize("window", [Box([0, 0], [1, 2]), Interval(0, 1) * Cycle(2.0)], ids=repr)
def test_spread_events_stay_in_the_window_and_within_half_a_step(window):
    X = np.random.RandomState(5).uniform(size=(500, 2)) * [1.0, 2.0]
    step = np.array([0.3, 0.2])
    moved = Positions(step, np.zeros(2), 0.0).spread(window, X, np.random.RandomState(6))
    assert window.contains(moved).all()
    away = np.abs(moved - X)
    if window.closed_axes():
        away[:, 1] = np.minimum(away[:, 1], 2.0 - away[:, 1])
    assert np.all(away <= 0.5 * step + 1e-12)
    assert np.median(away / step) == pytest.approx(0.25, abs=0.05)
