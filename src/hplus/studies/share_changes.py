"""The place whose share of all events has changed most, and in words what that means."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hplus.rates.separable import SeparableRate
from hplus.storage.files import Json
from hplus.studies.event_facts import is_constant, model_parts
from hplus.studies.event_weights import counted_noun
from hplus.studies.spans import moment
from hplus.wording import listed, percent, rounded

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy

LIKELY, MIN_FACTOR, MIN_MOVED = 0.5, 1.5, 0.005
"""A place is told of from this chance of a change on, and if its share has changed by this factor
and by this share of all events."""


class ShareChange(NamedTuple):
    """A part of the window by the user's columns, its shares, and when the present one began.

    `share` is that of the whole observation period.
    """

    place: dict[str, tuple[float, float]]
    share: float
    present: float
    since: str


def share_change(study: EventStudy) -> ShareChange | None:
    """The part whose share has changed most; None if none is likely to have changed."""
    frame, rate, outlook = study.frame, study.model_.rate_, getattr(study, "outlook_", None)
    if outlook is None or frame.region is None or not isinstance(rate, SeparableRate):
        return None
    recent = outlook.recent
    if recent is None:
        return None
    shares, present = recent.means(frame.region, rate.place)
    factor = np.maximum(present, shares) / np.maximum(np.minimum(present, shares), 1e-300)
    moved = np.abs(present - shares)
    told = (recent.chances >= LIKELY) & (factor >= MIN_FACTOR) & (moved >= MIN_MOVED)
    if not told.any():
        return None
    most = int(np.where(told, moved, 0.0).argmax())
    ends = np.sort(frame.own(np.stack([recent.lows[most], recent.highs[most]])), axis=0)
    place = {c: (float(a), float(b)) for c, a, b in zip(frame.columns, *ends, strict=True)}
    since = moment(outlook.changed)[:16]
    return ShareChange(place, float(shares[most]), float(present[most]), since)


def change_facts(study: EventStudy) -> Json | None:
    """The change as plain data with a sentence; None if there is none."""
    found = share_change(study)
    if found is None:
        return None
    where = listed([f"{c} {rounded(a, 6)} to {rounded(b, 6)}" for c, (a, b) in found.place.items()])
    # a constant map says nothing about shares
    constant = is_constant(model_parts(study.model_)["places"])
    before = "" if constant else f", compared with {percent(found.share)} in the whole period"
    words = (
        f"since {found.since}, about {percent(found.present)} of the {counted_noun(study.frame)} "
        f"have been at {where}{before}; counts to come follow the present shares, and the map is "
        f"{'constant' if constant else 'that of the whole period'}"
    )
    return found._asdict() | {"words": words}
