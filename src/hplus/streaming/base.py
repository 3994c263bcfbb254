"""What all streaming estimators share: their learners, the state that is saved, and its checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hplus._checks import shown
from hplus.estimators.base import Estimator
from hplus.streaming.engine.layout import SAVED_ARRAYS
from hplus.streaming.engine.learner import Learner
from hplus.streaming.engine.starts import restore

UNIT_GAP = np.ones(1)
"""The exposure before a single event."""

DERIVED = ("_learners", "_checked", "_stream", "_box")
"""Attributes that follow from the parameters and `state_`, and are not saved."""

ADJUSTABLE = ("step", "decay", "forget")
"""Parameters that may change while a stream continues."""


class StreamingEstimator(Estimator):
    """Holds `state_`, the arrays of one learner or of several."""

    _learners: list[Learner] | None
    state_: tuple[dict[str, Any], ...]
    made_with_: dict[str, str]

    def _new_learner(self) -> Learner:
        """A learner for the current parameters that has seen no event."""
        raise NotImplementedError

    def _live(self) -> list[Learner]:
        """The learners in use, restored from the saved arrays if there are none yet."""
        learners = self.__dict__.get("_learners")
        if learners is None:
            self._require_learned()
            most = len(getattr(self, "classes_", (None,)))
            if len(self.state_) > most:
                raise ValueError(
                    f"state_ must hold at most {most} states, got {len(self.state_)}: load the "
                    "model again."
                )
            learners = [restore(self._new_learner(), saved) for saved in self.state_]
            self._learners = learners
        return learners

    def _keep(self, learners: list[Learner]) -> None:
        """Make the learners' arrays the state of this estimator."""
        rows = [arrays["rows"] for arrays in self.__dict__.get("state_", ())]
        if rows and all(old is m.state.rows for old, m in zip(rows, learners, strict=True)):
            return  # the learners have written into these very arrays
        self._learners = learners
        self.state_ = tuple(
            {name: getattr(m.state, name) for name in SAVED_ARRAYS} for m in learners
        )

    def _begin(self, learners: list[Learner]) -> None:
        """Set the first state, and record the parameters that it belongs to."""
        self._keep(learners)
        self._remember()

    def _remember(self, adjustable: tuple[str, ...] = ADJUSTABLE) -> None:
        """Record the parameters that the state belongs to, but for those that may change."""
        params = self.get_params(deep=False)
        self.made_with_ = {name: repr(p) for name, p in params.items() if name not in adjustable}
        self._require_learned()

    def _settle(self) -> None:
        """Write `state_` if there is a stream that does so only when asked."""
        if (stream := self.__dict__.get("_stream")) is not None:
            self.state_ = stream.saved()

    def _reset(self) -> None:
        """Discard everything learned so far."""
        learned = [name for name in self.__dict__ if name.endswith("_") and name[0] != "_"]
        for name in (*learned, *DERIVED):
            self.__dict__.pop(name, None)

    def set_params(self, **params: Any) -> Any:
        """Set parameters; once a stream has begun, only step, decay and forget may change."""
        self._settle()
        for name in DERIVED:
            self.__dict__.pop(name, None)
        return super().set_params(**params)

    def __getstate__(self) -> Any:
        self._settle()
        attributes = super().__getstate__()
        return {name: part for name, part in attributes.items() if name not in DERIVED}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "state_")

    def _require_learned(self) -> None:
        """Raise if nothing was learned yet, or if parameters have changed that the state needs."""
        advice = "%(name)s must be fitted before it predicts: call partial_fit first."
        check_is_fitted(self, msg=advice)
        checked = self.__dict__.setdefault("_checked", {})
        for name, text in self.made_with_.items():
            now = getattr(self, name)
            if checked.get(name, self) is now:
                continue
            if repr(now) != text:
                raise ValueError(
                    f"{name} must not change while a stream continues, got {shown(now)} after "
                    f"{text:.60}: call fit to start again."
                )
            checked[name] = now
