"""Hold-outs: how well a rate learned from some events predicts others."""

from __future__ import annotations

from functools import partial
from typing import final

import numpy as np

from hplus._values import Value, value
from hplus.estimators.intensity import Intensity
from hplus.estimators.separable import SeparableIntensity
from hplus.evaluation import Check, check
from hplus.evaluation.scores import Rate
from hplus.rates.map_by_time import MapByTime, masses_of
from hplus.rates.map_learning import MassesOf
from hplus.studies.changed_places import PlaceScores
from hplus.studies.factor_trials import FactorTrial, JudgedPattern, Learn, Spans, block_error, seen
from hplus.studies.frames import Frame
from hplus.studies.map_trials import JudgedMap, map_scores
from hplus.studies.spans import moment
from hplus.studies.split_events import SplitEvents
from hplus.studies.splits import step_exposure
from hplus.studies.trial_names import trial_noun
from hplus.studies.unfolding import unfolded
from hplus.windows import Product
from hplus.wording import count


@final
@value
class Holdout(Value):
    """How well a rate learned from some events predicts others, which were held out.

    `gain` and `kde_gain` are mean log(λ(x)∫E/∫λE) in nats per event, E the exposure: 0 for a
    constant rate. `over_kde` is the mean difference, and `kde` says which kernel density estimate
    that was: the one that predicted best in cross-validation. Standard errors are those of blocks
    of time, or of trials, where there are such, as events in bursts are not independent. `check` is
    the goodness of fit of the rate learned from the others, on the held-out events.

    `kind` is "later", "blocks", "trials" or "random", and `words` say what was held out. `scored`
    is "places" if the rate of times could not be scored: without a cycle it says nothing about a
    later time. `kde_events` is how many events the kernel density estimate learned from if these
    were fewer than the rate's, drawn at random, and 0 otherwise. `map_by_time` says whether the map
    changes with the time of the cycle; None if that was not judged.
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
    kind: str = "random"
    words: str = ""
    scored: str = ""
    patterns: tuple[JudgedPattern, ...] = ()
    map_by_time: JudgedMap | None = None
    kde_events: int = 0

    def since(self, change: float, scores: PlaceScores, place: Intensity, kde: Rate) -> Holdout:
        """The same with the gains since a change of places, of rates learned from all events."""
        found = scores.since(change, place, kde)
        if found is None or "places" in self.constant:
            return self
        ours, theirs, blocks = found
        gain, gain_error = block_error(ours, blocks)
        over_kde, over_kde_error = block_error(ours - theirs, blocks)
        return self.replace(
            gain=gain,
            gain_error=gain_error,
            kde_gain=float(np.mean(theirs)),
            over_kde=over_kde,
            over_kde_error=over_kde_error,
            words=f"{self.words}; gains are those of {count(len(ours))} of them, since "
            f"{moment(change)[:16]}, when shares of places changed",
        )

    @property
    def constant(self) -> tuple[str, ...]:
        """What the rate does not depend on: "places", "times" or both."""
        return tuple(pattern.of for pattern in self.patterns if not pattern.kept)


def held_out(
    frame: Frame, events: SplitEvents, learn: Learn, seed: int
) -> tuple[Holdout, PlaceScores | None]:
    """Choose patterns, predict the held-out events, and compare with a constant rate and a KDE.

    With the scores of places, if those of times are others.
    """
    split, clock = events.split, frame.clock
    trials = _trials(frame, events, learn, seed)
    scored = trials[:1] if len(trials) == 2 and not frame.cycle else trials
    whole = () if clock is None else ((clock.start, clock.end),)
    learned, held = split.learned or whole, split.held or whole
    blocks = split.error_blocks(clock, events.held_sample.seconds)
    found = [trial.scores(learned, held, blocks) for trial in scored]
    ours, theirs = (sum(part) for part in zip(*((f.ours, f.theirs) for f in found), strict=True))
    kdes, models = [f.kde for f in found], [f.model for f in found]
    expected = next((f.expected for f in found if f.expected is not None), None)
    changes = map_scores(frame, events, _margins(frame, models), blocks, seed)
    if changes is not None:
        ours = ours + changes.gains
    by_time = None if changes is None else changes.by_time
    (many, held_events), sampled = events.sizes(), len(events.learned_sample.X)
    scores = None
    if len(trials) == 2:
        seconds, places = events.held_sample.seconds, found[0]
        scores = PlaceScores(places.X, seconds, blocks, places.ours, ours, places.theirs, theirs)
    holdout = Holdout(
        held_events,
        split.share,
        *block_error(ours, blocks, expected),
        float(np.mean(theirs)),
        *block_error(ours - theirs, blocks),
        _check(frame, events, models, by_time, held, seed),
        kdes[0] if len(set(kdes)) == 1 else f"{kdes[0]} for places, {kdes[1]} for times",
        split.kind,
        split.words(held_events, len(np.unique(blocks)), trial_noun(frame.trial)),
        "places" if len(scored) < len(trials) else "",
        tuple(f.pattern for f in found if f.pattern is not None),
        None if changes is None else changes.judged,
        sampled if sampled < many else 0,
    )
    return holdout, scores


def _trials(frame: Frame, events: SplitEvents, learn: Learn, seed: int) -> list[FactorTrial]:
    """The rates that are learned separately."""
    names = ("places", "times") if len(events.windows) == 2 else ("times" * (not frame.columns),)
    rng = np.random.RandomState(seed)
    starts = (0, events.windows[0].dimension)
    return [
        FactorTrial(name, i, starts[i], frame, events, learn, rng) for i, name in enumerate(names)
    ]


def _margins(frame: Frame, models: list[Intensity]) -> MassesOf | None:
    """The margins of the separable rate."""
    if len(models) < 2 or not isinstance(frame.window, Product):
        return None
    return partial(masses_of, models[0].rate_, models[1].rate_, frame.window)


def _check(
    frame: Frame,
    events: SplitEvents,
    models: list[Intensity],
    by_time: MapByTime | None,
    held: Spans,
    seed: int,
) -> Check:
    """The goodness of fit on the events held out, of what was scored."""
    X, clock = events.held_sample.X, frame.clock
    if clock is not None and (frame.cycle or (events.split.held and not frame.columns)):
        exposure = step_exposure(clock, held)
        model: Intensity | SeparableIntensity = models[0]
        if len(models) == 2:
            place, time = models
            model = SeparableIntensity(frame.window, random_state=seed).join(place, time, by_time)
        kept = seen(events.held_sample, exposure)
        # blocks with gaps between them have no single order
        line = None
        if len(held) == 1:
            line = unfolded(clock, model, events.held_sample.seconds[kept], held[0], seed)
        over = exposure.over_axis
        return check(model, X[kept], exposure=over, random_state=seed, timeline=line)
    return check(models[0], X[:, : models[0].window.dimension], random_state=seed)
