"""SoSRegressor: conventions, oracles, and the promise that no prediction is negative."""

import warnings
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import hplus.kernels as k
from hplus import Diagonal, Full, Interval, Paper, Quantile, SoSRegressor, _checks, load, save
from hplus.estimators import regression
from hplus.features import Nystroem, landmarks
from hplus.losses import Huber, Logistic
from hplus.solvers.result import SolverResult, Status
from hplus.solvers.sos.psd import GAP
from hplus.tuning.scales import cross_validated_squares, held_out_squares, penalty_path

G = k.Gaussian(1.0)
LOSSES = ["squared", "poisson", "quantile", "huber", "absolute"]
KERNELS = [
    k.Gaussian(0.7),
    2.0 * k.Gaussian(0.5) + k.Linear(),
    k.Laplace(1.0),
    k.Matern32(1.0) * k.Periodic(2.0),
    k.Matern52(0.8) + k.Constant(0.5),
    k.RationalQuadratic(1.0, 0.5),
    k.Polynomial(2, 1.0),
    k.Linear() + k.Constant(1.0),
    k.Gaussian(0.7) + 0.01 * k.Nugget(),
]
CONES = [Full(), Full(0.0, 1e-2), Diagonal(1e-2)]


def counts(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, rng.poisson(1.5 + 1.5 * np.sin(2 * X[:, 0])).astype(float)


@pytest.mark.filterwarnings("ignore:the mean of y is")
@parametrize_with_checks(
    [
        SoSRegressor(G),
        SoSRegressor(),
        SoSRegressor(G, loss="poisson"),
        SoSRegressor(G, loss="huber", cone="diagonal"),
        SoSRegressor(G, landmarks=20),
    ]
)
def test_scikit_learn_conventions(estimator, check, few_candidates):
    check(estimator)


# The promise


@cache
def fitted(kernel, cone, loss):
    X, y = counts(25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SoSRegressor(kernel, loss, cone).fit(X, y)


far = st.floats(-1e12, 1e12) | st.floats(-4, 4)


@settings(max_examples=150)
@given(
    st.sampled_from(KERNELS),
    st.sampled_from(CONES),
    st.sampled_from(LOSSES),
    st.lists(far, min_size=1, max_size=10),
    st.sampled_from([np.float32, np.float64]),
)
def test_no_prediction_is_ever_negative(kernel, cone, loss, points, dtype):
    X = np.array(points, dtype=dtype)[:, None]
    f = fitted(kernel, cone, loss).predict(X)
    assert f.dtype == np.float64
    assert np.all(f >= 0.0)
    assert np.isfinite(f).all()


@given(st.integers(0, 10**6))
def test_no_prediction_of_a_random_fit_is_negative(seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 15), rng.integers(1, 4)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    y = rng.poisson(2.0, n) * 10.0 ** rng.integers(-2, 3)
    model = SoSRegressor(
        KERNELS[seed % len(KERNELS)],
        LOSSES[rng.integers(5)],
        CONES[rng.integers(3)],
        landmarks=None if seed % 2 else int(rng.integers(1, 10)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(X, y, sample_weight=rng.integers(1, 4, n))
        except ValueError as refusal:  # of counts that no landmark reaches
            if "must be positive for some center" not in str(refusal):
                raise
            reject()
    f = model.predict(np.vstack([X, 1e3 * X, rng.normal(size=(5, d))]))
    assert np.all(f >= 0.0)


def test_a_prediction_beyond_floating_point_is_one_sentence():
    model = fitted(k.Polynomial(2, 1.0), Full(), "squared")
    with pytest.raises(OverflowError, match=r"^SoSRegressor predicts values beyond 1e308 for 1 "):
        model.predict([[1e100]])


# Oracles


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cone", [Full(), Diagonal()], ids=repr)
def test_every_cone_and_loss_is_certified(cone, loss):
    X, y = counts()
    model = SoSRegressor(k.Gaussian(0.7), loss, cone).fit(X, y)
    assert model.solution_.status is Status.CONVERGED
    assert model.solution_.relative_gap <= GAP
    assert model.score(X, y) > 0.2


def test_the_squared_loss_in_the_diagonal_cone_is_non_negative_least_squares():
    X, y = counts(40)
    model = SoSRegressor(G + 0.1 * k.Nugget(), cone=Diagonal(0.05)).fit(X, y)
    K = (G + 0.1 * k.Nugget())(X) ** 2
    L = np.linalg.cholesky(K)
    stacked = np.vstack([K / np.sqrt(40), np.sqrt(0.05) * L.T])
    alpha, norm = nnls(stacked, np.concatenate([y / np.sqrt(40), np.zeros(40)]))
    assert model.solution_.objective == pytest.approx(norm**2, rel=1e-8)
    np.testing.assert_allclose(model.predict(X), K @ alpha, rtol=1e-6, atol=1e-8)


def test_where_kernel_ridge_is_positive_a_weak_penalty_interpolates_as_well():
    X = np.linspace(0, 3, 8)[:, None]
    y = 2.0 + np.sin(X[:, 0])
    model = SoSRegressor(k.Gaussian(0.6), cone=Full(0.0, 1e-9)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)


def test_it_beats_a_kernel_ridge_that_dips_below_zero():
    X, y = counts(200)
    test = np.linspace(-3, 3, 400)[:, None]
    ridge = KernelRidge(alpha=0.2, kernel="rbf", gamma=1.0).fit(X, y)
    truth = 1.5 + 1.5 * np.sin(2 * test[:, 0])
    ours = SoSRegressor(G, cone="auto").fit(X, y).predict(test)
    assert ridge.predict(test).min() < 0.0
    assert np.mean((ours - truth) ** 2) < np.mean((ridge.predict(test) - truth) ** 2)


def test_cones_are_nested_with_the_common_penalty():
    X, y = counts(20)
    kernel = G + 0.01 * k.Nugget()
    cones = (Full(0.0, 0.02), Diagonal(0.01), Paper(0.01))
    full, diagonal, paper = (SoSRegressor(kernel, cone=c).fit(X, y).solution_ for c in cones)
    assert full.objective <= diagonal.objective * (1 + 1e-7)
    assert diagonal.objective <= paper.objective * (1 + 1e-7)
    assert paper.relative_gap <= 1e-4


def test_gradient_and_integral_are_those_of_the_prediction():
    X, y = counts()
    model = SoSRegressor(k.Gaussian(0.7)).fit(X, y)
    x, h = np.linspace(-2.5, 2.5, 7)[:, None], 1e-5
    numeric = (model.predict(x + h) - model.predict(x - h)) / (2 * h)
    np.testing.assert_allclose(model.gradient(x)[:, 0], numeric, rtol=1e-6, atol=1e-8)
    exact = quad(lambda t: model.predict([[t]])[0], -2.0, 1.0, epsabs=1e-11)[0]
    assert model.integral(Interval(-2.0, 1.0)) == pytest.approx(exact, rel=1e-8)
    parts = model.integral(Interval(-2.0, 0.3)) + model.integral(Interval(0.3, 1.0))
    assert model.integral(Interval(-2.0, 1.0)) == pytest.approx(parts, rel=1e-9)


# Rows, weights, landmarks


@pytest.mark.parametrize(
    ("cone", "landmarks"), list(product([Full(), Diagonal(1e-2)], [None, Nystroem(10, 0)]))
)
def test_order_repetition_and_weights_of_rows_are_one_problem(cone, landmarks, rng):
    X, y = counts(30)
    order = rng.permutation(np.concatenate([np.arange(30), np.arange(15)]))
    one = SoSRegressor(G, cone=cone, landmarks=landmarks)
    weighted = clone(one).fit(X, y, sample_weight=np.r_[np.full(15, 2.0), np.ones(15)])
    repeated = clone(one).fit(X[order], y[order])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9, atol=1e-12)


def test_landmarks_come_close_to_all_points():
    X, y = counts(300)
    few = SoSRegressor(k.Gaussian(0.7), landmarks=40).fit(X, y)
    every = SoSRegressor(k.Gaussian(0.7)).fit(X, y)
    np.testing.assert_allclose(few.predict(X), every.predict(X), rtol=1e-2, atol=1e-3)


def test_a_kernel_with_few_features_costs_no_more_points_than_it_has_features(rng):
    X = rng.normal(size=(500, 2))
    y = (X[:, 0] + 1.0) ** 2 + X[:, 1] ** 2 + 0.1 * rng.normal(size=500)
    model = SoSRegressor(k.Polynomial(1, 1.0), cone=Full(0.0, 1e-6)).fit(X, y)
    assert len(model.function_.centers) == 3
    assert model.score(X, y) > 0.99


def test_the_factor_has_few_columns():
    X, y = counts(200)
    model = SoSRegressor(k.Gaussian(0.7)).fit(X, y)
    assert model.function_.factor.shape[1] <= 10


# Learning the scale and the penalties


def test_a_scale_and_penalties_are_learned_that_predict_well(rng):
    X = rng.uniform(-3, 3, size=(40, 1))
    y = np.exp(np.sin(2 * X[:, 0])) + 0.2 * rng.normal(size=40)
    model = SoSRegressor(cone="auto").fit(X, y)
    assert isinstance(model.cone_, Full)
    assert model.score(X, y) > 0.9
    scaled = SoSRegressor(cone="auto").fit(1000.0 * X, 1e-4 * y)
    np.testing.assert_allclose(scaled.predict(1000.0 * X), 1e-4 * model.predict(X), rtol=1e-3)


def test_held_out_losses_are_those_of_separate_fits():
    X, y = counts(40)
    shares, cones = np.full(40, 1 / 40), [Full(1e-1, 1e-1), Full(1e-3, 1e-3)]
    losses = held_out_squares(G, X, y, shares, regression.Squared(), cones)
    for cone, loss in zip(cones, losses, strict=True):
        total = 0.0
        for fold in range(5):
            out = np.arange(40) % 5 == fold
            f = SoSRegressor(G, cone=cone).fit(X[~out], y[~out]).predict(X[out])
            total += np.sum((f - y[out]) ** 2) / 40
        assert loss == pytest.approx(total, rel=2e-2)


def test_what_is_given_is_not_learned():
    X, y = counts(30)
    shares, loss = np.full(30, 1 / 30), regression.Squared()
    assert cross_validated_squares(X, y, shares, loss, G, Full(0.5)) == (G, Full(0.5))
    kernel, cone = cross_validated_squares(X, y, shares, loss, "auto", Diagonal(0.5))
    assert isinstance(kernel, k.Gaussian)
    assert cone == Diagonal(0.5)
    learned = cross_validated_squares(X, y, shares, loss, G, None)[1]
    path = penalty_path(G, X, y, shares, loss)
    assert any(np.isclose(learned.trace, cone.trace) for cone in path)


@pytest.mark.usefixtures("thoroughly")
def test_penalties_learned_from_some_rows_are_smaller_for_all_of_them(rng):
    X, y = counts(2000)
    shares, loss = np.full(2000, 1 / 2000), regression.Squared()
    _, cone = cross_validated_squares(X, y, shares, loss, G, None)
    some = np.random.default_rng(0).permutation(2000)[:1000]
    path = penalty_path(G, X[some], y[some], np.full(1000, 1e-3), loss)
    assert any(np.isclose(2.0 * cone.trace, other.trace, rtol=1e-9) for other in path)


def test_a_scale_for_a_smaller_cone_is_that_of_the_full_one_with_the_same_penalty():
    X, y = counts(60)
    small, full = (SoSRegressor(cone=cone).fit(X, y) for cone in (Diagonal(0.3), Full(0.0, 0.6)))
    assert small.kernel_ == full.kernel_
    other = SoSRegressor(cone=Full(0.0, 1e-4)).fit(X, y)
    assert other.kernel_ != full.kernel_


def test_a_gradient_beyond_floating_point_is_one_sentence():
    with pytest.raises(OverflowError, match=r"^SoSRegressor predicts values beyond 1e308"):
        fitted(k.Polynomial(2, 1.0), Full(), "squared").gradient([[1e120]])


def test_a_grid_search_reaches_into_kernel_and_cone():
    X, y = counts(40)
    grid = {"kernel__scale": [0.5, 2.0], "cone__trace": [1e-3, 1.0]}
    search = GridSearchCV(SoSRegressor(G, cone=Full()), grid, cv=3).fit(X, y)
    assert search.best_params_["cone__trace"] == 1e-3


# Storage, errors, warnings


def test_a_model_comes_back_from_a_file(tmp_path):
    X, y = counts(25)
    for model in (SoSRegressor(G), SoSRegressor(G, cone="diagonal"), SoSRegressor(cone="auto")):
        save(model.fit(X, y), tmp_path / "m.hplus")
        again = load(tmp_path / "m.hplus")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.solution_ == model.solution_


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"loss": "hinge"}, ValueError, "loss must be one of 'squared', 'poisson', .* got 'hinge'"),
        ({"loss": Logistic()}, ValueError, r"got Logistic\(\): use KernelRegressor for others"),
        ({"cone": "round"}, ValueError, "cone must be one of .* got 'round'"),
        ({"cone": 3}, TypeError, "one of 'auto', 'full', 'diagonal', 'paper' or a cone such as"),
        ({"cone": Full}, TypeError, "got the class Full: use Full"),
        (
            {"cone": "paper", "loss": Huber()},
            ValueError,
            "Paper needs the squared loss and no landmarks",
        ),
        ({"cone": "paper", "landmarks": 5}, ValueError, "and landmarks 5: use Diagonal or Full"),
        ({"landmarks": 0}, ValueError, "landmarks must be"),
        ({"kernel": "rbf"}, TypeError, 'kernel must be "auto" or a kernel'),
    ],
)
def test_a_bad_parameter_is_refused_in_one_sentence(params, error, message):
    X, y = counts(10)
    with pytest.raises(error, match=message):
        SoSRegressor(**{"kernel": G} | params).fit(X, y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Full(-1.0), "trace must be a finite number of at least 0, got -1.0"),
        (lambda: Full(0.0, 0.0), "frobenius must be a positive finite number, got 0.0"),
        (lambda: Diagonal(0), "penalty must be a positive finite number, got 0"),
        (lambda: Paper("a"), "penalty must be a positive finite number, got 'a'"),
    ],
)
def test_bad_penalties_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_counts_must_not_be_negative():
    with pytest.raises(ValueError, match="Negative values in y"):
        SoSRegressor(G, loss="poisson").fit([[0.0], [1.0]], [1.0, -1.0])


