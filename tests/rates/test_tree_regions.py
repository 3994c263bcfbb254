"""Trees on every kind of window: base measures, expected counts of regions, and their moments."""

from functools import cache

import numpy as np
import pytest
import shapely
from tree_windows import (
    ISLANDS,
    WINDOWS,
    children,
    events,
    law,
    mass,
    random_boxes,
    random_polygons,
    smooth,
)

from hplus import Box, Intensity, Interval, Polygon, Statistic
from hplus.rates.trees.concentrations import Clustering
from hplus.rates.trees.tree_rate import TreeBase, TreeRate

every_window = pytest.mark.parametrize("name", WINDOWS)
TREES = 2


@cache
def rate(name: str, based: bool) -> TreeRate:
    """Trees with structure of most sizes."""
    statistic = Statistic.of(WINDOWS[name], events(name))
    A = np.full(statistic.depth + 2, np.inf)
    A[1:9] = 3.0, 8.0, np.inf, 2.0, 5.0, 20.0, np.inf, 4.0
    base = TreeBase(smooth(WINDOWS[name])) if based else None
    clustering = Clustering(A, np.zeros(len(A)), 1.3, -0.2)
    return TreeRate(statistic, clustering, base, np.array(2.0), TREES, 3)


@pytest.mark.parametrize("based", [False, True])
@every_window
def test_the_masses_of_children_add_up(name, based):
    forest, d = rate(name, based).forest, WINDOWS[name].dimension
    ground, rng = forest.ground, np.random.default_rng(4)
    for k in range(TREES):
        cells = [[0, 0, 0]]
        for level in range(min(ground.roots.bits, 14)):
            parent = mass(ground, k, level, cells[0])
            cells = children(cells[0], d)
            masses = np.array([mass(ground, k, level + 1, cell) for cell in cells])
            assert masses.sum() == pytest.approx(parent, rel=1e-9, abs=1e-18)
            assert np.all(masses >= 0.0)
            cells = [cells[rng.choice(len(cells), p=masses / masses.sum())]]


@every_window
def test_the_mass_of_a_root_is_the_volume_of_the_window(name):
    window, forest = WINDOWS[name], rate(name, based=False).forest
    volume = mass(forest.ground, 1, 0, [0, 0, 0])
    volume *= np.prod(rate(name, based=False).density.grid.spacing)
    assert volume == pytest.approx(window.volume, rel=1e-10)


@pytest.mark.parametrize("based", [False, True])
@every_window
def test_expected_counts_of_random_boxes_add_up(name, based):
    window, trees = WINDOWS[name], rate(name, based)
    total = trees.statistic.total / 2.0
    assert trees.integral() == pytest.approx(total, rel=1e-8)
    boxes = random_boxes(window, np.random.default_rng(5))
    assert trees.integrals(boxes).sum() == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("name", [n for n, w in WINDOWS.items() if w.dimension > 1])
def test_expected_counts_of_polygons_add_up(name, based):
    window, trees = WINDOWS[name], rate(name, based)
    parts = random_polygons(window, np.random.default_rng(6))
    assert trees.integrals(parts).sum() == pytest.approx(trees.statistic.total / 2.0, rel=1e-6)


def test_regions_outside_the_window_hold_nothing():
    for trees in (rate("box", based=False), rate("polygon", based=True)):
        outside = [Box((50, 50), (51, 51)), Polygon([[50, 50], [51, 50], [50, 51]])]
        np.testing.assert_array_equal(trees.integrals(outside), 0.0)
        assert np.all(trees.count_draws(outside) < 1e-200)


def coarse(window, depth, base=None):
    """Trees whose smallest cells are few."""
    X = np.clip(window.sample(40, random_state=0) ** 2 % 1.7, *window.bounds())
    statistic = Statistic.of(window, X[window.contains(X)]).coarsened(depth)
    A = np.array([np.inf, 3.0, 5.0, np.inf, 2.0, 4.0, 3.0])[: depth + 2]
    clustering = Clustering(A, np.zeros(len(A)), 0.9, 0.3)
    return TreeRate(statistic, clustering, base, np.array(1.0), 8, 7)


SMALL = Box((0, 0), (3, 2))
CUT = Polygon([[0.3, 0.2], [2.7, 0.9], [1.2, 1.9]], holes=([[1, 0.8], [1.6, 0.9], [1.3, 1.2]],))
REGIONS = [CUT, Box((0.37, 0.1), (1.9, 1.77)), Polygon([[-1, -1], [1, -1], [2.5, 3]])]


def shape_of(region):
    """A region of the plane in shapely."""
    return shapely.box(*np.ravel(region.bounds())) if isinstance(region, Box) else region._shape


@pytest.mark.parametrize("window", [SMALL, CUT, ISLANDS], ids=["box", "hole", "islands"])
def test_an_expected_count_is_the_integral_of_the_rate(window):
    trees = coarse(window, 5)
    lattice = trees.statistic.lattice
    sides, low = lattice.cell_sides(5), window.bounds()[0]
    corners = low + np.indices((32, 32)).reshape(2, -1).T * sides
    corners = corners[np.all(corners < window.bounds()[1], axis=1)]
    # the rate is constant in the smallest cells, which all trees share
    values = trees.function(np.minimum(corners + 0.5 * sides, window.bounds()[1]))
    cells = shapely.intersection(shapely.box(*corners.T, *(corners + sides).T), shape_of(window))
    for region in REGIONS:
        areas = shapely.area(shapely.intersection(cells, shape_of(region)))
        expected = trees.integrals([region])[0]
        assert expected == pytest.approx(values @ areas, rel=1e-9)
        assert 0.0 < expected < trees.statistic.total


