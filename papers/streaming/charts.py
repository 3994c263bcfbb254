"""Figures of the theorems and of classification: `draw_*` functions take a `*_data` result."""

from __future__ import annotations

from typing import Any

import numpy as np
from budgets import Kept, Regret, Tuned
from matplotlib.ticker import NullLocator, PercentFormatter
from pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from theorem import Atoms, Decay, PseudoGradient, Update

SHADES = ("#08306b", "#2171b5", "#4292c6", "#6baed6", "#9ecae1", "#c6dbef")
"""Colours for lines in order, from the largest to the smallest."""


def draw_gradients(forms: list[PseudoGradient], figure: Any) -> None:
    """<∇R, E g> as a share of ‖∇R‖² along the run, and ‖∇R‖² itself."""
    figure.set_size_inches(11, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    left.axhspan(-100.0, 0.0, color=RED, alpha=0.08, lw=0)
    left.axhline(0.0, color="black", lw=0.8)
    for form, colour in zip(forms, (BLUE, GREEN, ORANGE, RED), strict=True):
        shares = form.inner / form.squared_norm
        left.plot(form.events, shares, "o-", color=colour, ms=4, lw=1.5, label=form.name)
    shares = np.concatenate([form.inner / form.squared_norm for form in forms])
    left.set(xscale="log", xlabel="events")
    left.set_yscale("symlog", linthresh=1.0)
    left.set_ylim(min(-1.5, 1.5 * shares.min()), 1.5 * shares.max())
    left.set_yticks([-1, 0, 1, 10], ["-1", "0", "1", "10"])
    left.set_title(r"$\langle\nabla R,\, E\,g\rangle\, /\, \|\nabla R\|^2$", loc="left")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    right.loglog(forms[0].events, forms[0].squared_norm, color="black")
    right.set_title(r"$\|\nabla R\|^2$ along the run", loc="left")
    right.set(xlabel="events")


def draw_theorem(runs: list[Decay], figure: Any) -> None:
    """The excess risk against η·events, and its final level against η and α."""
    figure.set_size_inches(12, 4.4)
    left, middle, right = figure.subplots(1, 3, width_ratios=(3, 2, 2))
    least = min(run.share for run in runs)
    steps = [run for run in runs if run.share == least]
    chosen = max((run.step for run in runs if run.share != least), default=steps[0].step)
    for run, shade in zip(steps, SHADES, strict=False):
        left.semilogy(run.step * run.events, run.excess, color=shade, lw=1.6,
                      label=rf"$\eta$ = {run.step:g}")  # fmt: skip
    left.set(xlabel=r"$\eta\,\cdot$ events", xlim=(0, 60), ylim=(None, 1.0))
    left.set_title("$R(f_t) - R^*$", loc="left")
    left.legend(loc="upper right", ncols=2)
    eta, radius = np.array([(run.step, run.radius) for run in steps]).T
    middle.loglog(eta, radius, "o-", color=BLUE)
    middle.loglog(eta, radius[-1] * eta / eta[-1], ":", color=GREY, label=r"$\propto\eta$")
    _label(middle, eta)
    middle.set(xlabel=r"step $\eta$")
    middle.set_title("where it settles", loc="left")
    middle.legend()
    shares = sorted((run.share, run.radius, run.atoms) for run in runs if run.step == chosen)
    right.plot(*np.array(shares).T[:2], "o-", color=BLUE)
    for share, settled, atoms in shares:
        right.annotate(f"{atoms:.0f} atoms", (share, settled), xytext=(0, 8),
                       textcoords="offset points", ha="center", fontsize=9)  # fmt: skip
    highest = max(settled for _, settled, _ in shares)
    right.set(xlabel=r"$\alpha = \epsilon/\eta$", xlim=(-0.1, 1.1), ylim=(0.0, 1.2 * highest))
    right.set_title(rf"the same, $\eta$ = {chosen:g}", loc="left")


def _label(ax: Any, places: Any) -> None:
    """Put ticks at these values of a logarithmic axis only."""
    ax.set_xticks(places, [f"{place:g}" for place in places])
    ax.xaxis.set_minor_locator(NullLocator())


def draw_atoms(curves: list[Atoms], figure: Any) -> None:
    """Atoms against 1/ε, with the order of the bound."""
    figure.set_size_inches(10, 4.6)
    panels = figure.subplots(1, 2)
    for ax, dimension in zip(panels, (1, 2), strict=True):
        chosen = [curve for curve in curves if curve.dimension == dimension]
        for curve, colour in zip(chosen, (BLUE, ORANGE), strict=True):
            label = f"{type(curve.kernel).__name__}, slope {curve.slope:.2f}"
            ax.loglog(1.0 / curve.tolerances, curve.atoms, "o-", color=colour, label=label)
        x, top = 1.0 / chosen[-1].tolerances, chosen[-1].atoms
        ax.loglog(x, top[0] * (x / x[0]) ** dimension, ":", color=GREY,
                  label=rf"order of the bound, $(1/\epsilon)^{dimension}$")  # fmt: skip
        _label(ax, x)
        ax.set(xlabel=r"$1/\epsilon$", ylabel="atoms", title=f"{dimension}-D")
        ax.legend(loc="upper left")


def draw_updates(updates: list[Update], figure: Any) -> None:
    """One panel per update: the bump of every atom, and their sum."""
    figure.set_size_inches(12, 3.9)
    panels = figure.subplots(1, len(updates), sharey=True)
    seen: list[Update] = []
    for number, (ax, item) in enumerate(zip(panels, updates, strict=True), start=1):
        seen.append(item)
        ax.axhline(0.0, color="black", lw=0.8)
        for bump, colour in zip(item.bumps, (BLUE, RED, GREEN), strict=False):
            ax.plot(item.x, bump, color=colour, lw=1.6)
            ax.fill_between(item.x, bump, 0.0, color=colour, alpha=0.15, lw=0)
        ax.plot(item.x, item.f, color="black", lw=2.4, label="f, their sum")
        for old, colour in zip(seen, (BLUE, RED, GREEN), strict=False):
            sign = "+" if old.label > 0 else "−"
            ax.plot(old.point, 0.0, "o", color=colour, ms=16, zorder=3)
            ax.text(old.point, -0.015, sign, color="white", ha="center", va="center", zorder=4,
                    fontsize=15, fontweight="bold")  # fmt: skip
        ax.set(xlabel="x", title=f"update {number}: f was {item.before:.2f} at $x_{number}$")
    panels[-1].legend(loc="lower right")


def draw_regret(runs: list[Regret], figure: Any) -> None:
    """Regret along the stream and its bound, one panel per optimum."""
    figure.set_size_inches(4 * len(runs), 4.2)
    panels = figure.subplots(1, len(runs), sharey=True, squeeze=False)[0]
    for ax, run in zip(panels, runs, strict=True):
        t = np.arange(1, len(run.regret) + 1)
        ax.axhline(0.0, color="black", lw=0.8)
        ax.plot(t, run.regret, color=BLUE, label="regret")
        ax.plot(t, run.bound, "--", color=RED, label="bound for this step")
        ax.plot(t[-1], run.norm * np.sqrt(t[-1]), "o", color=RED, clip_on=False,
                label=r"$\|\nabla C\|\,\|f^*\|\sqrt{T}$")  # fmt: skip
        ax.set(xlabel="examples", title=rf"$\|f^*\|$ = {run.norm:.1f}", xlim=(0, t[-1]))
    panels[0].set_ylabel("sum of losses less those of $f^*$")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def draw_budgets(kept: list[Kept], figure: Any) -> None:
    """Accuracy on test rows and during the pass; the line is the batch fit."""
    kept = [item for item in kept if len(item.accuracy)]
    names = list(dict.fromkeys(item.data.split(",")[0] for item in kept))
    figure.set_size_inches(6.5 * len(names), 4.4)
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(panels, names, strict=True):
        rows = [item for item in kept if item.data.split(",")[0] == name]
        streams = [item for item in rows if len(item.progressive)]
        batch = max(item.accuracy.mean() for item in rows if not len(item.progressive))
        ax.axvline(batch, color="black", lw=1.2, label="batch SVC")
        for i, item in enumerate(streams):
            ax.plot(item.accuracy, np.full(len(item.accuracy), i), "o", color=BLUE, ms=8, alpha=0.6,
                    label="after the pass" if i == 0 else None)  # fmt: skip
            ax.plot(item.progressive.mean(), i, "|", color=PURPLE, ms=16, mew=2.5,
                    label="along the pass" if i == 0 else None)  # fmt: skip
        ax.set_yticks(range(len(streams)), [item.name for item in streams])
        ax.invert_yaxis()
        ax.grid(axis="x", lw=0.4)
        ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        ax.set(title=name, xlabel="accuracy")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def draw_tuning(rows: list[Tuned], figure: Any) -> None:
    """The share of wrong labels during a pass, by step size and decay."""
    figure.set_size_inches(7.5, 4.4)
    ax = figure.subplots()
    wrong = np.array([row.wrong for row in rows])
    shades = ax.imshow(wrong, cmap="viridis_r", aspect="auto", origin="lower",
                       vmax=min(0.3, wrong.max()))  # fmt: skip
    for (i, j), share in np.ndenumerate(wrong):
        best = share == wrong.min()
        colour = "white" if share > 0.5 * (wrong.min() + min(0.3, wrong.max())) else "black"
        ax.text(j, i, f"{share:.1%}", ha="center", va="center", color=colour,
                fontweight="bold" if best else "normal")  # fmt: skip
    ax.set_xticks(range(len(rows[0].steps)), [f"{step:g}" for step in rows[0].steps])
    ax.set_yticks(range(len(rows)), [f"{row.decay:g}" for row in rows])
    ax.set(xlabel=r"step $\eta$", ylabel=r"decay $\lambda$", title="wrong labels along a pass")
    ax.spines[:].set_visible(False)
    figure.colorbar(shades, ax=ax, extend="max", ticks=np.arange(0.1, 0.31, 0.05),
                    format=PercentFormatter(1.0, decimals=0))  # fmt: skip
