"""Models joined: those of parts of the events, or one and new events.

The result is that of all events at once, exactly; with weights, whose unit depends on all events,
but for the rounding of their sums to a millionth of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sklearn.base import clone

from hplus.files.tables import TableLike, as_table
from hplus.rates.accumulator import CellAccumulator
from hplus.studies.event_study import EventStudy
from hplus.studies.event_summary import EventSummary, include
from hplus.studies.event_weights import WeightScale, in_other_unit, joint_scale, weight_scale
from hplus.studies.scans import EventScan, scan_events

Key = TypeVar("Key")


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
    scales = [scale for study in studies if (scale := _scale(study)) is not None]
    scan = first.new_scan(joint_scale(scales) if scales else None)
    for study in studies:
        _add(scan, study)
    files = " and ".join(dict.fromkeys(study.reading_.file for study in studies))
    found: EventStudy = clone(first)
    return found.learn(scan, files if len(files) < 100 else f"{len(studies)} models")


def update_study(study: EventStudy, source: TableLike) -> EventStudy:
    """The study of its events and those of a file or table, as if fitted at once."""
    table = as_table(source, skip_bad=study.skip_bad)
    old, new = _scale(study), weight_scale(table, study.frame)
    scan = study.new_scan(None if old is None or new is None else joint_scale([old, new]))
    _add(scan, study)
    scan_events(table, scan, study.n_jobs, study.skip_bad)
    found: EventStudy = clone(study)
    return found.learn(scan, f"{study.reading_.file} and {table.path}")


def summary_in(study: EventStudy) -> EventSummary:
    """What a study kept of its events, or why it cannot be added to."""
    summary: EventSummary | None = getattr(study, "summary_", None)
    if summary is None:
        raise ValueError(
            f"the model of {study.reading_.file} must hold the counts of its events to be merged "
            "or updated, got one without: fit it with updatable=."
        )
    return summary


def _add(scan: EventScan, study: EventStudy) -> None:
    """Add the events of a study to a scan, with weights in its unit."""
    own, scale = study.new_scan(_scale(study)), scan.events.scale
    include(own, summary_in(study))
    if own.events.scale is not None and scale is not None:
        factor = own.events.scale.unit / scale.unit
        _rescale(own.events.cells, factor)
        _rescale(own.times.cells, factor)
    scan.absorb(own)


def _rescale(cells: dict[Key, CellAccumulator], factor: float) -> None:
    """Make the weights of all statistics so many times as large."""
    for key, found in cells.items():
        statistic = found.statistic()
        cells[key] = CellAccumulator(statistic.window, in_other_unit(statistic, factor))


def _scale(study: EventStudy) -> WeightScale | None:
    """The scale of a study's weights; None without weights."""
    return None if study.weights_ is None else WeightScale(**study.weights_)


def _arguments(study: EventStudy) -> dict[str, object]:
    left = ("n_jobs", "skip_bad", "most_dropped", "checkpoint")
    return {k: v for k, v in study.get_params(deep=False).items() if k not in left}
