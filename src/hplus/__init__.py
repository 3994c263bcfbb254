"""hplus: learn functions that cannot be negative."""

from hplus._progress import progress
from hplus.estimators.density import Density
from hplus.estimators.intensity import Intensity
from hplus.estimators.intervals import HeteroscedasticRegressor, QuantilesRegressor
from hplus.estimators.machines import KernelClassifier, KernelRegressor
from hplus.estimators.ratio import RateRatio
from hplus.estimators.regression import SoSRegressor
from hplus.estimators.separable import SeparableIntensity
from hplus.features import Nystroem, RandomFourier
from hplus.kernels import (
    Constant,
    Custom,
    Finite,
    Gaussian,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    Nugget,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Scalar,
    is_psd,
)
from hplus.kernels.integrals import double_integral, mean_embedding, product_integral
from hplus.losses import Huber, Poisson, PoissonLog, Quantile
from hplus.positivity import Diagonal, Full, Paper, SumOfSquares
from hplus.space import Function
from hplus.statistic import Statistic
from hplus.storage import load, save
from hplus.streaming.budgets import KOMP, DoublyStochastic, Forgetron, Oldest, Smallest
from hplus.streaming.classification import StreamingClassifier
from hplus.streaming.intensity import StreamingIntensity
from hplus.streaming.links import Log
from hplus.streaming.methods import PMD, SPPPOT, Refit, SecondOrder
from hplus.streaming.regression import StreamingRegressor
from hplus.streaming.steps import FixedStep, InverseStep, RootStep
from hplus.studies.quantity_study import QuantityStudy
from hplus.studies.streams import StreamStudy
from hplus.studies.study import EventStudy
from hplus.windows import Box, Cycle, Interval, Polygon, Polygons

__version__ = "0.1.0"

__all__ = [
    "KOMP",
    "PMD",
    "SPPPOT",
    "Box",
    "Constant",
    "Custom",
    "Cycle",
    "Density",
    "Diagonal",
    "DoublyStochastic",
    "EventStudy",
    "Finite",
    "FixedStep",
    "Forgetron",
    "Full",
    "Function",
    "Gaussian",
    "HeteroscedasticRegressor",
    "Huber",
    "Intensity",
    "Interval",
    "InverseStep",
    "KernelClassifier",
    "KernelRegressor",
    "Laplace",
    "Linear",
    "Log",
    "Matern32",
    "Matern52",
    "Nugget",
    "Nystroem",
    "Oldest",
    "Paper",
    "Periodic",
    "Poisson",
    "PoissonLog",
    "Polygon",
    "Polygons",
    "Polynomial",
    "Quantile",
    "QuantilesRegressor",
    "QuantityStudy",
    "RandomFourier",
    "RateRatio",
    "RationalQuadratic",
    "Refit",
    "RootStep",
    "Scalar",
    "SecondOrder",
    "SeparableIntensity",
    "Smallest",
    "SoSRegressor",
    "Statistic",
    "StreamStudy",
    "StreamingClassifier",
    "StreamingIntensity",
    "StreamingRegressor",
    "SumOfSquares",
    "double_integral",
    "is_psd",
    "load",
    "mean_embedding",
    "product_integral",
    "progress",
    "save",
]
