"""StreamingIntensity: counts that add up, drift, windows, every method near the truth, the door."""

import copy
import pickle
import re
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hplus import (
    KOMP,
    PMD,
    SPPPOT,
    Box,
    Custom,
    Gaussian,
    Interval,
    Laplace,
    Linear,
    Matern32,
    Oldest,
    Polygon,
    RandomFourier,
    Refit,
    SecondOrder,
    StreamingIntensity,
    load,
    save,
)
from hplus.streaming.engine.nodes import nodes_within
from hplus.streaming.rate_setup import STEP_RESOLUTION
from hplus.streaming.steps import FixedStep, InverseStep, RootStep

DAY = Interval(0, 24, unit="h")
RING = Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], holes=[[(1, 1), (2, 1), (2, 2), (1, 2)]])
WINDOWS = {
    "interval": DAY,
    "box": Box((0, 10), (4, 12), unit="km"),
    "polygon": RING,
    "place and time": RING * Interval(0, 24, unit="h"),
}
METHODS = {
    "log": SPPPOT(),
    "mirror": SPPPOT(RootStep(0.5), "mirror"),
    "sign": SPPPOT(RootStep(1.0), "sign"),
    "itakura saito": SPPPOT(RootStep(0.5), mirror="itakura_saito"),
    "itakura saito, mirror": SPPPOT(RootStep(0.5), "mirror", "itakura_saito"),
    "last": SPPPOT(FixedStep(0.1), average=False),
    "second order": SecondOrder(),
    "grid": PMD(20),
    "refit": Refit(every=32, penalty=1.0),
    "refit, auto": Refit(every=50),
}
every_method = pytest.mark.parametrize("method", METHODS)


def events(window, n=120, seed=0):
    X = window.sample(3 * n, random_state=seed)
    low, high = window.bounds()
    keep = np.random.RandomState(1).random_sample(len(X)) < ((X - low) / (high - low))[:, 0]
    return X[keep][:n]


@cache
def learned(name, method):
    window = WINDOWS[name]
    kernel = Gaussian(tuple(window.longest_sides() / 6.0))
    model = StreamingIntensity(window, kernel, METHODS[method])
    return model.partial_fit(events(window), exposure=2.5)


FEW = ("log", "second order", "grid", "refit")
CASES = [(name, m) for name in WINDOWS for m in METHODS if name == "interval" or m in FEW]
every_case = pytest.mark.parametrize(("name", "method"), CASES)


@every_case
def test_the_expected_count_is_events_over_exposure(name, method):
    model = learned(name, method)
    assert model.expected_count(WINDOWS[name]) == pytest.approx(120 / 2.5, rel=1e-9)


@every_case
def test_the_rate_is_above_zero_everywhere(name, method):
    model, window = learned(name, method), WINDOWS[name]
    rate = model.predict(window.sample(300, random_state=1))
    assert np.isfinite(rate).all()
    assert np.all(rate > 0.0)
    assert rate.std() > 0.0


@every_case
def test_the_rate_grows_where_there_are_more_events(name, method):
    model, window = learned(name, method), WINDOWS[name]
    X = window.sample(2000, random_state=2)
    assert np.corrcoef(model.predict(X), X[:, 0])[0, 1] > 0.3


@every_method
def test_counts_of_parts_add_up(method):
    for name in ("interval", "box") if method in FEW else ("interval",):
        model, window = learned(name, method), WINDOWS[name]
        low, high = window.bounds()
        edges = np.append(low[0] + (high - low)[0] * np.array([0.0, 0.13, 0.5, 0.77]), high[0])
        parts = [
            Box((a, *low[1:]), (b, *high[1:])) if len(low) > 1 else Interval(a, b)
            for a, b in pairwise(edges)
        ]
        counts = model.expected_count(parts)
        assert counts.shape == (4,)
        assert np.all(counts > 0.0)
        assert counts.sum() == pytest.approx(model.expected_count(window), rel=1e-8)


