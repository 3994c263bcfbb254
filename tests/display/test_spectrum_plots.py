"""The picture of a spectrum of sizes: what stands on it is what the spectrum says."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from hplus import Box, Interval, ScaleSpectrum
from hplus.display import ScaleSpectrumDisplay

plt.switch_backend("Agg")

INF = np.inf
SIZES = 8.0 * 0.5 ** np.arange(5)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def spectrum(concentrations, window=None, sizes=SIZES):
    A = np.array(concentrations, dtype=float)
    least = np.where(A < INF, A / 2.0, 20.0)
    bounds = np.stack([least, np.where(A < INF, 2.0 * A, INF)])
    window = window or Box((0, 0), (8, 8), unit="km")
    return ScaleSpectrum(window, sizes, A, bounds, np.where(A < INF, 9.0, 0.0))


def test_filled_dots_are_sizes_at_which_events_cluster():
    data = spectrum([INF, 11.0, 2.0, 5.0, INF])
    drawn = ScaleSpectrumDisplay(data).plot()
    lines = {line.get_label(): line for line in drawn.ax_.get_lines()}
    np.testing.assert_array_equal(lines["clustering"].get_xdata(), [4.0, 2.0, 1.0])
    np.testing.assert_allclose(lines["clustering"].get_ydata(), np.sqrt(3.0 / np.array([12, 3, 6])))
    np.testing.assert_array_equal(lines["none seen"].get_ydata(), [0.0, 0.0])
    assert drawn.ax_.get_title(loc="left") == "events cluster from 1 to 4\xa0km"
    assert drawn.ax_.get_xlabel() == "side of a cell (km)"
    assert drawn.ax_.get_xscale() == "log"


@pytest.mark.parametrize(
    ("concentrations", "title"),
    [
        ([INF] * 5, "events do not cluster at any size"),
        ([INF, INF, 3.0, INF, INF], "events cluster at 2\xa0km"),
        ([], "events do not cluster at any size"),
    ],
)
def test_the_title_says_from_which_size_to_which(concentrations, title):
    data = spectrum(concentrations, sizes=SIZES[: len(concentrations)])
    assert ScaleSpectrumDisplay(data).plot().ax_.get_title(loc="left") == title


def test_sizes_are_those_of_the_first_axis_where_units_differ():
    window = Interval(0, 8, unit="km") * Interval(0, 24, unit="h")
    data = spectrum([1.0, 2.0, INF, INF, INF], window, np.stack([SIZES, 3.0 * SIZES], axis=1))
    drawn = ScaleSpectrumDisplay(data).plot()
    assert drawn.ax_.get_title(loc="left") == "events cluster from 4 to 8\xa0km"
