"""Copies of a streaming rate, made at once, while the stream goes on."""

from __future__ import annotations

from hplus.streaming.intensity import StreamingIntensity
from hplus.streaming.tree_stream import TreeStream


def copied(model: StreamingIntensity) -> StreamingIntensity:
    """A rate with the events so far; with method="tree", none of them is sorted for it."""
    other = StreamingIntensity(**model.get_params(deep=False))
    for name, part in vars(model).items():
        setattr(other, name, part.copy() if isinstance(part, TreeStream) else part)
    return other