def test_a_loose_certificate_is_a_warning_with_advice(monkeypatch):
    X, y = counts(20)
    loose = SolverResult(Status.STALLED, 3, 1.0, 1e-3, 1.0)
    monkeypatch.setattr(
        regression, "learn_diagonal", lambda *_: (fitted(G, Full(), "squared").function_, loose)
    )
    with pytest.warns(
        ConvergenceWarning, match=r"only to a relative gap of 1.0e-03, .* Raise the penalty"
    ):
        SoSRegressor(G, cone="diagonal").fit(X, y)


def test_learned_penalties_suit_any_unit_where_given_ones_do_not():
    X, y = counts(60)
    assert SoSRegressor(G, "poisson").fit(X, 1e3 * y).score(X, 1e3 * y) < 0.0
    assert SoSRegressor(G, "poisson", "auto").fit(X, 1e3 * y).score(X, 1e3 * y) > 0.3


def test_a_rough_kernel_on_very_many_rows_is_refused_in_time(monkeypatch, rng):
    monkeypatch.setattr(landmarks, "MAX_PIVOT_WORK", 1e6)
    with pytest.raises(
        ValueError, match=r"kernel distinguishes more than \d+ of the 500 rows, .*500\."
    ):
        SoSRegressor(k.Gaussian(0.01)).fit(rng.normal(size=(500, 2)), np.ones(500))


