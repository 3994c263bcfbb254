"""ScaleSpectrumDisplay: at which sizes events cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, final

import numpy as np

from hplus._checks import Floats
from hplus.display.plots import BLUE, GREY, INK, LIGHT_BLUE, Display, legend, tidy_open
from hplus.estimators.intensity import Intensity
from hplus.rates.trees.spectrum import ScaleSpectrum
from hplus.wording import level_words, number, quantity, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SIZES_TICKED = 9
"""Sizes that are written below the axis at most."""


@final
class ScaleSpectrumDisplay(Display):
    """How much rates of neighbouring cells differ, by the size of the cells, with its interval.

    Dots are filled where events cluster. Where axes have different units, sizes are those of the
    first axis.
    """

    def __init__(self, spectrum: ScaleSpectrum) -> None:
        self.spectrum = spectrum

    @classmethod
    def from_estimator(cls, model: Intensity, *, ax: Axes | None = None) -> Self:
        """Draw the `scale_spectrum()` of a fitted rate."""
        return cls(model.scale_spectrum()).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 7.5, 3.6

    def _sides(self) -> Floats:
        sizes = self.spectrum.sizes
        return sizes if sizes.ndim == 1 else sizes[:, 0]

    def _title(self) -> str:
        found = np.isfinite(self.spectrum.concentrations)
        if not found.any():
            return "events do not cluster at any size"
        sides, unit = self._sides()[found], self.spectrum.window.axis_units[0]
        if len(sides) == 1:
            return f"events cluster at {quantity(sides[0], unit, 2)}"
        return f"events cluster from {number(sides[-1], 2)} to {quantity(sides[0], unit, 2)}"

    def _draw(self, ax: Axes) -> None:
        spectrum, sides = self.spectrum, self._sides()
        found, (low, high) = np.isfinite(spectrum.concentrations), spectrum.variation_interval
        ax.fill_between(sides, low, high, color=LIGHT_BLUE, lw=0, label=level_words(0.95))
        ax.plot(sides, spectrum.variation, color=BLUE, lw=1.8, solid_capstyle="round")
        kinds = ((found, BLUE, "clustering"), (~found, "white", "none seen"))
        for chosen, face, label in (kind for kind in kinds if kind[0].any()):
            (marks,) = ax.plot(sides[chosen], spectrum.variation[chosen], "o", label=label)
            marks.set(ms=5, mfc=face, mec=BLUE, clip_on=False, zorder=3)
        most = float(np.sqrt(2.0**spectrum.window.dimension - 1.0))
        ax.axhline(most, color=GREY, lw=0.8, ls=":")
        ax.text(
            1.0, most, "all in one of the cells ", ha="right", va="bottom", color=INK, fontsize=9,
            transform=ax.get_yaxis_transform(),
        )  # fmt: skip
        sized = with_unit("side of a cell", spectrum.window.axis_units[0])
        ylabel = "variation of rates\nbetween neighbouring cells"
        tidy_open(ax, title=self._title(), xlabel=sized, ylabel=ylabel)
        ax.set_xscale("log")
        ax.minorticks_off()
        ticks = sides[:: max(1, -(-len(sides) // MOST_SIZES_TICKED))]
        ax.set_xticks(ticks, labels=[number(tick, 2) for tick in ticks])
        ax.set_ylim(0.0, 1.3 * most)
        legend(ax, loc="upper left", ncols=3, borderaxespad=0.1)
