"""A stream as a study: the answers of the batch trees, whatever the order of its lines."""

import math

import numpy as np
import pytest

from hplus import Box, Cycle, Intensity, Interval, SeparableIntensity
from hplus.rates.cell_margins import margin
from hplus.rates.statistic import Statistic
from hplus.studies.expect import expect, whole
from hplus.studies.frames import Frame
from hplus.studies.periods import Period
from hplus.studies.spans import Amount, Clock
from hplus.studies.stream_answers import answering, times_of_cycle
from hplus.studies.streams import StreamStudy

START = 1_767_571_200.0  # a Monday
WEEKS = Clock("at", START, START + 1e8, "week")
AREA = Box((0, 0), (4, 2), unit="km")
FRAMES = {
    "places": Frame(("x", "y"), AREA),
    "hours": Frame((), None, None, WEEKS),
    "both": Frame(("x", "y"), AREA, None, WEEKS),
    "a line of times": Frame((), None, None, Clock("at", START, START + 40 * 86_400.0)),
}
LAST = START + 25.5 * 86_400.0


def rows(n=150, seed=0):
    rng = np.random.RandomState(seed)
    at = START + np.append(np.floor(25.0 * 86_400.0 * rng.rand(n - 1)), LAST - START)
    return np.column_stack([4.0 * rng.rand(n) ** 2, 2.0 * rng.rand(n), at])


def lines(table):
    return b"x,y,at\n" + b"".join(b"%.4f,%.4f,%d\n" % tuple(row) for row in table)


def taken(name, table=None, **options):
    data = lines(rows() if table is None else table)
    return StreamStudy(FRAMES[name], **options).take(data)


def points(name, table):
    frame, places = FRAMES[name], np.round(table[:, :2], 4)[:, : len(FRAMES[name].columns)]
    return (
        places if frame.clock is None else np.column_stack([places, frame.clock.axis(table[:, 2])])
    )


def batch(name):
    """The same events in memory."""
    frame, X = FRAMES[name], points(name, rows())
    window, over = frame.window, 1.0
    if frame.clock is not None:
        observed = frame.clock.replace(end=np.nextafter(LAST, np.inf))
        over = lambda Z: observed.exposure_at(Z[:, -1])  # noqa: E731
    if name == "a line of times":
        over = lambda Z: (Z[:, -1] <= 25.5).astype(float)  # noqa: E731
    if name == "both":
        both = Statistic.of(window, X)
        parts = margin(both, AREA, (0, 1)), margin(both, window.right, (2,))
        return SeparableIntensity(window, model="tree").fit(parts, exposure=over)
    return Intensity(window, model="tree").fit(X, exposure=over)


@pytest.mark.parametrize("name", FRAMES)
def test_a_stream_answers_like_the_batch_trees_of_the_same_events(name):
    found, alike = answering(taken(name)), batch(name)
    Z = FRAMES[name].window.sample(30, random_state=2)
    np.testing.assert_array_equal(found.model_.predict(Z), alike.predict(Z))
    assert found.reading_.kept == 150
    assert found.facts()["expected"] == alike.expected_count(FRAMES[name].window)


@pytest.mark.parametrize("forget", [None, Amount(1.0, "week")])
@pytest.mark.parametrize("name", ["hours", "both"])
def test_the_order_of_lines_does_not_matter(name, forget):
    table = rows()
    found = [
        answering(taken(name, table[order], forget=forget))
        for order in (slice(None), slice(None, None, -1))
    ]
    Z = FRAMES[name].window.sample(20, random_state=2)
    np.testing.assert_array_equal(*(study.model_.predict(Z) for study in found))
    assert found[0].exposure_ == found[1].exposure_
    assert found[0].reading_ == found[1].reading_


def test_a_half_life_weighs_events_and_weeks_alike():
    table = np.vstack([rows(400, seed) for seed in (1, 2)])
    late = table[(table[:, 2] - START) / 604_800.0 > 2.0]
    study = taken("hours", np.vstack([table, late, late]), forget=Amount(2.0, "day"))
    ages = (LAST - np.vstack([table, late, late])[:, 2]) / 172_800.0
    cycles = 2.0 / 7.0 / math.log(2.0) * (1.0 - 2.0 ** (-25.5 / 2.0))
    assert study.total_exposure.amount == pytest.approx(cycles, rel=1e-9)
    assert study.rate == pytest.approx(np.exp2(-ages).sum() / cycles, rel=1e-5)
    found = answering(study)
    week = Period("", 1.0, LAST, LAST + 604_800.0)
    expected = expect(found, [whole(found.frame)], week)[0].expected
    # three times as many a week in the end as at first
    assert expected == pytest.approx(3 * 800 / 25.5 * 7, rel=0.25)


def test_a_line_of_times_that_forgets_is_not_lower_at_first():
    table = np.vstack([rows(400, seed) for seed in range(4)])
    found = answering(taken("a line of times", table, forget=Amount(4.0, "day")))
    early, late = found.model_.expected_count([Interval(5, 10), Interval(20, 25)])
    assert early == pytest.approx(1600 / 25.0 * 5.0, rel=0.2)
    assert late == pytest.approx(1600 / 25.0 * 5.0, rel=0.1)


def test_hours_come_by_as_often_as_they_are_counted():
    hours, latest = np.linspace(0.0, 167.9, 41), START + 17.3 * 86_400.0
    observed = WEEKS.replace(end=latest)
    counted = times_of_cycle(WEEKS, hours, latest, math.inf)
    np.testing.assert_array_equal(counted, observed.exposure_at(hours))
    moments = START + 3600.0 * hours + 604_800.0 * np.arange(3)[:, None]
    weights = np.where(moments <= latest, np.exp2((moments - latest) / 4e5), 0.0)
    np.testing.assert_allclose(
        times_of_cycle(WEEKS, hours, latest, 4e5), weights.sum(axis=0), rtol=1e-9
    )

    # nothing is forgotten in a half-life of longer than there was time
    np.testing.assert_allclose(times_of_cycle(WEEKS, hours, latest, 1e30), counted)


@pytest.mark.parametrize("name", ["hours", "both", "a line of times"])
def test_events_with_times_are_not_forgotten_by_their_number(name):
    with pytest.raises(ValueError, match="forget must be a time such as 8w beside time=, got 50"):
        taken(name, forget=Amount(50.0))


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 61.0)])
def test_a_margin_is_the_statistic_of_some_axes(weights):
    window = Box((0, 0), (3, 1), unit="km") * Cycle(24, unit="h")
    X = window.sample(60, random_state=3)
    both = Statistic.of(window, X, weights)
    for part, axes in ((window.left, (0, 1)), (window.right, (2,)), (Interval(0, 3), (0,))):
        alone = Statistic.of(part, X[:, list(axes)], weights).coarsened(both.depth)
        assert margin(both, part, axes) == alone


def test_what_a_stream_cannot_answer_is_said():
    with pytest.raises(ValueError, match=r"a stream answers if method=.tree., got 'spppot'"):
        answering(taken("places", method="spppot"))
    with pytest.raises(ValueError, match="must hold events to answer"):
        answering(StreamStudy(FRAMES["places"]).take(b"x,y\n9,9\n"))
    with pytest.raises(ValueError, match="got events at 2026-01-05 only"):
        answering(taken("hours", np.array([[1.0, 1.0, START]])))
