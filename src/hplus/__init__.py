"""hplus: learn functions that cannot be negative."""

from hplus.estimators.density import Density
from hplus.estimators.intensity import Intensity
from hplus.estimators.intervals import HeteroscedasticRegressor, QuantilesRegressor
from hplus.estimators.machines import KernelClassifier, KernelRegressor
from hplus.estimators.regression import SoSRegressor
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
from hplus.windows import Box, Interval, Polygon

__version__ = "0.1.0"

__all__ = [
    "Box",
    "Constant",
    "Custom",
    "Density",
    "Diagonal",
    "Finite",
    "Full",
    "Function",
    "Gaussian",
    "HeteroscedasticRegressor",
    "Huber",
    "Intensity",
    "Interval",
    "KernelClassifier",
    "KernelRegressor",
    "Laplace",
    "Linear",
    "Matern32",
    "Matern52",
    "Nugget",
    "Nystroem",
    "Paper",
    "Periodic",
    "Poisson",
    "PoissonLog",
    "Polygon",
    "Polynomial",
    "Quantile",
    "QuantilesRegressor",
    "RandomFourier",
    "RationalQuadratic",
    "Scalar",
    "SoSRegressor",
    "Statistic",
    "SumOfSquares",
    "double_integral",
    "is_psd",
    "load",
    "mean_embedding",
    "product_integral",
    "save",
]
