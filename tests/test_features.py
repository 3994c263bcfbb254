"""Laws of finite feature maps: what they stand for, and what they do not depend on."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ive

from hplus.features import FEATURES, FourierMap, Nystroem, NystroemMap, RandomFourier
from hplus.kernels import (
    Constant,
    Custom,
    Finite,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    Nugget,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Scalar,
)

a, b, c, d = Gaussian(0.4), Gaussian(3.0), Laplace(0.5), Matern52(2.0)
BOUNDED = [
    a,
    Gaussian((0.5, 2.0)),
    Gaussian(0.7, columns=[1]),
    c,
    Laplace((2.0, 0.6)),
    Matern32(0.8),
    Matern32((0.6, 1.5)),
    Matern52(0.9),
    Matern52(0.7, columns=[0]),
    RationalQuadratic(0.8, mixture=0.5),
    RationalQuadratic((0.5, 1.0), mixture=3.0),
    Periodic(1.3, scale=0.7),
    Periodic(2.0, scale=0.3, columns=[0]),
    Constant(2.5),
    3.0 * a,
    2.0 * a + 0.5 * c,
    a * Periodic(1.0, columns=[0]),
    (4.0 * a + b) * (c + 0.5 * d),
    a + (b + c) * 0.3 + Constant(0.2),
]
OTHERS = [
    Linear(),
    Polynomial(2),
    Nugget(),
    Finite([[2.0, 1.0], [1.0, 2.0]], columns=[2]),
    Gaussian(1.0) + Linear(),
]


def points(rng, n):
    return np.column_stack([rng.normal(size=(n, 2)), rng.integers(2, size=n)])


# --- Nyström


@pytest.mark.parametrize("kernel", BOUNDED + OTHERS, ids=repr)
def test_nystroem_is_exact_when_every_point_is_a_landmark(kernel, rng):
    X = points(rng, 30)[:, : 2 if kernel in BOUNDED else 3]
    features, K = Nystroem(30)(kernel, X)(X), kernel(X)
    np.testing.assert_allclose(features @ features.T, K, rtol=0.0, atol=1e-10 * np.abs(K).max())


@pytest.mark.parametrize("kernel", BOUNDED + OTHERS, ids=repr)
def test_nystroem_is_the_projection_on_its_landmarks_and_never_above_the_kernel(kernel, rng):
    X = points(rng, 40)[:, : 2 if kernel in BOUNDED else 3]
    features = Nystroem(7, random_state=0)(kernel, X)
    K, Phi, Z = kernel(X), features(X), features.centers
    projection = kernel(X, Z) @ np.linalg.pinv(kernel(Z), 1e-12, hermitian=True) @ kernel(Z, X)
    size = np.abs(K).max()
    np.testing.assert_allclose(Phi @ Phi.T, projection, rtol=0.0, atol=1e-9 * size)
    np.testing.assert_allclose(features(Z) @ Phi.T, kernel(Z, X), rtol=0.0, atol=1e-9 * size)
    assert np.linalg.eigvalsh(K - Phi @ Phi.T)[0] > -1e-10 * size


def test_the_root_turns_feature_weights_into_kernel_weights_of_the_same_norm(rng):
    X, kernel = rng.normal(size=(50, 2)), Gaussian(0.5) + 0.1 * Nugget()
    features = Nystroem(8, random_state=1)(kernel, X)
    v = rng.normal(size=features.shape[1])
    w, Z = features.root @ v, features.centers
    np.testing.assert_allclose(features(X) @ v, kernel(X, Z) @ w, atol=1e-12)
    np.testing.assert_allclose(w @ kernel(Z) @ w, v @ v, rtol=1e-12)


def test_reordered_and_repeated_rows_choose_the_same_landmarks(rng):
    X = rng.normal(size=(40, 2))
    X[:20, 0] = 0.0
    again = np.vstack([X, X[:25], X[:9]])[rng.permutation(74)]
    again[again == 0.0] = -0.0
    choose = Nystroem(12, random_state=3)
    assert choose(Gaussian(1.0), again) == choose(Gaussian(1.0), X)


def test_rows_of_weight_zero_are_as_if_they_were_not_there(rng):
    X, weights = rng.normal(size=(40, 2)), rng.integers(3, size=40)
    choose = Nystroem(12, random_state=3)
    assert choose(Gaussian(1.0), X, weights) == choose(Gaussian(1.0), X[weights > 0])


def test_a_row_that_is_repeated_is_no_more_likely_to_be_chosen():
    X = np.repeat(np.arange(10.0), [91, *[1] * 9])[:, None]
    kernel, draws = Nugget(), [Nystroem(5, random_state=seed) for seed in range(400)]
    chosen = sum(0.0 in draw(kernel, X).centers for draw in draws)
    assert abs(chosen - 200) < 4 * np.sqrt(400 / 4)


def test_all_distinct_rows_are_taken_when_there_are_no_more_than_landmarks(rng):
    X = rng.integers(3, size=(50, 2)).astype(float)
    np.testing.assert_array_equal(Nystroem(9)(Laplace(1.0), X).centers, np.unique(X, axis=0))
    assert Nystroem(8, random_state=0)(Laplace(1.0), X).shape == (2, 8)


@pytest.mark.parametrize("kernel", [Matern32(1.0), Gaussian(2.0)], ids=repr)
def test_landmarks_that_nearly_coincide_cost_columns_and_no_accuracy(kernel, rng):
    X = rng.normal(size=(15, 1))
    crowd = np.vstack([X, X + 1e-13, X - 1e-9])
    features = Nystroem(45)(kernel, crowd)
    assert features.shape[1] < 45
    np.testing.assert_allclose(features(X) @ features(X).T, kernel(X), atol=1e-9)
    largest = np.linalg.eigvalsh(kernel(crowd))[-1]
    assert np.linalg.norm(features.root, 2) <= 1e6 / np.sqrt(largest)


def test_a_kernel_that_vanishes_on_the_landmarks_has_no_features():
    assert Nystroem(3)(Linear(), np.zeros((5, 2)))(np.ones((4, 2))).shape == (4, 0)


# --- random Fourier features


@pytest.mark.parametrize("kernel", BOUNDED, ids=repr)
def test_random_fourier_features_have_the_kernel_as_mean_within_five_sigma(kernel, rng):
    X, D = rng.normal(size=(14, 2)), 20_000
    Phi, K, k0 = RandomFourier(D, random_state=0)(kernel, X)(X), kernel(X), kernel.diag(X)[0]
    # Var cos ω·δ = (1 + κ(2δ))/2 - κ(δ)², κ = k/k(0)
    variance = (1.0 + kernel(2.0 * X) / k0) / 2.0 - (K / k0) ** 2
    bound = 5.0 * k0 * np.sqrt(np.maximum(variance, 0.0) / D) + 1e-12
    assert Phi.shape == (14, 2 * D)
    assert np.all(np.abs(Phi @ Phi.T - K) <= bound)


@pytest.mark.parametrize("kernel", [a, Matern32(1.0), (a + c) * (b + c)], ids=repr)
def test_the_error_shrinks_like_one_over_the_root_of_the_frequencies(kernel, rng):
    X = rng.normal(size=(25, 2))
    errors = []
    for D in (50, 5_000):
        Phi = RandomFourier(D, random_state=0)(kernel, X)(X)
        errors.append(np.std(Phi @ Phi.T - kernel(X)))
    assert 5.0 < errors[0] / errors[1] < 20.0


@pytest.mark.parametrize(
    ("kernel", "law"),
    [
        (Gaussian(2.0), stats.norm(scale=0.5)),
        (Laplace(2.0), stats.cauchy(scale=0.5)),
        (Matern32(2.0), stats.t(3, scale=0.5)),
        (Matern52(2.0), stats.t(5, scale=0.5)),
        (RationalQuadratic(2.0, mixture=1.0), stats.laplace(scale=0.5 / np.sqrt(2.0))),
    ],
    ids=lambda part: repr(part) if isinstance(part, Kernel) else "",
)
def test_each_frequency_has_the_law_of_the_spectral_measure(kernel, law):
    W = RandomFourier(20_000, random_state=0)(kernel, np.zeros((1, 2))).frequencies
    assert min(stats.kstest(w, law.cdf).pvalue for w in W.T) > 1e-3


def test_harmonics_of_a_periodic_kernel_have_bessel_probabilities():
    D, scale, period = 50_000, 0.6, 3.0
    W = RandomFourier(D, random_state=0)(Periodic(period, scale), np.zeros((1, 1))).frequencies
    harmonics = W[:, 0] * period / (2.0 * np.pi)
    n = np.round(harmonics).astype(int)
    np.testing.assert_allclose(harmonics, n, atol=1e-9)
    observed = np.bincount(n + 20, minlength=41)
    expected = D * ive(np.abs(np.arange(-20, 21)), scale**-2)
    assert np.all(np.abs(observed - expected) < 5.0 * np.sqrt(expected) + 1.0)


def test_unseen_columns_have_frequency_zero(rng):
    kernel = Gaussian(1.0, columns=[2]) * Periodic(2.0, 0.2, columns=[0])
    W = RandomFourier(50, random_state=0)(kernel, np.zeros((1, 4))).frequencies
    np.testing.assert_array_equal(np.any(W != 0.0, axis=0), [True, False, True, False])


@pytest.mark.parametrize("kernel", [*OTHERS, Scalar(np.sin), a * Linear(), a + Nugget()])
def test_kernels_without_a_spectral_measure_are_refused(kernel):
    with pytest.raises(
        ValueError, match=r"kernel must be continuous and stationary .* Nystroem\.$"
    ):
        RandomFourier(10)(kernel, np.zeros((1, 3)))


# --- both


CHOICES = [Nystroem, RandomFourier]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_same_random_state_gives_the_same_map_and_another_one_another(choice, rng):
    X = rng.normal(size=(60, 2))
    first, second, other = (choice(9, random_state=s)(a, X) for s in (5, 5, 6))
    np.testing.assert_array_equal(first(X), second(X))
    assert first == second
    assert first != other
    generator = np.random.RandomState(5)
    assert choice(9, generator)(a, X) == first
    assert choice(9, generator)(a, X) != first


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("kernel", BOUNDED, ids=repr)
def test_features_are_finite_far_from_the_data(choice, kernel, rng):
    features = choice(6, random_state=0)(kernel, rng.normal(size=(20, 2)))
    far = features(np.array([[1e9, -1e9], [1e160, 1e160], [-1e200, 1e200]]))
    assert np.isfinite(far).all()
    assert np.all(np.sum(far**2, axis=1) <= 1.0001 * kernel.diag(np.zeros((1, 2))))


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("count", [0, -3, 2.0, True, None, "many"])
def test_counts_that_are_not_whole_and_positive_are_refused(choice, count):
    with pytest.raises(ValueError, match=r"must be a whole number of at least 1, got"):
        choice(count)


@pytest.mark.parametrize("choice", CHOICES)
def test_bad_data_get_one_clear_sentence(choice, rng):
    X, choose = rng.normal(size=(5, 2)), choice(3, random_state=0)
    with pytest.raises(ValueError, match="X must have two dimensions"):
        choose(a, X[0])
    with pytest.raises(ValueError, match=r"sample_weight must be one number .* got shape"):
        choose(a, X, np.ones(4))
    with pytest.raises(ValueError, match=r"sample_weight must be one number .* smallest value -1"):
        choose(a, X, [1, 1, -1, 1, 1])
    with pytest.raises(ValueError, match="X must have a row with a positive weight"):
        choose(a, X, np.zeros(5))
    with pytest.raises(ValueError, match="X must have 2 columns, got 1"):
        choose(a, X)(X[:, :1])
    with pytest.raises(ValueError, match="X must contain only finite numbers"):
        choose(a, X)(X * np.nan)
    with pytest.raises(ValueError, match="random_state must be None, a whole number"):
        choice(3, random_state="today")


def test_numbers_that_overflow_are_refused(rng):
    X = rng.normal(size=(5, 2))
    with pytest.raises(OverflowError, match="overflow: rescale the points"):
        RandomFourier(50, random_state=0)(Gaussian(1e-9), X)(1e303 * X)
    with np.errstate(over="ignore"), pytest.raises(OverflowError, match="landmarks overflow"):
        Nystroem(5)(Polynomial(3), 1e200 * np.abs(X))


def test_maps_are_values_with_checked_arrays(rng):
    X = rng.normal(size=(6, 2))
    for features in (Nystroem(3, random_state=0)(a, X), RandomFourier(3, random_state=0)(a, X)):
        assert isinstance(features, FEATURES)
        assert features.replace() == features
        with pytest.raises(ValueError, match="read-only"):
            features.get_params(deep=False).popitem()[1][0] = 1.0
    with pytest.raises(ValueError, match="equal numbers of rows"):
        NystroemMap(a, X, np.eye(5))
    with pytest.raises(ValueError, match="frequencies must be a matrix"):
        FourierMap(1.0, np.zeros(3))


def test_nystroem_serves_kernels_that_hold_callables(rng):
    X = rng.normal(size=(20, 2))
    features = Nystroem(20)(Custom(Gaussian(1.0)) + Scalar(lambda Z: Z[:, 0]), X)
    K = Gaussian(1.0)(X) + np.outer(X[:, 0], X[:, 0])
    np.testing.assert_allclose(features(X) @ features(X).T, K, atol=1e-9)
