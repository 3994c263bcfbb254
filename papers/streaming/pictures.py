"""Figures of rates: `draw_*` functions take the result of a `*_data` function."""

from __future__ import annotations

from typing import Any

import numpy as np
from _pictures import BLUE, GREEN, GREY, ORANGE, RED, OnCourt, draw_on_court
from experiments import OFFLINE, Below, Fit, Outside
from orders import Orders

PURPLE = "#cc79a7"
COLOURS = {
    "SPPPOT, log": BLUE, "SPPPOT, mirror": GREEN, "SPPPOT": BLUE, "PMD": ORANGE, "Refit": PURPLE,
    OFFLINE: "black", "square": GREY, "sos": GREY, "POLK": RED,
}  # fmt: skip
"""One colour for each method, in every figure."""


def draw_curry(fits: list[Fit], figure: Any) -> None:
    """Normalised densities of the distance over a histogram by foot: streams, and batch fits."""
    figure.set_size_inches(12, 4.8)
    panels = figure.subplots(1, 2, sharey=True)
    (x,), distances = fits[0].places, fits[0].X[:, 0]
    for ax, streams in zip(panels, (True, False), strict=True):
        ax.hist(distances, np.arange(0, 51), density=True, color="black", alpha=0.1)
        for fit in fits:
            if (fit.weights is not None) == streams:
                style = ":" if fit.name == "sos" else "-"
                label = f"{fit.name}, loss {fit.losses.mean():.3f}"
                ax.plot(x, fit.density, style, color=COLOURS[fit.name], lw=1.7, label=label)
        ax.set(xlabel="feet from the hoop", xlim=(0, 40))
        ax.legend(loc="upper left")
    panels[0].set_ylim(0.0, 1.3 * max(float(fit.density.max()) for fit in fits))
    panels[0].set_ylabel("density (1/ft)")
    panels[0].set_title(f"one pass over {len(distances):,} shots", loc="left")
    panels[1].set_title("batch fits of the same shots", loc="left")


def draw_court(fits: list[Fit], figure: Any) -> None:
    """Normalised densities on the court."""

    def title(fit: Fit) -> str:
        weights = "" if fit.weights is None else f"{fit.weights} weights, "
        return f"{fit.name}\n{weights}loss {fit.losses.mean():.2f}"

    draw_on_court([OnCourt(title(fit), fit.places, fit.density) for fit in fits], figure)


def draw_negative(methods: list[Below], figure: Any) -> None:
    """The final functions, and the share of the window below zero along the stream."""
    figure.set_size_inches(11, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    left.axhline(0.0, color="black", lw=0.8)
    for item in methods:
        colour = COLOURS[item.name]
        left.plot(item.x, item.f, color=colour, label=item.name)
        if item.f.min() < 0.0:
            left.fill_between(item.x, item.f, 0.0, where=item.f < 0.0, color=colour, alpha=0.25)
        right.plot(item.events, item.below, color=colour, label=item.name)
    left.set(xlabel="feet from the hoop", ylabel="f, in units of the constant rate", xlim=(0, 50))
    left.set_title("after one pass", loc="left")
    right.set(xlabel="events", xlim=(0, None), ylim=(-0.02, 1.0))
    right.set_title("share of the window where f < 0", loc="left")
    left.legend(loc="upper right")


def draw_outside(methods: list[Outside], figure: Any) -> None:
    """The loss on events of the new region along the stream, and the final densities."""
    figure.set_size_inches(12, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    half = 0.5 * methods[0].events[-1]
    left.axvspan(half, 2.0 * half, color="black", alpha=0.06, lw=0)
    right.axvspan(10.0, 20.0, color="black", alpha=0.06, lw=0)
    right.plot(methods[0].x, methods[0].truth, "--", color="black", lw=1.4, label="truth now")
    for item, colour in zip(methods, (RED, ORANGE, BLUE), strict=True):
        left.plot(item.events, item.losses[:, 1], color=colour)
        right.plot(item.x, item.density, color=colour, lw=1.8, label=item.name)
    left.set(xlabel="events", xlim=(0, 2.0 * half))
    left.set_title("loss on events of the new region", loc="left")
    right.set(xlabel="x", ylabel="density", xlim=(0, 20), ylim=(0, None))
    right.set_title("in the end; grey: where events come from since half-time", loc="left")
    right.legend(loc="upper left")


def draw_second(streams: list[Orders], figure: Any) -> None:
    """Mean losses of first and second order along the stream, and of a batch fit."""
    across = len({item.stream for item in streams})
    figure.set_size_inches(4.2 * across, 3.6 * len(streams) / across + 0.6)
    panels = figure.subplots(len(streams) // across, across, squeeze=False).ravel()
    for ax, item in zip(panels, streams, strict=True):
        paths = ((item.first, BLUE, "SPPPOT"), (item.second, RED, "SecondOrder"))
        for losses, colour, label in paths:
            ax.fill_between(item.events, losses.min(axis=0), losses.max(axis=0), color=colour,
                            alpha=0.12, lw=0)  # fmt: skip
            ax.plot(item.events, losses.mean(axis=0), color=colour, label=label)
        ax.axhline(item.offline, color="black", lw=1.2, ls="--", label="batch fit of all events")
        late = np.concatenate([item.first[:, len(item.events) // 8 :].ravel(), [item.offline]])
        low, high = late.min(), late.max()
        ax.set(title=f"{item.stream}: {item.steps} function", xlim=(0, item.events[-1]))
        ax.set_ylim(low - 0.1 * (high - low), high + 0.3 * (high - low))
    for ax in panels[-across:]:
        ax.set_xlabel("events")
    for ax in panels[::across]:
        ax.set_ylabel("loss (band: all orders)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
