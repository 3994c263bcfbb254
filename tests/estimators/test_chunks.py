"""Kernel machines on rows that come in chunks: the same functions as from all rows at once."""

import tracemalloc

import numpy as np
import pytest

from hplus import Gaussian, KernelRegressor, Nystroem
from hplus.estimators import chunked_rows
from hplus.solvers.machines import passes

LOSSES = ["squared", "poisson_log"]


class Chunks:
    """Rows in parts that are made when they are asked for, and counted."""

    def __init__(self, *columns, sizes=(7, 1, 60)):
        self.columns, self.ends, self.passes = columns, np.cumsum(sizes), 0

    def __iter__(self):
        self.passes += 1
        return zip(*(np.split(column, self.ends) for column in self.columns), strict=True)


def data(rng, loss, n=150):
    X = rng.uniform(-2.0, 2.0, (n, 2))
    f = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
    y = rng.poisson(3.0 * np.exp(f)).astype(float) if loss == "poisson_log" else f + 1.0
    return X, y, rng.uniform(0.0, 2.0, n)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_chunks_give_the_function_of_all_rows(loss, intercept, monkeypatch, rng):
    monkeypatch.setattr(passes, "FEATURES_AT_ONCE", 400)
    X, y, w = data(rng, loss)
    given = {"loss": loss, "landmarks": Nystroem(20, 0), "fit_intercept": intercept}
    whole = KernelRegressor(**given).fit(X, y, w)
    chunks = Chunks(X, y, w)
    found = KernelRegressor(**given).fit_chunks(chunks)
    assert (found.kernel_, found.n_features_in_) == (whole.kernel_, 2)
    assert found.penalty_ == pytest.approx(whole.penalty_)
    np.testing.assert_allclose(found.predict(X), whole.predict(X), rtol=1e-4)
    assert found.solution_.objective == pytest.approx(whole.solution_.objective, rel=1e-7)
    assert found.solution_.relative_gap <= 1e-8
    assert chunks.passes == 2 if loss == "squared" else chunks.passes < 15


def test_a_start_from_some_of_the_rows_saves_passes(monkeypatch, rng):
    X, y, w = data(rng, "poisson_log", 2000)
    model = KernelRegressor(Gaussian(1.0), "poisson_log", 1e-4, Nystroem(20, 0))
    whole, chunks = Chunks(X, y, w), Chunks(X, y, w)
    model.fit_chunks(whole)
    monkeypatch.setattr(chunked_rows, "MAX_SAMPLED_ROWS", 400)
    assert model.fit_chunks(chunks).solution_.relative_gap <= 1e-8
    assert chunks.passes <= 6 < whole.passes


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_and_curvatures_over_chunks_are_derivatives(loss, rng):
    X, y, w = data(rng, loss, 30)
    features = Nystroem(5, 0)(Gaussian(1.0), X)
    at, h = rng.normal(size=6), 1e-5

    def look(at):
        given = (Chunks(X, y, w), features, KernelRegressor(loss=loss)._loss(), 0.3)
        return passes.expanded(*given, at, bias=True)

    ends = [(look(at + h * e), look(at - h * e)) for e in np.eye(6)]
    slopes = [(high.value - low.value) / (2.0 * h) for high, low in ends]
    np.testing.assert_allclose(look(at).gradient, slopes, rtol=1e-5, atol=1e-6)
    bends = [(high.gradient - low.gradient) / (2.0 * h) for high, low in ends]
    np.testing.assert_allclose(look(at).hessian, bends, rtol=1e-5, atol=1e-6)


def test_the_rows_that_landmarks_are_chosen_from_do_not_depend_on_the_order(monkeypatch, rng):
    monkeypatch.setattr(chunked_rows, "MAX_SAMPLED_ROWS", 100)
    X, y, w = data(rng, "squared", 1000)
    some = chunked_rows.sampled_rows(Chunks(X, y, w))
    order = rng.permutation(1000)
    again = chunked_rows.sampled_rows(Chunks(X[order], y[order], w[order], sizes=(500, 10)))
    for one, other in zip(some[:3], again[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(some.X) == 100
    assert some.share == pytest.approx(0.1, rel=0.4)
    assert (some.total, some.mean) == pytest.approx((w.sum(), w @ y / w.sum()))


class Drawn:
    """Chunks that are drawn whenever they are asked for, so that nobody holds all of them."""

    def __init__(self, chunks, rows):
        self.chunks, self.rows = chunks, rows

    def __iter__(self):
        for seed in range(self.chunks):
            X = np.random.default_rng(seed).uniform(-2.0, 2.0, (self.rows, 2))
            yield X, X[:, 0] ** 2 + X[:, 1]


def test_memory_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(chunked_rows, "MAX_SAMPLED_ROWS", 500)
    model = KernelRegressor(Gaussian(1.0), penalty=1e-6, landmarks=Nystroem(60, 0))
    peaks = []
    for chunks in (2, 40):
        tracemalloc.start()
        model.fit_chunks(Drawn(chunks, 1000))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 8.0 * 40_000 * 60
    assert model.predict([[1.0, 0.5]]) == pytest.approx([1.5], abs=0.02)


def test_collections_of_dask_are_taken_by_fit(rng):
    array = pytest.importorskip("dask.array")
    X, y, w = data(rng, "squared")
    model = KernelRegressor(Gaussian(1.0), penalty=1e-3, landmarks=Nystroem(20, 0))
    whole = model.fit(X, y, w).predict(X)
    lazy = [array.from_array(x, chunks=(40, *x.shape[1:])) for x in (X, y, w)]
    np.testing.assert_allclose(model.fit(*lazy).predict(X), whole, rtol=1e-5)
    with pytest.raises(ValueError, match=r"same partitions, got \[2, 4\] of them"):
        model.fit(lazy[0], lazy[1].rechunk(80))


@pytest.mark.parametrize(
    ("given", "chunks", "message"),
    [
        ({"landmarks": None}, [], "needs landmarks"),
        ({"loss": "absolute"}, [], "needs landmarks and loss"),
        ({}, [np.zeros((3, 2))], "tuples .X, y. or .X, y, sample_weight., got ndarray"),
        ({}, [], "a row with a positive weight, got none"),
        ({}, iter([(np.zeros((2, 1)), [1.0, 2.0])]), "several times, .* got list_iterator: give a"),
        ({}, [(np.zeros((2, 1)), [1.0, 2.0], [1.0, -1.0])], "non-negative"),
    ],
)
def test_chunks_that_cannot_be_used_are_refused(given, chunks, message):
    with pytest.raises(ValueError, match=message):
        KernelRegressor(**{"landmarks": 5} | given).fit_chunks(chunks)
