"""Laws of QuantityStudy: never negative, intervals in order and honest, told in words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from hplus import load, progress, save
from hplus.cli.regress import importance_words
from hplus.studies import validation
from hplus.studies.encoding import ColumnPart, encoded_table, learned_column, table_values
from hplus.studies.importance_ranks import ranks
from hplus.studies.leaks import leaks
from hplus.studies.quantity_study import QuantityStudy
from hplus.studies.ratio_intervals import learned_ratios
from hplus.studies.relevance import evidence, learned_scales, pair_distances
from hplus.studies.validation import poisson_deviance

ANY_NUMBER = st.floats(-1e308, 1e308)
ANY_DATE = st.integers(-(10**10), 10**11).map(lambda seconds: np.datetime64(seconds, "s"))


def table(n, seed=0):
    """Sales by hour (a cycle), shop (text), price and date, and their true mean."""
    rng = np.random.default_rng(seed)
    columns = {
        "hour": rng.integers(0, 24, n).astype(float),
        "shop": rng.choice(["north", "south", "west"], n),
        "price": rng.gamma(3.0, 1.0, n),
        "day": np.datetime64("2024-01-01") + rng.integers(0, 60, n),
    }
    level = np.where(columns["shop"] == "north", 4.0, 12.0)
    mean = level * (1.2 + np.cos(columns["hour"] * np.pi / 12.0)) * np.exp(-columns["price"] / 6.0)
    return columns, mean, rng


@pytest.fixture(scope="module")
def study():
    columns, mean, rng = table(150)
    return QuantityStudy(random_state=0).fit(columns, rng.poisson(mean))


def one_row(hour, shop, price, day):
    return {
        "hour": np.array([hour]),
        "shop": np.array([shop], dtype=object),
        "price": np.array([price]),
        "day": np.array([day], dtype="datetime64[s]"),
    }


@given(
    hour=ANY_NUMBER, shop=st.text(), price=ANY_NUMBER, day=ANY_DATE, level=st.floats(0.01, 0.999)
)
def test_wherever_it_is_asked_zero_is_below_low_below_mean_below_high(
    study, hour, shop, price, day, level
):
    row = one_row(hour, shop, price, day)
    (mean,), (low, high) = study.predict(row), study.predict_interval(row, level)
    assert 0.0 <= low[0] <= mean <= high[0] < np.inf


@given(hour=st.integers(0, 23), shop=st.sampled_from(["north", "south"]), price=st.floats(0, 9))
def test_a_higher_level_gives_an_interval_that_contains_the_other(study, hour, shop, price):
    row = one_row(float(hour), shop, price, np.datetime64("2024-01-20"))
    bounds = [study.predict_interval(row, level) for level in (0.5, 0.8, 0.95, 0.99)]
    assert np.all(np.diff([low[0] for low, _ in bounds]) <= 0.0)
    assert np.all(np.diff([high[0] for _, high in bounds]) >= 0.0)


def test_far_values_and_unknown_shops_bring_predictions_towards_the_middle(study):
    day = np.datetime64("2024-01-20")
    busy, quiet = (
        study.predict(one_row(h, s, 1.0, day))[0] for h, s in [(0, "west"), (12, "north")]
    )
    unknown = study.predict(one_row(0.0, "moon", 1e9, day))[0]
    assert quiet < unknown < busy


def test_it_beats_the_plain_mean_and_finds_what_matters(study):
    facts = study.summary_
    assert facts["rows"] == facts["held_out"] == 150
    assert facts["explained"] > 0.5
    for score, value in facts["scores"].items():
        assert value < facts["plain_mean"][score]
    order = [fact["column"] for fact in facts["importance"]]
    assert set(order[:2]) == {"hour", "shop"}
    assert facts["notes"] == []


def fact(column, lost, error=None):
    return {"column": column, "lost": lost} | ({} if error is None else {"error": error})


def test_columns_that_cannot_be_told_apart_share_a_rank_whatever_their_order():
    one = [fact("d", 0.4, 0.02), fact("c", 0.13, 0.03), fact("a", 0.11, 0.02), fact("b", 0.01, 0.0)]
    other = [one[0], fact("a", 0.14, 0.02), fact("c", 0.1, 0.03), one[3]]
    for facts in (one, other):
        assert [[f["column"] for f in rank] for rank in ranks(facts)] == [["d"], ["a", "c"], ["b"]]
    assert importance_words(one) == importance_words(other) == "d 62%, a and c about 18% each"
    earlier = [fact("d", 0.75), fact("a", 0.25)]
    assert importance_words(earlier) == "d 75%, a 25%"
    assert importance_words([fact("d", 0.0, 0.0)]) == "no column improves the predictions"


def test_what_matters_does_not_depend_on_the_seed():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 4))
    y = rng.poisson(3.0 * np.exp(0.8 * X[:, 0] + 0.2 * X[:, 1] + 0.2 * X[:, 2])).astype(float)
    columns = dict(zip("abcd", X.T, strict=True))
    found = [QuantityStudy(random_state=seed).fit(columns, y).summary_ for seed in range(3)]
    first = [[f["column"] for f in ranks(facts["importance"])[0]] for facts in found]
    assert first == [["a"]] * 3
    assert all(f["error"] > 0.0 for facts in found for f in facts["importance"])


def test_effects_follow_the_truth_and_have_values_of_the_column(study):
    hours, shops = study.effect("hour"), study.effect("shop")
    assert np.array_equal(hours.values, np.arange(24.0))
    assert hours.mean[0] > 2.0 * hours.mean[12]
    assert dict(zip(shops.values, shops.mean, strict=True))["north"] == min(shops.mean)
    assert study.effect("day").values.dtype.kind == "M"
    assert study.effect("price", [1.0, 5.0]).mean.shape == (2,)


def test_a_saved_study_predicts_the_same_bit_for_bit(study, tmp_path):
    save(study, tmp_path / "sales.hplus")
    again, (columns, _, _) = load(tmp_path / "sales.hplus"), table(40, seed=1)
    assert np.array_equal(again.predict(columns), study.predict(columns))
    assert np.array_equal(
        again.predict_interval(columns, 0.8), study.predict_interval(columns, 0.8)
    )
    assert np.array_equal(again.effect("shop").mean, study.effect("shop").mean)
    assert again.summary_ == study.summary_


def test_the_same_seed_gives_the_same_study():
    columns, mean, rng = table(40)
    y = rng.poisson(mean)
    one, other = (QuantityStudy(random_state=3).fit(columns, y).predict(columns) for _ in range(2))
    assert np.array_equal(one, other)


def test_predictions_are_in_the_unit_of_the_target():
    columns, mean, rng = table(60)
    y = rng.poisson(mean).astype(float)
    small, large = (QuantityStudy(random_state=0).fit(columns, u * y) for u in (1.0, 1024.0))
    assert np.allclose(1024.0 * small.predict(columns), large.predict(columns), rtol=1e-6)


def test_twice_the_exposure_is_twice_the_expected_quantity():
    columns, mean, rng = table(80)
    observed = rng.gamma(2.0, 2.0, 80)
    y = rng.poisson(observed * mean)
    study = QuantityStudy(random_state=0).fit(columns, y, exposure=observed)
    once, twice = (study.predict(columns, exposure=e) for e in (1.0, 2.0))
    assert np.array_equal(2.0 * once, twice)
    assert np.mean(study.predict(columns, exposure=observed)) == pytest.approx(y.mean(), rel=0.1)
    assert study.summary_["explained"] > 0.5


@pytest.mark.parametrize("mean", [0.7, 40.0])
def test_ratios_cover_new_rows_as_often_as_they_say_where_zeros_are_frequent_too(mean):
    rng = np.random.default_rng(0)
    m = mean * rng.gamma(4.0, 0.25, 6000)
    y = rng.poisson(m * rng.gamma(5.0, 0.2, 6000)).astype(float)
    ratios = learned_ratios(y[:3000], m[:3000])
    for level in (0.5, 0.9):
        low, high = ratios.interval(m[3000:], level)
        covered = np.mean((low <= y[3000:]) & (y[3000:] <= high))
        # steps of counts are large where few are expected
        assert level - 0.03 < covered < level + (0.03 if mean > 1.0 else 0.3)


def test_ratios_hold_at_every_level_of_the_mean():
    rng = np.random.default_rng(1)
    m = np.exp(rng.uniform(0.0, 6.0, 4000))
    y = rng.gamma(1.0 + m / 20.0, m / (1.0 + m / 20.0))
    low, high = learned_ratios(y[:3000], m[:3000]).interval(m[3000:], 0.9)
    inside = (low <= y[3000:]) & (y[3000:] <= high)
    for part in np.array_split(np.argsort(m[3000:]), 4):
        assert 0.83 < inside[part].mean() < 0.97


@pytest.mark.parametrize("rows", [20, 40, 160])
def test_ratios_of_few_rows_cover_as_often_as_they_say_on_average(rows):
    rng = np.random.default_rng(0)
    new, covered = rng.gamma(5.0, 0.2, 2000), []
    for _ in range(100):
        y = rng.gamma(5.0, 0.2, rows)
        low, high = learned_ratios(y, np.ones(rows)).interval(np.ones(1), 0.9)
        covered.append(np.mean((low <= new) & (new <= high)))
    assert 0.88 < np.mean(covered) < 0.92


@pytest.mark.parametrize(("mean", "rows"), [(4.0, 30), (4.0, 60), (10.0, 30), (10.0, 60)])
def test_ratios_of_few_counts_do_not_leave_out_all_zeros_for_a_bound_just_above_0(mean, rows):
    rng, covered = np.random.default_rng(5), []
    for _ in range(150):
        m = mean * np.exp(0.5 * rng.normal(size=rows + 300))
        y = rng.poisson(m * rng.gamma(3.0, 1 / 3, rows + 300)).astype(float)
        low, high = learned_ratios(y[:rows], m[:rows]).interval(m[rows:], 0.9)
        covered.append(np.mean((low <= y[rows:]) & (y[rows:] <= high)))
    assert 0.87 < np.mean(covered) < 0.93


def test_the_gradient_of_the_evidence_is_that_of_its_values():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(20, 2)), rng.integers(0, 3, 20)])
    parts = (ColumnPart(), ColumnPart(3.0), ColumnPart(labels=2))
    D = pair_distances(parts, X)
    z, variances, theta = rng.normal(size=20), rng.gamma(3.0, size=20), 0.3 * rng.normal(size=8)
    gradient = evidence(theta, D, z, variances)[1]
    for j, direction in enumerate(1e-5 * np.eye(8)):
        up, down = (evidence(theta + s * direction, D, z, variances)[0] for s in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(gradient[j], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("part", [ColumnPart(), ColumnPart(2.5), ColumnPart(labels=3)])
def test_kernels_of_parts_are_those_that_scales_are_learned_for(part):
    x = np.array([0.0, 1.0, 2.0, 3.0, 1.0])
    K = np.exp(-part.squared_distances(x) / (2.0 * 0.7**2))
    assert np.allclose(part.kernel(0.7, 0)(x[:, None]), K, atol=1e-12)


def test_hours_go_round_and_a_trend_does_not():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 24, (150, 2)).astype(float)
    rate = np.exp(np.cos((x[:, 0] - 1.0) * np.pi / 12.0) + x[:, 1] / 12.0) * rng.gamma(
        50.0, 0.02, 150
    )
    unit = x[:, 0].std()
    periods = np.full(2, 24.0 / unit)
    learned = learned_scales((ColumnPart(), ColumnPart()), periods, x / unit, rate, np.ones(150))
    assert [bool(part.period) for part in learned.parts] == [True, False]


def test_dates_have_a_trend_and_the_cycles_that_they_span():
    day = np.datetime64("2024-01-01")
    weeks, years = (
        learned_column("d", day + np.arange(30)),
        learned_column("d", day + np.arange(800)),
    )
    hours = learned_column("d", day + np.arange(0, 500).astype("timedelta64[h]"))
    assert [len(c.parts()) for c in (weeks, years, hours)] == [2, 3, 3]
    x = years.encoded(years.values(day + np.array([3, 10, 3 + 7 * 52])))
    assert x[0, 2] == pytest.approx(x[1, 2])


def test_columns_that_tell_the_target_are_named():
    rng = np.random.default_rng(0)
    a, b, c = rng.gamma(2.0, 3.0, (3, 200))
    assert "'b' alone" in leaks(["a", "b"], np.column_stack([a, np.log(b)]), b)[0]
    (together,) = leaks(["a", "c", "b"], np.column_stack([a, c, b]), a + b)
    assert "'a' and 'b' together explain" in together
    assert leaks(["a", "b"], np.column_stack([a, b]), a + b + c) == []


def test_constant_columns_and_leaks_are_reported_in_words():
    columns, mean, rng = table(30)
    y = rng.poisson(mean).astype(float)
    with pytest.warns(UserWarning, match="The column") as told:
        study = QuantityStudy(random_state=0).fit(
            {"hour": columns["hour"], "same": np.ones(30), "copy": 2.0 * y}, y
        )
    assert [str(warning.message) for warning in told] == study.summary_["notes"]
    assert "'same' is not used: it is constant" in study.summary_["notes"][0]
    assert "'copy' alone explains over 99.9 %" in study.summary_["notes"][1]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"y": -1.0},
            "y must be at least 0 in every row, got 2 rows where it is not, the first -1",
        ),
        (
            {"y": np.nan},
            "y must be finite in every row, got 2 rows where it is not, the first nan in",
        ),
        ({"hour": np.inf}, "column 'hour' must hold finite values, got 2 missing or infinite, the"),
        ({"exposure": 0.0}, "exposure must be above 0 in every row, got 0 in row 4"),
    ],
)
def test_bad_rows_are_counted_and_the_first_is_named(changed, sentence):
    columns, mean, _ = table(30)
    given = {"y": mean, "hour": columns["hour"], "exposure": np.ones(30)}
    for name, bad in changed.items():
        given[name][[4, 9]] = bad
    with pytest.raises(ValueError, match=sentence):
        QuantityStudy().fit({"hour": given["hour"]}, given["y"], exposure=given["exposure"])


def test_too_few_rows_no_features_and_foreign_columns_are_refused(study):
    columns, mean, _ = table(30)
    few = {name: column[:12] for name, column in columns.items()}
    with pytest.raises(ValueError, match="at least 20 rows, so that some can be held out, got 12"):
        QuantityStudy().fit(few, mean[:12])
    with pytest.raises(ValueError, match="columns must include at least one that varies"):
        QuantityStudy().fit({"one": np.ones(30)}, mean)
    with pytest.raises(ValueError, match="above 0 in at least 2 rows, got 0"):
        QuantityStudy().fit(columns, np.zeros(30))
    with pytest.raises(
        ValueError, match="columns must include every column used in fit, but 'day' is missing"
    ):
        study.predict({name: columns[name] for name in ("hour", "shop", "price")})
    with pytest.raises(TypeError, match="column 'shop' must hold text as in fit"):
        study.predict(columns | {"shop": columns["hour"]})
    hours = ["6", "seven", *columns["hour"][2:].tolist()]
    with pytest.raises(TypeError, match="'hour' must hold numbers as in fit, got 'seven' in row 1"):
        study.predict(columns | {"hour": hours})
    with pytest.raises(ValueError, match="name must be one of"):
        study.effect("colour")


def test_a_fifth_with_all_that_is_above_zero_is_not_the_one_held_out(monkeypatch):
    monkeypatch.setattr(validation, "MIN_HELD_OUT", 10)
    monkeypatch.setattr(validation, "MIN_FOLDS", 1)  # a single fifth
    y = np.zeros(50)
    y[np.random.RandomState(3).permutation(50)[:2]] = 1.0
    study = QuantityStudy(random_state=3).fit({"x": np.arange(50.0)}, y)
    assert study.summary_["held_out"] == 10
    assert study.summary_["plain_mean"]["mean_absolute_error"] == pytest.approx(2 / 40)


def test_scales_of_many_rows_are_learned_once_from_rows_that_are_never_held_out(monkeypatch):
    monkeypatch.setattr(validation, "MIN_HELD_OUT", 100)
    columns, mean, rng = table(400)
    y, asked = rng.poisson(mean).astype(float), []
    learned = validation.learned_scales

    def told(parts, periods, X, rate, exposure):
        asked.append(rate)
        return learned(parts, periods, X, rate, exposure)

    monkeypatch.setattr(validation, "learned_scales", told)
    study = QuantityStudy(random_state=3).fit(columns, y)
    (never,) = asked
    assert study.summary_["held_out"] == 240  # three fifths
    np.testing.assert_array_equal(never, y[np.random.RandomState(3).permutation(400)[320:]])


@pytest.mark.parametrize("nothing", [None, float("nan"), np.datetime64("NaT")])
def test_missing_entries_of_a_column_that_had_none_carry_no_information(study, nothing):
    row = one_row(6.0, nothing, 2.0, np.datetime64("2024-01-05"))
    unknown = one_row(6.0, "moon", 2.0, np.datetime64("2024-01-05"))
    assert study.predict(row) == study.predict(unknown)
    far = study.predict(one_row(6.0, "north", 1e12, np.datetime64("2024-01-05")))
    gap = study.predict(one_row(6.0, "north", np.nan, np.datetime64("2024-01-05")))
    assert gap == pytest.approx(far, rel=1e-6)
    with pytest.raises(ValueError, match="column 'day' must hold finite values, got 1 missing"):
        study.predict(one_row(6.0, "north", 2.0, np.datetime64("NaT")))


def test_missing_entries_are_a_category_of_their_own():
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=200), rng.choice(["a", "b"], 200).astype(object)
    lost, unnamed = rng.random(200) < 0.3, rng.random(200) < 0.3
    y = rng.poisson(np.where(lost, 30.0, 5.0) * np.where(unnamed, 3.0, 1.0)).astype(float)
    x[lost], kind[unnamed] = np.nan, None
    study = QuantityStudy(random_state=0).fit({"x": x, "kind": kind}, y)
    rows = {"x": [np.nan, 0.0, np.nan], "kind": np.array([None, "a", "b"], dtype=object)}
    assert study.predict(rows) == pytest.approx([90.0, 5.0, 30.0], rel=0.25)
    assert study.effect("kind").values.tolist() == ["(missing)", "a", "b"]


def test_categories_of_a_data_frame_are_categories_even_if_they_are_numbers():
    pandas = pytest.importorskip("pandas")
    codes = pandas.Series([3, 1, 3, None, 1, 3] * 5, dtype="category")
    column = learned_column("code", codes)
    assert column.kind == "text"
    assert column.levels == ("(missing)", "1", "3")
    assert column.values(codes)[:4].tolist() == [2.0, 1.0, 2.0, 0.0]


def test_a_column_of_which_only_some_entries_are_known_still_tells_which():
    gaps = learned_column("x", np.array([1.0, np.nan, 1.0, np.nan]))
    assert [part.labels for part in gaps.parts()] == [2]
    assert gaps.encoded(gaps.values([np.nan, 1.0])).tolist() == [[1.0], [0.0]]
    assert learned_column("x", np.full(4, np.nan)).parts() == ()


def test_the_deviance_is_zero_at_the_truth_only():
    y = np.array([0.0, 2.0, 5.0])
    assert poisson_deviance(y, np.maximum(y, 1e-300)) == pytest.approx(0.0)
    assert poisson_deviance(y, y + 1.0) > 0.0


def test_a_hook_is_called_at_every_stage_and_can_stop_the_fit():
    columns, mean, _ = table(30)
    stages, study = {}, QuantityStudy(random_state=0)
    with progress(lambda stage, done, total: stages.update({stage: done / total})):
        study.fit(columns, mean)
    assert list(stages) == [
        "checking on held-out rows", "shuffling columns", "learning from all rows",
    ]  # fmt: skip
    assert set(stages.values()) == {1.0}
    before = study.predict(columns)
    with pytest.raises(ZeroDivisionError), progress(lambda stage, done, total: 1 / (total - done)):
        study.fit(columns, mean + 5.0)
    assert np.array_equal(study.predict(columns), before)


class SoldChunks:
    """Sales in tables of 100 rows, made when they are asked for, and how often that was."""

    def __init__(self, n):
        rng = np.random.default_rng(5)
        self.columns = {"hour": rng.integers(0, 24, n), "day": rng.choice(["work", "rest"], n)}
        self.rate = np.where(self.columns["day"] == "work", 2.0, 6.0)
        self.rate *= 1.1 + np.sin(self.columns["hour"] / 12 * np.pi)
        self.columns["shops"] = rng.integers(1, 4, n).astype(float)
        self.columns["sold"] = rng.poisson(self.rate * self.columns["shops"]).astype(float)
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        for start in range(0, len(self.rate), 100):
            yield {name: column[start : start + 100] for name, column in self.columns.items()}


def test_rows_in_chunks_are_learned_from_like_all_rows(monkeypatch):
    chunks, given = SoldChunks(600), {"y": "sold", "exposure": "shops"}
    monkeypatch.setattr("hplus.studies.quantity_chunks.MAX_SAMPLED_ROWS", 150)
    study = QuantityStudy(random_state=0).fit_chunks(chunks, **given)
    assert chunks.passes < 15
    facts, machine = study.summary_, study.machine_
    assert (facts["rows"], facts["held_out"]) == (600, 150)
    assert study.unit_ == pytest.approx(
        chunks.columns["sold"].sum() / chunks.columns["shops"].sum()
    )
    X = encoded_table(study.columns_, table_values(study.columns_, chunks.columns))
    shops = chunks.columns["shops"] / chunks.columns["shops"].mean()
    sold = chunks.columns["sold"] / (study.unit_ * chunks.columns["shops"].mean())
    whole = clone(machine).fit(X, sold, exposure=shops)
    np.testing.assert_allclose(machine.predict(X), whole.predict(X), rtol=1e-3)
    with pytest.raises(ValueError, match="starts again"):
        study.fit_chunks(iter(chunks), **given)
    chunks = SoldChunks(150)  # which are all in the sample
    all_at_once = QuantityStudy(random_state=0).fit(chunks.columns, **given)
    few = QuantityStudy(random_state=0).fit_chunks(chunks, **given)
    assert (few.summary_, chunks.passes) == (all_at_once.summary_, 1)
