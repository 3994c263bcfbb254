"""Prospects: how many events to expect next, and how much more counts vary than by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.mixed_poisson import mixed_poisson_quantile
from hplus.storage.files import Json
from hplus.studies.event_weights import weight_unit
from hplus.studies.expect import Expected, expect, whole
from hplus.studies.periods import Period, cut, in_days, natural_unit
from hplus.studies.share_changes import change_facts
from hplus.studies.silences import silence_facts
from hplus.studies.spans import SECONDS, Clock, moment
from hplus.studies.time_counts import is_forecast, time_counts
from hplus.wording import quantity

if TYPE_CHECKING:
    from hplus.rates.trial_variation import TrialVariation
    from hplus.studies.event_study import EventStudy

AHEAD = {
    "year": {"four weeks": 2_419_200.0, "year": SECONDS["year"], "five years": 157_788_000.0},
    "week": {"day": 86_400.0, "week": 604_800.0, "four weeks": 2_419_200.0},
    "day": {"hour": 3600.0, "day": 86_400.0, "week": 604_800.0},
    "h": {"ten minutes": 600.0, "hour": 3600.0, "six hours": 21_600.0},
    "min": {"ten seconds": 10.0, "minute": 60.0, "ten minutes": 600.0},
    "s": {"second": 1.0, "five seconds": 5.0, "ten seconds": 10.0},
}
"""By the unit that counts are told by: the times to come that are told, in seconds."""

MOST_SHOWN, SHARE_AHEAD = 60, 0.25
"""Blocks that were observed on a chart, at most, and how many come after them for each."""

SMALLEST_CELL = 1e-6
"""The smallest part of the window whose counts are told of."""


SHARE_OF_PART = 0.1
"""The share of the events in the part of the window whose counts from trial to trial are told."""


class Prospect(NamedTuple):
    """The count of a time to come: its name, such as "week", when it is, what is expected."""

    name: str
    period: Period
    expected: Expected


class Fan(NamedTuple):
    """Counts observed in blocks of time (m,), and quantiles (5, k) of those to come.

    `edges` (m + k + 1,) are the ends of all blocks in seconds since 1970.
    """

    unit: str
    edges: Floats
    observed: Floats
    quantiles: Floats


def prospects(study: EventStudy, level: float = 0.9) -> list[Prospect]:
    """What follows the observation period; nothing without a forecast."""
    clock = study.frame.clock
    if clock is None or not is_forecast(study):
        return []
    ahead = AHEAD[natural_unit(clock)]
    periods = [Period("", 1.0, clock.end, clock.end + seconds) for seconds in ahead.values()]
    found = expect(study, [whole(study.frame)], periods, level)
    return [Prospect(*each) for each in zip(ahead, periods, found, strict=True)]


def fan(study: EventStudy) -> Fan | None:
    """The last blocks of the observation period and those that follow; None without a forecast."""
    clock, outlook = study.frame.clock, getattr(study, "outlook_", None)
    if clock is None or outlook is None or not is_forecast(study):
        return None
    seen = outlook.blocks[-MOST_SHOWN:].astype(float)
    # those observed are of all exposure, those to come of one unit of it
    per = weight_unit(study)
    seen *= per / (1.0 if clock.cycle else study.exposure_.amount)
    unit, coming = natural_unit(clock), max(int(SHARE_AHEAD * len(seen)), 4)
    length = SECONDS[unit]
    blocks = cut(Period("", 1.0, clock.end, clock.end + coming * length), coming)
    draws = time_counts(study, blocks).draws / per
    quantiles = [per * mixed_poisson_quantile(draws, p) for p in (0.05, 0.25, 0.5, 0.75, 0.95)]
    edges = clock.end + length * np.arange(-len(seen), coming + 1)
    return Fan(unit, edges, seen, np.array(quantiles))


def variation_words(study: EventStudy) -> str:
    """How much more the next count varies than one of independent events; "" if not known."""
    clock, outlook = study.frame.clock, getattr(study, "outlook_", None)
    if clock is None or outlook is None or not is_forecast(study) or study.frame.weight:
        return ""
    name = _unit_name(clock)
    period = Period("", 1.0, clock.end, clock.end + SECONDS[natural_unit(clock)])
    draws = time_counts(study, [period]).draws[0]
    mean, excess = float(draws.mean()), float(draws.var() / draws.mean())
    said = (
        f"the count of the next {name} has {_times(1.0 + excess)} the variance of a Poisson count"
    )
    region = study.frame.region
    if outlook.local is None or region is None:
        return said
    share, words = _cell(region.volume, region.volume_unit, mean)
    days = in_days(period.seconds)
    local = float(outlook.local.excess(np.array([mean * share]), days, share)[0])
    return f"{said}; that of {words}, {_times_again(1.0 + excess * share + local)}"


def outlook_facts(study: EventStudy) -> Json | None:
    """The outlook of a study as plain data; None without times and trials."""
    clock, outlook = study.frame.clock, getattr(study, "outlook_", None)
    if clock is None or outlook is None:
        trials = getattr(study, "trials_", None)
        return None if trials is None else _next_trial(study, trials)
    found = [
        {
            "next": name,
            "from": moment(period.start),
            "to": moment(period.end),
            **{key: getattr(part, key) for key in ("expected", "low", "high")},
        }
        for name, period, part in prospects(study)
    ]
    return {
        "counts": found,
        "variation": variation_words(study),
        "change": change_facts(study),
        "silences": silence_facts(study),
        "reason": outlook.reason,
    }


def _next_trial(study: EventStudy, trials: TrialVariation) -> Json:
    """What to expect of one more trial."""
    unit = study.exposure_.unit
    (part,) = expect(study, [whole(study.frame)], Period(unit))
    mean, share = part.expected, SHARE_OF_PART
    index = 1.0 + trials.variance * mean
    said = f"the count of the next {unit} has {_times(index)} the variance of a Poisson count"
    if trials.local is not None:
        local = float(trials.local.excess(np.array([mean * share]), 1.0, share)[0])
        said += f"; that of a part with {100 * share:g} % of the events, "
        said += _times_again(1.0 + trials.variance * mean * share + local)
    count = {key: getattr(part, key) for key in ("expected", "low", "high")}
    return {"counts": [{"next": unit, **count}], "variation": said, "reason": ""}


def _unit_name(clock: Clock) -> str:
    unit = natural_unit(clock)
    return {"h": "hour", "min": "minute", "s": "second"}.get(unit, unit)


def _times(index: float) -> str:
    return f"{index:.1f} times" if index >= 1.05 else "about"


def _times_again(index: float) -> str:
    return _times(index) if index >= 1.05 else "about that of one"


def _cell(volume: float, unit: str, mean: float) -> tuple[float, str]:
    """The share of a part of the window with a count of about 1 to 10, and what part that is."""
    if unit and " " not in unit:
        size = 10.0 ** np.ceil(np.log10(max(volume / mean, SMALLEST_CELL * volume)))
        size = min(size, 10.0 ** np.floor(np.log10(volume)))
        return size / volume, f"an average {quantity(size, unit)}"
    share = 10.0 ** np.ceil(np.log10(max(1.0 / mean, SMALLEST_CELL)))
    share = min(share, 0.1)
    return share, f"a part with {100 * share:g} % of the events"
