"""The table of a fit: rows that say what they mean."""

from __future__ import annotations

import pytest

from hplus.cli.summary import fit_table, holdout_rows

FOUND = {
    "file": "events.csv", "rows": 1200, "events": 1000, "window": "10 km", "time": None,
    "exposure": {"amount": 1.0, "unit": ""}, "rates": "events per km", "scales": [],
    "seconds": None, "holdout": None, "expected": 1000.0, "peak": {"x": 3.5, "rate": 210.0},
}  # fmt: skip
"""What the smallest study says of itself."""

COUNTS = [
    {"next": "day", "expected": 15.42, "low": 9.0, "high": 23.0},
    {"next": "week", "expected": 114.2, "low": 87.0, "high": 143.0},
]


def test_the_first_count_to_come_tells_what_is_counted_and_the_level():
    outlook = {"counts": COUNTS, "variation": "", "reason": ""}
    found = fit_table(FOUND | {"outlook": outlook})["outlook"]
    first = "15.4 events in the next day (90 % interval 9 to 23)"
    assert found == f"{first}, 114 in the next week (87 to 143)"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("positions are rounded to 0.1 ft: nothing finer", "rounded to 0.1 ft: nothing finer"),
        ("positions along x are rounded to 1 m", "along x, rounded to 1 m"),
        (
            "positions are known to about 9 m for places; positions are rounded to 1 s for times",
            "known to about 9 m for places; rounded to 1 s for times",
        ),
        ("half of the events share their exact position", None),
    ],
)
def test_a_row_of_positions_does_not_repeat_its_name(said, shown):
    assert fit_table(FOUND | {"positions": said})["positions"] == (shown or said)


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "because of --holdout 0"), (0.2, "few"), (None, "few")]
)
def test_the_table_says_why_nothing_was_held_out(share, shown):
    assert shown in fit_table(FOUND | {"held_share": share})["held out"]


def test_whole_numbers_of_places_have_no_decimals():
    peak = {"t": 0.0, "x": -73.882, "rate": 2.0}
    assert fit_table(FOUND | {"peak": peak})["busiest at"].startswith("t 0, x -73.882: ")


def test_misfits_and_dependence_are_told_apart():
    held = {"constant": [], "words": "", "gain": 0.1, "gain_error": 0.1, "over_kde": 0.0,
            "over_kde_error": 0.1, "faults": ["gaps", "quadrats"], "misfits": ["quadrats"],
            "relative_error": 0.05}  # fmt: skip
    said = holdout_rows(held)["does it fit?"].replace("\u00a0", " ")
    assert said.startswith("not in all respects: quadrats found a misfit on held-out events")
    assert "off by about 5 % beyond chance" in said
    assert said.endswith("; events are not independent, according to gaps")
