"""The words on a picture: axes and rates with their units, windows and counts in a title."""

from __future__ import annotations

from hplus._checks import Floats
from hplus.windows import Window

AXES = ("x", "y", "z")
"""Names of the axes of a window."""


def axis_label(window: Window | None, axis: int) -> str:
    """The name of an axis with its unit, such as "x (km)"; without a window the name alone."""
    unit = window.axis_units[axis] if window is not None else ""
    return f"{AXES[axis]} ({unit})" if unit else AXES[axis]


def rate_label(window: Window | None) -> str:
    """What a rate on the window counts, such as "events per km²"."""
    if window is None:
        return "events per unit"
    size = ("length", "area", "volume")[window.dimension - 1]
    return f"events per {window.volume_unit or f'unit of {size}'}"


def height_label(noun: str, window: Window) -> str:
    """What a curve or a colour says: the rate in its unit, or "density"."""
    return rate_label(window) if noun == "rate" else noun


def number(x: float, digits: int = 4) -> str:
    """x to so many digits, but with its whole part in full, by thousands from 10,000 on."""
    digits = max(digits, len(f"{abs(x):.0f}"))
    # years and most coordinates have four digits, and no comma
    comma = "," if abs(x) >= 1e4 else ""
    return f"{x:{comma}.{digits}g}".replace("-", "−")


def quantity(x: float, unit: str) -> str:
    """A number with its unit, if there is one."""
    return f"{number(x)} {unit}".rstrip()


def p_words(p: float) -> str:
    """A p-value of a test, such as "p = 0.26"."""
    return f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"


def count_words(n: int, noun: str = "event") -> str:
    """How many, such as "1,585 events" or "1 event"."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def events_words(noun: str, events: Floats | None, expected: float) -> str:
    """How many events are shown or, if none were given, how many the rate expects."""
    if events is None:
        return f"{number(expected, 3)} events expected" if noun == "rate" else noun
    return count_words(len(events), "event" if noun == "rate" else "value")


def window_words(window: Window) -> str:
    """How large a window is: "window 50 × 47 ft" or, of a polygon, "window of area 12 km²"."""
    bounds, units = window.box_bounds(), window.axis_units
    if bounds is None:
        return f"window of area {quantity(window.volume, window.volume_unit)}"
    sides = (bounds[1] - bounds[0]).tolist()
    if len(set(units)) == 1:
        return f"window {' × '.join(number(side) for side in sides)} {units[0]}".rstrip()
    return f"window {' × '.join(map(quantity, sides, units))}"
