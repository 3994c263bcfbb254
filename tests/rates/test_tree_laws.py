"""What holds of a rate by trees on every window, and of odd events."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_windows import WINDOWS, events, planar_axis, random_boxes, random_polygons

from hplus import Box, Intensity, Interval, Polygon, Statistic, load, save
from hplus.windows import Cycle

pytestmark = pytest.mark.skipif(
    "HPLUS_SLOW" not in os.environ, reason="takes minutes: set HPLUS_SLOW to run it"
)

every_window = pytest.mark.parametrize("name", WINDOWS)
FLAT = [name for name, window in WINDOWS.items() if window.dimension == 1]
CASES = [*((name, "tree") for name in WINDOWS), *((name, "auto") for name in FLAT)]


@pytest.mark.parametrize(("name", "model"), CASES)
@given(seed=st.integers(0, 2**32), exposure=st.floats(1e-3, 1e3), n=st.integers(1, 120))
@settings(max_examples=3)
def test_a_rate_is_finite_and_its_parts_add_up(name, model, seed, exposure, n):
    window, rng = WINDOWS[name], np.random.default_rng(seed)
    X = events(name)[rng.integers(len(events(name)), size=n)]
    m = Intensity(window, model=model).fit(X, exposure=exposure)
    rates = m.predict(np.concatenate([X, window.sample(100, random_state=0)]))
    assert np.all(np.isfinite(rates))
    assert np.all(rates >= 0.0)
    total = n / exposure
    assert m.expected_count(window) == pytest.approx(total, rel=1e-6)
    boxes = random_boxes(window, rng)
    assert m.expected_count(boxes).sum() == pytest.approx(m.expected_count(window), rel=1e-8)
    if planar_axis(window) is not None:
        parts = random_polygons(window, rng)
        assert m.expected_count(parts).sum() == pytest.approx(total, rel=1e-6)


@every_window
def test_samples_of_a_fit_recover_it(name):
    window = WINDOWS[name]
    m = Intensity(window, model="tree").fit(events(name), exposure=0.05)
    (X,) = m.sample(random_state=0)
    assert window.contains(X).all()
    again = Intensity(window, model="tree").fit(X)
    boxes = random_boxes(window, np.random.default_rng(1))
    counts, seen = m.expected_count(boxes), again.expected_count(boxes)
    assert np.all(np.abs(seen - counts) < 5.0 * np.sqrt(counts + 1.0) + 0.02 * counts.sum())
    # what it says of the events that it was learned from, compared with a constant rate
    gain = m.score(events(name)) + np.log(window.volume)
    assert again.score(events(name)) + np.log(window.volume) > 0.7 * gain > 0.0


@pytest.mark.parametrize("parts", [2, 7, 64])
@every_window
def test_a_fit_is_the_same_whatever_the_parts(name, parts, tmp_path):
    window, X, rng = WINDOWS[name], events(name), np.random.default_rng(parts)
    weights = 10.0 ** rng.uniform(-5, 5, len(X))
    order = rng.permutation(len(X))
    pieces = [Statistic.of(window, X[i], weights[i]) for i in np.array_split(order, parts)]
    total = pieces[0]
    for piece in pieces[1:]:
        total = piece + total
    one, other = (
        Intensity(window, model="tree").fit(s) for s in (Statistic.of(window, X, weights), total)
    )
    places = window.sample(50, random_state=0)
    save(other, tmp_path / "m")
    for m in (other, load(tmp_path / "m")):
        np.testing.assert_array_equal(m.predict(places), one.predict(places))
        assert m.expected_count(window) == one.expected_count(window)


def lattice(n):
    axis = (np.arange(n) + 0.5) / n
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


RNG, SQUARE, LINE = np.random.default_rng(0), Box((0, 0), (1, 1)), Interval(0, 1)
HUGE, TRIANGLE = Box((-1e6, -1e6), (1e6, 1e6)), Polygon([[0, 0], [1, 0], [0, 1]])
HOUR = Interval(1.7e9, 1.7e9 + 3600)
ODD = {
    "all equal": (SQUARE, np.full((50, 2), 0.3), None),
    "two positions": (SQUARE, np.repeat([[0.3, 0.3], [0.7, 0.6]], 30, axis=0), None),
    "3 x 3": (SQUARE, np.repeat(lattice(3), 20, axis=0), None),
    "5 x 5": (SQUARE, lattice(5)[RNG.integers(25, size=400)], None),
    "5 x 5, once each": (SQUARE, lattice(5), None),
    "one in a huge window": (HUGE, [[3.0, 4.0]], None),
    "a window far larger": (HUGE, RNG.normal(size=(300, 2)), None),
    "an interval far larger": (Interval(-1e9, 1e9), RNG.normal(size=(300, 1)), None),
    "a sliver": (SQUARE, [0.3, 0.0] + RNG.random((200, 2)) * [1e-9, 1.0], None),
    "a sliver of a line": (LINE, 0.3 + 1e-9 * RNG.random((200, 1)), None),
    **{f"{n} in the plane": (SQUARE, RNG.random((n, 2)), None) for n in range(1, 6)},
    **{f"{n} on a line": (LINE, RNG.random((n, 1)), None) for n in range(1, 6)},
    "two weights": (SQUARE, [[0.2, 0.3], [0.7, 0.7]], [1e-5, 1e5]),
    "two weights on a line": (LINE, [[0.2], [0.7]], [1e-5, 1e5]),
    "weights of ten orders": (SQUARE, RNG.random((90, 2)), 10.0 ** RNG.uniform(-5, 5, 90)),
    "a tiny line": (Interval(0, 1e-300), 1e-300 * RNG.random((60, 1)), None),
    "a huge line": (Interval(0, 1e300), 1e300 * RNG.random((60, 1)), None),
    "on the border": (SQUARE, [[0, 0], [1, 1], [0, 1], [1, 0], [0.5, 1], [1, 0.5]], None),
    "on a polygon": (TRIANGLE, [[0, 0], [1, 0], [0, 1], [0.5, 0.5], [0, 0.5]], None),
    "sides 1 to 1e6": (Box((0, 0), (1e6, 1)), RNG.random((100, 2)) * [1e6, 1], None),
    "seconds": (HOUR, 1.7e9 + 3600 * RNG.random((200, 1)), None),
    "whole seconds": (HOUR, 1.7e9 + RNG.integers(0, 3600, (500, 1)), None),
    "ends of a cycle": (Cycle(24.0), [[0.0], [24.0], [23.999], [0.001]], None),
    "equal in 3-d": (Box((0, 0, 0), (1, 1, 1)), np.full((40, 3), 0.5), None),
}
AUTO = [name for name, (window, _, _) in ODD.items() if window.dimension == 1]


@pytest.mark.parametrize(
    ("name", "model"), [*((name, "tree") for name in ODD), *((name, "auto") for name in AUTO)]
)
def test_odd_events_have_a_rate(name, model):
    window, X, weights = ODD[name]
    m = Intensity(window, model=model).fit(X, sample_weight=weights)
    places = np.concatenate([np.asarray(X, float), window.sample(50, random_state=0)])
    rates, (low, high) = m.predict(places), m.predict_interval(places)
    for values in (rates, low, high):
        assert np.all(np.isfinite(values) & (values >= 0.0))
    assert np.all(low <= high)
    total = len(X) if weights is None else np.sum(weights)
    assert m.expected_count(window) == pytest.approx(total, rel=1e-5)
    least, most = m.count_interval(window)
    assert least <= total <= most
    assert np.isfinite(m.score(X))
    assert m.peak()[1] > 0.0
    if total < 1e4:
        assert all(window.contains(x).all() for x in m.sample(2, random_state=0))


@pytest.mark.parametrize(("weight", "rule"), [(1e-7, "above 2^-21"), (1e14, "less than 2^43")])
def test_weights_beyond_the_fixed_point_are_refused(weight, rule):
    with pytest.raises(ValueError, match="sample_weight must") as caught, warnings.catch_warnings():
        Intensity(LINE, model="tree").fit([[0.2], [0.7]], sample_weight=[1.0, weight])
    assert rule in str(caught.value) or "2^" in str(caught.value)
