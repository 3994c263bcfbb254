"""Pictures: the data against closed forms, the drawings by what stands on their axes."""

import ast
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import hplus.display
from hplus import Density, simulate
from hplus.datasets import curry
from hplus.display import (
    CalibrationDisplay,
    IntensityCurveDisplay,
    IntensityMapDisplay,
    QuadratResiduals,
    RescaledTimes,
    ResidualDisplay,
    calibration_data,
    curve_data,
    map_data,
    plots,
    residual_data,
)
from hplus.display.data import rate_data
from hplus.display.data.check_data import middle_within
from hplus.display.data.framing import outline, place_of, thinned
from hplus.evaluation import EdgeCorrectedKDE, check, residuals
from hplus.windows import Box, Interval, Polygon, Polygons, Window
from hplus.windows.geometry import oriented
from hplus.wording import NBSP, residual_words

plt.switch_backend("Agg")

TIME, BOX, COURT = Interval(0, 3, unit="s"), Box((0, 0), (4, 2), unit="km"), curry().window
TRIANGLE = Polygon([[0, 0], [3, 0], [0, 3]], holes=[[[0.5, 0.5], [1, 0.5], [0.5, 1]]], unit="km")
ISLANDS = Polygons(
    (Polygon([[3, 3], [3, 1], [2, 3]]), TRIANGLE, Polygon([[0.6, 0.6], [0.8, 0.6], [0.6, 0.8]]))
)
PM = np.array([-1.0, 1.0])
YEAR = Interval(0, 365, unit="day")
MIXED = Interval(0, 10, unit="km") * Interval(0, 24, unit="h")
PLANES = {"box": BOX, "polygon": TRIANGLE, "islands": ISLANDS, "mixed": MIXED}
SOLIDS = {"box": Box((0, 0, 0), (4, 2, 1)), "city": TRIANGLE * YEAR, "steps": MIXED * YEAR}
every_plane = pytest.mark.parametrize("window", PLANES.values(), ids=PLANES)
every_solid = pytest.mark.parametrize("window", SOLIDS.values(), ids=SOLIDS)


class Linear:
    """λ(x) = base + slopes·x: the stand-in of a fitted rate, its integrals in closed form."""

    def __init__(self, window, base=1.0, slopes=(2.0, 5.0, 0.1)):
        self.window, self.base, self.slopes = window, base, np.array(slopes[: window.dimension])

    def predict(self, X):
        assert self.window.contains(X).all()
        return self.base + X @ self.slopes

    def predict_interval(self, X, level):
        return (1.0 - level) * self.predict(X), (1.0 + level) * self.predict(X)

    def expected_count(self, regions):
        if not isinstance(regions, Window):
            return np.array([self.expected_count(region) for region in regions])
        nodes, weights = regions.quadrature(2)  # exact for a linear rate
        return float(weights @ self.predict(nodes))


def events(model, count=300.0, seed=0):
    scale = count / model.expected_count(model.window)
    return simulate.poisson(lambda X: scale * model.predict(X), model.window, random_state=seed)


def centres(data):
    x, y = (0.5 * (edges[1:] + edges[:-1]) for edges in (data.x, data.y))
    return np.stack(np.meshgrid(x, y), axis=-1)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(autouse=True)
def coarse_checks(monkeypatch):
    monkeypatch.setattr(residuals, "LATTICE_POINTS", 2**14)
    monkeypatch.setattr(rate_data, "AVERAGED_SLICES", 8)


# curve


