"""Expected counts with intervals, in regions and grid cells, for a period or an exposure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats, check_count, check_fraction
from hplus.files.outlines import read_outlines
from hplus.rates.mixed_poisson import mixed_poisson_quantile
from hplus.studies.event_study import EventStudy
from hplus.studies.frames import Frame
from hplus.studies.spans import SECONDS, Amount, moment, phases, seconds_of
from hplus.windows import Box, Interval, Window

MAX_CELLS = 100_000
"""Cells of a grid, at most."""


class Region(NamedTuple):
    """A named part of the window: its edges in the user's own columns, and as GeoJSON."""

    name: str
    window: Window | None
    edges: dict[str, Any]
    geometry: dict[str, Any] | None


class Expected(NamedTuple):
    """A region with its expected count, and the bounds of an interval for the count."""

    region: Region
    expected: float
    low: float
    high: float


class Period(NamedTuple):
    """A period as parts of the axis of time, each with how often it occurs; and in words."""

    parts: Sequence[tuple[Interval | None, float]]
    words: str


def named_regions(frame: Frame, path: str, field: str | None = None) -> list[Region]:
    """The polygons of a file as regions of a frame."""
    if len(frame.columns) != 2:
        raise ValueError(
            f"regions need a model with two columns of coordinates, got "
            f"{', '.join(frame.needed)}: use a grid."
        )
    regions = []
    for outline in read_outlines(path, field):
        rings = [[ring.tolist() for ring in polygon] for polygon in outline.polygons]
        geometry = {"type": "MultiPolygon", "coordinates": rings}
        if len(rings) == 1:
            geometry = {"type": "Polygon", "coordinates": rings[0]}
        window = frame.window_of(outline.polygons)
        regions.append(Region(outline.name, window, {}, geometry))
    return regions


