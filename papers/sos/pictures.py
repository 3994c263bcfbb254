"""The figures of the report: `draw_*` functions take the result of a `*_data` function."""

from __future__ import annotations

from typing import Any

import numpy as np
from experiments import GRID, Cases, Choice, ConeFits, Figure, sample, truth
from likelihoods import (
    LINE,
    UNIT,
    DensityModel,
    Floats,
    NoiseModel,
    noisy_sample,
    true_log_density,
    true_mean,
    true_noise,
)
from quantiles import LEVELS, Quantiles

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#8c8c8c"
COLOURS = {"Full": BLUE, "Diagonal": GREEN, "Paper": RED}
"""One colour for each cone, in every figure."""


def draw_figure(figures: list[Figure], figure: Any) -> None:
    """Figure 1 of the paper, with ridge regression and where it is negative."""
    figure.set_size_inches(11, 4.8)
    panels = figure.subplots(1, 2, sharey=True)
    for ax, item in zip(panels, figures, strict=True):
        below = item.ridge < 0.0
        ax.fill_between(GRID, item.ridge, 0.0, where=below, color=RED, alpha=0.25, lw=0)
        _draw_truth(ax, item.X, item.y)
        ax.plot(GRID, item.ridge, color=RED, lw=1.4, label="kernel ridge")
        ax.plot(GRID, item.ours, color=BLUE, lw=2.4, label="sum of squares")
        ax.set_title(f"$\\sigma = {item.scale}$: ridge is negative on {below.mean():.0%}")
    panels[0].set_ylabel("$f(x)$")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def _draw_truth(ax: Any, X: Floats, y: Floats) -> None:
    ax.axhline(0.0, color="black", lw=0.8, zorder=0)
    ax.plot(GRID, truth(GRID), "--", color="black", lw=1.2, label="truth")
    ax.scatter(X[:, 0], y, s=16, color=GREY, label="data", zorder=3)
    ax.set(xlabel="$x$", xlim=(-5.05, 5.05), ylim=(-3.9, 6.2))


def draw_cones(fits: list[ConeFits], figure: Any) -> None:
    """The three cones on the first draw, a panel for each scale."""
    scales = sorted({fit.scale for fit in fits})
    figure.set_size_inches(5.5 * len(scales), 4.8)
    panels, (X, y) = figure.subplots(1, len(scales), sharey=True), sample(50, 0)
    for ax, scale in zip(panels, scales, strict=True):
        _draw_truth(ax, X, y)
        for fit in fits:
            if fit.scale == scale:
                style = ":" if fit.cone == "Diagonal" else "-"
                ax.plot(GRID, fit.first, style, color=COLOURS[fit.cone], label=fit.cone)
        ax.set(title=f"$\\sigma = {scale}$", ylim=(-1.2, 5.2))
    panels[0].set_ylabel("$f(x)$")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


def draw_inequality(cases: list[Cases], figure: Any) -> None:
    """Two points: the wedge of the inequality in the quadrant α >= 0. Any n: how often it holds."""
    figure.set_size_inches(10.5, 4.4)
    left, right = figure.subplots(1, 2)
    a = np.linspace(0.0, 1.0, 200)
    left.fill_between(a, 0.0, 1.0, color="#cdebe1", lw=0, label="$\\alpha \\geq 0$")
    for g, shade in ((0.5, "#fbd5bf"), (0.9, "#f0955f"), (0.99, RED)):
        # 4ab >= g²(a + b)²: between the lines b = ra and b = a/r
        r = ((1.0 - np.sqrt(1.0 - g**2)) / g) ** 2
        edge = np.minimum(a / r, 1.0)
        name = f"$GA + AG \\succeq 0$, $G_{{12}} = {g}$"
        left.fill_between(a, r * a, edge, color=shade, lw=0, label=name)
    left.plot(1.0, 0.01, "o", color="black", clip_on=False, label="$\\alpha = (1, 0.01)$", zorder=3)
    left.set(xlabel="$\\alpha_1$", ylabel="$\\alpha_2$", xlim=(0, 1), ylim=(0, 1), box_aspect=1)
    left.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    places = np.arange(len(cases))
    for shift, colour, name, count in (
        (-0.2, GREEN, "$\\alpha \\geq 0$", [c.nonnegative for c in cases]),
        (0.2, RED, "$GA + AG \\succeq 0$", [c.inequality for c in cases]),
    ):
        bars = right.bar(places + shift, count, 0.38, color=colour, alpha=0.8, label=name)
        right.bar_label(bars, fontsize=9)
    right.set_xticks(places, [str(c.n) for c in cases])
    right.set(xlabel="number of points $n$", ylabel=f"of {cases[0].cases:,} random cases")
    right.legend()


def draw_selection(choices: list[Choice], figure: Any) -> None:
    """The held-out loss over scale and penalty, the chosen pair, and its fit."""
    figure.set_size_inches(11, 4.6)
    left, right = figure.subplots(1, 2)
    s, best = choices[-1].selection, choices[-1]
    levels = np.geomspace(s.losses.min(), s.losses.max(), 13)
    shades = left.contourf(s.penalties, s.scales, s.losses, levels=levels, cmap="Blues_r")
    figure.colorbar(shades, ax=left, format="%.1f", label="held-out squared error")
    for choice in choices[:-1]:
        left.plot(choice.penalty, choice.scale, "o", color="white", ms=7)
        at, name = (choice.penalty, choice.scale), f"  paper, $\\sigma = {choice.scale}$"
        left.annotate(name, at, va="center", color="white")
    left.plot(best.penalty, best.scale, "*", color=ORANGE, ms=17)
    left.set(xscale="log", yscale="log", xlabel="penalty $\\lambda$", ylabel="scale $\\sigma$")
    left.set_yticks(s.scales, [f"{scale:g}" for scale in s.scales], minor=False)
    left.minorticks_off()
    _draw_truth(right, s.X, s.y)
    right.plot(GRID, best.fit, color=BLUE, label="the choice, ★")
    right.set(ylabel="$f(x)$", ylim=(-1.2, 5.2))
    right.set_title(f"$\\sigma = {best.scale:g}$, $\\lambda = {best.penalty:.2g}$")
    right.legend(loc="upper left")


