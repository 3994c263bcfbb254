"""papers/streaming still runs, on small sizes, and shows what it says."""

import importlib
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "papers" / "streaming"


@pytest.fixture(scope="module")
def theorem(paper):
    return importlib.import_module("theorem")


def test_every_table_and_picture_has_its_place_in_the_report(paper, data):
    text = (PAPER / "report.md").read_text("utf-8")
    assert set(re.findall(r"{(\w+)}", text)) == set(data)
    assert set(re.findall(r"\((\w+)\.png\)", text)) == set(data)
    report = text.format(**{s.name: s.table(data[s.name]) for s in paper.SECTIONS})
    assert report.count("\n| --- |") == len(data)


@pytest.mark.parametrize("name", ["curry", "court"])
def test_densities_of_shots_are_positive_and_integrate_to_one(data, name):
    for fit in data[name]:
        mass = fit.density
        assert np.all(mass > 0.0)
        for x in fit.places:
            mass = np.trapezoid(mass, x, axis=0)
        assert mass == pytest.approx(1.0, rel=5e-3)


def test_losses_on_a_line_are_near_the_offline_optimum_and_refit_is_nearest(data):
    fits = {fit.name: fit for fit in data["curry"]}
    offline = fits["offline exp"].losses
    for fit in fits.values():
        assert fit.to_offline[0] == pytest.approx(np.mean(fit.losses - offline))
        assert abs(fit.to_offline[0]) < 0.05
    assert fits["Refit"].losses.mean() < fits["SPPPOT, log"].losses.mean()


def test_in_the_plane_a_dictionary_beats_a_grid_of_as_many_weights(data):
    dictionary, grid = data["court"]
    assert dictionary.weights <= grid.weights
    assert np.all(dictionary.losses < grid.losses - 0.1)


def test_polk_goes_below_zero_and_spppot_never(data):
    polk, spppot = data["negative"]
    assert polk.f.min() < 0.0
    assert polk.below.min() > 0.0
    assert polk.impossible > 0
    assert spppot.f.min() > 0.0
    assert spppot.below.max() == 0.0
    assert spppot.impossible == 0


def test_a_grid_over_a_part_fails_in_the_new_region_and_only_there(data):
    part, whole, dictionary = (item.losses for item in data["outside"])
    half = len(part) // 2 - 1
    assert part[-1, 1] > max(whole[-1, 1], dictionary[-1, 1]) + 0.5
    assert abs(part[half, 0] - dictionary[half, 0]) < 0.1


def test_densities_outside_integrate_to_one(data):
    for item in data["outside"]:
        assert np.trapezoid(item.density, item.x) == pytest.approx(1.0, rel=5e-3)


def test_all_but_the_sign_of_one_event_are_along_the_gradient(data):
    *along, single = data["gradients"]
    assert [form.name for form in along] == ["log", "mirror", "sign of 100 events"]
    assert all(np.all(form.inner > 0.0) for form in along)
    assert single.inner.min() < 0.0


def test_the_gradient_of_the_risk_is_that_of_finite_differences(theorem):
    z, h = theorem.LOG_DENSITY(theorem.NODES) * 0.3, 1e-5
    atoms = np.array([[0.2], [0.6]])

    def density(z):
        return np.exp(z) / (theorem.SHARES @ np.exp(z))

    f = density(z)
    # d/dh R(z - h ∇R) = -‖∇R‖²
    gradient = theorem.KERNEL(theorem.NODES) @ (theorem.SHARES * (f - theorem.TRUTH))
    ahead, behind = (theorem.excess(density(z + s * h * gradient)) for s in (-1.0, 1.0))
    squared = theorem.inner_products(f, atoms, seed=0)["log"]
    assert (ahead - behind) / (2.0 * h) == pytest.approx(-squared, rel=1e-5)


