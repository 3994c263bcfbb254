"""The panel of sizes: a sentence that says what the spectrum does, and a chart of it."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Interval, ScaleSpectrum
from hplus.display.canvas import markup
from hplus.display.page import report_html
from hplus.display.spectrum_charts import page_spectrum, spectrum_chart, spectrum_words

INF = np.inf


def spectrum(concentrations, window=None):
    A = np.array(concentrations, dtype=float)
    bounds = np.stack([np.where(A < INF, A / 2.0, 20.0), np.where(A < INF, 2.0 * A, INF)])
    window = window or Box((0, 0), (8, 8), unit="km")
    sizes = 8.0 * 0.5 ** np.arange(len(A))
    return ScaleSpectrum(window, sizes, A, bounds, np.where(A < INF, 9.0, 0.0))


CASES = {
    "all": (
        [2.0, 11.0, 5.0],
        "Events cluster at every size from 8 km to 2 km, most at 8 km: there, the rates of "
        "neighbouring cells differ by 100 % of their mean.",
    ),
    "one": (
        [INF, 2.0, INF],
        "Events cluster at 4 km: there, the rates of neighbouring cells differ by 100 % of their "
        "mean. In smaller cells they are spread evenly, as far as the events tell.",
    ),
    "two runs": (
        [11.0, INF, 2.0, 5.0],
        "Events cluster at 8 km and at every size from 2 km to 1 km, most at 2 km: there, the "
        "rates of neighbouring cells differ by 100 % of their mean.",
    ),
    "none": (
        [INF, INF],
        "Events do not cluster at any size from 4 km to 8 km: the rates of neighbouring cells "
        "differ no more than by chance.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_sentence_says_at_which_sizes_events_cluster(case):
    concentrations, words = CASES[case]
    assert spectrum_words(spectrum(concentrations)).replace("\u00a0", " ") == words


def test_sizes_of_times_are_lengths_of_time():
    found = spectrum([2.0, 1.0], Interval(0, 8, unit="h"))
    assert "neighbouring intervals differ by" in spectrum_words(found)
    assert "from 8 hours to 4 hours" in spectrum_words(found)


def test_dots_are_filled_where_events_cluster():
    found = markup(spectrum_chart(spectrum([INF, 2.0, 5.0]), wide=True))
    assert found.count('class="point"') == 2
    assert found.count('class="point none"') == 1


def test_the_report_has_the_panel_if_the_spectrum_is_known(studied):
    study, _ = studied("plane")
    assert page_spectrum(study) is None
    assert 'id="sizes"' not in report_html(study)
    study.model_.spectrum_ = spectrum([2.0, 11.0])
    try:
        page = report_html(study)
    finally:
        del study.model_.spectrum_
    assert 'id="sizes"' in page
    assert "Events cluster at every size from" in page
