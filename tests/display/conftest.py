"""Studies of every shape of window, of a known rate: nothing is fitted, so they cost little."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Intensity, Interval, Polygon
from hplus.display.excitation_page import excitation_html
from hplus.display.page import report_html
from hplus.estimators.separable import SeparableIntensity
from hplus.evaluation import check
from hplus.files.places import EqualArea
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.rates.grid_rate import GridRate
from hplus.rates.prior import Field, SumOfFields
from hplus.rates.separable import SeparableRate
from hplus.solvers.result import SolverResult, Status
from hplus.studies.event_study import EventStudy
from hplus.studies.events import Reading
from hplus.studies.excitation_study import ExcitationStudy
from hplus.studies.frames import Frame
from hplus.studies.holdouts import Holdout
from hplus.studies.plans import plan
from hplus.studies.spans import Amount, Clock

EVENTS = 400
NODES = {1: 129, 2: 65, 3: 25}
CITY = Polygon(
    [[0, 0], [6, 0], [6, 4], [3, 5], [0, 4]], holes=[[[3, 1], [4, 1], [4, 2], [3, 2]]], unit="km"
)
SPRING = Clock("when", 0.0, 60 * 86_400.0)
WEEK = Clock("when", 0.0, 8 * 604_800.0, cycle="week")


def bump(window, events):
    """A rate with one hill a third of the way along each axis, and so many events in all."""
    low, high = window.bounds()
    d = window.dimension
    grid = TensorGrid(tuple(low), tuple(high), (NODES[d],) * d)
    u = (grid.nodes() - low) / (high - low) - 1 / 3
    values = (1.0 + 30.0 * np.exp(-0.5 * np.sum(u**2, axis=1) / 0.1**2)).reshape(grid.shape)
    f = GridFunction(window, grid, values)
    return f * (events / f.integral())


@pytest.fixture(scope="session")
def grid_rate():
    """Makes a `GridRate` that is a given function, known to a tenth or so."""
    return rate_of


def rate_of(f):
    """A `GridRate` that is a function on a grid, known to a tenth or so."""
    window = f.window
    coarse = f.grid.coarser()
    prior = SumOfFields((Field(1.5, (2.0,) * window.dimension, 1.2),))
    spread = np.full(coarse.shape, 0.1)
    draws = 0.1 * np.random.RandomState(0).standard_normal((16, *coarse.shape))
    result = SolverResult(Status.CONVERGED, 7, 100.0, 1e-6, 100.0)
    return GridRate(f, coarse, 0.0 * spread, spread, draws, ((1.0, prior),), result, -1.0, 0.0123)


def intensity_of(window, exposure):
    """An `Intensity` as `fit` leaves it, whose rate is the bump."""
    model = Intensity(window)
    model.rate_ = rate_of(bump(window, EVENTS / exposure))
    model.kernel_, model.penalty_ = model.rate_.leader, 1.0
    model.mixture_, model.solution_ = model.rate_.mixture, model.rate_.result
    model.total_, model.n_features_in_ = float(EVENTS), window.dimension
    model.quadrature_error_ = model.rate_.quadrature_error
    return model


def model_of(frame, exposure):
    """Places and times apart, as a study learns them."""
    window = frame.window
    if frame.region is None or frame.clock is None:
        return intensity_of(window, exposure)
    model = SeparableIntensity(window)
    model.place_, model.time_ = intensity_of(window.left, 1.0), intensity_of(window.right, exposure)
    model.rate_ = SeparableRate(window, model.place_.rate_, model.time_.rate_, float(EVENTS))
    model.total_, model.n_features_in_ = float(EVENTS), window.dimension
    model.solution_ = model.place_.solution_
    return model


def study_of(frame, exposure=None, *, held_out=True, file="folder/events.csv"):
    """A study as `fit` leaves it, and its events (n, d)."""
    study = EventStudy(frame)
    study.exposure_ = exposure or (frame.clock.exposure() if frame.clock else Amount(1.0))
    study.model_ = model_of(frame, study.exposure_.amount)
    X = study.model_.rate_.on_grid.sample(EVENTS, np.random.RandomState(0))
    study.reading_ = Reading(file, len(X) + 7, len(X), {"no x": 4, "outside the window": 3})
    study.holdout_ = None
    if held_out:
        found = check(study.model_, X)
        study.holdout_ = Holdout(80, 0.2, 0.43, 0.03, 0.25, 0.18, 0.02, found)
    study.made_with_ = {
        "command": "hplus fit events.csv --columns x,y -o model.hplus",
        "hplus": "1.0",
        "numpy": "2.0",
        "python": "3.11",
        "seconds": 12.34567,
        "seed": 0,
        "made": "2026-11-16T08:00:00+00:00",
    }
    return study, X


def line():
    return study_of(Frame(("t",), Interval(0, 10, unit="s")))


def calendar():
    return study_of(Frame((), None, clock=SPRING))


def day():
    return study_of(Frame((), None, clock=Clock("when", 0.0, 8 * 86_400.0, cycle="day")))


def strip():
    return study_of(Frame(("x", "y"), Box((0.1, 0.1), (90.1, 1.1))), held_out=False)


def plane():
    return study_of(Frame(("x", "y"), Box((0, 0), (40, 30), unit="ft")), Amount(79.0, "game"))


def polygon():
    frame = Frame(("lon", "lat"), CITY, EqualArea(-74.0, 40.5, 40.6))
    return study_of(frame, held_out=False)


def mixed():
    window = Interval(0, 10, unit="km") * Interval(0, 100, unit="°C")
    return study_of(Frame(("depth", "heat"), window))


def solid():
    return study_of(Frame(("x", "y", "z"), Box((0, 0, 0), (6, 4, 2), unit="km")))


def tide():
    return study_of(Frame(("depth",), Interval(0, 10, unit="m"), clock=WEEK))


def week():
    return study_of(Frame(("x", "y"), Box((0, 0), (6, 4), unit="km"), clock=WEEK))


def season():
    return study_of(Frame(("lon", "lat"), CITY, EqualArea(-74.0, 40.5, 40.6), SPRING))


SHAPES = {
    f.__name__: f
    for f in (line, calendar, day, plane, strip, polygon, mixed, solid, tide, week, season)
}


@pytest.fixture(scope="session")
def studied():
    """Studies by their shape, each made once."""
    made = {}

    def studied(shape):
        if shape not in made:
            made[shape] = SHAPES[shape]()
        return made[shape]

    return studied


@pytest.fixture(scope="session")
def shown(studied):
    """Pages of studies with their events, each made once."""
    made = {}

    def shown(shape):
        if shape not in made:
            made[shape] = report_html(*studied(shape))
        return made[shape]

    return shown


@pytest.fixture(scope="session")
def excited(aftershocks, coarsely):
    """A study of a self-exciting rate in place and time."""
    period = {"time": "when", "start": "2026-01-11", "end": "2026-07-20"}
    frame = plan(str(aftershocks), ["x", "y"], window=(0, 0, 50, 50), unit="km", **period)
    with coarsely():
        return ExcitationStudy(frame, mark="mag", holdout=0.0).fit(str(aftershocks))


@pytest.fixture(scope="session")
def excited_page(excited):
    return excitation_html(excited, title="Shocks <img src=x>")
