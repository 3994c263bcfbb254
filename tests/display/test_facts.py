"""The facts of a report: sums add up, hot spots are what they say, words are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from hplus.display.chart_axes import ChartAxis, clock_ticks, cycle_ticks, round_ticks
from hplus.display.colours import shading
from hplus.display.data.hot_spots import find_hot_spots
from hplus.display.data.margins import by_place, concentration, marginal_curve, margins, place_map
from hplus.display.facts import gather
from hplus.display.findings import against_kde, prediction
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.studies.holdouts import Holdout
from hplus.studies.spans import Clock
from hplus.windows import Box, Interval
from hplus.wording import NBSP

SHAPES = (
    "line", "calendar", "day", "plane", "strip", "polygon", "mixed", "solid", "tide", "week",
    "season",
)  # fmt: skip
every_shape = pytest.mark.parametrize("shape", SHAPES)


@every_shape
def test_sums_over_place_and_over_time_are_the_expected_count(studied, shape):
    model = studied(shape)[0].model_
    sums = margins(model)
    for part in (sums.place, sums.line):
        if part is not None:
            assert part.integral() == pytest.approx(model.expected_count(model.window), rel=1e-3)


def test_a_map_of_a_place_and_a_time_is_their_product(studied):
    study, X = studied("tide")
    place = margins(study.model_).place
    assert place is not None
    assert place(X) == pytest.approx(study.model_.predict(X), rel=0.02)


def test_a_part_of_the_last_axis_has_the_expected_count_of_that_part(studied):
    model = studied("solid")[0].model_
    part = Interval(0.5, 1.25)
    found = by_place(model.rate_.on_grid, part).integral(Box((1, 1), (2, 3)))
    assert found == pytest.approx(model.expected_count(Box((1, 1), (2, 3)) * part))


def test_half_of_the_events_of_a_ramp_are_in_the_share_that_calculus_says():
    window = Interval(0, 1)
    grid = TensorGrid((0,), (1,), (4001,))
    found = concentration(GridFunction(window, grid, grid.axes[0]))
    # ∫ from 1 - s to 1 of 2x is 1/2 at s = 1 - √½
    assert found.holding(0.5) == pytest.approx(1.0 - np.sqrt(0.5), abs=1e-3)
    assert found.holding(1.0) == pytest.approx(1.0)


@every_shape
def test_shares_of_window_and_events_rise_from_none_to_all(studied, shape):
    found = concentration(margins(studied(shape)[0].model_).main)
    for shares in (found.window, found.events):
        assert shares[0] == 0.0
        assert shares[-1] == pytest.approx(1.0)
        assert np.all(np.diff(shares) >= 0.0)
    assert np.all(found.events >= found.window - 1e-12)


@every_shape
def test_counts_of_hot_spots_are_expected_counts_in_rank_order(studied, shape):
    study, X = studied(shape)
    model, E = study.model_, study.exposure_.amount
    spots = find_hot_spots(model, margins(model), E, X)
    regions = [_region(model.window, a, b) for a, b in zip(spots.low, spots.high, strict=True)]
    assert spots.expected == pytest.approx(model.expected_count(regions, exposure=E))
    assert np.all(np.diff(spots.expected) <= 0.0)
    assert np.all((spots.fewest <= spots.expected) & (spots.expected <= spots.most))
    assert spots.observed is not None
    low, high = spots.low[0], spots.high[0]
    seen = np.all((low <= X[:, : len(low)]) & (high >= X[:, : len(low)]), axis=1).sum()
    assert spots.observed[0] == seen


@every_shape
def test_the_first_hot_spot_is_at_the_peak_and_no_two_overlap(studied, shape):
    model = studied(shape)[0].model_
    spots = find_hot_spots(model, margins(model), 1.0)
    m = spots.low.shape[1]
    low, high = model.window.bounds()
    peak = (low + (high - low) / 3)[:m]
    sides = spots.high[0] - spots.low[0]
    assert np.all(np.abs(spots.middle[0] - peak) <= sides)
    for i in range(len(spots.low)):
        for j in range(i):
            assert np.any(np.abs(spots.low[i] - spots.low[j]) >= sides * (1 - 1e-9))


def test_a_cell_of_the_average_rate_is_one_times_the_average(studied):
    study, _ = studied("plane")
    model = study.model_
    f = model.rate_.on_grid
    flat = model.rate_.function.replace(values=np.full(f.grid.shape, 2.0))
    even = model_with(model, flat)
    assert find_hot_spots(even, margins(even), 3.0).ratio == pytest.approx(1.0)


def test_the_busiest_depth_of_a_hot_spot_is_where_the_rate_is_highest_there(studied):
    model = studied("solid")[0].model_
    spots = find_hot_spots(model, margins(model), 1.0)
    assert spots.peak is not None
    assert spots.peak[0] == pytest.approx(2 / 3, abs=0.05)


def test_the_busiest_hour_is_given_once_if_it_is_the_same_everywhere(studied):
    facts = gather(*studied("week"), None)
    assert facts.table.spots.peak is None
    assert "with a peak at Wed 0" in facts.findings[1].text


def test_the_band_of_a_sum_over_places_is_that_of_its_draws(studied):
    rate = studied("solid")[0].model_.rate_
    shifted = np.log(norm.ppf((np.arange(99) + 0.5) / 99) * 0.2 + 1.0)
    draws = np.broadcast_to(shifted[:, None, None, None], (99, *rate.coarse.shape))
    course = marginal_curve(replace(rate, draws=draws), rate.function.window)
    # all places move together: the band is that of one normal variable
    assert course.high / course.rate == pytest.approx(1.0 + 1.645 * 0.2, abs=0.01)
    assert course.low / course.rate == pytest.approx(1.0 - 1.645 * 0.2, abs=0.01)
    mean = np.trapezoid(course.rate, course.x)
    assert mean == pytest.approx(rate.integral(), rel=1e-3)


def test_colours_follow_a_root_of_the_rate_only_where_it_is_steep():
    window, grid = Box((0, 0), (1, 1)), TensorGrid((0, 0), (1, 1), (33, 33))
    even = place_map(GridFunction(window, grid, np.ones(grid.shape))).rate
    values = np.full(grid.shape, 1e-3)
    values[16, 16] = 1.0
    steep = place_map(GridFunction(window, grid, values)).rate
    assert (shading(even).power, shading(steep).power) == (1.0, 0.25)
    shares = shading(steep).shares(steep)
    assert 0.0 <= shares.min() < shares.max() <= 1.0


def test_tiles_say_events_window_time_and_rate(studied):
    facts = gather(*studied("plane"), None)
    tiles = {tile.label: (tile.text, tile.remark) for tile in facts.tiles}
    assert tiles["Events"] == ("400", "of 407 rows in the file")
    assert tiles["Window"] == (f"1,200{NBSP}ft²", "40 × 30 ft")
    assert tiles["Exposure"][0] == f"79{NBSP}games"
    assert tiles["Expected"] == ("5.06", "events per game")
    assert facts.source == "events.csv"


def test_places_come_back_in_the_columns_of_the_file(studied):
    study, X = studied("polygon")
    table = gather(study, X, None).table
    assert table.columns == ("lon", "lat")
    lon, lat = (float(text.replace("−", "-")) for text in table.places[0])
    found = study.frame.placed(np.array([[lon, lat]]))
    assert found[0] == pytest.approx(table.spots.middle[0], abs=0.02)


def test_a_title_says_whether_it_is_about_where_or_when(studied):
    titles = {shape: gather(*studied(shape), None).title for shape in SHAPES}
    assert titles["line"] == "How often events happen"
    assert titles["calendar"] == titles["day"] == "When events happen"
    assert titles["plane"] == titles["mixed"] == titles["solid"] == "Where events happen"
    assert titles["tide"] == titles["week"] == titles["season"] == "Where and when events happen"
    assert gather(*studied("plane"), "Mine").title == "Mine"


def test_without_events_and_without_held_out_ones_nothing_is_said_of_the_fit(studied):
    study, X = studied("polygon")
    assert gather(study, None, None).fit is None
    checked = gather(study, X, None).fit
    assert checked is not None
    assert not checked.held_out


def test_calibration_is_in_multiples_of_the_average_rate(studied):
    study, X = studied("polygon")
    fit = gather(study, X, None).fit
    assert fit is not None
    rates = study.model_.predict(X) / (study.model_.expected_count(study.model_.window))
    rates *= study.model_.window.volume
    assert rates.min() * 0.5 <= fit.calibration.predicted.min()
    assert fit.calibration.predicted.max() <= rates.max() * 1.5


def test_a_map_and_a_curve_add_up_to_the_events_of_a_week(studied):
    facts = gather(*studied("week"), None)
    assert (facts.place.unit, facts.curve.unit) == (
        "events per km² per week",
        "events per hour, in an average week",
    )
    # 400 events in 8 weeks, on 24 km²
    assert np.nanmean(facts.place.data.rate) * 24.0 == pytest.approx(50.0, rel=0.01)
    along = facts.curve.data
    assert np.trapezoid(along.rate, along.x) == pytest.approx(50.0, rel=0.01)
    assert np.all((along.low < along.rate) & (along.rate < along.high))


def test_a_map_of_a_season_is_of_events_per_day(studied):
    facts = gather(*studied("season"), None)
    assert facts.place.unit == "events per km² per day"
    mean = np.nanmean(facts.place.data.rate)
    assert mean * facts.place.data.place.volume == pytest.approx(400 / 60, rel=0.02)


def test_there_are_always_three_findings(studied):
    for shape in SHAPES:
        assert len(gather(*studied(shape), None).findings) == 3


def holdout(over_kde, error=0.02, gain=0.43):
    scores = 80, 0.2, gain, 0.03, gain - over_kde, over_kde, error
    return Holdout(*scores, None, "adaptive bandwidth")


def test_a_comparison_is_only_as_bold_as_its_error_allows():
    assert "20\u00a0% better" in against_kde(holdout(np.log(1.2)))
    assert "20\u00a0% worse" in against_kde(holdout(np.log(0.8)))
    assert "3.0 times" in against_kde(holdout(np.log(3.0)))
    assert "over 1,000 times" in against_kde(holdout(745.0))
    assert "(adaptive bandwidth) does about as well" in against_kde(holdout(0.1, error=0.2))
    assert "estimate does" in against_kde(holdout(0.1, error=0.2).replace(kde=""))
    assert "chance" in prediction(holdout(0.1, gain=0.01)).text
    assert prediction(holdout(0.1, gain=np.log(2.0))).number == f"2.0{NBSP}×"


def test_marks_stand_at_round_numbers_hours_and_dates():
    assert round_ticks(0.0, 1.0, 5)[1] == (0.2, "0.2")
    assert [text for _, text in round_ticks(1851, 1963, 6)][:2] == ["1860", "1880"]
    assert [text for _, text in cycle_ticks(168.0)][::6] == ["Mon", "Sun"]
    assert cycle_ticks(24.0)[2] == (6.0, "06:00")
    years = clock_ticks(Clock("t", 1388534400.0, 1388534400.0 + 2000 * 86_400.0))
    assert years[1] == (365.0, "2015")
    assert clock_ticks(Clock("t", 0.0, 10 * 86_400.0))[1] == (1.0, "2 Jan")
    assert len(ChartAxis("t", 0.0, 2000.0, years).ticks_about(2)) <= 3


def _region(window, low, high):
    if len(low) == 1:
        return Interval(low[0], high[0])
    cell = Interval(low[0], high[0]) * Interval(low[1], high[1])
    if window.dimension == 2:
        return cell
    a, b = window.bounds()
    return cell * Interval(a[2], b[2])


def model_with(model, function):
    """The same model with another rate."""
    other = type(model)(model.window)
    vars(other).update(vars(model))
    other.rate_ = replace(model.rate_, function=function)
    return other
