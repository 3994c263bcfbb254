"""A study of a self-exciting rate checked on a file: the one it was fitted to, or a later one."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hplus.files.feeds import TableError
from hplus.files.times import MAX_SECONDS
from hplus.rates.excitation.excitation_check import ExcitationCheck
from hplus.studies.events import Reading
from hplus.studies.excitation_holdouts import ahead_scores, constant_scores
from hplus.studies.marked_events import MarkedEvents, check_known_types, read_marked
from hplus.studies.spans import moment
from hplus.studies.triggered_counts import known_until
from hplus.windows import Product

if TYPE_CHECKING:
    from hplus.studies.excitation_study import ExcitationStudy


class Checked(NamedTuple):
    """What a check found, on which rows, and whether they are later than those learned from.

    Later events are predicted one by one: `gain` is the mean over the constant rate that fits them
    best, of each type, in nats.
    """

    check: ExcitationCheck
    reading: Reading
    later: bool
    gain: float | None = None
    gain_error: float | None = None


def checked(study: ExcitationStudy, path: str | None = None) -> Checked:
    """Check a study on the events of a file, by default on its own, which it keeps."""
    if path is None:
        return Checked(study.model_.check(), study.reading_, False)
    labels = study.mark, study.kind
    everything = read_marked(path, study.frame, *labels, (-MAX_SECONDS, MAX_SECONDS))
    known = float(study.model_.observed_until_)
    after = everything.X[:, -1] >= known
    if not after.any():
        own = read_marked(path, study.frame, *labels)
        if not study.fitted_to(own.reading):
            raise TableError(
                f"{path} must hold the events that the model was fitted to, or later ones than "
                f"{moment(known_until(study))}, got other events of the time before."
            )
        return Checked(study.model_.check(), own.reading, False)
    return _later(study, everything.picked(after), known)


def _later(study: ExcitationStudy, new: MarkedEvents, known: float) -> Checked:
    """Later events, each predicted from those before it; observed until the last of them."""
    check_known_types(new, study.kind, study.model_.types_.tolist())
    new = new.picked(np.argsort(new.X[:, -1], kind="stable"))
    times, model = new.X[:, -1], copy(study.model_)
    if len(times) < 2 or times[-1] == known:
        model.update(new.X, until=float(times[-1]), marks=new.marks, types=new.types)
        return Checked(model.check(known), new.reading, True)
    ours, window = ahead_scores(model, new, float(times[-1])), study.frame.window
    region = window.left if isinstance(window, Product) else None
    # a constant rate learned before would lose by its level alone if that has changed
    theirs = constant_scores(new, float(times[-1]) - known, new, region, ours.edges)
    gain, error = ours.gain_over(theirs)
    return Checked(model.check(known), new.reading, True, gain, error)
