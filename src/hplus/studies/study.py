"""EventStudy: a rate of events learned from a file, with all that is needed to use it again."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self, final

import numpy as np

from hplus._checks import Floats, check_count, check_number
from hplus._progress import whole_or_not
from hplus._values import Value, value
from hplus.estimators.base import Estimator
from hplus.estimators.intensity import Intensity
from hplus.estimators.separable import SeparableIntensity
from hplus.evaluation import Check, EdgeCorrectedKDE, check, paired
from hplus.evaluation.residuals import Calibration, Quadrats, Rescaling, Thinned
from hplus.rates.statistic import Statistic
from hplus.storage import storable
from hplus.studies.events import Events, Reading, read_events
from hplus.studies.frames import Frame
from hplus.studies.spans import Amount, Clock, phases
from hplus.tables.source import open_table
from hplus.windows import Interval

FEWEST = 30
"""Events below which none are held out: they would say nothing."""

MOST_HELD = 0.9
"""Share of the events that may be held out."""

for _part in (Check, Quadrats, Calibration, Thinned, Rescaling):
    storable(_part)


@storable
@final
@value
class Holdout(Value):
    """How well a rate learned from some events predicts others, held out at random.

    `gain` and `kde_gain` are mean log(λ(x)∫E/∫λE) in nats per event, E the exposure: 0 for a
    constant rate.
    `over_kde` is the mean difference, with its standard error. `check` holds the goodness of fit of
    the rate learned from the others, on the events held out.
    """

    events: int
    share: float
    gain: float
    gain_error: float
    kde_gain: float
    over_kde: float
    over_kde_error: float
    check: Check


@storable
@final
class EventStudy(Estimator):
    """How often events happen and where, learned from a file.

    Parameters
    ----------
    frame : Frame
        Which columns are the axes of which window; `plan` makes one.
    exposure : Amount, default=None
        How long or how often the window was watched; None asks the frame's clock.
    holdout : float, default=0.2
        Share of the events, up to 0.9, that are held out to see how well others are predicted; 0
        for none.
    most_dropped : float, default=0.2
        Share of the rows that may be unusable.
    random_state : int, default=0
    n_jobs : int or None, default=None
        2 or more, or -1 for all cores: the fit of all events and the one that is held against the
        events held out run at the same time.

    Attributes
    ----------
    model_ : Intensity or SeparableIntensity
        The rate, learned from all events; places and times are learned apart.
    exposure_ : Amount
    reading_ : Reading
        What was read and dropped.
    holdout_ : Holdout or None
    made_with_ : dict
        Command, versions and seconds, for the record.
    """

    def __init__(
        self,
        frame: Any,
        exposure: Any = None,
        holdout: float = 0.2,
        most_dropped: float = 0.2,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.frame = frame
        self.exposure = exposure
        self.holdout = holdout
        self.most_dropped = most_dropped
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def exposure_over_window(self) -> Any:
        """How long or how often the window was watched: a number or, with a cycle, a function.

        Of points (n, d), as `Intensity.fit` and `hplus.evaluation.check` take it: of a week that
        was watched in part, some days count more often.
        """
        clock = self.frame.clock
        if clock is not None and clock.cycle:
            return partial(_watched, clock)
        return self.exposure_.amount

    def fit(self, path: str, y: None = None) -> Self:
        """Read the events of a file in one pass and learn their rate."""
        with whole_or_not(self):
            self._check_parameters()
            events = self._read(path)
            self.exposure_ = self._watched()
            learned, everything = events.learned.parts, events.learned.joined(events.held)
            enough = events.learned.events >= FEWEST and events.held.events >= 2
            kernels = tuple(self._smoothness(part) for part in (learned if enough else everything))
            tasks: list[Callable[[], Any]] = [partial(self._learned, everything, kernels)]
            if enough:
                tasks.append(partial(self._held_out, events, kernels))
            done = _at_once(tasks, self.n_jobs)
            self.model_: Intensity | SeparableIntensity = done[0]
            self.holdout_: Holdout | None = done[1] if enough else None
            self.made_with_: dict[str, Any] = {}
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.frame, Frame):
            raise TypeError(f"frame must be a Frame, got {self.frame!r:.60}.")
        if not 0.0 <= check_number("holdout", self.holdout) <= MOST_HELD:
            raise ValueError(
                f"holdout must be a share from 0 to {MOST_HELD}, got {self.holdout}: the rest is "
                "learned from."
            )
        if self.n_jobs not in (None, -1):
            check_count("n_jobs", self.n_jobs)

    def _read(self, path: str) -> Events:
        table = open_table(path)
        events = Events(self.frame, float(self.holdout), self.random_state)
        self.reading_: Reading = read_events(table, self.frame, events)
        self.reading_.refuse_beyond(self.most_dropped)
        return events

    def _watched(self) -> Amount:
        clock = self.frame.clock
        if self.exposure is None:
            return Amount(1.0) if clock is None else clock.watched()
        if clock is not None and clock.cycle:
            raise ValueError(
                f"exposure must be left out with a cycle, which knows how many {clock.cycle}s were "
                f"watched, got {self.exposure}."
            )
        return self.exposure

    def _smoothness(self, statistic: Statistic) -> Any:
        """What is to be learned of priors, once for both fits."""
        return Intensity(statistic.window, random_state=self.random_state).learn_mixture(statistic)

    def _learned(
        self, statistics: tuple[Statistic, ...], kernels: tuple[Any, ...]
    ) -> Intensity | SeparableIntensity:
        """The rate of events under priors that are known."""
        window, seed, exposure = self.frame.window, self.random_state, self.exposure_over_window
        if len(statistics) == 1:
            rate = Intensity(window, *kernels, random_state=seed)
            return rate.fit(*statistics, exposure=exposure)
        both = SeparableIntensity(window, kernels=kernels, random_state=seed)
        return both.fit(statistics, exposure=exposure)

    def _held_out(self, events: Events, kernels: tuple[Any, ...]) -> Holdout:
        """How well the events that are learned from predict the others."""
        model = self._learned(events.learned.parts, kernels)
        X = events.unseen.X
        # beside a constant rate, of which more is seen where it was watched more often
        ours = _log_shapes(model, X) - np.log(self._mean_exposure(model))
        theirs = _kde_log_shapes(events, X) - np.log(self._exposures(X))
        return Holdout(
            events.held.events,
            float(self.holdout),
            *paired(ours, np.zeros(len(X))),
            float(theirs.mean()),
            *paired(ours, theirs),
            check(model, X, exposure=self.exposure_over_window, random_state=self.random_state),
        )

    def _exposures(self, X: Floats) -> Any:
        """E(x)|W|/∫E at each event, (n,): how often it was watched beside the average."""
        exposure = self.exposure_over_window
        return exposure(X) / self.exposure_.amount if callable(exposure) else 1.0

    def _mean_exposure(self, model: Intensity | SeparableIntensity) -> float:
        """∫λE|W|/(∫λ∫E): the same for the events of a rate, on average."""
        frame, clock = self.frame, self.frame.clock
        if clock is None or not clock.cycle:
            return 1.0
        (_, _, whole), *rest = phases(clock, clock.start, clock.end - clock.start)
        times = [Interval(low, high) for low, high, _ in rest]
        parts = times if frame.region is None else [frame.region * time for time in times]
        seen = whole + sum(model.expected_count(parts)) / model.expected_count(model.window)
        return float(seen / self.exposure_.amount)


def _kde_log_shapes(events: Events, X: Floats) -> Floats:
    """Of a kernel density estimate, or the product of two if places and times are learned apart."""
    logs = np.zeros(len(X))
    start = 0
    for part in events.learned.parts:
        columns = slice(start, start + part.window.dimension)
        kde = EdgeCorrectedKDE(part.window).fit(events.known.X[:, columns])
        # it may be 0 where an event is: it is then as bad as can be told
        logs += np.maximum(_log_shapes(kde, X[:, columns]), np.log(np.finfo(float).tiny))
        start = columns.stop
    return logs


def _watched(clock: Clock, X: Floats) -> Floats:
    """How often the hour of each point was watched, shape (n,)."""
    return clock.times_watched(X[:, -1])


def _at_once(tasks: list[Callable[[], Any]], n_jobs: int | None) -> list[Any]:
    """What tasks return, the first being done by this thread, which may show its progress.

    Threads will do: most of the time goes into FFTs, which let others run.
    """
    if n_jobs in (None, 1):
        return [task() for task in tasks]
    with ThreadPoolExecutor(1) as pool:
        others = [pool.submit(task) for task in tasks[1:]]
        return [tasks[0](), *(other.result() for other in others)]


def _log_shapes(rate: Any, X: Floats) -> Floats:
    """log(λ(x)|W|/∫λ) at each event, shape (n,)."""
    with np.errstate(divide="ignore"):
        logs = np.log(rate.predict(X))
    return logs - np.log(rate.expected_count(rate.window)) + np.log(rate.window.volume)
