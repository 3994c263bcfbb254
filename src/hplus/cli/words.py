"""Options as values, and values as words."""

from __future__ import annotations

import platform
import shlex
import sys
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from hplus import __version__
from hplus.studies.spans import Amount, moment

if TYPE_CHECKING:
    from hplus.estimators.intensity import Intensity
    from hplus.studies.expect import Expected
    from hplus.studies.frames import Frame
    from hplus.studies.study import EventStudy
    from hplus.windows import Window


def names_option(ctx: Any, param: Any, text: str | None) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def numbers_option(ctx: Any, param: Any, text: str | None) -> tuple[float, ...] | None:
    """Numbers between commas."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"must be numbers between commas, got {text!r}.") from None


def amount_option(ctx: Any, param: Any, text: str | None) -> Amount | None:
    """An amount such as 365d."""
    if text is None:
        return None
    try:
        return Amount.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def shape_option(ctx: Any, param: Any, text: str | None) -> tuple[int, ...] | None:
    """Numbers of cells such as 20x20."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise click.BadParameter(f"must be such as 20x20, got {text!r}.") from None


def count(n: float) -> str:
    """A number with its thousands apart."""
    return f"{n:,.0f}"


def six_digits(x: float) -> float:
    """A number without the digits that mean nothing."""
    return float(f"{x:.6g}")


def short(x: float) -> str:
    """A number with three digits that mean something."""
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def place_words(window: Window) -> str:
    """How large a window is."""
    from hplus.report.words import plural

    sides = np.subtract(*window.bounds()[::-1])
    sized = zip(sides, window.axis_units, strict=True)
    text = " x ".join(f"{short(s)} {plural(u, s)}".strip() for s, u in sized)
    box = window.box_bounds() is not None
    return text if box else f"polygons of {short(window.volume)} {window.volume_unit} in {text}"


def scales_words(study: EventStudy) -> list[str]:
    """The scales of the leading priors, the coarsest first; of places, then of times."""
    from hplus.estimators.separable import SeparableIntensity

    model = study.model_
    parts = [model.place_, model.time_] if isinstance(model, SeparableIntensity) else [model]
    return [words for part in parts for words in _scales(part)]


def _scales(model: Intensity) -> list[str]:
    from hplus.rates.prior import SumOfFields

    if not isinstance(model.kernel_, SumOfFields):
        return [str(model.kernel_)]
    found = []
    for field in model.kernel_.fields:
        numbers = (short(scale) for scale in field.scales)
        pairs = list(dict.fromkeys(zip(numbers, model.window.axis_units, strict=True)))
        found.append(" x ".join(f"{number} {unit}".strip() for number, unit in pairs))
    return found


def time_words(frame: Frame) -> str | None:
    """From when to when events were watched."""
    clock = frame.clock
    if clock is None:
        return None
    text = f"{moment(clock.start)} to {moment(clock.end)}"
    if not clock.cycle:
        return text
    step = {3600.0: "an hour", 86_400.0: "its day"}.get(clock.spread, f"{clock.spread / 60:g} min")
    rounded = f"; times are rounded, so each is spread over {step}" if clock.spread else ""
    return f"{text}, as hours of the {clock.cycle}{rounded}"


def facts(study: EventStudy) -> dict[str, Any]:
    """What a fit found, as plain data."""
    from hplus.rates.by_region import rate_unit

    held, reading, model = study.holdout_, study.reading_, study.model_
    return {
        "file": reading.file,
        "rows": reading.rows,
        "events": reading.kept,
        "dropped": reading.dropped,
        "window": place_words(study.frame.window),
        "volume": study.frame.window.volume,
        "unit": rate_unit(study.frame.window),
        "time": time_words(study.frame),
        "exposure": {"amount": study.exposure_.amount, "unit": study.exposure_.unit},
        "expected": float(model.expected_count(study.frame.window)),
        "scales": scales_words(study),
        "peak": study.frame.describe(model.peak()[0])[0] | {"rate": model.peak()[1]},
        "gap": model.solution_.relative_gap,
        "holdout": None
        if held is None
        else {
            "events": held.events,
            "gain": held.gain,
            "gain_error": held.gain_error,
            "kde_gain": held.kde_gain,
            "over_kde": held.over_kde,
            "over_kde_error": held.over_kde_error,
            "faults": list(held.check.faults),
        },
        "seconds": study.made_with_.get("seconds"),
    }


def window_words(found: dict[str, Any]) -> dict[str, str]:
    """The same as a short table for people."""
    held, peak, exposure = found["holdout"], dict(found["peak"]), Amount(**found["exposure"])
    per = f" a {exposure.unit}" if exposure.unit else ""
    rate = peak.pop("rate")
    where = ", ".join(f"{name} {place}" for name, place in peak.items())
    unit = found["unit"].removeprefix("1/") or "unit"
    table = {
        "events": f"{count(found['events'])} of {count(found['rows'])} rows in {found['file']}",
        "window": found["window"],
        "watched": found["time"] or (str(exposure) if exposure.unit else ""),
        "expected": f"{short(found['expected'])} events{per}",
        "busiest at": f"{where}: {short(rate)} per {unit}{per}",
        "scales": " and ".join(found["scales"]),
    }
    if held is None:
        table["held out"] = "nothing: too few events, or --holdout 0"
    else:
        table["over constant"] = gain_words(held["gain"], held["gain_error"], held["events"])
        table["over KDE"] = gain_words(held["over_kde"], held["over_kde_error"], held["events"])
    if held is not None and held["faults"]:
        table["does it fit?"] = (
            f"not everywhere, say {' and '.join(held['faults'])} on unseen events"
        )
    if found["seconds"] is not None:
        table["seconds"] = f"{found['seconds']:.1f}"
    return {name: said for name, said in table.items() if said}


def count_row(part: Expected) -> dict[str, Any]:
    """An expected count as a row of a table."""
    edges = part.region.edges.items()
    return {
        "region": part.region.name,
        **{name: float(f"{v:.8g}") if isinstance(v, float) else v for name, v in edges},
        "expected": six_digits(part.expected),
        "low": int(part.low),
        "high": int(part.high),
    }


def made_with(began: float, seed: int, command: str | None = None) -> dict[str, Any]:
    """How a model was made, for the record; `began` is a reading of perf_counter."""
    return {
        "command": command or shlex.join(["hplus", *sys.argv[1:]]),
        "hplus": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "seconds": round(perf_counter() - began, 2),
        "seed": seed,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def gain_words(gain: float, error: float, events: int) -> str:
    """A gain in nats in words."""
    times = f"{np.exp(gain):.2f} x as likely" if gain < 5 else "far more likely"
    return f"{gain:+.3f} ± {error:.3f} nats: {count(events)} unseen events {times}"
