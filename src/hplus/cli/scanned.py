"""How hplus fit reads many events: options, files in parts, Dask, updates; and what it tells."""

from __future__ import annotations

import shlex
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from hplus import save
from hplus.cli.arguments import as_options
from hplus.cli.base import (
    CommandError,
    command,
    json_option,
    load_model,
    model_output_option,
    note,
    note_dropped,
    print_pairs,
    progress_bar,
)
from hplus.cli.joined import loaded, merged_streams, updated_stream
from hplus.cli.summary import fit_table, made_with
from hplus.cli.writing import print_json
from hplus.files.chunked_table import Table
from hplus.files.tables import open_table
from hplus.storage.files import Json
from hplus.wording import counted

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy
    from hplus.studies.frames import Frame

STUDY_OPTIONS = ("exposure", "holdout", "blocks", "most_dropped", "random_state", "n_jobs", "model",
                 "skip_bad", "updatable", "checkpoint")  # fmt: skip


def scan_options(command: Any) -> Any:
    """The options that say how files are read."""
    options = [
        click.option("--jobs", "n_jobs", type=click.IntRange(-1), default=-1, help=(
            "CPU cores to use (default: all).")),
        click.option("--skip-bad-files", "skip_bad", is_flag=True, help=(
            "Leave out files and row groups that cannot be read.")),
        click.option("--checkpoint", metavar="DIR", help=(
            "Folder for what was read so far: a fit that was interrupted goes on from there.")),
        click.option("--updatable", is_flag=True, help=(
            "Keep counts and a sample of the events in the model file, as --update and hplus merge "
            "need them.")),
        click.option("--update", metavar="MODEL", help=(
            "Add the events to those of a model made with --updatable, or of a stream, with its "
            "options.")),
        click.option("--dask", metavar="ADDRESS", help=(
            "Read the files on a Dask cluster, or fit groups there: local, or the address of its "
            "scheduler.")),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def opened(files: tuple[str, ...], options: Json) -> Table:
    """The table in one file or several."""
    return open_table(files[0] if len(files) == 1 else list(files), skip_bad=options["skip_bad"])


def check_scan(options: Json) -> None:
    """Refuse options that do not go with one pass over all events, or without --by."""
    if options["most_groups"] and not options["by"]:
        raise click.UsageError("--most-groups needs a column of groups: give --by.")
    alone = next((name for name in ("by", "self_exciting") if options[name]), None)
    given = next((name for name in ("checkpoint", "update", "dask") if options[name]), None)
    if alone and given and (alone, given) != ("by", "dask"):
        alone = alone.replace("_", "-")
        raise click.UsageError(f"--{given} needs one pass over all events: leave out --{alone}.")
    if options["dask"] and (options["checkpoint"] or options["update"]):
        raise click.UsageError("--dask reads everything anew: leave out --checkpoint and --update.")
    if options["checkpoint"] and options["update"]:
        raise click.UsageError("Give --checkpoint or --update, not both.")


def unfitted(frame: Frame, options: Json) -> EventStudy:
    """A study as the options say."""
    from hplus.studies.event_study import EventStudy

    return EventStudy(frame, **{name: options[name] for name in STUDY_OPTIONS})


def fit_study(study: EventStudy, table: Table, dask: str | None) -> None:
    """Fit a study, here or on a Dask cluster."""
    if dask is None:
        study.fit(table)
        return
    from hplus.studies.clusters import fit_on_cluster

    fit_on_cluster(study, table, dask)


def updated(
    model: str, table: Table, file: str, options: Json, output: str | None, as_json: bool,
    began: float,
) -> None:  # fmt: skip
    """Add the events of a table to a model."""
    from hplus.studies.merging import update_study

    ctx = click.get_current_context()
    allowed = {"update", "n_jobs", "skip_bad", "output", "as_json", "files"}
    given = [
        name
        for name in ctx.params
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        and name not in allowed
    ]
    if given:
        raise click.UsageError(
            f"--update takes columns, window and all else from {model}: leave out "
            f"--{given[0].replace('_', '-')}."
        )
    known = load_model(model, "EventStudy", "StreamStudy")
    if type(known).__name__ == "StreamStudy":
        updated_stream(known, table, output, as_json, began)
        return
    known.n_jobs, known.skip_bad = options["n_jobs"], options["skip_bad"]
    with progress_bar(as_json):
        study = update_study(known, table)
    finished(study, file, known.random_state, output, as_json, began)


def finished(
    study: EventStudy, file: str, seed: int, output: str | None, as_json: bool, began: float
) -> None:
    """Save a study and say what was found; how it was read is no part of it."""
    study.made_with_ = made_with(began, seed)
    study.n_jobs, study.checkpoint, study.skip_bad = -1, None, False
    found = study.facts()
    if output:
        save(study, output, summary=found)
    _tell(study, found, file, output, as_json)


def _tell(study: EventStudy, found: Json, file: str, output: str | None, as_json: bool) -> None:
    from hplus.studies.burst_gains import burst_words

    if as_json:
        print_json(found | {"model": output})
        return
    for reason in study.reading_.skipped:
        note(f"Skipped: {reason}")
    note_dropped(study.reading_.dropped, study.reading_.rows)
    weight = f"{study.frame.weight} in " if study.frame.weight else ""
    print_pairs(f"The rate of {weight}{counted(study.reading_.kept)}", fit_table(found))
    bursts = burst_words(study.bursts_)
    if bursts:
        note(as_options(bursts))
    if output is None:
        note("The model was not saved: give -o model.hplus to use it later.")
    else:
        one = file != "-" and len(shlex.split(file)) == 1
        events = shlex.split(file) if one else []
        note(f"Saved {output}. Next: {shlex.join(['hplus', 'report', output, *events])}")


@command(
    "hplus merge north.hplus south.hplus -o all.hplus",
    "hplus merge gate1.state gate2.state -o gates.hplus",
)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@model_output_option
@json_option
def merge(models: tuple[str, ...], output: str | None, as_json: bool) -> None:
    """Learn one rate from the events of several models, without their files.

    The models must have been made by hplus fit --updatable with the same options. The result is
    that of a fit to all files at once. Or all are streams with the same options: model files or
    states of hplus stream and hplus serve, which may be running.
    """
    from hplus.cli.base import check_writable
    from hplus.studies.merging import merge_studies

    began = perf_counter()
    check_writable(output)
    if len(models) < 2:
        raise CommandError("merge needs two models or more, got one.", 2)
    studies = loaded(models)
    if type(studies[0]).__name__ == "StreamStudy":
        merged_streams(studies, output, as_json, began)
        return
    with progress_bar(as_json):
        study = merge_studies(studies)
    finished(study, "-", study.random_state, output, as_json, began)
