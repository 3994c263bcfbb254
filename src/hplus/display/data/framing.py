"""What the data of all figures share: read-only arrays, and the window that is shown."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from hplus._checks import Floats, as_points, check_finite, shown
from hplus._values import Value, value
from hplus.estimators.base import check_fitted
from hplus.estimators.density import Density
from hplus.evaluation.scores import Rate
from hplus.windows import Box, Interval, Planar, Product, Window, check_window
from hplus.windows.geometry import Rings


@value
class PlotData(Value):
    """What a figure shows, computed and not yet drawn; its arrays are read-only copies."""

    def __post_init__(self) -> None:
        for name, part in self.get_params(deep=False).items():
            if isinstance(part, np.ndarray):
                copy = part.copy()
                copy.flags.writeable = False
                self._set(**{name: copy})


def check_model(model: Any, dimensions: tuple[int, ...]) -> Window:
    """The window of a fitted rate, which must have one of these numbers of axes."""
    window = getattr(model, "window", None)
    if isinstance(model, Density):
        raise TypeError(
            f"model must be a rate here, got {shown(model)}: IntensityCurveDisplay and "
            "IntensityMapDisplay draw densities too."
        )
    if not isinstance(window, Window):
        raise TypeError(f"model must be a rate fitted on a window, got {shown(model)}.")
    check_window("the model's window", window, *dimensions)
    return window


def drawn_window(model: Rate | Density, X: Any, dimensions: tuple[int, ...]) -> Window:
    """The window of a fitted rate or density; for a density on whole space, a box around X."""
    if not isinstance(model, Density):
        return check_model(model, dimensions)
    check_fitted(model)
    window = _around(model, X) if model.window is None else model.window
    check_window("the model's window", window, *dimensions)
    return window


def _around(model: Density, X: Any) -> Window:
    """The range of X and a tenth more on each side or, without X, mean ± 3 standard deviations."""
    low, high = model.center_ - model.scale_, model.center_ + model.scale_
    if X is not None:
        X = check_finite("X", as_points("X", X, len(low)))
        margin = np.maximum(0.1 * np.ptp(X, axis=0), 1e-3 * model.scale_)
        low, high = X.min(axis=0) - margin, X.max(axis=0) + margin
    if len(low) == 1:
        return Interval(float(low[0]), float(high[0]))
    return Box(tuple(low.tolist()), tuple(high.tolist()))


def noun_and_total(model: Rate | Density, window: Window) -> tuple[str, float]:
    """What is drawn, "rate" or "density", and its integral over the window."""
    if isinstance(model, Density):
        return "density", float(model.probability(window))
    return "rate", float(model.expected_count(window))


@contextmanager
def ignore_feature_names() -> Iterator[None]:
    """Points of a figure have no column names: a model that has some need not warn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


def check_events(window: Window, X: Any) -> Floats | None:
    """Events (n, d) in the window, or None."""
    return None if X is None else window.require("X", X)


def thinned(events: Floats, most: int) -> Floats:
    """At most this many of the events (n, d), spread evenly over the rows."""
    return events[:: -(-len(events) // most) or 1]


def place_of(window: Window) -> Window:
    """The window of the first two axes, from which the third must be separate."""
    if window.dimension == 2:
        return window
    if isinstance(window, Product) and window.left.dimension == 2:
        return window.left
    bounds = window.box_bounds()
    if bounds is None:
        raise ValueError(
            f"the last axis of the window must be separate from the first two, as in Polygon * "
            f"Interval, got {shown(window)}."
        )
    low, high = bounds
    return cuboid(low[:2], high[:2], window.axis_units[:2])


def cuboid(low: Floats, high: Floats, units: tuple[str, ...]) -> Window:
    """The product of intervals between two corners, shape (d,) each."""
    return reduce(mul, map(Interval, low.tolist(), high.tolist(), units))


def last_axis(window: Window) -> Interval:
    """The last axis of a window."""
    low, high = window.bounds()
    return Interval(float(low[-1]), float(high[-1]), unit=window.axis_units[-1])


def same_unit(window: Window) -> bool:
    """Do all axes share a unit, so that their lengths can be compared?"""
    return len(set(window.axis_units)) == 1


def outline(place: Window) -> Rings:
    """The closed rings around a window of the plane, (n + 1, 2) each, as `Planar.rings` does."""
    if isinstance(place, Planar):
        return [(np.vstack([ring, ring[:1]]), role) for ring, role in place.rings()]
    (left, bottom), (right, top) = place.bounds()
    corners = [[left, bottom], [right, bottom], [right, top], [left, top], [left, bottom]]
    return [(np.array(corners), 1)]


def centres(edges: Floats) -> Floats:
    """The middles between edges (n + 1,), shape (n,)."""
    return 0.5 * (edges[1:] + edges[:-1])
