"""Evaluation: scores on held-out events, checks of a fitted rate, a baseline to compare with."""

from hplus.evaluation.goodness import Check, check
from hplus.evaluation.kde import EdgeCorrectedKDE
from hplus.evaluation.progressive import Progress, prequential, regret
from hplus.evaluation.residuals import Calibration, Quadrats, Rescaling, Thinned
from hplus.evaluation.scores import Rate, coverage, gain, mean_squared_error, paired, thin

__all__ = [
    "Calibration",
    "Check",
    "EdgeCorrectedKDE",
    "Progress",
    "Quadrats",
    "Rate",
    "Rescaling",
    "Thinned",
    "check",
    "coverage",
    "gain",
    "mean_squared_error",
    "paired",
    "prequential",
    "regret",
    "thin",
]
