"""GeoTIFF: bands of numbers on an even grid, for maps in a GIS."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import accumulate
from xml.sax.saxutils import escape

from hplus._checks import Floats

SHORT, LONG, DOUBLE, ASCII = 3, 4, 12, 2
"""Types of the values of a tag."""

FORMATS = {SHORT: "H", LONG: "I", DOUBLE: "d", ASCII: "s"}

DEFLATE, BANDS_APART, FLOAT = 8, 2, 3
"""Compressed by zlib; one band after another; of floating-point numbers."""

LONLAT = 4326
"""The EPSG code of longitude and latitude, WGS 84."""

Tag = tuple[int, int, Sequence[float] | bytes]


def geotiff(bands: Floats, names: Sequence[str], x: Floats, y: Floats, *, lonlat: bool) -> bytes:
    """Bands (k, rows, columns) as a file, rows from low to high y, between edges x and y.

    Edges must be evenly spaced. NaN is "no data". Without longitude and latitude, coordinates are
    those of the user, in no known reference system.
    """
    k, rows, columns = bands.shape
    # the first row of a picture is on top
    strips = [zlib.compress(band.astype("<f4").tobytes(), 9) for band in bands[:, ::-1]]
    offsets = list(accumulate(map(len, strips), initial=8))
    step = (x[-1] - x[0]) / columns, (y[-1] - y[0]) / rows
    tags: list[Tag] = [
        (256, LONG, [columns]),
        (257, LONG, [rows]),
        (258, SHORT, [32] * k),
        (259, SHORT, [DEFLATE]),
        (262, SHORT, [1]),
        (273, LONG, offsets[:-1]),
        (277, SHORT, [k]),
        (278, LONG, [rows]),
        (279, LONG, [len(strip) for strip in strips]),
        (284, SHORT, [BANDS_APART]),
        (338, SHORT, [0] * (k - 1)),
        (339, SHORT, [FLOAT] * k),
        (33550, DOUBLE, [*step, 0.0]),
        (33922, DOUBLE, [0.0, 0.0, 0.0, x[0], y[-1], 0.0]),
        (34735, SHORT, _geokeys(lonlat)),
        (42112, ASCII, _described(names)),
        (42113, ASCII, b"nan\0"),
    ]
    start = offsets[-1] + offsets[-1] % 2
    body = b"".join(strips).ljust(start - 8, b"\0")
    return struct.pack("<2sHI", b"II", 42, start) + body + _directory(tags, start)


def _geokeys(lonlat: bool) -> list[int]:
    """Cells are areas; degrees of WGS 84, or a reference system that is not known."""
    keys = [(1024, 2), (1025, 1), (2048, LONLAT)] if lonlat else [(1024, 32767), (1025, 1)]
    rows = [(1, 1, 0, len(keys)), *((key, 0, 1, given) for key, given in keys)]
    return [number for row in rows for number in row]


def _described(names: Sequence[str]) -> bytes:
    """The names of the bands, as GDAL reads them."""
    items = [
        f'<Item name="DESCRIPTION" sample="{i}" role="description">{escape(name)}</Item>'
        for i, name in enumerate(names)
    ]
    return f"<GDALMetadata>{''.join(items)}</GDALMetadata>".encode() + b"\0"


def _directory(tags: Sequence[Tag], start: int) -> bytes:
    """The tags of a file at its byte `start`: short values in place, others behind them."""
    tags = [tag for tag in tags if len(tag[2])]
    entries, behind = [], b""
    first = start + 2 + 12 * len(tags) + 4
    for code, kind, values in tags:
        packed = values if isinstance(values, bytes) else _packed(kind, values)
        place = packed.ljust(4, b"\0")
        if len(packed) > 4:
            place = struct.pack("<I", first + len(behind))
            behind += packed + b"\0" * (len(packed) % 2)
        entries.append(struct.pack("<HHI", code, kind, len(values)) + place)
    return struct.pack("<H", len(tags)) + b"".join(entries) + b"\0" * 4 + behind


def _packed(kind: int, values: Sequence[float]) -> bytes:
    given = [float(v) if kind == DOUBLE else int(v) for v in values]
    return struct.pack(f"<{len(given)}{FORMATS[kind]}", *given)
