"""How a rate was fitted, in lines of a label and a text."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any, final

from hplus._values import Value, value
from hplus.estimators.separable import SeparableIntensity
from hplus.rates.prior import Field, SumOfFields
from hplus.report.words import counted, percent, plural, quantity, rounded, sentence, whole

MODELS = {
    "exp": "The logarithm of the rate is a random smooth function, the most probable one is kept.",
    "sos": "The rate is a sum of squares of smooth functions.",
    "square": "The rate is the square of a smooth function.",
}


APART = "So the time of day or year follows the same curve at every place."


@final
@value
class Line(Value):
    """A label, what is said of it, and a remark."""

    label: str
    text: str
    remark: str = ""


def how_made(study: Any) -> tuple[Line, ...]:
    """Model, scales, grid, certificate, rows."""
    model = study.model_
    parts = {"": model}
    lines = [Line("Model", MODELS[getattr(model, "model", "exp")], "It cannot be negative.")]
    if isinstance(model, SeparableIntensity):
        parts = {" of places": model.place_, " of times": model.time_}
        lines.append(Line("Place and time", "learned apart, their product is the rate", APART))
    for name, part in parts.items():
        lines += [*_prior(part, name), _grid(part, name), _certificate(part, name)]
    lines.append(_rows(study.reading_))
    seconds = study.made_with_.get("seconds")
    if seconds is not None:
        lines.append(Line("Time", f"{quantity(float(seconds), 's')} to read and fit"))
    return tuple(lines)


def _prior(model: Any, name: str) -> list[Line]:
    """The scales over which log rates vary, in the units of the axes."""
    prior = model.kernel_
    if not isinstance(prior, SumOfFields):
        return [Line(f"Kernel{name}", str(prior), f"Penalty {rounded(float(model.penalty_))}.")]
    lines = [
        Line(
            "and finer" if i else f"Scales{name}",
            _scales(field, model.window.axis_units),
            f"Over such distances rates differ by a factor of about {_factor(field)}.",
        )
        for i, field in enumerate(prior.fields)
    ]
    count = len(model.mixture_)
    if count > 1:
        weight = max(weight for weight, _ in model.mixture_)
        text = f"{count} models, the leading one with {percent(weight)} of the weight"
        lines.append(Line("Average of", text))
    return lines


def _scales(field: Field, units: tuple[str, ...]) -> str:
    """Scales with their units, those of one unit together: "3.8 × 1.9 km and 27 h"."""
    groups: dict[str, list[str]] = {}
    for scale, unit in zip(field.scales, units, strict=True):
        groups.setdefault(unit, []).append(rounded(scale, 2))
    return sentence([f"{_once(texts)} {plural(unit)}".strip() for unit, texts in groups.items()])


def _once(texts: list[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else " × ".join(texts)


def _factor(field: Field) -> str:
    return rounded(math.exp(field.deviation), 2)


def _grid(model: Any, name: str) -> Line:
    grid = model.rate_.on_grid.grid
    text = f"{' × '.join(whole(n) for n in grid.shape)} nodes"
    error = float(getattr(model, "quadrature_error_", math.nan))
    remark = ""
    if math.isfinite(error):
        remark = f"Refining it last moved {percent(error)} of the expected events."
    return Line(f"Grid{name}", text, remark)


def _certificate(model: Any, name: str) -> Line:
    """What the fit promises, recomputed by code that is not the solver's."""
    solution = model.solution_
    gap = max(float(solution.relative_gap), 0.0)
    text = f"at most {rounded(gap, 1)} of the objective above the best, certified"
    remark = f"After {counted(solution.iterations, 'iteration')}. {solution.status.value}"
    return Line(f"Gap{name}", text, remark)


def _rows(reading: Any) -> Line:
    lost = [f"{whole(count)} {reason}" for reason, count in reading.dropped.items()]
    text = f"{whole(reading.rows)} read, {whole(reading.kept)} used"
    return Line("Rows", text, f"Dropped: {sentence(lost)}." if lost else "None was dropped.")


def reproduced(study: Any) -> tuple[Line, ...]:
    """File, versions and seed: what is needed to make the same model again."""
    made = study.made_with_
    versions = [f"{name} {made[name]}" for name in ("hplus", "numpy", "python") if name in made]
    found = [Line("Data", file_name(study))]
    if versions:
        found.append(Line("Versions", sentence(versions)))
    if "seed" in made:
        found.append(Line("Seed", str(made["seed"])))
    if "made" in made:
        found.append(Line("Fitted", str(made["made"]).replace("T", " ").replace("+00:00", " UTC")))
    return tuple(found)


def file_name(study: Any) -> str:
    """The name of the file that was read, without its folder."""
    return PurePath(study.reading_.file).name
