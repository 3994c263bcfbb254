"""StreamingIntensity: how often events happen, where and when, from a stream of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
from sklearn.utils import check_random_state

from hplus._checks import Floats, as_floats, check_count, check_finite, check_positive, shown
from hplus.estimators.base import check_kernel
from hplus.grids import TensorGrid
from hplus.kernels import Gaussian, Kernel
from hplus.positivity.exp import GridFunction
from hplus.rates.by_region import check_window, over_regions, rate_unit, warn_of_degrees
from hplus.space import Function
from hplus.storage import storable
from hplus.streaming.base import ONE, StreamingEstimator
from hplus.streaming.budgets import AUTO, KOMP, as_budget
from hplus.streaming.engine.atoms import CURRENT
from hplus.streaming.engine.layout import EVENTS, EXPOSURE, SEEN
from hplus.streaming.engine.learner import Learner, StreamStatus, start, start_grid
from hplus.streaming.engine.nodes import grid_for, nodes_within
from hplus.streaming.engine.rules import RECIPROCAL
from hplus.streaming.methods import PMD, Refit, as_method
from hplus.streaming.refit import refitted, snapshot
from hplus.streaming.settings import budget_part, method_part, rule
from hplus.windows import Window

SHARES = {1: 25.0, 2: 18.0, 3: 10.0}
"""The longest side over the scale of kernel="auto", by dimension."""

AUTO_REFIT = KOMP(0.03, 1000, relative=True)
"""What budget="auto" is for Refit: its dictionary is all that limits it."""

COARSE, MOST_COARSE = 1.3, 2500
"""Nodes in a step's integral: cells where the kernel falls by half, and the largest number."""

STALE = 32
"""Refit predicts from all events but the last, at most one in so many."""

FINE, MOST_FINE = 10.0, {1: 4097, 2: 40_000, 3: 60_000}
"""Those on which a rate is given."""

SOLVED, MOST_SOLVED = 8.0, {1: 2049, 2: 10_000, 3: 15_000}
"""Those on which Refit solves for it: every Newton step sees them all."""