@every_method
def test_a_count_is_the_integral_of_the_rate(method):
    model, part = learned("interval", method), Interval(3.0, 11.0)
    x = np.linspace(3.0, 11.0, 40_001)
    mean = np.trapezoid(model.predict(x[:, None]), x)
    assert model.expected_count(part) == pytest.approx(mean, rel=1e-6)


@every_method
def test_the_score_is_the_mean_log_density(method):
    model, X = learned("interval", method), events(DAY, 50, seed=5)
    density = model.predict(X) / model.expected_count(DAY)
    assert model.score(X) == pytest.approx(np.log(density).mean(), rel=1e-12)


# Exposure


@every_method
def test_exposure_scales_the_rate_and_nothing_else(method):
    X = events(DAY)
    bare, long = (StreamingIntensity(DAY, Gaussian(3.0), METHODS[method]) for _ in range(2))
    bare.partial_fit(X)
    long.partial_fit(X[:50], exposure=3.0).partial_fit(X[50:], exposure=5.0)
    assert bare.expected_count(DAY) == pytest.approx(120.0, rel=1e-9)
    np.testing.assert_allclose(long.predict(X), bare.predict(X) / 8.0, rtol=1e-9)


def test_a_number_is_spread_evenly_over_the_events_of_a_call():
    X = events(DAY)
    model = {"kernel": Gaussian(3.0), "forget": 2.0}
    spread = StreamingIntensity(DAY, **model).partial_fit(X, exposure=6.0)
    each = StreamingIntensity(DAY, **model).partial_fit(X, exposure=np.full(120, 0.05))
    np.testing.assert_array_equal(spread.predict(X), each.predict(X))


def test_time_in_which_nothing_came_counts():
    X = events(DAY)
    quiet = StreamingIntensity(DAY).partial_fit(X, exposure=2.0).partial_fit([], exposure=6.0)
    assert quiet.expected_count(DAY) == pytest.approx(120 / 8.0, rel=1e-9)
    first = StreamingIntensity(DAY).partial_fit([], exposure=6.0).partial_fit(X, exposure=2.0)
    np.testing.assert_allclose(first.predict(X), quiet.predict(X), rtol=1e-9)


@every_method
def test_a_stream_that_saw_nothing_yet_has_no_rate_but_stands(method):
    model = StreamingIntensity(DAY, Gaussian(3.0), METHODS[method]).partial_fit([], exposure=6.0)
    assert model.status_.events == 0
    assert np.isfinite(model.predict([[12.0]])).all()


# Forgetting


def half_life_counts(gaps, half_life):
    """Events and exposure that count at the end: Σ 2^(-age/h), and ∫ 2^(-age/h) of the time."""
    ages = np.cumsum(gaps[::-1])[::-1] - gaps
    seen = np.sum(2.0 ** (-ages / half_life))
    exposure = half_life / np.log(2.0) * (1.0 - 2.0 ** (-np.sum(gaps) / half_life))
    return seen, exposure


@every_method
def test_the_effective_count_is_its_closed_form(method, rng):
    X, gaps = events(DAY), rng.exponential(0.3, 120)
    model = StreamingIntensity(DAY, Gaussian(3.0), METHODS[method], forget=4.0)
    model.partial_fit(X, exposure=gaps)
    seen, exposure = half_life_counts(gaps, 4.0)
    assert model.expected_count(DAY) == pytest.approx(seen / exposure, rel=1e-9)


def test_time_in_which_nothing_came_is_forgotten_too(rng):
    X, gaps = events(DAY), rng.exponential(0.3, 120)
    model = StreamingIntensity(DAY, Gaussian(3.0), Refit(), forget=4.0)
    model.partial_fit(X, exposure=gaps).partial_fit([], exposure=2.0)
    seen, exposure = half_life_counts(gaps, 4.0)
    rest = 4.0 / np.log(2.0) * (1.0 - 2.0**-0.5)
    expected = seen * 2.0**-0.5 / (exposure * 2.0**-0.5 + rest)
    assert model.expected_count(DAY) == pytest.approx(expected, rel=1e-9)


