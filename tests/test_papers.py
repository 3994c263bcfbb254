"""The experiments in papers/ still run, on small sizes and but for the drawing, and still agree."""

import re
from pathlib import Path

import numpy as np
import pytest

from hplus import Function, Gaussian, Poisson
from hplus.solvers.machines.risk import Risk

PAPER = Path(__file__).parents[1] / "papers" / "kernelization"
SMALL = {
    "representer": {"n": 40},
    "descent": {"iterations": 100},
    "svm": {"costs": (1.0, 100.0), "n": 40},
    "closures": {"n": 12},
    "mercer": {"nodes": 100, "terms": 10},
    "ridge": {"penalties": (1e-3,)},
}


def test_every_table_and_picture_has_its_place_in_the_report(paper, data):
    text = (PAPER / "report.md").read_text("utf-8")
    assert set(re.findall(r"{(\w+)}", text)) == set(data)
    drawn = {f"{name}.png" for section in paper.SECTIONS for name in section.pictures}
    assert set(re.findall(r"\((\w+\.png)\)", text)) == drawn
    report = text.format(**{s.name: s.table(data[s.name]) for s in paper.SECTIONS})
    assert report.count("\n| --- |") == len(data)


def test_fitted_coefficients_are_the_representers_fixed_point(data):
    assert len(data["representer"]) == 7
    for fit in data["representer"]:
        assert fit.residual < 1e-5
        assert fit.machine.solution_.relative_gap < 1e-8


def test_gradient_descent_stays_below_its_bound_and_three_updates_are_as_by_hand(data):
    for descent in data["descent"]:
        assert np.all(descent.excess <= descent.bound + 1e-12)
        assert descent.excess[-1] < 1e-6 * descent.excess[0]
        assert descent.distance < 1e-3
    weights = [f.weights.tolist() for _, _, f in data["updates"]]
    by_hand = [[0.8, 0, 0], [0.672, -0.8, 0], [0.56448, -0.672, 0.8]]
    np.testing.assert_allclose(weights, by_hand, atol=1e-12)


def test_primal_and_dual_machines_agree_with_and_without_free_support_vectors(data):
    assert [svm.free.any() for svm in data["svm"]] == [False, True]
    for svm in data["svm"]:
        assert svm.primal == pytest.approx(svm.dual, rel=1e-7)
        assert svm.bias == pytest.approx(svm.machine.intercept_[0], abs=1e-4)
        assert svm.biases[0] - 1e-4 <= svm.bias <= svm.biases[1] + 1e-4


def test_features_of_the_proofs_make_the_kernels_and_two_weights_one_function(data):
    assert max(error for _, _, _, error in data["closures"]) < 1e-12
    (f, inner, distance), (g, _, _) = data["finite"]
    assert distance < 1e-12 < np.abs(f.weights - g.weights).max()
    np.testing.assert_allclose(inner, g(g.centers), atol=1e-12)


def test_eigenfunctions_add_up_to_the_kernel(paper, data):
    for spectrum in data["mercer"]:
        assert np.sum(spectrum.values**2) == pytest.approx(spectrum.double, rel=5e-3)
        assert np.all(np.diff(spectrum.errors) < 0.0)
    smooth, rough = (spectrum.errors[10] for spectrum in data["mercer"])
    assert smooth < 1e-4 < rough < 0.25
    exact = paper.ex.laplace_eigenvalues(0.2, 5)
    np.testing.assert_allclose(data["mercer"][1].values[:5], exact, rtol=5e-3)


def test_ridge_agrees_with_scikit_learn_where_alpha_is_penalty_times_n(data):
    for _, _, right, wrong, linear in data["ridge"]:
        assert max(right, linear) < 1e-9 < 1e-2 < wrong


def test_descent_refuses_what_has_no_slope_at_the_start(paper, rng):
    X, risk = rng.normal(size=(3, 1)), Risk(Poisson(), np.ones(3), np.full(3, 1 / 3), 0.1)
    with pytest.raises(ValueError, match="finite slopes"):
        paper.ex.risk_gradient(Function(Gaussian(1.0), X, np.zeros(3)), X, risk)