@every_window
def test_an_expected_count_is_the_integral_of_the_rate_on_a_smooth_base(name):
    window, trees = WINDOWS[name], rate(name, based=True)
    low, high = window.bounds()
    # where the rate differs least, below the highest concentrations
    coarser = TreeRate(
        trees.statistic.coarsened(4), trees.clustering.up_to(4), trees.base, trees.exposure, 4, 3
    )
    X = window.sample(60_000, random_state=5)
    cut = low + np.array([0.31, 0.67, 0.5])[: len(low)] * (high - low)
    region = Box(low, cut) if len(low) > 1 else Interval(low[0], cut[0])
    values = coarser.function(X) * region.contains(X) * window.volume
    error = values.std() / np.sqrt(len(X))
    assert abs(values.mean() - coarser.integrals([region])[0]) < 4.0 * error


def drawn_shares(trees, k, region, rng, draws):
    """Draws of the share of a region under tree k, level by level from the root."""
    forest = trees.forest
    ground, clustering = forest.ground, trees.clustering
    roots, n = ground.roots, np.diff(forest.counts[k])
    cells = np.array([[int(bin(c)[:1:-1][j::2][::-1] or "0", 2) for j in (0, 1)] for c in
                      map(int, forest.codes[k])])  # fmt: skip

    def share(level, index, rough):
        held = np.all(cells >> (roots.bits - level) == index, axis=1)
        if mass(ground, k, level, [*index, 0]) == 0.0:
            return np.zeros(draws)
        side = roots.scale[:2] * 2.0 ** (roots.bits - level)
        low = np.array(index) * side - ground.offsets[k, :2] * roots.scale[:2]
        corners = np.clip([low, low + side], 0.0, roots.cells[:2]) * trees.density.grid.spacing
        cell = shapely.box(*corners.ravel())
        if level == roots.bits or not held.any():
            return np.full(draws, shapely.area(cell & shape_of(region)) / shapely.area(cell))
        family = children(index, 2)
        f = np.array([mass(ground, k, level + 1, [*child, 0]) for child in family])
        f /= f.sum()
        counts = [n[np.all(cells >> (roots.bits - level - 1) == child, axis=1)].sum()
                  for child in family]  # fmt: skip
        shares = np.tile(f, (draws, 1))
        A, inner = law(clustering, level, rough, f, counts)
        if A < np.inf:
            gammas = rng.gamma(A * f + counts, size=(draws, len(f)))
            shares = gammas / gammas.sum(axis=1, keepdims=True)
        parts = [share(level + 1, *child) for child in zip(family, inner, strict=True)]
        return np.einsum("ij,ji->i", shares, np.array(parts))

    return share(0, [0, 0], 0.0)


@pytest.mark.parametrize("region", REGIONS, ids=["hole", "box", "sticks out"])
def test_the_moments_of_a_share_are_those_of_draws_of_the_tree(region, rng):
    trees = coarse(SMALL, 2)
    first, second = trees._shares([region])
    for k in (0, 3):
        draws = drawn_shares(trees, k, region, rng, 20_000)
        error = draws.std() / np.sqrt(len(draws))
        assert abs(draws.mean() - first[k, 0]) < 4.5 * error
        variance = second[k, 0] - first[k, 0] ** 2
        assert draws.var() == pytest.approx(variance, rel=0.06)


def test_draws_of_a_count_have_its_moments():
    trees = rate("box", based=False)
    boxes = random_boxes(SMALL, np.random.default_rng(8))
    draws, expected = trees.count_draws(boxes), trees.integrals(boxes)
    scale, n = trees.statistic.total / 2.0, trees.statistic.effective_events
    # the total is Gamma(n), independent of the shares
    second = trees._shares(boxes)[1].mean(axis=0) * (1.0 + 1.0 / n) * scale**2
    likely = expected > 5.0
    np.testing.assert_allclose(draws.mean(axis=1)[likely], expected[likely], rtol=0.01)
    np.testing.assert_allclose(draws.var(axis=1)[likely], (second - expected**2)[likely], rtol=0.1)


@pytest.fixture(scope="module")
def base():
    """A smooth rate that knows how uncertain it is."""
    return Intensity(WINDOWS["box"], model="exp").fit(events("box")).rate_


@pytest.mark.parametrize(("level", "left"), [(6, 1.0), (1, 0.0)])
def test_a_large_region_is_as_uncertain_as_its_base_unless_trees_know_better(level, left, base):
    """Structure of small cells says nothing of the error of the base in a region of many."""
    window = WINDOWS["box"]
    statistic, halves = Statistic.of(window, events("box")), [Box((0, 0), (1.5, 2))]
    A = np.full(statistic.depth + 2, np.inf)
    A[level] = 1e9
    trees = TreeRate(
        statistic,
        Clustering(A, np.zeros(len(A))),
        TreeBase(base.function, base),
        np.array(1.0),
        TREES,
        3,
    )
    drawn = (rate.count_draws(halves) for rate in (base, trees))
    of_base, found = (draws.var() / draws.mean() ** 2 for draws in drawn)
    of_total = 1.0 / statistic.events
    assert of_base > 1.2 * of_total
    assert found == pytest.approx(left * of_base + (1.0 - left) * of_total, rel=0.05)
