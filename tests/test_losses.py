"""Laws that every loss obeys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hplus.losses import (
    LOSSES,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Own,
    Poisson,
    PoissonLog,
    Quantile,
    Squared,
    SquaredHinge,
    as_loss,
)


class Pinball:
    """A user's own loss: smooth, convex, nothing but value and slope."""

    def __repr__(self):
        return "Pinball()"

    def value(self, y, f):
        return np.cosh(f - y) - 1.0

    def slope(self, y, f):
        return np.sinh(f - y)


ALL = [loss() for loss in LOSSES.values()]
ALL += [Quantile(0.9), Huber(0.3), EpsilonInsensitive(0.0), EpsilonInsensitive(0.7), Own(Pinball())]
COUNTS = (Poisson, PoissonLog)
LABELS = (Hinge, SquaredHinge, Logistic)


def targets(loss, rng, n=200):
    if isinstance(loss, LABELS):
        return rng.choice([-1.0, 1.0], n)
    return rng.poisson(2.0, n).astype(float) if isinstance(loss, COUNTS) else rng.normal(size=n)


def arguments(loss, rng, n=200):
    """Values of f inside the loss's domain and away from its kinks."""
    f = rng.normal(size=n) * 2.0
    return np.abs(f) + 0.1 if isinstance(loss, Poisson) else f


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_slope_and_curvature_are_the_derivatives_of_value(loss, rng):
    y, f, h = targets(loss, rng), arguments(loss, rng), 1e-6
    tolerance = 1e-4 if isinstance(loss, Own) else 1e-6
    for lower, higher in [(loss.value, loss.slope), (loss.slope, loss.curvature)]:
        numeric = (lower(y, f + h) - lower(y, f - h)) / (2 * h)
        np.testing.assert_allclose(higher(y, f), numeric, rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_the_loss_is_convex(loss, rng):
    y, f, g = targets(loss, rng), arguments(loss, rng), arguments(loss, rng)
    chord = loss.value(y, f) + loss.slope(y, f) * (g - f)
    assert np.all(loss.value(y, g) >= chord - 1e-9)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_fenchels_inequality_holds_and_is_an_equality_at_the_slope(loss, rng):
    y, f = targets(loss, rng), arguments(loss, rng)
    u = loss.slope(y, f)
    np.testing.assert_allclose(loss.value(y, f) + loss.conjugate(y, u), u * f, atol=1e-9)
    other = rng.normal(size=len(y))
    assert np.all(loss.value(y, f) + loss.conjugate(y, other) >= other * f - 1e-9)


@pytest.mark.parametrize("loss", [loss for loss in ALL if not isinstance(loss, Own)], ids=repr)
def test_the_conjugate_is_the_supremum_over_a_grid_of_f(loss, rng):
    y = targets(loss, rng, 40)
    u = loss.slope(y, arguments(loss, rng, 40))
    grid = np.concatenate([np.linspace(-60, 60, 40_001), np.geomspace(1e-9, 60, 4001)])[:, None]
    values = u * grid - loss.value(y, grid)
    np.testing.assert_allclose(loss.conjugate(y, u), values.max(axis=0), atol=2e-3)


def test_the_conjugate_is_infinite_outside_its_domain():
    one = np.ones(1)
    outside = [
        (Quantile(0.9), one, 0.11),
        (Quantile(0.9), one, -0.91),
        (Huber(0.5), one, 0.51),
        (Hinge(), one, 0.1),
        (Hinge(), -one, 1.1),
        (Logistic(), one, 0.1),
        (SquaredHinge(), one, 0.1),
        (Poisson(), one, 1.0),
        (PoissonLog(), one, -1.1),
    ]
    for loss, y, u in outside:
        assert loss.conjugate(y, np.array([u]))[0] == np.inf, loss


INVERTIBLE = [Squared(), LOSSES["absolute"](), Quantile(0.9), Huber(0.3), Poisson()]


@pytest.mark.parametrize("loss", INVERTIBLE, ids=repr)
def test_conjugate_slope_and_curvature_are_the_derivatives_of_the_conjugate(loss, rng):
    y, h = targets(loss, rng), 1e-6
    low, high = (side.clip(-3.0, 3.0) for side in loss.slope_range(y))
    u = low + (high - low) * rng.uniform(0.01, 0.95, len(y))
    free = low < high
    for lower, higher in [
        (loss.conjugate, loss.conjugate_slope),
        (loss.conjugate_slope, loss.conjugate_curvature),
    ]:
        numeric = (lower(y, u + h) - lower(y, u - h))[free] / (2 * h)
        np.testing.assert_allclose(higher(y, u)[free], numeric, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_slopes_at_non_negative_values_lie_in_their_range(loss, rng):
    y = targets(loss, rng)
    low, high = loss.slope_range(y)
    u = loss.slope(y, np.abs(arguments(loss, rng)))
    assert np.all((low <= u) & (u <= high))


def test_known_values():
    one = np.ones(1)
    assert Quantile(0.9).value(3 * one, one)[0] == pytest.approx(1.8)
    assert Quantile(0.9).value(one, 3 * one)[0] == pytest.approx(0.2)
    assert Squared().value(3 * one, one)[0] == 4.0
    assert Huber(1.0).value(0 * one, 3 * one)[0] == 2.5
    assert EpsilonInsensitive(0.5).value(0 * one, 2 * one)[0] == 1.5
    assert Hinge().value(-one, 0.5 * one)[0] == 1.5
    assert Logistic().value(one, 0 * one)[0] == pytest.approx(np.log(2))
    assert Poisson().value(one, -one)[0] == np.inf
    assert Poisson().value(0 * one, 0 * one)[0] == 0.0


@given(st.floats(-1e300, 1e300), st.sampled_from([-1.0, 1.0]))
def test_values_stay_free_of_nan_for_any_finite_f(f, label):
    for loss in ALL:
        if isinstance(loss, Own) or (abs(f) > 1e150 and isinstance(loss, Squared | SquaredHinge)):
            continue
        y = np.array([label if isinstance(loss, LABELS) else 1.0])
        assert not np.isnan(loss.value(y, np.array([f]))).any(), loss
        assert not np.isnan(loss.slope(y, np.array([f]))).any(), loss


def test_a_name_a_value_and_an_own_object_all_make_a_loss():
    assert as_loss("huber") == Huber()
    assert as_loss(Huber(2.0)) == Huber(2.0)
    assert isinstance(as_loss(Pinball()), Own)
    with pytest.raises(ValueError, match=r"loss must be one of .*, got .sqared."):
        as_loss("sqared")
    with pytest.raises(ValueError, match="loss must be one of"):
        as_loss(3.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quantile(1.0), "level must be a number between 0 and 1, got 1.0"),
        (lambda: Quantile("a"), "level must be a number between 0 and 1, got 'a'"),
        (lambda: Huber(0.0), "threshold must be a positive finite number, got 0.0"),
        (lambda: EpsilonInsensitive(-1.0), "tube must be a finite number of at least 0, got -1.0"),
        (lambda: Hinge().require(np.array([0.0, 1.0])), "only labels -1 and 1"),
        (lambda: PoissonLog().require(np.array([-1.0])), "Negative values in y"),
    ],
)
def test_bad_parameters_and_targets_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()