def test_without_exposure_a_half_life_is_in_events():
    model = StreamingIntensity(DAY, Gaussian(3.0), forget=10.0).partial_fit(events(DAY))
    expected = np.sum(2.0 ** (-np.arange(120) / 10.0))
    assert model.expected_count(DAY) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("method", ["log", "last", "second order", "refit"])
def test_a_half_life_follows_a_jump_of_the_rate(method, rng):
    night, noon = (np.clip(rng.normal(m, 1.5, (4000, 1)), 0, 24) for m in (5.0, 17.0))
    options = {"kernel": Gaussian(1.5), "method": METHODS[method]}
    gaps = np.r_[np.full(4000, 0.1), np.full(4000, 0.01)]
    late = StreamingIntensity(DAY, **options, forget=5.0)
    late.partial_fit(np.vstack([night, noon]), exposure=gaps)
    assert late.expected_count(DAY) == pytest.approx(100.0, rel=0.15)
    assert late.expected_count(Interval(12, 24)) > 0.9 * late.expected_count(DAY)
    never = StreamingIntensity(DAY, **options).partial_fit(np.vstack([night, noon]), exposure=gaps)
    assert never.expected_count(DAY) == pytest.approx(8000 / 440.0, rel=1e-9)


# Chunks and saved states

CHUNKED = {
    **{name: {"method": method} for name, method in METHODS.items()},
    "forgets": {"forget": 20.0},
    "forgets, refit": {"method": Refit(every=40), "forget": 20.0},
    "sized": {"budget": KOMP(0.0, 8)},
    "absolute tolerance": {"budget": KOMP(0.02)},
}
every_stream = pytest.mark.parametrize("name", CHUNKED)


def fresh(name):
    return StreamingIntensity(DAY, Matern32(4.0), **CHUNKED[name])


def snapshot(model):
    return {key: np.array(a) for key, a in model.state_[0].items()}


def assert_equal_states(a, b):
    assert a.keys() == b.keys()
    for key in a:
        assert a[key].tobytes() == b[key].tobytes(), key


@pytest.mark.parametrize("exposed", [False, True], ids=["events", "exposure"])
@every_stream
def test_chunks_never_change_the_result(name, exposed, rng):
    X = np.round(events(DAY, 150), 1)
    gaps = rng.exponential(size=150) if exposed else None
    whole = fresh(name).partial_fit(X, exposure=gaps)
    cuts = np.sort(rng.choice(np.arange(1, 150), 6, replace=False))
    for places in (cuts, np.arange(1, 150)):
        model = fresh(name)
        for part in np.split(np.arange(150), places):
            model.partial_fit(X[part], exposure=gaps[part] if exposed else None)
        assert_equal_states(snapshot(model), snapshot(whole))
        np.testing.assert_array_equal(model.predict(X), whole.predict(X))


@every_stream
def test_learning_one_by_one_is_learning_all(name):
    X = events(DAY, 150)
    whole, one = fresh(name).partial_fit(X), fresh(name)
    for x in X:
        one.learn_one(x)
    assert_equal_states(snapshot(one), snapshot(whole))
    np.testing.assert_array_equal(one.predict(X), whole.predict(X))


@every_stream
def test_predictions_change_nothing(name):
    X = events(DAY, 150)
    model, silent = fresh(name), fresh(name)
    for part in np.split(np.arange(150), 10):
        model.partial_fit(X[part])
        silent.partial_fit(X[part])
        model.predict(X), model.expected_count(DAY), model.score(X), model.status_
    assert_equal_states(snapshot(model), snapshot(silent))
    np.testing.assert_array_equal(model.predict(X), silent.predict(X))


ROADS = {
    "saved": lambda model, path: (save(model, path), load(path))[1],
    "pickled": lambda model, path: pickle.loads(pickle.dumps(model)),
    "copied": lambda model, path: copy.deepcopy(model),
}


