"""EventStudy: a rate of events learned from a file, with all that is needed to use it later."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self, final

import numpy as np

from hplus._checks import Floats, check_choice, check_count, check_number
from hplus._progress import whole_or_not
from hplus._values import Value, value
from hplus.estimators.base import Estimator
from hplus.estimators.intensity import Intensity
from hplus.estimators.prior_parameters import RATE_MODELS, STATISTIC_MODELS
from hplus.estimators.separable import SeparableIntensity
from hplus.evaluation import AdaptiveKDE, Check, best_kde, check, paired
from hplus.evaluation.scores import Rate
from hplus.files.tables import Table, open_table
from hplus.rates.prior import Mixture
from hplus.rates.statistic import Statistic
from hplus.studies.event_facts import event_facts, model_parts
from hplus.studies.events import MAX_SAMPLE, Reading, SplitEvents, added, read_events
from hplus.studies.frames import check_frame
from hplus.studies.outlooks import Occurrences, learn_outlook
from hplus.studies.spans import Amount, phases
from hplus.windows import Interval, Window

MIN_EVENTS = 30
"""With fewer events none are held out: they would tell nothing."""

SMOOTH_MODELS = ("auto", "exp")
"""Models with a smooth field, whose priors are learned."""

MAX_HOLDOUT = 0.9
"""The largest share of events that may be held out."""


@final
@value
class Holdout(Value):
    """How well a rate learned from some events predicts others, held out at random.

    `gain` and `kde_gain` are mean log(λ(x)∫E/∫λE) in nats per event, E the exposure: 0 for a
    constant rate.
    `over_kde` is the mean difference, with its standard error, and `kde` says which kernel density
    estimate that was: the one that predicted best in cross-validation. `check` is the goodness of
    fit of the rate learned from the others, on the held-out events.
    """

    events: int
    share: float
    gain: float
    gain_error: float
    kde_gain: float
    over_kde: float
    over_kde_error: float
    check: Check
    kde: str = ""


@final
class EventStudy(Estimator):
    """How often events happen and where, learned from a file.

    Parameters
    ----------
    frame : Frame
        Which columns are the axes of which window; see `plan`.
    model : "auto", "exp", "tree", "sos" or "square", default="auto"
        As in `Intensity`; places and times together need one of the first three.
    exposure : Amount, default=None
        How long or how often events were observed; None takes it from the frame's clock.
    holdout : float, default=0.2
        Share of the events, up to 0.9, that are held out to measure how well they are predicted; 0
        for none.
    most_dropped : float, default=0.2
        The largest share of rows that may be unusable.
    random_state : int, default=0
    n_jobs : int or None, default=None
        2 or more, or -1 for all cores: the fit to all events and the one that is tested on held-out
        events run at the same time.

    Attributes
    ----------
    model_ : Intensity or SeparableIntensity
        The rate, learned from all events; places and times are learned separately.
    exposure_ : Amount
    reading_ : Reading
        How many rows were read, and why some were dropped.
    holdout_ : Holdout or None
    outlook_ : Outlook or None
        What follows the observation period; None without times.
    made_with_ : dict
        The command, versions and seconds.
    """

    def __init__(
        self,
        frame: Any,
        exposure: Any = None,
        holdout: float = 0.2,
        most_dropped: float = 0.2,
        random_state: int = 0,
        n_jobs: int | None = None,
        model: str = "auto",
    ) -> None:
        self.frame = frame
        self.exposure = exposure
        self.holdout = holdout
        self.most_dropped = most_dropped
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.model = model

    @property
    def exposure_over_window(self) -> Any:
        """The exposure: a number or, with a cycle, a function of points (n, d).

        As `Intensity.fit` and `hplus.evaluation.check` take it: in a number of weeks that is not
        whole, some days were observed more often.
        """
        clock = self.frame.clock
        if clock is not None and clock.cycle:
            return lambda X: clock.exposure_at(X[:, -1])
        return self.exposure_.amount

    def fit(self, path: str | Table, y: None = None) -> Self:
        """Read the events of a file in one pass and learn their rate."""
        with whole_or_not(self):
            self._check_parameters()
            events = self._read(path)
            clock = self.frame.clock
            self.exposure_ = self.exposure or (Amount(1.0) if clock is None else clock.exposure())
            learned, everything = events.learned, added(events.learned, events.held)
            enough = learned[0].events >= MIN_EVENTS and events.held[0].events >= 2
            priors = tuple(map(self._priors, learned if enough else everything))
            X = np.concatenate([events.learned_sample.X, events.held_sample.X])
            tasks: list[Callable[[], Any]] = [partial(self._learned, everything, X, priors)]
            if enough:
                tasks.append(partial(self._held_out, events, priors))
            done = _at_once(tasks, self.n_jobs)
            self.model_: Intensity | SeparableIntensity = done[0]
            self.holdout_: Holdout | None = done[1] if enough else None
            self.made_with_: dict[str, Any] = {}
        return self

    def facts(self) -> dict[str, Any]:
        """What the fit found, as numbers and text."""
        return event_facts(self)

    def _check_parameters(self) -> None:
        check_frame(self.frame, self.exposure)
        check_choice("model", self.model, RATE_MODELS)
        if not 0.0 <= check_number("holdout", self.holdout) <= MAX_HOLDOUT:
            raise ValueError(
                f"holdout must be a share from 0 to {MAX_HOLDOUT}, got {self.holdout}: the fit "
                "needs the rest."
            )
        if self.n_jobs not in (None, -1):
            check_count("n_jobs", self.n_jobs)

    def _read(self, path: str | Table) -> SplitEvents:
        table = path if isinstance(path, Table) else open_table(path)
        events = SplitEvents(self.frame, float(self.holdout), self.random_state)
        times = Occurrences(self.frame)
        self.reading_: Reading = read_events(table, self.frame, events.add, times.add)[0]
        self.reading_.check_dropped(self.most_dropped)
        if self.model not in STATISTIC_MODELS and self.reading_.kept > MAX_SAMPLE:
            raise ValueError(
                f"model={self.model!r} takes at most {MAX_SAMPLE} events, got "
                f'{self.reading_.kept}: use model="auto".'
            )
        self.outlook_ = learn_outlook(self.frame.clock, times, self.random_state)
        return events

    def _priors(self, statistic: Statistic) -> Mixture | str:
        """The priors of the smooth field, learned once for both fits."""
        if self.model not in SMOOTH_MODELS:
            return "auto"
        return Intensity(statistic.window, random_state=self.random_state).learn_mixture(statistic)

    def _learned(
        self, statistics: tuple[Statistic, ...], X: Floats, priors: tuple[Mixture | str, ...]
    ) -> Intensity | SeparableIntensity:
        """The rate of events under known priors, from their statistics or the events X (n, d)."""
        options: dict[str, Any] = {"model": self.model, "random_state": self.random_state}
        window, exposure = self.frame.window, self.exposure_over_window
        if len(statistics) == 2:
            both = SeparableIntensity(window, **options)
            return both.fit(statistics, exposure=exposure, priors=priors)
        rate = Intensity(window, **options)
        if self.model in STATISTIC_MODELS:
            return rate.fit(statistics[0], exposure=exposure, priors=priors[0])
        return rate.fit(X, exposure=exposure)

    def _held_out(self, events: SplitEvents, priors: tuple[Mixture | str, ...]) -> Holdout:
        """How well the rate of the other events predicts the held-out ones."""
        model = self._learned(events.learned, events.learned_sample.X, priors)
        rng = np.random.RandomState(self.random_state)
        X, others = (
            spread_positions(model, sample.X, rng)
            for sample in (events.held_sample, events.learned_sample)
        )
        # compared with a constant rate, which gives more events where the exposure is larger
        ours = _log_shapes(model, X) - np.log(self._mean_exposure(model))
        theirs, kde = _kde_log_shapes([part.window for part in events.learned], others, X)
        theirs -= np.log(self._exposures(X))
        return Holdout(
            events.held[0].events,
            float(self.holdout),
            *paired(ours, np.zeros(len(X))),
            float(theirs.mean()),
            *paired(ours, theirs),
            check(model, X, exposure=self.exposure_over_window, random_state=self.random_state),
            kde,
        )

    def _exposures(self, X: Floats) -> Any:
        """E(x)|W|/∫E at each event, (n,): the exposure relative to its average."""
        exposure = self.exposure_over_window
        return exposure(X) / self.exposure_.amount if callable(exposure) else 1.0

    def _mean_exposure(self, model: Intensity | SeparableIntensity) -> float:
        """∫λE|W|/(∫λ∫E): its average over the events of a rate."""
        frame, clock = self.frame, self.frame.clock
        if clock is None or not clock.cycle:
            return 1.0
        (_, _, whole), *rest = phases(clock, clock.start, clock.end - clock.start)
        times = [Interval(low, high) for low, high, _ in rest]
        parts = times if frame.region is None else [frame.region * time for time in times]
        seen = whole + sum(model.expected_count(parts)) / model.expected_count(model.window)
        return float(seen / self.exposure_.amount)


def spread_positions(
    model: Intensity | SeparableIntensity, X: Floats, rng: np.random.RandomState
) -> Floats:
    """Events X (n, d) moved within the step of the positions that a model was learned from.

    Below it likelihoods of different models say nothing.
    """
    d, parts = 0, []
    for part in model_parts(model).values():
        columns = X[:, d : (d := d + part.window.dimension)]
        positions = getattr(part, "positions_", None)
        parts.append(columns if positions is None else positions.spread(part.window, columns, rng))
    return np.hstack(parts)


def _kde_log_shapes(windows: list[Window], events: Floats, X: Floats) -> tuple[Floats, str]:
    """Those of a kernel density estimate, or of the product of two for places and times; which."""
    logs, start, kinds = np.zeros(len(X)), 0, []
    for window in windows:
        columns = slice(start, start + window.dimension)
        kde = best_kde(window, events[:, columns])
        logs += _log_shapes(kde, X[:, columns])
        kinds.append("adaptive bandwidth" if isinstance(kde, AdaptiveKDE) else "fixed bandwidth")
        start = columns.stop
    if len(set(kinds)) == 1:
        return logs, kinds[0]
    return logs, f"{kinds[0]} for places, {kinds[1]} for times"


def _at_once(tasks: list[Callable[[], Any]], n_jobs: int | None) -> list[Any]:
    """What tasks return; the first runs in this thread, which may show its progress.

    Threads suffice: most of the time is spent in FFTs, which release the GIL.
    """
    if n_jobs in (None, 1):
        return [task() for task in tasks]
    with ThreadPoolExecutor(1) as pool:
        others = [pool.submit(task) for task in tasks[1:]]
        return [tasks[0](), *(other.result() for other in others)]


def _log_shapes(rate: Rate, X: Floats) -> Floats:
    """log(λ(x)|W|/∫λ) at each event, shape (n,)."""
    with np.errstate(divide="ignore"):
        logs = np.log(rate.predict(X))
    return logs - np.log(rate.expected_count(rate.window)) + np.log(rate.window.volume)
