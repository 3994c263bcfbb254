"""Can a smooth fit of counts promise fewer than no customers? Kernel ridge does, at night.

Customers are counted every hour in a shop that is open from 9 to 19. The kernel ridge fit and the
sum of squares get the same hours and the same kernel, each its penalty by cross-validation.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, KFold

from hplus import Gaussian, KernelRegressor, SoSRegressor

Floats = NDArray[np.float64]

OUT = Path(__file__).parents[1] / "docs" / "pictures" / "readme.png"
KERNEL = Gaussian(2.5)  # hours
HOURS = 72.0
BLUE, RED, GREY = "#0072b2", "#d55e00", "#8c8c8c"
STYLE: Any = {
    "figure.constrained_layout.use": True, "savefig.dpi": 160, "font.size": 12,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 14,
    "axes.titleweight": "bold", "axes.titlepad": 10.0, "lines.linewidth": 2.4,
}  # fmt: skip


def rate(t: Floats) -> Floats:
    """Customers an hour: none at night, most at noon and before the shop closes."""
    hour = t % 24.0
    noon, evening = (np.exp(-0.5 * ((hour - at) / 1.4) ** 2) for at in (12.0, 17.0))
    return np.where((hour > 9.0) & (hour < 19.0), 12.0 + 10.0 * noon + 16.0 * evening, 0.0)


def fits(seed: int = 0) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Hours (n, 1) and counts (n,), a grid of times (q,), kernel ridge and ours on it."""
    t = np.arange(0.5, HOURS)
    X, y = t[:, None], np.random.default_rng(seed).poisson(rate(t)).astype(np.float64)
    folds, penalties = KFold(5, shuffle=True, random_state=0), np.logspace(-5, 0, 11)
    ridge = GridSearchCV(KernelRegressor(KERNEL), {"penalty": penalties}, cv=folds).fit(X, y)
    ours = SoSRegressor(KERNEL, cone="auto").fit(X, y)
    grid = np.linspace(0.0, HOURS, 2881)
    return X, y, grid, ridge.predict(grid[:, None]), ours.predict(grid[:, None])


def draw(data: tuple[Floats, ...], figure: Figure) -> None:
    """Kernel ridge on the left with its negative stretches, the sum of squares on the right."""
    X, y, grid, ridge, ours = data
    figure.set_size_inches(10.0, 4.0)
    panels, below = figure.subplots(1, 2, sharey=True), ridge < 0.0
    for ax, f, colour in zip(panels, (ridge, ours), (RED, BLUE), strict=True):
        ax.axhline(0.0, color="black", lw=1.0, zorder=1)
        ax.scatter(X[:, 0], y, s=16, color=GREY, zorder=2)
        ax.plot(grid, f, color=colour, zorder=3)
        ax.set(xlabel="hour", xlim=(0, HOURS), xticks=np.arange(0, HOURS + 1, 12))
    panels[0].fill_between(grid, ridge, 0.0, where=below, color=RED, alpha=0.6, lw=0)
    panels[0].fill_between(
        grid, 0, 1, where=below, color=RED, alpha=0.15, lw=0,
        transform=panels[0].get_xaxis_transform(),
    )  # fmt: skip
    panels[0].set_title(f"kernel ridge: below zero {below.mean():.0%} of the time", color=RED)
    panels[1].set_title("hplus: never below zero", color=BLUE)
    panels[0].set_ylabel("customers an hour")


def main(out: Path) -> None:
    """Fit, draw and say in one line what the picture shows."""
    data = fits()
    out.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        figure = Figure()
        draw(data, figure)
        figure.savefig(out)
    ridge, ours = data[3:]
    print(
        f"Kernel ridge is below zero {np.mean(ridge < 0.0):.0%} of the time, down to "
        f"{ridge.min():.1f} customers an hour; the sum of squares is never below {ours.min():.1g}."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="where to write the picture")
    main(parser.parse_args().out)
