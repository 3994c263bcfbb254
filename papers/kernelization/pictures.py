"""The figures of the report: `draw_*` functions take the result of a `*_data` function."""

from __future__ import annotations

from typing import Any

import numpy as np
from experiments import (
    Descent,
    Fit,
    Floats,
    Spectrum,
    Svm,
    banana_sample,
    coal_counts,
    laplace_eigenvalues,
)

from hplus import Function
from hplus.losses import PoissonLog

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#8c8c8c"
COLOURS = {
    "squared": BLUE, "huber": ORANGE, "poisson_log": GREEN, "quantile 0.9": RED,
    "logistic": "#9a5ea1", "hinge": "black",
}  # fmt: skip
"""One colour for each loss, in every figure."""


def draw_representer(fits: list[Fit], figure: Any) -> None:
    """Fitted coefficients, as dots, on the curve that the theorem predicts."""
    figure.set_size_inches(11, 6.6)
    shown = [fit for fit in fits if fit.name in COLOURS]
    for ax, fit in zip(figure.subplots(2, 3).ravel(), shown, strict=True):
        counts, labels = isinstance(fit.loss, PoissonLog), bool(fit.y.min() < 0)
        side = fit.y if labels else np.ones(len(fit.y))
        x = fit.f if counts else side * fit.f if labels else fit.f - fit.y
        t = np.linspace(x.min() - 0.3, x.max() + 0.3, 2000)
        for y in range(7) if counts else [int(labels)]:
            ax.plot(t, -fit.loss.slope(np.full(len(t), y), t), color=GREY, lw=1.2, zorder=1)
        ax.scatter(x, -side * fit.u, s=16, color=COLOURS[fit.name], zorder=2)
        error = "error $f(x_i) - y_i$, disasters a year"
        name = "log rate at $x_i$" if counts else "margin $y_i\\,(f(x_i) + b)$" if labels else error
        ax.set(title=fit.name, xlabel=name, ylabel=f"$2\\gamma n\\,{'y_i ' * labels}c_i$")


def draw_coal(fits: list[Fit], figure: Any) -> None:
    """Fits of the same counts with four losses."""
    figure.set_size_inches(9, 4.4)
    ax, (X, y) = figure.subplots(), coal_counts()
    ax.scatter(X[:, 0], y, s=14, color=GREY, label="counts")
    grid = np.linspace(1851.0, 1963.0, 400)
    for fit in fits[:4]:
        ax.plot(grid, fit.machine.predict(grid[:, None]), color=COLOURS[fit.name], label=fit.name)
    ax.set(xlabel="year", ylabel="coal-mining disasters a year", xlim=(1850, 1964))
    ax.legend(ncols=2)


def draw_updates(steps: list[tuple[float, float, Function]], figure: Any) -> None:
    """Three weighted bumps and their sum."""
    figure.set_size_inches(7.5, 4.2)
    ax, grid = figure.subplots(), np.linspace(-1.2, 6.8, 400)[:, None]
    f = steps[-1][2]
    for j, (colour, (x, y, _)) in enumerate(zip((BLUE, RED, GREEN), steps, strict=True)):
        name = f"$(x_{j + 1}, {'+' if y > 0 else '-'})$, weight {f.weights[j]:+.2f}"
        bump = Function(f.kernel, f.centers[[j]], f.weights[[j]])
        ax.plot(grid, bump(grid), color=colour, lw=1.5, label=name)
        ax.plot(x, 0, "P" if y > 0 else "X", color=colour, ms=9, zorder=3)
    ax.plot(grid, f(grid), color="black", lw=2.5, label="$f$ after three steps")
    ax.axhline(0, color=GREY, lw=0.8, zorder=0)
    ax.set(xlabel="$x$", ylabel="$f(x)$", ylim=(-0.9, 1.45))
    ax.legend(ncols=2, loc="upper center")


def draw_descent(descents: list[Descent], figure: Any) -> None:
    """Objective minus optimum on a log scale, down to rounding errors."""
    figure.set_size_inches(7.5, 4.4)
    ax = figure.subplots()
    for d in descents:
        seen = int(np.argmax(d.excess < 1e-14)) or len(d.excess)
        ax.semilogy(d.excess[:seen], color=COLOURS[d.name], label=d.name)
        ax.semilogy(d.bound, "--", color=COLOURS[d.name], lw=1.0)
    ax.plot([], [], "--", color=GREY, lw=1.0, label="bound, $(1 - 2\\gamma\\eta)^t$")
    ax.set(xlabel="step $t$", ylabel="objective minus optimum", ylim=(1e-15, 20), xlim=(0, None))
    ax.legend()


