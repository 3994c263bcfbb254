"""Learning the rate of a study: of all events, and without those held out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus._threads import at_once
from hplus.estimators.intensity import Intensity
from hplus.estimators.prior_parameters import CONSTANT, SMOOTH_MODELS, STATISTIC_MODELS, Given
from hplus.estimators.separable import SeparableIntensity
from hplus.estimators.similar_rates import similar_to
from hplus.evaluation import best_kde
from hplus.rates.every_scale import are_very_many
from hplus.rates.exposure import OverWindow
from hplus.rates.rate_models import Similar
from hplus.rates.statistic import Statistic
from hplus.studies.changed_places import PlaceScores
from hplus.studies.frames import Frame
from hplus.studies.holdouts import Holdout, held_out
from hplus.studies.split_events import SplitEvents
from hplus.studies.splits import StepExposure

MIN_EVENTS = 30
"""With fewer events none are held out: they would tell nothing."""


class StudiedRate(NamedTuple):
    """The rate of all events, and how well that of some predicts others; None if none were."""

    model: Intensity | SeparableIntensity
    holdout: Holdout | None


@dataclass(frozen=True)
class RateLearning:
    """The events of a study and all that is needed to learn their rate.

    `exposure` is that of events counted in the unit of their weights, and `amount` that of events.
    `changed` is when shares of places have changed, in seconds since 1970, None if they have not.
    """

    frame: Frame
    events: SplitEvents
    model: str
    exposure: OverWindow
    amount: float
    seed: int
    changed: float | None = None

    def learned(self, n_jobs: int | None) -> StudiedRate:
        """The rate and its hold-out, at the same time if there may be several jobs."""
        (many, held), everything = self.events.sizes(), self.events.everything
        if many < MIN_EVENTS or held < 2:
            parts = self._parts(tuple(map(self.priors_of, everything)))
            return StudiedRate(self._joined(parts, None), None)
        trial = HoldoutTrial(self)
        if are_very_many(many) and self.model in STATISTIC_MODELS:
            holdout, scores = trial.holdout()
            known = tuple(trial.similar.get(i, p) for i, p in enumerate(trial.priors))
            parts = self._parts(known)
        else:
            priors = trial.priors
            parts, (holdout, scores) = at_once(lambda: self._parts(priors), trial.holdout, n_jobs)
        if self.changed is not None and scores is not None:
            kde = best_kde(self.events.windows[0], self._all_places(parts[0]))
            holdout = holdout.since(self.changed, scores, parts[0], kde)
        return StudiedRate(self._joined(parts, holdout), holdout)

    def _all_places(self, place: Intensity) -> Floats:
        """The places of a sample of all events, moved within the step of positions."""
        window, positions = place.window, getattr(place, "positions_", None)
        X = self.events.sampled[:, : window.dimension]
        rng = np.random.RandomState(self.seed)
        return X if positions is None else positions.spread(window, X, rng)

    def rate_of(
        self, statistic: Statistic, X: Floats, exposure: OverWindow, priors: Given
    ) -> Intensity:
        """A rate under known priors, from the statistic of events or the events X (n, d)."""
        rate = Intensity(statistic.window, model=self.model, random_state=self.seed)
        if self.model in STATISTIC_MODELS:
            return rate.fit(statistic, exposure=exposure, priors=priors)
        return rate.fit(X, exposure=exposure)

    def priors_of(self, statistic: Statistic) -> Given:
        """The priors of the smooth field, learned once for all fits."""
        if self.model not in SMOOTH_MODELS:
            return "auto"
        return Intensity(statistic.window, random_state=self.seed).learn_mixture(statistic)

    def _parts(self, priors: tuple[Given, ...]) -> list[Intensity]:
        """The rates of all events: one, or one by place and one by time."""
        everything, X = self.events.everything, self.events.sampled
        exposures = [1.0, self.exposure][-len(everything) :]
        return [
            self.rate_of(part, X, exposure, prior)
            for part, exposure, prior in zip(everything, exposures, priors, strict=True)
        ]

    def _joined(
        self, parts: list[Intensity], holdout: Holdout | None
    ) -> Intensity | SeparableIntensity:
        """The rates, constant where a pattern does not predict later events, as one."""
        constant = () if holdout is None else holdout.constant
        names = ("places", "times") if len(parts) == 2 else ("times",)
        for i, name in enumerate(names):
            if name in constant:
                over = 1.0 if name == "places" else self.exposure
                everything = self.events.everything[i]
                parts[i] = self.rate_of(everything, self.events.sampled, over, CONSTANT)
        if len(parts) == 1:
            return parts[0]
        model = SeparableIntensity(self.frame.window, model=self.model, random_state=self.seed)
        both = None
        judged = None if holdout is None else holdout.map_by_time
        if judged is not None and judged.kept:
            both = self.events.joint(everything=True)
        by_time = None if both is None else model.learn_map(both, *parts)
        return model.join(parts[0], parts[1], by_time)


@dataclass(frozen=True)
class HoldoutTrial:
    """The rate without the events held out; `similar` is what it learned, by part."""

    learning: RateLearning
    similar: dict[int, Similar] = field(default_factory=dict)

    @cached_property
    def priors(self) -> tuple[Given, ...]:
        """Those of all parts, learned when the first is asked for: by then others may be busy."""
        return tuple(map(self.learning.priors_of, self.learning.events.learned()))

    def holdout(self) -> tuple[Holdout, PlaceScores | None]:
        """How well the rate of the other events predicts the held-out ones."""
        learning = self.learning
        return held_out(learning.frame, learning.events, self, learning.seed)

    @property
    def is_stepped(self) -> bool:
        """Does a rate that is not constant know the step of the events' positions?"""
        return self.learning.model in STATISTIC_MODELS

    def __call__(
        self, i: int, statistic: Statistic, exposure: StepExposure | None, constant: bool
    ) -> Intensity:
        """The rate of a part, constant if that is asked for."""
        learning = self.learning
        alone = 1.0 if len(learning.events.windows) == 2 else learning.amount
        over = alone if exposure is None else exposure.over_axis
        X = learning.events.learned_sample.X
        if constant:
            return learning.rate_of(statistic, X, over, CONSTANT)
        rate = learning.rate_of(statistic, X, over, self.priors[i])
        if learning.model in STATISTIC_MODELS:
            self.similar[i] = similar_to(rate)
        return rate
