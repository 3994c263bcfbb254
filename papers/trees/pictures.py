"""Pictures of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import experiments as ex
import numpy as np
from _pictures import BLUE, GREEN, GREY, ORANGE, RED
from cascades import Cascade, kernel


def draw_kernel(data: Sequence[ex.Distance], figure: Any) -> None:
    """The kernel of averaged trees, and one of its functions under 1, 4 and 64 trees."""
    figure.set_size_inches(10.0, 3.6)
    left, right = figure.subplots(1, 2)
    d = np.linspace(0.0, 0.8, 400)
    left.plot(d, kernel(d, ex.CONCENTRATIONS), color=BLUE, label="closed form")
    places, measured, errors = zip(
        *((x.distance, x.measured, 2.0 * x.error) for x in data), strict=True
    )
    left.errorbar(places, measured, errors, fmt="o", color=ORANGE, label="measured")
    left.set(xlabel="distance", ylabel="E[r(x) r(x + d)]", title="The kernel of random trees")
    left.legend()
    cascade = Cascade.drawn(1, 6, np.array([3.0] * 6), 8)
    x = np.linspace(0.0, 1.0, 1000, endpoint=False)[:, None]
    right.plot(x, cascade.density(x), color=GREY, lw=1.0)
    right.set(xlabel="place", ylabel="rate / base", title="A function drawn by one tree")


def draw_offsets(data: Sequence[ex.Averaged], figure: Any) -> None:
    """What averaging gains over one tree."""
    figure.set_size_inches(6.5, 3.6)
    ax = figure.subplots()
    for name, colour in zip(dict.fromkeys(d.name for d in data), (BLUE, ORANGE), strict=False):
        some = [d for d in data if d.name == name]
        last = some[-1].scores.mean()
        lost = [last - d.scores.mean() for d in some]
        spread = [d.scores.std() for d in some]
        ax.errorbar([d.trees for d in some], lost, spread, marker="o", color=colour, label=name)
    ax.set_xscale("log", base=2)
    ax.set(xlabel="trees that are averaged", ylabel="nats per event lost to 64")
    ax.legend()


def draw_spectrum(data: Sequence[ex.Size], figure: Any) -> None:
    """True and learned variation between neighbouring cells, by size."""
    names = list(dict.fromkeys(d.name for d in data))
    figure.set_size_inches(3.2 * len(names), 3.2)
    for ax, name in zip(
        figure.subplots(1, len(names), sharey=True, squeeze=False)[0], names, strict=True
    ):
        some = [d for d in data if d.name == name]
        sizes = [d.size for d in some]
        ax.plot(sizes, [d.truth for d in some], "s", color=GREY, ms=9, label="true tree")
        ax.fill_between(sizes, [d.low for d in some], [d.high for d in some], color=BLUE, alpha=0.2)
        ax.plot(sizes, [d.found for d in some], "o-", color=BLUE, label="spectrum")
        ax.set_xscale("log", base=2)
        ax.set(title=name, xlabel="size of cells", ylim=(-0.03, 1.0))
    ax.figure.axes[0].set_ylabel("variation")
    ax.figure.axes[0].legend()


def draw_coverage(data: Sequence[ex.Covered], figure: Any) -> None:
    """Coverage of 90 % intervals by the size of boxes."""
    figure.set_size_inches(5.5, 3.4)
    ax = figure.subplots()
    ax.axhline(0.9, color=GREY, lw=1.0)
    ax.plot([d.size for d in data], [d.covered for d in data], "o-", color=BLUE)
    ax.set_xscale("log", base=2)
    ax.set(xlabel="side of boxes", ylabel="new counts inside", ylim=(0.6, 1.0))


def draw_smooth(data: Sequence[ex.Compared], figure: Any) -> None:
    """Errors of three models, over that of the smooth one."""
    figure.set_size_inches(6.5, 3.6)
    ax = figure.subplots()
    for k, (model, colour) in enumerate(zip(ex.MODELS, (GREEN, RED, BLUE), strict=True)):
        ratios = [d.errors[model].mean() / d.errors["exp"].mean() for d in data]
        ax.bar(np.arange(len(data)) + 0.27 * (k - 1), ratios, 0.25, color=colour, label=model)
    ax.set_xticks(range(len(data)), [d.name for d in data])
    ax.set(ylabel="squared error over that of exp")
    ax.legend()
