"""Polygons in files, with their names: GeoJSON, or a CSV of vertices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.files.cells import numbers, texts
from hplus.files.chunked_table import Table
from hplus.files.feeds import PARQUET, Feed, TableError
from hplus.files.tables import feed_table, is_json

NAMES = ("name", "title", "label", "id", "code", "district", "beat", "precinct", "zone")
"""Properties that may hold the name of a feature, in this order, in any case."""

Rings = tuple[Floats, ...]
"""The outer ring of a polygon and its holes, shape (n, 2) each."""


class Outline(NamedTuple):
    """A named region in the coordinates of its file: one or several polygons."""

    name: str
    polygons: tuple[Rings, ...]


def read_outlines(path: str, field: str | None = None) -> list[Outline]:
    """The polygons of a GeoJSON file or of a CSV file of vertices, at least one.

    `field` is the property, or the first of three columns, with the names; by default it is one of
    the usual names.
    """
    if not Path(path).is_file():
        raise TableError(f"{path} is not a file: give a GeoJSON file with polygons.")
    feed = Feed(path)
    if feed.start == PARQUET or not is_json(feed.peek()):
        return _of_vertices(feed_table(feed), field)
    data = feed.read_all()
    try:
        found = list(outlines_in(path, json.loads(data.decode("utf-8-sig")), field))
    except (ValueError, RecursionError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{path} is not GeoJSON: {str(error)[:100]}.") from error
    if not found:
        raise TableError(f"{path} has no polygons: regions must be polygons.")
    return found


def outlines_in(path: str, document: Any, field: str | None = None) -> Iterator[Outline]:
    """The polygons of a GeoJSON document, which errors call by `path`."""
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "FeatureCollection" and isinstance(document.get("features"), list):
        features = document["features"]
    elif kind == "Feature":
        features = [document]
    else:
        features = [{"type": "Feature", "properties": {}, "geometry": document}]
    for i, feature in enumerate(features, start=1):
        if not isinstance(feature, dict):
            raise TableError(f"feature {i} of {path} must be an object, got {feature!r:.40}.")
        properties = feature.get("properties") or {}
        polygons = tuple(_polygons(path, i, feature.get("geometry")))
        yield Outline(_name(path, i, properties, field), polygons)


def _polygons(path: str, i: int, geometry: Any) -> Iterator[Rings]:
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind == "GeometryCollection":
        for part in geometry.get("geometries", []):
            yield from _polygons(path, i, part)
    elif kind == "Polygon":
        yield _rings(path, i, geometry.get("coordinates"))
    elif kind == "MultiPolygon":
        for rings in geometry.get("coordinates") or []:
            yield _rings(path, i, rings)
    else:
        raise TableError(
            f"feature {i} of {path} must be a Polygon or MultiPolygon, got {kind}: a region needs "
            "an area."
        )


def _rings(path: str, i: int, coordinates: Any) -> Rings:
    try:
        rings = tuple(np.array([point[:2] for point in ring], dtype=float) for ring in coordinates)
        if not rings or any(ring.ndim != 2 or len(ring) < 3 for ring in rings):
            raise ValueError
        if not all(np.isfinite(ring).all() for ring in rings):
            raise ValueError
    except (TypeError, ValueError) as error:
        raise TableError(
            f"feature {i} of {path} must have rings of at least three points [x, y], got "
            f"{str(coordinates)[:60]}."
        ) from error
    return rings


def _name(path: str, i: int, properties: Any, field: str | None) -> str:
    if field is not None:
        if field not in properties:
            raise TableError(
                f"feature {i} of {path} has no property {field!r}: it has "
                f"{', '.join(map(str, properties)) or 'none'}."
            )
        return str(properties[field])
    by_case = {str(key).lower(): key for key in properties}
    known = next((by_case[name] for name in NAMES if name in by_case), None)
    return str(i) if known is None else str(properties[known])


def _of_vertices(table: Table, field: str | None) -> list[Outline]:
    """Rings from rows x, y, or polygon, x, y; the rows of a polygon are one ring."""
    path = table.path
    if len(table.names) not in (2, 3):
        raise TableError(
            f"{path} must be GeoJSON, or have columns x, y or polygon, x, y, got "
            f"{', '.join(table.names)}."
        )
    if field is not None and field not in table.names[:-2]:
        raise TableError(
            f"the names in {path} must be in a column before x and y, got {field!r} of the columns "
            f"{', '.join(table.names)}."
        )
    rings: dict[str, list[Floats]] = {}
    for chunk in table.chunks(table.names):
        x, y = (numbers(chunk.as_numbers(name)) for name in table.names[-2:])
        if not np.isfinite(x.values + y.values).all():
            raise TableError(
                f"{path} must have two numbers for every vertex, got cells that are not numbers."
            )
        labels = (
            texts(chunk.columns[table.names[0]]) if len(table.names) == 3 else ["1"] * len(chunk)
        )
        names = np.array([str(label) for label in labels])
        for name in dict.fromkeys(names.tolist()):
            rings.setdefault(name, []).append(np.column_stack([x.values, y.values])[names == name])
    return [Outline(name, ((np.concatenate(parts),),)) for name, parts in rings.items()]
