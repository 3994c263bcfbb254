"""papers/sos and the README's picture still run, on small sizes, and show what they say."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "papers" / "sos"
SMALL = {
    "cones": {"draws": 1, "n": 30, "cones": ("Full", "Diagonal")},
    "inequality": {"cases": 60, "sizes": (2, 5)},
    "selection": {"n": 30, "scales": np.array([0.25, 0.75]), "penalties": np.array([1.0, 0.01])},
    "noise": {"draws": 1, "settings": ((2.0, 1.0, 1.0), (0.2, 1e-2, 1e-2))},
    "density": {"draws": 1, "penalties": (1e-3, 1e-6)},
    "quantiles": {"draws": 1, "n": 25, "penalties": (10.0, 3e-2)},
}


def test_every_table_and_picture_has_its_place_in_the_report(paper, data):
    text = (PAPER / "report.md").read_text("utf-8")
    assert set(re.findall(r"{(\w+)}", text)) == set(data)
    assert set(re.findall(r"\((\w+)\.png\)", text)) == set(data)
    report = text.format(**{s.name: s.table(data[s.name]) for s in paper.SECTIONS})
    assert report.count("\n| --- |") == len(data)


def test_ours_is_never_negative_where_the_same_objective_without_the_constraint_is(data):
    for figure in data["figure"]:
        assert figure.ours.min() >= 0.0 > figure.ridge.min()
        assert 0.3 < np.mean(figure.ridge < 0.0) < 0.45
        assert figure.gap < 1e-6


def test_larger_cones_have_smaller_optima_and_the_diagonal_one_is_non_negative_ridge(paper, data):
    for full, diagonal in zip(data["cones"][::2], data["cones"][1::2], strict=True):
        assert full.objective[0] < diagonal.objective[0]
    ex = paper.ex
    X, y = ex.sample(30, 0)
    # with enough penalty all weights of ridge regression on |y| are positive: the same problem
    machine = ex.SoSRegressor(ex.kernel_of(0.75), cone=ex.cone_of("Diagonal", 1e3, 30))
    free = ex.ridge(X, np.abs(y), 0.75, 1e3)
    fitted = machine.fit(X, np.abs(y)).predict(ex.GRID[:, None])
    np.testing.assert_allclose(fitted, free, rtol=1e-6)


def test_penalties_of_the_cones_agree_where_the_cones_do_on_a_single_point(paper):
    ex = paper.ex
    machines = [
        ex.SoSRegressor(ex.kernel_of(1.0), cone=ex.cone_of(c, 0.3, 1)) for c in ex.CONES[:2]
    ]
    full, diagonal = (m.fit([[0.0]], [2.0]).solution_.objective for m in machines)
    # f = α k², k = 1.01 and ‖f‖² = α²k² = f²/k²: the smallest (f - 2)² + 0.3 f²/k²
    share = 0.3 / 1.01**2
    assert full == pytest.approx(4.0 * share / (1.0 + share), rel=1e-6)
    assert diagonal == pytest.approx(full, rel=1e-6)


def test_the_papers_cone_is_the_smallest_and_oversmooths_where_the_others_do_not(paper):
    pytest.importorskip("cvxpy")
    fits = paper.ex.cones_data(draws=1, n=25, scales=(0.75,))
    full, diagonal, smallest = (fit.objective[0] for fit in fits)
    assert full < diagonal < 0.9 * smallest


def test_the_inequality_asks_for_more_than_non_negative_weights(paper, data):
    G, alpha = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([1.0, 0.01])
    assert paper.ex.conditions(G, alpha) == (True, False)
    assert paper.ex.conditions(G, np.array([1.0, 0.7])) == (True, True)
    assert paper.ex.conditions(G, np.array([1.0, -0.01])) == (False, False)
    for case in data["inequality"]:
        assert case.both == case.cases
        assert case.inequality < case.nonnegative


def test_cross_validation_chooses_the_smallest_held_out_loss(data):
    best = data["selection"][-1]
    assert best.loss == pytest.approx(best.selection.losses.min(), rel=1e-2)
    assert best.fit.min() >= 0.0


def test_a_learned_noise_level_is_nearer_to_the_truth_than_a_constant_one(paper, data):
    truth, ours, constant = data["noise"]
    assert truth.fresh[0] < ours.fresh[0] < constant.fresh[0]
    # ½ log 2πe + E log s is the smallest possible, and log s has the mean 0
    assert truth.fresh[0] == pytest.approx(0.5 * np.log(2.0 * np.pi * np.e), abs=0.02)


def test_densities_have_mass_one_and_the_moments_of_the_base_measure_are_exact(paper, data):
    lk = paper.lk
    x = lk.density_sample(80, 0)
    for density in (lk.squares_density(x, 1e-6), lk.bumps_density(x, 0.5)):
        mass, _ = quad(lambda s, d=density: float(np.exp(d(np.array([s])))[0]), -8.0, 8.0, limit=99)
        assert mass == pytest.approx(1.0, abs=1e-6)
    a, b = 0.3, -1.1

    def integrand(s):
        return np.exp(-0.5 * (s - a) ** 2 - 0.5 * (s - b) ** 2) * norm.pdf(s, 0.0, 5.0)

    moments = lk.base_moments(np.array([[a], [b]]))
    assert moments[0, 1] == pytest.approx(quad(integrand, -9.0, 9.0)[0], rel=1e-9)


def test_sums_of_squares_make_narrower_densities_than_non_negative_weights(data):
    score = {model.name: model.scores[0] for model in data["density"]}
    narrow, wide = score["α ≥ 0 on k²"], score["α ≥ 0 on k"]
    assert wide < narrow < -1.2 < -1.0 < score["sum of squares, averaged"] < score["truth"]


def test_no_choice_of_a_penalty_beats_the_one_that_knows_the_truth(data):
    score = {model.name: model.scores for model in data["density"]}
    best = score["sum of squares, chosen by the truth"]
    assert np.all(score["sum of squares, one penalty"] <= best)
    assert np.all(best < score["truth"])
    # -½ log 2πe σ² - log 2 of two bumps that hardly overlap
    assert score["truth"][0] == pytest.approx(-0.5 * np.log(2 * np.pi * np.e * 0.09 * 4), abs=2e-3)


def test_quantiles_learned_together_never_cross_and_of_counts_are_never_negative(paper, data):
    for fit in data["quantiles"]:
        if fit.method == "together":
            assert paper.qu.crossings(fit.values) == 0
    together, alone = data["quantiles"][-2:]
    assert together.values.min() >= 0.0 > alone.values.min()
    assert paper.qu.crossings(together.values[:, ::-1]) == len(together.grid)


def test_the_readme_picture_is_drawn_and_its_line_tells_the_share_below_zero(
    tmp_path, capsys, monkeypatch
):
    path = ROOT / "examples" / "kernel_ridge_dips_below_zero.py"
    monkeypatch.setattr(sys, "argv", [str(path), str(tmp_path / "readme.png")])
    runpy.run_path(str(path))
    assert (tmp_path / "readme.png").stat().st_size > 10_000
    share = int(re.search(r"below zero (\d+)%", capsys.readouterr().out)[1])
    assert 20 < share < 40
