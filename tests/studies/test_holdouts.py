"""Events held out of a study: later ones, scores computed anew, patterns that do not predict."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Cycle, EventStudy, Intensity, Interval, SeparableIntensity
from hplus.evaluation import AdaptiveKDE, best_kde
from hplus.files.tables import open_table
from hplus.rates.positions import Positions
from hplus.studies.factor_trials import block_error
from hplus.studies.frames import Frame
from hplus.studies.plans import plan
from hplus.studies.scans import EventScan, scan_events
from hplus.studies.spans import Clock
from hplus.studies.splits import HELD, UNUSED, split_of, step_exposure, time_blocks

pytestmark = pytest.mark.usefixtures("coarse_grids")

MONDAY = np.datetime64("2026-01-05T00:00:00", "ms")


def written(path, days, x=None):
    """A file of events on these days after a Monday."""
    stamps = MONDAY + np.sort(86_400e3 * days).astype("timedelta64[ms]")
    x = np.zeros(len(days)) if x is None else x
    rows = (f"{t},{at:.4f}" for t, at in zip(stamps, x, strict=True))
    path.write_text("when,x\n" + "\n".join(rows) + "\n")
    return str(path)


def waving(days, n, wave, seed=1):
    """Times in some days, busier by a wave in the mornings."""
    rng = np.random.RandomState(seed)
    at = days * rng.uniform(size=n)
    return at[rng.uniform(size=n) < 1.0 + wave * (np.sin(2.0 * np.pi * at) - 1.0) / 2.0]


def planned(path, columns=(), end="2026-01-15 12:00", cycle="week"):
    times = {"time": "when", "start": "2026-01-05", "end": end, "cycle": cycle}
    return plan(path, columns, window=(0, 1) if columns else None, **times)


def learned_often(X):
    """How often each hour of the week was observed in the first 8.4 of 10.5 days."""
    return np.where(X[:, -1] < 33.6, 2.0, 1.0)


def held_often(X):
    """The same of the last 2.1 days, from Tuesday 9:36 to Thursday noon."""
    return ((X[:, -1] >= 33.6) & (X[:, -1] < 84.0)).astype(float)


def midpoints(window):
    """Points that stand for equal volumes, none of them where the exposure changes."""
    low, high = window.bounds()
    shape = (40, 1680) if window.dimension == 2 else (1680,)
    index = np.indices(shape).reshape(len(shape), -1).T
    return low + (index + 0.5) / shape * (high - low)


def gained(values, nodes, X):
    """Mean log of the density of later events beside that of a constant rate, by sums."""
    often = held_often(nodes)
    return np.mean(np.log(values(X) * often.sum() / (values(nodes) @ often)))


@pytest.fixture(scope="module", params=[(), ("x",)], ids=["times", "places and times"])
def partly(request, tmp_path_factory):
    """A study of 10.5 days, and its file."""
    days = waving(10.5, 3000, wave=1.0, seed=2)
    x = np.random.RandomState(2).beta(1, 2, len(days))
    path = written(tmp_path_factory.mktemp("partly") / "events.csv", days, x)
    return EventStudy(planned(path, request.param)).fit(path), path


def test_the_scores_of_a_hold_out_are_those_of_densities_of_later_events(partly):
    study, path = partly
    frame, held = study.frame, study.holdout_
    scan = EventScan(frame, split_of(frame, 0.2), 0)
    scan_events(open_table(path), scan)
    events = scan.events
    X, nodes, parts = events.held_sample.X, midpoints(frame.window), events.learned()
    assert events.held_sample.seconds.min() > events.learned_sample.seconds.max()
    if len(parts) == 1:
        rate = Intensity(frame.window, random_state=0).fit(*parts, exposure=learned_often)
    else:
        rate = SeparableIntensity(frame.window, random_state=0)
        rate.fit(parts, exposure=learned_often)
    ours = gained(rate.predict, nodes, X)
    others = events.learned_sample.X
    kdes = [best_kde(part.window, others[:, [i]]) for i, part in enumerate(parts)]

    def theirs(Z):
        rates = [kde.predict(Z[:, [i]]) for i, kde in enumerate(kdes)]
        return np.prod(rates, axis=0) / learned_often(Z)

    theirs = gained(theirs, nodes, X)
    found = [held.gain, held.kde_gain, held.over_kde]
    np.testing.assert_allclose(found, [ours, theirs, ours - theirs], rtol=0, atol=3e-3)
    assert min(ours, theirs) > 0.05
    kinds = ["adaptive" if isinstance(kde, AdaptiveKDE) else "fixed" for kde in kdes]
    assert all(kind in held.kde for kind in kinds)
    assert ("for places" in held.kde) == (len(set(kinds)) == 2)
    assert (held.events, held.kind, held.constant) == (len(X), "later", ())
    assert held.words == f"the last 50.4\u00a0h: {len(X)} events later than those learned from"


def test_a_partly_observed_week_does_not_count_against_the_rate(partly):
    held = partly[0].holdout_
    assert held.check.order is not None  # later events of a cycle are checked in their order
    assert not held.check.faults
    assert min(held.check.p_values.values()) > 1e-3
    assert held.over_kde > -3.0 * held.over_kde_error


def bursts(days, n, seed=3):
    """Clusters at a flat rate: their hours are chance, and never come again."""
    rng = np.random.RandomState(seed)
    at = np.repeat(rng.uniform(0, days, n // 20), 20) + rng.exponential(0.02, n // 20 * 20)
    return at[at < days]


@pytest.mark.parametrize("kind", ["flat", "bursts"])
def test_a_cycle_that_does_not_predict_later_events_is_left_out(kind, tmp_path):
    days = bursts(40.0, 800) if kind == "bursts" else waving(40.0, 600, wave=0.0, seed=6)
    path = written(tmp_path / "events.csv", days)
    study = EventStudy(planned(path, end="2026-02-14", cycle="day")).fit(path)
    held, n = study.holdout_, len(days)
    assert held.constant == ("times",)
    assert (held.gain, held.gain_error) == pytest.approx((0.0, 0.0), abs=1e-9)
    np.testing.assert_allclose(study.model_.predict([[1.0], [16.6]]), n / 40 / 24, rtol=1e-6)
    low, high = study.model_.predict_interval([[12.0]], 0.9)
    reach = np.exp(1.645 / np.sqrt(n))
    np.testing.assert_allclose([low[0] * reach, high[0] / reach], n / 40 / 24, rtol=1e-3)
    said = "hour of the day: no pattern that predicts later events, so a constant rate is used"
    assert study.facts()["holdout"]["constant"] == [said]


def test_a_cycle_that_predicts_is_kept_and_a_place_that_does_not_is_left_out(tmp_path):
    days = waving(40.0, 700, wave=1.0)
    x = np.random.RandomState(5).uniform(size=len(days))
    path = written(tmp_path / "events.csv", days, x)
    study = EventStudy(planned(path, ["x"], end="2026-02-14", cycle="day")).fit(path)
    held = study.holdout_
    assert held.constant == ("places",)
    times = next(pattern for pattern in held.patterns if pattern.of == "times")
    assert times.kept
    assert times.gain > 3.0 * times.gain_error
    assert held.gain > 3.0 * held.gain_error
    rates = study.model_.predict([[0.1, 6.0], [0.9, 6.0], [0.1, 18.0]])
    assert rates[0] == pytest.approx(rates[1], rel=1e-6)
    assert rates[0] > 3.0 * rates[2]


CLOCK = Clock("when", 0.0, 86_400.0 * 100, "day")


@pytest.mark.parametrize(("blocks", "lasting"), [(1, 20.0), (4, 20.0)])
def test_times_are_split_into_what_is_learned_held_out_and_in_gaps(blocks, lasting):
    split = split_of(Frame((), None, None, CLOCK), 0.2, blocks)
    days = np.arange(0.05, 100.0, 0.1)
    part = split.parts(86_400.0 * days, np.zeros(len(days)))
    assert np.sum(part == HELD) == pytest.approx(10.0 * lasting)
    assert len(split.held) == blocks
    if blocks == 1:
        assert days[part == HELD].min() > days[part >= 0].max()
        assert not np.any(part == UNUSED)
    else:
        near = np.abs(days[part >= 0][:, None] - days[part == HELD]).min()
        assert near > 1.0  # a gap of at least a day
    learned, held = (step_exposure(CLOCK, spans) for spans in (split.learned, split.held))
    gaps = 0.1 * np.sum(part == UNUSED)
    assert learned.total / 24.0 == pytest.approx(100.0 - lasting - gaps)
    assert held.total / 24.0 == pytest.approx(lasting)


def test_a_line_of_times_and_places_alone_are_held_out_at_random():
    line = Frame((), None, None, CLOCK.replace(cycle=""))
    both = Frame(("x",), Interval(0, 1), None, CLOCK.replace(cycle=""))
    assert split_of(line, 0.2).kind == "random"
    assert split_of(line, 0.2, 5).kind == "blocks"
    assert split_of(both, 0.2).kind == "later"
    assert split_of(Frame(("x",), Interval(0, 1)), 0.2).kind == "random"
    # seven days of a week: what is left does not cover the cycle
    short = Frame((), None, None, CLOCK.replace(cycle="week", end=86_400.0 * 7))
    assert split_of(short, 0.2).kind == "random"


def test_errors_count_blocks_and_not_events():
    rng = np.random.RandomState(6)
    single, blocks = rng.normal(size=400), np.arange(400)
    mean, error = block_error(single, blocks)
    assert error == pytest.approx(single.std(ddof=1) / 20.0)
    copies = block_error(np.repeat(single, 25), np.repeat(blocks, 25))
    assert copies == pytest.approx((mean, error), rel=2e-3)


def test_a_rate_that_differs_between_blocks_is_no_error(monkeypatch):
    """The stated error of the gain of a slow wave is that of gains on other events."""
    # nothing is asked of what follows, nor of the kernel estimates beside the rate
    monkeypatch.setattr("hplus.studies.event_study.learn_outlook", lambda *_: None)
    monkeypatch.setattr("hplus.evaluation.bandwidths.MOST_STEPS", 3)
    rng = np.random.RandomState(7)
    clock = Clock("when", 0.0, 86_400.0 * 300, "")
    frame, found = Frame((), None, None, clock), []
    for seed in range(12):
        t = 300.0 * rng.uniform(size=rng.poisson(2000))
        t = t[rng.uniform(size=len(t)) < 0.5 + 0.5 * np.sin(2.0 * np.pi * t / 300.0)]
        table = {"when": np.datetime64("1970-01-01") + (86_400e3 * t).astype("timedelta64[ms]")}
        held = EventStudy(frame, model="exp", random_state=seed).fit(table).holdout_
        found.append((held.gain, held.gain_error))
    gains, errors = np.array(found).T
    assert 0.5 < np.mean(errors) / gains.std(ddof=1) < 1.6


def test_what_is_expected_of_blocks_is_not_their_error():
    rng = np.random.RandomState(8)
    scores, blocks = rng.normal(size=1000), np.repeat(np.arange(10), 100)
    slow = np.linspace(-3.0, 3.0, 10)
    both = scores + slow[blocks]
    mean, error = block_error(both, blocks, 100.0 * slow)
    assert mean == pytest.approx(scores.mean())
    assert error == pytest.approx(both.std(ddof=1) / np.sqrt(1000))
    assert error < 0.2 * block_error(both, blocks)[1]


def test_blocks_of_time_are_whole_cycles_where_there_are_enough():
    hours = np.arange(0.5, 24.0 * 20, 1.0)
    found = time_blocks(3600.0 * hours, [(0.0, 86_400.0 * 20)], "day")
    assert np.array_equal(found, hours // 24)
    assert time_blocks(3600.0 * hours, [(0.0, 86_400.0 * 20)], "week").max() == 9


def test_a_steady_rate_gains_nothing_whatever_the_exposure(tmp_path):
    path = written(tmp_path / "events.csv", waving(10.5, 2000, wave=0.0))
    held = EventStudy(planned(path)).fit(path).holdout_
    assert abs(held.gain) < 4.0 * held.gain_error + 1e-9 < 0.02


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"holdout": 1.0}, "holdout must be a share from 0 to 0.9, got 1.0"),
        ({"holdout": 7}, "holdout must be a share from 0 to 0.9, got 7"),
        ({"holdout": -0.1}, "holdout must be a share from 0 to 0.9, got -0.1"),
        ({"blocks": 0}, "blocks must be a whole number of at least 1, got 0"),
        (
            {"n_jobs": "x"},
            "n_jobs must be a whole number of at least 1, or -1 for all cores, got 'x'",
        ),
        ({"n_jobs": 0}, "n_jobs must be a whole number of at least 1, or -1 for all cores, got 0"),
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
    with pytest.raises(
        TypeError, match='priors must be "auto", "constant" or what learn_mixture found'
    ):
        Intensity(window).fit(X, priors=3)


def test_models_are_compared_at_the_step_of_positions(tmp_path):
    """Rounding more finely than the rate varies must not change who predicts better."""
    X = np.random.RandomState(4).normal(0.5, 0.15, (1000, 2)) % 1.0
    gains = []
    for digits in (9, 2):
        path = tmp_path / f"{digits}.csv"
        rows = "\n".join(f"{x:.{digits}f},{y:.{digits}f}" for x, y in X)
        path.write_text(f"x,y\n{rows}\n")
        study = EventStudy(plan(str(path), ["x", "y"], window=(0, 0, 1, 1))).fit(str(path))
        gains.append((study.holdout_.gain, study.holdout_.kde_gain))
    np.testing.assert_allclose(*gains, atol=0.04)


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
