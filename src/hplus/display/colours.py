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
"""Share of the events, at most, whose rates all have the last colour."""

STEEP_RATIOS = (2.5, 16.0)
"""Rate of the last colour over that of a usual event from which colours follow a root of it."""

DARKEST, LIGHTEST = 0.20, 0.94
"""Lightness of its ends, from 0 for black to 1 for white."""

TO_CONES = np.array(
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ]
)
TO_LINEAR = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)
"""From OKLab to cube roots of the responses of the eye's cones, from those to linear RGB."""


@cache
def ramp() -> Bytes:
    """Red, green and blue from night blue over red to light yellow, (256, 3).

    A path in OKLCh, in which equal steps look equal: lightness rises evenly, the hue turns by half
    a circle, and the chroma rises and falls within what a screen can show.
    """
    t = np.linspace(0.0, 1.0, RAMP_COLOURS)
    L, hue = DARKEST + (LIGHTEST - DARKEST) * t, np.deg2rad(278.0 + 182.0 * t)
    rgb = np.clip(_linear_rgb(L, 0.075 + 0.1 * np.sin(np.pi * t**0.9), hue), 0.0, 1.0)
    encoded = np.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** (1.0 / 2.4) - 0.055)
    return np.round(255.0 * encoded).astype(np.uint8)


def _linear_rgb(L: Floats, chroma: Floats, hue: Floats) -> Floats:
    """OKLCh in linear RGB, outside [0, 1] where a screen cannot show it, (n, 3)."""
    lab = np.stack([L, chroma * np.cos(hue), chroma * np.sin(hue)], axis=1)
    return (lab @ TO_CONES.T) ** 3 @ TO_LINEAR.T


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
    seen = np.sort(rate[~np.isnan(rate)])
    shares = np.cumsum(seen) / (seen.sum() or 1.0)
    usual, top = seen[np.searchsorted(shares, (0.5, 1.0 - TOPPED_SHARE))]
    # a top that is close to the peak may as well be the peak
    top = float(top if seen[-1] > 2.0 * top else seen[-1]) or 1.0
    return Shading(float(seen[-1]), top, 0.5 ** sum(top > steep * usual for steep in STEEP_RATIOS))


def image_uri(shares: Floats) -> str:
    """Shares (rows, columns) of the ramp, first row on top, as the address of a PNG in the page."""
    index = np.round((RAMP_COLOURS - 1) * np.clip(shares, 0.0, 1.0)).astype(np.uint8)
    return "data:image/png;base64," + b64encode(png(index, ramp())).decode()


def png(index: Bytes, palette: Bytes) -> bytes:
    """A PNG of indices (rows, columns) into a palette (256, 3)."""
    rows, columns = index.shape
    # a 0 before each row: it is stored as it is
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
