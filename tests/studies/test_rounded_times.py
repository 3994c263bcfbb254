"""Times that were rounded are found, whatever the step, and spread; the same events are known."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Cycle, EventStudy, Intensity, Interval
from hplus.rates.cell_counts import uniforms
from hplus.rates.row_keys import row_keys
from hplus.studies.plans import plan, rounding_step
from hplus.studies.spans import Clock

RNG = np.random.RandomState(0)
SECONDS = RNG.uniform(0, 40 * 86_400.0, 3000)


@pytest.mark.parametrize("step", [1, 60, 300, 900, 1200, 1800, 3600, 86_400])
def test_the_step_of_rounded_times_is_found(step):
    assert rounding_step(np.floor(SECONDS / step) * step) == step


def test_continuous_times_few_times_and_chance_are_not_rounded():
    assert rounding_step(SECONDS) == 0.0
    assert rounding_step(np.floor(SECONDS[:40] / 3600.0) * 3600.0) == 0.0
    # busy at noon and at midnight, by the hour: still hours
    hours = RNG.choice([0, 12, *range(24)], 2000) * 3600.0 + RNG.randint(40, size=2000) * 86_400.0
    assert rounding_step(hours) == 3600.0


def test_steps_that_many_times_are_rounded_to_are_found():
    minutes = np.floor(SECONDS / 60.0) * 60.0
    some = RNG.uniform(size=len(minutes)) < 0.8
    assert rounding_step(np.where(some, minutes // 300.0 * 300.0, minutes)) == 300.0
    assert rounding_step(np.where(some, SECONDS, SECONDS // 3600.0 * 3600.0)) == 3600.0


@pytest.mark.parametrize("cycle", ["", "day"])
@pytest.mark.parametrize("step", [60.0, 900.0, 3600.0])
def test_spread_times_stay_in_the_window_and_leave_no_needles(cycle, step):
    clock = Clock("when", 0.0, 40 * 86_400.0, cycle, spread=step)
    seconds = np.floor(SECONDS / step) * step
    at = clock.moved(clock.axis(seconds), uniforms(row_keys(SECONDS[:, None])))
    low, high = (float(end[0]) for end in clock.window.bounds())
    assert low <= at.min()
    assert at.max() <= high
    unit = 3600.0 if cycle else 86_400.0
    away = np.abs(at - clock.axis(seconds)) * unit
    assert np.minimum(away, 86_400.0 - away if cycle else np.inf).max() <= step
    # fourths of a step hold the same share
    shares = np.histogram(at * unit % step / step, 4, (0.0, 1.0))[0] / len(at)
    np.testing.assert_allclose(shares, 0.25, atol=0.02)


@pytest.mark.parametrize("window", [Cycle(24.0), Interval(0.0, 24.0)], ids=repr)
@pytest.mark.parametrize("n", [1000, 2000, 3000])
def test_any_number_of_tied_events_can_be_fitted(window, n):
    """Sums over two grids may round to both sides of a limit on the number of folds."""
    t = np.random.RandomState(n).uniform(0.0, 24.0, n)
    model = Intensity(window).fit(np.floor(60.0 * t)[:, None] / 60.0)
    assert model.expected_count(window) == pytest.approx(n)
    assert model.predict(np.linspace(0.0, 23.9, 400)[:, None]).max() < 1.6 * n / 24.0


def test_the_same_events_in_another_order_and_file_are_recognised(tmp_path):
    days = np.random.RandomState(1).uniform(0, 20, 60)
    stamps = np.datetime64("2026-01-05T00:00:00", "s") + (86_400 * days).astype("timedelta64[s]")
    paths = []
    for name, rows in (("a", stamps), ("b", stamps[::-1]), ("c", stamps[:-1])):
        paths.append(str(tmp_path / f"{name}.csv"))
        with open(paths[-1], "w") as file:
            file.write("when\n" + "\n".join(map(str, rows)) + "\n")
    frame = plan(paths[0], time="when", start="2026-01-05", end="2026-01-25")
    a, b, c = (EventStudy(frame, holdout=0.0).fit(path) for path in paths)
    assert a.fitted_to(b.reading_)
    assert not a.fitted_to(c.reading_)
    old = a.reading_.replace(fingerprint="")
    c.reading_ = old
    assert c.fitted_to(a.reading_)
    assert not c.fitted_to(b.reading_)
