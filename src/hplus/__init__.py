"""hplus: learn functions that cannot be negative."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from hplus._progress import progress as progress
    from hplus.estimators.classifier import KernelClassifier as KernelClassifier
    from hplus.estimators.density import Density as Density
    from hplus.estimators.forecast import Forecast as Forecast
    from hplus.estimators.intensity import Intensity as Intensity
    from hplus.estimators.intervals import HeteroscedasticRegressor as HeteroscedasticRegressor
    from hplus.estimators.intervals import QuantilesRegressor as QuantilesRegressor
    from hplus.estimators.machines import KernelRegressor as KernelRegressor
    from hplus.estimators.regression import SoSRegressor as SoSRegressor
    from hplus.estimators.self_exciting import SelfExciting as SelfExciting
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
    from hplus.rates.trees.spectrum import ScaleSpectrum as ScaleSpectrum
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
    from hplus.streaming.methods import Tree as Tree
    from hplus.streaming.regression import StreamingRegressor as StreamingRegressor
    from hplus.streaming.steps import FixedStep as FixedStep
    from hplus.streaming.steps import InverseStep as InverseStep
    from hplus.streaming.steps import RootStep as RootStep
    from hplus.studies.event_study import EventStudy as EventStudy
    from hplus.studies.grouped_study import GroupedStudy as GroupedStudy
    from hplus.studies.plans import plan as plan
    from hplus.studies.quantity_study import QuantityStudy as QuantityStudy
    from hplus.studies.streams import StreamStudy as StreamStudy
    from hplus.windows import Box as Box
    from hplus.windows import Cycle as Cycle
    from hplus.windows import Interval as Interval
    from hplus.windows import Polygon as Polygon
    from hplus.windows import Polygons as Polygons

_NAMES = {
    "_progress": "progress",
    "estimators.density": "Density",
    "estimators.forecast": "Forecast",
    "estimators.intensity": "Intensity",
    "estimators.intervals": "HeteroscedasticRegressor QuantilesRegressor",
    "estimators.classifier": "KernelClassifier",
    "estimators.machines": "KernelRegressor",
    "estimators.regression": "SoSRegressor",
    "estimators.self_exciting": "SelfExciting",
    "estimators.separable": "SeparableIntensity",
    "features": "Nystroem RandomFourier",
    "kernels": (
        "Constant Custom Finite Gaussian Laplace Linear Matern32 Matern52 Nugget Periodic "
        "Polynomial RationalQuadratic Scalar is_psd"
    ),
    "kernels.integrals": "double_integral mean_embedding product_integral",
    "losses": "Huber Poisson PoissonLog Quantile",
    "positivity": "Diagonal Full Paper SumOfSquares",
    "rates.ratio": "RateRatio",
    "rates.statistic": "Statistic",
    "rates.trees.spectrum": "ScaleSpectrum",
    "space": "Function",
    "storage": "load save",
    "streaming.budgets": "DoublyStochastic Forgetron KOMP Oldest Smallest",
    "streaming.classification": "StreamingClassifier",
    "streaming.intensity": "StreamingIntensity",
    "streaming.links": "Log",
    "streaming.methods": "PMD Refit SPPPOT SecondOrder Tree",
    "streaming.regression": "StreamingRegressor",
    "streaming.steps": "FixedStep InverseStep RootStep",
    "studies.event_study": "EventStudy",
    "studies.grouped_study": "GroupedStudy",
    "studies.plans": "plan",
    "studies.quantity_study": "QuantityStudy",
    "studies.streams": "StreamStudy",
    "windows": "Box Cycle Interval Polygon Polygons",
}
"""The public names of each module, imported when they are first used."""

_PUBLIC = {name: f"hplus.{module}" for module, names in _NAMES.items() for name in names.split()}
_MODULES = dict(sorted(_PUBLIC.items()))

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
