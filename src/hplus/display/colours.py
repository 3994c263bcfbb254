"""Colours of a rate: a ramp of even steps of lightness, and images inside a page."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from functools import cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from hplus._checks import Floats
from hplus._values import Value, value

Bytes = NDArray[np.uint8]

RAMP_COLOURS = 256
"""Colours of the ramp."""

TOPPED_SHARE = 0.02
"""Largest share of the events whose rates all have the last colour."""

STEEP_RATIOS = (2.5, 16.0)
"""The ratio of the highest rate to a typical one from which colours follow a root of the rate."""

STOPS = (
    "100f37 22124c 38155d 4f176a 691971 821d73 9b2470 b32f6a c83e61 d85058 e56550 ee7d4c f39551 "
    "f5ad60 f5c477 f5d994 f6edb3"
)
"""From night blue through red to light yellow, in steps of lightness that look even (OKLCh)."""


@cache
def ramp() -> Bytes:
    """Red, green and blue of each colour, (256, 3)."""
    stops = np.array([list(bytes.fromhex(stop)) for stop in STOPS.split()], dtype=float)
    at = np.linspace(0.0, len(stops) - 1.0, RAMP_COLOURS)
    channels = [np.interp(at, np.arange(len(stops)), channel) for channel in stops.T]
    return np.round(np.stack(channels, axis=1)).astype(np.uint8)


def hex_colour(share: float) -> str:
    """The colour at a share of the ramp, such as "#2a788e"."""
    red, green, blue = ramp()[round((RAMP_COLOURS - 1) * min(max(share, 0.0), 1.0))]
    return f"#{red:02x}{green:02x}{blue:02x}"


@final
@value
class Shading(Value):
    """A rate has the colour (rate/top)^power of the ramp; rates from `top` to `peak` the last."""

    peak: float
    top: float
    power: float

    def shares(self, rate: Floats) -> Floats:
        """Where the colours of rates are on the ramp, from 0 to 1; NaN stays NaN."""
        return np.clip(rate / self.top, 0.0, 1.0) ** self.power


def shading(rate: Floats) -> Shading:
    """Colours that tell quiet cells apart, from rates in cells of equal size, NaN outside."""
    rates = np.sort(rate[~np.isnan(rate)])
    shares = np.cumsum(rates) / (rates.sum() or 1.0)
    typical, top = rates[np.searchsorted(shares, (0.5, 1.0 - TOPPED_SHARE))]
    # a top that is close to the peak may as well be the peak
    top = float(top if rates[-1] > 2.0 * top else rates[-1]) or 1.0
    power = 0.5 ** sum(top > steep * typical for steep in STEEP_RATIOS)
    return Shading(float(rates[-1]), top, power)


def image_uri(shares: Floats) -> str:
    """Shares (rows, columns) of the ramp, first row on top, as the address of a PNG in the page."""
    index = np.round((RAMP_COLOURS - 1) * np.clip(shares, 0.0, 1.0)).astype(np.uint8)
    return "data:image/png;base64," + b64encode(png(index, ramp())).decode()


def png(index: Bytes, palette: Bytes) -> bytes:
    """A PNG of indices (rows, columns) into a palette (256, 3)."""
    rows, columns = index.shape
    # a 0 before each row: stored without a filter
    raw = np.hstack([np.zeros((rows, 1), np.uint8), index]).tobytes()
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(raw, 9))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in [*chunks, (b"IEND", b"")])


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def text_bytes(shares: Floats) -> str:
    """Shares (rows, columns) as base64 of one byte each, for a script to read; NaN is 0."""
    bytes_ = np.nan_to_num(np.round(1.0 + 254.0 * np.clip(shares, 0.0, 1.0)), nan=0.0)
    return b64encode(bytes_.astype(np.uint8).tobytes()).decode()
