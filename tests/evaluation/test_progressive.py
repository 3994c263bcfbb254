"""Progressive losses: predict first, then learn; and regret against hindsight."""

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier, SGDRegressor

from hplus import (
    Gaussian,
    Interval,
    KernelRegressor,
    StreamingClassifier,
    StreamingIntensity,
    StreamingRegressor,
)
from hplus.evaluation.progressive import Progress, prequential, regret

G = Gaussian(0.7)


def chunks(X, *y, size=25):
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        yield (X[part], *(column[part] for column in y)) if y else X[part]


@pytest.fixture
def wave(rng):
    X = rng.normal(size=(200, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=200)


def test_the_progressive_loss_of_a_regressor_is_predict_one_learn_one(wave):
    X, y = wave
    slow, losses = StreamingRegressor(G).partial_fit(X[:1], y[:1]), [y[0] ** 2]
    for x, target in zip(X[1:], y[1:], strict=True):
        losses.append((slow.predict([x])[0] - target) ** 2)
        slow.learn_one(x, target)
    found = prequential(StreamingRegressor(G), chunks(X, y))
    np.testing.assert_allclose(found.losses, losses, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("size", [1, 7, 200])
def test_chunks_do_not_change_the_progressive_loss(size, wave):
    X, y = wave
    whole = prequential(StreamingRegressor(G), [(X, y)])
    parts = prequential(StreamingRegressor(G), chunks(X, y, size=size))
    np.testing.assert_array_equal(parts.losses, whole.losses)


def test_the_progressive_loss_of_a_classifier_is_its_share_of_wrong_labels(wave):
    X, y = wave
    labels = np.where(y > 0.0, "high", "low")
    progress = prequential(StreamingClassifier(G), [(X, labels)])
    assert set(progress.losses) <= {0.0, 1.0}
    fast = StreamingClassifier(G).predict_then_learn(X, labels)
    assert progress.mean == np.mean(fast != labels)
    assert progress.losses[100:].mean() < 0.2


def test_a_custom_loss_is_accepted(wave):
    X, y = wave
    squares = prequential(StreamingRegressor(G), [(X, y)]).losses
    found = prequential(StreamingRegressor(G), [(X, y)], loss=lambda y, f: np.abs(y - f))
    np.testing.assert_allclose(found.losses, np.sqrt(squares), rtol=1e-12)


def test_other_libraries_models_predict_a_chunk_from_the_chunks_before_it(wave):
    X, y = wave
    found = prequential(SGDRegressor(random_state=0), chunks(X, y, size=50)).losses
    twin, losses = SGDRegressor(random_state=0).partial_fit(X[:50], y[:50]), []
    for a in (50, 100, 150):
        losses.append((twin.predict(X[a : a + 50]) - y[a : a + 50]) ** 2)
        twin.partial_fit(X[a : a + 50], y[a : a + 50])
    # the first chunk, before which nothing was learned, is left out
    np.testing.assert_array_equal(found, np.concatenate(losses))


def test_another_classifier_is_judged_by_its_labels(wave):
    X, y = wave
    model = SGDClassifier(random_state=0).partial_fit(X[:50], y[:50] > 0, classes=[False, True])
    progress = prequential(model, chunks(X[50:], y[50:] > 0))
    assert set(progress.losses) <= {0.0, 1.0}
    assert len(progress.losses) == 150


def test_the_progressive_loss_of_a_rate_is_minus_its_log_density(rng):
    day = Interval(0, 24)
    X = rng.beta(2, 5, size=(300, 1)) * 24
    found = prequential(StreamingIntensity(day), chunks(X, size=100)).losses
    twin = StreamingIntensity(day).partial_fit(X[:100])
    # relative to the constant density, so that what knows nothing has loss 0
    assert np.all(found[:100] == 0.0)
    density = twin.predict(X[100:200]) / twin.expected_count(day)
    np.testing.assert_allclose(found[100:200], -np.log(24.0 * density), rtol=1e-9)
    assert found[100:].mean() < -0.2


def test_the_curve_ends_at_the_mean():
    progress = Progress(np.array([3.0, 1.0, 2.0]))
    np.testing.assert_allclose(progress.curve, [3.0, 2.0, 2.0])
    assert progress.mean == progress.curve[-1] == 2.0


def test_regret_is_the_running_sum_of_what_hindsight_saves(rng):
    losses, best = rng.uniform(size=50), rng.uniform(size=50)
    found = regret(losses, best)
    assert found[0] == losses[0] - best[0]
    np.testing.assert_allclose(found, np.cumsum(losses) - np.cumsum(best), atol=1e-12)
    np.testing.assert_array_equal(regret(losses, losses), np.zeros(50))


def test_regret_against_the_batch_optimum_grows_slower_than_the_stream(rng):
    X = rng.uniform(-1, 1, size=(4000, 1))
    y = np.sin(4.0 * X[:, 0]) + 0.1 * rng.normal(size=4000)
    losses = prequential(StreamingRegressor(Gaussian(0.3)), [(X, y)]).losses
    best = (KernelRegressor(Gaussian(0.3), landmarks=60).fit(X, y).predict(X) - y) ** 2
    R = regret(losses, best)
    # the bound of online descent is of the order √n
    assert 0.0 < R[-1] < 3.0 * np.sqrt(4000)
    assert (R[-1] - R[1999]) < R[1999]


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (lambda: prequential(StreamingRegressor(), []), "at least one chunk, got none"),
        (lambda: regret([1.0, 2.0], [1.0]), r"one number for each event, got shapes \(2,\) and"),
        (lambda: regret([[1.0]], [[1.0]]), r"one number for each event, got shapes \(1, 1\)"),
        (lambda: regret([np.nan], [1.0]), "losses must contain only finite numbers"),
        (lambda: regret([1.0], [np.inf]), "comparator must contain only finite numbers"),
    ],
    ids=["no chunks", "two lengths", "matrices", "NaN losses", "infinite comparator"],
)
def test_bad_input_gets_one_clear_sentence(call, pattern):
    with pytest.raises(ValueError, match=pattern):
        call()
