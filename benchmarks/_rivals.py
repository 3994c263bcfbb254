"""Other estimators of a rate in the plane: each takes events and a box, and returns a function.

The function is the log density on the box, at points (m, 2). None of the estimators corrects for
the edges of the box, so each is divided by its mass inside. R packages run if Rscript is
installed.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from KDEpy import FFTKDE
from pygam import PoissonGAM, te
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity

from hplus import Box
from hplus.grids import TensorGrid

LogDensity = Callable[[np.ndarray], np.ndarray]
Rival = Callable[[np.ndarray, Box], LogDensity]

BANDWIDTHS = np.geomspace(1.0 / 200.0, 1.0 / 4.0, 24)
"""Bandwidths for cross-validation, as fractions of the longest side."""

CELLS = 512
"""Cells along the longest side of the grid of FFTKDE."""

BINS = 40
"""Bins per axis, whose counts a GAM is fitted to."""

FLOOR = 1e-12
"""Fraction of the largest density below which FFTKDE returns only rounding errors."""


def sides(window: Box) -> np.ndarray:
    low, high = window.bounds()
    return high - low


def bandwidth(X: np.ndarray, candidates: np.ndarray) -> float:
    """The bandwidth with the best likelihood in shuffled 5-fold cross-validation."""
    folds = KFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(KernelDensity(rtol=1e-4), {"bandwidth": candidates}, cv=folds)
    return float(search.fit(X).best_params_["bandwidth"])


def smoothed(X: np.ndarray, window: Box, candidates: np.ndarray | None = None) -> LogDensity:
    """scikit-learn's KernelDensity with a cross-validated bandwidth."""
    h = bandwidth(X, sides(window).max() * BANDWIDTHS if candidates is None else candidates)
    kde, mass = KernelDensity(bandwidth=h, rtol=1e-4).fit(X), mass_inside(X, window, h)
    return lambda Z: kde.score_samples(Z) - np.log(mass)


def mass_inside(X: np.ndarray, window: Box, h: float) -> float:
    """Mean over events of Π_j Φ((b_j - x_j)/h) - Φ((a_j - x_j)/h): the mass in the box."""
    low, high = window.bounds()
    return float(np.mean(np.prod(norm.cdf((high - X) / h) - norm.cdf((low - X) / h), axis=1)))


def transformed(X: np.ndarray, window: Box) -> LogDensity:
    """KDEpy's FFTKDE, with the bandwidth chosen for scikit-learn: it cannot choose its own."""
    h = bandwidth(X, sides(window).max() * BANDWIDTHS)
    low, high = window.bounds()
    cells = np.ceil(CELLS * sides(window) / sides(window).max()).astype(int)
    # its grid must contain every event in its interior
    edge = 1e-9 * (high - low)
    grid = TensorGrid(tuple(low - edge), tuple(high + edge), tuple((cells + 1).tolist()))
    values = FFTKDE(kernel="gaussian", bw=h).fit(X).evaluate(grid.nodes()).reshape(grid.shape)
    values = np.maximum(values, FLOOR * values.max())
    mass = float((values * grid.integrals(window)).sum())
    return lambda Z: np.log(grid.interpolate(values, Z) / mass)


def binned(X: np.ndarray, window: Box) -> LogDensity:
    """pygam's PoissonGAM, a tensor product of splines on binned counts, with penalty by AICc."""
    low, high = window.bounds()
    edges = [np.linspace(a, b, BINS + 1) for a, b in zip(low, high, strict=True)]
    counts = np.histogram2d(*X.T, bins=edges)[0].ravel()
    centres = np.stack(np.meshgrid(*((e[1:] + e[:-1]) / 2 for e in edges), indexing="ij"), axis=-1)
    # add 0 and 1: pygam's splines end at the data, and the bin centres do not include the edges
    scaled = (centres.reshape(-1, 2) - low) / (high - low)
    gam = PoissonGAM(te(0, 1, n_splines=15, edge_knots=[[0.0, 1.0]] * 2))
    gam.gridsearch(scaled, counts, lam=np.array([0.01, 0.1, 1.0, 10.0]), progress=False)
    mass = gam.predict_mu(scaled).mean() * window.volume
    return lambda Z: np.log(gam.predict_mu((Z - low) / (high - low)) / mass)


RIVALS: dict[str, Rival] = {
    "sklearn KernelDensity, cross-validated": smoothed,
    "KDEpy FFTKDE, the same bandwidth": transformed,
    "pygam PoissonGAM, 40 x 40 bins": binned,
}

R_PACKAGES = {"spatstat density.ppp, bw.ppl": "spatstat", "mgcv s(x, y), REML": "mgcv"}

R_SCRIPT = """
args <- commandArgs(TRUE)
X <- read.csv(file.path(args[1], "X.csv")); Z <- read.csv(file.path(args[1], "Z.csv"))
low <- as.numeric(args[3:4]); high <- as.numeric(args[5:6]); bins <- as.integer(args[7])
area <- prod(high - low)
if (args[2] == "spatstat") {
  suppressPackageStartupMessages(library(spatstat))
  P <- ppp(X$x, X$y, window = owin(c(low[1], high[1]), c(low[2], high[2])))
  f <- density(P, sigma = bw.ppl(P), diggle = TRUE, dimyx = 256)
  at <- interp.im(f, Z$x, Z$y)
  at[is.na(at)] <- f[ppp(Z$x, Z$y, window = Window(P)), drop = FALSE][is.na(at)]
  gain <- mean(log(pmax(at, 1e-12)) - log(integral(f) / area))
} else {
  suppressPackageStartupMessages(library(mgcv))
  xs <- seq(low[1], high[1], length.out = bins + 1); ys <- seq(low[2], high[2], length.out = bins + 1)
  cells <- expand.grid(x = (xs[-1] + xs[-bins - 1]) / 2, y = (ys[-1] + ys[-bins - 1]) / 2)
  cells$n <- as.vector(table(cut(X$x, xs, include.lowest = TRUE), cut(X$y, ys, include.lowest = TRUE)))
  fit <- gam(n ~ s(x, y, k = min(150, nrow(X) - 1)), family = poisson, method = "REML", data = cells)
  gain <- mean(predict(fit, Z)) - log(mean(fitted(fit)))
}
cat(gain)
"""  # noqa: E501


def r_packages() -> dict[str, str]:
    """The entries of `R_PACKAGES` that can be loaded."""
    if shutil.which("Rscript") is None:
        return {}
    return {name: package for name, package in R_PACKAGES.items() if _loads(package)}


def _loads(package: str) -> bool:
    command = ["Rscript", "-e", f"suppressPackageStartupMessages(library({package}))"]
    return subprocess.run(command, capture_output=True).returncode == 0


def r_gain(package: str, X: np.ndarray, Z: np.ndarray, window: Box) -> float:
    """Mean log(density · area) over held-out events Z, for an R package fitted to X."""
    with TemporaryDirectory() as folder:
        for name, points in (("X", X), ("Z", Z)):
            np.savetxt(Path(folder, f"{name}.csv"), points, "%.17g", ",", header="x,y", comments="")
        bounds = [repr(float(bound)) for bound in np.concatenate(window.bounds())]
        command = ["Rscript", "-e", R_SCRIPT, folder, package, *bounds, str(BINS)]
        return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
