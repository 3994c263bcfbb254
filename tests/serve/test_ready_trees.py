"""Models of a service answer at once: their trees are grown, and few enough for its memory."""

import numpy as np
import pytest

from hplus import Box
from hplus.rates.trees.growing import FEWEST_TREES
from hplus.serve.opening import opened_store
from hplus.serve.posts import Post
from hplus.serve.service import Service
from hplus.studies.frames import Frame
from hplus.studies.spans import Clock
from hplus.studies.stream_answers import answering
from hplus.studies.streams import StreamStudy

PLANE = Frame(("x", "y"), Box((0, 0), (1, 1)))
TIMED = PLANE.replace(clock=Clock("at", start=0.0, end=4.1e9, cycle="day"))


def parts(study):
    rate = study.model_
    return [rate.place_.rate_, rate.time_.rate_] if hasattr(rate, "place_") else [rate.rate_]


def learned(folder, frame):
    """A service that has learned from events, and the study that it has learned from."""
    rng = np.random.default_rng(0)
    X, seconds = rng.random((300, 2)), rng.uniform(0.0, 9e5, 300)
    if frame.clock is not None:
        X = np.column_stack([X, frame.clock.axis(seconds)])
    with opened_store(folder, StreamStudy(frame).begin()) as store:
        service = Service(store)
        store.commit([Post(X, seconds)], 1.0, 0.0)
        frozen = store.frozen()
        service._learn(frozen)
    return service, frozen.study


@pytest.mark.parametrize("frame", [PLANE, TIMED], ids=["plane", "timed"])
def test_trees_are_grown_before_anyone_asks(tmp_path, frame):
    service, study = learned(tmp_path, frame)
    model, usual = service.model.study, answering(study)
    assert all("forest" in vars(part) for part in parts(model))
    X = frame.window.sample(20, np.random.RandomState(0))
    np.testing.assert_array_equal(model.model_.predict(X), usual.model_.predict(X))
    assert all("forest" in vars(part) for part in parts(model))


@pytest.mark.parametrize("frame", [PLANE, TIMED], ids=["plane", "timed"])
def test_many_places_have_fewer_trees(tmp_path, frame, monkeypatch):
    most = 2000
    monkeypatch.setattr("hplus.serve.ready_trees.MOST_SERVED_CELLS", most)
    service, study = learned(tmp_path, frame)
    for part, usual in zip(parts(service.model.study), parts(answering(study)), strict=True):
        cells = len(part.statistic.codes)
        assert part.trees == min(usual.trees, max(most // cells, FEWEST_TREES))
        assert len(part.forest.codes) == part.trees
    assert part.trees * cells <= most or part.trees == FEWEST_TREES
