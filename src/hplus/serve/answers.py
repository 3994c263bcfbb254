"""What a model answers, as JSON: rates at points, counts to expect, the busiest places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hplus._checks import Floats, check_fraction
from hplus.display.data.hot_spots import find_hot_spots
from hplus.display.data.margins import margins
from hplus.files.extras import arrow
from hplus.files.outlines import outlines_in
from hplus.files.rows import MISSING, Chunk
from hplus.serve.service import Model
from hplus.storage.files import Json
from hplus.studies.event_study import EventStudy
from hplus.studies.expect import Expected, Region, expect, grid_regions, outlined_regions, whole
from hplus.studies.periods import Period, time_asked
from hplus.studies.spans import Amount, moment
from hplus.windows import Window
from hplus.wording import rate_words, six_digits

MOST_POINTS, MOST_CELLS, MOST_REGIONS, MOST_PERIODS = 1000, 2500, 500, 24
"""What one question may ask for."""


def about(model: Model) -> Json:
    """Which model answers."""
    return {
        "version": model.version,
        "events": model.events,
        "offset": model.offset,
        "at": f"{moment(model.at)}Z",
    }


def rate_answer(model: Model, asked: Mapping[str, Sequence[str]], level: float) -> Json:
    """The rate at each point, with an interval; null where a point is not in the window."""
    study = model.study
    frame = study.frame.of_points()
    columns = {name: list(asked.get(name, ())) for name in frame.needed}
    lengths = {len(cells) for cells in columns.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(
            f"give {', '.join(frame.needed)} once for each point, got "
            f"{', '.join(f'{len(cells)} of {name}' for name, cells in columns.items())}."
        )
    if lengths.pop() > MOST_POINTS:
        raise ValueError(f"at most {MOST_POINTS} points can be asked for at once.")
    texts = {n: [None if c in MISSING else c for c in cells] for n, cells in columns.items()}
    chunk = Chunk({n: arrow().array(c, arrow().string()) for n, c in texts.items()})
    found = frame.points(chunk, alone=True)
    rates = _rates(study, found.X, check_fraction("level", level))
    points: list[Json] = []
    for i, good in enumerate(found.rows.tolist()):
        point: Json = {name: cells[i] for name, cells in columns.items()}
        points.append(point | (next(rates) if good else {"rate": None, "low": None, "high": None}))
    per = rate_unit(study, frame.window)
    return {"model": about(model), "rates": per, "level": level, "points": points}


def rate_unit(study: EventStudy, window: Window) -> str:
    """What rates on a window count, such as "events per km² per hour, in an average week"."""
    unit, region = study.exposure_.unit, study.frame.region
    timed = region is None or window.dimension > region.dimension
    if study.frame.cycle and timed:
        return f"{rate_words(region, window.axis_units[-1])}, in an average {unit}"
    return rate_words(window, *([unit] if unit else []))


def _rates(study: EventStudy, X: Floats, level: float) -> Iterator[Json]:
    if len(X) == 0:
        return iter(())
    low, high = study.model_.predict_interval(X, level)
    rows = zip(study.model_.predict(X).tolist(), low.tolist(), high.tolist(), strict=True)
    return iter([dict(zip(("rate", "low", "high"), map(six_digits, r), strict=True)) for r in rows])


def expect_answer(
    model: Model, lasting: str, grid: str, start: str, level: float, regions: object = None
) -> Json:
    """Counts to expect with intervals, in all of the window, in cells or in polygons."""
    study = model.study
    asked = _regions(study, grid, regions)
    amounts = [part.strip() for part in lasting.split(",") if part.strip()]
    if len(amounts) > MOST_PERIODS:
        raise ValueError(f"for must have at most {MOST_PERIODS} lengths, got {len(amounts)}.")
    rows: list[Json] = []
    for text in amounts or [""]:
        amount = Amount.parse(text) if text else None
        period = time_asked(study, amount, start or None)
        rows += [_row(part, text, period) for part in expect(study, asked, period, level)]
    return {"model": about(model), "level": level, "counts": rows}


def _regions(study: EventStudy, grid: str, regions: object) -> list[Region]:
    if regions is not None and grid:
        raise ValueError("give regions or grid, not both.")
    if grid:
        try:
            shape = tuple(int(part) for part in grid.lower().split("x"))
        except ValueError:
            raise ValueError(f"grid must look like 20x20, got {grid!r}.") from None
        if min(shape) < 1 or np.prod(np.minimum(shape, MOST_CELLS), dtype=float) > MOST_CELLS:
            raise ValueError(f"grid must have 1 to {MOST_CELLS} cells, got {grid!r}.")
        found = grid_regions(study.frame, shape)
        if len(found) > MOST_CELLS:
            raise ValueError(f"grid must have 1 to {MOST_CELLS} cells, got {len(found)}.")
        return found
    if regions is None:
        return [whole(study.frame)]
    outlines = list(outlines_in("the body", regions))
    if not 1 <= len(outlines) <= MOST_REGIONS:
        raise ValueError(f"the body must have 1 to {MOST_REGIONS} regions, got {len(outlines)}.")
    with np.errstate(over="ignore", invalid="ignore"):  # of places that are nowhere
        return outlined_regions(study.frame, outlines)


def _row(part: Expected, text: str, period: Period) -> Json:
    when: Json = {"for": text or period.words}
    if not np.isnan(period.start):
        when |= period.edges
    numbers = {"expected": part.expected, "low": part.low, "high": part.high}
    row = {"region": part.region.name, **when, **part.region.edges}
    row |= {name: six_digits(v) for name, v in numbers.items()}
    return row | ({"geometry": part.region.geometry} if part.region.geometry else {})


def as_geojson(found: Json) -> Json:
    """Counts as a collection of features, which have the counts as properties."""
    features = [
        {
            "type": "Feature",
            "geometry": row.get("geometry"),
            "properties": {name: v for name, v in row.items() if name != "geometry"},
        }
        for row in found["counts"]
    ]
    rest = {name: v for name, v in found.items() if name != "counts"}
    return {"type": "FeatureCollection", "features": features, **rest}


def peaks_answer(model: Model) -> Json:
    """The busiest cells, with counts for one unit of exposure and their intervals."""
    study = model.study
    spots = find_hot_spots(study.model_, margins(study.model_), 1.0)
    peaks: list[Json] = []
    for i in range(len(spots.low)):
        counts = {"expected": spots.expected, "low": spots.fewest, "high": spots.most}
        row = _cell(study, spots.low[i], spots.high[i])
        row |= {name: six_digits(float(v[i])) for name, v in counts.items()}
        peaks.append(row | {"times_average": six_digits(float(spots.ratio[i]))})
    unit = study.exposure_.unit
    return {"model": about(model), "level": 0.9, "per": unit or "all events", "peaks": peaks}


def _cell(study: EventStudy, low: Floats, high: Floats) -> Json:
    """The edges of a cell in the columns of the events, or parts of the axis of time."""
    frame = study.frame
    if frame.region is None:
        assert frame.clock is not None
        a, b = frame.clock.words(np.array([low[0], high[0]]))
        return {f"{frame.clock.column}_low": a, f"{frame.clock.column}_high": b}
    ends = frame.own(np.array([low, high]))
    pairs = zip(frame.columns, *ends.tolist(), strict=False)
    return {k: v for n, a, b in pairs for k, v in ((f"{n}_low", a), (f"{n}_high", b))}