def grid_regions(frame: Frame, shape: Sequence[int]) -> list[Region]:
    """The window's bounding box in cells: a number for each column, or for the axis of time."""
    region = frame.region
    whole = frame.window if region is None else region
    if len(shape) != whole.dimension:
        raise ValueError(
            f"a grid must have {whole.dimension} number{'s' * (whole.dimension != 1)}, like "
            f"{'x'.join(['20'] * whole.dimension)}, got {'x'.join(map(str, shape))}."
        )
    counts = [check_count("every number of a grid", n) for n in shape]
    if np.prod(counts) > MAX_CELLS:
        raise ValueError(f"a grid must have at most {MAX_CELLS} cells, got {np.prod(counts)}.")
    low, high = whole.bounds()
    edges = [np.linspace(a, b, n + 1) for a, b, n in zip(low, high, counts, strict=True)]
    cells = np.stack(np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"), -1)
    return [_cell(frame, edges, index) for index in cells.reshape(-1, len(counts))]


def _cell(frame: Frame, edges: list[Floats], index: Any) -> Region:
    low = np.array([edge[i] for edge, i in zip(edges, index, strict=True)])
    high = np.array([edge[i + 1] for edge, i in zip(edges, index, strict=True)])
    name = "-".join(str(i + 1) for i in index)
    if frame.region is None:
        assert frame.clock is not None
        words = frame.clock.words(np.array([low[0], high[0]]))
        return Region(name, Interval(low[0], high[0]), {"from": words[0], "to": words[1]}, None)
    a, b = frame.own(np.array([low, high]))
    named = {f"{c}_low": float(x) for c, x in zip(frame.columns, a, strict=True)}
    named |= {f"{c}_high": float(x) for c, x in zip(frame.columns, b, strict=True)}
    if len(low) == 1:
        return Region(name, Interval(low[0], high[0]), named, None)
    window = Box(tuple(low.tolist()), tuple(high.tolist()))
    ring = [[a[0], a[1]], [b[0], a[1]], [b[0], b[1]], [a[0], b[1]], [a[0], a[1]]]
    geometry = {"type": "Polygon", "coordinates": [[[float(x) for x in p] for p in ring]]}
    return Region(name, window, named, geometry if len(low) == 2 else None)


def time_asked(
    study: EventStudy, lasting: Amount | None, start: str | None = None, end: str | None = None
) -> Period:
    """The period of the counts: of a cycle, of the observation period, or an exposure."""
    clock = study.frame.clock
    if clock is None:
        return _of_exposure(study, lasting, start, end)
    if lasting is not None and end is not None:
        raise ValueError("give lasting= or end=, not both.")
    begins = clock.end if clock.cycle else clock.start
    a = begins if start is None else seconds_of("start", start, clock.zone)
    if clock.cycle:
        if end is not None:
            seconds = seconds_of("end", end, clock.zone) - a
        else:
            seconds = (lasting or Amount(1.0, clock.cycle)).to("s")
        if not seconds > 0.0:
            raise ValueError("end= must be after start=.")
        parts = [(Interval(u, v), times) for u, v, times in phases(clock, a, seconds)]
        return Period(parts, _span(a, a + seconds))
    b = clock.end if end is None else seconds_of("end", end, clock.zone)
    if lasting is not None:
        b = a + lasting.to("s")
    if not clock.start <= a < b <= clock.end:
        raise ValueError(
            f"the model covers {moment(clock.start)} to {moment(clock.end)}, got {moment(a)} to "
            f"{moment(b)}: to forecast, fit with cycle='day' or cycle='week'."
        )
    scale = SECONDS[clock.unit]
    part = Interval((a - clock.start) / scale, (b - clock.start) / scale)
    once = _one(study.exposure_)
    return Period([(part, 1.0)], _span(a, b) + (f", in {once}" if once else ""))


def _one(exposure: Amount) -> str:
    """One unit of exposure in words; "" if the exposure is not known."""
    if not exposure.unit and exposure.amount == 1.0:
        return ""
    return f"one {exposure.unit or 'unit of exposure'}"


def _span(a: float, b: float) -> str:
    """A period in words, as short as possible."""
    ends = (moment(t).replace("T", " ").removesuffix(":00") for t in (a, b))
    return " to ".join(ends)


def _of_exposure(
    study: EventStudy, lasting: Amount | None, start: str | None, end: str | None
) -> Period:
    unit = study.exposure_.unit
    if start or end:
        raise ValueError("start= and end= need a model with times: fit with time= and cycle=.")
    if lasting is None:
        return Period([(None, 1.0)], _one(study.exposure_) or "the observation period")
    if not unit and lasting.unit:
        raise ValueError(
            f"lasting= needs a model that was fitted with an exposure, got {lasting}: fit with "
            "exposure=, for example exposure='365d'."
        )
    words = str(lasting) if lasting.unit else f"{lasting} units of exposure"
    return Period([(None, lasting.to(unit))], words)


def expect(
    study: EventStudy, regions: Sequence[Region], time: Period, level: float = 0.9
) -> list[Expected]:
    """The expected count in each region during a period, with a prediction interval."""
    tail = 0.5 * (1.0 - check_fraction("level", level))
    rate, count = study.model_.rate_, len(regions)
    means, draws = np.zeros(count), np.zeros((count, 1))
    for part, times in time.parts:
        windows = [_region_during(study.frame, region.window, part) for region in regions]
        met = [i for i, window in enumerate(windows) if window is not None]
        asked = [window for window in windows if window is not None]
        means[met] += times * rate.integrals(asked)
        more = times * rate.count_draws(asked)
        draws = np.tile(draws, (1, more.shape[1] // draws.shape[1]))
        draws[met] += more
    low, high = (mixed_poisson_quantile(draws, p).tolist() for p in (tail, 1.0 - tail))
    return list(map(Expected, regions, means.tolist(), low, high))


def whole(frame: Frame) -> Region:
    """All of the window."""
    return Region("all", frame.region, {}, None)


def _region_during(frame: Frame, region: Window | None, part: Interval | None) -> Window | None:
    """A region during a part of the period, as a region of the window; None if it is empty."""
    if frame.region is None:
        if region is None or part is None:
            return region or part or frame.window
        low, high = max(region.bounds()[0][0], part.low), min(region.bounds()[1][0], part.high)
        return Interval(low, high) if low < high else None
    region = frame.region if region is None else region
    if frame.clock is None:
        return region
    return region * (frame.clock.window if part is None else part)
