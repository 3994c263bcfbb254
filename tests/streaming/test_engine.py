"""The compiled loop against the textbook: slopes, links, steps, and whole streams in numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from hplus import Gaussian, Laplace, Linear, Matern32, StreamingClassifier, StreamingRegressor
from hplus.features import Nystroem, RandomFourier
from hplus.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Perceptron,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
)
from hplus.streaming.budgets import KOMP, DoublyStochastic, Forgetron, Oldest, Smallest, Unlimited
from hplus.streaming.engine import rules
from hplus.streaming.links import Identity, Log
from hplus.streaming.settings import loss_part, rule
from hplus.streaming.steps import FixedStep, InverseStep, RootStep

QUANTITIES = [
    Squared(), Absolute(), Quantile(0.2), Quantile(0.9), Huber(), Huber(0.3),
    EpsilonInsensitive(), EpsilonInsensitive(0.7),
]  # fmt: skip
LABELS = [Hinge(), SquaredHinge(), Logistic(), Perceptron()]
KERNELS = [
    Gaussian(0.6),
    2.0 * Laplace(1.5) + Matern32(0.8) * Gaussian(2.0),
    0.1 * Linear() + Laplace(1.0),
]
STEPS = [(FixedStep(0.03), 0.0), (FixedStep(0.03), 2.0), (RootStep(0.05), 0.5),
         (InverseStep(0.05), 0.5), (InverseStep(), 40.0)]  # fmt: skip


# The scalar rules, through a compiled loop: they have no Python wrapper


@njit
def slopes(loss, low, high, width, y, f, out):
    for i in range(len(y)):
        out[i] = rules.slope(loss, low, high, width, y[i], f[i])


@njit
def links(link, cap, z, f, derivative):
    for i in range(len(z)):
        f[i] = rules.prediction(link, z[i], cap)
        derivative[i] = rules.link_slope(link, f[i])


def targets(loss, rng, n):
    if isinstance(loss, tuple(map(type, LABELS))):
        return rng.choice([-1.0, 1.0], n)
    return rng.poisson(2.0, n).astype(float) if isinstance(loss, Poisson) else rng.normal(size=n)


@pytest.mark.parametrize("loss", [*QUANTITIES, Poisson(), *LABELS], ids=repr)
def test_the_slope_of_a_code_is_the_slope_of_the_loss(loss, rng):
    y, f, found = targets(loss, rng, 500), rng.normal(size=500) * 2.0, np.empty(500)
    f = np.abs(f) + 0.01 if isinstance(loss, Poisson) else f
    r = rule(loss_part(loss))
    slopes(r.loss, r.low, r.high, r.width, y, f, found)
    np.testing.assert_allclose(found, loss.slope(y, f), rtol=1e-14, atol=1e-15)
    assert len(np.unique(np.sign(found))) > 1


@pytest.mark.parametrize("loss", [*QUANTITIES, *LABELS], ids=repr)
def test_slopes_agree_at_their_kinks_and_far_out(loss):
    y = np.repeat([-1.0, 1.0], 9)
    f = np.tile([0.0, 1.0, -1.0, 1.1, 0.9, 1e3, -1e3, 1e300, -1e300], 2)
    r, found = rule(loss_part(loss)), np.empty(len(y))
    slopes(r.loss, r.low, r.high, r.width, y, f, found)
    np.testing.assert_allclose(found, loss.slope(y, f), rtol=1e-14)


def test_the_slope_of_a_process_is_that_of_minus_log_f():
    f, found = np.array([0.01, 0.5, 3.0, 1e9]), np.empty(4)
    slopes(rules.PROCESS, 0.0, 0.0, 0.0, np.zeros(4), f, found)
    np.testing.assert_allclose(found, -1.0 / f, rtol=1e-14)


LINKS = {
    "identity": (rules.IDENTITY, lambda z: z, lambda f: np.ones_like(f)),
    "exponential": (rules.EXPONENTIAL, np.exp, lambda f: f),
    "reciprocal": (rules.RECIPROCAL, lambda z: 1.0 / (1.0 - z), lambda f: f**2),
}


@pytest.mark.parametrize("name", LINKS)
def test_links_and_their_derivatives_are_their_formulas(name, rng):
    code, formula, derivative = LINKS[name]
    z, f, g = rng.uniform(-8.0, 0.95, 300), np.empty(300), np.empty(300)
    links(code, 30.0, z, f, g)
    np.testing.assert_allclose(f, formula(z), rtol=1e-14)
    np.testing.assert_allclose(g, derivative(formula(z)), rtol=1e-13)
    h = 1e-6
    np.testing.assert_allclose(g, (formula(z + h) - formula(z - h)) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("code", [rules.EXPONENTIAL, rules.RECIPROCAL], ids=["exp", "reciprocal"])
def test_links_stay_within_their_cap_and_above_zero(code):
    z, f, g = np.array([-1e300, -50.0, 50.0, 1e300]), np.empty(4), np.empty(4)
    links(code, 3.0, z, f, g)
    assert np.all((f >= np.exp(-3.0) * (1 - 1e-15)) & (f <= np.exp(3.0) * (1 + 1e-15)))
    assert f[0] < f[-1]


def numpy_step(step, decay, n):
    """η at the n-th event."""
    if isinstance(step, InverseStep):
        return (1.0 / decay if step.size is None else step.size) / n
    return step.size / (np.sqrt(n) if isinstance(step, RootStep) else n**0)


@pytest.mark.parametrize(
    ("step", "formula"),
    [
        (FixedStep(0.3), lambda n: 0.3 + 0.0 * n),
        (RootStep(0.3), lambda n: 0.3 / np.sqrt(n)),
        (InverseStep(0.3), lambda n: 0.3 / n),
    ],
    ids=["fixed", "root", "inverse"],
)
def test_sizes_of_steps_are_their_schedules(step, formula):
    # atoms far apart do not know of one another: each has the size of its step as its weight
    X = 100.0 * np.arange(59.0)[:, None]
    model = StreamingRegressor(Gaussian(1.0), "absolute", step=step, budget=None)
    model.partial_fit(X, np.full(59, 9.0))
    np.testing.assert_allclose(model.function_.weights, formula(np.arange(1.0, 60.0)), rtol=1e-14)


# Whole streams: z ← (1 - ηλ) z - η g [math, Eq. 5.1]


def textbook(kernel, loss, link, step, decay, X, y):
    """Weights of z on X after the stream, of its average, and z before each event."""
    K, w, mean, before = kernel(X), np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X))
    for t in range(len(X)):
        n = t + 1
        eta, z = numpy_step(step, decay, n), K[t] @ w
        f = z if isinstance(link, Identity) else np.exp(z)
        g = loss.slope(y[t : t + 1], np.array([f]))[0]
        if not isinstance(link, Identity) and link.gradient == "log":
            g = f * g
        w = (1.0 - eta * decay) * w
        w[t] -= eta * g
        mean = mean + (1.0 + 3.0) / (n + 3.0) * (w - mean)
        before[t] = z
    return w, mean, before


def weights_on(X, function):
    """The weights of a function whose centers are rows of X, one for each row."""
    place, w = {x.tobytes(): i for i, x in enumerate(X)}, np.zeros(len(X))
    w[[place[c.tobytes()] for c in function.centers]] = function.weights
    return w


def assert_equals_textbook(model, loss, link, X, y, step, decay):
    w, mean, _ = textbook(model.kernel, loss, link, step, decay, X, y)
    seen = model.partial_fit(X, y)
    expected = mean if model.average else w
    largest = np.abs(expected).max()
    assert largest > 0.0
    np.testing.assert_allclose(weights_on(X, seen.function_), expected, atol=1e-10 * largest)
    assert model.status_.capped == 0


@pytest.mark.parametrize("average", [False, True], ids=["last", "average"])
@pytest.mark.parametrize(("step", "decay"), STEPS, ids=repr)
@pytest.mark.parametrize("loss", QUANTITIES, ids=repr)
def test_a_regressor_is_the_textbook_machine(loss, step, decay, average, rng):
    X, y = rng.normal(size=(60, 2)), 2.0 * rng.normal(size=60)
    for kernel in KERNELS:
        options = {"step": step, "decay": decay, "budget": None, "average": average}
        model = StreamingRegressor(kernel, loss, **options)
        assert_equals_textbook(model, loss, Identity(), X, y, step, decay)


@pytest.mark.parametrize("link", [Log(), Log("mirror")], ids=repr)
@pytest.mark.parametrize(("step", "decay"), STEPS, ids=repr)
@pytest.mark.parametrize("loss", [*QUANTITIES, Poisson()], ids=repr)
def test_a_positive_regressor_is_the_textbook_machine(loss, step, decay, link, rng):
    # targets so far above e^0 that no step reaches them, where it would be held down
    X, y = rng.normal(size=(40, 2)), rng.uniform(6.0, 12.0, 40)
    small = step if step == InverseStep() else step.replace(size=step.size / 20)
    decay = 800.0 if decay == 40.0 else decay
    options = {"step": small, "decay": decay, "budget": None, "average": True}
    model = StreamingRegressor(Gaussian(0.6), loss, link, **options)
    assert_equals_textbook(model, loss, link, X, y, small, decay)


@pytest.mark.parametrize("average", [False, True], ids=["last", "average"])
@pytest.mark.parametrize(("step", "decay"), STEPS, ids=repr)
@pytest.mark.parametrize("loss", LABELS, ids=repr)
def test_a_classifier_is_the_textbook_machine(loss, step, decay, average, rng):
    X, y = rng.normal(size=(60, 2)), np.resize([1.0, -1.0, -1.0], 60)
    for kernel in KERNELS:
        options = {"step": step, "decay": decay, "budget": None, "average": average}
        model = StreamingClassifier(kernel, loss, **options)
        assert_equals_textbook(model, loss, Identity(), X, y, step, decay)


def test_predictions_before_learning_are_those_of_the_textbook(rng):
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    options = {"step": 0.1, "decay": 0.3, "budget": None}
    *_, before = textbook(Gaussian(1.0), Huber(), Identity(), FixedStep(0.1), 0.3, X, y)
    found = StreamingRegressor(Gaussian(1.0), "huber", **options).predict_then_learn(X, y)
    np.testing.assert_allclose(found, before, atol=1e-12)


def test_predictions_are_the_kernel_expansion(rng):
    X, y, Z = rng.normal(size=(50, 2)), rng.uniform(1, 3, 50), rng.normal(size=(30, 2))
    kernel = KERNELS[1]
    model = StreamingRegressor(kernel, "poisson", "log", budget=None).partial_fit(X, y)
    z = kernel(Z, model.function_.centers) @ model.function_.weights
    np.testing.assert_allclose(model.predict(Z), np.exp(z), rtol=1e-12)


# What a step may not do


@pytest.mark.parametrize("link", [Identity(), Log(), Log("mirror")], ids=repr)
@pytest.mark.parametrize("size", [0.01, 1.0, 1e6])
def test_a_step_never_carries_the_prediction_past_its_target(link, size, rng):
    model = StreamingRegressor(Gaussian(0.5), "squared", link, step=size, budget=None)
    X, y = rng.uniform(size=(50, 2)), rng.uniform(0.2, 5.0, 50)
    model.partial_fit(X[:1], y[:1])
    for x, target in zip(X[1:], y[1:], strict=True):
        before, after = (
            model.predict([x])[0],
            (model.learn_one(x, target), model.predict([x])[0])[1],
        )
        low, high = sorted([before, target])
        assert low - 1e-9 <= after <= high + 1e-9
    assert (model.status_.capped > 0) == (size >= 1.0)


BUDGETS = [Unlimited(), Oldest(5), Smallest(5), KOMP(0.01), KOMP(0.0, 4), KOMP(0.1, relative=True),
           Nystroem(4), RandomFourier(4, 0), DoublyStochastic(8, 4)]  # fmt: skip
REGRESSION = [("squared", "identity"), ("huber", "log"), ("poisson", "log"), ("quantile", "log"),
              ("poisson", Log("mirror")), ("absolute", "identity")]  # fmt: skip
numbers = st.sampled_from([0.0, 1.0, 1.0 + 1e-12, -1e12, 1e12, 3e-9]) | st.floats(-5.0, 5.0)
rows = st.lists(st.tuples(numbers, st.just(2.0), numbers), min_size=1, max_size=25)


@settings(max_examples=120)
@given(
    rows=rows,
    heights=st.lists(st.sampled_from([0.0, 1.0, 1e30, 1e-30, 7.0]), min_size=25, max_size=25),
    budget=st.sampled_from(BUDGETS),
    loss=st.sampled_from(REGRESSION),
    step=st.sampled_from([1e6, 1.0, RootStep(100.0), RootStep(0.1), InverseStep()]),
    decay=st.sampled_from([1e-9, 1.0, 1e9]),
    scale=st.sampled_from([1e-8, 1.0, 1e10]),
    average=st.booleans(),
)
def test_no_finite_stream_makes_a_regressor_stumble(
    rows, heights, budget, loss, step, decay, scale, average
):
    X, y = np.array(rows), np.array(heights[: len(rows)])
    average = average and not isinstance(budget, Oldest | Smallest)
    options = {"step": step, "decay": decay, "budget": budget, "average": average}
    model = StreamingRegressor(Gaussian(scale), *loss, **options).partial_fit(X, y)
    f = model.predict(np.vstack([X, X + 0.5]))
    assert np.isfinite(f).all()
    assert np.isfinite(model.state_[0]["rows"]).all()
    if loss[1] != "identity":
        assert np.all(f > 0.0)


@settings(max_examples=70)
@given(
    rows=rows,
    signs=st.lists(st.sampled_from([0, 1]), min_size=25, max_size=25),
    budget=st.sampled_from(BUDGETS),
    loss=st.sampled_from(LABELS),
    step=st.sampled_from([1e6, 1.0, RootStep(100.0), InverseStep()]),
    scale=st.sampled_from([1e-8, 1.0, 1e10]),
)
def test_no_finite_stream_makes_a_classifier_stumble(rows, signs, budget, loss, step, scale):
    X, y = np.array(rows), np.array(signs[: len(rows)])
    model = StreamingClassifier(Gaussian(scale), loss, step=step, decay=1e-3, budget=budget)
    model.partial_fit(X, y, classes=[0, 1])
    assert np.isfinite(model.decision_function(np.vstack([X, X + 0.5]))).all()
    assert np.isfinite(model.state_[0]["rows"]).all()


@settings(max_examples=40)
@given(rows=rows, loss=st.sampled_from([Hinge(), Perceptron()]), step=st.sampled_from([1e-6, 1e6]))
def test_no_finite_stream_makes_a_forgetron_stumble(rows, loss, step):
    X, y = np.array(rows), np.resize([0, 1, 1], len(rows))
    model = StreamingClassifier(Gaussian(1.0), loss, step=step, budget=Forgetron(3))
    model.partial_fit(X, y, classes=[0, 1])
    assert np.isfinite(model.decision_function(X)).all()
    assert model.n_atoms_ <= 3
