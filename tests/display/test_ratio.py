"""Pictures of a ratio of rates: their data against the ratio, drawings by what stands on them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from hplus import Interval, Polygon, RateRatio
from hplus.display import RateRatioDisplay, ratio_data
from hplus.display.rate_plots import scale_ticks
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.wording import ratio_words

pytestmark = pytest.mark.usefixtures("few_nodes")
plt.switch_backend("Agg")

WINDOWS = {"line": Interval(0, 3, unit="s"), "triangle": Polygon([[0, 0], [3, 0], [0, 3]])}
each = pytest.mark.parametrize("name", WINDOWS)


@pytest.fixture(scope="module")
def ratio(grid_rate):
    """By the name of a window: high where x < 1, and 1 elsewhere."""

    def ratio(name):
        window = WINDOWS[name]
        low, high = window.bounds()
        grid = TensorGrid(tuple(low), tuple(high), (33,) * window.dimension)
        x = grid.nodes()[:, 0].reshape(grid.shape)
        above = GridFunction(window, grid, np.where(x < 1.0, 90.0, 15.0))
        below = GridFunction(window, grid, np.full(grid.shape, 15.0))
        return RateRatio(window, grid_rate(above), grid_rate(below))

    return ratio


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def centres(edges):
    return 0.5 * (edges[1:] + edges[:-1])


def test_a_curve_holds_the_ratio_and_its_bounds(ratio):
    data = ratio_data(ratio("line"), 0.8, points=40)
    X = data.x[:, None]
    np.testing.assert_array_equal(data.ratio, ratio("line").predict(X))
    np.testing.assert_array_equal([data.low, data.high], ratio("line").predict_interval(X, 0.8))
    np.testing.assert_array_equal(data.differs, ratio("line").differs(X, 0.8))
    assert (data.x[0], data.x[-1]) == (0.0, 3.0)


def test_a_map_holds_the_ratio_and_its_bounds_inside_the_window_and_nothing_outside(ratio):
    data = ratio_data(ratio("triangle"), 0.8, cells=20)
    X = np.stack(np.meshgrid(centres(data.x), centres(data.y)), axis=-1).reshape(-1, 2)
    inside = WINDOWS["triangle"].contains(X)
    np.testing.assert_array_equal(np.isnan(data.ratio).ravel(), ~inside)
    np.testing.assert_array_equal(data.ratio.ravel()[inside], ratio("triangle").predict(X[inside]))
    bounds = ratio("triangle").predict_interval(X[inside], 0.8)
    np.testing.assert_array_equal([data.low.ravel()[inside], data.high.ravel()[inside]], bounds)
    assert not data.differs.ravel()[~inside].any()


@each
def test_a_picture_says_in_how_much_of_the_window_the_ratio_differs(ratio, name):
    shown = RateRatioDisplay.from_ratio(ratio(name), points=40, cells=20)
    data = shown.data
    share = 100.0 * data.differs.sum() / (~np.isnan(data.ratio)).sum()
    assert 5.0 < share < 95.0
    title = shown.ax_.get_title(loc="left")
    assert title == f"ratio differs from 1 in {share:.0f} % of the window"
    labels = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert any("90 % interval" in label for label in labels)


def test_a_curve_is_drawn_on_a_log_scale_and_blue_only_where_it_differs(ratio):
    shown = RateRatioDisplay.from_ratio(ratio("line"), points=40)
    one, _, sure = shown.ax_.get_lines()
    assert shown.ax_.get_yscale() == "log"
    assert set(one.get_ydata()) == {1.0}
    np.testing.assert_array_equal(np.isnan(sure.get_ydata()), ~shown.data.differs)


def test_a_map_is_grey_where_the_ratio_may_be_1_and_its_colours_are_even_around_1(ratio):
    shown = RateRatioDisplay.from_ratio(ratio("triangle"), cells=20)
    image, veil = shown.ax_.collections[:2]
    low, high = image.get_clim()
    assert low == -high < 0.0
    np.testing.assert_allclose(
        image.get_array().compressed(), np.log(shown.data.ratio[shown.data.ratio > 0])
    )
    hidden = np.isnan(shown.data.ratio) | shown.data.differs
    np.testing.assert_array_equal(np.ma.getmaskarray(veil.get_array()), hidden)


@pytest.mark.parametrize("reach", [0.05, 0.3, 1.0, 3.0, 5.0])
def test_marks_of_a_scale_are_1_and_pairs_of_inverses_within_reach_and_apart(reach):
    marks = np.log(scale_ticks(reach))
    np.testing.assert_allclose(marks, -marks[::-1], atol=1e-15)
    assert 0.0 in marks
    assert np.abs(marks).max() <= reach
    assert len(marks) <= 11
    assert np.all(np.diff(marks) >= 0.2 * reach)


def test_ratios_in_words():
    assert [ratio_words(r) for r in (0.5, 1.0, 1.25)] == ["1/2 ×", "1 ×", "1.25 ×"]


def test_only_a_ratio_is_drawn_and_a_level_must_lie_between_0_and_1(ratio):
    with pytest.raises(TypeError, match="must be a rate fitted on a window, got 3"):
        ratio_data(3)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1, got 2"):
        ratio_data(ratio("line"), 2)
