"""Colours of a rate: a ramp of even steps of lightness, and images in a page without files."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hplus._checks import Floats

Bytes = NDArray[np.uint8]

STEPS = 256
"""Colours of the ramp."""

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
    t = np.linspace(0.0, 1.0, STEPS)
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
    red, green, blue = ramp()[round((STEPS - 1) * min(max(share, 0.0), 1.0))]
    return f"#{red:02x}{green:02x}{blue:02x}"


def image_uri(shares: Floats) -> str:
    """Shares (rows, columns) of the ramp, first row on top, as the address of a PNG in the page."""
    index = np.round((STEPS - 1) * np.clip(shares, 0.0, 1.0)).astype(np.uint8)
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
    scaled: Any = np.round(1.0 + 254.0 * np.clip(shares, 0.0, 1.0))
    return b64encode(np.where(np.isnan(shares), 0.0, scaled).astype(np.uint8).tobytes()).decode()
