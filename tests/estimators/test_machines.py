"""KernelRegressor and KernelClassifier: conventions, oracles, promises."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from hplus.estimators.classifier import KernelClassifier
from hplus.estimators.machines import KernelRegressor
from hplus.features import Nystroem
from hplus.kernels import Constant, Custom, Gaussian, Linear, Matern32, Periodic, Polynomial
from hplus.losses import EpsilonInsensitive, Huber, PoissonLog, Quantile

G = Gaussian(1.0)
REGRESSORS = [  # the first of a class goes through all checks
    KernelRegressor(G),
    KernelRegressor(),
    KernelRegressor(G, landmarks=150, penalty=1e-3),
    KernelRegressor(G, loss="huber", penalty=1e-3),
    KernelRegressor(G, loss="absolute", penalty=1e-3),
    KernelRegressor(Matern32(1.0) + Constant(), loss=Quantile(0.8), penalty=1e-3),
    KernelRegressor(G, loss="epsilon_insensitive", penalty=1e-3),
    KernelRegressor(G, loss="poisson_log"),
]
CLASSIFIERS = [
    KernelClassifier(Matern32(1.0), penalty=1e-3, solver="dual"),
    KernelClassifier(),
    KernelClassifier(G, penalty=1e-3, solver="primal"),
    KernelClassifier(G, loss="squared_hinge", penalty=1e-3),
    KernelClassifier(G, loss="logistic"),
    KernelClassifier(G, loss="logistic", landmarks=20),
]


@parametrize_with_checks(REGRESSORS + CLASSIFIERS)
def test_scikit_learn_conventions(estimator, check, few_candidates):
    check(estimator)


@pytest.fixture
def wave(rng):
    X = rng.uniform(-3, 3, size=(120, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=120)


@pytest.fixture
def moons():
    return make_moons(200, noise=0.25, random_state=0)


# Oracles


def test_the_squared_loss_is_kernel_ridge(wave):
    X, y = wave
    ours = KernelRegressor(Gaussian(0.7), penalty=1e-2, fit_intercept=False).fit(X, y)
    theirs = KernelRidge(alpha=1e-2 * len(X), kernel="rbf", gamma=1 / (2 * 0.7**2)).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-10)


def test_several_outputs_and_weights_agree_with_kernel_ridge(wave, rng):
    X, y = wave
    Y, w = np.stack([y, y**2, -y], axis=1), rng.uniform(0.1, 2.0, len(y))
    ours = KernelRegressor(Gaussian(0.7), penalty=1e-3, fit_intercept=False)
    ours.fit(X, Y, sample_weight=w)
    theirs = KernelRidge(alpha=1e-3 * w.sum(), kernel="rbf", gamma=1 / (2 * 0.7**2))
    theirs.fit(X, Y, sample_weight=w)
    assert ours.predict(X).shape == (120, 3)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-9)


def test_a_scikit_learn_kernel_gives_the_same_fit_as_ours(wave):
    from sklearn.gaussian_process.kernels import RBF, Matern

    X, y = wave
    pairs = [(RBF(0.7), Gaussian(0.7)), (Matern(1.3, nu=1.5), Matern32(1.3))]
    for theirs, ours in pairs:
        a, b = (KernelRegressor(k).fit(X, y).predict(X) for k in (Custom(theirs), ours))
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_the_tube_agrees_with_libsvm(wave):
    X, y = wave
    ours = KernelRegressor(G, EpsilonInsensitive(0.2), penalty=1e-2).fit(X, y)
    theirs = SVR(C=1 / (2 * 1e-2 * len(X)), epsilon=0.2, gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-3)


def test_a_quantile_leaves_its_share_of_targets_below(wave):
    X, y = wave
    for level in (0.1, 0.5, 0.9):
        f = KernelRegressor(Gaussian(1.0), Quantile(level), penalty=1e-3).fit(X, y).predict(X)
        assert np.mean(y < f) == pytest.approx(level, abs=0.06)


def test_the_poisson_loss_agrees_with_the_generalised_linear_model(rng):
    X = rng.normal(size=(200, 2))
    y = rng.poisson(np.exp(0.5 * X[:, 0] - 0.2))
    kernel = Polynomial(1, offset=1.0)
    ours = KernelRegressor(kernel, "poisson_log", penalty=5e-3, fit_intercept=False).fit(X, y)
    phi, mean = kernel.features(X), y.mean()
    theirs = PoissonRegressor(alpha=1e-2 / mean, fit_intercept=False, tol=1e-10).fit(phi, y / mean)
    np.testing.assert_allclose(ours.predict(X), mean * theirs.predict(phi), rtol=1e-5)


@pytest.mark.parametrize("unit", [1e-80, 1e-3, 1.0, 1e3])
def test_rates_are_drawn_to_their_mean_whatever_their_unit(unit, rng):
    x, E = np.linspace(0.0, 10.0, 100)[:, None], rng.uniform(0.5, 2.0, 100)
    E /= E.mean()
    y = rng.gamma(4.0, (2.0 + np.sin(x[:, 0])) / 4.0) * unit
    model = KernelRegressor(loss="poisson_log", fit_intercept=False).fit(x, y * E, exposure=E)
    assert np.mean(model.predict(x)) == pytest.approx(y.mean(), rel=0.05)
    mean = (y * E).sum() / E.sum()
    np.testing.assert_allclose(model.predict([[1e6]]), mean)
    # E times as long a watch is as much as E rows
    heavy = clone(model).fit(x, y, sample_weight=E).predict(x)
    np.testing.assert_allclose(model.predict(x), heavy, rtol=1e-6)


def test_counts_of_zero_in_every_row_still_have_a_rate_above_zero():
    model = KernelRegressor(G, "poisson_log").fit(np.arange(20.0)[:, None], np.zeros(20))
    assert np.all((model.predict([[3.0], [9.0]]) > 0.0) & (model.predict([[3.0], [9.0]]) < 0.2))


def test_an_exposure_is_an_offset(rng):
    X, E = rng.normal(size=(300, 1)), rng.uniform(0.5, 20.0, 300)
    y = rng.poisson(E * np.exp(np.sin(X[:, 0])))
    model = KernelRegressor(Gaussian(1.0), PoissonLog(), penalty=1e-4).fit(X, y, exposure=E)
    x = np.linspace(-1.5, 1.5, 20)[:, None]
    np.testing.assert_allclose(model.predict(x), np.exp(np.sin(x[:, 0])), rtol=0.2)
    doubled = clone(model).fit(np.vstack([X, X]), np.r_[y, y], exposure=np.r_[E, E])
    np.testing.assert_allclose(doubled.predict(x), model.predict(x), rtol=1e-6)


def test_a_constant_rate_is_the_total_count_over_the_total_exposure(rng):
    X, E = rng.normal(size=(100, 1)), rng.uniform(0.5, 20.0, 100)
    y = rng.poisson(2.0 * E)
    model = KernelRegressor(Constant(), PoissonLog(), penalty=1e-6).fit(X, y, exposure=E)
    np.testing.assert_allclose(model.predict(X), y.sum() / E.sum(), rtol=1e-4)


def test_counts_are_predicted_above_zero_everywhere(rng):
    X = rng.normal(size=(80, 2))
    model = KernelRegressor(G, "poisson_log").fit(X, rng.poisson(0.3, 80))
    far = np.vstack([X, 1e12 * X, np.full((1, 2), 1e200)])
    assert np.all(model.predict(far) > 0.0)
    assert np.all(np.isfinite(model.predict(far)))


def test_a_users_own_loss_works(wave):
    class LogCosh:
        def value(self, y, f):
            return np.logaddexp(f - y, y - f) - np.log(2)

        def slope(self, y, f):
            return np.tanh(f - y)

    X, y = wave
    model = KernelRegressor(G, LogCosh(), penalty=1e-4).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.solution_.relative_gap < 1e-8


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_the_hinge_is_scikit_learns_support_vector_machine(moons, solver):
    X, y = moons
    ours = KernelClassifier(Gaussian(0.5), penalty=1e-3, solver=solver).fit(X, y)
    theirs = SVC(C=1 / (2 * 1e-3 * len(X)), gamma=2.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-3)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_the_logistic_loss_is_penalised_logistic_regression(moons):
    X, y = moons
    kernel = Polynomial(3, offset=1.0)
    ours = KernelClassifier(kernel, "logistic", penalty=1e-3).fit(X, y)
    phi = kernel.features(X)
    theirs = LogisticRegression(C=1 / (2 * 1e-3 * len(X)), tol=1e-10, max_iter=2000).fit(phi, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(phi), atol=1e-4)


def test_several_classes_are_told_apart_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    for loss in ("hinge", "squared_hinge", "logistic"):
        model = KernelClassifier(Gaussian(2.0), loss).fit(X, labels)
        assert model.score(X, labels) > 0.95
        assert model.decision_function(X).shape == (150, 3)
        assert model.solution_.relative_gap < 1e-5
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


# What users rely on


def test_learned_scales_and_penalties_are_good_ones_on_average():
    lost = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-3, 3, size=(120, 2))
        y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=120)
        held = X[::2], y[::2], X[1::2], y[1::2]
        by_hand = [
            KernelRegressor(Gaussian(s), penalty=p).fit(held[0], held[1]).score(held[2], held[3])
            for s in (0.3, 1.0, 3.0)
            for p in (1e-2, 1e-4)
        ]
        lost.append(max(by_hand) - KernelRegressor().fit(held[0], held[1]).score(held[2], held[3]))
    assert np.mean(lost) < 0.05


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_learned_scales_follow_the_units_of_the_columns(wave, factor):
    X, y = wave
    plain = KernelRegressor().fit(X, y).predict(X)
    units = np.array([factor, 1.0])
    np.testing.assert_allclose(KernelRegressor().fit(X * units, y).predict(X * units), plain, 1e-6)


def test_a_grid_search_reaches_into_a_kernel_expression(wave):
    X, y = wave
    kernel = 2.0 * Gaussian(0.5) + Linear() * Periodic(7.0)
    search = GridSearchCV(
        KernelRegressor(kernel), {"kernel__left__kernel__scale": [0.1, 1.0], "penalty": [1e-3]}
    ).fit(X, y)
    assert search.best_params_["kernel__left__kernel__scale"] == 1.0
    assert search.best_estimator_.kernel.left.kernel.scale == 1.0
    assert kernel.left.kernel.scale == 0.5


def test_setting_a_nested_parameter_builds_a_new_kernel():
    kernel = Gaussian(0.5) * Matern32(1.0)
    model = KernelRegressor(kernel)
    assert model.set_params(kernel__right__scale=3.0).kernel == Gaussian(0.5) * Matern32(3.0)
    assert kernel == Gaussian(0.5) * Matern32(1.0)
    assert model.get_params()["kernel__left__scale"] == 0.5
    with pytest.raises(ValueError, match="has no parameter 'middle'"):
        model.set_params(kernel__middle__scale=3.0)


def test_machines_work_in_pipelines_and_cross_validation(moons):
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), KernelClassifier(Gaussian(0.7)))
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.85
    grid = {"kernelclassifier__kernel__scale": [0.05, 0.7]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_params_ == {"kernelclassifier__kernel__scale": 0.7}


def test_data_frames_of_both_kinds_give_the_same_model(wave):
    X, y = wave
    plain = KernelRegressor(G).fit(X, y).predict(X)
    for frame in (pd.DataFrame, pl.DataFrame):
        data = frame({"east": X[:, 0], "north": X[:, 1]})
        model = KernelRegressor(G).fit(data, y)
        np.testing.assert_array_equal(model.predict(data), plain)
        assert list(model.feature_names_in_) == ["east", "north"]


def test_the_order_of_rows_does_not_matter_and_a_repeated_row_is_a_weight(wave, rng):
    X, y = wave
    order = rng.permutation(len(X))
    repeated, weights = np.r_[np.arange(120), [5, 5, 9]], np.ones(120)
    weights[[5, 9]] = 3, 2
    for model in (KernelRegressor(G, "huber"), KernelRegressor(landmarks=30)):
        plain = clone(model).fit(X, y).predict(X)
        np.testing.assert_array_equal(clone(model).fit(X[order], y[order]).predict(X), plain)
        heavy = clone(model).fit(X, y, sample_weight=weights).predict(X)
        np.testing.assert_allclose(clone(model).fit(X[repeated], y[repeated]).predict(X), heavy)


def test_fitted_attributes_are_what_predict_uses(moons, wave):
    X, y = wave
    model = KernelRegressor(Gaussian(0.8)).fit(X, y)
    np.testing.assert_array_equal(model.function_(X) + model.intercept_, model.predict(X))
    assert model.function_.kernel == model.kernel_ == Gaussian(0.8)
    X, y = moons
    machine = KernelClassifier(Gaussian(0.8), penalty=0.01).fit(X, y)
    decision = machine.function_(X)[:, 0] + machine.intercept_[0]
    np.testing.assert_array_equal(decision, machine.decision_function(X))
    assert len(machine.function_.centers) < len(X)


def test_landmarks_are_reproducible_and_close_to_the_whole(wave):
    X, y = wave
    whole = KernelRegressor(Gaussian(1.0)).fit(X, y).predict(X)
    a = KernelRegressor(Gaussian(1.0), landmarks=60).fit(X, y)
    b = KernelRegressor(Gaussian(1.0), landmarks=Nystroem(60, random_state=0)).fit(X, y)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    assert np.abs(a.predict(X) - whole).max() < 0.2
    assert len(a.function_.centers) == 60


def test_a_gap_wider_than_promised_is_said_aloud(wave):
    X, y = wave
    model = KernelRegressor(Gaussian(1e3), PoissonLog(), penalty=1e-15, fit_intercept=False)
    with pytest.warns(ConvergenceWarning, match="certified only to a relative gap of"):
        model.fit(X, np.exp(5 * y))


def test_probabilities_need_the_logistic_loss(moons):
    model = KernelClassifier(G).fit(*moons)
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(moons[0])


def test_predicting_before_fitting_is_refused(wave):
    with pytest.raises(NotFittedError):
        KernelRegressor().predict(wave[0])


def test_a_huber_fit_shrugs_off_outliers_that_pull_the_mean(wave, rng):
    X, y = wave
    dirty = y.copy()
    dirty[rng.choice(120, 10, replace=False)] += 20.0
    robust = KernelRegressor(G, Huber(0.3), penalty=1e-3).fit(X, dirty).predict(X)
    mean = KernelRegressor(G, penalty=1e-3).fit(X, dirty).predict(X)
    assert np.median(np.abs(robust - y)) < 0.5 * np.median(np.abs(mean - y))


def test_probabilities_of_several_classes_add_up_far_from_the_data():
    X, y = load_iris(return_X_y=True)
    model = KernelClassifier(Polynomial(3), "logistic").fit(X, y)
    far = model.predict_proba(100.0 * X[::30])
    np.testing.assert_allclose(far.sum(axis=1), 1.0)
    assert np.all(far >= 0.0)


def test_the_learned_scale_does_not_depend_on_the_names_of_the_classes():
    X, y = load_iris(return_X_y=True)
    renamed = np.array([2, 0, 1])[y]
    assert KernelClassifier().fit(X, y).kernel_ == KernelClassifier().fit(X, renamed).kernel_


def test_a_rare_class_does_not_lead_to_the_narrowest_scale(rng):
    X, y = rng.normal(size=(2000, 2)), np.zeros(2000)
    y[:4] = 1
    X[:4] += 5.0
    assert min(KernelClassifier().fit(X, y).kernel_.scale) > 0.3


def test_a_fitted_machine_keeps_its_loss_when_parameters_change(rng):
    X = rng.normal(size=(60, 1))
    model = KernelRegressor(G, "poisson_log").fit(X, rng.poisson(2.0, 60))
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(loss="squared").predict(X), before)
    machine = KernelClassifier(G).fit(X, X[:, 0] > 0).set_params(loss="logistic")
    assert not hasattr(machine, "predict_proba")


def test_a_failed_fit_does_not_count_as_fitted(wave):
    model = KernelRegressor(G)
    with pytest.raises(ValueError, match="one target for each"):
        model.fit(wave[0], wave[1][:5])
    with pytest.raises(NotFittedError):
        model.predict(wave[0])