@final
@storable
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
        Where events can be seen, of 1 to 3 dimensions.
    kernel : Kernel or "auto"
        How alike log rates at two points are. "auto" is a Gaussian whose scale is the longest side
        over 25, 18 or 10 in 1, 2 or 3 dimensions: give one if you know better.
    method : str or method
        "spppot" (`SPPPOT`), "second_order", "pmd" (a grid), or "refit" (`Refit`): as accurate as a
        batch fit, and slower to predict. All but "refit" take steps, so that late events count
        more: where events come in order along an axis of the window, as they do if the window is
        the time itself, use "refit".
    budget : "auto" or KOMP
        What is kept; "auto" is KOMP(0.1, 1000, relative=True), 0.03 for Refit; PMD has its grid.
    forget : float, optional
        Half-life: what was seen counts half as much after so much exposure, or after so many
        events if exposure is not given.
    """

    snapshot_: dict[str, Any]

    def __init__(
        self,
        window: Any,
        kernel: Any = "auto",
        method: Any = "spppot",
        budget: Any = "auto",
        forget: Any = None,
    ) -> None:
        self.window = window
        self.kernel = kernel
        self.method = method
        self.budget = budget
        self.forget = forget

    def fit(self, X: Any, y: None = None, *, exposure: Any = None) -> Self:
        """Forget all, and learn from the events in their order, once."""
        self._start_again()
        return self.partial_fit(X, exposure=exposure)

    def partial_fit(self, X: Any, y: None = None, *, exposure: Any = None) -> Self:
        """Learn from events X (n, d), one after the other.

        `exposure` says how long was watched while they came: a number, which is spread evenly over
        them, or one for each event, the time since the one before. X may be empty then.
        """
        fresh = not hasattr(self, "state_")
        if fresh:
            self._check_parameters()
        else:
            self._require_learned()
        X = self._events(X, empty=exposure is not None)
        gaps = self._gaps(len(X), exposure)
        if fresh:
            self.exposed_, self.n_features_in_ = exposure is not None, self.window.dimension
            self._begin([self._new_learner()])
        elif self.exposed_ != (exposure is not None):
            raise ValueError(
                "exposure must be given at every call or at none, got "
                f"{shown(exposure)} after calls {'with' if self.exposed_ else 'without'} it."
            )
        (learner,) = self._live(self._new_learner)
        if len(X) == 0:
            learner.pass_by(float(np.sum(as_floats("exposure", exposure))))
        self._learn(learner, X, gaps)
        return self

    def learn_one(self, x: Any, *, exposure: Any = None) -> None:
        """Learn from one event; `exposure` is the time since the one before."""
        if not hasattr(self, "state_") or exposure is not None or self.exposed_:
            self.partial_fit(np.reshape(as_floats("x", x), (1, -1)), exposure=exposure)
            return
        row = np.array(as_floats("x", x), ndmin=2)
        if not self._inside(row):
            row = np.array(self.window.require("x", np.reshape(row, (1, -1))))
        self._learn(self._live(self._new_learner)[0], row, ONE)

    def predict(self, X: Any) -> Floats:
        """The rate at each point of the window, shape (n,), never below 0."""
        return self.rate_(self.window.require("X", X))

    def expected_count(self, regions: Window | Sequence[Window], *, exposure: float = 1.0) -> Any:
        """E∫λ over a region, or over each of several, in an exposure E."""
        E = check_positive("exposure", exposure)
        return E * over_regions(self.window, regions, self.rate_.integral)

    def score(self, X: Any, y: None = None) -> float:
        """The mean of log(λ/∫λ) over events: free of exposure, higher is better."""
        return float(np.mean(np.log(self._density()(self.window.require("X", X)))))

    def sample(self, n_paths: int = 1, random_state: Any = None) -> list[Floats]:
        """Patterns of events that the rate gives in one unit of exposure, (n_i, d) each."""
        rng, rate = check_random_state(random_state), self.rate_
        counts = rng.poisson(rate.integral(), size=check_count("n_paths", n_paths))
        return [rate.sample(int(n), rng) for n in counts]

    def peak(self) -> tuple[Floats, float]:
        """The point of the window with the highest rate, shape (d,), and the rate there."""
        return self.rate_.peak()

    @property
    def rate_(self) -> GridFunction:
        """The rate now: e^z at the nodes of a fine grid, linear between them."""
        density, numbers = self._density(), self._live(self._new_learner)[0].state.numbers
        return density * float(numbers[SEEN] / (numbers[EXPOSURE] if self.exposed_ else 1.0))

    @property
    def unit_(self) -> str:
        """The unit of the rate, such as "1/km²"; "" if the window has none."""
        return rate_unit(self.window)

    @property
    def n_atoms_(self) -> int:
        """Atoms, without the background; nodes for PMD."""
        return self.status_.atoms

    @property
    def dictionary_(self) -> Floats:
        """The atoms, shape (n_atoms_, d)."""
        self._require_learned()
        return self._live(self._new_learner)[0].dictionary

    @property
    def function_(self) -> Function:
        """z, the log of the rate but for a constant; the background's centers come first."""
        self._require_learned()
        if isinstance(as_method(self.method), PMD):
            raise AttributeError("function_ is on a grid here, not on atoms: use rate_.")
        (learner,) = self._live(self._new_learner)
        return Function(learner.kernel, *self._expansion(learner))

    @property
    def status_(self) -> StreamStatus:
        """Counts of what the stream has been through."""
        self._require_learned()
        return self._live(self._new_learner)[0].status

    def _learn(self, learner: Learner, X: Floats, gaps: Floats) -> None:
        try:
            self._pass_on(learner, X, gaps)
        finally:  # arrays may have grown before something went wrong
            self._keep([learner])

    def _pass_on(self, learner: Learner, X: Floats, gaps: Floats) -> None:
        if not learner.rule.fading:
            learner.learn(X, np.zeros(len(X)), gaps)
            return
        at, never, every = 0, np.full(len(X), np.inf), as_method(self.method).every
        while at < len(X):
            # when a snapshot is due depends on nothing but the number of events
            last = int(self.snapshot_["events"]) if "snapshot_" in self.__dict__ else 0
            due = last + min(every, 1 + last // STALE)
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
            inside = nodes_within(self._solved(), self.window)
            solution = refitted(learner, self.snapshot_, inside, method.penalty)
            cached = self._solution = (self.snapshot_, solution)
        return cached[1]

    def _density(self) -> GridFunction:
        """The rate divided by its integral, computed anew when events have come."""
        self._require_learned()
        (learner,) = self._live(self._new_learner)
        at, cached = int(learner.state.counts[EVENTS]), self.__dict__.get("_known")
        if cached is None or cached[0] != at:
            cached = self._known = (at, self._compute_density(learner))
        return cached[1]

    def _compute_density(self, learner: Learner) -> GridFunction:
        method, rule = as_method(self.method), learner.rule
        if isinstance(method, PMD):
            grid = self._grid(method)
            z = learner.state.rows[CURRENT, : grid.size]
        else:
            grid = self._fine()
            z = learner.kernel.dot(grid.nodes(), *self._expansion(learner))
        if rule.link == RECIPROCAL:
            z = -np.log(np.clip(1.0 - z, np.exp(-rule.cap), np.exp(rule.cap)))
        z = np.clip(z, -rule.cap, rule.cap)  # documented with the methods
        f = GridFunction(self.window, grid, np.exp(z - z.max()).reshape(grid.shape))
        return f * (1.0 / f.integral())

    def _new_learner(self) -> Learner:
        method, window, kernel = as_method(self.method), self.window, self._kernel()
        half_life = np.inf if self.forget is None else check_positive("forget", self.forget)
        parts = {**method_part(method), "half_life": half_life}
        if isinstance(method, PMD):
            return start_grid(rule(parts), kernel, window, self._grid(method))
        inside = nodes_within(grid_for(kernel, window, COARSE, MOST_COARSE), window)
        solved = isinstance(method, Refit)
        budget = as_budget(self.budget, AUTO_REFIT if solved else AUTO)
        grid = self._solved() if solved else None
        return start(rule(budget_part(budget), parts), kernel, inside, grid)

    def _fine(self) -> TensorGrid:
        """The grid on which the rate is given."""
        return grid_for(self._kernel(), self.window, FINE, MOST_FINE[self.window.dimension])

    def _solved(self) -> TensorGrid:
        """The grid on which Refit counts events and solves for the rate."""
        return grid_for(self._kernel(), self.window, SOLVED, MOST_SOLVED[self.window.dimension])

    def _grid(self, method: PMD) -> TensorGrid:
        low, high = self.window.bounds()
        shape = method.grid if isinstance(method.grid, tuple) else (method.grid,) * len(low)
        if len(shape) != len(low):
            raise ValueError(f"grid must have one number for each of {len(low)} axes, got {shape}.")
        return TensorGrid(tuple(low.tolist()), tuple(high.tolist()), shape)

    def _kernel(self) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        sides = self.window.longest_sides() / SHARES[self.window.dimension]
        return Gaussian(tuple(sides.tolist()))

    def _check_parameters(self) -> None:
        check_window(self.window)
        if self.window.dimension not in SHARES:
            raise ValueError(f"window must have 1, 2 or 3 axes, got {self.window.dimension}.")
        check_kernel(self.kernel)
        method = as_method(self.method)
        if isinstance(method, PMD) and self.budget != "auto":
            raise ValueError(f"PMD keeps a grid and has no budget, got {shown(self.budget)}.")
        if not isinstance(as_budget(self.budget), KOMP):
            raise ValueError(
                f'budget must be "auto" or a KOMP for a rate, got {shown(self.budget)}: the step '
                "of the integral is projected on the atoms."
            )
        warn_of_degrees(self.window)

    def _events(self, X: Any, *, empty: bool) -> Floats:
        if empty and np.size(X) == 0:
            return np.zeros((0, self.window.dimension))
        X = self.window.require("X", X)
        if len(X) == 0:
            raise ValueError("X must hold at least one event, got 0: give exposure with none.")
        return np.require(X, requirements=("C", "W"))

    def _inside(self, row: Floats) -> bool:
        """Is the point in the window, as far as a look at a box can tell?"""
        if "_box" not in self.__dict__:
            box = self.window.box_bounds()
            self._box = None if box is None else tuple(edge.tolist() for edge in box)
        if self._box is None or row.shape != (1, self.n_features_in_):
            return False
        low, high = self._box
        return all(a <= x <= b for a, x, b in zip(low, row[0].tolist(), high, strict=True))

    def _gaps(self, n: int, exposure: Any) -> Floats:
        """The exposure before each event; 1 each if it is not given."""
        if exposure is None:
            return np.ones(n)
        E = check_finite("exposure", as_floats("exposure", exposure))
        if E.shape not in ((), (n,)):
            raise ValueError(
                f"exposure must be a number or one for each of the {n} events, got shape {E.shape}."
            )
        watched = E.sum() > 0.0 or (n > 0 and hasattr(self, "state_"))  # at the same moment
        if np.any(E < 0.0) or not watched:
            raise ValueError(f"exposure must be above 0 in all, got {shown(exposure)}.")
        E = np.full(n, float(E) / max(n, 1)) if E.ndim == 0 else E
        return np.require(E, requirements=("C", "W"))
