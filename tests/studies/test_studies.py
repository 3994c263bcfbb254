"""Studies of events: frames, clocks, one pass over a file, hold-outs."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import EventStudy, Interval, load, save
from hplus.files import tables
from hplus.files.feeds import TableError
from hplus.rates.row_keys import row_keys
from hplus.rates.statistic import Statistic
from hplus.studies.event_samples import EventSample
from hplus.studies.expect import expect, grid_regions, whole
from hplus.studies.periods import cut, time_asked
from hplus.studies.plans import plan
from hplus.studies.ranges import window_around
from hplus.studies.spans import Amount, Clock, moment, phases, seconds_of
from hplus.studies.time_spreads import spread_counts
from hplus.windows import Cycle, Polygons

pytestmark = pytest.mark.usefixtures("coarse_grids")


@pytest.mark.parametrize(
    ("text", "want"),
    [("365d", Amount(365, "day")), ("1.5 h", Amount(1.5, "h")), ("82 games", Amount(82, "game")),
     ("7", Amount(7)), ("2weeks", Amount(2, "week")), ("90 min", Amount(90, "min"))],
)  # fmt: skip
def test_amounts_are_read_as_people_write_them(text, want):
    assert Amount.parse(text) == want


def test_times_can_be_turned_into_one_another_and_games_cannot():
    assert Amount(7, "day").to("week") == 1.0
    with pytest.raises(
        ValueError, match="must be a length of time such as 7d or 12h here, got 3 games"
    ):
        Amount(3, "game").to("week")


def test_a_week_begins_on_monday():
    clock = Clock("t", 0.0, 1e9, "week")
    hours = clock.axis(
        np.array([seconds_of("t", day) for day in ("2026-11-16", "2026-11-22 23:00")])
    )
    np.testing.assert_allclose(hours, [0.0, 167.0])
    assert clock.words(hours) == ["Mon 00:00", "Sun 23:00"]


@pytest.mark.parametrize("hours", [1.0, 23.5, 24.0, 30.0, 168.0, 500.0])
@pytest.mark.parametrize("cycle", ["day", "week"])
def test_the_parts_of_a_cycle_last_as_long_as_the_time_they_stand_for(cycle, hours):
    clock = Clock("t", 0.0, 1e9, cycle)
    parts = phases(clock, seconds_of("t", "2026-11-18 21:00"), 3600 * hours)
    assert sum((b - a) * times for a, b, times in parts) == pytest.approx(hours)
    assert all(0 <= a < b <= (24 if cycle == "day" else 168) for a, b, _ in parts)


def test_rounded_times_are_spread_over_their_hour_and_keep_their_count():
    clock = Clock("t", 0.0, 1e9, "day", spread=3600.0)
    noon = Statistic.of(clock.window, np.full((1000, 1), 12.0))
    spread = spread_counts(clock, noon)
    moved = np.repeat(spread.lattice.centers(spread.codes, spread.depth)[:, 0], spread.counts)
    assert (moved.min() >= 11.5, moved.max() <= 12.5, len(moved)) == (True, True, 1000)
    np.testing.assert_allclose(np.histogram(moved, 10, (11.5, 12.5))[0], 100, atol=2)


def test_spread_times_of_different_minutes_are_not_aligned():
    """Equal gaps, over and over, would look like events in pairs."""
    clock = Clock("t", 0.0, 1e9, "day", spread=1800.0)
    minutes = np.random.RandomState(0).randint(1440, size=20_000)[:, None] / 60.0
    spread = spread_counts(clock, Statistic.of(clock.window, minutes))
    gaps = np.sort(np.diff(spread.lattice.centers(spread.codes, spread.depth)[:, 0]))
    assert np.mean(np.diff(gaps[:2000]) < 1e-12) < 0.01


def test_a_sample_is_bounded_and_fair():
    sample = EventSample(1, most=1000)
    for start in range(0, 10_000, 500):
        at = np.arange(start, start + 500.0)
        sample.add(at[:, None], at, None, row_keys(at[:, None]))
    drawn = sample.draw(0)
    assert 400 < len(drawn.X) <= 1000
    assert np.array_equal(drawn.X[:, 0], drawn.seconds)
    assert abs(drawn.X.mean() - 5000) < 5 * 2900 / np.sqrt(len(drawn.X))


def kept_of(at, parts, looked_at, **words):
    """How often a sample was halved, and its rows, if they came in parts that were looked at."""
    sample = EventSample(1, most=1000, **words)
    for part in np.array_split(at, parts):
        other = sample.another()
        other.add(part[:, None], part, None, row_keys(part[:, None]))
        if looked_at:
            other.kept()
            sample.kept()
        sample.absorb(other)
    return sample.halvings, sample.kept().rows.tolist()


@pytest.mark.parametrize("words", [{}, {"all_or_none": True}])
@pytest.mark.parametrize("rows", [900, 1001, 1500, 1900, 5000])
def test_what_a_sample_keeps_does_not_depend_on_when_it_was_looked_at(rows, words):
    """Rows that had been put in order were no longer counted among those that are too many."""
    at = np.random.RandomState(0).permutation(rows).astype(float)
    found = [kept_of(at, parts, looked, **words) for parts in (1, 2, 7) for looked in (0, 1)]
    assert all(other == found[0] for other in found)
    assert (found[0][0] > 0) == (rows > 1000)


def test_of_rows_that_are_only_of_use_together_all_or_none_are_kept():
    at = np.arange(1500.0)
    assert kept_of(at, 3, False, all_or_none=True) == (1, [])
    assert len(kept_of(at[:1000], 3, False, all_or_none=True)[1]) == 1000


def test_the_window_that_is_proposed_holds_the_data():
    low, high = np.array([-74.2491, 40.4989]), np.array([-73.7004, 40.9129])
    numbers = window_around(low, high)
    assert (numbers[:2] <= low).all()
    assert (numbers[2:] >= high).all()
    assert np.subtract(numbers[2:], numbers[:2]) == pytest.approx(high - low, rel=0.1)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Calls at a steady place, mostly in the evening, of 30 days."""
    folder, rng = tmp_path_factory.mktemp("calls"), np.random.RandomState(0)
    hours = rng.normal(19.2, 2.5, 600) % 24 + 24 * rng.randint(30, size=600)
    stamps = np.datetime64("2026-01-01T00:00:00") + (3600 * hours).astype("timedelta64[s]")
    rows = "\n".join(f"{t},{x:.4f}" for t, x in zip(stamps, rng.beta(2, 2, 600), strict=True))
    (folder / "calls.csv").write_text(f"when,x\n{rows}\n")
    return folder / "calls.csv"


