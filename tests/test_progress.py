"""A hook hears how far a fit has come, cannot change what it finds, and can stop it."""

import threading
from contextvars import copy_context

import numpy as np
import pytest

from hplus import (
    Density,
    Gaussian,
    HeteroscedasticRegressor,
    Intensity,
    Interval,
    KernelClassifier,
    KernelRegressor,
    QuantilesRegressor,
    SoSRegressor,
    progress,
)

LINE = Interval(0, 1)
K = Gaussian(0.3)

OF_EVENTS = [
    Intensity(LINE),
    Intensity(LINE, penalty="thinning"),
    Intensity(LINE, K),
    Intensity(LINE, model="square"),
    Intensity(LINE, K, model="sos"),
    Density(),
]
OF_TARGETS = [
    KernelRegressor(),
    KernelRegressor(loss="huber"),
    KernelClassifier(loss="logistic"),
    SoSRegressor(),
    SoSRegressor(K, cone="auto"),
    QuantilesRegressor((0.5,)),
    HeteroscedasticRegressor(),
]


@pytest.fixture(scope="module", params=OF_EVENTS + OF_TARGETS, ids=repr)
def heard(request):
    """A model fitted with a hook, what the hook heard, and predictions with and without it."""
    calls, alone = [], learn(request.param)
    with progress(lambda *call: calls.append(call)):
        return request.param, calls, learn(request.param), alone


def learn(model):
    """The model fitted to few events or rows, and what it predicts."""
    rng = np.random.default_rng(0)
    X = 0.1 + 0.8 * rng.beta(2, 3, (25, 1))
    y = np.round(X[:, 0]) if isinstance(model, KernelClassifier) else np.sin(5 * X[:, 0]) + 1.0
    fitted = model.fit(X) if model in OF_EVENTS else model.fit(X, y)
    return fitted.predict(X)


class CancelError(Exception):
    """What a user raises to cancel."""


def stopping(after):
    calls = []

    def hook(*call):
        calls.append(call)
        if len(calls) > after:
            raise CancelError

    return hook


def test_each_stage_comes_once_and_goes_from_0_to_its_total(heard):
    calls = heard[1]
    stages = [stage for stage, _, _ in calls]
    assert stages
    starts = [i for i, stage in enumerate(stages) if i == 0 or stages[i - 1] != stage]
    assert len(starts) == len(set(stages))
    for stage in set(stages):
        done = [d for name, d, _ in calls if name == stage]
        (total,) = {t for name, _, t in calls if name == stage}
        assert done[0] == 0
        assert done[-1] == total > 0
        assert done == sorted(done)


def test_a_hook_changes_no_bit_of_what_is_found(heard):
    _, _, predicted, alone = heard
    np.testing.assert_array_equal(predicted, alone)


@pytest.mark.parametrize("share", [0.0, 0.7])
def test_a_hook_that_raises_stops_the_fit_and_leaves_the_model_as_it_was(heard, share):
    model, calls, _, _ = heard
    before = dict(vars(model))
    with pytest.raises(CancelError), progress(stopping(int(share * len(calls)))):
        learn(model)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is part for name, part in before.items())


def test_a_model_that_was_stopped_in_its_first_fit_is_unfitted():
    model = HeteroscedasticRegressor()
    with pytest.raises(CancelError), progress(stopping(3)):
        learn_rows(model)
    assert [name for name in vars(model) if name.endswith("_")] == []


def learn_rows(model):
    X = np.linspace(0, 1, 20)[:, None]
    return model.fit(X, np.sin(X[:, 0]))


def test_every_stage_of_a_search_is_reported_in_order():
    calls = {}
    X = np.random.default_rng(0).random((60, 1))
    with progress(lambda stage, done, total: calls.update({stage: (done, total)})):
        Intensity(LINE, penalty="thinning").fit(X)
    assert list(calls) == [
        "comparing priors",
        "comparing priors again",
        "comparing priors on other folds",
        "averaging priors",
        "refining the grid",
        "drawing rates",
        "certifying the answer",
    ]
    assert all(done == total for done, total in calls.values())


def test_a_hook_is_called_from_another_thread_only_in_a_copy_of_the_context():
    calls = {"copied": [], "bare": []}

    def run(name, start):
        with progress(lambda *call: calls[name].append(call)):
            work = copy_context().run if start == "copied" else lambda f: f()
            thread = threading.Thread(target=work, args=(lambda: learn_rows(KernelRegressor()),))
            thread.start()
            thread.join()

    run("copied", "copied")
    run("bare", "bare")
    assert calls["copied"]
    assert not calls["bare"]


def test_hooks_nest_and_end_with_their_context():
    inner, outer = [], []
    with progress(lambda *call: outer.append(call)):
        with progress(lambda *call: inner.append(call)):
            learn_rows(KernelRegressor())
        assert inner
        assert not outer
        learn_rows(KernelRegressor())
    assert outer == inner
    learn_rows(KernelRegressor())
    assert outer == inner


def test_what_cannot_be_called_is_refused():
    with pytest.raises(
        TypeError, match=r"hook must be callable as hook\(stage, done, total\), got"
    ):
        progress(3).__enter__()
