"""StreamingIntensity(method="tree"): the batch trees, bit for bit, in any order and any chunks."""

import copy
import pickle
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from hplus import (
    KOMP,
    Box,
    Cycle,
    Gaussian,
    Intensity,
    Interval,
    Polygon,
    StreamingIntensity,
    Tree,
    load,
    save,
)
from hplus.rates import accumulator, statistic
from hplus.rates.accumulator import CellAccumulator
from hplus.rates.statistic import Statistic
from hplus.streaming import stepped_rate
from hplus.streaming.exact_sums import as_float, exact_sum

CORNER = Polygon([(0, 0), (4, 0), (4, 1), (1, 4), (0, 4)])
WINDOWS = {
    "line": Interval(0, 24, unit="h"),
    "week": Cycle(168, unit="h"),
    "box": Box((0, 10), (4, 12), unit="km"),
    "polygon": CORNER,
    "place and hour": CORNER * Cycle(24, unit="h"),
}
ANSWERED = ("line", "week", "box")
"""Windows on which trees are learned in no time."""
every_window = pytest.mark.parametrize("name", WINDOWS)
UNIT = Box((0, 0), (1, 1))


def events(window, n=200, seed=0):
    X = window.sample(3 * n, random_state=seed)
    low, high = window.bounds()
    keep = np.random.RandomState(1).random_sample(len(X)) < ((X - low) / (high - low))[:, 0]
    return X[keep][:n]


@cache
def batch(name):
    return Intensity(WINDOWS[name], model="tree").fit(events(WINDOWS[name]), exposure=2.5)


def streamed(name, order, sizes=(1, 7, 64)):
    """The events in some order, in chunks of different sizes, the last one by one."""
    window, X = WINDOWS[name], events(WINDOWS[name])[order]
    model, at = StreamingIntensity(window, method="tree"), 0
    for n in sizes:
        model.partial_fit(X[at : at + n], exposure=0.5)
        at += n
    for x in X[at:]:
        model.learn_one(x, exposure=1.0 / (len(X) - at))
    return model


def in_three_orders(n=200):
    return np.arange(n), np.arange(n)[::-1], np.random.RandomState(3).permutation(n)


@every_window
def test_any_order_and_any_chunks_are_the_batch_fit_bit_for_bit(name, monkeypatch):
    monkeypatch.setattr(accumulator, "BUFFERED_EVENTS", 50)
    window = WINDOWS[name]
    for order in in_three_orders():
        model = streamed(name, order)
        assert model.statistic_ == Statistic.of(window, events(window))
        assert model._current().exposure == 2.5
    if name not in ANSWERED:
        return
    alike, Z = batch(name), window.sample(40, random_state=9)
    part = window if window.dimension != 2 else Box(window.bounds()[0], (3.0, 11.0))
    np.testing.assert_array_equal(model.predict(Z), alike.predict(Z))
    np.testing.assert_array_equal(model.predict_interval(Z, 0.8), alike.predict_interval(Z, 0.8))
    assert model.expected_count(part) == alike.expected_count(part)
    assert model.count_interval(part) == alike.count_interval(part)
    assert model.score(Z) == alike.score(Z)
    np.testing.assert_array_equal(model.peak()[0], alike.peak()[0])
    ours, theirs = (m.sample(2, random_state=4) for m in (model, alike))
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("most", [7, 60, 2**23])
def test_an_accumulator_is_the_statistic_of_all_events_however_coarse_it_has_to_be(
    most, monkeypatch
):
    monkeypatch.setattr(statistic, "MAX_CELLS", most)
    monkeypatch.setattr(accumulator, "BUFFERED_EVENTS", 16)
    X, units = events(UNIT, 150), np.arange(1, 151) << 18
    for q in (None, units):
        weights = None if q is None else q / 2.0**20
        whole = Statistic.of(UNIT, X, weights)
        for order in in_three_orders(150):
            cells = CellAccumulator(UNIT)
            for part in np.split(order, [1, 5, 40, 41, 130]):
                cells.add(X[part], None if q is None else q[part])
                assert len(cells.statistic().codes) <= most
            assert cells.statistic() == whole
            assert cells.total == whole.total