@pytest.mark.parametrize("road", ROADS)
@every_stream
def test_a_stream_that_was_put_away_goes_on_exactly(name, road, tmp_path):
    X = events(DAY, 150)
    whole, model = fresh(name).partial_fit(X), fresh(name).partial_fit(X[:70])
    again = ROADS[road](model, tmp_path / "model.hplus")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    early = snapshot(model)
    again.partial_fit(X[70:])
    assert_equal_states(snapshot(again), snapshot(whole))
    assert_equal_states(snapshot(model), early)
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_memory_stays_as_it_is(rng):
    X = rng.beta(2, 5, size=(100_000, 1)) * 24
    model = StreamingIntensity(DAY, Gaussian(1.0), budget=KOMP(1e-3, 50)).partial_fit(X[:20_000])
    shapes = {key: a.shape for key, a in model.state_[0].items()}
    model.partial_fit(X[20_000:])
    assert {key: a.shape for key, a in model.state_[0].items()} == shapes
    assert model.n_atoms_ == len(model.dictionary_) <= 50


# Steps against (5.2)


def unit_nodes(kernel):
    """Nodes and shares of the mean over the window, as dense as the engine has them."""
    return nodes_within(STEP_RESOLUTION.grid(kernel, DAY), DAY)[:2]


def first_step(method, kernel):
    """z after one event at 9, on a fine grid, from the estimator."""
    model = StreamingIntensity(DAY, kernel, method, budget=KOMP(0.0)).partial_fit([[9.0]])
    x = np.linspace(0.0, 24.0, 97)[:, None]
    return x, model.function_(x)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(5.0)], ids=repr)
@pytest.mark.parametrize("gradient", ["log", "mirror"])
def test_the_first_step_is_the_event_less_the_background(gradient, kernel):
    # at z = 0, f = 1 and both forms are -k(x, ·) + ⨍ k(s, ·) ds
    x, z = first_step(SPPPOT(0.3, gradient, average=False), kernel)
    nodes, shares = unit_nodes(kernel)
    expected = 0.3 * (kernel(x, [[9.0]])[:, 0] - kernel(x, nodes) @ shares)
    np.testing.assert_allclose(z, expected, atol=1e-5)


def numpy_second_step(gradient, kernel, eta, points):
    """z on the background and two atoms after events at both points [math, Eq. 5.2]."""
    nodes, shares = unit_nodes(kernel)
    D = np.array(points)[:, None]
    # atoms: c = ⨍ k(s, ·) ds, then the points
    at_nodes = np.column_stack([kernel(nodes) @ shares, kernel(nodes, D)])
    K = np.empty((3, 3))
    K[0, 0], K[1:, 1:] = shares @ kernel(nodes) @ shares, kernel(D)
    K[0, 1:] = K[1:, 0] = kernel(D, nodes) @ shares
    w = np.array([-eta, eta, 0.0])
    f = np.exp(at_nodes @ w)
    z = float(K[2] @ w)
    if gradient == "mirror":
        return w + eta * np.array([-1.0, 0.0, np.exp(-z)])
    # ⨍ f k(s, ·) ds / ⨍ f projected on the atoms that were there
    target = (shares * f) @ at_nodes[:, :2] / (shares @ f)
    drift = np.linalg.solve(K[:2, :2] * (1.0 + 1e-6 * np.eye(2)), target)
    return w + eta * np.array([-drift[0], -drift[1], 1.0])


@pytest.mark.parametrize("gradient", ["log", "mirror"])
def test_the_second_step_is_the_formula_of_its_gradient(gradient):
    # after a step of this length the integral is taken anew
    kernel, points, eta = 0.5 * Gaussian(2.0), [9.0, 10.5], 1.5
    w = numpy_second_step(gradient, kernel, eta, points)
    method = SPPPOT(eta, gradient, average=False)
    model = StreamingIntensity(DAY, kernel, method, budget=KOMP(0.0))
    model.partial_fit(np.array(points)[:, None])
    f, (nodes, shares) = model.function_, unit_nodes(kernel)
    np.testing.assert_allclose(f.weights[len(nodes) :], w[1:], atol=1e-5)
    np.testing.assert_allclose(f.weights[: len(nodes)], w[0] * shares, atol=1e-5)


