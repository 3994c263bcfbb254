"""EventStudy: a rate of events learned from a file, with all that is needed to use it later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, final

from hplus._checks import Floats, check_choice
from hplus._progress import whole_or_not
from hplus._threads import check_jobs
from hplus.estimators.base import Estimator, check_fitted
from hplus.estimators.intensity import Intensity
from hplus.estimators.prior_parameters import RATE_MODELS, STATISTIC_MODELS
from hplus.estimators.separable import SeparableIntensity
from hplus.files.tables import TableLike, as_table
from hplus.rates.exposure import OverWindow
from hplus.studies.burst_gains import burst_gain
from hplus.studies.checkpoints import scan_with_checkpoints
from hplus.studies.event_facts import event_facts
from hplus.studies.event_samples import MAX_SAMPLE
from hplus.studies.event_summary import EventSummary, summary_of
from hplus.studies.event_weights import WeightScale, weight_scale, weight_unit
from hplus.studies.events import Reading
from hplus.studies.frames import check_frame
from hplus.studies.holdouts import Holdout
from hplus.studies.outlooks import learn_outlook
from hplus.studies.rate_learning import RateLearning
from hplus.studies.repeated_trials import learn_trials, trial_exposure
from hplus.studies.scans import EventScan, scan_events
from hplus.studies.spans import Amount
from hplus.studies.splits import check_split, split_of

if TYPE_CHECKING:
    from hplus.studies.expect import Expected


@final
class EventStudy(Estimator):
    """How often events happen and where, learned from a file or a table.

    >>> import numpy as np
    >>> from hplus.studies.plans import plan
    >>> rng = np.random.default_rng(0)
    >>> shots = {"x": rng.normal(0.0, 8.0, 200), "team": rng.choice(["a", "b"], 200)}
    >>> frame = plan(shots, ["x"], window=(-25, 25), where="team == 'a'")
    >>> study = EventStudy(frame, model="tree").fit(shots)  # or a file, pandas, polars, Arrow
    >>> study.reading_.kept == int(np.sum((shots["team"] == "a") & (np.abs(shots["x"]) <= 25)))
    True

    Parameters
    ----------
    frame : Frame
        Which columns are the axes of which window; see `plan`.
    model : "auto", "exp", "tree", "sos" or "square", default="auto"
        As in `Intensity`; places and times together need one of the first three.
    exposure : Amount, default=None
        How long or how often events were observed; None takes it from the frame's clock, or the
        trials that it names. Trials without events are counted only if they are in it.
    holdout : float, default=0.2
        What is held out to measure how well it is predicted, up to 0.9; 0 for none. With times it
        is the last share of the observation period, so that later events are predicted; with trials
        it is whole trials; a line of times without a cycle, and places alone, are held out at
        random.
    most_dropped : float, default=0.2
        The largest share of rows that may be unusable.
    random_state : int, default=0
    blocks : int, default=1
        2 or more: hold out as many blocks of time, all over the observation period and with a gap
        on both sides, instead of its last part.
    n_jobs : int or None, default=None
        2 or more, or -1 for all cores: the fit to all events and the one that is tested on held-out
        events run at the same time, and files are read by as many threads.
    skip_bad : bool, default=False
        Leave out files and row groups that cannot be read, instead of stopping at the first one.
    updatable : bool, default=False
        Keep what `merge_studies` and `update_study` need, also in the model file: counts in small
        cells, and a sample of the events, which are then as confidential as these.
    checkpoint : str, default=None
        A folder for what was read so far: a fit that was interrupted goes on from there.

    Attributes
    ----------
    model_ : Intensity or SeparableIntensity
        The rate, learned from all events; places and times are learned separately. A pattern, by
        hour of a cycle or by place, that does not predict later events is left out: see the
        `patterns` of `holdout_`. With a cycle the map may change with the time of day or week, if
        that predicts later events: see its `map_by_time`.
    exposure_ : Amount
    reading_ : Reading
        How many rows were read, and why some were dropped.
    holdout_ : Holdout or None
    weights_ : dict or None
        The unit Σw²/Σw of weights, in which their sums vary like counts, the largest one and their
        sum; None without weights.
    summary_ : EventSummary or None
        What is needed to add other events; None unless `updatable`.
    outlook_ : Outlook or None
        What follows the observation period; None without times.
    trials_ : TrialVariation or None
        How counts vary from trial to trial; None without trials, or with fewer than five.
    bursts_ : dict or None
        What a self-exciting rate would gain if the events come in bursts, and the cycle that they
        follow if none was asked for.
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
        blocks: int = 1,
        skip_bad: bool = False,
        updatable: bool = False,
        checkpoint: str | None = None,
    ) -> None:
        self.frame = frame
        self.exposure = exposure
        self.holdout = holdout
        self.most_dropped = most_dropped
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.model = model
        self.blocks = blocks
        self.skip_bad = skip_bad
        self.updatable = updatable
        self.checkpoint = checkpoint

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

    @property
    def _exposure_in_units(self) -> OverWindow:
        """The exposure for events that are counted in the unit of their weights."""
        over, unit = self.exposure_over_window, weight_unit(self)
        return (lambda X: over(X) / unit) if callable(over) else over / unit

    def fit(self, source: TableLike, y: None = None) -> Self:
        """Read the events of files or a table in one pass and learn their rate.

        `source` is what `plan` takes: a path, a pattern, a folder, a list of paths, a data frame,
        an Arrow table or stream, or a dict of arrays.
        """
        with whole_or_not(self):
            self._check_parameters()
            table = as_table(source, skip_bad=self.skip_bad)
            scan = self.new_scan(weight_scale(table, self.frame))
            if self.checkpoint:
                scan_with_checkpoints(table, scan, self.checkpoint, self.n_jobs, self.skip_bad)
            else:
                scan_events(table, scan, self.n_jobs, self.skip_bad)
            self._learn(scan, table.path)
        return self

    def new_scan(self, scale: WeightScale | None = None) -> EventScan:
        """A scan to which the events of tables are to be added; see `learn`."""
        split = split_of(self.frame, float(self.holdout), self.blocks)
        return EventScan(self.frame, split, self.random_state, scale)

    def learn(self, scan: EventScan, file: str) -> Self:
        """Learn the rate from a scan of events, that of a file or files with this name."""
        with whole_or_not(self):
            self._check_parameters()
            self._learn(scan, file)
        return self

    def _learn(self, scan: EventScan, file: str) -> None:
        self._keep(scan, file)
        events, clock = scan.events, self.frame.clock
        if self.frame.trial:
            self.exposure_ = trial_exposure(self.frame, scan.times, self.exposure)
        else:
            self.exposure_ = self.exposure or (Amount(1.0) if clock is None else clock.exposure())
        self.trials_ = learn_trials(self.frame, scan.times, self.exposure_)
        given = (self.model, self._exposure_in_units, self.exposure_.amount, self.random_state)
        changed = None if self.outlook_ is None else self.outlook_.changed
        learned = RateLearning(self.frame, events, *given, changed).learned(self.n_jobs)
        self.model_: Intensity | SeparableIntensity = learned.model
        self.holdout_: Holdout | None = learned.holdout
        times = events.sampled[:, -1]
        found = (self.frame, times, self.holdout_, self.reading_, self.outlook_)
        self.bursts_ = None if self.frame.weight else burst_gain(*found)
        self.made_with_: dict[str, Any] = {}

    def _keep(self, scan: EventScan, file: str) -> None:
        """What is kept of a scan beside the rate."""
        scale = scan.events.scale
        self.weights_: dict[str, float] | None = None if scale is None else scale._asdict()
        self.reading_: Reading = scan.read.reading(file).replace(copies=scan.events.copies)
        self.reading_.check_dropped(self.most_dropped)
        if self.model not in STATISTIC_MODELS and self.reading_.kept > MAX_SAMPLE:
            raise ValueError(
                f"model={self.model!r} takes at most {MAX_SAMPLE} events, got "
                f'{self.reading_.kept}: use model="auto".'
            )
        self.summary_: EventSummary | None = summary_of(scan) if self.updatable else None
        self.outlook_ = learn_outlook(self.frame.clock, scan.times, self.random_state)

    def expect(self, lasting: Amount | str | None = None, **asked: Any) -> list[Expected]:
        """Expected counts with intervals, `study.expect("7d", regions="beats.geojson")`.

        The arguments are those of `hplus.studies.asking.counts_asked`.
        """
        from hplus.studies.asking import counts_asked

        check_fitted(self, "model_")
        return counts_asked(self, lasting, **asked)

    def predict(self, source: TableLike) -> Floats:
        """The rate at each row of a table, (n,); NaN outside the window or where a cell is bad."""
        from hplus.studies.asking import rates_asked

        check_fitted(self, "model_")
        return rates_asked(self, source)

    def fitted_to(self, reading: Reading) -> bool:
        """Was the study fitted to the same events? By their content; of old files, by the name."""
        return self.reading_.same_events(reading)

    def facts(self) -> dict[str, Any]:
        """What the fit found, as numbers and text."""
        return event_facts(self)

    def _check_parameters(self) -> None:
        check_frame(self.frame, self.exposure)
        both = self.frame.region is not None and self.frame.clock is not None
        check_choice("model", self.model, STATISTIC_MODELS if both else RATE_MODELS)
        check_split(self.holdout, self.blocks)
        check_jobs(self.n_jobs)