@pytest.mark.parametrize("settings", [{"landmarks": 300}, {"cone": "diagonal"}])
def test_a_fit_that_needs_too_much_memory_is_refused(settings, monkeypatch, rng):
    monkeypatch.setattr(_checks, "memory_limit", lambda: 1e6)
    with pytest.raises(MemoryError, match="landmarks"):
        SoSRegressor(G, **settings).fit(rng.normal(size=(500, 2)), np.ones(500))


def test_targets_of_one_point_are_averaged_in_the_papers_cone():
    X, y = np.array([[0.0], [0.0], [1.0]]), np.array([1.0, 3.0, 2.0])
    paper = SoSRegressor(G, cone=Paper(1e-3)).fit(X, y)
    loss = np.mean((paper.predict(X) - y) ** 2)
    assert paper.solution_.objective == pytest.approx(loss, rel=0.05)
    assert paper.solution_.objective >= 2.0 / 3.0


def test_a_kernel_that_is_zero_is_learned_from():
    X = np.zeros((5, 1))
    model = SoSRegressor(k.Linear(), cone="auto").fit(X, [1.0, -1.0, 1.0, -1.0, 0.0])
    assert np.all(model.predict(X) == 0.0)


def test_targets_may_be_negative_though_predictions_are_not_but_with_a_word_if_most_are(rng):
    X = rng.normal(size=(30, 1))
    with pytest.warns(
        UserWarning, match=r"mean of y is -0\.\d+, .* non-negative values: use KernelReg"
    ):
        model = SoSRegressor(G).fit(X, -np.abs(X[:, 0]))
    assert np.all(model.predict(X) == 0.0)
    # rows of negative targets that weigh little are no reason to warn
    SoSRegressor(G).fit(X, X[:, 0], sample_weight=np.where(X[:, 0] > 0.0, 1.0, 1e-6))


def test_quantiles_of_a_positive_quantity_split_it(rng):
    X = rng.uniform(-1, 1, size=(400, 1))
    y = rng.exponential(1.0 + X[:, 0] ** 2)
    model = SoSRegressor(G, Quantile(0.9), Full(1e-4, 1e-4)).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.9, abs=0.03)
