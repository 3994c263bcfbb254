"""Models joined exactly: those of parts of the events, or one and new events."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.base import clone

from hplus.files.tables import TableLike, as_table
from hplus.studies.event_study import EventStudy
from hplus.studies.event_summary import EventSummary, include
from hplus.studies.scans import scan_events


def merge_studies(studies: Sequence[EventStudy]) -> EventStudy:
    """The study of the events of all studies together, as if they had been fitted at once.

    They must have been fitted with the same arguments, and `updatable=True`. Exposures are not
    added: the parts are events of one observation, such as the files of different regions.
    """
    first = studies[0]
    for other in studies[1:]:
        mine, theirs = (_arguments(study) for study in (first, other))
        unlike = [name for name in mine if mine[name] != theirs[name]]
        if unlike:
            name = unlike[0]
            raise ValueError(
                f"models must be fitted with the same {name} to be merged, got "
                f"{mine[name]!s:.80} and {theirs[name]!s:.80}."
            )
    scan = first.new_scan()
    for study in studies:
        include(scan, summary_in(study))
    files = " and ".join(dict.fromkeys(study.reading_.file for study in studies))
    found: EventStudy = clone(first)
    return found.learn(scan, files if len(files) < 100 else f"{len(studies)} models")


def update_study(study: EventStudy, source: TableLike) -> EventStudy:
    """The study of its events and those of a file or table, as if fitted at once."""
    table = as_table(source, skip_bad=study.skip_bad)
    scan = study.new_scan()
    include(scan, summary_in(study))
    scan_events(table, scan, study.n_jobs, study.skip_bad)
    found: EventStudy = clone(study)
    return found.learn(scan, f"{study.reading_.file} and {table.path}")


def summary_in(study: EventStudy) -> EventSummary:
    """What a study kept of its events, or why it cannot be added to."""
    if study.frame.weight:
        raise ValueError(
            f"weight={study.frame.weight} cannot be merged or updated: the unit of sums depends "
            "on all events, so fit all files at once."
        )
    summary: EventSummary | None = getattr(study, "summary_", None)
    if summary is None:
        raise ValueError(
            f"the model of {study.reading_.file} must hold the counts of its events to be merged "
            "or updated, got one without: fit it with updatable=."
        )
    return summary


def _arguments(study: EventStudy) -> dict[str, object]:
    left = ("n_jobs", "skip_bad", "most_dropped", "checkpoint")
    return {k: v for k, v in study.get_params(deep=False).items() if k not in left}
