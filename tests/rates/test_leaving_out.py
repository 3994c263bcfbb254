"""The rate at an event if it had not been learned from, beside fits that really leave it out."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Gaussian, Intensity, Interval
from hplus.rates.stacked_rate import StackedRate

LINE, SQUARE = Interval(0.0, 1.0), Box([0.0, 0.0], [1.0, 1.0])


def spot_on_a_hill():
    rng = np.random.default_rng(1)
    return np.append(rng.beta(2.0, 4.0, 60), rng.uniform(0.80, 0.82, 20))[:, None]


def crowd_and_strays():
    """300 events at one place, then 30 anywhere."""
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0.5, 0.02, (300, 2)), rng.uniform(0.0, 1.0, (30, 2))])


CASES = {
    "exp": (Intensity(LINE, kernel=Gaussian(0.1), penalty=0.1), spot_on_a_hill, range(0, 80, 10)),
    "tree": (Intensity(LINE, model="tree", random_state=0), spot_on_a_hill, range(0, 80, 10)),
    "strays": (Intensity(SQUARE, model="tree", random_state=0), crowd_and_strays,
               range(300, 330, 5)),
}  # fmt: skip


@pytest.mark.usefixtures("thoroughly")
@pytest.mark.parametrize("name", CASES)
def test_the_rate_without_an_event_is_that_of_a_fit_to_the_others(name):
    model, events, some = CASES[name]
    X = events()
    rate = model.fit(X).rate_
    near, inside = np.log(rate.without(X[some])), np.log(rate.function(X[some]))
    without = [np.log(model.fit(np.delete(X, i, axis=0)).predict(X[i : i + 1])[0]) for i in some]
    learned = np.mean(inside - without)
    assert learned > 0.05
    assert abs(np.mean(near - without)) < max(0.15 * learned, 0.03)


def test_a_stack_without_an_event_is_the_stack_of_its_parts_without_it():
    X = spot_on_a_hill()
    parts = tuple(
        (w, Intensity(LINE, model="tree", random_state=k).fit(X).rate_)
        for k, w in enumerate((0.3, 0.7))
    )
    each = [w * rate.without(X) for w, rate in parts]
    stack = StackedRate(smooth=None, parts=parts)
    np.testing.assert_allclose(stack.without(X), np.sum(each, axis=0))
