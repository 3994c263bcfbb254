"""StreamingIntensity: the rate of events in space and time, learned from a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
from sklearn.utils import check_random_state

from hplus._checks import Floats, as_floats, check_count, check_finite, check_positive, shown
from hplus.kernels import Kernel
from hplus.positivity.exp import GridFunction
from hplus.rates.by_region import as_regions, one_or_all, rate_unit
from hplus.space import Function
from hplus.streaming.base import UNIT_GAP, StreamingEstimator
from hplus.streaming.budgets import AUTO, AUTO_REFIT, Budget, as_budget
from hplus.streaming.engine.atoms import CURRENT
from hplus.streaming.engine.layout import EVENTS, EXPOSURE, SEEN
from hplus.streaming.engine.learner import Learner, StreamStatus
from hplus.streaming.engine.nodes import nodes_within
from hplus.streaming.methods import PMD, Method, Refit, as_method
from hplus.streaming.rate_setup import (
    RATE_RESOLUTION,
    REFIT_RESOLUTION,
    check_parameters,
    default_kernel,
    density,
    pmd_grid,
    rate_learner,
)
from hplus.streaming.refit import Snapshot, refitted, snapshot
from hplus.windows import Window

LARGEST_DELAY = 32
"""Refit predicts from all events but the last, at most one in this many."""


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
    method : str or method
        "spppot" (`SPPPOT`), "second_order" (`SecondOrder`), "pmd" (`PMD`, on a grid), or "refit"
        (`Refit`), which is as accurate as a batch fit and slower to predict. All but "refit" take
        steps, so that late events count more: if events arrive in order along an axis of the
        window, as they do if that axis is time, use "refit".
    budget : "auto" or KOMP
        How many atoms are kept; "auto" is KOMP(0.1, 1000, relative=True), with tolerance 0.03 for
        "refit". Not used by "pmd", which has a grid.
    forget : float, optional
        Half-life: events count half as much after this much exposure, or after this many events if
        no exposure is given.
    """

    snapshot_: Snapshot

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

    def fit(self, X: Any, y: None = None, *, exposure: Any = None) -> Self:
        """Discard everything learned so far and learn from the events in order, once."""
        self._reset()
        return self.partial_fit(X, exposure=exposure)

    def partial_fit(self, X: Any, y: None = None, *, exposure: Any = None) -> Self:
        """Learn from events X (n, d), one at a time.

        `exposure` is the time of observation: one number, which is divided evenly between the
        events, or one for each event, the time since the event before. With an exposure, X may be
        empty.
        """
        fresh = not hasattr(self, "state_")
        if fresh:
            check_parameters(self.window, self.kernel, self.method, self.budget)
        else:
            self._require_learned()
        X = self._events(X, empty=exposure is not None)
        gaps = self._gaps(len(X), exposure)
        if fresh:
            self.exposed_, self.n_features_in_ = exposure is not None, self.window.dimension
            self._begin([self._new_learner()])
        elif self.exposed_ != (exposure is not None):
            raise ValueError(
                "exposure must be given in every call or in none, got "
                f"{shown(exposure)} after calls {'with' if self.exposed_ else 'without'} it."
            )
        (learner,) = self._live()
        if len(X) == 0:
            learner.advance(float(np.sum(as_floats("exposure", exposure))))
        self._learn(learner, X, gaps)
        return self

    def learn_one(self, x: Any, *, exposure: Any = None) -> None:
        """Learn from one event; `exposure` is the time since the event before."""
        if not hasattr(self, "state_") or exposure is not None or self.exposed_:
            self.partial_fit(np.reshape(as_floats("x", x), (1, -1)), exposure=exposure)
            return
        row = np.array(as_floats("x", x), ndmin=2)
        if not self._inside(row):
            row = np.array(self.window.require("x", np.reshape(row, (1, -1))))
        self._learn(self._live()[0], row, UNIT_GAP)

    def predict(self, X: Any) -> Floats:
        """The rate at points of the window, shape (n,), never negative."""
        return self.rate_(self.window.require("X", X))

    def expected_count(self, regions: Window | Sequence[Window], *, exposure: float = 1.0) -> Any:
        """The expected number of events in a region, or in each of several: exposure·∫λ."""
        E = check_positive("exposure", exposure)
        counts = E * self.rate_.integrals(as_regions(self.window, regions))
        return one_or_all(regions, counts)

    def score(self, X: Any, y: None = None) -> float:
        """The mean of log(λ/∫λ) over events; independent of exposure, higher is better."""
        return float(np.mean(np.log(self._density()(self.window.require("X", X)))))

    def sample(self, n_paths: int = 1, random_state: Any = None) -> list[Floats]:
        """Simulated patterns of events in one unit of exposure, (n_i, d) each."""
        rng, rate = check_random_state(random_state), self.rate_
        counts = rng.poisson(rate.integral(), size=check_count("n_paths", n_paths))
        return [rate.sample(int(n), rng) for n in counts]

    def peak(self) -> tuple[Floats, float]:
        """The point of the window with the highest rate, shape (d,), and the rate there."""
        return self.rate_.peak()

    @property
    def rate_(self) -> GridFunction:
        """The current rate: e^z at the nodes of a fine grid, linear between them."""
        density, numbers = self._density(), self._live()[0].state.numbers
        return density * float(numbers[SEEN] / (numbers[EXPOSURE] if self.exposed_ else 1.0))

    @property
    def unit_(self) -> str:
        """The unit of the rate, such as "1/km²"; "" if the window has none."""
        return rate_unit(self.window)

    @property
    def n_atoms_(self) -> int:
        """The number of atoms without the background, or of nodes for PMD."""
        return self.status_.atoms

    @property
    def dictionary_(self) -> Floats:
        """The atoms, shape (n_atoms_, d)."""
        self._require_learned()
        return self._live()[0].dictionary

    @property
    def function_(self) -> Function:
        """z, the log rate up to a constant; the centers of the background come first."""
        self._require_learned()
        if isinstance(as_method(self.method), PMD):
            raise AttributeError("function_ needs a method with atoms, got PMD: use rate_.")
        (learner,) = self._live()
        return Function(learner.kernel, *self._expansion(learner))

    @property
    def status_(self) -> StreamStatus:
        """Counts of what has happened in the stream."""
        self._require_learned()
        return self._live()[0].status

    def _learn(self, learner: Learner, X: Floats, gaps: Floats) -> None:
        try:
            if learner.rule.fading:
                self._learn_between_snapshots(learner, X, gaps)
            else:
                learner.learn(X, np.zeros(len(X)), gaps)
        finally:  # arrays may have grown before an error
            self._keep([learner])

    def _learn_between_snapshots(self, learner: Learner, X: Floats, gaps: Floats) -> None:
        at, never, method = 0, np.full(len(X), np.inf), as_method(self.method)
        assert isinstance(method, Refit)
        while at < len(X):
            # when a snapshot is due depends only on the number of events
            last = int(self.snapshot_["events"]) if "snapshot_" in self.__dict__ else 0
            due = last + min(method.every, 1 + last // LARGEST_DELAY)
            part = slice(at, min(at + due - int(learner.state.counts[EVENTS]), len(X)))
            learner.learn(X[part], never[part], gaps[part])
            at = part.stop
            if learner.state.counts[EVENTS] == due:
                self.snapshot_ = snapshot(learner)

    def _expansion(self, learner: Learner) -> tuple[Floats, Floats]:
        """Centers and weights of z."""
        method = as_method(self.method)
        if not isinstance(method, Refit):
            return learner.function(learner.rule.averaging >= 0.0)
        if "snapshot_" not in self.__dict__:
            return learner.function()
        cached = self.__dict__.get("_solution")
        if cached is None or cached[0] is not self.snapshot_:
            inside = nodes_within(REFIT_RESOLUTION.grid(learner.kernel, self.window), self.window)
            solution = refitted(learner, self.snapshot_, inside, method.penalty)
            cached = self._solution = (self.snapshot_, solution)
        return cached[1]

    def _density(self) -> GridFunction:
        """The rate divided by its integral, recomputed after new events."""
        self._require_learned()
        (learner,) = self._live()
        at, cached = int(learner.state.counts[EVENTS]), self.__dict__.get("_known_density")
        if cached is None or cached[0] != at:
            cached = self._known_density = (at, self._compute_density(learner))
        return cached[1]

    def _compute_density(self, learner: Learner) -> GridFunction:
        method = as_method(self.method)
        if isinstance(method, PMD):
            grid = pmd_grid(method, self.window)
            z = learner.state.rows[CURRENT, : grid.size]
        else:
            grid = RATE_RESOLUTION.grid(learner.kernel, self.window)
            z = learner.kernel.dot(grid.nodes(), *self._expansion(learner))
        return density(self.window, grid, z, learner.rule)

    def _new_learner(self) -> Learner:
        method, kernel = as_method(self.method), self.kernel
        if not isinstance(kernel, Kernel):
            kernel = default_kernel(self.window)
        budget = as_budget(self.budget, AUTO_REFIT if isinstance(method, Refit) else AUTO)
        half_life = np.inf if self.forget is None else check_positive("forget", self.forget)
        return rate_learner(method, kernel, self.window, budget, half_life)

    def _events(self, X: Any, *, empty: bool) -> Floats:
        if empty and np.size(X) == 0:
            return np.zeros((0, self.window.dimension))
        X = self.window.require("X", X)
        if len(X) == 0:
            raise ValueError("X must hold at least one event, got 0: give an exposure too.")
        return np.require(X, requirements=("C", "W"))

    def _inside(self, row: Floats) -> bool:
        """Is the point in the window? A quick check for boxes; False for other windows."""
        if "_box" not in self.__dict__:
            box = self.window.box_bounds()
            self._box = None if box is None else tuple(edge.tolist() for edge in box)
        if self._box is None or row.shape != (1, self.n_features_in_):
            return False
        low, high = self._box
        return all(a <= x <= b for a, x, b in zip(low, row[0].tolist(), high, strict=True))

    def _gaps(self, n: int, exposure: Any) -> Floats:
        """The exposure before each event; 1 each if none is given."""
        if exposure is None:
            return np.ones(n)
        E = check_finite("exposure", as_floats("exposure", exposure))
        if E.shape not in ((), (n,)):
            raise ValueError(
                f"exposure must be a number or one for each of the {n} events, got shape {E.shape}."
            )
        # later events may occur at the same moment as the one before
        enough = E.sum() > 0.0 or (n > 0 and hasattr(self, "state_"))
        if np.any(E < 0.0) or not enough:
            raise ValueError(
                f"exposure must be non-negative with a positive sum, got {shown(exposure)}."
            )
        E = np.full(n, float(E) / max(n, 1)) if E.ndim == 0 else E
        return np.require(E, requirements=("C", "W"))