def test_one_by_one_without_exposure_is_the_same_too():
    X = events(UNIT, 60)
    model = StreamingIntensity(UNIT, method=Tree(random_state=5))
    for x in X:
        model.learn_one(x)
    alike = Intensity(UNIT, model="tree", random_state=5).fit(X)
    np.testing.assert_array_equal(model.predict(X), alike.predict(X))
    assert model.statistic_ == Statistic.of(UNIT, X)
    assert model.status_.events == model.n_atoms_ == 60


def test_sums_are_exact():
    rng = np.random.RandomState(0)
    numbers = np.concatenate([rng.randn(300) * 10.0 ** rng.randint(-300, 300, 300), [5e-324, 0.0]])
    exact = sum(Fraction(x) for x in numbers.tolist())
    assert as_float(exact_sum(numbers)) == float(exact)
    assert exact_sum(numbers) == exact_sum(numbers[:100]) + exact_sum(numbers[100:])


# Forgetting


@pytest.mark.usefixtures("thoroughly")
def test_events_are_forgotten_by_their_own_times_in_any_order():
    X, rng = events(UNIT), np.random.RandomState(0)
    times = 1e6 + np.where(rng.rand(200) < 0.5, 80.0 * rng.rand(200), 77.0 + 3.0 * rng.rand(200))
    Z = UNIT.sample(30, random_state=1)
    found = []
    for order in in_three_orders():
        model = StreamingIntensity(UNIT, method="tree", forget=1.5)
        for part in np.split(order, [3, 50, 51, 160]):
            model.partial_fit(X[part], times=times[part])
        found.append(model)
        np.testing.assert_array_equal(model.predict(Z), found[0].predict(Z))
        assert model.statistic_ == found[0].statistic_
        assert model.effective_events_ == found[0].effective_events_
    weights = np.exp2((times - times.max()) / 1.5)
    assert found[0].expected_count(UNIT) == pytest.approx(weights.sum(), rel=1e-6)
    alike = Intensity(UNIT, model="tree").fit(X, sample_weight=64.0 * weights.clip(1e-6))
    np.testing.assert_allclose(found[0].predict(Z), alike.predict(Z) / 64.0, rtol=0.02)
    assert found[0].statistic_.events < 200  # those of more than 32 half-lives ago are gone


def test_exposure_is_forgotten_like_events():
    X, model = events(UNIT), StreamingIntensity(UNIT, method="tree", forget=5.0)
    times = np.linspace(0.1, 20.0, 200)
    model.partial_fit(X, times=times, exposure=np.diff(times, prepend=0.0))
    seen = np.sum(np.exp2((times - 20.0) / 5.0))
    exposure = 5.0 / np.log(2.0) * (1.0 - 2.0 ** (-20.0 / 5.0))
    assert model.expected_count(UNIT) == pytest.approx(seen / exposure, rel=1e-6)


def test_without_times_what_arrives_last_counts_most():
    X = events(UNIT)
    counted = StreamingIntensity(UNIT, method="tree", forget=10.0).partial_fit(X)
    expected = np.sum(2.0 ** (-np.arange(200) / 10.0))
    assert counted.expected_count(UNIT) == pytest.approx(expected, rel=1e-6)
    one = StreamingIntensity(UNIT, method="tree", forget=10.0)
    for x in X:
        one.learn_one(x)
    assert one.statistic_ == counted.statistic_
    back = StreamingIntensity(UNIT, method="tree", forget=10.0).partial_fit(X[::-1])
    assert back.statistic_ != counted.statistic_
    timed = StreamingIntensity(UNIT, method="tree", forget=10.0)
    timed.partial_fit(X, exposure=20.0).partial_fit([], exposure=10.0)
    ages = 10.0 + 0.1 * np.arange(200)
    rest = 10.0 / np.log(2.0) * (1.0 - 2.0**-3)
    assert timed.expected_count(UNIT) == pytest.approx(np.sum(2.0 ** (-ages / 10.0)) / rest, 1e-6)


# Saved states

