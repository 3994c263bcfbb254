"""papers/intensity still runs, on small sizes, and shows what it says."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from hplus import Interval
from hplus.simulate import LAMBDA1

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "papers" / "intensity"
SMALL = {"distance": {"splits": 2, "models": ("exp", "KDE")}}


@pytest.fixture(scope="module")
def k2ie(paper):
    return importlib.import_module("k2ie")


def test_every_table_and_picture_has_its_place_in_the_report(paper, data):
    text = (PAPER / "report.md").read_text("utf-8")
    assert set(re.findall(r"{(\w+)}", text)) == set(data)
    assert set(re.findall(r"\((\w+)\.png\)", text)) == set(data)
    report = text.format(**{s.name: s.table(data[s.name]) for s in paper.SECTIONS})
    assert report.count("\n| --- |") == len(data)


def test_only_the_least_squares_estimate_is_ever_negative(data):
    for fit in data["errors"]:
        assert fit.model == "K2IE" or not fit.negative.any()
    assert max(fit.negative.max() for fit in data["errors"] if fit.model == "K2IE") > 0.0


def test_differences_to_the_kde_are_of_the_same_sets_and_better_is_negative(data):
    kde, *others = data["errors"][:6]
    assert kde.model == "KDE"
    for fit in others:
        assert fit.to_kde[0] == pytest.approx(fit.error.mean() - kde.error.mean())


def test_bands_contain_their_rate_and_have_the_stated_coverage(data):
    for item in data["bands"]:
        for name in ("exp", "square", "sos"):
            curve = item.fits[name].first
            low, high = curve.bounds
            assert np.all((low <= curve.rate) & (curve.rate <= high))
            truth = item.truth.rate(curve.x[:, None])
            covered = np.mean((low <= truth) & (truth <= high))
            assert item.fits[name].covered[0] == pytest.approx(covered)


@pytest.mark.parametrize("name", ["distance", "court"])
def test_densities_of_shots_integrate_to_one(data, name):
    for model in data[name]:
        mass = model.density
        for x in model.places:
            mass = np.trapezoid(mass, x, axis=0)
        assert mass == pytest.approx(1.0, rel=2e-3)


def test_the_coal_rate_falls_and_its_eras_add_up_to_the_disasters(data):
    eras = data["coal"][0].coal.eras
    assert sum(era.observed for era in eras) == 191
    assert sum(era.expected for era in eras) == pytest.approx(191.0, rel=1e-6)
    assert eras[0].low > eras[-1].high
    assert all(era.low <= era.observed <= era.high for era in eras)


def test_the_least_squares_estimate_solves_its_integral_equation(k2ie, rng):
    window, X = Interval(0.0, 2.0), rng.beta(2.0, 5.0, (200, 1))
    model = k2ie.K2IE(window).fit(X)
    kernel, (nodes, weights) = model.spectrum_.kernel, window.quadrature(200)
    x = np.linspace(0.0, 2.0, 9)[:, None]
    # Λ/γ + ∫k(x, s)Λ(s)ds = Σ_i k(x, x_i)
    smooth = kernel(x, nodes) @ (weights * model.predict(nodes))
    events = kernel(x, X).sum(axis=1)
    np.testing.assert_allclose(model.penalty_ * model.predict(x) + smooth, events, atol=1e-3)


def test_the_leave_one_out_loss_is_that_of_fits_without_each_event(k2ie, rng):
    window, penalty = Interval(0.0, 2.0), 0.05
    spectrum, X = k2ie.Spectrum(0.3, window), rng.uniform(0.0, 2.0, (12, 1))

    def rate(events, x):
        return spectrum(x) @ (spectrum(events).sum(axis=0) / (spectrum.t + penalty))

    nodes, weights = window.quadrature(100)
    left_out = sum(rate(np.delete(X, i, axis=0), X[i : i + 1])[0] for i in range(len(X)))
    expected = weights @ rate(X, nodes) ** 2 - 2.0 * left_out
    (loss,) = k2ie.leave_one_out(spectrum(X), spectrum.t, np.array([penalty]))
    assert loss == pytest.approx(expected, rel=1e-6)


def test_the_least_squares_estimate_finds_a_known_rate_from_many_events(k2ie):
    truth = LAMBDA1.scaled(100.0)
    model = k2ie.K2IE(truth.window).fit(truth.sample(0))
    x = np.linspace(5.0, 45.0, 50)[:, None]
    np.testing.assert_allclose(model.predict(x), truth.rate(x), atol=0.12 * truth.rate(x).max())
