"""Trees where the exposure varies, with covariates, and with places that were never observed."""

from functools import cache

import numpy as np
import pytest
from tree_windows import (
    HOLE,
    WINDOWS,
    children,
    events,
    law,
    mass,
    planar_axis,
    random_boxes,
    random_polygons,
    smooth,
)

from hplus import Box, Intensity, Interval, Polygon, Statistic, load, save
from hplus.positivity.exp import GridFunction
from hplus.rates.trees.concentrations import Clustering
from hplus.rates.trees.masses import box_mass, cell_bounds
from hplus.rates.trees.strays import moved_onto
from hplus.rates.trees.tree_rate import TreeBase, TreeRate, density_of

every_window = pytest.mark.parametrize("name", WINDOWS)
SQUARE, LINE = Box((0, 0), (1, 1)), Interval(0, 10)


def exposures(f: GridFunction) -> np.ndarray:
    """An exposure that grows along the first axis and is 0 in a fifth of the window."""
    u = (f.grid.nodes() - f.grid.low) / np.subtract(f.grid.high, f.grid.low)
    seen = np.abs(u[:, -1] - 0.6) > 0.1
    return ((0.5 + np.sin(np.pi * u[:, 0])) * seen).reshape(f.grid.shape)


@cache
def exposed_rate(name: str, depth: int | None = None) -> TreeRate:
    """Trees with structure of most sizes, where something was observed."""
    f = smooth(WINDOWS[name])
    statistic = Statistic.of(WINDOWS[name], events(name))
    A = np.full(statistic.depth + 2, np.inf)
    A[1:9] = 3.0, 8.0, np.inf, 2.0, 5.0, 20.0, np.inf, 4.0
    exposure = exposures(f)
    cells = statistic.coarsened(depth or statistic.depth)
    cells = moved_onto(cells, density_of(cells, TreeBase(f), exposure))
    clustering = Clustering(A, np.zeros(len(A)), 1.3, -0.2).up_to(cells.depth)
    return TreeRate(cells, clustering, TreeBase(f), exposure, 4, 3)


@every_window
def test_expected_counts_add_up_under_an_exposure(name):
    window, trees = WINDOWS[name], exposed_rate(name)
    total = trees.integral()
    boxes = random_boxes(window, np.random.default_rng(5))
    assert trees.integrals(boxes).sum() == pytest.approx(total, rel=1e-8)
    if planar_axis(window) is not None:
        parts = random_polygons(window, np.random.default_rng(6))
        assert trees.integrals(parts).sum() == pytest.approx(total, rel=1e-6)


@every_window
def test_an_expected_count_is_the_integral_of_the_rate_under_an_exposure(name):
    window, trees = WINDOWS[name], exposed_rate(name, 4)
    low, high = window.bounds()
    X = window.sample(40_000, random_state=5)
    cut = low + np.array([0.31, 0.67, 0.5])[: len(low)] * (high - low)
    for region in (window, Box(low, cut) if len(low) > 1 else Interval(low[0], cut[0])):
        values = trees.function(X) * region.contains(X) * window.volume
        error = values.std() / np.sqrt(len(X))
        assert abs(values.mean() - trees.integrals([region])[0]) < 4.0 * error


@every_window
def test_points_of_an_exposed_rate_follow_the_rate(name):
    window, trees = WINDOWS[name], exposed_rate(name, 6)
    X = trees.sample(3000, np.random.RandomState(0))
    assert X.shape == (3000, window.dimension)
    assert window.contains(X).all()
    boxes = random_boxes(window, np.random.default_rng(7))
    shares = trees.integrals(boxes) / trees.integral()
    found = np.array([box.contains(X).mean() for box in boxes])
    assert np.all(np.abs(found - shares) < 4.5 * np.sqrt(shares / 3000) + 2e-3)


def test_the_observed_events_are_those_expected():
    # ∫ of the rate times the exposure, which is constant in the cells where it begins
    trees = exposed_rate("interval")
    grid, values = trees.density.grid, trees.density.values
    X = np.linspace(*grid.low, *grid.high, 2**18 + 1)[:-1, None] + 1e-6
    cell = ((X[:, 0] - grid.low[0]) / grid.spacing[0]).astype(int)
    near, far = values[cell], values[cell + 1]
    density = np.where(near * far == 0.0, 0.5 * (near + far), grid.interpolate(values, X))
    seen = trees.function(X) / trees.base.function(X) * density
    assert seen.mean() * 8.0 == pytest.approx(trees.statistic.total, rel=1e-3)


