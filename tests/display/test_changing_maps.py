"""Small maps of the parts of a day: which parts, which ratios, one scale of colours."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from hplus import Box, Cycle, SeparableIntensity
from hplus.display.canvas import markup
from hplus.display.changing_charts import change_map, change_words, page_changes
from hplus.display.data.changing_maps import changing_maps
from hplus.display.page import page_template
from hplus.display.provenance import place_and_time
from hplus.rates.map_by_time import MapByTime
from hplus.rates.separable import SeparableRate

WINDOW = Box((0, 0), (4, 4), unit="km") * Cycle(24, unit="h")


def by_time(bins=8, busy=(0, 1)):
    """Three times as many events in the first column of cells, in some bins of the day."""
    counts = np.full((4, 4, bins), 200.0)
    counts[0][:, list(busy)] *= 3.0
    alone = np.full((3, 3), np.inf)
    alone[-1] = 10.0
    places, times = counts.sum(axis=2), counts.sum(axis=(0, 1))
    return MapByTime(WINDOW, 24.0, counts, alone, np.ones((3, 3)), places, times, 0)


@pytest.fixture(scope="module")
def maps():
    return changing_maps(by_time())


def test_the_parts_are_those_whose_maps_differ_most(maps):
    assert maps.parts[0].label == "00:00 to 06:00"
    first = maps.parts[0].ratios
    assert np.all(first[0] > 1.1)
    assert np.all(first[1:] < 1.0)
    most, least = maps.extremes
    assert most[1] == "00:00 to 06:00"
    assert most[0] == pytest.approx(np.nanmax([part.ratios for part in maps.parts]))
    assert least[0] < 1.0
    assert maps.reach == pytest.approx(max(np.log(most[0]), -np.log(least[0])))


def test_parts_may_go_around_midnight():
    parts = changing_maps(by_time(busy=(7, 0))).parts
    assert parts[-1].label == "21:00 to 03:00"
    assert np.all(parts[-1].ratios[0] > 1.1)


def test_a_week_is_cut_at_the_weekend():
    week = MapByTime(
        Box((0, 0), (4, 4)) * Cycle(168, unit="h"), 168.0, *(getattr(by_time(), name) for name in (
            "counts", "concentrations", "gains", "place_masses", "time_masses", "seed"
        ))
    )  # fmt: skip
    assert [part.label for part in changing_maps(week).parts] == ["Monday to Friday", "weekend"]


def test_cells_with_more_events_are_drawn_in_one_colour_and_fewer_in_the_other(maps):
    drawn = markup(change_map(maps, 0))
    assert drawn.count('class="more"') == 4
    assert drawn.count('class="fewer"') == 12


def study(found):
    rate = SeparableRate(WINDOW, None, None, 1.0, found)
    return SimpleNamespace(model_=SimpleNamespace(rate_=rate), holdout_=None)


def test_the_page_has_the_maps_only_if_the_map_changes(maps):
    assert page_changes(study(None)) is None
    template = page_template("changing_maps.html.j2")
    assert template.render(facts=SimpleNamespace(study=study(None))).strip() == ""
    page = template.render(facts=SimpleNamespace(study=study(by_time())))
    assert "How the map changes with the time of day" in page
    assert page.count("<svg") == 4
    assert change_words(study(by_time()), maps) in page


@pytest.mark.parametrize(("found", "told"), [(None, "is the same"), (by_time(), "changes with")])
def test_a_page_says_whether_the_map_changes(found, told):
    model = SeparableIntensity(WINDOW)
    model.map_by_time_ = found
    assert told in place_and_time(model).remark
