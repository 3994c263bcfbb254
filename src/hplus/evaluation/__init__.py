"""Evaluation: scores on held-out events, goodness of fit of a rate, and baselines."""

from hplus.evaluation.dependence import Dependence
from hplus.evaluation.goodness import check
from hplus.evaluation.kde import AdaptiveKDE, EdgeCorrectedKDE, best_kde
from hplus.evaluation.progressive import Progress, prequential, regret
from hplus.evaluation.rescaling import Rescaling
from hplus.evaluation.residuals import Calibration, Quadrats, Thinned
from hplus.evaluation.scores import Rate, coverage, gain, mean_squared_error, paired, thin
from hplus.evaluation.timelines import Timeline
from hplus.evaluation.verdicts import Check

__all__ = [
    "AdaptiveKDE",
    "Calibration",
    "Check",
    "Dependence",
    "EdgeCorrectedKDE",
    "Progress",
    "Quadrats",
    "Rate",
    "Rescaling",
    "Thinned",
    "Timeline",
    "best_kde",
    "check",
    "coverage",
    "gain",
    "mean_squared_error",
    "paired",
    "prequential",
    "regret",
    "thin",
]
