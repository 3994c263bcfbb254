"""A rate or a density on a line: the curve, its band, and a rug of events."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np

from hplus._checks import Floats, check_count, check_fraction
from hplus._values import value
from hplus.estimators.density import Density
from hplus.evaluation.scores import Rate
from hplus.plotting.display import (
    BLUE,
    INK,
    LIGHT_BLUE,
    Display,
    PlotData,
    check_events,
    drawn_window,
    legend,
    nameless,
    noun_and_total,
    opacity,
    open_frame,
    thinned,
    tidy,
)
from hplus.plotting.words import axis_label, events_words, height_label, number
from hplus.windows import Window


@final
@value
class CurveData(PlotData):
    """A rate λ at places x of a line, shape (p,) each; `expected` is its integral.

    `noun` is "rate", or "density" if λ is one.
    `low` and `high`, shape (p,), bound it with probability `level`; all three are None without a
    band.
    """

    window: Window
    x: Floats
    rate: Floats
    expected: float
    low: Floats | None = None
    high: Floats | None = None
    level: float | None = None
    noun: str = "rate"


def curve_data(
    model: Rate | Density, level: float | None = 0.9, points: int = 512, X: Any = None
) -> CurveData:
    """λ(x) and its band at equally spaced places, both ends of the window included.

    `level=None` leaves the band out, for a model without `predict_interval`. A density without a
    window is shown around X (n, 1) or, without X, three standard deviations around its mean.
    """
    window = drawn_window(model, X, (1,))
    (start,), (end,) = window.bounds()
    x = np.linspace(start, end, check_count("points", points, least=2))
    with nameless():
        low, high = (None, None) if level is None else _interval(model, x[:, None], level)
        rate = model.predict(x[:, None])
    noun, expected = noun_and_total(model, window)
    return CurveData(window, x, rate, expected, low, high, level, noun)


def _interval(model: Any, X: Floats, level: float) -> tuple[Floats, Floats]:
    """What bounds λ(X[i]) with probability `level`, refused of a model that cannot say."""
    level, interval = check_fraction("level", level), getattr(model, "predict_interval", None)
    if interval is None:
        name = type(model).__name__
        raise ValueError(f"level must be None for {name}, which has no band, got {level}.")
    low, high = interval(X, level)
    return low, high


@final
class IntensityCurveDisplay(Display):
    """The curve of a rate or a density with its band, and a rug of events X (n, 1) if given."""

    def __init__(self, data: CurveData, X: Any = None) -> None:
        self.data = data
        self.events = check_events(data.window, X)

    @classmethod
    def from_estimator(
        cls,
        model: Rate | Density,
        X: Any = None,
        *,
        level: float | None = 0.9,
        points: int = 512,
        ax: Any = None,
    ) -> Self:
        """Draw the rate, or the density, of a fitted model, as `curve_data` computes it."""
        return cls(curve_data(model, level, points, X), X).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 7.5, 3.6

    def _title(self) -> str:
        window, expected = self.data.window, self.data.expected
        title = events_words(self.data.noun, self.events, expected)
        if self.data.noun == "density":
            return title
        mean = number(expected / window.volume, 3) + f" per {window.unit}" * bool(window.unit)
        return f"{title}, mean rate {mean}"

    def _draw(self, ax: Any) -> None:
        data = self.data
        if data.level is not None:
            label = f"{100.0 * data.level:g} % interval"
            ax.fill_between(data.x, data.low, data.high, color=LIGHT_BLUE, lw=0, label=label)
        ax.plot(data.x, data.rate, color=BLUE, lw=1.8, label=data.noun, solid_capstyle="round")
        if self.events is not None:
            self._draw_rug(ax, thinned(self.events)[:, 0])
        xlabel, ylabel = axis_label(data.window, 0), height_label(data.noun, data.window)
        tidy(ax, title=self._title(), xlabel=xlabel, ylabel=ylabel)
        open_frame(ax)
        ax.margins(x=0.0)
        ax.set_ylim(bottom=0.0)
        if data.high is not None:
            # a sixth of the height is kept free for the legend
            ax.set_ylim(top=1.2 * float(data.high.max()))
            legend(ax, loc="upper right", ncols=2, borderaxespad=0.1)

    def _draw_rug(self, ax: Any, x: Floats) -> None:
        """A stroke for each event, as long everywhere: heights are shares of the axes."""
        across = ax.get_xaxis_transform()
        ax.vlines(x, 0.0, 0.04, color=INK, lw=0.7, alpha=opacity(len(x)), transform=across)
