"""What hplus expect writes: CSV, JSON, GeoJSON or a GeoTIFF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hplus.cli.base import note
from hplus.cli.writing import json_text, rows_as_csv, write_text
from hplus.storage.files import Json, replace_file
from hplus.wording import counted, listed

if TYPE_CHECKING:
    from hplus.studies.count_grids import CountedRegion
    from hplus.studies.event_study import EventStudy
    from hplus.studies.excitation_study import ExcitationStudy
    from hplus.studies.expect import Region
    from hplus.studies.frames import Frame

SUFFIXES = {".json": "json", ".geojson": "geojson", ".tif": "tif", ".tiff": "tif"}
"""Suffixes of files, and their formats; others are CSV."""

MOST_NAMES = 5
"""Names of regions in a note, at most."""

OVERLAP = 0.01
"""Regions overlap if their counts exceed that of the window by this share; less is quadrature."""


def form_of(output: str | None, frame: Frame, has_grid: bool, options: Json) -> str:
    """The format of the output: as given, or by the suffix of the file."""
    if options["as_json"] and options["form"] not in (None, "json"):
        raise click.UsageError("Give --json or --format, not both.")
    known = SUFFIXES.get(Path(output or "").suffix.lower(), "csv")
    form = "json" if options["as_json"] else options["form"] or known
    if form == "tif" and not (has_grid and output):
        raise click.UsageError("A GeoTIFF needs --grid, and a file to write: -o map.tif.")
    if form == "tif" and len(frame.columns) != 2:
        raise click.UsageError("A GeoTIFF needs a model with two columns of coordinates.")
    return form


def write_counts(
    output: str | None,
    form: str,
    frame: Frame,
    found: Sequence[CountedRegion],
    rows: Sequence[Json],
    about: Json,
) -> None:
    """Write counts and their rows in a format; regions outside of the window are left out.

    `about` says what they are counts of, for JSON.
    """
    if form == "tif":
        _write_tif(output, frame, found)
        return
    from hplus.studies.expect import in_window

    regions = [part.region for part in found]
    kept = [
        (row, region.geometry)
        for row, region, inside in zip(rows, regions, in_window(frame, regions), strict=True)
        if inside
    ]
    write_text(output, _text(kept, form, about))


def _text(found: Sequence[tuple[Json, Json | None]], form: str, about: Json) -> str:
    """Rows with the geometry of their regions, as text."""
    rows = [row for row, _ in found]
    if form == "csv":
        return rows_as_csv(rows)
    if form == "json":
        return json_text(about | {"regions": rows}) + "\n"
    if any(geometry is None for _, geometry in found):
        raise click.UsageError("GeoJSON needs --regions, or a --grid over two columns.")
    features = [
        {"type": "Feature", "properties": row, "geometry": geometry} for row, geometry in found
    ]
    return json_text({"type": "FeatureCollection", "features": features}, None) + "\n"


def _write_tif(output: str | None, frame: Frame, found: Sequence[CountedRegion]) -> None:
    from hplus.studies.count_grids import CountGrid

    assert output is not None
    replace_file(Path(output).resolve(), [CountGrid.of(frame, found).to_geotiff()])


def regions_asked(
    study: EventStudy | ExcitationStudy, regions: str | None, options: Json
) -> list[Region]:
    """The regions of a file, or the whole window."""
    from hplus.studies.expect import named_regions, whole

    if regions is None:
        return [whole(study.frame)]
    return named_regions(study.frame, regions, options["name_field"])


def note_regions(frame: Frame, found: Sequence[CountedRegion], of_all: float) -> None:
    """Print which regions of a file were not observed, and whether some overlap.

    `of_all` is what is expected of the window; an error if no region lies in it.
    """
    from hplus.studies.expect import in_window

    inside = in_window(frame, [part.region for part in found])
    missed = [part.region.name for part, seen in zip(found, inside, strict=True) if not seen]
    if outside := list(dict.fromkeys(missed)):
        names = listed(outside[:MOST_NAMES])
        if not inside.any():
            raise click.UsageError(
                f"No region lies in the window, where events could be observed ({names}): check "
                "their coordinates."
            )
        note(f"Left out, because nothing was observed there: {counted(len(outside), 'region')} "
             f"outside the window ({names}).")  # fmt: skip
    if sum(part.expected for part in found) > (1.0 + OVERLAP) * of_all:
        note(f"Regions overlap: all of the window is expected to have {of_all:.6g}.")
