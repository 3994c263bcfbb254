"""Times without events that are far longer than others, and places that hold no more than all."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import EventStudy
from hplus.cli.excited import excitation_table
from hplus.cli.summary import fit_table
from hplus.display.excitation_page import excitation_html
from hplus.report import report_html
from hplus.studies.excitation_study import ExcitationStudy
from hplus.studies.expect import expect, grid_regions, whole
from hplus.studies.periods import Period
from hplus.studies.plans import plan
from hplus.studies.silences import find_silences

MONDAY = np.datetime64("2026-01-05T00:00:00", "ms")


def steady(rng, days=100.0, per_day=10.0):
    return np.sort(rng.uniform(0.0, days, rng.poisson(days * per_day)))


@pytest.mark.parametrize("out", [[(40.0, 54.0)], [(86.0, 100.0)], [(0.0, 9.0), (50.0, 60.0)]])
def test_times_in_which_nothing_was_recorded_are_found(out, rng):
    t = steady(rng)
    for a, b in out:
        t = t[(t < a) | (t >= b)]
    np.testing.assert_allclose(find_silences(t, 0.0, 100.0), out, atol=1.0)


def test_independent_events_bursts_and_nights_have_no_silences():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        t = steady(rng)
        bursts = np.repeat(steady(rng, per_day=0.5), 20) + rng.exponential(0.02, 1)[0]
        days = t[t % 1.0 < 0.4]
        for times in (t, bursts, days, t[:1], t[:0]):
            assert not len(find_silences(times, 0.0, 100.0))


def test_gaps_between_bursts_are_no_silences_but_far_longer_ones_are(rng):
    told = 0
    for _ in range(100):
        bursts = np.sort(rng.uniform(0.0, 100.0, 12))
        t = np.repeat(bursts, 50) + rng.exponential(0.05, 600)
        told += len(find_silences(t[t < 100.0], 0.0, 100.0)) > 0
        assert find_silences(t, 0.0, 2000.0)[-1].tolist() == [t.max(), 2000.0]
    assert told <= 1
    assert not len(find_silences(np.full(30, 50.0), 0.0, 100.0))


def studied(t, x=None, **words):
    events = {"when": MONDAY + (86_400e3 * t).astype("timedelta64[ms]")}
    columns = [] if x is None else ["x"]
    events |= {} if x is None else {"x": x}
    place = {} if x is None else {"window": (0, 1)}
    frame = plan(events, columns, time="when", start="2026-01-05", end="2026-04-15", **place)
    return EventStudy(frame, model="tree", **words).fit(events)


def test_a_silence_is_told_with_what_would_be_usual(rng):
    t = steady(rng)
    study = studied(t[t < 86.0])
    (found,) = study.facts()["outlook"]["silences"]
    assert found["usual"] == pytest.approx(140.0, rel=0.1)
    row = fit_table(study.facts())["silence"]
    assert row.startswith(("no events since 2026-03-3", "no events since 2026-04-01"))
    assert row == found["words"]
    assert f'<p class="note">{row[0].upper()}{row[1:]}.</p>' in report_html(study)
    assert "silence" not in fit_table(studied(t).facts())


def test_a_silence_is_told_in_the_report_of_a_self_exciting_rate(rng):
    t = steady(rng, days=90.0, per_day=3.0)
    events = {"when": MONDAY + (86_400e3 * t).astype("timedelta64[ms]")}
    frame = plan(events, [], time="when", start="2026-01-05", end="2026-04-15")
    study = ExcitationStudy(frame, holdout=0.0).fit(events)
    (found,) = study.facts()["silences"]
    row = excitation_table(study.facts())["silence"]
    assert row == found["words"]
    assert f'<p class="note">{row[0].upper()}{row[1:]}.</p>' in excitation_html(study)


def test_no_part_is_expected_to_hold_more_than_all(rng):
    t = steady(rng, per_day=4.0)
    x = np.where(t < 85.0, rng.uniform(0.0, 0.5, len(t)), rng.uniform(0.9, 1.0, len(t)))
    study = studied(t, x, holdout=0.0)
    end = study.frame.clock.end
    week = Period("", 1.0, end, end + 7 * 86_400.0)
    (total,) = expect(study, [whole(study.frame)], week)
    for part in expect(study, grid_regions(study.frame, (2,)), week):
        assert part.high <= total.high