def test_pmd_is_its_formula_on_the_grid():
    X, eta, nodes = events(DAY, 40), 0.05, np.linspace(0.0, 24.0, 13)
    kernel, z = Gaussian(2.0), np.zeros(13)
    hats = np.full(13, 2.0) - np.isin(nodes, [0.0, 24.0])
    background = kernel(nodes[:, None]) @ (hats / hats.sum())
    for x in X[:, 0]:
        f = np.exp(np.interp(x, nodes, z))
        z = z - eta * (-kernel(nodes[:, None], [[x]])[:, 0] / f + background)
    model = StreamingIntensity(DAY, kernel, PMD(13, step=eta)).partial_fit(X)
    density = model.predict(nodes[:, None])
    np.testing.assert_allclose(np.log(density / density[0]), z - z[0], atol=1e-9)
    assert model.n_atoms_ == 13


# Near the truth

UNIT = Interval(0, 1)
STEPS = {
    "log": SPPPOT(),
    "log, last": SPPPOT(FixedStep(0.05), average=False),
    "mirror": SPPPOT(RootStep(1.0), "mirror"),
    "sign": SPPPOT(RootStep(2.0), "sign"),
    "itakura saito": SPPPOT(RootStep(1.0), mirror="itakura_saito"),
    "itakura saito, mirror": SPPPOT(RootStep(1.0), "mirror", "itakura_saito"),
    "second order": SecondOrder(),
    "grid": PMD(),
    "refit": Refit(),
}


def two_bumps(x):
    """A density on [0, 1] but for a factor."""
    return (
        0.2 + np.exp(-0.5 * ((x - 0.3) / 0.08) ** 2) + 0.6 * np.exp(-0.5 * ((x - 0.7) / 0.1) ** 2)
    )


@cache
def bumpy_events(n=12_000):
    rng, X = np.random.default_rng(3), np.zeros(0)
    while len(X) < n:
        x = rng.uniform(size=n)
        X = np.append(X, x[rng.uniform(0.0, 1.25, n) < two_bumps(x)])
    return X[:n, None]


@pytest.mark.parametrize("name", STEPS)
def test_every_method_comes_near_a_density_with_two_bumps(name):
    X, grid = bumpy_events(), np.linspace(0.0, 1.0, 2001)
    truth = np.log(two_bumps(X[10_000:, 0])).mean() - np.log(np.trapezoid(two_bumps(grid), grid))
    model = StreamingIntensity(UNIT, Gaussian(0.08), STEPS[name]).partial_fit(X[:10_000])
    assert truth - 0.05 < model.score(X[10_000:]) < truth + 0.02
    assert abs(model.peak()[0][0] - 0.3) < 0.08


def test_the_defaults_find_two_bumps_in_two_dimensions(rng):
    a, b = rng.normal((0.3, 0.3), 0.08, (6000, 2)), rng.normal((0.7, 0.6), 0.08, (4000, 2))
    X = rng.permutation(np.clip(np.vstack([a, b]), 0.0, 1.0))
    model = StreamingIntensity(Box((0, 0), (1, 1))).partial_fit(X)
    assert np.linalg.norm(model.peak()[0] - 0.3) < 0.08
    assert model.expected_count(Box((0, 0), (0.5, 0.5))) == pytest.approx(6000, rel=0.1)
    assert model.expected_count(Box((0.5, 0), (1, 0.3))) < 500


def test_samples_follow_the_rate():
    model = learned("interval", "log")
    counts = [len(path) for path in model.sample(400, random_state=0)]
    assert np.mean(counts) == pytest.approx(48.0, rel=0.05)
    assert all(DAY.contains(path).all() for path in model.sample(5, random_state=1))


# Any finite stream

times = st.sampled_from([0.0, 24.0, 12.0, 12.0 + 1e-12, 3e-9]) | st.floats(0.0, 24.0)


