"""Studies of repeated trials: how many there were and how their counts vary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Floats
from hplus.rates.trial_variation import TrialVariation, learn_trial_variation
from hplus.studies.frames import Frame
from hplus.studies.outlooks import Occurrences
from hplus.studies.spans import SECONDS, Amount
from hplus.studies.trial_names import trial_noun

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy


def trial_exposure(frame: Frame, events: Occurrences, given: Amount | None) -> Amount:
    """How many trials there were: those with events, or more if that is given."""
    many = float(len(events.cells["trials"].statistic().codes))
    if given is None:
        return Amount(many, trial_noun(frame.trial))
    if given.unit in SECONDS or given.amount < many:
        raise ValueError(
            f"exposure must be the number of trials, those without events too, and at least the "
            f"{many:g} that column {frame.trial!r} names, got {given}."
        )
    return given if given.unit else Amount(given.amount, trial_noun(frame.trial))


def learn_trials(frame: Frame, events: Occurrences, exposure: Amount) -> TrialVariation | None:
    """How counts vary from trial to trial; None without trials, or with too few of them."""
    if not frame.trial:
        return None
    counts = events.cells["trials"].statistic().counts
    return learn_trial_variation(counts, exposure.amount, events.both)


def trial_factors(study: EventStudy, exposures: Floats) -> Floats:
    """Equally likely factors of mean counts for exposures (p,), that is, trials to come: (p, k)."""
    trials: TrialVariation | None = getattr(study, "trials_", None)
    if trials is None:
        return np.ones((len(exposures), 1))
    return np.array([trials.factors(float(many)) for many in exposures])
