"""Expected counts with intervals, in regions and grid cells, for a period or an exposure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hplus._checks import Bools, Floats, check_count, check_fraction
from hplus.files.outlines import Outline, read_outlines
from hplus.rates.mixed_poisson import mixed_poisson_quantile
from hplus.rates.separable import SeparableRate, pairs_of_draws
from hplus.studies.event_weights import weight_unit
from hplus.studies.frames import Frame
from hplus.studies.map_ratios import RegionMaps, region_maps
from hplus.studies.outlooks import outlook_for
from hplus.studies.periods import Period, in_days
from hplus.studies.repeated_trials import trial_factors
from hplus.studies.time_counts import MeanCounts, time_counts
from hplus.windows import Box, Interval, Window, overlapping

if TYPE_CHECKING:
    from hplus.rates.local_dispersion import LocalDispersion
    from hplus.studies.event_study import EventStudy

MAX_GRID_CELLS = 100_000
"""Cells of a grid, at most."""

REGIONS_AT_ONCE = 4096
"""Regions whose draws are in memory together."""


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


def named_regions(frame: Frame, path: str, field: str | None = None) -> list[Region]:
    """The polygons of a file as regions of a frame."""
    return outlined_regions(frame, read_outlines(path, field), path)


def outlined_regions(frame: Frame, outlines: Sequence[Outline], path: str = "") -> list[Region]:
    """Polygons, of a file if it is named, as regions of a frame."""
    if len(frame.columns) != 2:
        raise ValueError(
            f"regions need a model with two columns of coordinates, got "
            f"{', '.join(frame.needed)}: use a grid."
        )
    regions = []
    for outline in outlines:
        rings = [[ring.tolist() for ring in polygon] for polygon in outline.polygons]
        geometry = {"type": "MultiPolygon", "coordinates": rings}
        if len(rings) == 1:
            geometry = {"type": "Polygon", "coordinates": rings[0]}
        try:
            window = frame.window_of(outline.polygons)
        except ValueError as error:
            file = f" of {path}" * bool(path)
            raise ValueError(f"region {outline.name!r}{file} cannot be used: {error}") from None
        regions.append(Region(outline.name, window, {}, geometry))
    return regions


def grid_regions(frame: Frame, shape: Sequence[int], *, in_degrees: bool = False) -> list[Region]:
    """The window's bounding box in cells: a number for each column, or one for the longest side.

    Cells of longitude and latitude have equal areas or, `in_degrees`, equal sides in degrees.
    """
    if frame.region is None:
        raise ValueError("a grid needs columns of coordinates: cut the period instead.")
    counts = _cell_counts(frame.region, shape)
    low, high = frame.region.bounds()
    edges = [np.linspace(a, b, n + 1) for a, b, n in zip(low, high, counts, strict=True)]
    if in_degrees and frame.place is not None:
        (_, south), (_, north) = frame.own(np.array([low, high]))
        lat = np.linspace(south, north, counts[1] + 1)
        edges[1] = frame.place.forward(np.column_stack([np.full(len(lat), frame.place.west), lat]))[
            :, 1
        ]
    cells = np.stack(np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"), -1)
    return [_cell(frame, edges, index) for index in cells.reshape(-1, len(counts))]


def _cell_counts(whole: Window, shape: Sequence[int]) -> list[int]:
    """The number of cells of a grid along each axis of a window."""
    d = whole.dimension
    counts = [check_count("every number of a grid", n) for n in shape]
    if len(counts) == 1 and d > 1:
        low, high = whole.bounds()
        shares = (high - low) / whole.longest_sides()
        counts = np.maximum(1, np.round(counts[0] * shares)).astype(int).tolist()
    if len(counts) != d:
        raise ValueError(
            f"a grid must have {d} number{'s' * (d != 1)}, like {'x'.join(['20'] * d)}, got "
            f"{'x'.join(map(str, shape))}."
        )
    if np.prod(counts) > MAX_GRID_CELLS:
        raise ValueError(f"a grid must have at most {MAX_GRID_CELLS} cells, got {np.prod(counts)}.")
    return counts


def _cell(frame: Frame, edges: list[Floats], index: Any) -> Region:
    low = np.array([edge[i] for edge, i in zip(edges, index, strict=True)])
    high = np.array([edge[i + 1] for edge, i in zip(edges, index, strict=True)])
    name = "-".join(str(i + 1) for i in index)
    a, b = frame.own(np.array([low, high]))
    named = {f"{c}_low": float(x) for c, x in zip(frame.columns, a, strict=True)}
    named |= {f"{c}_high": float(x) for c, x in zip(frame.columns, b, strict=True)}
    if len(low) == 1:
        return Region(name, Interval(low[0], high[0]), named, None)
    window = Box(tuple(low.tolist()), tuple(high.tolist()))
    ring = [[a[0], a[1]], [b[0], a[1]], [b[0], b[1]], [a[0], b[1]], [a[0], a[1]]]
    geometry = {"type": "Polygon", "coordinates": [[[float(x) for x in p] for p in ring]]}
    return Region(name, window, named, geometry if len(low) == 2 else None)


def expect(
    study: EventStudy,
    regions: Sequence[Region],
    time: Period | Sequence[Period],
    level: float = 0.9,
) -> list[Expected]:
    """The expected count in each region during a period, with a prediction interval.

    During each of several periods, one after another: regions then have the edges `from` and `to`.
    """
    tail = 0.5 * (1.0 - check_fraction("level", level))
    periods, unit = [time] if isinstance(time, Period) else time, weight_unit(study)
    observed, when, found = _by_place(study, regions), _by_time(study, periods), []
    ratios, maps = _present_ratios(study, regions), _maps(study, regions)
    for p, period in enumerate(periods):
        named = regions if isinstance(time, Period) else during(study.frame, regions, period, p)
        where = _at_time(study, observed, ratios, maps, period)
        means, low, high = where.means * when.means[p], np.zeros(0), np.zeros(0)
        for draws in _draws(study, where, when.draws[p], period):
            low = np.append(low, unit * mixed_poisson_quantile(draws / unit, tail))
            high = np.append(high, unit * mixed_poisson_quantile(draws / unit, 1.0 - tail))
        found += list(map(Expected, named, means.tolist(), low.tolist(), high.tolist()))
    return found


def count_means(study: EventStudy, regions: Sequence[Region], period: Period) -> Floats:
    """Equally likely means of the count of each region during a period, shape (r, k).

    Counts are Poisson around them; a mean varies by more than what is unknown about the rate if
    counts to come do.
    """
    observed, when = _by_place(study, regions), _by_time(study, [period])
    ratios, maps = _present_ratios(study, regions), _maps(study, regions)
    where = _at_time(study, observed, ratios, maps, period)
    return np.vstack(list(_draws(study, where, when.draws[0], period)))


def during(frame: Frame, regions: Sequence[Region], period: Period, number: int) -> list[Region]:
    """Regions during one of several periods; without places the period is all there is to name."""
    names = [str(number + 1) if frame.region is None else region.name for region in regions]
    return [
        region._replace(name=name, edges=region.edges | period.edges)
        for region, name in zip(regions, names, strict=True)
    ]


def _by_time(study: EventStudy, periods: Sequence[Period]) -> MeanCounts:
    """Counts in the whole window by period, or the exposure of each."""
    if study.frame.clock is not None:
        return time_counts(study, periods)
    exposures = np.array([period.exposure for period in periods])
    return MeanCounts(exposures, exposures[:, None] * trial_factors(study, exposures))


def _by_place(study: EventStudy, regions: Sequence[Region]) -> MeanCounts:
    """Counts for one unit of exposure by region or, with times, shares of all events."""
    frame, rate = study.frame, study.model_.rate_
    if frame.region is None:
        return MeanCounts(np.ones(len(regions)), np.ones((len(regions), 1)))
    windows = _windows(frame.region, regions)
    if not isinstance(rate, SeparableRate):
        return MeanCounts(rate.integrals(windows), rate.count_draws(windows))
    return MeanCounts(*rate.shares(windows))


def _windows(whole: Window, regions: Sequence[Region]) -> list[Window]:
    return [whole if region.window is None else region.window for region in regions]


def _present_ratios(study: EventStudy, regions: Sequence[Region]) -> Floats | None:
    """Shares when observation ended over those of all of it, (r, k); None if they are the same."""
    region, rate, outlook = study.frame.region, study.model_.rate_, getattr(study, "outlook_", None)
    recent = None if outlook is None else outlook.recent
    if recent is None or region is None or not isinstance(rate, SeparableRate):
        return None
    found: Floats = recent.ratios(_windows(region, regions), region, rate.place)
    return found


def _maps(study: EventStudy, regions: Sequence[Region]) -> RegionMaps | None:
    """How the shares of regions change with the time of a cycle; None if they do not."""
    frame = study.frame
    windows = [] if frame.region is None else _windows(frame.region, regions)
    return region_maps(study.model_.rate_, frame.clock, windows)


def _at_time(
    study: EventStudy,
    observed: MeanCounts,
    ratios: Floats | None,
    maps: RegionMaps | None,
    period: Period,
) -> MeanCounts:
    """Shares of regions in a period: those of its time of day, and what has become of them."""
    if maps is not None:
        observed = maps.during(period, observed)
    clock, outlook = study.frame.clock, outlook_for(study, period)
    if ratios is None or clock is None or outlook is None or period.start < clock.end:
        return observed
    assert outlook.recent is not None
    middle = 0.5 * (period.start + period.end)
    then = outlook.recent.after(in_days(middle - clock.end), ratios)
    i, j = pairs_of_draws(observed.draws.shape[1], then.shape[1])
    return MeanCounts(observed.means * then.mean(axis=1), observed.draws[:, i] * then[:, j])


def _draws(study: EventStudy, where: MeanCounts, time: Floats, period: Period) -> Iterator[Floats]:
    """Equally likely means (r, k) of the counts of regions, some regions at a time."""
    i, j = pairs_of_draws(where.draws.shape[1], len(time))
    law, length, repeats = _local_law(study, period)
    # the integral over a whole map takes time, and matters to the law alone
    shares = where.means / (1.0 if law is None else _in_all(study))
    unit = weight_unit(study)
    for first in range(0, len(where.means), REGIONS_AT_ONCE):
        some = slice(first, first + REGIONS_AT_ONCE)
        draws = where.draws[some][:, i] * time[j]
        if law is not None:
            most = None if study.frame.clock is None else time[j] / unit
            draws = unit * law.varied(draws / unit, length, shares[some], repeats, most)
        yield draws


def _local_law(study: EventStudy, period: Period) -> tuple[LocalDispersion | None, float, float]:
    """How much more parts of the window vary over a length of time, which is repeated so often."""
    outlook, trials = outlook_for(study, period), getattr(study, "trials_", None)
    if trials is not None:
        return trials.local, 1.0, period.exposure
    return None if outlook is None else outlook.local, in_days(period.seconds), 1.0


def _in_all(study: EventStudy) -> float:
    """What means of regions are shares of: with times, of 1, and otherwise the whole count."""
    region, rate = study.frame.region, study.model_.rate_
    return 1.0 if region is None or study.frame.clock else float(rate.integrals([region])[0])


def in_window(frame: Frame, regions: Sequence[Region]) -> Bools:
    """Which regions lie in the window of a frame, at least in part, shape (r,)."""
    if frame.region is None:
        return np.ones(len(regions), dtype=bool)
    # each period has the same regions
    windows = {id(window): window for window in _windows(frame.region, regions)}
    inside = dict(zip(windows, overlapping(frame.region, list(windows.values())), strict=True))
    return np.array([inside[id(window)] for window in _windows(frame.region, regions)], dtype=bool)


def whole(frame: Frame) -> Region:
    """All of the window."""
    return Region("all", frame.region, {}, None)
