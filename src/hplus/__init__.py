"""hplus: learn functions that cannot be negative."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from hplus._progress import progress as progress
    from hplus.estimators.density import Density as Density
    from hplus.estimators.intensity import Intensity as Intensity
    from hplus.estimators.intervals import HeteroscedasticRegressor as HeteroscedasticRegressor
    from hplus.estimators.intervals import QuantilesRegressor as QuantilesRegressor
    from hplus.estimators.machines import KernelClassifier as KernelClassifier
    from hplus.estimators.machines import KernelRegressor as KernelRegressor
    from hplus.estimators.regression import SoSRegressor as SoSRegressor
    from hplus.estimators.separable import SeparableIntensity as SeparableIntensity
    from hplus.features import Nystroem as Nystroem
    from hplus.features import RandomFourier as RandomFourier
    from hplus.kernels import Constant as Constant
    from hplus.kernels import Custom as Custom
    from hplus.kernels import Finite as Finite
    from hplus.kernels import Gaussian as Gaussian
    from hplus.kernels import Laplace as Laplace
    from hplus.kernels import Linear as Linear
    from hplus.kernels import Matern32 as Matern32
    from hplus.kernels import Matern52 as Matern52
    from hplus.kernels import Nugget as Nugget
    from hplus.kernels import Periodic as Periodic
    from hplus.kernels import Polynomial as Polynomial
    from hplus.kernels import RationalQuadratic as RationalQuadratic
    from hplus.kernels import Scalar as Scalar
    from hplus.kernels import is_psd as is_psd
    from hplus.kernels.integrals import double_integral as double_integral
    from hplus.kernels.integrals import mean_embedding as mean_embedding
    from hplus.kernels.integrals import product_integral as product_integral
    from hplus.losses import Huber as Huber
    from hplus.losses import Poisson as Poisson
    from hplus.losses import PoissonLog as PoissonLog
    from hplus.losses import Quantile as Quantile
    from hplus.positivity import Diagonal as Diagonal
    from hplus.positivity import Full as Full
    from hplus.positivity import Paper as Paper
    from hplus.positivity import SumOfSquares as SumOfSquares
    from hplus.rates.ratio import RateRatio as RateRatio
    from hplus.rates.statistic import Statistic as Statistic
    from hplus.space import Function as Function
    from hplus.storage import load as load
    from hplus.storage import save as save
    from hplus.streaming.budgets import KOMP as KOMP
    from hplus.streaming.budgets import DoublyStochastic as DoublyStochastic
    from hplus.streaming.budgets import Forgetron as Forgetron
    from hplus.streaming.budgets import Oldest as Oldest
    from hplus.streaming.budgets import Smallest as Smallest
    from hplus.streaming.classification import StreamingClassifier as StreamingClassifier
    from hplus.streaming.intensity import StreamingIntensity as StreamingIntensity
    from hplus.streaming.links import Log as Log
    from hplus.streaming.methods import PMD as PMD
    from hplus.streaming.methods import SPPPOT as SPPPOT
    from hplus.streaming.methods import Refit as Refit
    from hplus.streaming.methods import SecondOrder as SecondOrder
    from hplus.streaming.regression import StreamingRegressor as StreamingRegressor
    from hplus.streaming.steps import FixedStep as FixedStep
    from hplus.streaming.steps import InverseStep as InverseStep
    from hplus.streaming.steps import RootStep as RootStep
    from hplus.studies.event_study import EventStudy as EventStudy
    from hplus.studies.quantity_study import QuantityStudy as QuantityStudy
    from hplus.studies.streams import StreamStudy as StreamStudy
    from hplus.windows import Box as Box
    from hplus.windows import Cycle as Cycle
    from hplus.windows import Interval as Interval
    from hplus.windows import Polygon as Polygon
    from hplus.windows import Polygons as Polygons

_MODULES = {
    "KOMP": "hplus.streaming.budgets",
    "PMD": "hplus.streaming.methods",
    "SPPPOT": "hplus.streaming.methods",
    "Box": "hplus.windows",
    "Constant": "hplus.kernels",
    "Custom": "hplus.kernels",
    "Cycle": "hplus.windows",
    "Density": "hplus.estimators.density",
    "Diagonal": "hplus.positivity",
    "DoublyStochastic": "hplus.streaming.budgets",
    "EventStudy": "hplus.studies.event_study",
    "Finite": "hplus.kernels",
    "FixedStep": "hplus.streaming.steps",
    "Forgetron": "hplus.streaming.budgets",
    "Full": "hplus.positivity",
    "Function": "hplus.space",
    "Gaussian": "hplus.kernels",
    "HeteroscedasticRegressor": "hplus.estimators.intervals",
    "Huber": "hplus.losses",
    "Intensity": "hplus.estimators.intensity",
    "Interval": "hplus.windows",
    "InverseStep": "hplus.streaming.steps",
    "KernelClassifier": "hplus.estimators.machines",
    "KernelRegressor": "hplus.estimators.machines",
    "Laplace": "hplus.kernels",
    "Linear": "hplus.kernels",
    "Log": "hplus.streaming.links",
    "Matern32": "hplus.kernels",
    "Matern52": "hplus.kernels",
    "Nugget": "hplus.kernels",
    "Nystroem": "hplus.features",
    "Oldest": "hplus.streaming.budgets",
    "Paper": "hplus.positivity",
    "Periodic": "hplus.kernels",
    "Poisson": "hplus.losses",
    "PoissonLog": "hplus.losses",
    "Polygon": "hplus.windows",
    "Polygons": "hplus.windows",
    "Polynomial": "hplus.kernels",
    "Quantile": "hplus.losses",
    "QuantilesRegressor": "hplus.estimators.intervals",
    "QuantityStudy": "hplus.studies.quantity_study",
    "RandomFourier": "hplus.features",
    "RateRatio": "hplus.rates.ratio",
    "RationalQuadratic": "hplus.kernels",
    "Refit": "hplus.streaming.methods",
    "RootStep": "hplus.streaming.steps",
    "Scalar": "hplus.kernels",
    "SecondOrder": "hplus.streaming.methods",
    "SeparableIntensity": "hplus.estimators.separable",
    "Smallest": "hplus.streaming.budgets",
    "SoSRegressor": "hplus.estimators.regression",
    "Statistic": "hplus.rates.statistic",
    "StreamStudy": "hplus.studies.streams",
    "StreamingClassifier": "hplus.streaming.classification",
    "StreamingIntensity": "hplus.streaming.intensity",
    "StreamingRegressor": "hplus.streaming.regression",
    "SumOfSquares": "hplus.positivity",
    "double_integral": "hplus.kernels.integrals",
    "is_psd": "hplus.kernels",
    "load": "hplus.storage",
    "mean_embedding": "hplus.kernels.integrals",
    "product_integral": "hplus.kernels.integrals",
    "progress": "hplus._progress",
    "save": "hplus.storage",
}
"""The module of each public name, imported when the name is first used."""

if not TYPE_CHECKING:  # type checkers read the imports above, and would accept any name here
    __all__ = list(_MODULES)

    def __getattr__(name: str) -> Any:
        """A public name or a module of the package, imported on first use."""
        if name in _MODULES:
            found = getattr(import_module(_MODULES[name]), name)
        elif not name.startswith("__") and find_spec(f"{__name__}.{name}"):
            found = import_module(f"{__name__}.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