def test_expected_mirror_gradients_are_means_over_drawn_events(theorem):
    f = np.ones(len(theorem.NODES)) + 0.5 * np.sin(6.0 * theorem.NODES[:, 0])
    f /= theorem.SHARES @ f
    K, p = theorem.KERNEL(theorem.NODES), theorem.SHARES * theorem.TRUTH
    gradient = K @ (theorem.SHARES * (f - theorem.TRUTH))
    drawn = np.random.RandomState(0).choice(len(p), 200_000, p=p / p.sum())
    # <∇R, -k(x, ·)/f(x) + c> = -∇R(x)/f(x) + ∫∇R
    each = theorem.SHARES @ gradient - gradient[drawn] / f[drawn]
    product = theorem.inner_products(f, np.array([[0.5]]), seed=0)["mirror"]
    assert product == pytest.approx(each.mean(), abs=4.0 * each.std() / np.sqrt(len(drawn)))


def test_the_known_density_is_drawn_from_and_has_no_excess(theorem):
    assert theorem.excess(theorem.TRUTH) == 0.0
    X = theorem.draw(100_000, 0)
    below = np.cumsum(theorem.SHARES * theorem.TRUTH)
    for at in (100, 250, 400):
        assert np.mean(theorem.NODES[at] >= X[:, 0]) == pytest.approx(below[at], abs=0.01)


def test_smaller_steps_settle_nearer_and_a_large_tolerance_further_away(data):
    *steps, coarse = data["theorem"]
    assert all(a.step > b.step and a.radius > b.radius for a, b in pairwise(steps))
    middle = next(run for run in steps if run.step == coarse.step)
    assert coarse.radius > 2.0 * middle.radius
    assert coarse.atoms < middle.atoms


def test_atoms_grow_as_the_tolerance_shrinks_and_no_faster_than_the_bound(data):
    for curve in data["atoms"]:
        assert np.all(np.diff(curve.tolerances) < 0.0)
        assert np.all(np.diff(curve.atoms) > 0.0)
        assert 0.0 < curve.slope < curve.dimension


def test_three_updates_are_shrunken_bumps_with_the_signs_of_their_labels(data):
    for number, update in enumerate(data["updates"]):
        expected = [label * 0.9 ** (number - i) for i, label in enumerate([1, -1, 1][: number + 1])]
        np.testing.assert_allclose(update.weights, expected)
        np.testing.assert_allclose(update.bumps.sum(axis=0), update.f, atol=1e-12)


def test_regret_stays_below_its_bound_which_ends_at_norm_times_root_of_events(data):
    for run in data["regret"]:
        assert np.all(run.regret <= run.bound)
        assert run.bound[-1] == pytest.approx(run.norm * np.sqrt(len(run.regret)))
    small, large = data["regret"]
    assert large.regret[-1] > 0.0  # a good function in hindsight is better than learning it
    assert small.norm < large.norm
    assert small.hindsight > large.hindsight


def test_budgets_hold_their_size_and_projection_loses_little(data):
    kept = {item.name: item for item in data["budgets"] if len(item.progressive)}
    assert all(item.atoms <= 100 for name, item in kept.items() if name != "none")
    everything = kept["none"].accuracy.mean()
    assert kept["KOMP, at most 100"].accuracy.mean() > everything - 0.01
    assert kept["Oldest(100)"].accuracy.mean() < everything - 0.02


def test_without_its_folder_the_table_says_that_a9a_was_not_run(paper, data):
    section = next(s for s in paper.SECTIONS if s.name == "budgets")
    assert "| a9a | not run: give --data FOLDER |" in section.table(data["budgets"])


def test_rows_of_a9a_are_read_with_their_features_and_labels(paper, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("label,active_features\n-1,1 6 123\n1,2\n", "utf-8")
    X, y = importlib.import_module("budgets")._read(path)
    assert np.argwhere(X).tolist() == [[0, 0], [0, 5], [0, 122], [1, 1]]
    assert y.tolist() == [-1, 1]


def test_too_much_decay_is_worse_than_none(data):
    none, much = data["tuning"]
    assert none.decay < much.decay
    assert np.all(none.wrong < much.wrong)


def test_second_order_has_reached_first_order_where_it_is_said_to_have(data):
    for item in data["second"]:
        for first, second, reached in zip(item.first, item.second, item.reached, strict=True):
            there = item.events[second <= first[-1]]
            expected = there[0] / item.events[-1] if len(there) else np.inf
            assert reached == expected
