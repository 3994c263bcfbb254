"""At which sizes events cluster: a panel of the report, and a sentence about it."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from hplus._checks import Floats
from hplus.display.canvas import Canvas, shape, written
from hplus.display.chart_axes import ChartAxis, Tick
from hplus.display.charts import NARROW, WIDE
from hplus.rates.trees.spectrum import ScaleSpectrum
from hplus.studies.event_facts import model_parts
from hplus.studies.event_study import EventStudy
from hplus.wording import duration_words, listed, percent

MOST_TICKS = {True: 9, False: 4}
"""Sizes that are written below a wide chart, and below a narrow one."""


def page_spectrum(study: EventStudy) -> ScaleSpectrum | None:
    """The spectrum of places or, without them, of times; None if it is not known."""
    model = next(iter(model_parts(study.model_).values()))
    found = getattr(model, "spectrum_", None)
    return found if isinstance(found, ScaleSpectrum) and len(found.sizes) else None


def spectrum_words(spectrum: ScaleSpectrum) -> str:
    """At which sizes events cluster, and where most, in plain words."""
    cells = "intervals" if spectrum.window.dimension == 1 else "cells"
    found = np.isfinite(spectrum.concentrations)
    sides, unit = sides_of(spectrum), spectrum.window.axis_units[0]
    if not found.any():
        return (
            f"Events do not cluster at any size from {_size(sides[-1], unit)} to "
            f"{_size(sides[0], unit)}: the rates of neighbouring {cells} differ no more than by "
            "chance."
        )
    # runs of sizes, the largest first
    starts = np.flatnonzero(found & ~np.append(False, found[:-1]))
    ends = np.flatnonzero(found & ~np.append(found[1:], False))
    runs = [_span(sides[a], sides[b], unit) for a, b in zip(starts, ends, strict=True)]
    most = int(np.argmax(spectrum.variation))
    where = f", most at {_size(sides[most], unit)}" if found.sum() > 1 else ""
    text = (
        f"Events cluster {listed(runs)}{where}: there, the rates of neighbouring {cells} differ by "
        f"{percent(spectrum.variation[most])} of their mean."
    )
    if not found[-1]:
        text += f" In smaller {cells} they are spread evenly, as far as the events tell."
    return text


def sides_of(spectrum: ScaleSpectrum) -> Floats:
    """The sides of the cells along the first axis, from the largest to the smallest, (k,)."""
    return spectrum.sizes if spectrum.sizes.ndim == 1 else spectrum.sizes[:, 0]


def _span(largest: float, smallest: float, unit: str) -> str:
    if largest == smallest:
        return f"at {_size(largest, unit)}"
    return f"at every size from {_size(largest, unit)} to {_size(smallest, unit)}"


def _size(side: float, unit: str) -> str:
    return duration_words(float(side), unit)


def spectrum_chart(spectrum: ScaleSpectrum, *, wide: bool) -> Element:
    """How much rates of neighbouring cells differ, by the size of the cells, with its interval."""
    sides = sides_of(spectrum)
    most = float(np.sqrt(2.0**spectrum.window.dimension - 1.0))
    x, y = _axes(spectrum, sides, most, wide)
    canvas = Canvas(x, y, *(WIDE if wide else NARROW), top=30.0)
    at, (low, high) = np.log10(sides), spectrum.variation_interval
    around = np.concatenate([at, at[::-1]]), np.concatenate([high, low[::-1]])
    found = np.isfinite(spectrum.concentrations)
    dots = [
        shape("circle", class_="point" if seen else "point none", cx=px, cy=py, r=4.0)
        for (px, py), seen in zip(
            canvas.pixels(at, spectrum.variation).tolist(), found, strict=True
        )
    ]
    end = canvas.px(x.high)
    return canvas.svg(
        *canvas.axes(len(x.ticks), 4),
        canvas.path(*around, "band", closed=True),
        canvas.path([x.low, x.high], [most, most], "ideal"),
        written(end, canvas.py(most) - 6.0, "all events in one of the cells", "end"),
        canvas.path(at, spectrum.variation, "curve"),
        *dots,
        label=f"Variation of rates by size. {spectrum_words(spectrum)}",
        class_="chart wide" if wide else "chart narrow",
    )


def _axes(
    spectrum: ScaleSpectrum, sides: Floats, most: float, wide: bool
) -> tuple[ChartAxis, ChartAxis]:
    """Sizes on a log scale, and the variation of rates in percent of their mean."""
    unit = spectrum.window.axis_units[0]
    chosen = sides[:: max(1, -(-len(sides) // MOST_TICKS[wide]))]
    ticks: tuple[Tick, ...] = tuple((float(np.log10(s)), _size(s, unit)) for s in chosen)
    low, high = float(np.log10(sides[-1])), float(np.log10(sides[0]))
    margin = 0.03 * (high - low) or 0.1
    name = "interval" if spectrum.window.dimension == 1 else "side of a cell"
    x = ChartAxis(name, low - margin, high + margin, ticks)
    steps = np.arange(0.0, 1.2 * most, 0.5)
    heights = tuple((float(s), percent(float(s))) for s in steps)
    return x, ChartAxis("difference between neighbours", 0.0, 1.2 * most, heights)
