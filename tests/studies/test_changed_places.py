"""Places whose share of all events has changed: what is claimed, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import EventStudy, Interval
from hplus.cli.summary import fit_table
from hplus.display.outlook_charts import page_outlook
from hplus.studies.changed_places import MIN_ON_EACH_SIDE, PlaceScores
from hplus.studies.plans import plan
from hplus.wording import percent

LINE = Interval(0.0, 1.0)
MONDAY = np.datetime64("2026-01-05T00:00:00", "ms")


class Slope:
    """The rate 1 + s (x - 1/2), of which each event contributes a share u."""

    window = LINE

    def __init__(self, s, u=0.0):
        self.s, self.u, self.rate_ = s, u, self

    def predict(self, X):
        return 1.0 + self.s * (X[:, 0] - 0.5)

    def without(self, X):
        return self.predict(X) * (1.0 - self.u)

    def expected_count(self, regions):
        return 1.0


def gains_of(rate, X):
    return np.log(rate.predict(X))


def scores_of(rate, kde, n=60):
    X = np.random.default_rng(0).uniform(size=(n, 1))
    of_times = np.linspace(-0.1, 0.1, n)
    ours, theirs = gains_of(rate, X), gains_of(kde, X)
    blocks = np.arange(n) // 10
    return PlaceScores(X, np.arange(float(n)), blocks, ours, ours + of_times, theirs, theirs)


def test_a_rate_that_is_known_gains_what_it_did_before_a_change():
    rate, kde = Slope(1.0), Slope(0.5)
    scores = scores_of(rate, kde)
    ours, theirs, blocks = scores.since(40.0, rate, kde)
    np.testing.assert_allclose(ours, scores.whole[40:])
    np.testing.assert_allclose(theirs, scores.kde_whole[40:])
    assert blocks.tolist() == scores.blocks[40:].tolist()


def test_what_events_gain_by_being_learned_from_is_taken_off():
    scores, everything, kde = scores_of(Slope(1.0), Slope(0.5)), Slope(-1.0, 0.3), Slope(0.8)
    ours, theirs, _ = scores.since(40.0, everything, kde)
    of_times = scores.whole - scores.by_place
    left = np.log(1.0 - 0.3)
    inside = gains_of(everything, scores.X)
    np.testing.assert_allclose(ours, inside[40:] + left + of_times[40:])
    of_kde = gains_of(kde, scores.X)
    learned = np.mean(of_kde[:40] - scores.kde_by_place[:40])
    np.testing.assert_allclose(theirs, of_kde[40:] - learned)


@pytest.mark.parametrize("change", [MIN_ON_EACH_SIDE - 0.5, 59.5 - MIN_ON_EACH_SIDE])
def test_too_few_events_on_one_side_of_a_change_say_nothing(change):
    rate = Slope(1.0)
    few = change - 1.0 if change < 30.0 else change + 1.0
    assert scores_of(rate, rate).since(change, rate, rate) is not None
    assert scores_of(rate, rate).since(few, rate, rate) is None


def town(days_of_spot, n=1000):
    """A hill of events over 40 days; in the last ones a third of them are at one spot."""
    rng = np.random.default_rng(1)
    t, x = np.sort(rng.uniform(0.0, 40.0, n)), rng.beta(2.0, 4.0, n)
    moved = (t > 40.0 - days_of_spot) & (rng.uniform(size=n) < 0.35)
    x = np.where(moved, rng.uniform(0.80, 0.82, n), x)
    return {"when": MONDAY + (86_400e3 * t).astype("timedelta64[ms]"), "x": x}


def studied(events):
    frame = plan(events, ["x"], window=(0, 1), time="when", start="2026-01-05", end="2026-02-14")
    return EventStudy(frame, model="tree").fit(events)


@pytest.fixture(scope="module")
def changed():
    return studied(town(4.0))


def test_a_place_whose_share_has_changed_is_named_with_both_shares(changed):
    found = changed.facts()["outlook"]["change"]
    low, high = found["place"]["x"]
    assert max(low, 0.80) < min(high, 0.82)
    assert high - low <= 0.25
    assert found["present"] > 0.2 > 0.1 > found["share"]
    assert "2026-02-09" <= found["since"] <= "2026-02-11"
    row = fit_table(changed.facts())["changes"]
    assert row == found["words"]
    assert f"since {found['since']}, about {percent(found['present'])} of the events" in row
    assert page_outlook(changed).change.lower() == row.lower()


def test_gains_are_those_since_the_change(changed):
    held = changed.holdout_
    assert "when shares of places changed" in held.words
    rng = np.random.default_rng(2)
    spot = rng.uniform(size=4000) < 0.35
    x = np.where(spot, rng.uniform(0.80, 0.82, 4000), rng.beta(2.0, 4.0, 4000))
    place = changed.model_.place_
    true = np.log(place.predict(x[:, None]) / place.expected_count(place.window)).mean()
    assert abs(held.gain - true) < 0.12
    assert held.over_kde == pytest.approx(held.gain - held.kde_gain)


def test_a_steady_map_has_no_change():
    steady = studied(town(0.0))
    assert steady.facts()["outlook"]["change"] is None
    assert "changes" not in fit_table(steady.facts())
    assert "shares of places" not in steady.holdout_.words
