"""ExcitationStudy: a self-exciting rate learned from a file, with all that is needed later."""

from __future__ import annotations

import warnings
from typing import Any, Self, final

import numpy as np

from hplus._checks import check_choice, check_number
from hplus._progress import whole_or_not
from hplus.estimators.base import Estimator
from hplus.estimators.event_rows import TiedTimesWarning, tied_words
from hplus.estimators.prior_parameters import STATISTIC_MODELS
from hplus.estimators.self_exciting import SelfExciting
from hplus.files.tables import TableLike
from hplus.storage.files import Json
from hplus.studies.events import Reading
from hplus.studies.excitation_facts import excitation_facts
from hplus.studies.excitation_holdouts import ExcitationHoldout, predicted_ahead
from hplus.studies.frames import Frame, check_frame
from hplus.studies.marked_events import MarkedEvents, check_observed, mark_advice, read_marked
from hplus.studies.spans import CYCLES, MONDAY, SECONDS

LARGEST_HOLDOUT = 0.9
"""The largest share of the observation period that may be held out."""


MOST_DISTORTED = 1.5
"""How much longer a distance may be on the map, near its edge, before a warning says so."""


@final
class ExcitationStudy(Estimator):
    """How often events happen when each one can trigger others, learned from a file.

    Parameters
    ----------
    frame : Frame
        Which columns are the axes of which window; see `plan`. It must have times, which are not
        folded into a cycle, and either no other column or two.
    mark, kind : str
        Columns with a number for each event, such as a magnitude, and with its type; "" for none.
    cycle : "", "day" or "week"
        A cycle that may multiply the background; it is kept only if it predicts later cycles.
    background : "auto", "exp" or "tree", default="auto"
        As in `SelfExciting`.
    holdout : float, default=0.2
        The last share of the observation period, which is predicted by a rate learned from the
        rest; 0 for none.
    most_dropped : float, default=0.2
        The largest share of rows that may be unusable. Rows before the observation period are used:
        they are history.
    random_state : int, default=0
    n_jobs : int or None, default=None
        As in `SelfExciting`.

    Attributes
    ----------
    model_ : SelfExciting
        Learned from all events; times are in the unit of the frame's clock, from its start.
    reading_ : Reading
        How many rows were read, and why some were dropped.
    history_events_ : int
        How many of the events are from before the observation period.
    holdout_ : ExcitationHoldout or None
    made_with_ : dict
        The command, versions and seconds.
    """

    def __init__(
        self,
        frame: Any,
        mark: str = "",
        kind: str = "",
        cycle: str = "",
        background: str = "auto",
        holdout: float = 0.2,
        most_dropped: float = 0.2,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.frame = frame
        self.mark = mark
        self.kind = kind
        self.cycle = cycle
        self.background = background
        self.holdout = holdout
        self.most_dropped = most_dropped
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, source: TableLike, y: None = None) -> Self:
        """Read the events of a file or table in one pass, and how they trigger each other.

        `source` is what `plan` takes: a path, a data frame, an Arrow table or a dict of arrays.
        """
        with whole_or_not(self):
            self._check_parameters()
            events = read_marked(source, self.frame, self.mark, self.kind)
            self.reading_: Reading = events.reading
            advice = mark_advice(self.mark, self.reading_.dropped)
            self.reading_.check_dropped(self.most_dropped, advice)
            check_observed(events, self.frame)
            self.history_events_ = int((events.X[:, -1] < 0.0).sum())
            self.model_: SelfExciting = self._learned(events)
            self.holdout_: ExcitationHoldout | None = None
            if self.holdout > 0.0:
                self.holdout_ = predicted_ahead(self._unfitted(), events, self.holdout)
            self.made_with_: Json = {}
        return self

    def fitted_to(self, reading: Reading) -> bool:
        """Was the study fitted to the same events?"""
        own = self.reading_
        return (reading.kept, reading.fingerprint) == (own.kept, own.fingerprint)

    def facts(self) -> Json:
        """What the fit found, as numbers and text."""
        return excitation_facts(self)

    def _unfitted(self) -> SelfExciting:
        clock = self.frame.clock
        since_monday = (clock.start - MONDAY) / SECONDS[clock.unit]
        return SelfExciting(
            self.frame.window,
            background=self.background,
            cycles=(self.cycle,) if self.cycle else (),
            origin=-since_monday % (CYCLES["week"] / SECONDS[clock.unit]),
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _learned(self, events: MarkedEvents) -> SelfExciting:
        _warn_tied(events)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TiedTimesWarning)
            return self._unfitted().fit(events.X, marks=events.marks, types=events.types)

    def _check_parameters(self) -> None:
        check_frame(self.frame, None)
        clock = self.frame.clock
        if clock is None:
            raise ValueError("a self-exciting rate needs a column of times: give time=.")
        if clock.cycle:
            raise ValueError(
                f"cycle must not be in the frame of a self-exciting rate, got {clock.cycle!r}: the "
                "order of events matters, and folding loses it. Give cycle= to the study."
            )
        if self.frame.weight:
            raise ValueError(
                "weight must be left out of the frame of a self-exciting rate, got "
                f"{self.frame.weight!r}: give it as mark=, by which events trigger more or fewer."
            )
        _warn_distorted(self.frame)
        check_choice("background", self.background, STATISTIC_MODELS)
        check_choice("cycle", self.cycle, ("", *CYCLES))
        if not 0.0 <= check_number("holdout", self.holdout) <= LARGEST_HOLDOUT:
            raise ValueError(
                f"holdout must be a share from 0 to {LARGEST_HOLDOUT}, got {self.holdout}: the fit "
                "needs the rest."
            )


def _warn_tied(events: MarkedEvents) -> None:
    """Warn of ties in terms of the file; copies, which facts tell of, are no ties."""
    times = events.distinct().X[:, -1]
    if said := tied_words(times[times >= 0.0]):
        warnings.warn(
            f"{said}: if times are rounded, spread them in the file at random over what they stand "
            "for, such as dates over their days.",
            TiedTimesWarning,
            stacklevel=5,
        )


def _warn_distorted(frame: Frame) -> None:
    """Warn of a map on which distances are wrong near the edge."""
    if frame.place is None or frame.region is None:
        return
    latitudes = frame.own(np.array(frame.region.bounds())[:, :2])[:, 1]
    least = max(float(np.cos(np.radians(latitudes)).min()), 1e-3)
    factor = float(np.cos(np.radians(frame.place.parallel))) / least
    if factor > MOST_DISTORTED:
        warnings.warn(
            f"Distances are up to {min(factor, 100.0):.2g} times too long in the north or south of "
            "this window, and so is what triggers what: choose a window with fewer degrees of "
            "latitude.",
            UserWarning,
            stacklevel=4,
        )
