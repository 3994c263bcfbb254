"""What the parameters of a self-exciting rate must be."""

from __future__ import annotations

import numpy as np

from hplus._checks import check_positive, shown
from hplus.windows import Interval, Product, Window, check_window

LEAST_OF_WINDOW = 1e-12
"""The least of the longest lag and distance, as a share of the window's: numbers are not exact."""

SHORTEST_SIDE, LONGEST_SIDE = 1e-30, 1e30
"""Sides of windows: areas and squares of others could not be held by numbers."""

MOST_WINDOWS_AHEAD = 1e6
"""The longest time to come, in times of the window."""

LEAST_STEPS = 4.0
"""The shortest time to come, in steps between numbers."""


def check_excited_window(window: Window) -> None:
    """Refuse windows that are not times, or places and times."""
    both = (
        isinstance(window, Product)
        and isinstance(window.right, Interval)
        and (window.left.dimension == 2 or isinstance(window.left, Interval))
    )
    if not (isinstance(window, Interval) or both):
        raise TypeError(
            "window must be an Interval of time, or places times one: a region in the plane "
            "such as Box([0, 0], [1, 1]) * Interval(0, 365), or Interval(0, 80) * Interval(0, "
            f"365) along a road, got {shown(window)}."
        )
    check_window("window", window)
    low, high = window.bounds()
    sides = high - low
    extreme = (sides < SHORTEST_SIDE) | (sides > LONGEST_SIDE)
    if extreme.any():
        raise ValueError(
            f"window must have sides between {SHORTEST_SIDE:g} and {LONGEST_SIDE:g}, got "
            f"{sides[extreme][0]:g}: use other units."
        )


def check_ahead(window: Window, begin: float, horizon: float) -> None:
    """Refuse times to come that are too far away, too long or too short to be simulated."""
    period = window.right if isinstance(window, Product) else window
    assert isinstance(period, Interval)
    longest = MOST_WINDOWS_AHEAD * period.volume
    if begin - period.high > longest:
        raise ValueError(
            f"start must be at most {longest:g} after the window, {MOST_WINDOWS_AHEAD:g} times as "
            f"long, got {begin:g}."
        )
    least = max(LEAST_OF_WINDOW * period.volume, LEAST_STEPS * float(np.spacing(abs(begin))))
    if not least <= horizon <= longest:
        raise ValueError(
            f"horizon must lie between {least:.3g} and {longest:g} for this window, got "
            f"{horizon:g}."
        )


def check_longest(window: Window, lag: float | None, distance: float | None) -> None:
    """Refuse a longest lag or distance that no events of the window could tell about."""
    region, period = (window.left, window.right) if isinstance(window, Product) else (None, window)
    _check_within("longest_lag", lag, float(period.volume), "time")
    if region is not None:
        low, high = region.bounds()
        side = "length" if len(low) == 1 else "diagonal"
        _check_within("longest_distance", distance, float(np.linalg.norm(high - low)), side)
    elif distance is not None:
        raise ValueError(
            f"longest_distance must be None for events without places, got {shown(distance)}."
        )


def check_period(period: object) -> Interval:
    """The time in which events are scored; an error unless it is an interval with finite ends."""
    if not isinstance(period, Interval):
        raise TypeError(
            f"period must be an Interval of time such as Interval(0, 5), got {shown(period)}."
        )
    check_window("period", period)
    return period


def _check_within(name: str, value: float | None, most: float, side: str) -> None:
    if value is None:
        return
    kind = f"{name.removeprefix('longest_')}s"
    if check_positive(name, value) > most:
        raise ValueError(
            f"{name} must not be longer than the window's {side}, {most:g}, got {shown(value)}: "
            f"longer {kind} cannot be learned from it."
        )
    if value < (least := LEAST_OF_WINDOW * most):
        raise ValueError(
            f"{name} must be at least {least:g}, {LEAST_OF_WINDOW:g} of the window's {side}, got "
            f"{shown(value)}: shorter {kind} are lost in rounding."
        )