def draw_svm(svms: list[Svm], figure: Any) -> None:
    """Both optima, and the optimal biases, over the cost."""
    figure.set_size_inches(10.5, 4.2)
    left, right = figure.subplots(1, 2)
    costs, free = np.array([s.cost for s in svms]), np.array([s.free.any() for s in svms])
    left.loglog(costs, [s.primal for s in svms], color=BLUE, label="primal, interior point")
    left.loglog(costs, [s.dual for s in svms], "o", color=RED, label="dual, libsvm")
    ends, bias = np.array([s.biases for s in svms]), np.array([s.bias for s in svms])
    right.vlines(costs, *ends.T, color=BLUE, alpha=0.35, lw=7, label="every optimal $b$")
    right.semilogx(costs[free], bias[free], "o", color=RED, label="from the free $\\alpha_i$")
    right.semilogx(costs[~free], bias[~free], "D", color="black", label="middle: none is free")
    left.set(xlabel="cost $c$", ylabel="optimal value")
    right.set(xlabel="cost $c$", ylabel="bias $b$")
    left.legend()
    right.legend()


def draw_banana(svms: list[Svm], figure: Any) -> None:
    """The boundary f + b = 0, the margins ±1 and the free support vectors, for three costs."""
    figure.set_size_inches(12, 5.0)
    X, y = banana_sample(len(svms[0].alpha))
    axes = np.meshgrid(np.linspace(-3.2, 3.2, 160), np.linspace(-3.0, 3.2, 160))
    grid = np.column_stack([a.ravel() for a in axes])
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for ax, s in zip(panels, (svms[len(svms) // 4], svms[len(svms) // 2], svms[-1]), strict=True):
        z = s.machine.decision_function(grid).reshape(axes[0].shape)
        ax.contourf(*axes, z, levels=[-1e9, 0, 1e9], colors=[ORANGE, BLUE], alpha=0.12)
        ax.contour(*axes, z, levels=[0], colors="black", linewidths=1.8)
        ax.contour(*axes, z, levels=[-1, 1], colors="black", linestyles="--", linewidths=0.8)
        for side, colour in ((-1, ORANGE), (1, BLUE)):
            ax.scatter(*X[y == side].T, s=14, color=colour, label=f"$y = {side:+d}$")
        ax.scatter(*X[s.free].T, s=60, fc="none", ec="black", label="free $\\alpha_i$")
        ax.plot([], [], color="black", label="$f + b = 0$")
        ax.plot([], [], "--", color="black", lw=0.8, label="$f + b = \\pm 1$")
        bound = int((s.alpha > 0).sum() - s.free.sum())
        ax.set_title(f"c = {s.cost:,.0f}: {s.free.sum()} free, {bound} at c/n")
        ax.set(xlabel="$x_1$", box_aspect=1)
    panels[0].set_ylabel("$x_2$")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


def draw_finite(pair: list[tuple[Function, Floats, float]], figure: Any) -> None:
    """Two weight vectors on the left, one function on the right."""
    figure.set_size_inches(8.5, 3.6)
    left, right = figure.subplots(1, 2)
    for (f, _, _), shift, colour in zip(pair, (-0.18, 0.18), (BLUE, RED), strict=True):
        left.bar(np.arange(4) + shift, f.weights, 0.34, color=colour)
        right.bar(np.arange(4) + shift, f(f.centers), 0.34, color=colour)
    left.set(title="two weight vectors", xlabel="point $i$", ylabel="weight $a_i$")
    right.set(title="one function", xlabel="point $i$", ylabel="$f(i)$")
    for ax in (left, right):
        ax.axhline(0, color="black", lw=0.8)
        ax.set_xticks(range(4))


def draw_mercer(spectra: list[Spectrum], figure: Any) -> None:
    """Eigenfunctions, partial sums of k(½, ·), eigenvalues and the error of the sums."""
    figure.set_size_inches(12, 6.8)
    panels, shades = figure.subplots(2, 3), (BLUE, GREEN, ORANGE, RED)
    for row, s, colour in zip(panels, spectra, (BLUE, RED), strict=True):
        name, middle, m = type(s.kernel).__name__, len(s.x) // 2, np.arange(1, len(s.errors))
        sums = np.cumsum(s.values * s.functions * s.functions[middle], axis=1)
        for i, terms, shade in zip(range(4), (1, 3, 5, 9), shades, strict=True):
            row[0].plot(s.x, s.functions[:, i], color=shade, lw=1.6, label=f"$e_{i + 1}$")
            row[1].plot(s.x, sums[:, terms - 1], color=shade, lw=1.4, label=f"$m = {terms}$")
        k = s.kernel(s.x[[middle], None], s.x[:, None])[0]
        row[1].plot(s.x, k, "k:", label="$k(½, x)$")
        panels[0, 2].loglog(m, np.maximum(s.values[: len(m)], 1e-18), color=colour, label=name)
        panels[1, 2].loglog(m, s.errors[1:], color=colour, label=name)
        row[0].set(title=f"{name}: eigenfunctions", xlabel="$x$", ylabel="$e_i(x)$")
        row[1].set(title=f"{name}: $m$ terms of the sum", xlabel="$x$", ylabel="value at $(½, x)$")
    panels[0, 2].loglog(m[:20], laplace_eigenvalues(0.2, 20), "k.", ms=5, label="Laplace, exact")
    panels[0, 2].set(title="eigenvalues", xlabel="$i$", ylabel="$\\lambda_i$", ylim=(1e-16, 2))
    panels[1, 2].set(title="largest error of $m$ terms", xlabel="$m$", ylabel="max $|k - $ sum$|$")
    for ax in panels.ravel():
        ax.legend(fontsize=9)
