"""What the live page shows, as JSON: the picture of the rate, new events, counts over time."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
from scipy.stats import nbinom

from hplus._checks import Floats
from hplus.alerts.watch import WEEK
from hplus.display.data.framing import place_of
from hplus.display.data.hot_spots import find_hot_spots
from hplus.display.data.margins import margins
from hplus.estimators.intensity import Intensity
from hplus.estimators.separable import SeparableIntensity
from hplus.serve.answers import rate_unit
from hplus.serve.live_watch import LiveWatch
from hplus.serve.service import Model, Service
from hplus.storage.files import Json
from hplus.studies.frames import Frame
from hplus.windows import Window
from hplus.wording import six_digits

MOST_PIXELS = 192
"""Pixels on a side of a picture."""

CURVE_PARTS = 400
"""Points of a curve."""

LEVEL = 0.9
"""Probability of bands."""

SPANS = {
    "day": (86_400.0, (900.0, 1800.0, 3600.0, 7200.0, 10_800.0)),
    "week": (WEEK, (7200.0, 14_400.0, 21_600.0, 43_200.0, 86_400.0)),
}
"""How long back, and how long each count may be, in seconds."""

TYPICAL_COUNT = 4.0
"""Counts are of so many events on average, if one of these lengths is long enough."""


def shown_window(frame: Frame) -> Window:
    """The places that the picture shows, on two axes at most, or else the times."""
    if frame.region is None:
        return frame.window
    return place_of(frame.region) if frame.region.dimension > 2 else frame.region


def view_answer(service: Service, watch: LiveWatch, title: str) -> Json:
    """What does not change: axes with their names and units."""
    frame = service.frame
    window = shown_window(frame)
    low, high = window.bounds()
    ends = zip(window.axis_units, low.tolist(), high.tolist(), strict=True)
    axes = zip(frame.axes, ends, strict=False)
    return {
        "title": title or ", ".join(frame.needed),
        "columns": list(frame.needed),
        "example": _example(frame),
        "axes": [
            {"name": axis.name, "unit": unit, "low": a, "high": b, "kind": axis.kind}
            for axis, (unit, a, b) in axes
        ],
        "timed": frame.clock is not None,
        "events": service.events,
        "alarms_per_week": watch.alarms_per_week,
    }


def _example(frame: Frame) -> Json:
    """An event that could be posted: the middle of the window."""
    middle: Json = {}
    if frame.region is not None:
        low, high = frame.region.bounds()
        own = frame.own(0.5 * (low + high)[None, :])[0]
        middle = {n: six_digits(float(v)) for n, v in zip(frame.columns, own, strict=False)}
    if frame.clock is not None:
        middle[frame.clock.column] = frame.clock.written(frame.clock.start + 3600.0)
    return middle


def picture_answer(model: Model, low: Floats, high: Floats, width: int, height: int) -> Json:
    """The rate in a part of the window: pixels, the highest row first, or a curve with bands."""
    study = model.study
    window = shown_window(study.frame)
    found: Json = {
        "version": model.version,
        "rates": rate_unit(study, window),
        "low": low.tolist(),
        "high": high.tolist(),
    }
    if window.dimension == 1:
        rate, factor = _shown_rate(study.model_)
        x = np.linspace(low[0], high[0], CURVE_PARTS + 1)[:, None]
        below, above = rate.predict_interval(x, LEVEL)
        curves = {"x": x[:, 0], "rate": rate.predict(x), "below": below, "above": above}
        lists = {name: _numbers(c if name == "x" else factor * c) for name, c in curves.items()}
        return found | lists
    x, y = (a + (np.arange(n) + 0.5) / n * (b - a)
            for a, b, n in zip(low, high, (width, height), strict=True))  # fmt: skip
    points = np.stack(np.meshgrid(x, y[::-1]), axis=-1).reshape(-1, 2)
    inside = np.asarray(window.contains(points))
    values = np.full(len(points), np.nan)
    if inside.any():
        values[inside] = _at_places(study.model_, points[inside])
    return found | {"width": width, "height": height, "values": packed(values)}


def _at_places(model: Intensity | SeparableIntensity, X: Floats) -> Floats:
    """The rate at places (n, 2), over all of a third axis."""
    if model.window.dimension > 2 and isinstance(model, Intensity):
        place = margins(model).place
        assert place is not None
        return place(X)
    rate, factor = _shown_rate(model)
    return factor * rate.predict(X)


def _shown_rate(model: Intensity | SeparableIntensity) -> tuple[Intensity, float]:
    """The rate by place, or else by time, and what to multiply it by."""
    if isinstance(model, SeparableIntensity):
        return model.place_, model.rate_.integral() / model.total_
    return model, 1.0


def _numbers(values: Floats) -> list[float]:
    return [float(f"{x:.5g}") for x in values.tolist()]


def packed(values: Floats, kind: str = "<f4") -> str:
    """Numbers as base64 of their bytes, little-endian."""
    return b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


def recent_answer(watch: LiveWatch, after: int, most: int) -> Json:
    """Events from a number on: their positions as shares of the window, and their times."""
    shown = watch.history.after(after, most)
    window = shown_window(watch.service.frame)
    low, high = window.bounds()
    d = min(window.dimension, 2)
    shares = (shown.X[:, :d] - low[:d]) / (high[:d] - low[:d])
    return {
        "first": shown.first,
        "next": shown.next,
        "dimension": d,
        "positions": packed(shares),
        "seconds": packed(shown.seconds, "<f8"),
    }


def history_answer(watch: LiveWatch, span: str, wall: float) -> Json:
    """Counts of equal times until now, and what was expected, with bands."""
    length, steps = SPANS[span]
    step = _step(watch, steps)
    now = watch.now(wall)
    if not np.isfinite(now):
        now = wall
    end = np.ceil(now / step) * step
    edges = end - step * np.arange(round(length / step), -1, -1)
    found: Json = {
        "now": now,
        "step": step,
        "seconds": edges[:-1].tolist(),
        "observed": watch.history.counts(edges).tolist(),
        "began": watch.began if np.isfinite(watch.began) else None,
        "latest": watch.history.latest if np.isfinite(watch.history.latest) else None,
        "state": watch.state,
        "hour": _last(watch, now, 3600.0),
        "day": _last(watch, now, 86_400.0),
    }
    return found | _expected(watch, edges, now)


def _step(watch: LiveWatch, steps: tuple[float, ...]) -> float:
    """The shortest length of a count of some events."""
    a_second = 0.0 if watch.rates is None else watch.rates.total / WEEK
    return next((step for step in steps if a_second * step >= TYPICAL_COUNT), steps[-1])


def _last(watch: LiveWatch, now: float, length: float) -> Json:
    """The count of the last minutes, and what was expected."""
    end = np.ceil(now / 60.0) * 60.0
    edges = np.array([end - length, end])
    expected = {k: v and v[0] for k, v in _expected(watch, edges, end).items()}
    since = watch.began if edges[0] < watch.began < np.inf else None  # inf before any event
    return {"observed": int(watch.history.counts(edges)[0]), "since": since, **expected}


def _expected(watch: LiveWatch, edges: Floats, now: float) -> Json:
    """Expected counts between edges, as far as there was a service: means and quantiles."""
    rates = watch.rates
    if rates is None or not watch.settled or not np.isfinite(watch.began):
        return {"expected": None, "below": None, "above": None}
    hours = edges[0] + (np.arange(0.0, edges[-1] - edges[0], 900.0)) + 450.0
    quarters = rates.factor(hours).reshape(len(edges) - 1, -1) * (900.0 * rates.total / WEEK)
    shape, level = (1e6, 1.0) if watch.watch is None else watch.watch.whole
    watched = np.minimum(edges[1:], now) - np.maximum(edges[:-1], watch.began)
    shares = np.clip(watched / np.diff(edges), 0.0, 1.0)
    means = np.maximum(level * shares * quarters.sum(axis=1), 1e-12)
    tails = (0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL)
    low, high = (nbinom.ppf(p, shape, shape / (shape + means)) for p in tails)
    return {
        "expected": _numbers(means),
        "below": _numbers(low),
        "above": _numbers(high),
    }


def spots_answer(model: Model) -> Json:
    """The busiest cells, with their corners on the map and in the columns of the events."""
    study = model.study
    frame, unit = study.frame, study.exposure_.unit
    spots = find_hot_spots(study.model_, margins(study.model_), 1.0)
    rows: list[Json] = []
    for i in range(len(spots.low)):
        low, high = spots.low[i], spots.high[i]
        counts = {"expected": spots.expected, "below": spots.fewest, "above": spots.most}
        row: Json = {name: six_digits(float(v[i])) for name, v in counts.items()}
        row |= {"times": six_digits(float(spots.ratio[i])), "name": _name(frame, low, high)}
        rows.append(row | {"low": low.tolist(), "high": high.tolist()})
    return {"version": model.version, "per": unit or "", "spots": rows}


def _name(frame: Frame, low: Floats, high: Floats) -> str:
    """A cell in words: its middle in the columns of the events, or its times."""
    if frame.region is None:
        assert frame.clock is not None
        return " to ".join(frame.clock.words(np.array([low[0], high[0]])))
    d = frame.region.dimension
    middle = frame.own((0.5 * (low + high))[None, :d])[0]
    return ", ".join(f"{n} {v:.6g}" for n, v in zip(frame.columns, middle, strict=False))