@settings(max_examples=70)
@given(
    X=st.lists(times, min_size=1, max_size=40),
    method=st.sampled_from([
        SPPPOT(1e6), SPPPOT(1e6, "mirror"), SPPPOT(1e6, "sign"), SPPPOT(mirror="itakura_saito"),
        SPPPOT(1e6, mirror="itakura_saito"), SPPPOT(1e6, "mirror", "itakura_saito"),
        SPPPOT(1.0, average=False), SecondOrder(1e6), SecondOrder(1.0, damping=1e-9), PMD(5, 1e6),
        Refit(7), Refit(1, penalty=1e-9), Refit(3, penalty=1e9),
    ]),
    scale=st.sampled_from([0.05, 3.0, 1e6]),
    gap=st.sampled_from([1e-12, 1.0, 1e12]),
    forget=st.sampled_from([None, 1e-3, 5.0]),
    size=st.sampled_from([None, 1, 4]),
)  # fmt: skip
def test_no_finite_stream_makes_a_rate_stumble(X, method, scale, gap, forget, size):
    budget = "auto" if isinstance(method, PMD) else KOMP(0.01, size)
    model = StreamingIntensity(DAY, Gaussian(scale), method, budget, forget)
    model.partial_fit(np.array(X)[:, None], exposure=gap)
    rate = model.predict(np.linspace(0.0, 24.0, 49)[:, None])
    assert np.isfinite(rate).all()
    assert np.all(rate > 0.0)
    assert np.isfinite(model.state_[0]["rows"]).all()
    assert model.expected_count(DAY) > 0.0


# The door

X = np.linspace(0.5, 23.5, 12)[:, None]
CUBE = Box((0, 0, 0, 0), (1, 1, 1, 1))


def learn(*args, x=X, exposure=None, window=DAY, **options):
    return lambda: StreamingIntensity(window, *args, **options).partial_fit(x, exposure=exposure)


def then(first, second):
    model = StreamingIntensity(DAY)
    return lambda: model.partial_fit(X, exposure=first).partial_fit(X, exposure=second)


def fitted():
    return StreamingIntensity(DAY).partial_fit(X)


