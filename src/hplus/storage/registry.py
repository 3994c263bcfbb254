"""The classes that a model file may name: as text, so that loading imports only what a file needs.

Nothing else is ever imported or built. To move a class, change its line in MODULES; to rename a
class or a field, add the old name to FORMER_NAMES or FORMER_FIELDS, and if a name now means another
class, its former fields to FORMER_CONTENTS: old files are still read, and new ones are written with
the new name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar

FAMILIES = {
    "kernels": "hplus.kernels:KERNELS",
    "windows": "hplus.windows:WINDOWS",
    "losses": "hplus.losses:LOSS_CLASSES",
    "features": "hplus.features:FEATURES",
    "cones": "hplus.positivity:CONES",
}
"""Where the list of each family of values is.

A file calls them kernels.Product and windows.Product: a class name may occur in several families.
"""

MODULES = {
    "hplus.estimators.classifier": ("KernelClassifier",),
    "hplus.estimators.density": ("Density",),
    "hplus.estimators.forecast": ("Forecast",),
    "hplus.estimators.intensity": ("Intensity",),
    "hplus.estimators.intervals": ("HeteroscedasticRegressor", "QuantilesRegressor"),
    "hplus.estimators.machines": ("KernelRegressor",),
    "hplus.estimators.regression": ("SoSRegressor",),
    "hplus.estimators.self_exciting": ("SelfExciting",),
    "hplus.estimators.separable": ("SeparableIntensity",),
    "hplus.evaluation.dispersion": ("CountDispersion",),
    "hplus.rates.gaps": ("Gaps", "Neighbours"),
    "hplus.evaluation.verdicts": ("Check",),
    "hplus.evaluation.lags": ("LagExcess",),
    "hplus.evaluation.near_repeats": ("NearRepeats",),
    "hplus.evaluation.residuals": ("Calibration", "Quadrats", "Thinned"),
    "hplus.evaluation.rescaling": ("Rescaling",),
    "hplus.evaluation.time_order": ("TimeOrder",),
    "hplus.grids.tensor": ("TensorGrid",),
    "hplus.positivity.exp": ("GridFunction",),
    "hplus.positivity.sos": ("SumOfSquares",),
    "hplus.rates.binned": ("BinnedStatistic",),
    "hplus.rates.excitation.background": ("Background",),
    "hplus.rates.excitation.catalogue": ("Catalogue",),
    "hplus.rates.excitation.drift": ("Drift",),
    "hplus.rates.excitation.excited_rate": ("ExcitedRate",),
    "hplus.rates.excitation.factor_law": ("FactorLaw",),
    "hplus.rates.excitation.mark_effects": ("MarkEffects", "MarkLaw"),
    "hplus.rates.excitation.trigger": ("Trigger",),
    "hplus.rates.forecasts.cycle_factor": ("CycleGain", "Cycles"),
    "hplus.rates.forecasts.forecast_rate": ("Dispersion", "ForecastRate"),
    "hplus.rates.grid_rate": ("GridRate",),
    "hplus.rates.prior": ("Field", "KernelPrior", "SumOfFields"),
    "hplus.rates.local_dispersion": ("LocalDispersion",),
    "hplus.rates.map_by_time": ("MapByTime",),
    "hplus.rates.positions": ("Positions",),
    "hplus.rates.recent_shares": ("RecentShares",),
    "hplus.rates.separable": ("SeparableRate",),
    "hplus.rates.squares_rate": ("FactorPosterior", "SquaresRate"),
    "hplus.rates.stacked_rate": ("StackedRate",),
    "hplus.rates.statistic": ("Statistic",),
    "hplus.rates.trees.concentrations": ("Clustering",),
    "hplus.rates.trial_variation": ("TrialVariation",),
    "hplus.rates.trees.spectrum": ("ScaleSpectrum",),
    "hplus.rates.trees.tree_base": ("TreeBase",),
    "hplus.rates.trees.tree_rate": ("TreeRate",),
    "hplus.solvers.result": ("SolverResult", "Status"),
    "hplus.space": ("Function",),
    "hplus.streaming.budgets": (
        "DoublyStochastic", "Forgetron", "KOMP", "Oldest", "Smallest", "Unlimited",
    ),
    "hplus.streaming.classification": ("StreamingClassifier",),
    "hplus.streaming.intensity": ("StreamingIntensity",),
    "hplus.streaming.links": ("Identity", "Log"),
    "hplus.streaming.methods": ("PMD", "Refit", "SPPPOT", "SecondOrder", "Tree"),
    "hplus.streaming.regression": ("StreamingRegressor",),
    "hplus.streaming.steps": ("FixedStep", "InverseStep", "RootStep"),
    "hplus.studies.encoding": ("Column",),
    "hplus.studies.events": ("Reading",),
    "hplus.studies.frames": ("Frame",),
    "hplus.studies.grouped_study": ("GroupedStudy",),
    "hplus.studies.outlooks": ("Outlook",),
    "hplus.studies.quantity_study": ("QuantityStudy",),
    "hplus.studies.ratio_intervals": ("Ratios",),
    "hplus.studies.spans": ("Amount", "Clock"),
    "hplus.studies.streams": ("StreamStudy",),
    "hplus.studies.event_summary": ("EventSummary", "SampleRows"),
    "hplus.studies.event_study": ("EventStudy",),
    "hplus.studies.excitation_holdouts": ("ExcitationHoldout",),
    "hplus.studies.excitation_study": ("ExcitationStudy",),
    "hplus.studies.holdouts": ("Holdout",),
    "hplus.studies.factor_trials": ("JudgedPattern",),
    "hplus.studies.map_trials": ("JudgedMap",),
    "hplus.files.conditions": ("Condition",),
    "hplus.files.places": ("EqualArea",),
}  # fmt: skip
"""The classes of other models and values, by the module that defines them."""

SAVED_VALUES = ("BinnedStatistic", "EventSummary", "Statistic")
"""Values that a file may hold by themselves, without a model."""

QUICK_MODULES = (
    "hplus.kernels", "hplus.windows", "hplus.losses", "hplus.features", "hplus.files.conditions",
    "hplus.files.places",
    "hplus.streaming.budgets", "hplus.streaming.links", "hplus.streaming.methods",
    "hplus.streaming.steps", "hplus.studies.frames", "hplus.studies.spans",
)  # fmt: skip
"""Modules of values that are imported in less than half a second."""

FORMER_NAMES = {"Given": "KernelPrior", "Texture": "SumOfFields"}
"""What files of earlier versions call a class, and what it is called now."""

FORMER_FIELDS: dict[str, dict[str, str]] = {}
"""By the present name of a class: what files of earlier versions call a field, and its name now.

