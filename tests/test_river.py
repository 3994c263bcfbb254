"""The River adapter: River's own checks, and equality with the estimators under it."""

import functools
import gc
import importlib
import sys
from itertools import islice, pairwise

import numpy as np
import pandas as pd
import pytest
from river import checks, datasets, evaluate, metrics, preprocessing

from hplus import KOMP, Gaussian, RandomFourier, StreamingClassifier, StreamingRegressor
from hplus.river import FeatureColumns, RiverClassifier, RiverRegressor

SMALL = KOMP(0.1, 30, relative=True)
MODELS = {
    "regressor": RiverRegressor(budget=SMALL),
    "logistic classifier": RiverClassifier(budget=SMALL),
    "hinge classifier": RiverClassifier(loss="hinge", budget=SMALL),
}
ROWS = {"check_bounded_memory_growth": 160}
"""River's streams are cut after so many examples, 40 for other checks: they would take a minute."""

CHECKS = [(name, check) for name, model in MODELS.items() for check in checks.yield_checks(model)]
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def river_ids():
    """Check by check, numbered where one comes with several data sets."""
    seen = {}
    for name, check in CHECKS:
        key = f"{name}-{check.__name__}"
        seen[key] = seen.get(key, 0) + 1
        yield f"{key}-{seen[key]}"


def shortened(check):
    """The check on the first examples of its stream."""
    if not hasattr(check, "keywords"):
        return check
    rows = islice(check.keywords["dataset"], ROWS.get(check.__name__, 40))
    return functools.partial(check, dataset=rows)


def scaled(stream):
    """Standardised examples and their targets."""
    scaler, examples = preprocessing.StandardScaler(), []
    for x, y in stream:
        scaler.learn_one(x)
        examples.append((scaler.transform_one(x), y))
    return examples


def matrix(examples):
    """Rows with columns sorted by name, and targets."""
    names = sorted(examples[0][0])
    return np.array([[x[n] for n in names] for x, _ in examples]), [y for _, y in examples]


def taught(model, examples):
    for x, y in examples:
        model.learn_one(x, y)
    return model


@pytest.fixture(scope="module")
def approval():
    return scaled(datasets.TrumpApproval().take(80))


@pytest.fixture(scope="module")
def segments():
    return scaled(datasets.ImageSegments().take(80))


@pytest.fixture(scope="module")
def quick_collections():
    """River's checks collect garbage: not that of all modules which ran before."""
    gc.freeze()


@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize(("name", "check"), CHECKS, ids=river_ids())
def test_river_accepts_the_model(name, check):
    shortened(check)(MODELS[name].clone())


@every_model
def test_no_check_of_river_is_left_out(model):
    assert model._unit_test_skips() == set()


@pytest.mark.parametrize("link", ["identity", "log"])
def test_a_river_regressor_is_the_streaming_regressor_bit_for_bit(approval, link):
    settings = {"kernel": Gaussian(1.5), "link": link, "step": 0.3, "decay": 1e-3}
    ours, (X, y) = StreamingRegressor(**settings), matrix(approval)
    model = taught(RiverRegressor(**settings), approval)
    ours.partial_fit(X, y)
    expected = [ours.predict(row[None])[0] for row in X]
    assert [model.predict_one(x) for x, _ in approval] == expected


@pytest.mark.parametrize("average", [False, True])
def test_classes_that_emerge_give_what_classes_known_beforehand_give(segments, average):
    X, y = matrix(segments)
    assert len(set(y)) > len(set(y[:5])) > 2
    known = StreamingClassifier(Gaussian(2.0), "logistic", average=average)
    known.partial_fit(X, y, classes=sorted(set(y)))
    model = taught(RiverClassifier(Gaussian(2.0), average=average), segments)
    for (x, _), row in islice(zip(segments, X, strict=True), 0, None, 4):
        assert model.predict_one(x) == known.predict(row[None])[0]
        expected = dict(zip(known.classes_, known.predict_proba(row[None])[0], strict=True))
        assert model.predict_proba_one(x) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("budget", [SMALL, RandomFourier(20, random_state=0)], ids=repr)
def test_two_classes_are_told_apart_as_by_the_streaming_classifier(budget):
    examples = scaled(datasets.Phishing().take(200))
    X, y = matrix(examples)
    known = StreamingClassifier(budget=budget).partial_fit(X, y)
    model = taught(RiverClassifier(loss="hinge", budget=budget), examples)
    assert [model.predict_one(x) for x, _ in examples] == known.predict(X).tolist()


