"""The model, kernel and penalty of `Intensity`: which go together, and the priors they mean."""

from __future__ import annotations

from hplus._checks import check_choice, check_positive, shown
from hplus.estimators.base import check_kernel
from hplus.kernels import Kernel
from hplus.rates.judging import CRITERIA, Criterion
from hplus.rates.prior import KernelPrior, Mixture, SumOfFields, is_mixture
from hplus.rates.rate_models import Similar
from hplus.rates.selection import LearnPrior, Wanted

STATISTIC_MODELS = ("auto", "exp", "tree")
"""Models that are learned from a statistic of the events."""

SMOOTH_MODELS = ("auto", "exp")
"""Models with a smooth field, whose priors are learned."""

RATE_MODELS = (*STATISTIC_MODELS, "sos", "square")

CONSTANT = "constant"
"""The prior of a rate that does not vary."""

Given = Kernel | Mixture | Similar | str
"""A kernel, the `mixture_` of another fit, what was learned of similar events, or "auto"."""


def model_meant(model: str, kernel: Given, penalty: float | str) -> str:
    """The model, where "auto" stands for "exp" if anything about its prior is given."""
    given = is_mixture(kernel) or isinstance(kernel, Kernel) or not _is_auto(penalty)
    return "exp" if model == "auto" and given else model


def check_prior(model: str, kernel: Given, penalty: float | str, dimension: int) -> None:
    """An error unless model, kernel and penalty can go together on so many axes."""
    check_choice("model", model, RATE_MODELS)
    meant = model_meant(model, kernel, penalty)
    if is_mixture(kernel):
        _check_mixture(model, kernel, penalty, dimension)
    else:
        check_kernel(kernel)
    if model == "tree" and (isinstance(kernel, Kernel) or not _is_auto(penalty)):
        raise ValueError(
            'kernel and penalty must be "auto" with model="tree", which has no prior, got '
            f"{shown(kernel)} and {shown(penalty)}."
        )
    if isinstance(penalty, str):
        check_choice("penalty", penalty, CRITERIA if meant == "exp" else ("auto",))
        return
    check_positive("penalty", penalty)
    if meant == "exp" and not isinstance(kernel, Kernel):
        raise ValueError(
            f'penalty must be "auto", "evidence" or "thinning" with kernel="auto", got {penalty}: '
            "give a kernel too."
        )


def wanted_prior(kernel: Given, penalty: float | str, priors: Given = "auto") -> Wanted:
    """The priors that are given or already known, or what is to be learned of them."""
    for known in (kernel, priors):
        if is_mixture(known):
            return known
    if not isinstance(kernel, Kernel):
        return LearnPrior(criterion_of(penalty))
    if isinstance(penalty, str):
        return LearnPrior(criterion_of(penalty), kernel)
    return ((1.0, KernelPrior(kernel, float(penalty))),)


def criterion_of(penalty: float | str) -> Criterion:
    """How the parts of the prior that are not given are learned."""
    return next((name for name in CRITERIA if name == penalty), "auto")


def _is_auto(given: Given | float) -> bool:
    return isinstance(given, str) and given == "auto"


def _check_mixture(model: str, mixture: Mixture, penalty: float | str, dimension: int) -> None:
    """A mixture leaves nothing to learn, and belongs to a model and a number of axes."""
    if model not in ("auto", "exp") or not _is_auto(penalty):
        raise ValueError(
            'kernel may be the mixture_ of another fit only with model="exp" and penalty="auto", '
            f"got model={model!r} and penalty={penalty!r}."
        )
    _check_axes("kernel", mixture, dimension)


def check_known(priors: Given, dimension: int) -> None:
    """An error unless priors are "auto", "constant" or those of another fit on so many axes."""
    if is_mixture(priors):
        _check_axes("priors", priors, dimension)
    elif isinstance(priors, Similar):
        return
    elif not _is_auto(priors) and not (isinstance(priors, str) and priors == CONSTANT):
        raise TypeError(
            'priors must be "auto", "constant" or what learn_mixture found, got '
            f"{shown(priors)}: give a kernel to the estimator."
        )


def _check_axes(name: str, mixture: Mixture, dimension: int) -> None:
    for _, prior in mixture:
        if isinstance(prior, SumOfFields) and prior.dimension != dimension:
            raise ValueError(
                f"{name} must be the mixture_ of a fit with {dimension} axes, got one with "
                f"{prior.dimension}."
            )
