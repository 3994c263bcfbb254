"""Numbers, units, places and counts in words: for figures, reports and the command line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hplus._checks import Floats
    from hplus.windows import Window

MINUS, NBSP = "−", "\u00a0"
"""A minus sign, and a no-break space."""

AXES = ("x", "y", "z")
"""Names of the axes of a window."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

UNIT_NAMES = {"h": "hour", "min": "minute", "s": "second"}
"""Units of time in full."""

SECONDS_IN = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "day": 86_400.0,
    "week": 604_800.0,
    "year": 31_557_600.0,
}
"""Units of time, in seconds."""

NO_PLURAL = frozenset("°%²³/ ")
"""Characters of units without a plural, such as "km²" and "m/s"."""

SMALLER_UNITS = {"km": "m", "m": "mm", "s": "ms", "ms": "µs"}
"""A thousandth of a unit."""

HALF_TOLERANCE = 0.025
"""A share this close to a half is called so."""

LONGEST_ABBREVIATION = 3
"""Units up to this many letters are abbreviations without a plural: km, ft, min."""


def number(x: float, digits: int = 4) -> str:
    """x to this many digits, its whole part in full: 1851, 1.705; with commas from 10,000 on."""
    digits = max(digits, len(f"{abs(x):.0f}"))
    # years and most coordinates have four digits, and no comma
    comma = "," if abs(x) >= 1e4 else ""
    return f"{x:{comma}.{digits}g}".replace("-", MINUS)


def rounded(x: float, digits: int = 3) -> str:
    """x to this many digits, its whole part in full and with commas: 1,585, 12.3, 0.043."""
    if x == 0.0 or not math.isfinite(x):
        return "0" if x == 0.0 else "unknown"
    power = int(f"{x:.{digits - 1}e}".partition("e")[2])  # 0.0000999999 is 0.0001
    decimals = max(0, digits - 1 - power)
    if decimals > 6:
        exponent = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{rounded(x / 10.0**power, digits)} × 10{exponent}"
    text = f"{x:,.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", MINUS)


def six_digits(x: float) -> float:
    """x rounded to six significant digits, for a table of results."""
    return float(f"{x:.6g}")


def count(n: float) -> str:
    """A count, such as 1,585."""
    return f"{n:,.0f}"


def several(noun: str) -> str:
    """More than one, such as "games" or "matches"."""
    return noun + ("es" if noun.endswith(("ch", "sh", "s", "x")) else "s")


def counted(n: int, noun: str = "event") -> str:
    """How many, such as "1,585 events" or "1 event"."""
    return f"{n:,} {noun if n == 1 else several(noun)}"


def left_out_words(left_out: Mapping[str, int]) -> str:
    """How many rows were left out on purpose, by reason: "12 outside the window"."""
    return ", ".join(f"{n:,} {reason}" for reason, n in left_out.items())


def percent(share: float) -> str:
    """A share of 1, such as "7 %"; small ones with one decimal, "0 %" only if it is 0."""
    p = 100.0 * share
    if 0.0 < p < 0.1:
        return f"under 0.1{NBSP}%"
    return f"{p:.1f}{NBSP}%" if 0.0 < p < 1.95 else f"{p:.0f}{NBSP}%"


def off_by(error: float) -> str:
    """How far expected counts are from the truth, given their relative error beyond chance."""
    return f"off by about {percent(error)} beyond chance" if error else "off by no more than chance"


def times(ratio: float) -> str:
    """How many times as much: 14, 2.3, 0.4, over 1,000."""
    if ratio > 1000.0:
        return "over 1,000"
    return f"{ratio:.0f}" if ratio >= 9.5 else f"{ratio:.1f}"


def ratio_words(ratio: float) -> str:
    """A ratio on a scale, such as "2 ×" or "1/2 ×"."""
    return f"{ratio:g} ×" if ratio >= 1.0 else f"1/{1.0 / ratio:g} ×"


def residual_words(r: float) -> str:
    """A residual with its sign; "new" for events where none were expected."""
    if math.isinf(r):
        return "new"
    return f"{r:+.1f}".replace("-", MINUS) if abs(r) >= 0.05 else "0"


def p_words(p: float) -> str:
    """A p-value, such as "p = 0.26"."""
    return f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"


def level_words(level: float) -> str:
    """An interval by its confidence level, such as "90 % interval"."""
    return f"{100.0 * level:g} % interval"


def with_error(x: float, error: float) -> str:
    """A number with its standard error, both to the first digit of the error: 1.46 ± 0.09."""
    decimals = min(6, decimals_for(10.0 ** math.floor(math.log10(error)))) if error > 0.0 else 2
    return f"{at_decimals(x, decimals)}{NBSP}±{NBSP}{at_decimals(error, decimals)}"


def at_decimals(x: float, decimals: int) -> str:
    """x with this many decimals and no commas, for coordinates and years."""
    return f"{x:.{decimals}f}".replace("-", MINUS)


def decimals_for(step: float) -> int:
    """Decimals that tell apart numbers one step from each other."""
    return max(0, math.ceil(-math.log10(step) - 1e-9)) if step > 0.0 else 0


