"""Studies of repeated trials: rates per trial, whole trials held out, intervals of the next one."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import EventStudy, load, plan, save
from hplus.studies.expect import count_means, expect, grid_regions, whole
from hplus.studies.merging import merge_studies
from hplus.studies.periods import Period
from hplus.studies.prospects import outlook_facts
from hplus.studies.spans import Amount

TRIALS = 40


def spikes(seed, variance, trials=TRIALS):
    """Spikes of trials whose gain has a variance."""
    rng = np.random.default_rng(seed)
    gains = rng.gamma(1.0 / variance, variance, trials) if variance else np.ones(trials)
    counts = rng.poisson(40.0 * gains)
    return {
        "t": 500.0 * rng.beta(2, 4, counts.sum()),
        "trial": np.repeat(np.arange(trials), counts),
    }


def fitted(table, exposure=None, **options):
    frame = plan(table, ["t"], window=(0, 500), unit="ms", trial="trial")
    return EventStudy(frame, exposure, model="tree", **{"holdout": 0.0} | options).fit(table)


@pytest.fixture(scope="module")
def uneven():
    return fitted(spikes(0, 0.3))


def bounds(study, many=1.0):
    (found,) = expect(study, [whole(study.frame)], Period("", many))
    return found.expected, found.low, found.high


def test_rates_are_per_trial_and_intervals_include_how_trials_vary(uneven):
    assert uneven.exposure_ == Amount(TRIALS, "trial")
    counts = np.bincount(spikes(0, 0.3)["trial"])
    expected, low, high = bounds(uneven)
    assert expected == pytest.approx(counts.mean())
    np.testing.assert_allclose([low, high], np.quantile(counts, [0.05, 0.95]), rtol=0.35)
    level = bounds(fitted(spikes(1, 0.0)))
    assert high - low > 2.0 * (level[2] - level[1])
    said = outlook_facts(uneven)
    assert said["counts"][0]["next"] == "trial"
    assert "times the variance of a Poisson count" in said["variation"]


def test_the_sum_of_many_trials_is_relatively_surer(uneven):
    (one, *first), (ten, *sum_) = bounds(uneven), bounds(uneven, 10.0)
    assert ten == pytest.approx(10.0 * one)
    assert np.diff(sum_)[0] / ten < 0.6 * np.diff(first)[0] / one


def test_parts_add_up_and_share_the_level_of_a_trial(uneven):
    regions = grid_regions(uneven.frame, (5,))
    means = count_means(uneven, regions, Period("", 1.0))
    (all_,) = count_means(uneven, [whole(uneven.frame)], Period("", 1.0))
    assert means.mean(axis=1).sum() == pytest.approx(all_.mean(), rel=0.02)
    # if parts were independent, their sum would vary as little as the sum of their variances
    assert means.sum(axis=0).var() > 1.5 * means.var(axis=1).sum()


def test_whole_trials_are_held_out():
    table = spikes(0, 0.3)
    study = fitted(table, holdout=0.2)
    held = study.holdout_
    assert held.kind == "trials"
    words, events = held.words.split(" at random: ")
    counts = np.bincount(table["trial"])
    assert int(words.split()[0]) in range(2, 16)
    # a sum of whole trials' counts
    sums = {0}
    for n in counts.tolist():
        sums |= {s + n for s in sums}
    assert held.events in sums
    assert events == f"{held.events} events"


def test_trials_in_any_order_and_parts_give_the_same_study():
    table = spikes(3, 0.3)
    order = np.random.default_rng(0).permutation(len(table["t"]))
    parts = [{name: column[some] for name, column in table.items()}
             for some in np.array_split(order, 3)]  # fmt: skip
    whole_, *others = (fitted(part, updatable=True, holdout=0.2) for part in (table, *parts))
    joined = merge_studies(others)
    assert joined.exposure_ == whole_.exposure_
    assert joined.trials_ == whole_.trials_
    assert joined.holdout_.gain == whole_.holdout_.gain


def test_a_study_of_trials_survives_its_file(uneven, tmp_path):
    save(uneven, tmp_path / "trials.hplus")
    assert bounds(load(tmp_path / "trials.hplus")) == bounds(uneven)


def test_names_of_trials_may_be_text_and_some_may_be_missing():
    table = spikes(0, 0.3)
    names = np.array([f"session {k}" for k in range(TRIALS)], dtype=object)[table["trial"]]
    numbered = fitted(table)
    assert bounds(fitted(table | {"trial": names})) == pytest.approx(bounds(numbered), rel=0.1)
    names[:7] = None
    some = fitted(table | {"trial": names})
    assert some.reading_.dropped == {"no trial": 7}


def test_trials_without_events_are_counted_if_they_are_given():
    table = spikes(0, 0.3)
    study = fitted(table, Amount(2 * TRIALS, "session"))
    assert bounds(study)[0] == pytest.approx(len(table["t"]) / (2 * TRIALS))
    assert study.exposure_.unit == "session"
    with pytest.raises(
        ValueError, match="at least the 40 that column 'trial' names, got 30 trials"
    ):
        fitted(table, Amount(30, "trial"))
    with pytest.raises(ValueError, match="must be the number of trials"):
        fitted(table, Amount(60, "day"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"time": "t", "start": "0", "end": "500"}, "trial= or time=, not both"),
        ({"weight": "t"}, "trial= or weight=, not both"),
    ],
)
def test_what_does_not_go_with_trials_is_refused(more, said):
    with pytest.raises(ValueError, match=said):
        plan(spikes(0, 0.0), ["t"], window=(0, 500), trial="trial", **more)


@pytest.mark.parametrize("column", ["games", "trials", "match"])
def test_trials_are_named_in_singular_and_plural(column):
    table = spikes(0, 0.3)
    named = {"t": table["t"], column: table["trial"]}
    frame = plan(named, ["t"], window=(0, 500), unit="ms", trial=column)
    study = EventStudy(frame, model="tree", holdout=0.2).fit(named)
    two = {"games": "2 games", "trials": "2 trials", "match": "2 matches"}[column]
    (found,) = study.expect(two)
    assert found.expected == pytest.approx(2.0 * bounds(study)[0])
    many = {"games": " games", "trials": " trials", "match": " matches"}[column]
    assert f"{many} at random" in study.holdout_.words


@pytest.mark.parametrize("trials", [1, 4])
def test_few_trials_are_said_to_tell_nothing(trials):
    from hplus.studies.outlooks import basis_words

    study = fitted(spikes(0, 0.0, trials))
    assert study.trials_ is None
    said = basis_words(study, Period("", 1.0))
    assert f"from {study.exposure_}, it is not known how much more counts vary" in said
