"""What `make demo` runs: two fits on data that come with the package, one picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from hplus._checks import Floats
from hplus.datasets import coal, curry
from hplus.estimators.machines import KernelClassifier, KernelRegressor
from hplus.kernels import Gaussian
from hplus.storage import save

ZONES = {"at the rim": (0.0, 1.5), "from the corner": (23.0, 0.0), "from the top": (0.0, 25.0)}
"""Places on the court, in feet from the hoop."""


def yearly_counts() -> tuple[Floats, Floats]:
    """Years (n, 1) and the coal-mining disasters in each, (n,)."""
    years = np.arange(1851.0, 1963.0)
    dates = np.floor(coal().X[:, 0])
    return years[:, None] + 0.5, np.array([np.sum(dates == year) for year in years], dtype=float)


def fit_coal() -> KernelRegressor:
    """Disasters a year as a positive function of time; the scale is learned."""
    return KernelRegressor(loss="poisson_log", penalty=1e-2).fit(*yearly_counts())


def fit_curry() -> KernelClassifier:
    """The chance that a shot goes in, as a function of where it is taken."""
    shots = curry()
    machine = KernelClassifier(Gaussian(6.0), loss="logistic", penalty=1e-4, landmarks=300)
    return machine.fit(shots.X, shots.y)


def plot_coal(ax: Any, model: KernelRegressor) -> None:
    X, y = yearly_counts()
    t = np.linspace(1851.0, 1963.0, 600)
    ax.bar(X[:, 0], y, width=0.9, color="#c9d3df", label="disasters in the year")
    ax.plot(t, model.predict(t[:, None]), color="#b3322c", lw=2.5, label="expected, never negative")
    ax.set(xlabel="year", ylabel="disasters a year", title="Coal-mining disasters in Britain")
    ax.legend(frameon=False)


def plot_curry(ax: Any, machine: KernelClassifier) -> None:
    window = curry().window
    assert window is not None
    low, high = window.bounds()
    x, y = np.linspace(low[0], high[0], 151), np.linspace(low[1], 32.0, 113)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    chance = machine.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(grid.shape[:2])
    mesh = ax.pcolormesh(x, y, 100.0 * chance, cmap="viridis", shading="gouraud")
    ax.plot(0.0, 0.0, "o", color="white", ms=6)
    for px, py in ZONES.values():
        p = machine.predict_proba(np.array([[px, py]]))[0, 1]
        ax.annotate(f"{100 * p:.0f} %", (px, py), color="white", ha="center", va="bottom")
    ax.set(xlabel="feet", ylabel="feet from the hoop", title="Does a shot of Stephen Curry go in?")
    ax.set_aspect("equal")
    ax.figure.colorbar(mesh, ax=ax, label="chance in per cent", shrink=0.8)


def main(folder: str = "demo") -> None:
    """Fit, draw, save, and say what was found."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    print("Fitting 112 years of coal-mining disasters ...")
    model = fit_coal()
    print("Fitting 19,042 shots of Stephen Curry ...")
    machine = fit_curry()
    figure, axes = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    plot_coal(axes[0], model)
    plot_curry(axes[1], machine)
    figure.savefig(out / "demo.png", dpi=120)
    save(model, out / "coal.hplus")
    save(machine, out / "curry.hplus")
    _report(model, machine, out)


def _report(model: KernelRegressor, machine: KernelClassifier, out: Path) -> None:
    before, after = model.predict(np.array([[1870.0], [1920.0]]))
    rim, corner, top = machine.predict_proba(np.array(list(ZONES.values())))[:, 1]
    print(
        f"\n1. Britain's mines had {before:.1f} disasters a year around 1870, {after:.1f} in 1920."
    )
    print(f"2. A shot of Curry's goes in with {rim:.0%} at the rim, {corner:.0%} from the corner,")
    print(f"   {top:.0%} from the top.")
    print(f"3. Both fits are certified: at most {model.solution_.relative_gap:.0e} and")
    print(f"   {machine.solution_.relative_gap:.0e} above the best objective of their kind.\n")
    print(f"Picture: {out / 'demo.png'}   Models: {out / 'coal.hplus'}, {out / 'curry.hplus'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="demo", help="where to write (default: demo)")
    main(parser.parse_args().folder)
