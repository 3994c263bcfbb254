"""papers/trees still runs, on small sizes, and shows what it says."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

PAPER = Path(__file__).parents[1] / "papers" / "trees"

SMALL = {
    "kernel": {"draws": 400},
    "offsets": {"events": 600, "seeds": 2, "most": 8},
    "spectrum": {"events": 2000, "names": ("fine", "none")},
    "coverage": {"events": 500, "sets": 1, "depths": 3},
    "smooth": {"sets": 1, "factor": 1.0, "rates": 1, "events": 400},
    "stream": {"events": 300, "parts": (3,)},
}


@pytest.fixture(scope="module")
def cascades(paper):
    return importlib.import_module("cascades")


def test_every_table_and_picture_has_its_place_in_the_report(paper, data):
    text = (PAPER / "report.md").read_text("utf-8")
    assert set(re.findall(r"{(\w+)}", text)) == set(data)
    drawn = {name for section in paper.SECTIONS for name in section.pictures}
    assert set(re.findall(r"\((\w+)\.png\)", text)) == drawn
    report = text.format(**{s.name: s.table(data[s.name]) for s in paper.SECTIONS})
    assert report.count("\n| --- |") == len(data)


def test_the_kernel_is_that_of_its_closed_form(data):
    for item in data["kernel"]:
        assert abs(item.measured - item.exact) < 4.0 * item.error
        assert item.features < 0.1


def test_the_kernel_is_positive_definite_and_has_the_second_moment_at_0(cascades):
    A = np.array([3.0, np.inf, 1.0])
    x = np.linspace(0.0, 1.0, 40)
    K = cascades.kernel(np.abs(np.subtract.outer(x, x)).ravel(), A).reshape(40, 40)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    assert K[0, 0] == pytest.approx(5.0 / 4.0 * 3.0 / 2.0)


def test_cascades_are_densities_and_samples_follow_them(cascades):
    cascade = cascades.Cascade.drawn(2, 3, np.array([2.0, 2.0, 2.0]), 0)
    grid = (np.indices((400, 400)).reshape(2, -1).T + 0.5) / 400.0
    values = cascade.density(grid)
    assert values.mean() == pytest.approx(1.0, rel=0.01)
    X = cascade.sample(4000, np.random.default_rng(0))
    west = grid[:, 0] < 0.3
    assert np.mean(X[:, 0] < 0.3) == pytest.approx(values[west].sum() / 160_000.0, abs=0.03)


def test_several_trees_predict_better_than_one(data):
    scores = {(a.name, a.trees): a.scores.mean() for a in data["offsets"]}
    for name in {name for name, _ in scores}:
        assert scores[name, 8] > scores[name, 1]


def test_the_spectrum_finds_the_size_of_a_cascade_and_nothing_where_there_is_none(data):
    found = {(s.name, s.size): s for s in data["spectrum"]}
    assert found["fine", 1 / 256].gain > 30.0
    assert found["fine", 1 / 4].found == 0.0
    assert all(s.found == 0.0 for s in data["spectrum"] if s.name == "none")


def test_trees_lose_on_a_smooth_rate_and_the_mixture_does_not(data):
    smooth, rough = data["smooth"]
    assert smooth.errors["tree"][0] > 1.5 * smooth.errors["exp"][0]
    assert smooth.errors["auto"][0] < 1.1 * smooth.errors["exp"][0]
    assert rough.errors["auto"][0] < 1.1 * rough.errors["tree"][0]


def test_parts_in_any_order_give_the_bits_of_the_batch(data):
    assert all(item.same for item in data["stream"])
    assert 0.7 < np.mean([item.covered for item in data["coverage"]]) <= 1.0
