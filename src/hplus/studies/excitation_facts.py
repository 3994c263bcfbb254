"""What a study of events that trigger others found, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import gamma, vonmises

from hplus._checks import Floats
from hplus.estimators.self_exciting import NEAR_ONE, SelfExciting
from hplus.rates.excitation.bearings import bearings_of, directions_of
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.trigger import Trigger
from hplus.storage.files import Json
from hplus.studies.event_facts import period_words, selection_facts
from hplus.studies.followed_cycles import cycle_of_times
from hplus.studies.silences import silences_among
from hplus.studies.spans import moment
from hplus.studies.triggered_counts import clock_of, next_counts
from hplus.windows import Interval
from hplus.wording import (
    duration_words,
    lengths_words,
    nice_step,
    number,
    percent,
    rounded,
    times,
    window_words,
)

if TYPE_CHECKING:
    from hplus.studies.excitation_study import ExcitationStudy

HALF, TAIL = 0.5, 0.05

TABLE_POINTS = 4000
"""Points at which triggers are summed up."""

NEAR_LINE, LEAST_KAPPA = np.pi / 6.0, 1e-9
"""An angle that is near a line, and the least concentration of a von Mises law."""

ALMOST_NONE = 0.01
"""Numbers of triggered events below it are told as such."""

MARK_STEPS = 3.0
"""The step of marks by which productivity is told is about such a part of their range."""


def excitation_facts(study: ExcitationStudy) -> Json:
    """What a fit found."""
    model, frame, reading, held = study.model_, study.frame, study.reading_, study.holdout_
    return {
        "file": reading.file,
        "rows": reading.rows,
        "events": reading.kept - study.history_events_,
        "history": study.history_events_,
        "dropped": reading.dropped,
        **selection_facts(study.frame, reading),
        "window": window_words(frame.window),
        "time": period_words(frame),
        "branching": branching_facts(model),
        "background_share": float(model.background_shares().mean()),
        "delay": delay_facts(study),
        "distance": distance_facts(study),
        "directions": direction_facts(model),
        "productivity": productivity_facts(study),
        "variation": variation_facts(model),
        "types": type_facts(study),
        "cycle": cycle_facts(model),
        "followed_cycle": followed_facts(study),
        "silences": silences_among(model.history_.since(0.0).times, clock_of(study)),
        "holdout": None if held is None else held.get_params(),
        "holdout_share": study.holdout,
        "certificate": certificate_facts(model),
        "outlook": outlook_of(study),
        "seconds": study.made_with_.get("seconds"),
    }


def branching_facts(model: SelfExciting) -> Json:
    """How many events an event triggers directly, with a 90 % band."""
    low, high = model.branching_interval_
    return {
        "ratio": model.branching_ratio_,
        "low": low,
        "high": high,
        "triggers": float(mean_trigger(model.rate_).integral()[0, 0]),
        "near_one": bool(model.branching_ratio_ >= NEAR_ONE),
        "evidence": float(model.evidence_),
        "rival": model.rival_,
    }


def mean_trigger(rate: ExcitedRate) -> Trigger:
    """The trigger of an average event, of whatever type, of events of all types."""
    trigger, kinds = rate.average_trigger, np.array([len(law.marks) for law in rate.mark_laws])
    weights = np.einsum("s,stld->ld", kinds / kinds.sum(), trigger.weights)
    return trigger.replace(weights=weights[None, None])


def lag_shares(trigger: Trigger) -> tuple[Floats, Floats]:
    """Lags, and the share of triggered events that follow within each."""
    lags = np.append(0.0, np.geomspace(1e-3 * trigger.lags[0], trigger.lags[-1], TABLE_POINTS))
    return lags, _cumulative(lags, trigger.by_lag(lags))


def distance_shares(trigger: Trigger) -> tuple[Floats, Floats]:
    """Distances, and the share of triggered events within each."""
    far = trigger.distances[-1]
    r = np.append(0.0, np.geomspace(1e-3 * trigger.distances[0], far, TABLE_POINTS))
    around = 2.0 * np.pi * r if trigger.axes == 2 else 2.0
    return r, _cumulative(r, around * trigger.by_distance(r))


def _cumulative(x: Floats, density: Floats) -> Floats:
    """∫ of a density up to each x, by the trapezoidal rule, as a share of all."""
    total = np.append(0.0, np.cumsum(np.diff(x) * 0.5 * (density[1:] + density[:-1])))
    return total / total[-1] if total[-1] > 0.0 else total


def delay_facts(study: ExcitationStudy) -> Json:
    """Within what time half of the triggered events follow, and the longest lag."""
    trigger, unit = mean_trigger(study.model_.rate_), clock_of(study).unit
    lags, shares = lag_shares(trigger)
    half = float(np.interp(HALF, shares, lags))
    return {
        "half": half,
        "longest": float(trigger.lags[-1]),
        "unit": unit,
        "words": f"half of the triggered events follow within {duration_words(half, unit)}",
    }


def distance_facts(study: ExcitationStudy) -> Json | None:
    """Within what distance half of the triggered events happen; None without places."""
    trigger, region = mean_trigger(study.model_.rate_), study.frame.region
    if region is None:
        return None
    r, shares = distance_shares(trigger)
    half, unit = float(np.interp(HALF, shares, r)), region.axis_units[0]
    words = f"half of them within {lengths_words([float(f'{half:.2g}')], [unit])}"
    if study.mark and study.model_.effects_.growth > 0.0:
        words += f" of an event with {study.mark} {rounded(study.model_.effects_.center)}"
    return {"half": half, "longest": float(trigger.distances[-1]), "unit": unit, "words": words}


def direction_facts(model: SelfExciting) -> Json | None:
    """How much is triggered along the lines on which earlier events lie; None if directions do not
    matter.
    """
    if model.direction_strength_ == 0.0:
        return None
    trigger = mean_trigger(model.rate_)
    directions = directions_of(model.history_, model.effects_, trigger.distances)
    kappa = np.linalg.norm(bearings_of(directions, model.direction_strength_)[..., :2], axis=-1)
    masses = (trigger.lag_integrals @ trigger.weights[0, 0]) * trigger.distance_integrals
    # κ is of doubled angles
    near = vonmises.cdf(2.0 * NEAR_LINE, np.maximum(kappa, LEAST_KAPPA))
    share = float(np.mean(2.0 * near - 1.0, axis=0) @ masses / masses.sum())
    words = (
        f"{percent(share)} of what events trigger lies within 30° of the line on which earlier "
        "ones lie, instead of 33 %"
    )
    return {"strength": model.direction_strength_, "share": share, "words": words}


def productivity_facts(study: ExcitationStudy) -> Json | None:
    """How many times as many events a larger mark triggers; None without marks."""
    effects = study.model_.effects_
    if not study.mark or len(effects.knots) < 2:
        return None
    low, high = float(effects.knots[0]), float(effects.knots[-1])
    step = nice_step((high - low) / MARK_STEPS)
    slope = float(np.diff(np.log(effects.productivity(np.array([low, high]))))[0]) / (high - low)
    factor, farther = float(np.exp(step * slope)), float(np.exp(step * effects.growth))
    words = f"an event whose {study.mark} is {number(step)} larger triggers "
    words += f"{times(factor)} times as many"
    if study.frame.region is not None:
        words += f", {times(farther)} times as far"
    return {"step": step, "factor": factor, "reach": farther, "words": words}


def variation_facts(model: SelfExciting) -> Json | None:
    """How much events of one mark differ in how many they trigger; None if they do not."""
    law = model.factor_law_
    if not np.isfinite(law.least):
        return None
    low, high = gamma.ppf([TAIL, 1.0 - TAIL], law.shape) / law.shape
    least = "almost 0" if low < ALMOST_NONE else rounded(float(low), 1)
    words = (
        "similar events differ: of those expected to trigger 1 other, nine in ten have a true mean "
        f"between {least} and {rounded(float(high), 2)}"
    )
    return {"shape": law.shape, "low": float(low), "high": float(high), "words": words}


def type_facts(study: ExcitationStudy) -> dict[str, dict[str, float]] | None:
    """How many events of each type an event of each type triggers; None with one type."""
    model = study.model_
    if len(model.types_) < 2:
        return None
    names = [str(name) for name in model.types_]
    return {
        source: dict(zip(names, row.tolist(), strict=True))
        for source, row in zip(names, model.branching_matrix_, strict=True)
    }


def cycle_facts(model: SelfExciting) -> Json | None:
    """Whether the cycle asked for was kept, and why; None if none was asked for."""
    if not model.cycles_:
        return None
    (cycle,) = model.cycles_
    words = f"{cycle.name}: {'kept' if cycle.kept else 'left out'}, {cycle.reason}"
    if np.isfinite(cycle.gain):
        words += f" ({cycle.gain:+.3f} ± {cycle.error:.3f} nats per event)"
    return {"name": cycle.name, "kept": cycle.kept, "words": words}


def followed_facts(study: ExcitationStudy) -> Json | None:
    """The day or week that times follow although no cycle was asked for; None if they do not."""
    model, period = study.model_, clock_of(study).window
    if model.cycles_:
        return None
    assert isinstance(period, Interval)
    found = cycle_of_times(model.history_.since(period.low).times, period, float(model.origin))
    if found is None:
        return None
    words = (
        f"times follow the {found.name}, which can look like triggering "
        f"({found.gain:+.3f} ± {found.error:.3f} nats per event)"
    )
    return {"name": found.name, "gain": found.gain, "gain_error": found.error, "words": words}


def certificate_facts(model: SelfExciting) -> Json:
    """How far the weights can be from the best ones, in nats per event."""
    solution = model.solution_
    gap = max(float(solution.gap), 0.0) / max(model.total_, 1.0)
    return {
        "gap": gap,
        "smoothing_cost": float(model.smoothing_cost_),
        "words": (
            f"smoothing costs {rounded(float(model.smoothing_cost_), 2)} nats per event compared "
            "with the best weights without it, whose log-likelihood is certified to within "
            f"{rounded(gap, 1)}"
        ),
    }


def outlook_of(study: ExcitationStudy) -> list[Json]:
    """What follows the observation period; nothing if it cannot be simulated."""
    try:
        counts = next_counts(study)
    except OverflowError:
        return []
    return [
        {
            "next": name,
            "from": moment(period.start),
            "to": moment(period.end),
            **{key: getattr(part, key) for key in ("expected", "low", "high", "chance")},
        }
        for name, period, part in counts
    ]
