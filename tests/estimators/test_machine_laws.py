"""Laws of machines with a learned penalty and an intercept: units, shifts, and leaving rows out."""

import numpy as np
import pytest
from sklearn.base import clone

from hplus import (
    Density,
    Forecast,
    Gaussian,
    Huber,
    Intensity,
    Interval,
    KernelClassifier,
    KernelRegressor,
    Quantile,
)
from hplus.losses import Logistic, PoissonLog, Squared
from hplus.solvers.machines.representer import AllPoints, ridge
from hplus.solvers.machines.risk import Risk
from hplus.studies.quantity_study import QuantityStudy
from hplus.tuning.penalties import left_out

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (50, 1))
Y = np.sin(2.0 * X[:, 0]) + 0.3 * RNG.normal(size=50)
G = Gaussian(0.7)
LOSSES = ["squared", "absolute", Quantile(0.8), "huber", "epsilon_insensitive", "poisson_log"]
FREE_OF_UNIT = ["squared", "absolute", Quantile(0.8), "poisson_log"]


@pytest.mark.parametrize("loss", FREE_OF_UNIT, ids=str)
def test_a_thousand_times_y_gives_a_thousand_times_the_predictions(loss, few_candidates):
    y = np.exp(Y) if loss == "poisson_log" else Y
    one, other = (KernelRegressor(G, loss).fit(X, u * y).predict(X) for u in (1.0, 1000.0))
    np.testing.assert_allclose(other, 1000.0 * one, rtol=1e-5)


def test_a_huber_threshold_in_the_unit_of_y_gives_the_same_fit():
    one = KernelRegressor(G, Huber(0.5)).fit(X, Y).predict(X)
    other = KernelRegressor(G, Huber(500.0)).fit(X, 1000.0 * Y).predict(X)
    np.testing.assert_allclose(other, 1000.0 * one, rtol=1e-4)


@pytest.mark.parametrize("loss", LOSSES[:-1], ids=str)
def test_an_intercept_follows_a_shift_of_y_and_holds_far_from_the_data(loss):
    model = KernelRegressor(G, loss, penalty=1e-3).fit(X, Y)
    moved = clone(model).fit(X, Y + 64.0)
    np.testing.assert_allclose(moved.predict(X), model.predict(X) + 64.0, atol=1e-4)
    assert moved.predict([[1e6]])[0] == pytest.approx(moved.intercept_)
    without = KernelRegressor(G, loss, penalty=1e-3, fit_intercept=False).fit(X, Y)
    assert without.predict([[1e6]])[0] == without.intercept_ == 0.0
    assert without.solution_.objective >= model.solution_.objective - 1e-7


def test_each_output_has_its_intercept():
    both = KernelRegressor(G, penalty=1e-2).fit(X, np.stack([Y, 5.0 - Y], axis=1))
    alone = KernelRegressor(G, penalty=1e-2).fit(X, Y)
    assert both.intercept_ == pytest.approx([alone.intercept_, 5.0 - alone.intercept_])
    np.testing.assert_allclose(both.predict(X).sum(axis=1), 5.0)
    assert both.solution_.relative_gap < 1e-8


@pytest.mark.parametrize("loss", ["squared", "poisson_log", "huber"])
def test_the_penalty_follows_the_size_of_the_kernel(loss):
    y = np.exp(Y) if loss == "poisson_log" else Y
    one, other = (KernelRegressor(k, loss).fit(X, y) for k in (G, 16.0 * G))
    assert other.penalty_ == pytest.approx(16.0 * one.penalty_, rel=1e-6)
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-4, atol=1e-6)


def test_a_penalty_learned_from_twice_the_rows_is_half_as_large():
    rows = np.tile(np.arange(50), 2)
    jitter = 1e-9 * RNG.normal(size=100)
    one = KernelRegressor(G, "huber").fit(X, Y)
    two = KernelRegressor(G, "huber").fit(X[rows] + jitter[:, None], Y[rows])
    assert two.penalty_ <= one.penalty_


