"""Shared by the figures: a style, colours, and a basketball court."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.patches import Arc, Circle, Rectangle

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#8c8c8c"

STYLE: Any = {
    "figure.constrained_layout.use": True, "savefig.dpi": 150, "font.size": 11,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 12,
    "legend.frameon": False, "lines.linewidth": 2.0,
}  # fmt: skip


class OnCourt(NamedTuple):
    """A density on a half court: a title, coordinates along both axes, and values there."""

    title: str
    places: tuple[Any, Any]
    density: Any


def draw_on_court(maps: Sequence[OnCourt], figure: Any) -> None:
    """Densities side by side, with one colour scale."""
    figure.set_size_inches(3.5 * len(maps) + 1.0, 4.3)
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    top = max(float(np.quantile(shown.density, 0.9995)) for shown in maps)
    for ax, shown in zip(panels, maps, strict=True):
        shades = ax.pcolormesh(*shown.places, shown.density.T, cmap="magma",
                               norm=PowerNorm(0.4, 0.0, top), rasterized=True)  # fmt: skip
        _draw_lines(ax)
        ax.set_title(shown.title)
    bar = figure.colorbar(shades, ax=panels, extend="max", fraction=0.02, pad=0.01)
    bar.set_label("density (1/ft²)")
    bar.outline.set_visible(False)


def _draw_lines(ax: Any) -> None:
    """The lines of a half court in feet, with the hoop at (0, 0)."""
    line: Any = {"fill": False, "color": "white", "lw": 0.8, "alpha": 0.7}
    # the arc of 23.75 ft meets the lines at x = ±22
    end, angle = np.sqrt(23.75**2 - 22.0**2), np.degrees(np.arccos(22.0 / 23.75))
    ax.add_patch(Arc((0, 0), 47.5, 47.5, theta1=angle, theta2=180.0 - angle, color="white", lw=0.8))
    ax.vlines([-22.0, 22.0], -5.25, end, color="white", lw=0.8, alpha=0.7)
    for patch in (Circle((0, 0), 0.75, **line), Rectangle((-8, -5.25), 16, 19, **line),
                  Circle((0, 13.75), 6, **line)):  # fmt: skip
        ax.add_patch(patch)
    ax.set(xlim=(-25, 25), ylim=(-5.25, 41.75), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