def drawn_shares(trees, k, region, rng, draws):
    """Draws of ∫ of the rate over a box under tree k, in units of shares, from the root down."""
    forest = trees.forest
    ground, clustering = forest.ground, trees.clustering
    roots, n = ground.roots, np.diff(forest.counts[k])
    low, high = np.zeros(3), np.ones(3)
    ends = [(np.array(end) - trees.density.grid.low) / trees.density.grid.spacing
            for end in region.bounds()]  # fmt: skip

    def rated(level, index):
        if not cell_bounds(roots, ground.offsets[k], level, np.array([*index, 0]), low, high):
            return 0.0
        a, b = low.copy(), high.copy()
        a[:2], b[:2] = np.maximum(a[:2], ends[0]), np.minimum(b[:2], ends[1])
        return box_mass(roots, ground.rated, a, b) if np.all(a < b) else 0.0

    codes = forest.codes[k].astype(int)
    cells = np.array([[sum((c >> (2 * i + j) & 1) << i for i in range(20)) for j in (0, 1)]
                      for c in codes])  # fmt: skip

    def share(level, index, rough):
        whole = mass(ground, k, level, [*index, 0])
        held = np.all(cells >> (roots.bits - level) == index, axis=1)
        if level == roots.bits:
            return np.full(draws, rated(level, index) / whole)
        family = children(index, 2)
        f = np.array([mass(ground, k, level + 1, [*child, 0]) for child in family])
        some = f > 0.0
        unseen = sum(rated(level + 1, c) for c, s in zip(family, some, strict=True) if not s)
        family, f = [c for c, s in zip(family, some, strict=True) if s], f[some] / f.sum()
        counts = [n[np.all(cells >> (roots.bits - level - 1) == child, axis=1)].sum()
                  for child in family]  # fmt: skip
        shares = np.tile(f, (draws, 1))
        A, inner = law(clustering, level, rough, f, counts)
        if held.any() and A < np.inf:
            gammas = rng.gamma(A * f + counts, size=(draws, len(f)))
            shares = gammas / gammas.sum(axis=1, keepdims=True)
        parts = np.array([share(level + 1, *child) for child in zip(family, inner, strict=True)])
        return np.einsum("ij,ji->i", shares, parts) + unseen / whole

    return share(0, [0, 0], 0.0)


def test_the_moments_of_a_count_are_those_of_draws_of_the_tree(rng):
    trees, region = exposed_rate("box", 3), Box((0.37, 0.1), (1.9, 1.77))
    first, second = trees._shares([region])
    for k in (0, 3):
        draws = drawn_shares(trees, k, region, rng, 20_000)
        assert abs(draws.mean() - first[k, 0]) < 4.5 * draws.std() / np.sqrt(len(draws))
        assert draws.var() == pytest.approx(second[k, 0] - first[k, 0] ** 2, rel=0.06)


def test_strays_are_moved_to_cells_that_were_observed():
    f = smooth(SQUARE)
    exposure = np.where(np.arange(f.grid.shape[0])[:, None] < 4, 1.0, 0.0) * np.ones(f.grid.shape)
    X = np.array([[0.2, 0.3], [0.501, 0.3], [0.501, 0.3], [0.9, 0.9]])
    statistic = Statistic.of(SQUARE, X, sample_weight=[1.0, 2.0, 3.0, 4.0])
    moved = moved_onto(statistic, density_of(statistic, TreeBase(f), exposure))
    assert moved.total == statistic.total
    assert moved.squares == statistic.squares
    places = moved.lattice.centers(moved.codes, moved.depth)
    np.testing.assert_allclose(places[np.argsort(moved.masses)],
                               [[0.2, 0.3], [0.5, 0.9], [0.5, 0.3]], atol=1e-6)  # fmt: skip
    same = moved_onto(moved, density_of(moved, TreeBase(f), exposure))
    assert same is moved


def half_seen(X):
    return np.where(X[:, 0] < 0.5, 1.0 + X[:, -1], 0.0)


