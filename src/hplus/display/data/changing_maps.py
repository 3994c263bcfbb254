"""How the map of a rate differs between parts of the day or of the week."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.map_by_time import MapByTime
from hplus.rates.map_learning import DAY_HOURS, WEEK_HOURS
from hplus.windows import Window

DAY_PARTS, MAX_SHOWN_CELLS = 4, 32
"""Parts of a day, and cells along a side of a map, at most."""

WEEKEND = 120.0
"""Hours from the start of a week to its weekend."""


class PartRatios(NamedTuple):
    """A part of the cycle, and the ratio of its map to the average one, (columns, rows).

    NaN where there are no places.
    """

    label: str
    ratios: Floats


class ChangingMaps(NamedTuple):
    """Maps of parts of a cycle over the average map, in cells that begin at `low`.

    `reach` is the largest |log ratio| of all, for one scale of colours.
    """

    place: Window
    low: Floats
    side: Floats
    parts: tuple[PartRatios, ...]
    by: str
    reach: float

    @property
    def extremes(self) -> tuple[tuple[float, str], tuple[float, str]]:
        """The largest and the smallest ratio, each with its part."""
        ends = [
            (float(f(part.ratios)), part.label)
            for f in (np.nanmax, np.nanmin)
            for part in self.parts
        ]
        return max(ends), min(ends)


def changing_maps(by_time: MapByTime) -> ChangingMaps:
    """The parts of the day whose maps differ most, or weekdays and the weekend."""
    places = by_time.place_masses
    step = max(1, places.shape[0] // MAX_SHOWN_CELLS)
    found = [[_part(by_time, label, spans, step) for label, spans in cut] for cut in _cuts(by_time)]
    weights = _blocks(places, step)
    parts = max(found, key=lambda parts: _spread(parts, weights))
    logs = np.concatenate([np.log(part.ratios[weights > 0.0]) for part in parts])
    grid, by = by_time.grid, "day" if by_time.period == DAY_HOURS else "week"
    return ChangingMaps(
        by_time.window.left, grid.low, step * grid.side, tuple(parts), by, float(np.abs(logs).max())
    )


Spans = list[tuple[float, float]]


def _cuts(by_time: MapByTime) -> list[list[tuple[str, Spans]]]:
    """Ways to cut the cycle into parts with names."""
    if by_time.period == WEEK_HOURS:
        return [[("Monday to Friday", [(0.0, WEEKEND)]), ("weekend", [(WEEKEND, WEEK_HOURS)])]]
    length = by_time.period / DAY_PARTS
    return [
        [
            (_hours(start + k * length, length), [(start + k * length, start + (k + 1) * length)])
            for k in range(DAY_PARTS)
        ]
        for start in range(int(length))
    ]


def _hours(start: float, length: float) -> str:
    return f"{start:02.0f}:00 to {(start + length) % DAY_HOURS:02.0f}:00"


def _part(by_time: MapByTime, label: str, spans: Spans, step: int) -> PartRatios:
    """The mean ratio of a part of the cycle in blocks of cells."""
    bins = len(by_time.time_masses)
    edges = np.arange(bins + 1) * by_time.period / bins
    # a part may begin before midnight and end after it
    turns = [(a + turn, b + turn) for a, b in spans for turn in (-by_time.period, 0.0)]
    lengths = sum(
        np.clip(np.minimum(edges[1:], b) - np.maximum(edges[:-1], a), 0.0, None) for a, b in turns
    )
    shares = by_time.time_masses * lengths
    ratios = (by_time.ratios @ (shares / shares.sum())).reshape(by_time.place_masses.shape)
    whole = _blocks(by_time.place_masses, step)
    counts = _blocks(by_time.place_masses * ratios, step)
    return PartRatios(
        label, np.divide(counts, whole, out=np.full(whole.shape, np.nan), where=whole > 0.0)
    )


def _blocks(table: Floats, step: int) -> Floats:
    """Sums of a table (c, r) over blocks of cells."""
    c, r = table.shape
    return table.reshape(c // step, step, r // step, step).sum(axis=(1, 3))


def _spread(parts: list[PartRatios], weights: Floats) -> float:
    """How much maps differ: the mean squared log ratio."""
    some = weights > 0.0
    return sum(float(weights[some] @ np.log(part.ratios[some]) ** 2) for part in parts)
