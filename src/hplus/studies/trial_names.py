"""Trials by name: each is a place on an axis from 0 to 1, whatever the order of rows and files."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Bools, Floats
from hplus.files.extras import arrow
from hplus.studies.spans import SPELLINGS, singular
from hplus.windows import Interval

if TYPE_CHECKING:
    import pyarrow as pa

TRIALS = Interval(0.0, 1.0, unit="trial")
"""The axis on which trials lie."""

NAME_BITS = 50
"""Bits of a place on the axis: those of the smallest cells of a line."""


def trial_noun(column: str) -> str:
    """What a trial is called: by the name of its column, if that is a word."""
    word = singular(column.lower())
    return word if word.isalpha() and word not in SPELLINGS else TRIALS.unit


def trial_positions(names: pa.Array) -> tuple[Floats, Bools]:
    """The place of each trial (n,) by a hash of its name, and which names are missing (n,)."""
    from pyarrow import compute

    if arrow().types.is_dictionary(names.type):
        names = names.dictionary_decode()
    if arrow().types.is_floating(names.type):
        names = compute.if_else(compute.is_nan(names), None, names)
    coded = compute.cast(names, arrow().string()).dictionary_encode()
    places = np.array([_position(name) for name in coded.dictionary.to_pylist()] or [0.0])
    missing = coded.is_null().to_numpy(zero_copy_only=False)
    return places[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)], missing


def _position(name: str | None) -> float:
    digest = int.from_bytes(blake2b((name or "").encode(), digest_size=8).digest(), "little")
    return ((digest >> (64 - NAME_BITS)) + 0.5) / 2.0**NAME_BITS
