"""What commands do with a model for each group: fit, check, ratios."""

from __future__ import annotations

import shlex
from time import perf_counter
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from hplus import save
from hplus.cli.base import CommandError, note, note_dropped, progress_bar
from hplus.cli.count_output import regions_asked
from hplus.cli.summary import edge_cells, gain_words, made_with
from hplus.cli.writing import print_json, write_rows
from hplus.files.chunked_table import Table
from hplus.storage.files import Json
from hplus.studies.spans import Amount
from hplus.wording import count, left_out_words, place_words, rounded, six_digits

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy
    from hplus.studies.grouped_study import GroupedStudy, RegionRatio

group_option = click.option(
    "--group", metavar="NAME", help="One group of a model made with hplus fit --by."
)


def group_of(model: object, path: str, group: str) -> EventStudy:
    """The study of a group in a model file."""
    from hplus.studies.grouped_study import GroupedStudy

    if not isinstance(model, GroupedStudy):
        raise CommandError(f"--group needs a model made with hplus fit --by, got {path}.", 2)
    return model[group]


def fit_groups(
    table: Table, study: EventStudy, options: Json, output: str | None, as_json: bool
) -> None:
    """Fit a rate for each group, print what was found side by side, and save all of them."""
    from hplus.studies.grouped_study import GroupedStudy

    began = perf_counter()
    grouped = GroupedStudy(study, options["by"], options["most_groups"] or 10)
    with progress_bar(as_json):
        if options["dask"]:
            from hplus.studies.clusters import fit_groups_on_cluster

            fit_groups_on_cluster(grouped, table, options["dask"])
        else:
            grouped.fit(table)
    grouped.made_with_ = made_with(began, options["random_state"])
    for part in grouped.studies_.values():
        part.made_with_ = grouped.made_with_
    found = grouped.facts()
    if output:
        save(grouped, output, summary=found)
    if as_json:
        print_json(found | {"model": output})
        return
    reading = next(iter(grouped.studies_.values())).reading_
    note_dropped(reading.dropped, reading.rows)
    noun = grouped.study.frame.weight or "events"
    print_groups(f"The rate of {noun} by {grouped.by}", found)
    if output is None:
        note("The models were not saved: give -o models.hplus to use them later.")
    else:
        note(f"Saved {output}. Next: {shlex.join(['hplus', 'expect', output])}")


def print_groups(title: str, found: Json) -> None:
    """Print what was found of each group, one in a row, and what they have in common."""
    groups, ratios = found["groups"], {part["group"]: part for part in found["ratios"]}
    first = next(iter(groups))
    table = RichTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in (
        found["by"],
        "events",
        "expected",
        "busiest at",
        "vs constant",
        f"ratio to {first}",
    ):
        table.add_column(escape(name), overflow="fold")
    for name, facts in groups.items():
        table.add_row(*map(escape, [name, *_cells(facts, ratios.get(name))]))
    console = Console(highlight=False, soft_wrap=False)
    console.print(f"[bold]{escape(title)}[/]")
    console.print(table)
    shared = groups[first]
    for label, said in (
        ("window", shared["window"]),
        ("period", shared["time"]),
        ("where", found["where"]),
        ("left out", left_out_words(found["left_out"])),
    ):
        if said:
            console.print(f"{label}: {said}", markup=False)


def _cells(facts: Json, ratio: Json | None) -> list[str]:
    """The facts of a group in a few words each; ratios have 90 % intervals."""
    peak, held, unit = facts["peak"], facts["holdout"], Amount(**facts["exposure"]).unit
    place = place_words({name: at for name, at in peak.items() if name != "rate"})
    gain = "" if held is None else gain_words(held["gain"], held["gain_error"]).split(" nats")[0]
    return [
        count(facts["events"]),
        f"{rounded(facts['expected'])}{f' per {unit}' * bool(unit)}",
        ": ".join(filter(None, (place, rounded(peak["rate"])))),
        gain,
        "" if ratio is None else ratio_words(ratio),
    ]


def ratio_words(ratio: Json) -> str:
    """A ratio with its interval, such as "1.31 (1.25 to 1.38)"."""
    low, high = rounded(ratio["low"]), rounded(ratio["high"])
    return f"{rounded(ratio['ratio'])} ({low} to {high})"


def write_ratios(
    grouped: GroupedStudy,
    regions: str | None,
    grid: tuple[int, ...] | None,
    output: str | None,
    options: Json,
) -> None:
    """Write the ratios of the fitted rates of two groups by region."""
    from hplus.studies.expect import grid_regions

    for name in ("lasting", "start", "end", "every"):
        if options[name] is not None:
            raise click.UsageError("--ratio compares fitted rates: leave out the period.")
    names = options["ratio"]
    if len(names) != 2:
        raise click.UsageError(f"--ratio must be two groups, like A,B, got {','.join(names)!r}.")
    unknown = [name for name in names if name not in grouped.studies_]
    if unknown or names[0] == names[1]:
        known, got = ", ".join(grouped.studies_), unknown[0] if unknown else ",".join(names)
        raise click.UsageError(f"--ratio must be two of {known:.200}, got {got!r}.")
    study = grouped[names[0]]
    asked = grid_regions(study.frame, grid) if grid else regions_asked(study, regions, options)
    found = grouped.ratio_by_region(names[0], names[1], asked, options["level"])
    note(f"Ratios of the fitted rate of {names[0]} to that of {names[-1]}.")
    write_rows(output, list(map(ratio_row, found)), options["as_json"])


def ratio_row(part: RegionRatio) -> Json:
    """The ratio in a region as a row of a table."""
    numbers = {name: six_digits(getattr(part, name)) for name in ("ratio", "low", "high")}
    return {"region": part.region.name, **edge_cells(part.region), **numbers}