def draw_noise(models: list[NoiseModel], figure: Any) -> None:
    """Mean and a band of two standard deviations, with learned and with constant noise."""
    figure.set_size_inches(11, 4.6)
    panels, (X, y) = figure.subplots(1, 2, sharey=True), noisy_sample(80, 0)
    m, s = true_mean(UNIT), true_noise(UNIT)
    for ax, model, colour in zip(panels, models[1:], (BLUE, RED), strict=True):
        low, high = model.mean - 2.0 * model.noise, model.mean + 2.0 * model.noise
        ax.fill_between(
            UNIT, low, high, color=colour, alpha=0.18, lw=0, label="± 2 standard deviations"
        )
        ax.plot(UNIT, model.mean, color=colour, label="mean")
        ax.plot(UNIT, m, "--", color="black", lw=1.2, label="truth")
        for edge in (m - 2.0 * s, m + 2.0 * s):
            ax.plot(UNIT, edge, ":", color="black", lw=1.2)
        ax.scatter(X[:, 0], y, s=14, color=GREY, zorder=3)
        ax.set(title=model.name, xlabel="$x$", xlim=(0, 1))
        ax.legend(loc="upper right", ncols=3, fontsize=9)
    panels[0].set(ylabel="$y$", ylim=(-4.2, 8.2))


DENSITIES = (
    "sum of squares, averaged",
    "Density()",
    "mixture of two normals",
    "kernel density",
    "α ≥ 0 on k",
)


def draw_density(models: list[DensityModel], figure: Any) -> None:
    """The densities of the first draw, and the loss of every draw relative to the truth."""
    figure.set_size_inches(11, 4.6)
    left, right = figure.subplots(1, 2)
    shown = [model for model in models if model.name in DENSITIES]
    colours = (BLUE, GREEN, GREY, ORANGE, RED)
    left.fill_between(LINE, np.exp(true_log_density(LINE)), color="black", alpha=0.1, lw=0)
    left.plot(models[0].x, np.full(len(models[0].x), -0.025), "|", color="black", ms=7, alpha=0.6)
    for place, (model, colour) in enumerate(zip(shown, colours, strict=True)):
        left.plot(LINE, model.first, color=colour, lw=2.6 if place == 0 else 1.5)
        loss = model.truth - model.scores
        spread = place + np.linspace(-0.22, 0.22, len(loss))
        right.plot(loss, spread, "o", color=colour, ms=4, alpha=0.4, mew=0)
        right.plot(loss.mean(), place, "|", color="black", ms=26, mew=2)
    left.set(xlabel="$x$", ylabel="density", xlim=(-3, 3))
    left.set_title("one draw of 80 points; grey: the truth")
    right.set_yticks(range(len(shown)), [model.name for model in shown])
    for label, colour in zip(right.get_yticklabels(), colours, strict=True):
        label.set_color(colour)
    right.set(xscale="log", xlabel="log-likelihood a point lost to the truth", ylim=(4.5, -0.5))
    right.set_xticks(
        [0.01, 0.02, 0.05, 0.1, 0.2, 0.5], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5"]
    )
    right.minorticks_off()
    right.set_title(f"{len(shown[0].scores)} draws; bar: their mean")


def draw_quantiles(fits: list[Quantiles], figure: Any) -> None:
    """Quantiles learned together and one by one; crossings and negative values are marked."""
    figure.set_size_inches(11, 7.6)
    shades = ("#9ecae1", "#4292c6", "#08306b", "#4292c6", "#9ecae1")
    panels = figure.subplots(2, 2, sharey="row", sharex="row")
    for ax, fit in zip(panels.ravel(), [*fits[:2], *fits[-2:]], strict=True):
        ax.scatter(fit.X[:, 0], fit.y, s=10, color=GREY, alpha=0.8, lw=0)
        for values, shade, level in zip(fit.values.T, shades, LEVELS, strict=True):
            ax.plot(fit.grid, values, color=shade, lw=2.4 if level == 0.5 else 1.6)
        bad = np.any(np.diff(fit.values, axis=1) < 0.0, axis=1)
        if fit.data == "coal":
            bad |= fit.values.min(axis=1) < 0.0
            ax.axhline(0.0, color="black", lw=0.8, zorder=0)
        ax.fill_between(
            fit.grid,
            0,
            1,
            where=bad,
            color=RED,
            alpha=0.18,
            lw=0,
            transform=ax.get_xaxis_transform(),
        )
        wrong = "cross or are negative" if fit.data == "coal" else "cross"
        often = f"on {bad.mean():.0%}" if bad.any() else "nowhere"
        ax.set_title(f"{fit.method}: {wrong} {often}", color=RED if bad.any() else BLUE)
    for row, x, y in zip(panels, ("$x$", "year"), ("$y$", "disasters a year"), strict=True):
        row[0].set_ylabel(y)
        for ax in row:
            ax.set_xlabel(x)