def test_a_curve_is_the_rate_and_its_band_from_one_end_of_the_window_to_the_other():
    data = curve_data(Linear(TIME), level=0.8, points=7)
    np.testing.assert_allclose(data.x, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    np.testing.assert_allclose(data.rate, 1.0 + 2.0 * data.x)
    np.testing.assert_allclose([data.low, data.high], [0.2 * data.rate, 1.8 * data.rate])
    assert data.expected == pytest.approx(12.0)
    assert data.level == 0.8


def test_a_model_without_a_band_is_drawn_without_one():
    model = EdgeCorrectedKDE(TIME, 0.5).fit([[1.0], [2.0]])
    drawn = IntensityCurveDisplay.from_estimator(model, level=None)
    assert drawn.data.low is drawn.data.high is drawn.data.level is None
    assert len(drawn.ax_.collections) == 0
    assert drawn.ax_.get_legend() is None


def test_the_arrays_of_a_picture_cannot_be_changed():
    rate = curve_data(Linear(TIME)).rate
    with pytest.raises(ValueError, match="read-only"):
        rate[0] = 0.0


def test_a_curve_is_drawn_with_units_its_band_and_a_stroke_for_each_event():
    X = np.array([[0.5], [1.0], [2.5]])
    drawn = IntensityCurveDisplay.from_estimator(Linear(TIME), X)
    band, rug = drawn.ax_.collections
    assert (drawn.ax_.get_xlabel(), drawn.ax_.get_ylabel()) == ("x (s)", "events per second")
    assert drawn.ax_.get_title(loc="left") == "3 events, mean rate 4 per s"
    assert [text.get_text() for text in drawn.ax_.get_legend().texts] == ["90 % interval", "rate"]
    np.testing.assert_allclose([stroke[0, 0] for stroke in rug.get_segments()], X[:, 0])
    np.testing.assert_allclose(band.get_datalim(drawn.ax_.transData).intervaly, [0.1, 1.9 * 7.0])
    assert drawn.ax_.get_ylim() == pytest.approx((0.0, 1.2 * 1.9 * 7.0))


def test_a_curve_without_events_says_how_many_are_expected():
    drawn = IntensityCurveDisplay.from_estimator(Linear(Interval(0, 3)))
    assert drawn.ax_.get_title(loc="left") == "12 events expected, mean rate 4"
    assert drawn.ax_.get_ylabel() == "events per unit of length"


@pytest.mark.parametrize("window", [Interval(0, 20, unit="cm"), None], ids=["window", "anywhere"])
def test_a_density_is_drawn_with_its_band_and_a_stroke_for_each_value(window, rng):
    X = pd.DataFrame({"length": rng.gamma(9.0, 1.0, 80)})
    model = Density(window).fit(X)
    drawn = IntensityCurveDisplay.from_estimator(model, X)
    _, rug = drawn.ax_.collections
    assert (drawn.ax_.get_ylabel(), drawn.ax_.get_title(loc="left")) == ("density", "80 values")
    assert [text.get_text() for text in drawn.ax_.get_legend().texts][1] == "density"
    assert len(rug.get_segments()) == 80
    data = drawn.data
    np.testing.assert_allclose(data.rate, model.predict(pd.DataFrame({"length": data.x})))
    assert np.all((data.low <= data.rate) & (data.rate <= data.high))
    assert np.trapezoid(data.rate, data.x) == pytest.approx(data.expected, abs=1e-3)
    assert 0.95 < data.expected < 1.0 + 1e-9
    if window is None:
        margin = 0.1 * np.ptp(X["length"])
        ends = [X["length"].min() - margin, X["length"].max() + margin]
        np.testing.assert_allclose(data.x[[0, -1]], ends)


def test_a_density_anywhere_is_drawn_without_values_and_in_the_plane_too(rng, coarsely):
    X = rng.normal(size=(60, 2)) * [1.0, 2.0]
    line = IntensityCurveDisplay.from_estimator(Density().fit(X[:, :1]))
    assert line.ax_.get_title(loc="left") == "density"
    np.testing.assert_allclose(line.data.x[[0, -1]], X[:, 0].mean() + 3 * X[:, 0].std() * PM)
    with coarsely():
        drawn = IntensityMapDisplay.from_estimator(Density().fit(X), X, cells=16)
    assert drawn.ax_.get_title(loc="left") == "60 values"
    assert drawn.figure_.axes[1].get_ylabel().startswith("density")
    with pytest.raises(TypeError, match=r"model must be a rate here, got Density.*draw densities"):
        ResidualDisplay.from_estimator(Density(BOX), X)


# map


@every_plane
def test_a_map_has_the_rate_at_centres_in_the_window_and_nan_elsewhere(window):
    model = Linear(window)
    data = map_data(model, cells=20)
    X = centres(data).reshape(-1, 2)
    inside = window.contains(X)
    np.testing.assert_allclose(data.rate.ravel()[inside], model.predict(X[inside]))
    assert np.isnan(data.rate.ravel()[~inside]).all()
    assert inside.all() == (window.box_bounds() is not None)


@every_plane
def test_the_cells_of_a_map_add_up_to_the_expected_count(window):
    data = map_data(Linear(window), cells=200)
    areas = np.outer(np.diff(data.y), np.diff(data.x))
    assert np.nansum(areas * data.rate) == pytest.approx(data.expected, rel=0.01)


def test_cells_are_square_where_the_axes_share_a_unit():
    assert map_data(Linear(BOX), cells=12).rate.shape == (6, 12)
    assert map_data(Linear(MIXED), cells=12).rate.shape == (12, 12)


@every_solid
def test_a_map_of_three_axes_is_a_slice_or_the_mean_over_the_last(window):
    model, end = Linear(window), window.bounds()[1][2]
    mean, cut = map_data(model, cells=9), map_data(model, cells=9, at=0.25 * end)
    flat = 1.0 + centres(mean) @ model.slopes[:2]
    inside = np.isfinite(mean.rate)
    np.testing.assert_allclose(mean.rate[inside], (flat + 0.05 * end)[inside])
    np.testing.assert_allclose(cut.rate[inside], (flat + 0.025 * end)[inside])
    np.testing.assert_array_equal(inside, np.isfinite(cut.rate))
    assert mean.place.axis_units == window.axis_units[:2]


@pytest.mark.parametrize("window", [*PLANES.values(), *SOLIDS.values()], ids=repr)
def test_an_outline_encloses_the_window(window):
    place = place_of(window)
    areas = [_signed_area(oriented(ring, role)) for ring, role in outline(place)]
    assert sum(areas) == pytest.approx(place.volume)
    assert _signed_area(oriented(outline(place)[0][0], -1.0)) == -areas[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_ring_runs_in_the_requested_direction(sign):
    for ring, _ in outline(TRIANGLE):
        for given in (ring, ring[::-1], ring - 9.0, ring[::-1] - 9.0):
            assert sign * _signed_area(oriented(given, sign)) > 0.0


def _signed_area(ring):
    (x, y), (u, v) = ring[:-1].T, ring[1:].T
    return 0.5 * np.sum(x * v - u * y)


def test_a_map_says_how_many_events_and_how_large_a_window():
    drawn = IntensityMapDisplay.from_estimator(Linear(COURT, 200.0), curry(2015).X, cells=8)
    bar = drawn.figure_.axes[1]
    assert drawn.ax_.get_title(loc="left") == "1,585 events, window 50 × 47 ft"
    assert (drawn.ax_.get_xlabel(), drawn.ax_.get_ylabel()) == ("x (ft)", "y (ft)")
    assert bar.get_ylabel() == "events per ft²"
    assert drawn.ax_.get_aspect() == 1.0


def test_a_map_is_blank_outside_a_polygon_and_its_colours_begin_at_nothing():
    drawn = IntensityMapDisplay.from_estimator(Linear(TRIANGLE), cells=30)
    image = drawn.ax_.collections[0]
    outside = ~TRIANGLE.contains(centres(drawn.data).reshape(-1, 2))
    np.testing.assert_array_equal(np.ma.getmaskarray(image.get_array()).ravel(), outside)
    drawn.figure_.canvas.draw()
    opaque = image.get_facecolors()[:, 3] > 0.0
    np.testing.assert_array_equal(opaque, ~outside)
    assert image.norm.vmin == 0.0
    assert image.norm.vmax == np.nanmax(drawn.data.rate)
    assert len(drawn.ax_.lines) == 2  # the outline and that of the hole


def test_a_clipped_picture_shows_islands_in_a_hole_and_not_the_hole():
    ax = plt.subplots()[1]
    artist = ax.pcolormesh([0.0, 3.0], [0.0, 3.0], [[1.0]])
    plots.clip_to(ax, artist, ISLANDS)
    ax.figure.canvas.draw()
    image = np.asarray(ax.figure.canvas.buffer_rgba())[::-1]
    X = np.array([[0.66, 0.66], [0.54, 0.54], [0.3, 0.3], [2.0, 1.5], [2.9, 2.5]])
    columns, rows = ax.transData.transform(X).astype(int).T
    drawn = np.any(image[rows, columns, :3] < 250, axis=1)
    np.testing.assert_array_equal(drawn, ISLANDS.contains(X))


@pytest.mark.parametrize(
    ("at", "line"), [(None, "averaged over 365 days"), (9.5, "at z = 9.5 days")]
)
def test_a_map_of_three_axes_says_which_time_it_shows(at, line):
    model = Linear(TRIANGLE * YEAR)
    drawn = IntensityMapDisplay.from_estimator(model, [[1.0, 1.5, 9.0]], cells=5, at=at)
    title = drawn.ax_.get_title(loc="left").replace(NBSP, " ")
    assert title == f"1 event, window 4.38 km² within 3 × 3 km\nrate {line}"
    assert drawn.figure_.axes[1].get_ylabel() == "events per km² per day"
    np.testing.assert_array_equal(drawn.ax_.collections[1].get_offsets(), [[1.0, 1.5]])


def test_a_peak_is_drawn_in_square_root_colours_and_the_bar_says_so():
    class Peak(Linear):
        def predict(self, X):
            return np.exp(-20.0 * np.sum((X - 1.0) ** 2, axis=1))

    drawn = IntensityMapDisplay.from_estimator(Peak(BOX), cells=30)
    norm = drawn.ax_.collections[0].norm
    assert norm(0.25 * norm.vmax) == pytest.approx(0.5)
    assert drawn.figure_.axes[1].get_ylabel() == "events per km², square-root colours"


@pytest.mark.parametrize(
    ("window", "aspect"), [(BOX, 1.0), (MIXED, "auto"), (Box((0, 0), (9, 1)), "auto")]
)
def test_axes_have_one_scale_if_they_share_a_unit_and_the_window_is_not_too_long(window, aspect):
    assert IntensityMapDisplay.from_estimator(Linear(window), cells=4).ax_.get_aspect() == aspect


def test_of_very_many_events_some_are_drawn_spread_over_all_rows():
    X = np.arange(3.0 * 50 - 1.0)[:, None]
    np.testing.assert_array_equal(thinned(X, 50), X[::3])
    assert len(thinned(X[:50], 50)) == 50
    assert len(thinned(X[:0], 50)) == 0
    assert plots.opacity(100_000) < plots.opacity(300) < 1.0


def test_a_map_too_large_for_memory_is_refused_before_it_is_made():
    with pytest.raises(MemoryError, match=r"A map of 1000000 by 500000 cells .*: lower cells\.$"):
        map_data(Linear(BOX), cells=1_000_000)


# residuals


def test_residuals_by_quadrat_are_pearsons_with_white_for_none():
    found = check(Linear(BOX), events(Linear(BOX)), quadrats=(3, 2))
    data, boxes = residual_data(found), found.quadrats
    expected = (boxes.observed - boxes.expected) / np.sqrt(boxes.expected)
    order = np.lexsort(boxes.low.T[::-1])
    np.testing.assert_allclose(data.residuals, expected[order])
    np.testing.assert_array_equal(data.low, boxes.low[order])
    image = ResidualDisplay.from_check(found).ax_.collections[0]
    assert min(to_rgb(image.cmap(image.norm(0.0)))) > 0.96
    red, _, blue = to_rgb(image.cmap(image.norm(2.0)))
    assert red > blue


def test_boxes_of_three_axes_are_pooled_over_the_last():
    model = Linear(SOLIDS["box"])
    X = events(model)
    data, flat = residual_data(check(model, X, quadrats=(3, 2, 4))), Linear(Box((0, 0), (4, 2)))
    flat.base = model.base + 0.05  # the mean over the last axis
    projected = residual_data(check(flat, X[:, :2], quadrats=(3, 2)))
    np.testing.assert_allclose(data.residuals, projected.residuals, atol=0.02)
    np.testing.assert_allclose(data.high, projected.high)
    assert data.p_value == pytest.approx(projected.p_value, abs=0.02)


def test_a_staircase_leaves_its_band_exactly_where_the_test_finds_fault():
    model = Linear(TIME)
    for base in (0.3, 1.0, 3.0, 9.0, 30.0):
        data = residual_data(check(model, events(Linear(TIME, base))))
        assert isinstance(data, RescaledTimes)
        assert data.fits == (data.p_value >= 0.05)
        np.testing.assert_allclose(data.shares[[0, -1]], [1.0 / len(data.times), 1.0])
        above, below = data.shares - data.times, data.times - data.shares + data.shares[0]
        assert data.statistic == pytest.approx(max(above.max(), below.max()))


def test_one_in_twenty_right_rates_leaves_the_band(rng):
    data = residual_data(check(Linear(TIME), events(Linear(TIME), 20.0)))
    times = np.sort(rng.random((20_000, len(data.times))), axis=1)
    above, below = data.shares - times, times - data.shares + data.shares[0]
    leaves = np.maximum(above, below).max(axis=1) > data.reach
    assert leaves.mean() == pytest.approx(0.05, abs=0.005)


@pytest.mark.parametrize(("base", "verdict"), [(1.0, "stay in the band"), (60.0, "leave the band")])
def test_a_staircase_says_whether_it_stays_in_the_band(base, verdict):
    X = events(Linear(TIME))
    drawn = ResidualDisplay.from_estimator(Linear(TIME, base), X)
    assert drawn.ax_.get_title(loc="left").startswith(f"{len(X)} events {verdict}, p ")
    x, y = drawn.ax_.lines[1].get_data()
    np.testing.assert_array_equal([[x[0], y[0]], [x[-1], y[-1]]], [[0, 0], [1, 1]])
    np.testing.assert_array_equal(x[1:-1], drawn.data.times)
    band, reach = drawn.ax_.collections[0].get_datalim(drawn.ax_.transData), drawn.data.reach
    np.testing.assert_allclose(band.intervaly, [-reach, 1.0 + reach])


def test_a_map_of_residuals_has_units_numbers_and_a_scale_that_is_even_around_0():
    backwards = Linear(TRIANGLE, 16.0, (-2.0, -3.0))
    drawn = ResidualDisplay.from_estimator(backwards, events(Linear(TRIANGLE)), quadrats=3)
    data, image = drawn.data, drawn.ax_.collections[0]
    assert data.far == (np.abs(data.residuals) > 2.0).sum() > 0
    assert drawn.ax_.get_title(loc="left") == f"{data.far} of 6 quadrats beyond ±2, p < 0.001"
    assert (drawn.ax_.get_xlabel(), drawn.ax_.get_ylabel()) == ("x (km)", "y (km)")
    assert image.norm.vmin == -image.norm.vmax == -data.colour_reach
    assert {text.get_text() for text in drawn.ax_.texts} == set(map(residual_words, data.residuals))
    assert TRIANGLE.contains([text.get_position() for text in drawn.ax_.texts]).all()


def test_a_map_of_residuals_is_white_outside_the_window_and_in_its_holes():
    backwards = Linear(TRIANGLE, 16.0, (-2.0, -3.0))
    drawn = ResidualDisplay.from_estimator(backwards, events(Linear(TRIANGLE)), quadrats=3)
    drawn.figure_.canvas.draw()
    places = [[1.9, 1.9], [0.6, 0.6], [0.2, 0.2], [2.7, 0.1]]
    columns, rows = drawn.ax_.transData.transform(places).astype(int).T
    pixels = np.asarray(drawn.figure_.canvas.buffer_rgba())[::-1][rows, columns]
    np.testing.assert_array_equal((pixels == 255).all(axis=1), [True, True, False, False])


def test_colours_of_residuals_reach_from_3_to_6():
    corners = np.zeros((2, 2))
    found = [
        QuadratResiduals(np.array(r), corners, corners, 1.0).colour_reach
        for r in ([0.5, -1.0], [-4.5, 1.0], [9.0, np.inf])
    ]
    assert found == [3.0, 4.5, 6.0]


def test_a_residual_is_written_with_its_sign():
    found = [residual_words(r) for r in (2.34, -1.0, 0.04, np.inf)]
    assert found == ["+2.3", "−1.0", "0", "new"]


def test_a_number_stands_in_the_middle_of_what_a_quadrat_has_of_the_window():
    middle, share = middle_within(BOX, np.array([3.0, 0.0]), np.array([5.0, 2.0]))
    np.testing.assert_allclose(middle, [3.5, 1.0], atol=0.06)
    assert share == pytest.approx(0.5, abs=0.03)
    outside = middle_within(BOX, np.array([5.0, 0.0]), np.array([6.0, 2.0]))
    assert (outside[0].tolist(), outside[1]) == ([5.5, 1.0], 0.0)


# calibration


class Steps(Linear):
    """1 up to x = 1, 4 beyond."""

    def predict(self, X):
        return 1.0 + 3.0 * (X[:, 0] > 1.0)

    def expected_count(self, regions):
        return 9.0 if isinstance(regions, Window) else np.ones(len(regions))


def test_observed_rates_are_events_over_the_length_where_they_were_seen():
    X = np.array([0.2, 0.4, 0.6, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2])[:, None]
    data = calibration_data(check(Steps(TIME), X))
    np.testing.assert_allclose(data.predicted, [1.0, 4.0])
    np.testing.assert_allclose(data.observed, [3.0 / 1.0, 6.0 / 2.0], rtol=1e-3)
    # 90 % of Poisson counts with mean 1 are 0 to 3, with mean 8 are 4 to 13
    np.testing.assert_allclose([data.low, data.high], [[0.0, 2.0], [3.0, 6.5]], rtol=1e-3)
    np.testing.assert_array_equal(data.inside, [True, True])


def test_a_calibration_has_units_and_marks_what_lies_outside():
    found = check(Linear(BOX, 20.0, (-3.0, -2.0)), events(Linear(BOX)))
    drawn = CalibrationDisplay.from_check(found, window=BOX)
    inside = drawn.data.inside.sum()
    assert drawn.ax_.get_title(loc="left") == f"{inside} of 10 bins in their 90 % interval"
    assert drawn.ax_.get_xlabel() == "predicted events per km²"
    assert drawn.ax_.get_ylabel() == "observed events per km², scaled to the same total"
    crosses = next(line for line in drawn.ax_.lines if line.get_marker() == "X")
    assert len(crosses.get_xdata()) == 10 - inside > 3


@pytest.mark.parametrize(
    ("power", "count", "scale"), [(4, 999, "log"), (1, 999, "linear"), (4, 9, "linear")]
)
def test_axes_are_logarithmic_for_rates_that_differ_much_unless_one_is_0(power, count, scale):
    class Power(Linear):
        def predict(self, X):
            return X[:, 0] ** power

    model = Power(TIME)
    drawn = CalibrationDisplay.from_estimator(model, events(model, count))
    assert (drawn.ax_.get_xscale(), drawn.ax_.get_yscale()) == (scale, scale)


# all


@pytest.mark.parametrize("window", [TIME, TRIANGLE, MIXED, SOLIDS["city"]], ids=repr)
def test_every_picture_can_be_drawn_on_given_axes(window, tmp_path):
    figure, axes = plt.subplots(1, 3)
    model = Linear(window)
    X = events(model)
    rate = IntensityCurveDisplay if window.dimension == 1 else IntensityMapDisplay
    for ax, kind in zip(axes, (rate, ResidualDisplay, CalibrationDisplay), strict=True):
        drawn = kind.from_estimator(model, X, ax=ax)
        assert drawn.ax_ is ax
        assert drawn.figure_ is figure
    figure.savefig(tmp_path / "all.png")


def test_a_picture_can_be_drawn_a_second_time_on_a_figure_of_its_own():
    drawn = IntensityCurveDisplay.from_estimator(Linear(TIME))
    first = drawn.figure_
    assert drawn.plot() is drawn
    assert drawn.figure_ is not first


def test_nothing_needs_matplotlib_until_a_picture_is_drawn(monkeypatch):
    for path in Path(hplus.display.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "matplotlib" not in ast.unparse(node)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'hplus\[plot\]'\.$"):
        IntensityCurveDisplay.from_estimator(Linear(TIME))


LINE, SIDEWAYS = Linear(TIME), Linear(Interval(0, 1) * TRIANGLE)
HOOK = Linear(Polygon([[0, 0], [4, 0], [4, 1], [1, 1], [1, 4], [0, 4]]))
KDE = EdgeCorrectedKDE(TIME)
CHECK = "found must be what evaluation.check returns, got 3.0."


@pytest.mark.parametrize(
    ("call", "arguments", "sentence"),
    [
        (curve_data, (Linear(BOX),), "the model's window must have 1 axis, got 2."),
        (curve_data, (LINE, 1.0), "level must be a number between 0 and 1, got 1.0."),
        (curve_data, (LINE, 0.9, 1), "points must be a whole number of at least 2, got 1."),
        (
            curve_data,
            (KDE,),
            "level must be None for EdgeCorrectedKDE, which has no band, got 0.9.",
        ),
        (map_data, (LINE,), "the model's window must have 2 or 3 axes, got 1."),
        (map_data, (3.0,), "model must be a rate fitted on a window, got 3.0."),
        (map_data, (Linear(BOX), 0), "cells must be a whole number of at least 1, got 0."),
        (
            map_data,
            (HOOK, 1),
            "cells must be larger, so that the centre of a cell lies in the window, got 1.",
        ),
        (map_data, (Linear(BOX), 9, 1.0), "at must be None for a window of 2 axes, got 1.0."),
        (map_data, (Linear(BOX * YEAR), 9, 366), "at must lie from 0 to 365, in the window, got"),
        (map_data, (SIDEWAYS,), "the last axis of the window must be separate from the first two"),
        (IntensityCurveDisplay.from_estimator, (LINE, [[9.0]]), "X must lie in the window, got"),
        (ResidualDisplay.from_estimator, (3.0, []), "model must be a rate fitted on a window"),
        (residual_data, (3.0,), CHECK),
        (calibration_data, (3.0,), CHECK),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, arguments, sentence):
    with pytest.raises((TypeError, ValueError)) as refused:
        call(*arguments)
    assert str(refused.value).startswith(sentence)
    assert str(refused.value).endswith(".")