Fields are those of a value, and the parameters and fitted attributes of an estimator.
"""

FORMER_CONTENTS: dict[tuple[str, tuple[str, ...]], str] = {
    ("Statistic", ("counts", "events", "window")): "BinnedStatistic"
}
"""By a name and its fields in files of earlier versions: the class that holds them now."""

MODULE_OF = {name: module for module, names in MODULES.items() for name in names}

OWN: dict[str, type] = {}
"""Classes that were registered with `storable`, by name."""

T = TypeVar("T")


def storable(cls: type[T]) -> type[T]:
    """Register a class of your own, so that models with such objects can be saved and loaded.

    It must be an estimator, a frozen dataclass or an Enum.
    """
    if not _can_be_stored(cls):
        raise TypeError(f"cls must be an estimator, a frozen dataclass or an Enum, got {cls!r}.")
    name, place = cls.__name__, _place(cls)
    known = f"{MODULE_OF[name]}.{name}" if name in MODULE_OF else _place(OWN.get(name, cls))
    if place != known:  # equal if a module is loaded again and defines its classes again
        raise ValueError(f"cls must have a unique name, got {place}: {known} has the same name.")
    if name not in MODULE_OF:
        OWN[name] = cls
    return cls


def _can_be_stored(cls: type) -> bool:
    params = getattr(cls, "__dataclass_params__", None)
    if (params and params.frozen) or issubclass(cls, Enum):
        return True
    from sklearn.base import BaseEstimator

    return issubclass(cls, BaseEstimator)


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def find_class(name: str) -> Any:
    """The class that a file calls `name`, imported if need be; a KeyError if there is none."""
    name = present_name(name)
    if name in OWN:
        return OWN[name]
    family, dot, member = name.partition(".")
    if dot:
        return _family(family)[member]
    return getattr(import_module(MODULE_OF[name]), name)


class Unbuilt(SimpleNamespace):
    """A stored object whose class is not imported: its fields are attributes."""

    def __class_getitem__(cls, member: str) -> str:
        return member  # of an Enum


def quick_class(name: str) -> Any:
    """The class that a file calls `name` if its module is imported quickly, else an `Unbuilt`."""
    name = present_name(name)
    family, dot, member = name.partition(".")
    module = FAMILIES[family].partition(":")[0] if dot else MODULE_OF.get(name, "")
    return find_class(name) if module in QUICK_MODULES else type(member or name, (Unbuilt,), {})


def present_name(name: str) -> str:
    """The present name of the class that a file calls `name`."""
    return FORMER_NAMES.get(name, name)


def present_holder(name: str, fields: Iterable[str]) -> str:
    """The name of the class that now holds the fields that a file stores under `name`."""
    return FORMER_CONTENTS.get((name, tuple(sorted(fields))), name)


def present_fields(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the class that a file calls `name`, by their present names."""
    former = FORMER_FIELDS.get(present_name(name), {})
    return {former.get(field, field): part for field, part in fields.items()}


def registered_name(cls: type) -> str | None:
    """What a file calls a class; None if it cannot be stored."""
    return next((name for name in _candidates(cls) if find_class(name) is cls), None)


def _candidates(cls: type) -> Iterator[str]:
    name = cls.__name__
    if name in OWN or name in MODULE_OF:
        yield name
    for family, place in FAMILIES.items():
        module, _, _ = place.partition(":")
        if f"{cls.__module__}.".startswith(f"{module}.") and name in _family(family):
            yield f"{family}.{name}"


def stored_names() -> list[str]:
    """Every name that a new file may hold."""
    values = [f"{family}.{name}" for family in FAMILIES for name in _family(family)]
    return [*OWN, *MODULE_OF, *values]


@cache
def _family(name: str) -> dict[str, type]:
    module, _, attribute = FAMILIES[name].partition(":")
    listed = getattr(import_module(module), attribute)
    classes = listed.values() if isinstance(listed, Mapping) else listed
    return {cls.__name__: cls for cls in classes}
