"""hplus info: what a model file holds, read from its document without building the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hplus.cli.base import (
    command,
    json_option,
    load_model,
    model_file,
    model_path,
    note,
    print_pairs,
)
from hplus.cli.excited import excitation_table
from hplus.cli.grouped import print_groups
from hplus.cli.regress import quantity_words
from hplus.cli.summary import fit_table
from hplus.cli.writing import print_json
from hplus.storage.documents import MALFORMED
from hplus.storage.files import Json
from hplus.storage.models import read_record
from hplus.storage.registry import Unbuilt
from hplus.wording import count, window_words

if TYPE_CHECKING:
    from hplus.storage.models import Record


@command("hplus info thefts.hplus")
@click.argument("model")
@json_option
def info(model: str, as_json: bool) -> None:
    """Show what a model file holds: its data, what was learned, and how it was made.

    MODEL may also be the state of a stream, while it runs too.
    """
    file = model_path(model)
    with model_file(model):
        record = read_record(file)
    try:
        found = _stored_facts(file, record) if record.summary is None else record.summary
    except MALFORMED:
        load_model(model)  # says what is wrong with a file that was changed
        raise
    if as_json:
        print_json({"kind": record.kind, **found, "made_with": record.made_with})
        return
    if record.kind == "GroupedStudy":
        print_groups(f"{model}: {record.kind} by {found['by']}", found)
        return
    said = {name: str(what) for name, what in record.made_with.items() if what is not None}
    print_pairs(f"{model}: {record.kind}", said | _words(record, found))
    if record.kind == "EventStudy" and "expected" not in found:
        note(f"The file has no summary: hplus expect {model} gives the expected counts.")


def _stored_facts(path: str, record: Record) -> Json:
    """The facts of a model whose file has no summary: saved in Python, or by an older version."""
    if record.kind == "EventStudy":
        from hplus.studies.event_facts import known_facts

        return known_facts(Unbuilt(**record.params, **record.fitted))
    if record.kind in ("StreamStudy", "ExcitationStudy", "GroupedStudy"):
        facts: Json = load_model(path).facts()
        return facts
    given = (f"{name}={part!r}" for name, part in record.params.items() if part is not None)
    window, events = record.params.get("window"), record.fitted.get("total_")
    return {
        "parameters": f"{record.kind}({', '.join(given)})",
        **({} if window is None else {"window": window_words(window)}),
        **({} if events is None else {"events": events}),
        "columns": record.fitted.get("n_features_in_", 1),
        "versions": ", ".join(f"{name} {number}" for name, number in record.versions.items()),
        "size": f"{count(Path(path).stat().st_size)} bytes",
    }


def _words(record: Record, found: Json) -> dict[str, str]:
    """The facts of a model as a short table for people."""
    if record.kind == "EventStudy":
        return fit_table(found)
    if record.kind == "ExcitationStudy":
        return excitation_table(found)
    if record.kind == "QuantityStudy":
        return quantity_words(found, record.made_with)
    return {name.replace("_", " "): _said(what) for name, what in found.items()}


def _said(what: Any) -> str:
    """A fact in words; counts by reason one after the other."""
    if isinstance(what, dict):
        return ", ".join(f"{count(n)} {reason}" for reason, n in what.items()) or "none"
    return f"{what:g}" if isinstance(what, float) else str(what)
