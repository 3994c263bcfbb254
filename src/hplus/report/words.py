"""Numbers, units and places in plain words, rounded as a person would."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hplus.plotting.words import number

MINUS, TIED = "−", "\u00a0"
"""A minus sign, and a space at which no line is broken."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

SPELLED = {"h": "hour", "min": "minute", "s": "second"}
"""Units of time in full."""

UNCOUNTED = frozenset("°%²³/ ")
"""Signs in a unit that has no plural, such as "km²" and "m/s"."""

ABBREVIATED = 3
"""Letters of a unit up to which it stands for its plural too: km, ft, min."""


def rounded(x: float, digits: int = 3) -> str:
    """x to so many digits, its whole part in full and with thousands: 1,585, 12.3, 0.043."""
    if x == 0.0 or not math.isfinite(x):
        return "0" if x == 0.0 else "unknown"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(x))))
    if decimals > 6:
        power = math.floor(math.log10(abs(x)))
        return f"{rounded(x / 10.0**power, digits)} × 10{superscript(power)}"
    text = f"{x:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", MINUS)


def superscript(n: int) -> str:
    return str(n).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def with_error(x: float, error: float) -> str:
    """A number with its standard error, both to the first digit of the error: 1.46 ± 0.09."""
    decimals = min(6, decimals_for(10.0 ** math.floor(math.log10(error)))) if error > 0.0 else 2
    return f"{at_decimals(x, decimals)}{TIED}±{TIED}{at_decimals(error, decimals)}"


def at_decimals(x: float, decimals: int) -> str:
    """x with so many decimals and no thousands, for coordinates and years."""
    return f"{x:.{decimals}f}".replace("-", MINUS)


def decimals_for(step: float) -> int:
    """Decimals that tell apart numbers a step from each other."""
    return max(0, math.ceil(-math.log10(step) - 1e-9)) if step > 0.0 else 0


def percent(share: float) -> str:
    """A share of 1, such as "7 %"; small ones with one digit, never "0 %" unless it is 0."""
    p = 100.0 * share
    if 0.0 < p < 0.1:
        return f"under 0.1{TIED}%"
    return f"{p:.1f}{TIED}%" if 0.0 < p < 1.95 else f"{p:.0f}{TIED}%"


def times(ratio: float) -> str:
    """How many times as much: 14, 2.3, 0.4, over 1,000."""
    if ratio > 1000.0:
        return "over 1,000"
    return f"{ratio:.0f}" if ratio >= 9.5 else f"{ratio:.1f}"


def whole(n: float) -> str:
    """A count, such as 1,585."""
    return f"{n:,.0f}"


def counted(n: int, noun: str) -> str:
    """How many, such as "1,585 events" or "1 event"."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def coordinate(x: float) -> str:
    """A place on an axis to four digits: years have no thousands."""
    return number(x)


def plural(unit: str, n: float = 2.0) -> str:
    """A unit behind a number: "weeks" but "km"."""
    bare = n == 1.0 or (len(unit) <= ABBREVIATED and unit != "day") or set(unit) & UNCOUNTED
    return unit if bare or unit.endswith("s") else f"{unit}s"


def quantity(x: float, unit: str, digits: int = 3) -> str:
    """A number with its unit, if it has one; millions as a word."""
    if abs(x) >= 1e7:
        return f"{rounded(x / 1e6, digits)}{TIED}million{TIED}{plural(unit, x)}".rstrip()
    return f"{rounded(x, digits)}{TIED}{plural(unit, x)}".rstrip()


def each(*units: str) -> str:
    """What a rate counts: "events per km² per week"; without units "events per unit"."""
    known = [SPELLED.get(unit, unit) for unit in units if unit]
    return "events" + "".join(f" per {unit}" for unit in known) if known else "events per unit"


def day_words(seconds: float) -> str:
    """A time by its seconds since 1970, such as "1 Jan 2014" or "1 Jan 2014 08:30"."""
    at = datetime.fromtimestamp(round(seconds), UTC)
    clock = f" {at:%H:%M}" if at.hour or at.minute else ""
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}{clock}".replace(" ", TIED)


def sentence(parts: Sequence[str]) -> str:
    """Several things in one: "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def place_words(place: Mapping[str, str]) -> str:
    """A place by the user's columns, such as "lon −73.99, lat 40.75"."""
    return ", ".join(f"{name}{TIED}{text}" for name, text in place.items())


def in_columns(
    rows: Sequence[Mapping[str, Any]], steps: Mapping[str, float]
) -> list[dict[str, str]]:
    """Places by the user's columns as text, numbers with the decimals that their steps need."""
    return [
        {name: _cell(given, steps.get(name, 0.0)) for name, given in row.items()} for row in rows
    ]


def steps_between(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, float]:
    """How far two places are apart in each column of numbers."""
    return {name: abs(high[name] - low[name]) for name in _numbers(low)}


def _numbers(row: Mapping[str, Any]) -> Iterable[str]:
    return (name for name, given in row.items() if not isinstance(given, str))


def _cell(given: Any, step: float) -> str:
    return given if isinstance(given, str) else at_decimals(float(given), decimals_for(step))


def nice_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, the nearest to a rough step."""
    power = 10.0 ** math.floor(math.log10(rough))
    return min((m * power for m in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / rough)))
