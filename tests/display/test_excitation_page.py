"""The report of a self-exciting rate: what it shows is what the study says."""

from __future__ import annotations

import re
from copy import copy

import numpy as np
import pytest

from hplus.cli.excited import excitation_table
from hplus.display.excitation_figures import (
    declustered,
    productive_events,
    trigger_curves,
    triggered_fan,
)
from hplus.display.excitation_page import excitation_html
from hplus.rates.excitation import descendants, parents
from hplus.windows import Interval

SECTIONS = ("trigger", "background", "productive", "outlook", "fit", "making", "origin", "glossary")


def test_the_page_has_every_section_and_no_address(excited_page):
    assert all(f'id="{name}"' in excited_page for name in SECTIONS)
    assert 'id="prediction"' not in excited_page  # nothing was held out
    assert not re.search(r"https?://(?!www.w3.org)", excited_page)
    assert len(excited_page) < 200_000
    assert "nan" not in re.sub(r"<script>.*?</script>|data:[^\"]+", "", excited_page, flags=re.S)


def test_a_title_is_escaped(excited_page):
    assert "<img src=x>" not in excited_page
    assert "<h1>Shocks &lt;img src=x&gt;</h1>" in excited_page


def test_the_trigger_is_drawn_within_its_band(excited):
    by_lag, by_distance = trigger_curves(excited)
    for curve in (by_lag, by_distance):
        assert np.all(curve.low <= curve.values)
        assert np.all(curve.values <= curve.high)
    assert by_lag.unit == "events per day"
    assert by_distance.unit == "events per km²"


def test_a_trigger_on_one_axis_is_per_length(excited):
    road = copy(excited)
    for unit, told in (("km", "km"), ("", "unit of length")):
        road.frame = excited.frame.replace(columns=("x",), region=Interval(0.0, 50.0, unit=unit))
        assert trigger_curves(road)[1].unit == f"events per {told}"


def test_the_map_is_the_background_and_its_dots_the_events(excited):
    found = declustered(excited)
    assert len(found.events) == len(found.background) == excited.model_.total_
    assert np.all((found.background > 0.0) & (found.background <= 1.0))
    mean = np.nanmean(found.figure.data.rate)
    level = excited.model_.background_.integral(0.0, 190.0, 0) / 190.0 / 2500.0
    assert mean == pytest.approx(level * 10.0 ** np.round(np.log10(mean / level)), rel=0.05)


def test_the_events_that_triggered_most_come_first(excited):
    headings, *rows = productive_events(excited)
    assert headings == ("triggered", "when", "x", "y", "mag")
    numbers = [float(row[0]) for row in rows]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] >= 1.0


def test_unlikely_parents_count_for_the_events_that_triggered_most(excited, monkeypatch):
    rows = productive_events(excited)
    monkeypatch.setattr(parents, "LEAST_PROBABILITY", 1.0)
    assert productive_events(excited) == rows


def test_the_fan_goes_on_from_what_was_observed(excited):
    fan = triggered_fan(excited)
    assert fan.unit == "week"  # there is less than one event per day
    clock = excited.frame.clock
    assert fan.edges[len(fan.observed)] == clock.end
    times = excited.model_.history_.times
    assert fan.observed.sum() == np.sum(times >= 190.0 - 7 * len(fan.observed))
    assert np.all(np.diff(fan.quantiles, axis=0) >= 0.0)


def test_a_future_that_cannot_be_simulated_is_told_and_the_rest_is_shown(excited, monkeypatch):
    monkeypatch.setattr(descendants, "MAX_EVENTS", 10)
    found = excited.facts()
    assert found["outlook"] == []
    assert excitation_table(found)["outlook"].startswith("cannot be simulated: there would be too")
    found["branching"]["ratio"] = 1.2
    assert "the branching ratio is above 1" in excitation_table(found)["outlook"]
    page = excitation_html(excited)
    assert "What follows cannot be simulated" in page
    assert "were triggered by earlier ones" in page


def test_only_a_fitted_study_has_a_page():
    with pytest.raises(TypeError, match="fitted ExcitationStudy"):
        excitation_html(None)
