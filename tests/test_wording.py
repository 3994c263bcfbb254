"""Numbers, units and places in words."""

import pytest

from hplus.windows import Box, Interval, Polygon
from hplus.wording import (
    NBSP,
    counted,
    day_words,
    number,
    p_words,
    per,
    percent,
    plural,
    quantity,
    rate_words,
    rounded,
    scales_words,
    times,
    window_words,
    with_error,
)

MIXED = Interval(0, 10, unit="km") * Interval(0, 24, unit="h")
TRIANGLE = Polygon([[0, 0], [3, 0], [0, 3]], unit="km")


@pytest.mark.parametrize(
    ("x", "text"),
    [(50.0, "50"), (1.70536, "1.705"), (79354.67, "79,355"), (-0.5, "−0.5"), (1851.0, "1851")],
)
def test_a_number_is_short_but_its_whole_part_is_in_full(x, text):
    assert number(x) == text


def test_windows_rates_and_p_values_in_words():
    assert window_words(MIXED) == "10 km × 24 h"
    assert window_words(Box((0, 0), (1, 2))) == "1 × 2"
    assert window_words(TRIANGLE * Interval(0, 365, unit="day")).replace(NBSP, " ") == (
        "1,642 km² day within 3 × 3 km × 365 days"
    )
    found = [p_words(p) for p in (0.256, 0.001, 0.0009)]
    assert found == ["p = 0.26", "p = 0.001", "p < 0.001"]
    assert rate_words(None) == "events per unit"
    assert rate_words(Box((0, 0), (1, 2))) == "events per unit of area"
    assert rate_words(TRIANGLE * Interval(0, 7, unit="h"), "game") == (
        "events per km² per hour per game"
    )


def test_units_have_plurals_and_scales_are_grouped_by_unit():
    assert [plural(unit) for unit in ("game", "day", "km", "min", "m/s")] == [
        "games", "days", "km", "min", "m/s",
    ]  # fmt: skip
    assert plural("game", 1.0) == "game"
    assert scales_words((3.84, 3.84), ("km", "km")) == "3.84 km"
    assert scales_words((3.84, 1.92, 27.0), ("km", "km", "day")) == "3.84 × 1.92 km and 27 days"


def test_numbers_are_rounded_as_people_do():
    assert [rounded(x) for x in (1585.4, 12.345, 0.04321, 0.0, -2.5, 3e-9)] == [
        "1,585", "12.3", "0.0432", "0", "−2.5", "3 × 10⁻⁹",
    ]  # fmt: skip
    assert [rounded(x) for x in (0.0000999999, 9.9996e-9, 9.996)] == ["0.0001", "1 × 10⁻⁸", "10"]
    assert [percent(s) for s in (0.071, 0.004, 0.0, 1e-5, 1.0)] == [
        f"7{NBSP}%", f"0.4{NBSP}%", f"0{NBSP}%", f"under 0.1{NBSP}%", f"100{NBSP}%",
    ]  # fmt: skip
    assert [times(r) for r in (14.2, 2.34, 0.4, 1200)] == ["14", "2.3", "0.4", "over 1,000"]
    assert quantity(79, "game") == f"79{NBSP}games"
    assert quantity(3.0, "km") == f"3{NBSP}km"
    assert (counted(1, "bin"), counted(1585, "event")) == ("1 bin", "1,585 events")
    assert per("km²", "h") == "events per km² per hour"
    assert per("", "") == "events per unit"
    assert with_error(1.4567, 0.0912) == f"1.46{NBSP}±{NBSP}0.09"
    assert day_words(0.0) == f"1{NBSP}Jan{NBSP}1970"
