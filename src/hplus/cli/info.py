"""hplus info: what a model file holds, read without building the model if it has a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hplus.cli.doors import json_option, load_model, model_file, print_json, print_pairs
from hplus.cli.regress import quantity_words
from hplus.cli.summary import fit_table
from hplus.storage.models import read_record
from hplus.wording import count

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@click.command(
    epilog="""
\b
Example:
  hplus info thefts.hplus
"""
)
@click.argument("model")
@json_option
def info(model: str, as_json: bool) -> None:
    """Show what a model file holds: its data, what was learned, and how it was made."""
    with model_file(model):
        kind, made_with, found = read_record(model)
    if found is None:
        found = _summary(load_model(model))
    if as_json:
        print_json({"kind": kind, **found, "made_with": made_with})
        return
    said = {name: str(what) for name, what in made_with.items() if what is not None}
    print_pairs(f"{model}: {kind}", said | _words(kind, found, made_with))


def _summary(model: BaseEstimator) -> dict[str, Any]:
    """The facts of a model whose file has no summary: saved in Python, or by an older version."""
    from hplus.cli.live import summary
    from hplus.cli.summary import facts
    from hplus.studies.streams import StreamStudy
    from hplus.studies.study import EventStudy

    if isinstance(model, EventStudy):
        return facts(model)
    return summary(model) if isinstance(model, StreamStudy) else {"parameters": str(model)}


def _words(kind: str, found: dict[str, Any], made_with: dict[str, Any]) -> dict[str, str]:
    """The facts of a model as a short table for people."""
    if kind == "EventStudy":
        return fit_table(found)
    if kind == "QuantityStudy":
        return quantity_words(found, made_with)
    return {name: _said(what) for name, what in found.items()}


def _said(what: Any) -> str:
    """A fact in words; counts by reason one after the other."""
    if isinstance(what, dict):
        return ", ".join(f"{count(n)} {reason}" for reason, n in what.items()) or "none"
    return str(what)
