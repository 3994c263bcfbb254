"""StreamingIntensity: the rate of events in space and time, learned from a stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

from hplus._checks import Floats, as_floats, check_positive, shown
from hplus.estimators.column_names import check_names
from hplus.estimators.intensity import Intensity
from hplus.kernels import Kernel
from hplus.positivity.exp import GridFunction
from hplus.rates.by_region import rate_unit
from hplus.rates.fitted import FittedRate
from hplus.rates.lazy_parts import is_lazy, learn_lazily
from hplus.rates.statistic import Statistic
from hplus.space import Function
from hplus.streaming.base import StreamingEstimator
from hplus.streaming.budgets import AUTO, AUTO_REFIT, Budget, as_budget
from hplus.streaming.engine.learner import Learner, StreamStatus
from hplus.streaming.grid_answers import GridAnswers
from hplus.streaming.methods import PMD, Method, Refit, Tree, as_method
from hplus.streaming.rate_setup import (
    check_always_given,
    check_parameters,
    default_kernel,
    exposure_given,
    in_box,
    plain_box,
    rate_learner,
    times_given,
)
from hplus.streaming.refit import Snapshot
from hplus.streaming.stepped_rate import SteppedRate
from hplus.streaming.tree_stream import TreeStream
from hplus.windows import Window


@final
class StreamingIntensity(StreamingEstimator):
    """The rate of a Poisson process, learned event by event in bounded memory.

    >>> import numpy as np
    >>> from hplus import Interval, StreamingIntensity
    >>> times = np.random.RandomState(0).beta(2, 5, size=(5000, 1)) * 24
    >>> model = StreamingIntensity(Interval(0, 24, unit="h"))
    >>> model = model.partial_fit(times, exposure=50.0)  # 50 days
    >>> round(float(model.expected_count(Interval(0, 24))), 6)
    100.0

    Parameters
    ----------
    window : Window
        Where events could have occurred, with 1 to 3 dimensions.
    kernel : Kernel or "auto"
        The similarity of log rates at two points. "auto" is a Gaussian whose scale is the longest
        side divided by 25, 18 or 10 in 1, 2 or 3 dimensions: give a kernel if you know better.
        "tree" needs none and accepts none.
    method : str or method
        "tree" (`Tree`) is the batch fit `Intensity(window, model="tree")` of the events so far, at
        every scale, with intervals, in any order of events. "spppot" (`SPPPOT`), "second_order"
        (`SecondOrder`) and "pmd" (`PMD`, on a grid) take steps, so that late events count more: if
        events arrive in order along an axis of the window, use "tree". "refit" (`Refit`) solves the
        batch problem of a smooth rate on a grid.
    budget : "auto" or KOMP
        How many atoms are kept; "auto" is KOMP(0.1, 1000, relative=True), with tolerance 0.03 for
        "refit". "tree" and "pmd" have no atoms and accept no budget.
    forget : float, optional
        Half-life: the weight of an event halves in this time. The time of an event is that in
        `times` (with "tree"), and then events may come in any order. Otherwise time is the exposure
        so far or, without exposure, the number of events so far, and what arrives last counts most.
    """

    snapshot_: Snapshot
    _stream: SteppedRate | TreeStream

    def __init__(
        self,
        window: Window,
        kernel: Kernel | str = "auto",
        method: Method | str = "spppot",
        budget: Budget | str = "auto",
        forget: float | None = None,
    ) -> None:
        self.window = window
        self.kernel = kernel
        self.method = method
        self.budget = budget
        self.forget = forget

    def fit(self, X: Any, y: None = None, *, exposure: Any = None, times: Any = None) -> Self:
        """Discard everything learned so far and learn from the events in order, once."""
        self._reset()
        return self.partial_fit(X, exposure=exposure, times=times)

    def partial_fit(
        self, X: Any, y: None = None, *, exposure: Any = None, times: Any = None
    ) -> Self:
        """Learn from events X (n, d), one at a time; X and times may be of Dask.

        `exposure` is the time of observation: one number, which is divided evenly between the
        events, or one for each event, the time since the event before. With an exposure, X may be
        empty. `times` (n,) say when each event happened, if `forget` is to go by that: in its unit,
        counted from any moment. With both, observation is taken to have ended with the latest event
        and to have had no breaks.
        """
        if is_lazy(X):
            return learn_lazily(self, X, exposure, times)
        if fresh := not hasattr(self, "state_"):
            check_parameters(self.window, self.kernel, self.method, self.budget)
        else:
            self._require_learned()
        X = self._events(X, empty=exposure is not None and times is None)
        E = exposure_given(exposure, len(X), fresh)
        t = times_given(times, len(X), as_method(self.method), self.forget)
        if fresh:
            self.exposed_, self.n_features_in_ = E is not None, self.window.dimension
            self._start(timed=t is not None)
        check_always_given("exposure", exposure, self.exposed_)
        check_always_given("times", times, getattr(self, "timed_", False))
        stream = self._current()
        try:
            if len(X) == 0 and E is not None:
                stream.advance(float(np.sum(E)))
            else:
                stream.learn(X, E, t)
        finally:  # arrays may have grown before an error
            self._record(stream)
        return self

    def learn_one(self, x: Any, *, exposure: Any = None, time: Any = None) -> None:
        """Learn from one event at a `time`; `exposure` is the time since the event before."""
        plain = exposure is None and time is None and hasattr(self, "state_")
        if not plain or self.exposed_ or getattr(self, "timed_", False):
            row = np.reshape(as_floats("x", x), (1, -1))
            self.partial_fit(row, exposure=exposure, times=None if time is None else [time])
            return
        row = np.array(as_floats("x", x), ndmin=2)
        if not self._inside(row):
            row = np.array(self.window.require("x", np.reshape(row, (1, -1))))
        try:
            self._current().learn_one(row)
        finally:
            self._record(self._current())

    def predict(self, X: Any) -> Floats:
        """The rate at points of the window, shape (n,), never negative."""
        check_names(self, X, reset=False)
        return self._answers().predict(X)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """Bounds (low, high) that contain the rate at each point with that probability ("tree")."""
        return self._answers().predict_interval(X, level)

    def expected_count(self, regions: Window | Sequence[Window], *, exposure: float = 1.0) -> Any:
        """The expected number of events in a region, or in each of several: exposure·∫λ."""
        return self._answers().expected_count(regions, exposure=exposure)

    def count_interval(
        self, regions: Window | Sequence[Window], level: float = 0.9, *, exposure: float = 1.0
    ) -> tuple[Any, Any]:
        """Bounds (low, high) that contain the count of a region with that probability ("tree")."""
        return self._answers().count_interval(regions, level, exposure=exposure)

    def score(self, X: Any, y: None = None) -> float:
        """The mean of log(λ/∫λ) over events; independent of exposure, higher is better."""
        return self._answers().score(X)

    def sample(self, n_paths: int = 1, random_state: Any = None) -> list[Floats]:
        """Simulated patterns of events in one unit of exposure, (n_i, d) each."""
        return self._answers().sample(n_paths, random_state)

    def peak(self) -> tuple[Floats, float]:
        """The point of the window with the highest rate, shape (d,), and the rate there."""
        return self._answers().peak()

    @property
    def rate_(self) -> GridFunction | FittedRate:
        """The current rate: e^z at the nodes of a fine grid, or that of `Intensity` for "tree"."""
        return self._answers().rate_

    @property
    def statistic_(self) -> Statistic:
        """The events in cells, for "tree": what `Intensity.fit` takes, to be added to others."""
        self._require_learned()
        stream = self._current()
        if not isinstance(stream, TreeStream):
            raise AttributeError(f'statistic_ needs method="tree", got {shown(self.method)}.')
        return stream.statistic()

    @property
    def effective_events_(self) -> float:
        """The number of events, each of which counts as much as `forget` has left of it."""
        self._require_learned()
        return self._current().total

    @property
    def unit_(self) -> str:
        """The unit of the rate, such as "1/km²"; "" if the window has none."""
        return rate_unit(self.window)

    @property
    def n_atoms_(self) -> int:
        """The number of atoms without the background, of nodes for PMD, of cells for Tree."""
        return self.status_.atoms

    @property
    def dictionary_(self) -> Floats:
        """The atoms, shape (n_atoms_, d)."""
        return self._stepped("dictionary_", Tree).learner.dictionary

    @property
    def function_(self) -> Function:
        """z, the log rate up to a constant; the centers of the background come first."""
        stream = self._stepped("function_", Tree, PMD)
        return Function(stream.learner.kernel, *stream.expansion())

    @property
    def status_(self) -> StreamStatus:
        """Counts of what has happened in the stream."""
        return self._current().status

    def _start(self, *, timed: bool) -> None:
        """A stream that has seen no event, with the parameters that it belongs to."""
        if isinstance(as_method(self.method), Tree):
            self._stream = stream = self._new_trees()
            self.timed_, self.state_ = timed, stream.saved()
            self._remember(adjustable=())  # counts are weighted by what is forgotten
        else:
            self._begin([self._new_learner()])

    def _current(self) -> SteppedRate | TreeStream:
        """The stream in use, restored from `state_` if there is none yet."""
        stream = self.__dict__.get("_stream")
        if stream is None:
            self._require_learned()
            method = as_method(self.method)
            if isinstance(method, Tree):
                stream = self._new_trees().restored(self.state_[0])
            else:
                known = self._live()[0], self.__dict__.get("snapshot_")
                stream = SteppedRate(self.window, method, *known)
            self._stream = stream
        return stream

    def _record(self, stream: SteppedRate | TreeStream) -> None:
        """Keep what is saved up to date; trees write it when it is asked for."""
        if isinstance(stream, SteppedRate):
            self._keep([stream.learner])
            if stream.last is not None:
                self.snapshot_ = stream.last

    def _answers(self) -> GridAnswers | Intensity:
        """The present rate, which can be asked."""
        self._require_learned()
        return self._current().answers(self.exposed_)

    def _stepped(self, what: str, *without: type[Method]) -> SteppedRate:
        """The stream, for what only methods with atoms have."""
        self._require_learned()
        if not isinstance(stream := self._current(), SteppedRate) or isinstance(
            stream.method, without
        ):
            got = type(as_method(self.method)).__name__
            raise AttributeError(f"{what} needs a method with atoms, got {got}: use rate_.")
        return stream

    def _new_trees(self) -> TreeStream:
        method = as_method(self.method)
        assert isinstance(method, Tree)
        return TreeStream(self.window, method, self._half_life())

    def _half_life(self) -> float:
        return math.inf if self.forget is None else check_positive("forget", self.forget)

    def _new_learner(self) -> Learner:
        method, kernel = as_method(self.method), self.kernel
        assert not isinstance(method, Tree)
        kernel = kernel if isinstance(kernel, Kernel) else default_kernel(self.window)
        budget = as_budget(self.budget, AUTO_REFIT if isinstance(method, Refit) else AUTO)
        return rate_learner(method, kernel, self.window, budget, self._half_life())

    def _events(self, X: Any, *, empty: bool) -> Floats:
        if empty and np.size(X) == 0:
            return np.zeros((0, self.window.dimension))
        check_names(self, X, reset=not hasattr(self, "n_features_in_"))
        X = self.window.require("X", X)
        if len(X) == 0:
            raise ValueError("X must hold at least one event, got 0: give an exposure too.")
        return np.require(X, requirements=("C", "W"))

    def _inside(self, row: Floats) -> bool:
        """Is the point in the window? A quick check for boxes; False for other windows."""
        if "_box" not in self.__dict__:
            self._box = plain_box(self.window)
        return in_box(self._box, row)