@pytest.fixture(scope="module")
def frame(calls):
    return plan(str(calls), ("x",), window=(0, 1), unit="km", time="when",
                start="2026-01-01", end="2026-01-31", cycle="day")  # fmt: skip


@pytest.fixture(scope="module")
def study(calls, frame):
    return EventStudy(frame).fit(str(calls))


def test_places_and_times_of_a_cycle_are_per_cycle(study, frame):
    assert study.exposure_ == Amount(30.0, "day")
    assert study.reading_.kept == 600
    (day,) = expect(study, [whole(frame)], time_asked(study, None, "2026-01-10"))
    assert day.expected == pytest.approx(20.0, rel=1e-6)
    time = time_asked(study, Amount(1, "week"), "2026-01-10")
    week = expect(study, grid_regions(frame, (4,)), time)
    assert sum(part.expected for part in week) == pytest.approx(140.0, rel=1e-6)


def test_evenings_are_busier_than_mornings(study, frame):
    evening = time_asked(study, Amount(4, "h"), "2026-03-01 18:00")
    morning = time_asked(study, Amount(4, "h"), "2026-03-01 05:00")
    late, early = (expect(study, [whole(frame)], time)[0].expected for time in (evening, morning))
    assert late > 10 * early


def test_the_hold_out_says_what_was_gained(study):
    held = study.holdout_
    assert 80 < held.events < 160
    assert held.gain > 5 * held.gain_error > 0
    assert held.over_kde == pytest.approx(held.gain - held.kde_gain)
    assert not held.check.faults


def test_two_jobs_and_chunks_of_any_size_give_the_same_study(study, calls, frame, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2000)
    again = EventStudy(frame, n_jobs=2).fit(str(calls))
    X = frame.window.sample(20, 0)
    np.testing.assert_array_equal(again.model_.predict(X), study.model_.predict(X))
    assert again.holdout_ == study.holdout_