BAD = {
    "no window": (learn(window=None), TypeError, "window must be a Window such as .*got None"),
    "bounds for window": (learn(window=(0, 24)), TypeError, r"window must be .*got \(0, 24\)"),
    "four axes": (learn(window=CUBE, x=np.ones((3, 4))), ValueError, "1, 2 or 3 axes, got 4"),
    "class as kernel": (learn(Gaussian), TypeError, "kernel must be .*got"),
    "kernel in Python": (learn(Custom(Gaussian(1.0))), ValueError, "kernel"),
    "unknown method": (learn(method="adam"), ValueError, "method must be one of .*got 'adam'"),
    "class as method": (learn(method=SPPPOT), TypeError, "method must be .*got the class"),
    "unknown gradient": (lambda: SPPPOT(gradient="up"), ValueError, "gradient must be .*got 'up'"),
    "unknown mirror": (lambda: SPPPOT(mirror="l2"), ValueError, "mirror must be .*got 'l2'"),
    "average in words": (lambda: SPPPOT(average="no"), TypeError, "average must be True or False"),
    "negative cap": (lambda: SPPPOT(cap=-1.0), ValueError, "cap must be a positive .*got -1"),
    "inverse step": (lambda: SPPPOT(InverseStep()), ValueError, r"step must .*got InverseStep\(\)"),
    "no step": (lambda: SPPPOT(0.0), ValueError, "step must be a positive .*got 0"),
    "no damping": (lambda: SecondOrder(damping=0.0), ValueError, "damping must be .*got 0"),
    "one node": (lambda: PMD(1), ValueError, "grid must be .*at least 2, got 1"),
    "grid of two axes": (learn(method=PMD((5, 5))), ValueError, r"each of 1 axes, got \(5, 5\)"),
    "refit never": (lambda: Refit(every=0), ValueError, "every must be .*got 0"),
    "unknown penalty": (lambda: Refit(penalty="cv"), ValueError, "penalty must be .*got 'cv'"),
    "no penalty": (lambda: Refit(penalty=0.0), ValueError, "penalty must be .*got 0"),
    "budget of a grid": (
        learn(method="pmd", budget=KOMP()),
        ValueError,
        "budget must be .auto. for PMD, which has a grid, got KOMP",
    ),
    "features for a rate": (
        learn(budget=RandomFourier(9)),
        ValueError,
        '"auto" or a KOMP for a rate',
    ),
    "oldest for a rate": (
        learn(budget=Oldest(9)),
        ValueError,
        '"auto" or a KOMP for a rate, got Old',
    ),
    "unknown budget": (learn(budget="komps"), ValueError, "budget must be one of .*got 'komps'"),
    "number as budget": (learn(budget=5), TypeError, "budget must be .*got 5"),
    "negative half-life": (learn(forget=-1.0), ValueError, "forget must be a positive .*got -1"),
    "events outside": (learn(x=X + 10.0), ValueError, "X must lie in the window, got 5 of 12"),
    "NaN events": (learn(x=X * np.nan), ValueError, "X must contain only finite numbers"),
    "events of two axes": (learn(x=np.ones((3, 2))), ValueError, "X must have 1 column.*got 2"),
    "no events": (
        learn(x=np.zeros((0, 1))),
        ValueError,
        "at least one event, got 0: give an exposure",
    ),
    "negative exposure": (
        learn(exposure=-1.0),
        ValueError,
        "exposure must be non-negative.*got -1",
    ),
    "no exposure in all": (
        learn(exposure=0.0),
        ValueError,
        "exposure must be non-negative with a positive sum, got 0",
    ),
    "NaN exposure": (learn(exposure=np.nan), ValueError, "exposure must be finite, got nan"),
    "exposures too few": (
        learn(exposure=[1.0, 2.0]),
        ValueError,
        "each of the 12 events, got shape",
    ),
    "exposure once": (then(1.0, None), ValueError, "in every call or in none, got None .*with it"),
    "exposure late": (then(None, 1.0), ValueError, "in every call or in none, got 1.* without it"),
    "one outside": (lambda: fitted().learn_one([25.0]), ValueError, "x .*"),
    "one NaN": (
        lambda: fitted().learn_one([np.nan]),
        ValueError,
        "x must contain only finite numbers",
    ),
    "predicted outside": (lambda: fitted().predict([[25.0]]), ValueError, "X .*"),
    "region of two axes": (
        lambda: fitted().expected_count(RING),
        ValueError,
        "windows with 1 axes",
    ),
    "region of bounds": (
        lambda: fitted().expected_count((0, 1)),
        ValueError,
        "windows with 1 axes",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, error, pattern = BAD[case]
    with pytest.raises(error, match=pattern) as caught:
        call()
    assert re.search(r"[.?!]\s", str(caught.value)) is None, str(caught.value)
    assert str(caught.value).endswith(".")


def test_what_was_refused_is_not_learned():
    model = fitted()
    before = snapshot(model)
    for call in (
        lambda: model.partial_fit(X + 10.0),
        lambda: model.learn_one([-1.0]),
        lambda: model.partial_fit(X, exposure=1.0),
    ):
        with pytest.raises(ValueError, match="must"):
            call()
    assert_equal_states(snapshot(model), before)


def test_predicting_before_learning_says_what_to_call():
    for ask in (lambda m: m.predict(X), lambda m: m.score(X), lambda m: m.status_):
        with pytest.raises(NotFittedError, match="call partial_fit first"):
            ask(StreamingIntensity(DAY))


def test_a_clone_has_learned_nothing_and_a_fit_forgets():
    model = fitted()
    assert not hasattr(clone(model), "state_")
    assert_equal_states(snapshot(model.fit(X[::-1]).fit(X)), snapshot(fitted()))


def test_a_kernel_that_is_not_stationary_works_too():
    model = StreamingIntensity(DAY, 0.01 * Linear() + Gaussian(3.0)).partial_fit(events(DAY))
    assert model.expected_count(DAY) == pytest.approx(120.0, rel=1e-9)
