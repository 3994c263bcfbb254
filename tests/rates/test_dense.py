"""Dense Laplace approximations, against the matrix-free solver and brute-force integration."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from hplus import Matern32
from hplus.rates.dense import posteriors, shifts
from hplus.rates.modes import newton
from hplus.rates.torus import Matrix


def covariances(G=12):
    """Three priors on a line, shape (3, G, G)."""
    x = np.linspace(0.0, 1.0, G)[:, None]
    return np.stack([v * Matern32(h)(x) for v, h in ((0.3, 0.1), (1.5, 0.3), (6.0, 0.2))])


def counts(rng, G=12, mean=4.0):
    return rng.poisson(mean, G).astype(float), rng.uniform(0.5, 1.5, G)


def dense_covariance(K, W):
    """The inverse of the Hessian in (field, constant), for the sum of both."""
    H = np.block([[np.linalg.inv(K) + np.diag(W), W[:, None]], [W[None], W.sum(keepdims=True)]])
    both = np.hstack([np.eye(len(W)), np.ones((len(W), 1))])
    return both @ np.linalg.inv(H) @ both.T


def test_modes_are_those_of_the_matrix_free_solver(rng):
    K, (s, nu) = covariances(), counts(rng)
    found = posteriors(K, s, nu)
    for matrix, z in zip(K, found.z, strict=True):
        mode = newton(
            Matrix(matrix), s[None], nu[None], np.zeros((1, 12)), tolerance=1e-16,
            accuracy=1e-8,
        )  # fmt: skip
        np.testing.assert_allclose(z, mode.z[0], atol=1e-6)


def test_priors_do_not_influence_each_other(rng):
    K, (s, nu) = covariances(), counts(rng)
    together = posteriors(K, s, nu)
    for i in range(3):
        alone = posteriors(K[i : i + 1], s, nu)
        np.testing.assert_allclose(together.z[i], alone.z[0], atol=1e-8)
        np.testing.assert_allclose(together.log_evidence[i], alone.log_evidence[0], atol=1e-6)
        np.testing.assert_allclose(together.chosen([i]).covariance, alone.covariance, atol=1e-6)


def integrated(K, s, nu):
    """log ∫∫ Π e^{sz - νe^z} N(f; 0, K) df db over z = f + b, with 1/√2π for the constant."""
    f, b = np.linspace(-4.5, 4.5, 91), np.linspace(0.0, 7.0, 141)
    F = np.stack(np.meshgrid(f, f, b, indexing="ij"), axis=-1)
    z = F[..., :2] + F[..., 2:]
    logs = np.sum(s * z - nu * np.exp(z), axis=-1)
    logs += multivariate_normal(np.zeros(2), K).logpdf(F[..., :2])
    return logsumexp(logs) + np.log(0.1 * 0.1 * 0.05 / np.sqrt(2.0 * np.pi))


@pytest.mark.parametrize(("variance", "link"), [(0.3, 0.0), (0.3, 0.2), (0.6, 0.3)])
def test_the_log_evidence_is_about_the_integral_of_the_likelihood(variance, link):
    K = np.array([[variance, link], [link, variance]])
    s, nu = np.array([30.0, 50.0]), np.array([1.0, 0.7])
    found = posteriors(K[None], s, nu).log_evidence[0]
    assert abs(found - integrated(K, s, nu)) < 0.03  # Laplace's error is about 1/n


def test_covariances_are_those_of_the_field_with_a_flat_constant(rng):
    K, (s, nu) = covariances(), counts(rng)
    found = posteriors(K, s, nu)
    for i in range(3):
        expected = dense_covariance(K[i], nu * np.exp(found.z[i]))
        np.testing.assert_allclose(found.covariance[i], expected, atol=1e-7)
        np.testing.assert_allclose(found.variance[i], np.diag(expected), atol=1e-7)


def test_the_log_of_the_total_has_variance_one_over_n(rng):
    K, (s, nu) = covariances(), counts(rng)
    found = posteriors(K, s, nu)
    W = nu * np.exp(found.z)
    spread = np.einsum("ki,kij,kj->k", W, found.covariance, W) / s.sum() ** 2
    np.testing.assert_allclose(spread, 1.0 / s.sum(), rtol=1e-6)


def test_shifts_are_half_the_variance_seen_through_the_covariance(rng):
    K, (s, nu) = covariances(), counts(rng)
    found = posteriors(K, s, nu)
    for i, shift in enumerate(shifts(found, nu)):
        C = dense_covariance(K[i], nu * np.exp(found.z[i]))
        expected = -0.5 * C @ (nu * np.exp(found.z[i]) * np.diag(C))
        np.testing.assert_allclose(shift, expected, atol=1e-6)


def test_the_shifted_mean_is_nearer_to_the_mean_of_the_posterior_than_the_mode():
    K, s, nu = np.array([[[1e-12]]]), np.array([3.0]), np.array([1.0])
    # z is log of a Gamma(3) variable: its mean is digamma(3)
    found = posteriors(K, s, nu)
    truth, mode = 0.9227843351, found.z[0, 0]
    assert abs(mode + shifts(found, nu)[0, 0] - truth) < 0.2 * abs(mode - truth)


EXTREMES = [[1e6, 0, 0, 0], [1, 0, 0, 0], [1e-6, 0, 0, 0], [1e6, 1e-6, 0, 3]]


@pytest.mark.parametrize("s", EXTREMES, ids=str)
def test_extreme_counts_and_unexposed_nodes_give_finite_answers(s):
    nu = np.array([0.25, 0.25, 0.25, 0.0 if s[3] == 0 else 0.25])
    found = posteriors(covariances(4), np.array(s, float), nu)
    assert np.isfinite(found.log_evidence).all()
    assert np.isfinite(found.covariance).all()
    assert np.all(found.variance > 0.0)
    np.testing.assert_allclose(np.sum(nu * np.exp(found.z), axis=1), np.sum(s))
