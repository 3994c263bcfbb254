"""StreamingRegressor and StreamingClassifier: conventions, chunks, saved states, the door."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from hplus import (
    KOMP,
    Custom,
    Forgetron,
    Gaussian,
    Laplace,
    Linear,
    Matern32,
    Nystroem,
    Oldest,
    PoissonLog,
    Quantile,
    RandomFourier,
    Smallest,
    StreamingClassifier,
    StreamingRegressor,
    load,
    save,
)
from hplus.losses import Hinge, Huber, Poisson, Squared
from hplus.streaming.budgets import DoublyStochastic
from hplus.streaming.links import Log
from hplus.streaming.steps import FixedStep, InverseStep, RootStep, as_step

G = Gaussian(0.8)
CHECKED = [
    StreamingRegressor(),
    # one pass over 200 rows of 10 columns must explain half of the variance
    StreamingRegressor(Gaussian(7.0), "poisson", "log", step=0.1, average=True),
    StreamingRegressor(Gaussian(5.0), step=0.5, budget=Oldest(50)),
    StreamingRegressor(step=0.2, budget=RandomFourier(50, 0)),
    StreamingClassifier(),
    StreamingClassifier(loss="logistic"),
    StreamingClassifier(budget=RandomFourier(50, 0)),
]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# One stream, in chunks of any size

REGRESSORS = {
    "auto": StreamingRegressor(),
    "everything": StreamingRegressor(Matern32(1.0), "huber", budget=None, decay=0.1),
    "averaged": StreamingRegressor(G, budget=KOMP(0.05), average=True),
    "sized": StreamingRegressor(Laplace(1.0), "absolute", step=0.2, budget=KOMP(0.0, 9)),
    "positive": StreamingRegressor(G, "poisson", "log", budget=KOMP(0.1, relative=True)),
    "oldest": StreamingRegressor(G, "quantile", budget=Oldest(9)),
    "smallest": StreamingRegressor(G, "epsilon_insensitive", budget=Smallest(9)),
    "subspace": StreamingRegressor(G, step="inverse", decay=3.0, budget=Nystroem(9)),
    "features": StreamingRegressor(G, "squared", Log("mirror"), budget=RandomFourier(9, 0)),
    "regenerated": StreamingRegressor(G, budget=DoublyStochastic(32, 8), average=True),
}
CLASSIFIERS = {
    "classifier": StreamingClassifier(),
    "probabilities": StreamingClassifier(G, "logistic", decay=0.01, budget=KOMP(0.02)),
    "forgetron": StreamingClassifier(G, "perceptron", step=1.0, budget=Forgetron(9)),
    "squared hinge": StreamingClassifier(G, "squared_hinge", budget=None, average=True),
    "regenerated labels": StreamingClassifier(G, budget=DoublyStochastic(32, 8)),
}
ALL = {**REGRESSORS, **CLASSIFIERS}
every = pytest.mark.parametrize("name", ALL)


def stream(name, n=150):
    """Rows, some of them twice, and their targets: three classes, or numbers above 0."""
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(size=(n, 2)), 1)
    f = np.sin(2.0 * X[:, 0]) + X[:, 1]
    y = np.exp(0.5 * f) if name in REGRESSORS else np.digitize(f, [-0.5, 0.7])
    return X, y


def learn(model, name, X, y, *cuts):
    """The model after the stream, in chunks that begin at the cuts."""
    more = {} if name in REGRESSORS else {"classes": [0, 1, 2]}
    for part in np.split(np.arange(len(X)), cuts):
        model.partial_fit(X[part], y[part], **more)
    return model


def snapshot(model):
    return [{key: np.array(a) for key, a in learner.items()} for learner in model.state_]


def assert_equal_states(a, b):
    assert len(a) == len(b)
    for here, there in zip(a, b, strict=True):
        assert here.keys() == there.keys()
        for key in here:
            assert here[key].tobytes() == there[key].tobytes(), key


@every
def test_chunks_never_change_the_result(name, rng):
    X, y = stream(name)
    whole = snapshot(learn(clone(ALL[name]), name, X, y))
    cuts = np.sort(rng.choice(np.arange(1, 150), 6, replace=False))
    for places in (cuts, np.arange(1, 150)):
        assert_equal_states(snapshot(learn(clone(ALL[name]), name, X, y, *places)), whole)


@every
def test_learning_one_by_one_is_learning_all(name):
    X, y = stream(name)
    whole, one = learn(clone(ALL[name]), name, X, y), learn(clone(ALL[name]), name, X[:1], y[:1])
    for x, target in zip(X[1:], y[1:], strict=True):
        one.learn_one(x, target)
    assert_equal_states(snapshot(one), snapshot(whole))
    np.testing.assert_array_equal(one.predict(X), whole.predict(X))


@every
def test_predictions_change_nothing(name):
    X, y = stream(name)
    model = learn(clone(ALL[name]), name, X, y)
    before, f = snapshot(model), model.predict(X)
    np.testing.assert_array_equal(model.predict(X), f)
    if name in REGRESSORS:
        np.testing.assert_allclose(model.predict(X[::-1])[::-1], f, rtol=1e-12)
    _ = model.n_atoms_, model.status_, model.score(X, y)
    assert_equal_states(snapshot(model), before)


ROADS = {
    "saved": lambda model, path: (save(model, path), load(path))[1],
    "pickled": lambda model, path: pickle.loads(pickle.dumps(model)),
    "copied": lambda model, path: copy.deepcopy(model),
}


@pytest.mark.parametrize("road", ROADS)
@every
def test_a_stream_that_was_put_away_goes_on_exactly(name, road, tmp_path):
    X, y = stream(name)
    whole, model = (
        learn(clone(ALL[name]), name, X, y),
        learn(clone(ALL[name]), name, X[:70], y[:70]),
    )
    again = ROADS[road](model, tmp_path / "model.hplus")
    early = snapshot(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert_equal_states(snapshot(learn(again, name, X[70:], y[70:])), snapshot(whole))
    assert_equal_states(snapshot(model), early)
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


@every
def test_predicting_and_learning_is_predicting_before_every_event(name):
    X, y = stream(name, 60)
    model, slow = (learn(clone(ALL[name]), name, X[:5], y[:5]) for _ in range(2))
    found = model.predict_then_learn(X[5:], y[5:])
    for i, x in enumerate(X[5:]):
        # the engine predicts by the current function, predict by the average
        if not slow.average:
            assert found[i] == pytest.approx(slow.predict([x])[0], rel=1e-9, abs=1e-12)
        slow.learn_one(x, y[5 + i])
    assert_equal_states(snapshot(model), snapshot(slow))


def test_fit_forgets_and_partial_fit_does_not():
    X, y = stream("auto")
    once = StreamingRegressor(G).fit(X, y)
    again = StreamingRegressor(G).fit(-X, y).fit(X, y)
    assert_equal_states(snapshot(once), snapshot(again))
    assert once.partial_fit(X, y).status_.events == 300


def test_input_is_neither_changed_nor_kept():
    X, y = stream("auto")
    given = X.copy()
    model = StreamingRegressor(G, budget=None).partial_fit(given, y)
    np.testing.assert_array_equal(given, X)
    f = model.predict(X)
    given[:] = 7.0
    np.testing.assert_array_equal(model.predict(X), f)


def test_frames_and_lists_are_taken():
    X, y = stream("auto", 20)
    frame = StreamingRegressor(G).partial_fit(pd.DataFrame(X, columns=["a", "b"]), pd.Series(y))
    lists = StreamingRegressor(G).partial_fit(X.tolist(), y.tolist())
    assert_equal_states(snapshot(frame), snapshot(lists))
    assert frame.feature_names_in_.tolist() == ["a", "b"]


# Known answers


def test_a_regressor_follows_a_wave(rng):
    X = rng.uniform(0.0, 6.0, size=(8000, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=8000)
    model = StreamingRegressor(Gaussian(0.5), average=True).partial_fit(X, y)
    x = np.linspace(0.3, 5.7, 50)[:, None]
    np.testing.assert_allclose(model.predict(x), np.sin(x[:, 0]), atol=0.1)
    assert model.n_atoms_ < 60


def test_the_log_link_gives_positive_predictions_of_counts(rng):
    X = rng.uniform(size=(20_000, 1))
    y = rng.poisson(np.exp(2.0 * np.sin(6.0 * X[:, 0])))
    model = StreamingRegressor(Gaussian(0.15), "poisson", "log", average=True).partial_fit(X, y)
    x = np.linspace(0.1, 0.9, 30)[:, None]
    np.testing.assert_allclose(model.predict(x), np.exp(2.0 * np.sin(6.0 * x[:, 0])), rtol=0.35)
    assert np.all(model.predict(np.linspace(-1e9, 1e9, 1001)[:, None]) > 0.0)


def test_a_quantile_leaves_its_share_of_targets_below(rng):
    X, y = rng.uniform(size=(8000, 1)), rng.normal(size=8000)
    for level in (0.2, 0.8):
        model = StreamingRegressor(Gaussian(0.5), Quantile(level), average=True).partial_fit(X, y)
        assert np.mean(y < model.predict(X)) == pytest.approx(level, abs=0.03)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "perceptron"])
def test_every_loss_of_labels_tells_moons_apart(loss):
    X, y = make_moons(2000, noise=0.15, random_state=0)
    model = StreamingClassifier(Gaussian(0.5), loss).partial_fit(X[:1500], y[:1500])
    assert model.score(X[1500:], y[1500:]) > 0.95


def test_several_classes_are_one_against_the_rest(rng):
    X, y = load_iris(return_X_y=True)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), np.array(["setosa", "versi", "virgin"])[y]
    order = rng.permutation(150)
    model = StreamingClassifier(loss="logistic").partial_fit(X[order], y[order])
    each = [
        StreamingClassifier(loss="logistic").partial_fit(X[order], y[order] == label)
        for label in model.classes_
    ]
    f = np.stack([m.decision_function(X) for m in each], axis=1)
    np.testing.assert_array_equal(model.decision_function(X), f)
    np.testing.assert_array_equal(model.predict(X), model.classes_[f.argmax(axis=1)])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    assert model.score(X, y) > 0.85
    assert model.n_atoms_ == len(model.dictionary_) == sum(len(g.centers) for g in model.function_)


def test_probabilities_are_the_logistic_of_the_function():
    X, y = make_moons(300, noise=0.2, random_state=1)
    model = StreamingClassifier(G, "logistic").partial_fit(X, y)
    f, p = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-f)), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), (p[:, 1] > 0.5).astype(int))


def test_only_the_logistic_loss_gives_probabilities():
    assert hasattr(StreamingClassifier(loss="logistic"), "predict_proba")
    assert not hasattr(StreamingClassifier(loss="hinge"), "predict_proba")


def test_parameters_changed_in_midstream_hold_from_there_on(rng):
    X, y = stream("auto")
    model = StreamingRegressor(G, step=0.1, budget=None).partial_fit(X[:50], y[:50])
    before = model.predict(X)
    model.set_params(step=1e-12)
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_allclose(model.partial_fit(X[50:], y[50:]).predict(X), before, atol=1e-8)


def test_numbers_and_names_are_steps():
    assert as_step(0.3) == FixedStep(0.3)
    assert as_step("root") == RootStep(1.0)
    assert as_step(InverseStep()) == InverseStep()


# The door

X, Y = np.linspace(0.0, 1.0, 24).reshape(12, 2), np.linspace(1.0, 2.0, 12)
LABELS = np.arange(12) % 2


def regress(*args, x=X, y=Y, **options):
    return lambda: StreamingRegressor(*args, **options).partial_fit(x, y)


def classify(*args, x=X, y=LABELS, **options):
    return lambda: StreamingClassifier(*args, **options).partial_fit(x, y)


def later(model, x, y):
    return lambda: model.partial_fit(X, LABELS).partial_fit(x, y)


def one(model, x, y):
    return lambda: model.partial_fit(X, LABELS).learn_one(x, y)


R, C = StreamingRegressor, StreamingClassifier
NAN = np.where(np.arange(24).reshape(12, 2) == 5, np.nan, X)
FORGETRON = {"step": 1.0, "budget": Forgetron(5)}
BAD = {
    "unknown loss": (regress(loss="cubic"), ValueError, "loss must be one of .*got 'cubic'"),
    "class as loss": (regress(loss=Huber), TypeError, "got the class Huber: use Huber"),
    "labels' loss": (regress(loss=Hinge()), ValueError, "use StreamingClassifier for labels"),
    "labels' loss by name": (regress(loss="hinge"), ValueError, "loss must be one of .*'hinge'"),
    "targets' loss": (classify(loss="squared"), ValueError, "use StreamingRegressor for others"),
    "targets' loss object": (classify(loss=Squared()), ValueError, "loss must be .*got Squared"),
    "poisson on a line": (
        regress(loss="poisson"),
        ValueError,
        'needs positive predictions: use link="log"',
    ),
    "link inside": (
        regress(loss=PoissonLog(), link="log"),
        ValueError,
        'use loss="poisson" with link',
    ),
    "average of what goes": (
        regress(budget=Oldest(5), average=True),
        ValueError,
        r"average=True needs .*got Oldest\(5\)",
    ),
    "unknown link": (regress(link="sqrt"), ValueError, "link must be one of .*got 'sqrt'"),
    "class as link": (regress(link=Log), TypeError, "link must be .*such as Log.*got the class"),
    "unknown gradient": (lambda: Log("sign"), ValueError, "gradient must be one of .*got 'sign'"),
    "cap of nothing": (lambda: Log(cap=0.0), ValueError, "cap must be a positive .*got 0"),
    "cap beyond overflow": (lambda: Log(cap=1e3), ValueError, "cap must be at most 700.*got 1000"),
    "negative step": (regress(step=-1.0), ValueError, "step must be a positive .*got -1"),
    "unknown step": (regress(step="big"), ValueError, "step must be one of .*got 'big'"),
    "class as step": (regress(step=RootStep), TypeError, "step must be a number.*got the class"),
    "no step": (regress(step=None), TypeError, "step must be a number.*got None"),
    "FixedStep of nothing": (lambda: FixedStep(0.0), ValueError, "size must be a positive .*got 0"),
    "inverse without decay": (
        regress(step="inverse"),
        ValueError,
        "needs a .*decay above 0, got neither",
    ),
    "negative decay": (regress(decay=-0.1), ValueError, "decay must be .*got -0.1"),
    "unknown budget": (regress(budget="few"), ValueError, "budget must be one of .*got 'few'"),
    "class as budget": (regress(budget=KOMP), TypeError, "budget must be .*got the class"),
    "average in words": (regress(average="yes"), TypeError, "average must be True or False"),
    "class as kernel": (regress(Gaussian), TypeError, "kernel must be .*got"),
    "kernel in Python": (regress(Custom(Gaussian(1.0))), ValueError, "kernel"),
    "forgetron that decays": (classify(decay=0.1, **FORGETRON), ValueError, "no decay, got .*0.1"),
    "forgetron with root": (classify(budget=Forgetron(5)), ValueError, "steps of a fixed size"),
    "squared forgetron": (
        regress(**FORGETRON),
        ValueError,
        'loss must be "perceptron" or "hinge" for Forgetron',
    ),
    "large forgetron": (
        classify(2.0 * G, **FORGETRON),
        ValueError,
        r"kernel must have k\(x, x\) <= 1 for Forgetron",
    ),
    "Matern regenerated": (
        regress(Matern32(1.0), budget=DoublyStochastic()),
        ValueError,
        "Gaussian",
    ),
    "drawn landmarks": (
        regress(budget=Nystroem(5, 0)),
        ValueError,
        "random_state must be None .*, got 0",
    ),
    "features of a line": (regress(Linear(), budget=RandomFourier(5)), ValueError, "stationary"),
    "labels for numbers": (
        regress(y=np.array(list("abcdefghijkl"))),
        TypeError,
        "y must contain only real",
    ),
    "NaN in X": (regress(x=NAN), ValueError, "X must contain only finite .*row 2, column 1"),
    "NaN in y": (regress(y=np.full(12, np.nan)), ValueError, "y must .*NaN"),
    "negative counts": (
        regress(loss=Poisson(), link="log", y=-Y),
        ValueError,
        "y.*at least 0, got -2",
    ),
    "one class": (classify(y=np.zeros(12)), ValueError, "two classes, got 1 class: 0.*classes="),
    "two lengths": (regress(y=Y[:5]), ValueError, "y must have .*12.*got"),
    "new class": (later(C(), X, LABELS + 1), ValueError, r"classes \[0, 1\], got 2: list all"),
    "new class for one": (
        one(C(), X[0], 7),
        ValueError,
        r"y must hold the classes \[0, 1\], got 7",
    ),
    "other columns": (later(R(), X[:, :1], LABELS), ValueError, "X has 1 features, but Streaming"),
    "other columns of one": (
        one(R(), [1.0], 1.0),
        ValueError,
        "x must hold 2 finite numbers .*, got",
    ),
    "NaN in one": (
        one(R(), [1.0, np.nan], 1.0),
        ValueError,
        "x must hold 2 finite numbers .*, got",
    ),
    "NaN target of one": (
        one(R(), [1.0, 2.0], np.nan),
        ValueError,
        "y must be a finite number, got nan",
    ),
    "infinite label row": (one(C(), [np.inf, 0.0], 1), ValueError, "x must hold 2 finite numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, error, pattern = BAD[case]
    with pytest.raises(error, match=pattern) as caught:
        call()
    assert re.search(r"[.?!]\s", str(caught.value)) is None, str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("model", [R(), C()], ids=["regressor", "classifier"])
def test_predicting_before_learning_says_what_to_call(model):
    with pytest.raises(NotFittedError, match="call partial_fit first"):
        model.predict(X)


def test_other_classes_in_a_later_chunk_are_refused():
    model = C().partial_fit(X, LABELS, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="classes must be the same as in the first call"):
        model.partial_fit(X, LABELS, classes=[0, 1])


def test_what_was_refused_is_not_learned():
    model = R(G).partial_fit(X, Y)
    before = snapshot(model)
    for call in (lambda: model.partial_fit(NAN, Y), lambda: model.learn_one([0.0, np.inf], 1.0)):
        with pytest.raises(ValueError, match="finite"):
            call()
    assert_equal_states(snapshot(model), before)


def test_features_have_no_function():
    with pytest.raises(AttributeError, match=r"needs a budget of atoms, got .*: use predict"):
        _ = R(G, budget=RandomFourier(5, 0)).partial_fit(X, Y).function_