@pytest.mark.parametrize("cuts", [[0, 80], [0, 1, 2, 30, 80]])
def test_batches_and_single_examples_give_the_same_model_bit_for_bit(approval, segments, cuts):
    for whole, examples in [(RiverRegressor(), approval), (RiverClassifier(), segments)]:
        batches, frame = whole.clone(), pd.DataFrame([x for x, _ in examples])
        for start, stop in pairwise(cuts):
            targets = pd.Series([y for _, y in examples[start:stop]])
            batches.learn_many(frame[start:stop], targets)
        taught(whole, examples)
        assert batches.predict_many(frame).tolist() == whole.predict_many(frame).tolist()
        for x, _ in examples[::8]:
            assert batches.predict_one(x) == whole.predict_one(x)


def test_phishing_pages_are_recognised_in_more_than_85_percent_of_a_single_pass():
    model = preprocessing.StandardScaler() | RiverClassifier()
    accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    assert accuracy.get() > 0.85


def test_probabilities_of_a_single_pass_rank_phishing_pages():
    model = preprocessing.StandardScaler() | RiverClassifier()
    pages = datasets.Phishing().take(400)
    assert evaluate.progressive_val_score(pages, model, metrics.ROCAUC()).get() > 0.8


def test_a_feature_that_comes_later_is_ignored_and_a_missing_one_is_zero():
    model = taught(RiverRegressor(Gaussian(1.0)), [({"b": 1.0, "a": 2.0}, 3.0)] * 5)
    assert model.predict_one({"a": 2.0, "b": 1.0, "c": 9.0}) == model.predict_one(
        {"a": 2.0, "b": 1.0}
    )
    assert model.predict_one({"a": 2.0}) == model.predict_one({"a": 2.0, "b": 0.0})
    assert model.predict_one({"a": 2.0}) != model.predict_one({"b": 2.0})
    frame = pd.DataFrame({"c": [9.0], "a": [2.0]})
    assert model.predict_many(frame).tolist() == [model.predict_one({"a": 2.0})]


def test_columns_are_sorted_by_name_and_take_booleans_and_whole_numbers():
    columns = FeatureColumns(("b", 3, "a"))
    assert columns.names == (3, "a", "b")
    assert columns.row({"b": True, "a": np.float32(0.5), 3: 7}).tolist() == [[7.0, 0.5, 1.0]]


def test_before_anything_is_learned_predictions_are_those_of_the_zero_function():
    x, frame = {"a": 1.0}, pd.DataFrame({"a": [1.0, 2.0]})
    for link, expected in [("identity", 0.0), ("log", 1.0)]:
        assert RiverRegressor(link=link).predict_one(x) == expected
        assert RiverRegressor(link=link).predict_many(frame).tolist() == [expected] * 2
    assert RiverClassifier().predict_one(x) is None
    assert RiverClassifier().predict_proba_one(x) == {}
    assert RiverClassifier().predict_many(frame).tolist() == [None, None]
    assert RiverClassifier().predict_proba_many(frame).shape == (2, 0)


def test_positive_predictions_stay_above_zero_on_any_example():
    model = RiverRegressor(loss="poisson", link="log", step=10.0)
    taught(model, [({"a": float(i % 7)}, 1e6 * (i % 2)) for i in range(200)])
    assert all(model.predict_one({"a": a}) > 0.0 for a in np.linspace(-50.0, 50.0, 101))


def test_probabilities_without_the_logistic_loss_are_refused_as_river_expects():
    model = taught(RiverClassifier(loss="hinge"), [({"a": 1.0}, "x"), ({"a": -1.0}, "y")])
    with pytest.raises(NotImplementedError, match="predict_proba needs"):
        model.predict_proba_one({"a": 1.0})
    assert model.predict_one({"a": 1.0}) == "x"


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ({"a": "red"}, "x must hold numbers only, got 'red' for 'a'"),
        ({"a": None}, "x must hold numbers only, got None for 'a'"),
        ([1.0, 2.0], "x must be a dict of features"),
        ({}, "x must hold at least one feature"),
        ({"a": np.nan}, "finite"),
    ],
)
def test_an_example_that_cannot_be_a_row_is_refused_with_advice(x, words):
    for model in (RiverRegressor(), RiverClassifier()):
        with pytest.raises((TypeError, ValueError), match=words):
            model.learn_one(x, 1)


def test_without_river_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "hplus.river")
    with pytest.raises(ImportError) as caught:
        importlib.import_module("hplus.river")
    assert str(caught.value) == "hplus.river needs river: pip install 'hplus[river]'."