@pytest.mark.parametrize("bias", [False, True])
def test_rows_left_out_are_those_of_fits_without_them(bias):
    x, y, shares, penalty = X[:12], Y[:12], np.full(12, 1 / 12), 1e-2
    L = np.linalg.cholesky(G(x) + 1e-12 * np.eye(12))
    ((losses, freedom),) = left_out(L, Risk(Squared(), y, shares, 1.0, bias), np.array([penalty]))
    for i in range(12):
        rest = np.arange(12) != i
        basis = AllPoints(G, x[rest])
        fit = ridge(basis, y[rest], shares[rest], penalty, bias=bias)
        f = basis.function(fit.coefficients)(x[[i]])[0] + fit.biases[0]
        assert losses[i] == pytest.approx(shares[i] * (f - y[i]) ** 2, rel=1e-4, abs=1e-8)
    assert bias <= freedom <= 12.0


@pytest.mark.parametrize("loss", [Logistic(), PoissonLog()], ids=str)
def test_smaller_penalties_have_more_freedom(loss):
    y = np.sign(Y) if isinstance(loss, Logistic) else np.exp(Y)
    L = np.linalg.cholesky(G(X) + 1e-9 * np.eye(50))
    found = left_out(L, Risk(loss, y, np.full(50, 0.02), 1.0, True), np.array([1.0, 0.1, 0.01]))
    assert np.all(np.diff([freedom for _, freedom in found]) > 0.0)
    assert all(np.isfinite(losses).all() for losses, _ in found)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_classifiers_learn_their_penalty_and_do_not_mind_names_and_units(loss, few_candidates):
    labels = np.where(Y > 0.2, "yes", "no")
    one = KernelClassifier(G, loss).fit(X, labels)
    wide = Gaussian(700.0)
    other = KernelClassifier(wide, loss).fit(1000.0 * X, np.where(labels == "yes", 1, 0))
    assert one.score(X, labels) > 0.8
    assert other.penalty_ == pytest.approx(one.penalty_)
    assert np.array_equal(other.predict(1000.0 * X), (one.predict(X) == "yes").astype(int))


def frame(**changed):
    return {"x": X[:, 0], "kind": np.where(Y > 0.0, "a", "b")} | changed


BAD = [
    (lambda: KernelRegressor(G, penalty="best").fit(X, Y), "penalty must be .auto. or a positive"),
    (lambda: KernelRegressor(G, penalty=0.0).fit(X, Y), "penalty must be a positive finite number"),
    (lambda: KernelRegressor(G, penalty=None).fit(X, Y), "penalty must"),
    (lambda: KernelClassifier(G, penalty=-1.0).fit(X, Y > 0), "penalty must be a positive finite"),
    (lambda: KernelRegressor(G, fit_intercept="no").fit(X, Y), "fit_intercept must be True or"),
    (lambda: KernelRegressor(G).fit(np.where(X > 1, np.nan, X), Y), "X must contain only finite"),
    (lambda: KernelRegressor(G, "poisson_log").fit(X, Y), "Negative values in y: targets of"),
    (lambda: Interval(np.inf, np.inf), "low must be below high on every axis, got inf and inf"),
    (lambda: Interval(0.0, "x"), "high must contain only real numbers"),
    (lambda: Interval(0.0, np.inf).sample(3), "window must have finite ends, got Interval"),
    (lambda: Intensity(Interval(0.0, np.inf)).fit([[1.0]]), "window must have finite ends, got"),
    (lambda: Forecast(Interval(0.0, np.inf), 1.0).fit([1.0]), "window must have finite ends, got"),
    (lambda: Density().fit([[1.0], [1.0]]), "X must vary in every column"),
    (lambda: QuantityStudy().fit(frame(x=np.where(X[:, 0] > 1, np.inf, 0.0)), Y**2),
     "column 'x' must hold finite values, got"),
    (lambda: QuantityStudy().fit(frame(), np.where(Y > 1, np.nan, 1.0)), "y must be finite in"),
    (lambda: QuantityStudy().fit(frame(), Y**2, exposure=-1.0), "exposure must be above 0 in"),
    (lambda: QuantityStudy().fit({"x": np.full(50, np.nan)}, Y**2),
     "columns must include at least one that varies"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_bad_input_gets_one_clear_sentence(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as raised:
        call()
    assert "\n" not in str(raised.value)
