"""Scales learned from data: closed forms against the long way."""

import numpy as np
import pytest

from hplus.kernels import Gaussian
from hplus.losses import Hinge, Quantile, Squared
from hplus.solvers.machines.representer import AllPoints, ridge
from hplus.solvers.machines.risk import Risk
from hplus.tuning.scales import (
    cross_validated_scale,
    held_out_loss,
    leave_one_out_error,
    leave_one_out_scale,
)


@pytest.fixture
def wave(rng):
    X = rng.uniform(-3, 3, size=(60, 1))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)


def test_the_leave_one_out_error_is_that_of_fits_without_each_point(wave, rng):
    X, y = wave
    shares = rng.uniform(0.5, 1.5, 60) / 60
    expected = 0.0
    for i in range(60):
        rest = np.arange(60) != i
        basis = AllPoints(Gaussian(0.7), X[rest])
        f = basis.function(ridge(basis, y[rest], shares[rest], 1e-3).coefficients)
        expected += shares[i] * (y[i] - f(X[i : i + 1])[0]) ** 2
    found = leave_one_out_error(Gaussian(0.7)(X), y, shares, 1e-3)
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_leave_one_out_error_of_several_outputs_is_their_sum(wave):
    X, y = wave
    shares = np.full(60, 1 / 60)
    one, two = (leave_one_out_error(Gaussian(0.7)(X), t, shares, 1e-3) for t in (y, y**2))
    both = leave_one_out_error(Gaussian(0.7)(X), np.stack([y, y**2], axis=1), shares, 1e-3)
    assert both == pytest.approx(one + two)


def test_the_learned_scale_has_the_smallest_error_of_all(wave):
    X, y = wave
    shares = np.full(60, 1 / 60)
    learned = leave_one_out_scale(X, y, shares, 1e-3)
    best = leave_one_out_error(learned(X), y, shares, 1e-3)
    for factor in (0.25, 0.5, 0.8, 1.25, 2.0, 4.0):
        other = Gaussian(learned.scale[0] * factor)
        assert best <= leave_one_out_error(other(X), y, shares, 1e-3)


def test_the_held_out_loss_is_that_of_five_fits_without_each_fold(wave):
    X, y = wave
    risk = Risk(Squared(), y, np.full(60, 1 / 60), 1e-3)
    expected = 0.0
    for k in range(5):
        out = np.arange(60) % 5 == k
        basis = AllPoints(Gaussian(0.7), X[~out])
        f = basis.function(ridge(basis, y[~out], np.full(48, 1 / 48), 1e-3).coefficients)
        expected += np.sum((f(X[out]) - y[out]) ** 2) / 60
    assert held_out_loss(Gaussian(0.7), X, risk) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("loss", "solver"), [(Quantile(0.5), "primal"), (Hinge(), "dual")])
def test_cross_validation_finds_a_scale_near_that_of_the_data(wave, loss, solver):
    X, y = wave
    hinge = isinstance(loss, Hinge)
    target = np.where(y > 0, 1.0, -1.0) if hinge else y
    risk = Risk(loss, target, np.full(60, 1 / 60), 1e-4, bias=hinge)
    learned = cross_validated_scale(X, [risk], solver)
    assert 0.2 < learned.scale[0] < 4.0
    losses = [held_out_loss(Gaussian(s), X, risk, solver) for s in (0.02, 50.0)]
    assert held_out_loss(learned, X, risk, solver) < min(losses)


def test_one_point_and_constant_columns_do_not_stop_the_search():
    assert leave_one_out_scale(np.zeros((1, 2)), np.zeros(1), np.ones(1), 1e-3).scale[0] > 0
    risk = Risk(Quantile(0.5), np.zeros(3), np.full(3, 1 / 3), 1e-3)
    assert cross_validated_scale(np.ones((3, 1)), [risk]).scale[0] > 0
