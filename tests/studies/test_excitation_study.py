"""Studies of events that trigger others: what is read, what is held out, what is told."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from hplus import SelfExciting, load, save
from hplus.files.feeds import TableError
from hplus.rates.excitation.bearings import bearings_of, directions_of
from hplus.rates.excitation.factor_law import FactorLaw
from hplus.studies.checked_files import checked
from hplus.studies.events import Reading
from hplus.studies.excitation_facts import direction_facts, variation_facts
from hplus.studies.excitation_holdouts import comparable, predicted_ahead
from hplus.studies.excitation_study import ExcitationStudy
from hplus.studies.expect import grid_regions, whole
from hplus.studies.marked_events import MarkedEvents, read_marked
from hplus.studies.periods import Period
from hplus.studies.plans import plan
from hplus.studies.spans import Amount
from hplus.studies.triggered_counts import (
    brought_up_to,
    draw_futures,
    next_counts,
    period_asked,
    triggered_counts,
)
from hplus.windows import Interval

pytestmark = pytest.mark.usefixtures("coarse_grids")

PERIOD = {"time": "when", "start": "2026-01-11", "end": "2026-07-20"}


@pytest.fixture(scope="module")
def frame(aftershocks):
    return plan(str(aftershocks), ["x", "y"], window=(0, 0, 50, 50), unit="km", **PERIOD)


@pytest.fixture(scope="module")
def in_time(aftershocks):
    return ExcitationStudy(plan(str(aftershocks), **PERIOD)).fit(str(aftershocks))


@pytest.fixture(scope="module")
def in_place(aftershocks, frame):
    return ExcitationStudy(frame, mark="mag").fit(str(aftershocks))


def test_events_before_the_period_are_history(aftershocks, frame, in_place):
    events = read_marked(str(aftershocks), frame, "mag", "kind")
    assert in_place.history_events_ == np.sum(events.X[:, -1] < 0.0) > 0
    assert len(in_place.model_.history_) == len(events.X) == in_place.reading_.kept
    found = in_place.facts()
    assert found["events"] + found["history"] == len(events.X)
    assert set(events.types) == {"east", "west"}


def test_what_is_told_is_near_the_truth(in_time, in_place):
    for study in (in_time, in_place):
        found = study.facts()
        ratio = found["branching"]
        assert 0.2 < ratio["ratio"] < 0.8
        assert ratio["low"] <= ratio["ratio"] <= ratio["high"]
        assert 0.1 < found["delay"]["half"] < 0.5  # 0.21 days
        assert found["certificate"]["gap"] < 1e-4
    assert found["distance"]["half"] == pytest.approx(1.18, rel=0.5)
    assert found["productivity"]["factor"] > 1.0


def test_later_events_are_predicted_better_than_by_poisson_rates(in_place):
    held = in_place.holdout_
    assert held.gain > 2.0 * held.gain_error
    assert held.gain >= held.over_poisson > held.over_poisson_error
    assert "the last 38 days" in held.words.replace("\u00a0", " ")


def test_the_hold_out_is_the_difference_of_log_likelihoods(aftershocks, in_time):
    from hplus.studies.excitation_holdouts import learned_window
    from hplus.windows import Interval

    window, events = in_time.frame.window, read_marked(str(aftershocks), in_time.frame)
    cut = 0.8 * window.high
    early = events.X[:, -1] < cut
    model = in_time.model_.__class__(learned_window(window, cut), random_state=0)
    model.fit(events.X[early])
    later, span = np.sum(~early), Interval(cut, window.high)
    ours = model.log_likelihood(events.X, period=span)
    level = np.sum(early & (events.X[:, -1] >= 0.0)) / cut
    constant = later * np.log(level) - level * span.volume
    assert in_time.holdout_.events == later
    assert in_time.holdout_.gain == pytest.approx((ours - constant) / later, abs=1e-6)
    assert in_time.holdout_.over_poisson == in_time.holdout_.gain  # there are no places


USUAL = (np.linspace(0.5, 99.5, 100), 4.0 + np.arange(100) % 10 / 5, ["a"] * 100)
"""Times, marks and types of events in 100 days."""


def marked(times, marks, types):
    X = np.asarray(times, dtype=float)[:, None]
    return MarkedEvents(X, np.asarray(marks), np.array(types), Reading("", len(X), len(X), {}))


def usual_and(*others):
    return marked(*(np.concatenate(both) for both in zip(USUAL, others, strict=True)))


UNTOLD = {
    "new type": (([85.2, 90.2], [4.0, 5.0], ["b", "c"]), 2),
    "type of history alone": (([-5.0, -3.0, 95.2], [4.0, 5.0, 5.0], ["b", "b", "b"]), 1),
    "far larger mark": (([95.2], [5000.0], ["a"]), 1),
    "marks that are early on another scale": (
        ([10.2, *np.linspace(90.2, 95.2, 5)], [5000.0] * 6, ["a"] * 6),
        5,
    ),
    "type of a far larger mark": (([10.2, 90.2], [5000.0, 4.0], ["b", "b"]), 1),
}


@pytest.mark.parametrize("others", UNTOLD)
def test_events_of_which_earlier_ones_tell_nothing_are_left_out_of_the_hold_out(others):
    rows, left_out = UNTOLD[others]
    plain, mixed = (
        predicted_ahead(SelfExciting(Interval(0.0, 100.0, unit="day")), usual_and(*extra), 0.2)
        for extra in (([],) * 3, rows)
    )
    assert mixed.words == (
        f"{plain.words}, leaving out {left_out} of new types or with far larger marks"
    )
    assert mixed.replace(words=plain.words) == plain


def test_a_type_that_begins_late_and_a_mark_far_beyond_do_not_fail_a_fit(aftershocks, tmp_path):
    lines = aftershocks.read_text().splitlines()
    others = ("2026-07-01T10:00:00,3,3,4.5,north", "2026-07-02T10:00:00,3,3,400,north")
    path = written(tmp_path, *lines[1:], *others[:1], header=lines[0])
    study = ExcitationStudy(plan(path, **PERIOD), kind="kind").fit(path)
    assert study.holdout_.words.endswith(", leaving out 1 of new types")
    assert list(study.model_.types_) == ["east", "north", "west"]
    events = read_marked(
        written(tmp_path, *lines[1:], *others, header=lines[0]), study.frame, "mag"
    )
    kept = comparable(events, events.X[:, -1] < 150.0, 0.0)
    assert events.marks[~kept].tolist() == [400.0]


def test_repeated_addresses_are_spread_before_likelihoods_are_compared(rng):
    from hplus.studies.excitation_holdouts import spread_places
    from hplus.windows import Box, Interval

    places = rng.integers(0, 20, (400, 2)) + 0.5  # a lattice of corners
    X = np.column_stack([places, np.sort(rng.uniform(0, 9, 400))])
    events = MarkedEvents(X, None, None, Reading("", 400, 400, {}))
    window = Box((0.0, 0.0), (20.0, 20.0)) * Interval(0.0, 9.0)
    moved = spread_places(events, window).X
    assert len(np.unique(moved[:, :2], axis=0)) == 400
    assert 0.2 < np.abs(moved[:, :2] - places).max() <= 0.5
    assert spread_places(events, Interval(0.0, 9.0)) is events


def test_what_is_told_of_a_time_to_come_is_what_is_expected_of_it(in_time, in_place):
    for study in (in_time, in_place):
        everywhere = [whole(study.frame)]
        for told, asked in zip(next_counts(study), ("1d", "7d", "28d"), strict=True):
            period = period_asked(study, Amount.parse(asked))
            ((alone,),) = triggered_counts(study, everywhere, [period])
            longer = period_asked(study, Amount.parse("40d"))
            (within,), _ = triggered_counts(study, everywhere, [period, longer])
            assert told.expected == alone == within


def test_counts_of_parts_add_up_and_chances_grow_with_time(in_place):
    end = in_place.frame.clock.end
    day, week = (Period("", 1.0, end, end + n * 86_400.0) for n in (1, 7))
    cells = grid_regions(in_place.frame, (2, 2))
    found = triggered_counts(in_place, [whole(in_place.frame), *cells], [day, week], mark_above=5.5)
    for row in found:
        assert sum(part.expected for part in row[1:]) == pytest.approx(row[0].expected)
        assert all(part.low <= part.expected <= part.high for part in row)
        assert all(part.chance_above <= part.chance for part in row)
    assert found[0][0].chance < found[1][0].chance


def test_a_large_event_since_raises_the_forecast(tmp_path, in_place):
    newer = tmp_path / "newer.csv"
    newer.write_text("when,x,y,mag\n2026-07-20T20:00:00,25,25,7.0\n2026-07-21T23:30:00,2,2,4\n")
    asked = period_asked(in_place, Amount.parse("1d"), "2026-07-21")
    known, reading = brought_up_to(in_place, str(newer), asked.start)
    assert reading.left_out == {"outside the observation period": 1}
    everywhere = [whole(in_place.frame)]
    ((before,),) = triggered_counts(in_place, everywhere, [asked])
    ((after,),) = triggered_counts(in_place, everywhere, [asked], model=known)
    assert after.expected > before.expected + 0.5
    assert len(in_place.model_.history_) == len(known.history_) - 1  # the study stays as it was


def test_simulated_futures_have_marks_and_lie_in_the_period(in_place):
    futures = draw_futures(in_place, 3, Amount.parse("7d"), random_state=0)
    assert len(futures) == 3
    clock = in_place.frame.clock
    for future in futures:
        seconds = future.events.seconds
        assert np.all((clock.end <= seconds) & (seconds < clock.end + 604_800))
        assert future.marks.min() >= 4.0
        assert future.types is None
    (whole_period,) = draw_futures(in_place, random_state=0)
    assert 60 < len(whole_period.marks) < 600


def test_a_saved_study_answers_the_same(tmp_path, in_place):
    save(in_place, tmp_path / "m.hplus", summary=in_place.facts())
    again = load(tmp_path / "m.hplus")
    assert again.facts() == in_place.facts()
    assert again.holdout_ == in_place.holdout_
    X = [[10.0, 10.0, 50.0], [30.0, 20.0, 100.0]]
    np.testing.assert_array_equal(again.model_.predict(X), in_place.model_.predict(X))


def test_expected_counts_by_cell_are_integrals_of_the_conditional_rate(in_place):
    from hplus.rates.excitation.conditional_rate import rate_given
    from hplus.rates.excitation.expected_cells import expected_cells
    from hplus.windows import Box, Interval

    model = in_place.model_
    cells = expected_cells(rate_given(model.rate_, model.history_, 190.0), 0.0, 190.0, (4, 4))
    half = Box((0.0, 0.0), (25.0, 50.0)) * Interval(0.0, 190.0)
    assert cells[:2].sum() == pytest.approx(model.expected_count(half), rel=0.02)
    assert cells.sum() == pytest.approx(
        model.expected_count(in_place.frame.region * Interval(0.0, 190.0)), rel=1e-3
    )


def test_the_rate_fits_its_own_events_and_not_those_of_another_kind(in_place, tmp_path):
    found = in_place.model_.check()
    assert not found.faults
    assert found.count == pytest.approx(found.expected, rel=0.05)
    assert found.places.observed.sum() == found.count
    with pytest.raises(ValueError, match="start must be at least 0, where the window begins"):
        in_place.model_.check(-1.0)
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 2, 40))  # far more than expected, and all in one corner
    stamps = np.datetime64("2026-07-20T00:00:00") + (times * 86_400).astype("timedelta64[s]")
    places = rng.uniform(0, 9, (40, 2))
    lines = [f"{when},{x:.3f},{y:.3f},4.5" for when, (x, y) in zip(stamps, places, strict=True)]
    path = tmp_path / "other.csv"
    path.write_text("when,x,y,mag\n" + "\n".join(lines) + "\n")
    new = checked(in_place, str(path))
    assert new.later
    assert new.check.count == 40
    assert new.check.faults == ("count", "places")
    assert "does not fit" in str(new.check)


def later_events(tmp_path, days):
    """A file of events so many days after the period of the studies."""
    stamps = np.datetime64("2026-07-20") + (np.asarray(days) * 86_400).astype("timedelta64[s]")
    path = tmp_path / "later.csv"
    path.write_text("when\n" + "\n".join(map(str, stamps)) + "\n")
    return str(path)


@pytest.mark.parametrize("count", [8, 30])
def test_far_fewer_events_than_expected_are_rejected(in_time, tmp_path, count):
    days = np.sort(np.random.default_rng(0).uniform(0, 150, count))
    found = checked(in_time, later_events(tmp_path, days))
    assert found.check.expected > 2 * count
    assert "count" in found.check.faults
    assert found.check.verdict.startswith("The rate does not fit, according to count")


def test_a_change_of_level_is_no_gain_over_a_constant_rate(in_time, tmp_path):
    days = np.sort(np.random.default_rng(0).uniform(0, 150, 30))
    found = checked(in_time, later_events(tmp_path, days))
    known, model = float(in_time.model_.observed_until_), copy(in_time.model_)
    X = known + (days * 86_400).astype(int)[:, None] / 86_400
    model.update(X, until=float(X[-1, 0]))
    span = Interval(known, float(X[-1, 0]))
    constant = 30 * np.log(30 / span.volume) - 30
    ours = model.log_likelihood(X, period=span)
    assert found.gain == pytest.approx((ours - constant) / 30, abs=1e-4)
    assert found.gain < 0.0


def test_types_trigger_their_own_kind_most(aftershocks, frame):
    study = ExcitationStudy(plan(str(aftershocks), **PERIOD), kind="kind")
    found = study.fit(str(aftershocks)).facts()
    assert set(found["types"]) == {"east", "west"}
    assert found["holdout"]["gain"] > 0.0
    assert found["types"]["east"]["east"] > found["types"]["east"]["west"]


def written(tmp_path, *lines, header="when,x,y,mag"):
    path = tmp_path / "few.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return str(path)


def test_one_event_has_a_rate(tmp_path):
    path = written(tmp_path, "2026-02-01T10:00:00,1,1,5")
    study = ExcitationStudy(plan(path, **PERIOD)).fit(path)
    assert study.holdout_ is None
    assert study.facts()["events"] == 1
    assert study.model_.check().verdict.startswith("Too few events to tell")
    study = ExcitationStudy(plan(path, ["x", "y"], window=(0, 0, 5, 5), **PERIOD)).fit(path)
    assert study.model_.check().verdict.startswith("Too few events to tell")


def test_rows_without_marks_are_counted(tmp_path):
    rows = [f"2026-02-{d:02d}T10:00:00,1,1,5.{d}" for d in range(1, 20)]
    path = written(tmp_path, *rows, "2026-02-20,1,1,", "2026-02-21,1,1,large")
    events = read_marked(path, plan(path, **PERIOD), "mag")
    assert events.reading.dropped == {"no mag": 1, "mag is not a number": 1}
    assert len(events.X) == 19


def test_a_period_without_events_is_refused(tmp_path):
    path = written(tmp_path, "2025-02-01T10:00:00,1,1,5")
    with pytest.raises(TableError, match="no events from 2026-01-11 to 2026-07-20, only earlier"):
        ExcitationStudy(plan(path, **PERIOD)).fit(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"time": "when", "start": "2026-01-01", "end": "2026-03-01", "cycle": "week"}, "cycle"),
        ({"columns": ["x", "y"], "window": (0, 0, 9, 9)}, "needs a column of times"),
    ],
)
def test_frames_that_do_not_suit_are_refused(tmp_path, words, said):
    path = written(tmp_path, "2026-02-01T10:00:00,1,1,5")
    with pytest.raises(ValueError, match=said):
        ExcitationStudy(plan(path, **words)).fit(path)


def test_dates_are_spread_over_their_day_also_later_ones(tmp_path):
    days = np.datetime64("2026-01-11") + np.repeat(np.arange(60), 2)
    path = written(tmp_path, *(f"{day},1,1,5" for day in days))
    frame = plan(path, time="when", start="2026-01-11", end="2026-02-20")
    assert frame.clock.spread == 86_400.0
    end = frame.clock.end
    early, late = read_marked(path, frame), read_marked(path, frame, span=(end, end + 1e9))
    for events in (early, late):
        times = np.sort(events.X[:, -1])
        assert np.all(np.diff(times) > 0.0)
        assert np.all(np.floor(times) == np.sort(np.floor(events.X[:, -1])))
    assert early.X[:, -1].max() < 40.0 <= late.X[:, -1].min()


@pytest.mark.parametrize("backwards", [False, True])
def test_equal_dates_keep_the_order_of_the_file(tmp_path, backwards):
    days = np.datetime64("2026-01-11") + np.repeat(np.arange(30), 4)
    marks = np.arange(len(days))[:: -1 if backwards else 1]  # the order in which they happened
    rows = zip(days[:: -1 if backwards else 1], marks, strict=True)
    path = written(tmp_path, *(f"{day},1,1,{mark}" for day, mark in rows))
    frame = plan(path, time="when", start="2026-01-11", end="2026-02-20")
    events = read_marked(path, frame, "mag")
    assert np.all(np.diff(events.marks[np.argsort(events.X[:, -1])]) > 0)
    assert 0.3 < np.mean(events.X[:, -1] % 1.0) < 0.7


def test_a_wide_range_of_latitudes_is_warned_of(tmp_path):
    rows = [f"2026-02-{d:02d}T10:00:00,{d},{d},5" for d in range(1, 9)]
    path = written(tmp_path, *rows, header="when,lon,lat,mag")
    frame = plan(path, ["lon", "lat"], window=(0, 0, 20, 80), **PERIOD)
    with pytest.warns(UserWarning, match="Distances are up to 4.4 times too long"):
        ExcitationStudy(frame, holdout=0.0).fit(path)


def test_weeks_of_a_cycle_begin_on_mondays(aftershocks, frame):
    model = ExcitationStudy(frame, cycle="week")._unfitted()
    monday = np.datetime64("2026-01-11T00:00:00") + np.timedelta64(
        round(model.origin * 86_400), "s"
    )
    assert model.cycles == ("week",)
    assert (monday.astype("datetime64[D]").astype(int) + 3) % 7 == 0
    with pytest.raises(ValueError, match="cycle"):
        ExcitationStudy(frame, cycle="moon").fit(str(aftershocks))


@pytest.mark.parametrize(
    ("shape", "told"), [(0.3, "between almost 0 and 4.6"), (5.0, "between 0.4 and 1.8")]
)
def test_how_much_similar_events_differ_is_told_as_a_range_of_means(in_time, shape, told):
    model = copy(in_time.model_)
    model.factor_law_ = FactorLaw(0.05, shape, 0.5, np.inf)
    assert variation_facts(model)["words"] == (
        f"similar events differ: of those expected to trigger 1 other, nine in ten have a true "
        f"mean {told}"
    )


def test_what_lies_along_lines_is_the_share_of_simulated_offspring(in_place):
    model = in_place.model_
    assert direction_facts(model) is None
    assert in_place.facts()["directions"] is None
    turning = copy(model)
    turning.direction_strength_ = 1.0
    directions = directions_of(model.history_, model.effects_, model.trigger_.distances)
    bearings = bearings_of(directions, 1.0)
    weights = model.trigger_.lag_integrals @ model.trigger_.weights[0, 0]
    masses = weights * model.trigger_.distance_integrals
    rng = np.random.default_rng(0)
    event = rng.integers(len(bearings), size=100_000)
    hat = rng.choice(len(masses), size=len(event), p=masses / masses.sum())
    cos, sin, _ = np.moveaxis(bearings[event, hat], -1, 0)
    off = 0.5 * rng.vonmises(0.0, np.hypot(cos, sin))
    found = direction_facts(turning)
    assert found["share"] == pytest.approx(np.mean(np.abs(off) < np.pi / 6), abs=0.005)
    assert found["share"] > 1.0 / 3.0
