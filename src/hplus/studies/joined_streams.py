"""Streams joined exactly: those of parts of the events, or one and the events of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sklearn.base import clone

from hplus.files.tables import TableLike
from hplus.streaming.copies import copied, joined
from hplus.studies.snapshots import differences
from hplus.studies.spans import Amount
from hplus.studies.stream_facts import left_out_of
from hplus.studies.streams import StreamStudy


def merge_streams(studies: Sequence[StreamStudy]) -> StreamStudy:
    """The stream of the events of all streams, which must have the same settings.

    Exposures are not added: the parts are events of one observation, such as those of different
    regions, and the longest of their exposures is that of all.
    """
    first = studies[0]
    for study in studies:
        _check_joinable(study)
        if differ := differences(first, study):
            raise ValueError(f"streams must have the same settings to be merged, got {differ[0]}.")
    zones = {study.offsets_ for study in studies if study.offsets_}
    if len(zones) > 1:
        raise ValueError("streams must all have times with a UTC offset or all without, got both.")
    found: StreamStudy = clone(first).begin()
    found.exposure = _longest([study.exposure for study in studies])
    learned = [study.model_ for study in studies if study.events_]
    found.model_ = joined(learned) if learned else found.model_
    found.events_ = sum(study.events_ for study in studies)
    found.lines_ = sum(study.lines_ for study in studies)
    found.offset_ = sum(study.offset_ for study in studies)
    found.dropped_ = dict(sum((Counter(study.dropped_) for study in studies), Counter()))
    found.left_out_ = dict(sum((Counter(left_out_of(study)) for study in studies), Counter()))
    found.latest_ = max(study.latest_ for study in studies)
    found.fingerprint_ = sum(study.fingerprint_ for study in studies) % 2**64
    found.kind_, found.offsets_ = "json", next(iter(zones), "")
    return found


def update_stream(study: StreamStudy, source: TableLike) -> StreamStudy:
    """The stream with the events of a file or table added to it."""
    _check_joinable(study)
    found: StreamStudy = clone(study).begin()
    for name, part in vars(study).items():
        if name.endswith("_") and name != "posted_":  # who posts goes on with the other one
            setattr(found, name, dict(part) if isinstance(part, dict) else part)
    found.exposure, found.model_ = study.exposure, copied(study.model_)
    return found.partial_fit(source)


def _check_joinable(study: StreamStudy) -> None:
    if not study.by_trees:
        raise ValueError(
            f'streams can be merged and updated if method="tree", got {study.method!s:.40}.'
        )
    if study.forget is not None and not study.times.fades:
        raise ValueError(
            f"streams that forget by the number of events cannot be merged or updated, got forget="
            f"{study.forget}: their events have no common order."
        )


def _longest(exposures: Sequence[Amount | None]) -> Amount | None:
    known = [exposure for exposure in exposures if exposure is not None]
    if len({exposure.unit for exposure in known}) > 1:
        raise ValueError(f"exposures must have one unit, got {', '.join(map(str, known))}.")
    return max(known, key=lambda exposure: exposure.amount, default=None)