@cache
def half_events():
    X = SQUARE.sample(1500, random_state=1)
    X = X[np.random.default_rng(2).random(1500) < half_seen(X) / 2.0]
    crowd = [0.2, 0.6] + 0.005 * np.random.default_rng(3).normal(size=(150, 2))
    at_edge = np.column_stack([np.full(20, 0.4999), np.linspace(0.1, 0.9, 20)])
    return np.concatenate([X, crowd, at_edge])


@pytest.mark.parametrize("model", ["tree", "auto"])
def test_half_a_square_was_observed(model, coarsely, tmp_path):
    with coarsely():
        m = Intensity(SQUARE, model=model).fit(half_events(), exposure=half_seen)
        halves = [Box((0, 0), (0.5, 1)), Box((0.5, 0), (1, 1))]
        counts = m.expected_count(halves)
        assert counts.sum() == pytest.approx(m.expected_count(SQUARE), rel=1e-8)
        # 750 events per unit of area and exposure, and a crowd seen 1.6 times
        assert counts[0] == pytest.approx(375 + 150 / 1.6, rel=0.1)
        assert 200 < counts[1] < 800
        rates = m.predict(SQUARE.sample(200, random_state=3))
        assert np.all((rates >= 0.0) & (rates < 750 * 300))
        low, high = m.count_interval(halves, exposure=2.0)
        assert np.all((low < 2.0 * counts) & (2.0 * counts < high))
        np.testing.assert_allclose(m.peak()[0], [0.2, 0.6], atol=0.02)
        (X,) = m.sample(random_state=0)
        assert np.mean(X[:, 0] < 0.5) == pytest.approx(counts[0] / counts.sum(), abs=0.06)
        ratio = m / Intensity(SQUARE, model="tree").fit(half_events(), exposure=1.0)
        assert np.all(ratio.count_ratio(halves) > 0.0)
        a, b = ratio.count_ratio_interval(SQUARE)
        assert a < ratio.count_ratio(SQUARE) < b
        save(m, tmp_path / "m")
        again = load(tmp_path / "m")
        np.testing.assert_array_equal(again.expected_count(halves), counts)


@pytest.mark.parametrize("model", ["tree", "auto"])
def test_events_that_were_not_observed_are_an_error(model):
    with pytest.raises(ValueError, match="exposure must be above 0 where events occurred"):
        Intensity(SQUARE, model=model).fit(SQUARE.sample(40, random_state=0), exposure=half_seen)


@pytest.mark.parametrize("exposure", [3.0, lambda X: 1.0 + 0.2 * X[:, 0]], ids=["even", "varies"])
@pytest.mark.parametrize("model", ["tree", "auto"])
def test_trees_are_relative_to_covariates(model, exposure):
    rng = np.random.default_rng(4)
    X = 10.0 * rng.random(6000)[:, None]
    E = np.full(6000, 3.0) if exposure == 3.0 else exposure(X)
    X = X[rng.random(6000) < 0.25 * E / 3.0 * np.exp(np.sin(X[:, 0]) / 1.0) * 0.9]
    covariates = {"wave": lambda X: np.sin(X[:, 0])}
    m = Intensity(LINE, model=model, covariates=covariates).fit(X, exposure=exposure)
    assert m.coefficients_["wave"] == pytest.approx(1.0, abs=0.12)
    rates = m.predict([[1.57], [4.71]])
    assert np.log(rates[0] / rates[1]) == pytest.approx(2.0, abs=0.35)
    parts = [Interval(0, 3.3), Interval(3.3, 10)]
    assert sum(m.expected_count(parts)) == pytest.approx(m.expected_count(LINE), rel=1e-8)


def test_events_on_the_border_of_a_polygon_are_kept():
    corner = np.repeat([[6.0, 4.0]], 3, axis=0)
    X = np.concatenate([HOLE.sample(50, random_state=0), corner])
    m = Intensity(HOLE, model="tree").fit(X)
    assert m.rate_.forest.counts[0, -1] == pytest.approx(53.0)
    near = Polygon([[5.7, 3.7], [6.0, 4.0], [5.6, 4.1]])
    assert m.expected_count(near) > 0.0
    assert m.expected_count(HOLE) == pytest.approx(53.0)
