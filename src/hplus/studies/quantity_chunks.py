"""Rows of a quantity in chunks, since they are too many for memory: sampled, and encoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats, as_floats
from hplus.estimators.base import check_exposure
from hplus.estimators.chunked_rows import started
from hplus.estimators.machines import KernelRegressor
from hplus.studies.encoding import Column, encoded_table, table_values
from hplus.studies.named_arrays import Columns, as_columns, column_named, without

MAX_SAMPLED_ROWS = 100_000
"""Rows that all but the last fit learns from, at most."""

ColumnChunks = Iterable[object]
"""Tables in memory, to be gone through several times."""


class SampledRows(NamedTuple):
    """Some rows, chosen at random, and how many there are in all.

    `unit` is the sum of all targets over that of all exposures.
    """

    columns: Columns
    y: Floats
    exposure: Floats
    rows: int
    unit: float

    @property
    def whole(self) -> bool:
        """Are these all rows?"""
        return len(self.y) == self.rows


@dataclass(frozen=True)
class NamedChunks:
    """Chunks of columns with the names of the target and, if there is one, of the exposure."""

    chunks: ColumnChunks
    target: str
    exposure: str | None

    def __iter__(self) -> Iterator[tuple[Columns, Floats, Floats]]:
        for chunk in started(self.chunks):
            table = as_columns(chunk)  # type: ignore[arg-type]  # others are refused there
            y = as_floats("y", column_named(table, "y", self.target))
            exposure = column_named(table, "exposure", self.exposure)
            yield (
                without(table, self.target, self.exposure),
                y,
                check_exposure(exposure, len(y)),
            )


def sampled_rows(chunks: NamedChunks, rng: np.random.RandomState) -> SampledRows:
    """A random sample of the rows, all of them if they are few, in their order."""
    kept, bound, rows, total, exposed = list[_Kept](), 1.0, 0, 0.0, 0.0
    for columns, y, exposure in chunks:
        rows, total, exposed = rows + len(y), total + float(y.sum()), exposed + exposure.sum()
        kept.append(_Kept(columns, y, exposure, rng.random_sample(len(y))).below(bound))
        if sum(len(part.keys) for part in kept) > 2 * MAX_SAMPLED_ROWS:
            kept, bound = _fewest(kept)
    if not kept:
        raise ValueError("chunks must hold rows to learn from, got none.")
    kept, _ = _fewest(kept)
    names = list(kept[0].columns)
    columns = {name: np.concatenate([part.columns[name] for part in kept]) for name in names}
    y, exposure = (np.concatenate(part) for part in zip(*(p[1:3] for p in kept), strict=True))
    return SampledRows(columns, y, exposure, rows, total / exposed)


class _Kept(NamedTuple):
    """Rows of a chunk, and a random number of each (n,)."""

    columns: Columns
    y: Floats
    exposure: Floats
    keys: Floats

    def below(self, bound: float) -> _Kept:
        """The rows whose number is at most a bound."""
        some = self.keys <= bound
        columns = {name: _array(column)[some] for name, column in self.columns.items()}
        return _Kept(columns, self.y[some], self.exposure[some], self.keys[some])


def _fewest(kept: Sequence[_Kept]) -> tuple[list[_Kept], float]:
    """The rows with the smallest numbers, no more than are sampled, and the largest of these."""
    keys = np.concatenate([part.keys for part in kept])
    if len(keys) <= MAX_SAMPLED_ROWS:
        return list(kept), 1.0
    bound = float(np.partition(keys, MAX_SAMPLED_ROWS - 1)[MAX_SAMPLED_ROWS - 1])
    return [part.below(bound) for part in kept], bound


def _array(column: ArrayLike) -> np.ndarray:
    return np.asarray(column)


@dataclass(frozen=True)
class EncodedChunks:
    """Encoded rows, rates in some unit, and exposures, of chunks."""

    columns: tuple[Column, ...]
    chunks: NamedChunks
    unit: float

    def __iter__(self) -> Iterator[tuple[Floats, Floats, Floats]]:
        for columns, y, exposure in self.chunks:
            X = encoded_table(self.columns, table_values(self.columns, columns))
            yield X, y / (self.unit * exposure), exposure


def learned_from_all(
    machine: KernelRegressor, known: int, rows: int, chunks: EncodedChunks
) -> KernelRegressor:
    """A machine that learned from some rows, learned again from all, with the same kernel."""
    penalty = machine.penalty_ * known / rows
    every = KernelRegressor(
        machine.kernel_, "poisson_log", penalty, machine.landmarks, fit_intercept=False
    )
    return every.fit_chunks(chunks)
