"""The spectrum of sizes: clusters are found at their own size, and no others."""

import numpy as np
import pytest

from hplus import Box, Cycle, Intensity, Interval, Polygon, Statistic, load, save
from hplus.rates.trees.concentrations import evidence_of, learn_clustering
from hplus.rates.trees.level_evidence import LIKELY_LOSS
from hplus.rates.trees.planting import uniform_base
from hplus.rates.trees.spectrum import learn_spectrum

BOX = Box((0, 0), (8, 8), unit="km")
WINDOWS = {
    "line": Interval(0, 8, unit="h"),
    "box": BOX,
    "polygon": Polygon([(0, 0), (8, 0), (8, 6), (0, 8)]),
    "cycle": Cycle(24),
    "cylinder": Box((0, 0), (3, 2), unit="km") * Interval(0, 9, unit="day"),
}
each = pytest.mark.parametrize("name", WINDOWS)


def clusters(window, radius, n=1200, each=12, seed=0):
    """Events in clusters of some radius, as a share of the window's sides."""
    rng = np.random.default_rng(seed)
    low, high = window.bounds()
    centers = np.repeat(window.sample(n // each, random_state=seed), each, axis=0)
    X = centers + radius * (high - low) * rng.uniform(-1, 1, centers.shape)
    return X[window.contains(X)]


def spectrum(window, X, distinct=True):
    statistic = Statistic.of(window, X)
    return learn_spectrum(statistic, uniform_base(statistic.lattice), distinct, 0)[1]


@pytest.mark.parametrize("radius", [0.03, 0.01, 0.001])
def test_clusters_are_found_at_their_size_and_not_below_it(radius):
    found = spectrum(BOX, clusters(BOX, radius))
    width = 2.0 * radius * 8.0
    low, _ = found.variation_interval
    strongest = found.sizes[np.argmax(found.variation)]
    assert width / 4.0 <= strongest <= 8.0 * width
    assert np.all(low[found.sizes < width / 8.0] < 0.3)
    assert low[found.sizes >= width].max() > 0.5


@each
def test_events_without_clusters_have_none_at_any_size(name):
    window = WINDOWS[name]
    found = spectrum(window, window.sample(2000, random_state=1))
    low, high = found.variation_interval
    assert np.mean(low == 0.0) > 0.8
    assert np.sum(found.variation > 0.0) <= 1
    assert np.all(low <= high)


@each
def test_a_spectrum_is_that_of_trees_and_its_bounds_lose_what_they_may(name):
    window = WINDOWS[name]
    statistic = Statistic.of(window, clusters(window, 0.02))
    base = uniform_base(statistic.lattice)
    (clustering, found), learned = (
        learn(statistic, base, True, 0) for learn in (learn_spectrum, learn_clustering)
    )
    np.testing.assert_array_equal(clustering.concentrations, learned.concentrations)
    evidence = evidence_of(statistic, base, True, 0)
    for level in (3, 4):
        for bound in found.bounds[:, level - 1]:
            if 0.0 < bound < np.inf:
                lost = found.gains[level - 1] + evidence[level].loss(np.log(bound))
                assert lost == pytest.approx(LIKELY_LOSS, abs=0.4)
    least, greatest = found.bounds
    finite = found.concentrations < np.inf
    assert np.all((least <= found.concentrations)[finite])
    assert np.all((found.concentrations <= greatest)[finite])
    low, high = found.variation_interval
    assert np.all((low <= found.variation) & (found.variation <= high) | ~finite)
    assert np.all((found.variation >= 0.0) & (found.variation <= np.sqrt(2**window.dimension - 1)))


@pytest.mark.parametrize(("name", "model"), [("line", "exp"), *((n, "tree") for n in WINDOWS)])
def test_a_model_keeps_its_spectrum_of_sizes_that_are_halved(name, model, tmp_path):
    window = WINDOWS[name]
    rate = Intensity(window, model=model).fit(clusters(window, 0.1, n=240))
    save(rate, tmp_path / "rate.hplus")
    found, again = rate.scale_spectrum(), load(tmp_path / "rate.hplus").scale_spectrum()
    for field in ("sizes", "concentrations", "bounds", "gains"):
        np.testing.assert_array_equal(getattr(again, field), getattr(found, field))
    np.testing.assert_array_equal(found.sizes[1:], found.sizes[:-1] / 2.0)
    assert found.sizes.shape[1:] == ((3,) if name == "cylinder" else ())
    assert 1 < len(found.sizes) == len(found.gains) == len(found.variation)


def test_clusters_that_the_exposure_explains_are_none():
    window = Interval(0, 10)
    X = np.concatenate([window.sample(400, random_state=0) / 2.0, 5 + window.sample(40) / 2.0])
    seen = np.repeat([1.0, 0.1], 100)
    plain, exposed = (
        Intensity(window, model="tree").fit(X, exposure=e).scale_spectrum() for e in (1.0, seen)
    )
    assert plain.gains[:2].max() > 50.0
    assert exposed.gains.max() < 5.0


def test_one_event_has_no_spectrum():
    found = Intensity(BOX, model="tree").fit([[1.0, 2.0]]).scale_spectrum()
    assert found.sizes.shape == found.variation.shape == (0,)
