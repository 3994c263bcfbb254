"""What all Displays share: `plot` draws data on matplotlib axes, in one style."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hplus.display.data.framing import outline, same_unit
from hplus.windows import Window
from hplus.windows.geometry import oriented
from hplus.wording import axis_words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure, SubFigure


INK, GREY, PALE = "#222222", "#8a8f98", "#e4e7ec"
BLUE, LIGHT_BLUE, RED = "#1f5a93", "#c3d6ea", "#b3322c"

THIN = 0.6
"""Width of spines, ticks and outlines, in points."""

MOST_MARKS = 20_000
"""Events drawn at most: of more, every second, every third and so on."""

LONGEST_TO_SCALE = 3.0
"""The ratio of the sides of a map up to which both axes are drawn to one scale."""


class Display(ABC):
    """A figure of data: `plot` draws it and keeps the axes as `ax_`, the figure as `figure_`."""

    ax_: Axes
    figure_: Figure | SubFigure

    def plot(self, ax: Axes | None = None) -> Self:
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
    def _draw(self, ax: Axes) -> None:
        """Draw on matplotlib axes."""


def new_axes(width: float, height: float) -> Axes:
    """The axes of a new figure, with a margin around them; needs the extra `plot`."""
    try:
        plt: Any = import_module("matplotlib.pyplot")
    except ImportError:
        raise ImportError("A Display needs matplotlib: pip install 'hplus[plot]'.") from None
    figure, ax = plt.subplots(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    return ax


def opacity(count: int) -> float:
    """Opacity of a mark: the more events, the fainter each."""
    return float(np.clip(12.0 / np.sqrt(max(count, 1)), 0.12, 0.7))


def tidy(ax: Axes, *, title: str, xlabel: str, ylabel: str) -> None:
    """Thin spines, small ticks outside, a title above the left corner."""
    for spine in ax.spines.values():
        spine.set(linewidth=THIN, color=GREY)
    ax.tick_params(width=THIN, length=3, color=GREY, labelcolor=INK, labelsize=9)
    ax.set_xlabel(xlabel, color=INK, fontsize=10)
    ax.set_ylabel(ylabel, color=INK, fontsize=10)
    ax.set_title(title, loc="left", color=INK, fontsize=11)


def tidy_open(ax: Axes, *, title: str, xlabel: str, ylabel: str) -> None:
    """As `tidy`, with spines only where the numbers are: left and bottom."""
    tidy(ax, title=title, xlabel=xlabel, ylabel=ylabel)
    ax.spines[["top", "right"]].set_visible(False)


def tidy_plane(ax: Axes, place: Window, title: str) -> None:
    """As `tidy`, for a map of a window with the names and units of its axes."""
    tidy(ax, title=title, xlabel=axis_words(place, 0), ylabel=axis_words(place, 1))


def legend(ax: Axes, **where: Any) -> None:
    """A legend without a frame."""
    ax.legend(frameon=False, fontsize=9, labelcolor=INK, **where)


def colour_bar(ax: Axes, image: ScalarMappable, label: str, extend: str = "neither") -> Colorbar:
    """A thin colour bar as high as the axes."""
    bar = ax.figure.colorbar(image, ax=ax, extend=extend, fraction=0.05, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(width=THIN, length=3, color=GREY, labelcolor=INK, labelsize=9)
    # small rates as multiples of a power of ten: their zeros would fill the margin
    formatter: Any = bar.formatter
    formatter.set_powerlimits((-3, 4))
    formatter.set_useMathText(True)
    bar.ax.yaxis.get_offset_text().set(fontsize=9, color=INK, horizontalalignment="left")
    bar.set_label(label, color=INK, fontsize=10)
    return bar


def plane_size(place: Window) -> tuple[float, float]:
    """Width and height in inches of a figure whose axes have the window's proportion."""
    ratio = proportion(place) if one_scale(place) else 0.8
    side = 5.0 / max(1.0, ratio)
    return max(side, 2.8) + 1.5, side * ratio + 0.9


def proportion(place: Window) -> float:
    """Height over width of the box around a window of the plane."""
    low, high = place.bounds()
    return float((high[1] - low[1]) / (high[0] - low[0]))


def one_scale(place: Window) -> bool:
    """Are both axes drawn to one scale? If they share a unit, unless the window is very long."""
    return same_unit(place) and 1.0 / LONGEST_TO_SCALE <= proportion(place) <= LONGEST_TO_SCALE


def clip_to(ax: Axes, artist: Artist, place: Window) -> None:
    """Cut off what an artist draws outside the window."""
    from matplotlib.path import Path

    # a path winds around what it encloses: holes must run the other way
    rings = [oriented(ring, role) for ring, role in outline(place)]
    artist.set_clip_path(Path.make_compound_path(*map(Path, rings)), ax.transData)


def draw_plane(ax: Axes, place: Window) -> None:
    """The outline of a window, instead of a frame; axes that share a unit also share a scale."""
    for ring, _ in outline(place):
        ax.plot(*ring.T, color=INK, lw=THIN, solid_joinstyle="round", clip_on=False)
    if one_scale(place):
        ax.set_aspect("equal")
    ax.spines[:].set_visible(False)
    ax.margins(0.0)
