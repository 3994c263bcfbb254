"""How a rate was fitted and how to fit it again, in lines of a label and a text."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import final

from hplus._values import Value, value
from hplus.estimators.intensity import Intensity
from hplus.estimators.separable import SeparableIntensity
from hplus.rates.prior import SumOfFields
from hplus.rates.stacked_rate import StackedRate
from hplus.studies.event_facts import (
    is_constant,
    model_parts,
    positions_words,
    resolution_words,
    time_step,
    weights_words,
)
from hplus.studies.event_study import EventStudy
from hplus.studies.events import Reading
from hplus.studies.excitation_study import ExcitationStudy
from hplus.wording import (
    count,
    counted,
    left_out_words,
    listed,
    percent,
    quantity,
    rounded,
    scales_words,
    sentence,
)

MODELS = {
    "auto": "A smooth random function and trees that divide the window at every scale, weighted by "
    "how well they predict parts of the events that were held out.",
    "tree": "Trees that divide the window into ever smaller cells, at random offsets; each cell "
    "holds as large a share of the events as its surroundings and its own events suggest.",
    "exp": "The logarithm of the rate is a smooth random function; the fit is its most probable "
    "value.",
    "sos": "The rate is a sum of squares of smooth functions.",
    "square": "The rate is the square of a smooth function.",
}


@final
@value
class Fact(Value):
    """A label, a text and a remark."""

    label: str
    text: str
    remark: str = ""


def how_fitted(study: EventStudy) -> tuple[Fact, ...]:
    """Model, scales, grid, certificate, rows."""
    model = study.model_
    kind = getattr(model, "model", "exp")
    if kind == "auto" and all(_is_smooth(part) for part in model_parts(model).values()):
        kind = "exp"
    facts = [Fact("Model", MODELS[kind], "The rate cannot be negative.")]
    if isinstance(model, SeparableIntensity):
        facts.append(place_and_time(model))
    for of, part in model_parts(model).items():
        name, step = f", {of}" if of else "", time_step(study.frame, of)
        facts += [*_weights(part, name, step), *_smooth(part, name)]
    facts.append(rows_fact(study.reading_))
    seconds = study.made_with_.get("seconds")
    if seconds is not None:
        facts.append(Fact("Duration", f"{quantity(float(seconds), 's')} to read and fit"))
    return tuple(facts)


def place_and_time(model: SeparableIntensity) -> Fact:
    """How places and times go together; in files of earlier versions, the map does not change."""
    text = "fitted separately"
    remark = "The rate is their product, adjusted for how the map changes with time."
    if getattr(model, "map_by_time_", None) is None:
        text, remark = f"{text}; the rate is their product", "The map is the same at all times."
    return Fact("Place and time", text, remark)


def _is_smooth(model: Intensity) -> bool:
    """Have trees no weight? Files of 0.1.0 know of none."""
    return getattr(model, "weights_", {"exp": 1.0}).keys() == {"exp"}


def _weights(model: Intensity, name: str, step: float) -> list[Fact]:
    """The models that have weight, and what the map stops at; `step` is that of rounded times."""
    found = {
        f"Weights{name}": (weights_words(model), ""),
        f"Resolution{name}": (resolution_words(model, step), positions_words(model)),
    }
    return [Fact(label, text, sentence(remark)) for label, (text, remark) in found.items() if text]


def _smooth(model: Intensity, name: str) -> list[Fact]:
    """Scales, grid and certificate of the smooth part, if it has any weight."""
    if getattr(model, "weights_", {}).keys() == {"tree"} or is_constant(model):
        return []
    return [*_prior(model, name), _grid(model, name), _certificate(model, name)]


def _prior(model: Intensity, name: str) -> list[Fact]:
    """The scales over which log rates vary, in the units of the axes."""
    prior = model.kernel_
    if not isinstance(prior, SumOfFields):
        return [Fact(f"Kernel{name}", str(prior), f"Penalty {rounded(float(model.penalty_))}.")]
    facts = [
        Fact(
            "Finer scale" if i else f"Scale{name}",
            scales_words(field.scales, model.window.axis_units),
            f"Rates vary by a factor of about {rounded(math.exp(field.deviation), 2)} over such "
            "distances.",
        )
        for i, field in enumerate(prior.fields)
    ]
    if len(model.mixture_) > 1:
        weight = max(weight for weight, _ in model.mixture_)
        text = f"{len(model.mixture_)} models, the leading one with {percent(weight)} of the weight"
        facts.append(Fact("Average of", text))
    return facts


def _grid(model: Intensity, name: str) -> Fact:
    rate = model.rate_.smooth if isinstance(model.rate_, StackedRate) else model.rate_
    text = f"{' × '.join(count(n) for n in rate.on_grid.grid.shape)} nodes"
    error = float(getattr(model, "quadrature_error_", math.nan))
    moved = f"The last refinement moved {percent(error)} of the expected events."
    return Fact(f"Grid{name}", text, moved if math.isfinite(error) else "")


def _certificate(model: Intensity, name: str) -> Fact:
    """How far the fit can be from the best, computed by code that is not the solver's."""
    solution = model.solution_
    gap = rounded(max(float(solution.relative_gap), 0.0), 1)
    remark = f"After {counted(solution.iterations, 'iteration')}. {solution.status.value}"
    return Fact(f"Gap{name}", f"certified to be within {gap} of the best objective", remark)


def rows_fact(reading: Reading) -> Fact:
    """How many rows were read and used, and why others were dropped or left out on purpose."""
    lost = listed([f"{count(n)} {reason}" for reason, n in reading.dropped.items()])
    apart = left_out_words(reading.left_out)
    text = f"{count(reading.rows)} read, {count(reading.kept)} used"
    remarks = [f"Dropped: {lost}." * bool(lost), f"Left out: {apart}." * bool(apart)]
    return Fact("Rows", text, " ".join(filter(None, remarks)) or "No row was dropped.")


def how_to_reproduce(study: EventStudy | ExcitationStudy) -> tuple[Fact, ...]:
    """File, versions and random seed: what is needed to fit the same model again."""
    made = study.made_with_
    versions = [f"{name} {made[name]}" for name in ("hplus", "numpy", "python") if name in made]
    fitted = str(made.get("made", "")).replace("T", " ").replace("+00:00", " UTC")
    facts = {
        "Data": file_name(study),
        "Versions": listed(versions) if versions else "",
        "Random seed": str(made.get("seed", "")),
        "Fitted": fitted,
    }
    return tuple(Fact(label, text) for label, text in facts.items() if text)


def file_name(study: EventStudy | ExcitationStudy) -> str:
    """The name of the file that was read, without its folder."""
    return PurePath(study.reading_.file).name
