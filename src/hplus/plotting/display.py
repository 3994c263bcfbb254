"""What all pictures share: data that cannot change, a Display that draws them, and the style."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from hplus._checks import Floats, as_points, check_finite, shown
from hplus._values import Value, value
from hplus.estimators.base import check_fitted
from hplus.estimators.density import Density
from hplus.windows import Box, Interval, Window

INK, GREY, PALE = "#222222", "#8a8f98", "#e4e7ec"
BLUE, LIGHT_BLUE, RED = "#1f5a93", "#c3d6ea", "#b3322c"

THIN = 0.6
"""Width of spines, ticks and outlines, in points."""

MOST_MARKS = 20_000
"""Events drawn at most: of more, every second, every third and so on."""


@value
class PlotData(Value):
    """What a picture shows, computed and not yet drawn; its arrays are read-only copies."""

    def __post_init__(self) -> None:
        for name, part in self.get_params(deep=False).items():
            if isinstance(part, np.ndarray):
                copy = part.copy()
                copy.flags.writeable = False
                self._set(**{name: copy})


class Display(ABC):
    """A picture of data: `plot` draws it and keeps the axes as `ax_`, the figure as `figure_`."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given matplotlib axes, or on those of a new figure."""
        if ax is None:
            ax = new_axes(*self._size())
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    @abstractmethod
    def _size(self) -> tuple[float, float]:
        """Width and height of a new figure, in inches."""

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on matplotlib axes."""


def load_pyplot() -> Any:
    """matplotlib.pyplot, of the extra `plot`."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("A Display needs matplotlib: pip install 'hplus[plot]'.") from None
    return plt


def new_axes(width: float, height: float) -> Any:
    """The axes of a new figure, with a margin around them."""
    figure, ax = load_pyplot().subplots(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    return ax


def check_model(model: Any, dimensions: tuple[int, ...]) -> Window:
    """The window of a fitted rate, refused unless it has one of these numbers of axes."""
    window = getattr(model, "window", None)
    if isinstance(model, Density):
        raise TypeError(
            f"model must be a rate here, got {shown(model)}: IntensityCurveDisplay and "
            "IntensityMapDisplay draw densities too."
        )
    if not isinstance(window, Window):
        raise TypeError(f"model must be a rate fitted on a window, got {shown(model)}.")
    return check_axes(window, dimensions)


def drawn_window(model: Any, X: Any, dimensions: tuple[int, ...]) -> Window:
    """The window of a fitted rate or density; of a density on whole space, a box around X."""
    if not isinstance(model, Density):
        return check_model(model, dimensions)
    check_fitted(model)
    return check_axes(_around(model, X) if model.window is None else model.window, dimensions)


def _around(model: Density, X: Any) -> Window:
    """X and a tenth of their range around them or, without X, the mean ± 3 standard deviations."""
    low, high = model.center_ - model.scale_, model.center_ + model.scale_
    if X is not None:
        X = check_finite("X", as_points("X", X, len(low)))
        margin = np.maximum(0.1 * np.ptp(X, axis=0), 1e-3 * model.scale_)
        low, high = X.min(axis=0) - margin, X.max(axis=0) + margin
    if len(low) == 1:
        return Interval(float(low[0]), float(high[0]))
    return Box(tuple(low.tolist()), tuple(high.tolist()))


def noun_and_total(model: Any, window: Window) -> tuple[str, float]:
    """What is drawn, "rate" or "density", and its integral over the window."""
    if isinstance(model, Density):
        return "density", float(model.probability(window))
    return "rate", float(model.expected_count(window))


@contextmanager
def nameless() -> Iterator[None]:
    """The points of a picture have no column names: a model that has some need not say so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


def check_axes(window: Window, dimensions: tuple[int, ...]) -> Window:
    """The window, refused unless it has one of these numbers of axes."""
    if window.dimension not in dimensions:
        rule = " or ".join(str(d) for d in dimensions)
        axes = "axis" if rule == "1" else "axes"
        raise ValueError(f"the model's window must have {rule} {axes}, got {window.dimension}.")
    return window


def check_events(window: Window, X: Any) -> Floats | None:
    """Events (n, d) in the window, or None."""
    return None if X is None else window.require("X", X)


def thinned(events: Floats) -> Floats:
    """At most `MOST_MARKS` of the events (n, d), spread evenly over the rows."""
    return events[:: -(-len(events) // MOST_MARKS) or 1]


def opacity(count: int) -> float:
    """Opacity of a mark: the more events, the fainter each."""
    return float(np.clip(12.0 / np.sqrt(max(count, 1)), 0.12, 0.7))


def tidy(ax: Any, *, title: str, xlabel: str, ylabel: str) -> None:
    """Thin spines, small ticks outside, a title above the left corner."""
    for spine in ax.spines.values():
        spine.set(linewidth=THIN, color=GREY)
    ax.tick_params(width=THIN, length=3, color=GREY, labelcolor=INK, labelsize=9)
    ax.set_xlabel(xlabel, color=INK, fontsize=10)
    ax.set_ylabel(ylabel, color=INK, fontsize=10)
    ax.set_title(title, loc="left", color=INK, fontsize=11)


def open_frame(ax: Any) -> None:
    """No spines but those with numbers: left and bottom."""
    ax.spines[["top", "right"]].set_visible(False)


def legend(ax: Any, **where: Any) -> None:
    """A legend without a frame."""
    ax.legend(frameon=False, fontsize=9, labelcolor=INK, **where)


def colour_bar(ax: Any, image: Any, label: str, extend: str = "neither") -> Any:
    """A thin colour bar as high as the axes."""
    bar = ax.figure.colorbar(image, ax=ax, extend=extend, fraction=0.05, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(width=THIN, length=3, color=GREY, labelcolor=INK, labelsize=9)
    # small rates as multiples of a power of ten: their zeros would fill the margin
    bar.formatter.set_powerlimits((-3, 4))
    bar.formatter.set_useMathText(True)
    bar.ax.yaxis.get_offset_text().set(fontsize=9, color=INK, horizontalalignment="left")
    bar.set_label(label, color=INK, fontsize=10)
    return bar
