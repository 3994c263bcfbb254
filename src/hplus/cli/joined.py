"""hplus merge and hplus fit --update for streams: the states of hplus stream and hplus serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hplus import save
from hplus.cli.base import CommandError, load_model, note, print_pairs
from hplus.cli.summary import made_with
from hplus.cli.writing import print_json
from hplus.files.chunked_table import Table
from hplus.wording import counted

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy
    from hplus.studies.streams import StreamStudy


def loaded(paths: tuple[str, ...]) -> list[StreamStudy] | list[EventStudy]:
    """Models to be merged: all streams, or all made by hplus fit."""
    studies = [load_model(path, "EventStudy", "StreamStudy") for path in paths]
    kinds = {type(study).__name__ for study in studies}
    if len(kinds) > 1:
        raise CommandError("streams can be merged with streams, and other models with others.", 2)
    return studies


def merged_streams(
    studies: list[StreamStudy], output: str | None, as_json: bool, began: float
) -> None:
    """Merge streams."""
    from hplus.studies.joined_streams import merge_streams

    _finished(merge_streams(studies), output, as_json, began)


def updated_stream(
    study: StreamStudy, table: Table, output: str | None, as_json: bool, began: float
) -> None:
    """Add the events of a table to a stream."""
    from hplus.studies.joined_streams import update_stream

    _finished(update_stream(study, table), output, as_json, began)


def _finished(study: StreamStudy, output: str | None, as_json: bool, began: float) -> None:
    study.made_with_ = made_with(began, 0)
    found = study.facts()
    if output:
        save(study, output, summary=found)
    if as_json:
        print_json(found | {"model": output})
        return
    names = ("window", "exposure", "since", "rate", "cells")
    shown = {name: str(found[name]) for name in names if name in found}
    print_pairs(f"The rate of {counted(study.events_)}", shown)
    saved = f"Saved {output}." if output else "The model was not saved: give -o model.hplus."
    note(saved)
