"""Copies of a streaming rate, made at once while the stream goes on, and sums of several."""

from __future__ import annotations

from collections.abc import Sequence

from hplus.streaming.intensity import StreamingIntensity
from hplus.streaming.tree_stream import TreeStream


def copied(model: StreamingIntensity) -> StreamingIntensity:
    """A rate with the events so far; with method="tree", none of them is sorted for it."""
    other = StreamingIntensity(**model.get_params(deep=False))
    for name, part in vars(model).items():
        setattr(other, name, part.copy() if isinstance(part, TreeStream) else part)
    return other


def joined(models: Sequence[StreamingIntensity]) -> StreamingIntensity:
    """The rate of the events of all models, which have learned some by the method "tree"."""
    found = copied(models[0])
    stream = found._current()
    for model in models[1:]:
        other = copied(model)._current()
        assert isinstance(stream, TreeStream)
        assert isinstance(other, TreeStream)
        stream.absorb(other)
    return found
