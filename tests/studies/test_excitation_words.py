"""Sentences on what events trigger."""

from __future__ import annotations

import pytest

from hplus.studies.excitation_words import triggered_words

BUSY = "places that are always busy"


def found(evidence=10.0, rival=BUSY, background_share=0.6, **others):
    """A study of 100 events."""
    ratio = {"ratio": 0.4, "low": 0.0, "high": 0.6, "triggers": 0.4}
    ratio |= {"evidence": evidence, "rival": rival}
    numbers = {"events": 100, "history": 0, "types": [], "background_share": background_share}
    return numbers | {"branching": ratio} | others


@pytest.mark.parametrize("evidence", [-20.0, 2.9])
def test_what_explains_events_as_well_as_triggering_is_named(evidence):
    assert triggered_words(found(evidence)).endswith(f"triggered, but this could also be {BUSY}")
    assert triggered_words(found(evidence, rival="")).endswith(", but this could also be chance")


def test_what_explains_events_less_well_is_not_named():
    words = triggered_words(found(3.0))
    assert words.startswith("0.40 (0.00 to 0.60): each event triggers 0.4 others directly")
    assert words.endswith("40\u00a0% of the events were triggered")


@pytest.mark.parametrize("evidence", [-20.0, 10.0])
def test_where_hardly_any_event_was_triggered_nothing_else_is_said(evidence):
    words = triggered_words(found(evidence, background_share=0.996))
    assert words == "0.40 (0.00 to 0.60): hardly any event was triggered"
    assert "hardly" not in triggered_words(found(evidence, background_share=0.994))


def test_of_two_events_nothing_is_told():
    assert triggered_words(found(events=1, history=1)).startswith("too few events")
    assert triggered_words(found(events=1, history=2)).startswith("0.40")
