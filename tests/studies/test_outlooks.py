"""Counts for a time to come: what parts add up to, when they are, and how sure they are."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import numpy as np
import pytest

from hplus import EventStudy, Interval, load, save
from hplus.display.page import report_html
from hplus.files import tables
from hplus.rates.mixed_poisson import mixed_poisson_quantile
from hplus.studies.draws import draw
from hplus.studies.expect import count_means, expect, grid_regions, whole
from hplus.studies.outlooks import basis_words
from hplus.studies.periods import cut, time_asked
from hplus.studies.plans import plan
from hplus.studies.prospects import fan, outlook_facts, prospects, variation_words
from hplus.studies.spans import Amount

STORED = Path(__file__).parents[1] / "stored"
START, WEEKS, WEEK = np.datetime64("2026-01-05T00:00:00"), 24, Amount(1.0, "week")


def city(rng, weeks=WEEKS):
    """Events of a square whose 4 × 4 cells vary from week to week, and its weeks too."""
    varied = rng.gamma(2.5, 0.4, (4, 4, weeks)) * rng.gamma(20.0, 0.05, weeks)
    at = np.repeat(np.argwhere(varied > 0.0), rng.poisson(4.0 * varied).ravel(), axis=0)
    at = at + rng.random(at.shape)
    return at[:, :2] / 4.0, 7.0 * at[:, 2]


def written(path, X, days):
    stamps = START + (86_400.0 * days).astype("timedelta64[s]")
    rows = (f"{t},{x:.4f},{y:.4f}" for t, (x, y) in zip(stamps, X, strict=True))
    path.write_text("when,x,y\n" + "\n".join(rows) + "\n")
    return str(path)


def fitted(path, columns=("x", "y"), cycle="", weeks=WEEKS, **options):
    window = {"window": (0, 0, 1, 1), "unit": "km"} if columns else {}
    end = str(START + np.timedelta64(7 * weeks, "D"))
    frame = plan(path, columns, time="when", start=str(START), end=end, cycle=cycle, **window)
    return EventStudy(frame, model="tree", holdout=0.0, **options).fit(path)


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    X, days = city(np.random.default_rng(0))
    return written(tmp_path_factory.mktemp("city") / "events.csv", X, days)


@pytest.fixture(scope="module")
def town(events):
    """A study of places and times."""
    return fitted(events)


@pytest.fixture(scope="module", params=["", "day"])
def line(request, events):
    """Studies of times alone, without and with a cycle."""
    return fitted(events, (), request.param)


def counts(study, regions, time):
    found = expect(study, regions, time)
    return np.array([[part.expected, part.low, part.high] for part in found])


def test_the_period_begins_where_the_observation_period_ends(line):
    assert time_asked(line, WEEK).words == "2026-06-22 to 2026-06-29"
    assert basis_words(line, time_asked(line, WEEK)) == "From a forecast."
    later = time_asked(line, WEEK, "2026-07-06")
    assert later.edges == {"from": "2026-07-06", "to": "2026-07-13"}
    assert time_asked(line, None, None, "2026-07-01").words == "2026-06-22 to 2026-07-01"
    usual = {"": "2026-06-29", "day": "2026-06-23"}[line.frame.cycle]
    assert time_asked(line, None).edges["to"] == usual


def test_a_time_within_the_observation_period_is_that_of_the_fitted_rate(town):
    past = time_asked(town, WEEK, "2026-02-02")
    assert basis_words(town, past) == "From the fitted rate."
    region = town.frame.region
    want = town.model_.expected_count(region * Interval(28, 35))
    low, high = town.model_.count_interval(region * Interval(28, 35))
    np.testing.assert_allclose(counts(town, [whole(town.frame)], past), [[want, low, high]])


def test_a_time_that_goes_on_after_the_end_is_the_sum_of_both(line):
    all_of_it = [whole(line.frame)]
    parts = [time_asked(line, None, *ends) for ends in
             (("2026-06-15", "2026-06-22"), ("2026-06-22", "2026-06-25"))]  # fmt: skip
    both = time_asked(line, None, "2026-06-15", "2026-06-25")
    want = counts(line, all_of_it, parts)[:, 0].sum()
    assert counts(line, all_of_it, both)[0, 0] == pytest.approx(want)
    said = "From the fitted rate until 2026-06-22, and a forecast after it."
    assert basis_words(line, both) == said


def test_cells_and_days_add_up_to_the_whole_week(town):
    week, cells = time_asked(town, WEEK), grid_regions(town.frame, (3, 2))
    total = counts(town, [whole(town.frame)], week)[0]
    by_cell = counts(town, cells, week)
    assert by_cell[:, 0].sum() == pytest.approx(total[0])
    both = expect(town, cells, cut(week, every=Amount(2.0, "day")))
    assert [part.region.edges["to"] for part in both[::6]][-2:] == ["2026-06-28", "2026-06-29"]
    assert sum(part.expected for part in both) == pytest.approx(total[0])
    means, all_of_it = (count_means(town, part, week) for part in (cells, [whole(town.frame)]))
    assert means.mean(axis=1).sum() == pytest.approx(all_of_it.mean(), rel=0.03)
    # what is uncertain about the total is shared by all cells
    share = by_cell[:, 0] / total[0]
    assert np.all(means.var(axis=1) > 0.9 * share**2 * all_of_it.var())


def test_hours_of_a_day_are_parts_of_it(line):
    day = time_asked(line, Amount(1.0, "day"), "2026-06-23")
    hours = expect(line, [whole(line.frame)], cut(day, 24))
    assert [hours[i].region.name for i in (0, 23)] == ["1", "24"]
    assert hours[5].region.edges == {"from": "2026-06-23T05:00:00", "to": "2026-06-23T06:00:00"}
    total = counts(line, [whole(line.frame)], day)[0, 0]
    assert sum(part.expected for part in hours) == pytest.approx(total)


def test_intervals_of_cells_that_vary_are_wider_than_poisson_and_hold(tmp_path):
    covered, wider, rng = [], [], np.random.default_rng(3)
    X, days = city(rng, WEEKS + 16)
    path = written(tmp_path / "events.csv", X[days < 7 * WEEKS], days[days < 7 * WEEKS])
    study = fitted(path)
    cells = grid_regions(study.frame, (4, 4))
    means = count_means(study, cells, time_asked(study, WEEK))
    low, high = (mixed_poisson_quantile(means, p) for p in (0.05, 0.95))
    flat = study.model_.rate_.shares([cell.window for cell in cells])[1]
    flat = flat * means.mean(axis=1, keepdims=True) / flat.mean(axis=1, keepdims=True)
    wider = (high - low) / (mixed_poisson_quantile(flat, 0.95) - mixed_poisson_quantile(flat, 0.05))
    assert wider.mean() > 1.25
    for week in range(WEEKS, WEEKS + 16):
        some = X[(days >= 7 * week) & (days < 7 * week + 7)]
        seen = np.histogram2d(*some.T, bins=4, range=((0, 1), (0, 1)))[0].ravel()
        covered.append(np.mean((low <= seen) & (seen <= high)))
    assert 0.86 < np.mean(covered) < 0.98


def test_a_new_hot_spot_is_expected_to_stay_and_the_past_is_as_it_was(tmp_path):
    rng = np.random.default_rng(3)
    X, days = rng.random((2400, 2)), 7.0 * WEEKS * rng.random(2400)
    spot, since = 0.75 + 0.25 * rng.random((160, 2)), 7.0 * (WEEKS - 4.0 * rng.random(160))
    path = written(tmp_path / "spot.csv", np.vstack([X, spot]), np.append(days, since))
    study = fitted(path)
    cells = grid_regions(study.frame, (4, 4))
    coming = expect(study, cells, time_asked(study, WEEK))
    # 100/16 + 40 a week at the spot, and 100/16 elsewhere
    assert coming[15].expected == pytest.approx(46.25, rel=0.2)
    assert coming[15].low < 46 < coming[15].high
    assert np.mean([cell.expected for cell in coming[:15]]) == pytest.approx(6.25, rel=0.2)
    total = expect(study, [whole(study.frame)], time_asked(study, WEEK))[0].expected
    assert sum(cell.expected for cell in coming) == pytest.approx(total, rel=1e-3)
    assert total == pytest.approx(140.0, rel=0.08)
    first = expect(study, cells, time_asked(study, WEEK, str(START)))
    assert first[15].expected < 20.0
    save(study, tmp_path / "spot.hplus")
    kept = expect(load(tmp_path / "spot.hplus"), cells, time_asked(study, WEEK))
    assert [(c.expected, c.low, c.high) for c in kept] == [
        (c.expected, c.low, c.high) for c in coming
    ]
    (drawn,) = draw(study, 1, Amount(8.0, "week"), random_state=0)
    there = np.all(drawn.columns > 0.75, axis=1)
    assert there.mean() == pytest.approx(46.25 / 140.0, abs=0.06)


def test_what_is_kept_answers_the_same(town, tmp_path):
    save(town, tmp_path / "town.hplus")
    again = load(tmp_path / "town.hplus")
    cells, week = grid_regions(town.frame, (2, 2)), time_asked(town, WEEK)
    np.testing.assert_array_equal(counts(again, cells, week), counts(town, cells, week))
    assert outlook_facts(again) == outlook_facts(town)


def test_chunks_of_any_size_give_the_same_outlook(town, events, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 5000)
    again = fitted(events)
    assert again.outlook_.local == town.outlook_.local
    np.testing.assert_array_equal(again.outlook_.blocks, town.outlook_.blocks)
    week = time_asked(town, WEEK)
    one, other = (counts(study, [whole(study.frame)], week) for study in (town, again))
    np.testing.assert_array_equal(one, other)


def test_the_outlook_is_told_in_words_and_numbers(town, line):
    names = [prospect.name for prospect in prospects(town)]
    assert names == ["day", "week", "four weeks"]
    said = variation_words(town)
    assert said.startswith("the count of the next week has ")
    assert (
        " times the variance of a Poisson count; that of an average 0.1\N{NO-BREAK SPACE}km², "
        in said
    )
    shown = fan(line)
    assert len(shown.edges) == WEEKS + 6 + 1
    assert shown.observed.sum() == line.reading_.kept
    assert np.all(np.diff(shown.quantiles, axis=0) >= 0.0)


def test_the_report_shows_what_comes_next(line):
    page = report_html(line)
    panel = page[page.index('<section id="outlook">') :].partition("</section>")[0]
    assert panel.count("<svg") == 2
    for prospect in prospects(line):
        assert f"<dt>Next {prospect.name}</dt>" in panel
        assert f"{prospect.expected.low:.0f} to {prospect.expected.high:.0f}, until" in panel


def test_an_exposure_divides_what_is_to_come(town):
    often = copy(town)
    often.exposure_ = Amount(4.0, "sensor")
    week = [counts(s, [whole(s.frame)], time_asked(s, WEEK))[0, 0] for s in (town, often)]
    assert week[1] == pytest.approx(week[0] / 4.0)
    assert time_asked(often, WEEK).words.endswith(", in one sensor")
    assert fan(often).observed.sum() == pytest.approx(often.reading_.kept / 4.0)


def test_with_few_events_the_mean_rate_goes_on_and_the_reason_is_told(tmp_path):
    days = np.linspace(1.0, 160.0, 12)
    study = fitted(written(tmp_path / "few.csv", np.full((12, 2), 0.5), days), ())
    week = time_asked(study, WEEK)
    assert counts(study, [whole(study.frame)], week)[0, 0] == pytest.approx(12 / WEEKS)
    said = "From the mean rate; there is no forecast, because there are fewer than 20 events."
    assert basis_words(study, week) == said
    assert prospects(study) == []
    assert fan(study) is None


@pytest.mark.parametrize("name", ["study_line", "study_place_time"])
def test_models_of_earlier_versions_answer_as_before(name):
    study = load(STORED / f"{name}.hplus")
    clock = study.frame.clock
    time = time_asked(study, None)
    (all_of_it,) = expect(study, [whole(study.frame)], time)
    per = 1.0 if clock is None or clock.cycle else time.seconds / (clock.end - clock.start)
    want = per * study.model_.expected_count(study.frame.window)
    assert all_of_it.expected == pytest.approx(want)
    assert outlook_facts(study) is None
    if clock is not None:
        assert "of an earlier version" in basis_words(study, time)


def test_patterns_to_come_lie_in_the_period_and_vary_like_the_forecast(town):
    week = time_asked(town, WEEK, "2026-07-06")
    paths = draw(town, 200, WEEK, "2026-07-06", random_state=0)
    sizes = np.array([len(path.seconds) for path in paths])
    means = count_means(town, [whole(town.frame)], week)[0]
    assert sizes.mean() == pytest.approx(means.mean(), abs=5 * np.sqrt(sizes.var() / 200))
    assert sizes.var() == pytest.approx(means.var() + means.mean(), rel=0.4)
    seconds = np.concatenate([path.seconds for path in paths])
    assert week.start <= seconds.min() <= seconds.max() < week.end
    assert all(path.columns.shape == (len(path.seconds), 2) for path in paths)
    assert np.all(np.diff(paths[0].seconds) >= 0.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((WEEK, None, "2026-07-01"), "give lasting= or end=, not both"),
        ((None, "2026-07-01", "2026-06-30"), "end= must be after start="),
        ((WEEK, "2025-07-01"), "start must not be before the observation period"),
        ((Amount(3.0, "game"),), "a length of time such as 7d or 12h"),
    ],
)
def test_a_period_that_cannot_be_is_refused_in_a_sentence(town, arguments, said):
    with pytest.raises(ValueError, match=said):
        time_asked(town, *arguments)


def test_what_cannot_be_cut_or_reached_is_refused_in_a_sentence(town, line):
    with pytest.raises(ValueError, match="at most 10000 parts, got 604800"):
        cut(time_asked(town, WEEK), every=Amount(1.0, "s"))
    with pytest.raises(ValueError, match="forecasts reach as far as 2031-01-27, got 2039-01-08"):
        expect(town, [whole(town.frame)], time_asked(town, WEEK, "2039-01-01"))
    with pytest.raises(ValueError, match="cut the period instead"):
        grid_regions(line.frame, (4,))