def nice_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, the nearest to a rough step."""
    power = 10.0 ** math.floor(math.log10(rough))
    return min((m * power for m in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / rough)))


def plural(unit: str, n: float = 2.0) -> str:
    """A unit after a number: "weeks" but "km"."""
    short = len(unit) <= LONGEST_ABBREVIATION and unit != "day"
    bare = n == 1.0 or short or set(unit) & NO_PLURAL
    return unit if bare or unit.endswith("s") else several(unit)


def quantity(x: float, unit: str, digits: int = 3) -> str:
    """A number with its unit, if it has one; millions as a word."""
    text = f"{rounded(x / 1e6, digits)}{NBSP}million" if abs(x) >= 1e7 else rounded(x, digits)
    return f"{text}{NBSP}{plural(unit, x)}".rstrip()


def sides_words(sides: Sequence[float], units: Sequence[str]) -> str:
    """The sides of a box, such as "50 × 47 ft" or "6 × 4 km × 168 h"."""
    groups = groupby(zip(sides, units, strict=True), key=lambda side: side[1])
    texts = []
    for unit, group in groups:
        lengths = [side for side, _ in group]
        texts.append(f"{' × '.join(map(rounded, lengths))} {plural(unit, lengths[-1])}".strip())
    return " × ".join(texts)


def window_words(window: Window) -> str:
    """How large a window is: "50 × 47 ft" or, if it is not a box, "12 km² within 4 × 6 km"."""
    low, high = window.bounds()
    sides = sides_words((high - low).tolist(), window.axis_units)
    if window.box_bounds() is not None:
        return sides
    return f"{rounded(window.volume)} {window.volume_unit}".strip() + f" within {sides}"


def per(*units: str) -> str:
    """What a rate counts: "events per km² per week"; without units "events per unit"."""
    known = [UNIT_NAMES.get(unit, unit) for unit in units if unit]
    return "events" + "".join(f" per {unit}" for unit in known) if known else "events per unit"


def rate_words(window: Window | None, *units: str) -> str:
    """What a rate on a window counts, such as "events per km² per hour"."""
    if window is None:
        return per(*units)
    size = f"unit of {('length', 'area', 'volume')[window.dimension - 1]}"
    return per(*(_volume_units(window.axis_units) or [size]), *units)


def _volume_units(axis_units: tuple[str, ...]) -> list[str]:
    """The unit of a volume by factors, such as ["km²", "h"]."""
    from hplus.windows.geometry import product_of_units

    known = dict.fromkeys(unit for unit in axis_units if unit)
    return [product_of_units((unit,) * axis_units.count(unit)) for unit in known]


def axis_words(window: Window | None, axis: int) -> str:
    """An axis with its unit, such as "x (km)"; without a window the name alone."""
    return with_unit(AXES[axis], "" if window is None else window.axis_units[axis])


def with_unit(name: str, unit: str) -> str:
    """A name with its unit, such as "depth (km)"."""
    return f"{name} ({unit})" if unit and unit != name else name


def day_words(seconds: float) -> str:
    """A time by its seconds since 1970, such as "1 Jan 2014" or "1 Jan 2014 08:30"."""
    at = datetime.fromtimestamp(round(seconds), UTC)
    clock = f" {at:%H:%M}" if at.hour or at.minute else ""
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}{clock}".replace(" ", NBSP)


def sentence(words: str) -> str:
    """Words as a sentence, with a capital and a full stop; "" if there are none."""
    return f"{words[:1].upper()}{words[1:]}." * bool(words)


def listed(parts: Sequence[str]) -> str:
    """Several things in a sentence: "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def place_words(place: Mapping[str, object]) -> str:
    """A place by the user's columns, such as "lon −73.99, lat 40.75"."""
    words = {n: f"{x:.10g}" if isinstance(x, float) else str(x) for n, x in place.items()}
    return ", ".join(f"{name} {text}" for name, text in words.items())


def scales_words(scales: Iterable[float], units: Iterable[str]) -> str:
    """Length scales by unit, equal ones once: "3.8 × 1.9 km and 27 h"."""
    groups: dict[str, list[str]] = {}
    for scale, unit in zip(scales, units, strict=True):
        groups.setdefault(unit, []).append(rounded(scale))
    return listed(
        [
            f"{_once(texts)} {plural(unit, 1.0 if set(texts) == {'1'} else 2.0)}".strip()
            for unit, texts in groups.items()
        ]
    )


def lengths_words(lengths: Iterable[float], units: Iterable[str]) -> str:
    """Lengths above 0 by unit, in a smaller unit if they are short: "40 m", "0.1 ft and 1 ms"."""
    known = [
        (length * 1000.0, SMALLER_UNITS[unit])
        if 0.0 < length < 1.0 and unit in SMALLER_UNITS
        else (length, unit)
        for length, unit in zip(lengths, units, strict=True)
    ]
    return scales_words(*zip(*[pair for pair in known if pair[0] > 0.0], strict=True))


def duration_words(length: float, unit: str, digits: int = 2) -> str:
    """A length of time such as "30 minutes", "7 days" or "5 ms"; other units as they are."""
    if unit not in SECONDS_IN:
        return lengths_words([float(f"{length:.{digits}g}")], [unit])
    seconds = length * SECONDS_IN[unit]
    known = [name for name in SECONDS_IN if name != "week" and seconds >= 0.999 * SECONDS_IN[name]]
    name = known[-1] if known else "us"
    amount = float(f"{seconds / SECONDS_IN[name]:.{digits}g}")
    return f"{rounded(amount, 2)} {plural(UNIT_NAMES.get(name, name), amount)}"


def share_words(share: float) -> str:
    """A share at the beginning of a sentence: "all", "half" or "12 %"."""
    if share == 1.0:
        return "all"
    return "half" if abs(share - 0.5) < HALF_TOLERANCE else percent(share)


def _once(texts: list[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else " × ".join(texts)


def events_words(noun: str, events: Floats | None, expected: float) -> str:
    """How many events are shown or, if none were given, how many are expected."""
    if events is None:
        return f"{number(expected, 3)} events expected" if noun == "rate" else noun
    return counted(len(events), "event" if noun == "rate" else "value")