ROADS = {
    "saved": lambda model, path: (save(model, path), load(path))[1],
    "pickled": lambda model, path: pickle.loads(pickle.dumps(model)),
    "copied": lambda model, path: copy.deepcopy(model),
    "renamed": lambda model, path: model.set_params(method=Tree()),
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("forget", [None, 3.0])
def test_a_stream_that_was_put_away_goes_on_exactly(road, forget, tmp_path):
    X, times = events(UNIT), None if forget is None else np.linspace(0.0, 60.0, 200)
    whole, model = (StreamingIntensity(UNIT, method=Tree(), forget=forget) for _ in range(2))
    early, late = slice(70), slice(70, None)
    whole.partial_fit(X, times=times)
    model.partial_fit(X[early], times=None if times is None else times[early])
    again = ROADS[road](model, tmp_path / "model.hplus")
    again.partial_fit(X[late], times=None if times is None else times[late])
    assert again.statistic_ == whole.statistic_
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
    save(again, tmp_path / "again.hplus"), save(whole, tmp_path / "whole.hplus")
    assert (tmp_path / "again.hplus").read_bytes() == (tmp_path / "whole.hplus").read_bytes()


def test_what_was_said_of_a_window_is_not_said_again(recwarn):
    world = Box((-180, -90), (180, 90))
    with pytest.warns(UserWarning, match="looks like degrees"):
        model = StreamingIntensity(world, method="tree").partial_fit(events(world, 20))
    model.partial_fit(events(world, 20)).predict([[0.0, 0.0]])
    assert not recwarn


# The door


def begun(**options):
    return StreamingIntensity(UNIT, method="tree", **options).partial_fit(events(UNIT, 9))


BAD = {
    "a kernel": (lambda: begun(kernel=Gaussian(1.0)), "kernel must be .auto. for Tree"),
    "a budget": (lambda: begun(budget=KOMP()), "budget must be .auto. for Tree"),
    "a seed": (lambda: Tree(-1), "random_state must be"),
    "times for nothing": (
        lambda: StreamingIntensity(UNIT, method="tree").partial_fit([[0, 0]], times=[1.0]),
        "times must be None unless",
    ),
    "times for steps": (
        lambda: StreamingIntensity(UNIT, forget=1.0).partial_fit([[0, 0]], times=[1.0]),
        "times must be None unless",
    ),
    "times too few": (
        lambda: StreamingIntensity(UNIT, method="tree", forget=1.0).partial_fit(
            [[0, 0]], times=[1.0, 2.0]
        ),
        "one for each of the 1 events",
    ),
    "times once": (
        lambda: begun(forget=1.0).partial_fit([[0, 0]], times=[1.0]),
        "in every call or in none",
    ),
    "times too large": (
        lambda: StreamingIntensity(UNIT, method="tree", forget=1e-9).partial_fit(
            [[0, 0]], times=[1e9]
        ),
        "count them from a later moment",
    ),
    "another half-life": (
        lambda: begun(forget=1.0).set_params(forget=2.0).partial_fit([[0, 0]]),
        "forget must not change",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, pattern = BAD[case]
    with pytest.raises(ValueError, match=pattern):
        call()


def test_what_other_methods_have_is_refused_and_the_other_way_round():
    trees, steps = begun(), StreamingIntensity(UNIT).partial_fit(events(UNIT, 9))
    for name in ("function_", "dictionary_"):
        with pytest.raises(AttributeError, match="needs a method with atoms, got Tree"):
            getattr(trees, name)
    with pytest.raises(AttributeError, match="statistic_ needs method"):
        _ = steps.statistic_
    for ask in (steps.predict_interval, steps.count_interval):
        with pytest.raises(AttributeError, match=r"needs method=.tree."):
            ask([[0.5, 0.5]])


# Events in order


def test_a_method_with_steps_warns_once_if_events_come_in_order(monkeypatch, recwarn):
    monkeypatch.setattr(stepped_rate, "ORDER_EVENTS", 40)
    X = events(UNIT, 60)
    in_order = X[np.argsort(X[:, 1])]
    for method in ("tree", "refit"):
        StreamingIntensity(UNIT, method=method).partial_fit(in_order)
    StreamingIntensity(UNIT, Gaussian(0.3)).partial_fit(X)
    assert not recwarn
    model = StreamingIntensity(UNIT, Gaussian(0.3)).partial_fit(in_order[:25])
    with pytest.warns(UserWarning, match=r"in order along axis 1 .* use method=.tree."):
        model.partial_fit(in_order[25:50])
    recwarn.clear()
    model.partial_fit(in_order[50:])
    copy.deepcopy(model).partial_fit(in_order)
    assert not recwarn
