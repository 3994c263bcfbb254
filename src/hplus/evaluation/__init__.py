"""Evaluation: scores on held-out events, goodness of fit of a rate, and a baseline."""

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