def test_a_study_can_be_kept_whole(study, tmp_path):
    save(study, tmp_path / "study.hplus")
    again = load(tmp_path / "study.hplus")
    X = study.frame.window.sample(20, 0)
    np.testing.assert_array_equal(again.model_.predict(X), study.model_.predict(X))
    assert (again.frame, again.holdout_) == (study.frame, study.holdout_)
    assert again.reading_ == study.reading_


def test_longitude_and_latitude_become_kilometres_in_either_order(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("lat,lon\n40.7,-74\n40.8,-73.9\n")
    first = plan(str(path), ("lon", "lat"), window=(-74.2, 40.5, -73.7, 40.9))
    second = plan(str(path), ("lat", "lon"), window=(40.5, -74.2, 40.9, -73.7))
    assert first == second
    assert first.window.volume == pytest.approx(55.6 * np.cos(np.radians(40.7)) * 44.5, rel=0.01)
    assert first.window.unit == "km"
    assert first.describe(first.window.bounds()[0])[0] == {"lon": -74.2, "lat": 40.5}
    plain = plan(str(path), ("lon", "lat"), window=(-74.2, 40.5, -73.7, 40.9), lonlat=False)
    assert plain.window.volume == pytest.approx(0.2)


def test_a_window_may_be_an_array(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x,y\n0.5,0.5\n")
    frame = plan(str(path), ("x", "y"), window=np.array([0.0, 0.0, 1.0, 2.0]))
    assert frame == plan(str(path), ("x", "y"), window=(0, 0, 1, 2))


@pytest.mark.parametrize(
    "words", [{"zone": "Nowhere/Land"}, {"form": "%Y"}, {"cycle": "day"}, {"end": "2026-01-01"}]
)
def test_arguments_about_times_need_a_column_of_times(calls, words):
    with pytest.raises(ValueError, match="origin= need a column of times"):
        plan(str(calls), ("x",), window=(0, 1), **words)


def test_events_outside_the_observation_period_are_reported_with_the_range_of_the_data(calls):
    late = plan(str(calls), time="when", start="2027-01-01", end="2027-02-01")
    span = "data span start='2026-01-01T13:00:00', end='2026-01-31'"
    with pytest.raises(TableError, match=span):
        EventStudy(late).fit(str(calls))


@pytest.mark.parametrize(
    ("exposure", "expected", "words"),
    [
        (None, 600.0, "the observation period"),
        (Amount.parse("5"), 120.0, "one unit of exposure"),
        (Amount.parse("5 games"), 120.0, "one game"),
    ],
)
def test_counts_are_for_the_exposure_that_is_said(calls, exposure, expected, words):
    frame = plan(str(calls), ("x",), window=(0, 1))
    study = EventStudy(frame, exposure, holdout=0.0).fit(str(calls))
    time = time_asked(study, None)
    assert time.words == words
    assert expect(study, [whole(frame)], time)[0].expected == pytest.approx(expected, rel=1e-6)


def test_counts_of_a_time_say_for_which_exposure_they_are(calls):
    frame = plan(str(calls), time="when", start="2026-01-01", end="2026-01-31")
    study = EventStudy(frame, Amount(5.0), holdout=0.0).fit(str(calls))
    time = time_asked(study, None, "2026-01-02", "2026-01-03")
    assert time.words == "2026-01-02 to 2026-01-03, in one unit of exposure"
    assert time.seconds == 86_400.0
    (day,) = expect(study, [whole(frame)], time)
    assert day.expected == pytest.approx(study.model_.expected_count(Interval(1.0, 2.0)))


def test_a_map_of_the_world_goes_round(tmp_path):
    path = tmp_path / "world.csv"
    path.write_text("lon,lat\n1,2\n")
    frame = plan(str(path), ("lon", "lat"), window=(-180, -90, 180, 90))
    assert isinstance(frame.window.left, Cycle)
    assert frame.window.volume == pytest.approx(4 * np.pi * 6371.0072**2)


def test_a_region_that_sticks_out_to_the_west_is_not_turned_inside_out(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("lon,lat\n-74,40\n")
    frame = plan(str(path), ("lon", "lat"), window=(-74, 40, -73.9, 40.1))
    box = [np.array([[-74.05, 40], [-73.98, 40], [-73.98, 40.1], [-74.05, 40.1]])]
    low, high = frame.window_of([tuple(box)]).bounds()
    assert low[0] < 0 < high[0] < frame.window.bounds()[1][0]


def test_hours_that_were_observed_more_often_are_not_busier(tmp_path):
    stamps = np.arange(
        "2026-01-05T00:07", "2026-01-15T00:07", 24, "datetime64[m]"
    )  # Monday, 10 days
    path = tmp_path / "steady.csv"
    path.write_text("when\n" + "\n".join(map(str, stamps)) + "\n")
    frame = plan(str(path), time="when", start="2026-01-05", end="2026-01-15", cycle="week")
    days = expect(
        study := EventStudy(frame, holdout=0.0).fit(str(path)),
        [whole(frame)],
        cut(time_asked(study, Amount(1.0, "week")), 7),
    )
    np.testing.assert_allclose([day.expected for day in days], 60.0, rtol=0.1)


def test_regular_times_are_not_taken_as_rounded_to_hours(tmp_path):
    path = tmp_path / "quarters.csv"
    stamps = np.arange("2026-01-05T00:00", "2026-01-08T00:00", 15, "datetime64[m]")
    path.write_text("when\n" + "\n".join(map(str, stamps)) + "\n")
    frame = plan(str(path), time="when", start="2026-01-05", end="2026-01-08", cycle="day")
    assert frame.clock.spread == 900.0


def test_a_cycle_must_be_observed_in_full():
    with pytest.raises(ValueError, match="must last at least a week"):
        Clock("t", 0.0, 86400.0, "week")


def test_islands_are_one_window(tmp_path):
    path, outlines = tmp_path / "points.csv", tmp_path / "islands.csv"
    path.write_text("x,y\n0.5,0.5\n")
    outlines.write_text("part,x,y\na,0,0\na,1,0\na,1,1\nb,5,5\nb,6,5\nb,6,6\n")
    frame = plan(str(path), ("x", "y"), within=str(outlines), unit="km")
    assert isinstance(frame.window, Polygons)
    assert frame.window.volume == pytest.approx(1.0)


def test_moments_are_as_short_as_they_can_be():
    assert moment(seconds_of("t", "2026-11-16")) == "2026-11-16"
    assert moment(seconds_of("t", "2026-11-16 08:30")) == "2026-11-16T08:30:00"
    assert Clock("t", 0.0, 86400.0 * 10).window == Interval(0, 10, unit="day")


def test_rows_that_are_in_a_file_twice_are_told(tmp_path):
    rng = np.random.default_rng(0)
    times = np.datetime64("2026-01-05") + rng.integers(0, 86_400_000 * 60, 200).astype("m8[ms]")
    frame = plan({"when": times}, time="when", start="2026-01-05", end="2026-03-06")
    once, twice = (
        EventStudy(frame, model="exp", holdout=0.0).fit({"when": when}).facts()["copies"]
        for when in (times, np.tile(times, 2))
    )
    assert once == ""
    assert twice.replace("\u00a0", " ").startswith("50 % of the events are exact copies of others")


def test_very_many_different_times_are_no_copies(monkeypatch):
    monkeypatch.setattr("hplus.studies.split_events.MAX_SAMPLE", 500)
    rng = np.random.default_rng(0)
    times = np.datetime64("2026-01-05") + np.unique(rng.integers(0, 86_400_000 * 60, 2000)).astype(
        "m8[ms]"
    )
    frame = plan({"when": times}, time="when", start="2026-01-05", end="2026-03-06")
    study = EventStudy(frame, model="tree", holdout=0.0).fit({"when": times})
    assert study.reading_.copies == 0.0


def test_a_rate_that_is_constant_has_no_busiest_hour(tmp_path):
    rng = np.random.default_rng(0)
    times = np.datetime64("2026-01-05") + rng.integers(0, 86_400_000 * 60, 300).astype("m8[ms]")
    table = {"when": times, "x": rng.beta(2, 5, 300)}
    given = {"time": "when", "start": "2026-01-05", "end": "2026-03-06", "cycle": "day"}
    study = EventStudy(plan(table, ["x"], window=(0, 1), **given), model="tree").fit(table)
    assert "times" in study.holdout_.constant
    assert set(study.facts()["peak"]) == {"x", "rate"}
