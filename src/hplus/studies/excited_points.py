"""The conditional rate of a study at the rows of a file."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hplus._checks import Bools, Floats
from hplus.files.rows import Chunk
from hplus.files.times import MAX_SECONDS, Zone

if TYPE_CHECKING:
    from hplus.studies.excitation_study import ExcitationStudy


class ConditionalRates(NamedTuple):
    """Which rows can be used, and for each of these the rate and its background, (n,) each.

    The others are `lost`, by reason.
    """

    rows: Bools
    rates: Floats
    background: Floats
    zone: Zone
    lost: Counter[str]


def conditional_rates(study: ExcitationStudy, chunk: Chunk, zone: Zone) -> ConditionalRates:
    """The rate of all types together, given the events before that the model knows."""
    frame, model = study.frame, study.model_
    assert frame.clock is not None
    late = frame.replace(clock=frame.clock.replace(end=MAX_SECONDS))
    found = late.points(chunk, zone)
    times, places = frame.clock.axis(found.seconds), found.X[:, :-1]
    X, kinds = np.column_stack([places, times]), range(len(model.types_))
    own = np.sum([model.background_.at(times, places, kind) for kind in kinds], axis=0)
    lost = found.dropped + found.left_out
    return ConditionalRates(found.rows, model.predict(X), own, found.zone, lost)
