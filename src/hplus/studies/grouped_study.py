"""GroupedStudy: a rate of events for each group of rows, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, final

import numpy as np

from hplus._checks import check_count, shown
from hplus._progress import whole_or_not
from hplus.estimators.base import Estimator, check_fitted
from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition
from hplus.files.expressions import named, quoted
from hplus.files.feeds import TableError
from hplus.files.tables import TableLike, as_table
from hplus.files.times import Zone
from hplus.rates.ratio import RateRatio
from hplus.storage.files import Json
from hplus.studies.event_study import EventStudy
from hplus.studies.expect import Region
from hplus.studies.frames import Frame
from hplus.studies.group_scans import scan_groups
from hplus.windows import Window
from hplus.wording import counted

GROUP_EVENTS = 10
"""With fewer events a group is left out: they would tell little about it."""

MOST_DISTINCT = 10_000
"""Distinct values of the column of groups; with more it is no column of groups."""

FitAll = Callable[[Sequence[EventStudy], Table], Sequence[EventStudy]]
"""Fits studies to a table."""


class RegionRatio(NamedTuple):
    """The ratio of the rates of two groups in a region, with its interval."""

    region: Region
    ratio: float
    low: float
    high: float


@final
class GroupedStudy(Estimator):
    """A rate for each group of rows, all on one window: teams, seasons, kinds of events.

    Each group is an `EventStudy` of the rows whose column `by` has one value, so that it answers
    all that such a study does; `ratio` compares two.

    >>> import numpy as np
    >>> from hplus.studies.plans import plan
    >>> rng = np.random.default_rng(0)
    >>> shots = {"x": rng.normal(0.0, 8.0, 300).clip(-25, 25), "team": ["a", "b", "a"] * 100}
    >>> study = EventStudy(plan(shots, ["x"], window=(-25, 25)), model="tree", holdout=0.0)
    >>> grouped = GroupedStudy(study, by="team").fit(shots)
    >>> list(grouped.studies_), round(grouped.ratio("a", "b").count_ratio(study.frame.window), 1)
    (['a', 'b'], 2.0)

    Parameters
    ----------
    study : EventStudy
        How each group is learned; it is not changed.
    by : str
        The column that says to which group a row belongs: text or numbers.
    most_groups : int, default=10
        The largest groups that are kept.

    Attributes
    ----------
    studies_ : dict
        The study of each group by its name, the largest first.
    left_out_ : dict
        Events without a study, by reason: small groups, and rows without a group.
    made_with_ : dict
        The command, versions and seconds.
    """

    def __init__(self, study: Any, by: str, most_groups: int = 10) -> None:
        self.study = study
        self.by = by
        self.most_groups = most_groups

    def fit(self, source: TableLike, y: None = None, *, fit_all: FitAll | None = None) -> Self:
        """Read the table once to find the groups, and once to learn the rates of all of them.

        With weights, whose unit is that of a group, the second time is one for each group.
        `fit_all` fits studies to a table in another way, on a cluster for example.
        """
        with whole_or_not(self):
            if not isinstance(self.study, EventStudy):
                raise TypeError(f"study must be an EventStudy, got {shown(self.study)}.")
            most = check_count("most_groups", self.most_groups)
            table, frame = as_table(source), self.study.frame
            if table.is_pipe:
                raise ValueError("by= reads a file twice, got a pipe: save it first.")
            groups = _groups(table, frame, self.by)
            nowhere = groups.pop("", 0)
            kept = [name for name, n in groups.most_common(most) if n >= GROUP_EVENTS]
            self.left_out_: dict[str, int] = _left_out(groups, kept, most, nowhere)
            if not kept:
                raise TableError(
                    f"column {self.by!r} of {table.path} must have a group of at least "
                    f"{GROUP_EVENTS} events, got {counted(len(groups), 'group')} and "
                    f"{counted(groups.total())}: learn them together, without by=."
                )
            numeric = _are_numbers(groups)
            unfitted = [self._unfitted(name, numeric) for name in kept]
            fitted = (fit_all or self._learned)(unfitted, table)
            self.studies_: dict[str, EventStudy] = dict(zip(kept, fitted, strict=True))
            self.made_with_: Json = {}
        return self

    def _learned(self, studies: Sequence[EventStudy], table: Table) -> Sequence[EventStudy]:
        """The studies of all groups, fitted."""
        if self.study.frame.weight or self.study.checkpoint:
            return [study.fit(table) for study in studies]
        scans = [study.new_scan() for study in studies]
        given = (self.study.frame.where, self.study.n_jobs, self.study.skip_bad)
        scan_groups(table, scans, *given)
        return [study.learn(scan, table.path) for study, scan in zip(studies, scans, strict=True)]

    def __getitem__(self, group: str) -> EventStudy:
        """The study of a group."""
        check_fitted(self, "studies_")
        if group not in self.studies_:
            names = ", ".join(self.studies_)
            raise ValueError(f"group must be one of {names:.200}, got {shown(group)}.")
        return self.studies_[group]

    def ratio(self, group: str, to: str) -> RateRatio:
        """The rate of a group over that of another one."""
        above, below = self[group].model_, self[to].model_
        return RateRatio(above.window, above.rate_, below.rate_)

    def ratio_by_region(
        self, group: str, to: str, regions: Sequence[Region], level: float = 0.9
    ) -> list[RegionRatio]:
        """The ratio of expected counts in each region over all observed time, with its interval."""
        ratio, windows = self.ratio(group, to), [self._all_time(part) for part in regions]
        numbers = (ratio.count_ratio(windows), *ratio.count_ratio_interval(windows, level))
        return [
            RegionRatio(*found)
            for found in zip(regions, *map(np.ndarray.tolist, numbers), strict=True)
        ]

    def _all_time(self, region: Region) -> Window:
        """A region over all of the observation period, or of its cycle."""
        frame = self.study.frame
        place = frame.region if region.window is None else region.window
        if frame.clock is None or (frame.region is None and place is not None):
            assert place is not None
            return place
        return frame.clock.window if place is None else place * frame.clock.window

    def facts(self) -> Json:
        """What the fits found, as numbers and text; ratios are those to the largest group."""
        check_fitted(self, "studies_")
        first, *others = self.studies_
        where = self.study.frame.where
        return {
            "by": self.by,
            "where": None if where is None else where.text,
            "groups": {name: study.facts() for name, study in self.studies_.items()},
            "left_out": self.left_out_,
            "ratios": [self._ratio_facts(name, first) for name in others],
            "seconds": self.made_with_.get("seconds"),
        }

    def _ratio_facts(self, group: str, to: str) -> Json:
        ratio = self.ratio(group, to)
        low, high = ratio.count_ratio_interval(ratio.window)
        total = ratio.count_ratio(ratio.window)
        return {"group": group, "to": to, "ratio": total, "low": low, "high": high}

    def _unfitted(self, group: str, numeric: bool) -> EventStudy:
        """The study of a group, whose rows are those with its name."""
        given, frame = self.study.get_params(deep=False), self.study.frame
        value = group if numeric else quoted(group)
        zone = "UTC" if frame.clock is None else frame.clock.zone
        own = frame.narrowed(Condition(f"{named(self.by)} == {value}", zone))
        return EventStudy(**given | {"frame": own})


def _groups(table: Table, frame: Frame, by: str) -> Counter[str]:
    """The events of each group; "" for those without one."""
    table.require(by)
    found, zone = Counter[str](), Zone.NEITHER
    for chunk in table.chunks([*frame.of_events, by], frame.where):
        placed = frame.points(chunk, zone)
        zone, column = placed.zone, chunk.columns[by].filter(placed.rows)
        values, counts = column.value_counts().flatten()
        for value, n in zip(values.to_pylist(), counts.to_pylist(), strict=True):
            found[_name(by, value)] += n
        if len(found) > MOST_DISTINCT:
            raise TableError(
                f"column {by!r} of {table.path} must name groups, got more than {MOST_DISTINCT} "
                "different values: choose another column."
            )
    return found


def _name(by: str, value: object) -> str:
    """A value as the name of a group."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.15g}"
    if not isinstance(value, str | int):
        raise TableError(f"column {by!r} must hold text or numbers to name groups, got {value}.")
    return str(value)


def _are_numbers(groups: Counter[str]) -> bool:
    """Can groups be told apart by numbers, or by true and false, whatever the file calls them?"""
    from hplus.files.cells import number

    names = list(groups)
    if set(names) <= {"true", "false"}:
        return True
    values = [number(name) for name in names]
    known = [value for value in values if value is not None and np.isfinite(value)]
    return len(known) == len(names) == len(set(known))


def _left_out(groups: Counter[str], kept: list[str], most: int, nowhere: int) -> dict[str, int]:
    """Events of other groups by reason, and of none."""
    small = {name: n for name, n in groups.items() if n < GROUP_EVENTS}
    more = {name: n for name, n in groups.items() if name not in kept and name not in small}
    found = {
        f"in {counted(len(more), 'group')} beyond the {most} largest": sum(more.values()),
        f"in {counted(len(small), 'group')} with fewer than {GROUP_EVENTS}": sum(small.values()),
        "without a group": nowhere,
    }
    return {reason: n for reason, n in found.items() if n}
