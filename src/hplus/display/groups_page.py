"""From a study of groups to a page: the groups side by side, where they differ, and each alone."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from xml.etree.ElementTree import Element

import numpy as np

from hplus._checks import shown
from hplus.display.canvas import Canvas, shape
from hplus.display.chart_axes import ChartAxis
from hplus.display.map_charts import FLATTEST, TALLEST, cut_out
from hplus.display.page import page_template, report_html
from hplus.files.tables import TableLike
from hplus.storage.files import Json, replace_file
from hplus.studies.events import sampled
from hplus.studies.expect import Region, grid_regions
from hplus.studies.frames import Frame
from hplus.studies.grouped_study import GroupedStudy, RegionRatio
from hplus.windows import Interval
from hplus.wording import count, left_out_words, place_words, rounded, window_words

MAP_CELLS, LINE_PARTS = 12, 8
"""Cells along the longest side of a map of ratios, and parts of a line or of a cycle."""

RATIO_WIDTH = 520.0
"""Of a map of ratios, in pixels."""


def write_groups_report(
    grouped: GroupedStudy,
    path: str | PathLike[str],
    events: TableLike | None = None,
    title: str | None = None,
) -> None:
    """Write the page of a fitted study of groups; `events` are drawn on the map of each group."""
    if not isinstance(grouped, GroupedStudy) or not hasattr(grouped, "studies_"):
        raise TypeError(f"grouped must be a fitted GroupedStudy, got {shown(grouped)}.")
    page = page_template("groups.html.j2").render(facts=group_page(grouped, events, title))
    replace_file(Path(path), [page.encode()])


def group_page(
    grouped: GroupedStudy, events: TableLike | None, title: str | None
) -> SimpleNamespace:
    """Everything on the page."""
    found, frame = grouped.facts(), grouped.study.frame
    first, *others = grouped.studies_
    compared = [] if not others else _compared(grouped, others[0], first)
    return SimpleNamespace(
        title=title or f"Rates by {grouped.by}",
        by=grouped.by,
        first=first,
        second=others[0] if others else "",
        window=window_words(frame.window),
        rows=[_row(name, part, found["ratios"]) for name, part in found["groups"].items()],
        left_out=left_out_words(found["left_out"]),
        map=_ratio_map(frame, compared) if _has_map(frame) and compared else None,
        parts=[] if _has_map(frame) else [_part(part) for part in compared],
        pages={name: _page(grouped, name, events) for name in grouped.studies_},
        command=str(grouped.made_with_.get("command", "")),
    )


def _page(grouped: GroupedStudy, name: str, events: TableLike | None) -> str:
    """The page of one group, with its events."""
    study = grouped[name]
    title = f"{grouped.by} {name}"
    if events is None:
        return report_html(study, title=title)
    known = sampled(events, study.frame)
    return report_html(study, known.X, title, seconds=known.seconds)


def _row(name: str, facts: Json, ratios: list[Json]) -> list[str]:
    """A group in a row of the table."""
    ratio = next((part for part in ratios if part["group"] == name), None)
    peak, held = facts["peak"], facts["holdout"]
    place = place_words({column: at for column, at in peak.items() if column != "rate"})
    return [
        name,
        count(facts["events"]),
        rounded(facts["expected"]),
        ": ".join(filter(None, (place, f"{rounded(peak['rate'])} {facts['rates']}"))),
        "" if held is None else f"{held['gain']:+.3f} ± {held['gain_error']:.3f}",
        "" if ratio is None else _with_interval(ratio["ratio"], ratio["low"], ratio["high"]),
    ]


def _with_interval(ratio: float, low: float, high: float) -> str:
    return f"{rounded(ratio)} ({rounded(low)} to {rounded(high)})"


def _part(part: RegionRatio) -> list[str]:
    return [part.region.name, _with_interval(*part[1:])]


def _has_map(frame: Frame) -> bool:
    return frame.region is not None and frame.region.dimension == 2


def _compared(grouped: GroupedStudy, group: str, to: str) -> list[RegionRatio]:
    """The ratio of two groups in parts of the window, those outside of it left out."""
    found = grouped.ratio_by_region(group, to, _parts(grouped.study.frame))
    return [part for part in found if np.isfinite([part.ratio, part.low, part.high]).all()]


def _parts(frame: Frame) -> list[Region]:
    """Parts of the window to compare: cells of a map, parts of a line or of a cycle."""
    if frame.region is None:
        assert frame.clock is not None
        low, high = (float(end[0]) for end in frame.clock.window.bounds())
        edges = np.linspace(low, high, LINE_PARTS + 1)
        words = frame.clock.words(edges)
        return [
            Region(f"{words[i]} to {words[i + 1]}", Interval(edges[i], edges[i + 1]), {}, None)
            for i in range(LINE_PARTS)
        ]
    if frame.region.dimension > 2:
        return []
    cells = grid_regions(frame, (MAP_CELLS if frame.region.dimension == 2 else LINE_PARTS,))
    return [cell._replace(name=" to ".join(_ends(cell))) for cell in cells]


def _ends(cell: Region) -> list[str]:
    return [rounded(edge) for edge in cell.edges.values() if isinstance(edge, float)]


def _ratio_map(frame: Frame, compared: list[RegionRatio]) -> Element:
    """Cells in which the second group has surely more events for the first, or fewer."""
    assert frame.region is not None
    (x0, y0), (x1, y1) = frame.region.bounds()
    side = float(np.clip((y1 - y0) / (x1 - x0), FLATTEST, TALLEST))
    axes = ChartAxis("", float(x0), float(x1)), ChartAxis("", float(y0), float(y1))
    canvas = Canvas(*axes, RATIO_WIDTH, RATIO_WIDTH * side, 0.0, 0.0, 0.0, 0.0)
    sure = [part for part in compared if part.low > 1.0 or part.high < 1.0]
    reach = max((abs(np.log(part.ratio)) for part in sure), default=1.0)
    boxes = []
    for part in sure:
        assert part.region.window is not None
        corners = np.stack(part.region.window.bounds(), axis=1)
        (x, below), (right, y) = canvas.pixels(*corners).tolist()
        sign, strength = "more" if part.ratio > 1.0 else "fewer", abs(np.log(part.ratio)) / reach
        box = {"x": x, "y": y, "width": right - x, "height": below - y}
        boxes.append(shape("rect", class_=sign, fill_opacity=0.9 * strength, stroke="none", **box))
    cut = cut_out(canvas, frame.region, "window-ratio", *boxes)
    return canvas.svg(*cut, label="Map of the ratio of two groups")
