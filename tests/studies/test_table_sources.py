"""Studies of tables: the same answers from files and tables in memory, weights, numeric times."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from hplus import (
    Box,
    EventStudy,
    GroupedStudy,
    Intensity,
    KernelRegressor,
    QuantityStudy,
    StreamingIntensity,
    StreamStudy,
    load,
    plan,
    save,
)
from hplus.files.feeds import TableError
from hplus.files.tables import as_table
from hplus.studies.event_weights import weight_unit
from hplus.studies.events import sampled
from hplus.studies.excitation_study import ExcitationStudy
from hplus.studies.expect import grid_regions

RNG = np.random.default_rng(11)
N = 120
DATA = {
    "lon": RNG.normal(2.35, 0.02, N).round(5),
    "lat": RNG.normal(48.86, 0.01, N).round(5),
    "minutes": np.sort(RNG.uniform(0.0, 38_000.0, N)).round(3),
    "kind": RNG.choice(["a", "b", "c"], N, p=[0.5, 0.4, 0.1]),
    "amount": RNG.exponential(10.0, N).round(3),
    "season": RNG.choice([2012, 2015], N),
}
FRAME = pd.DataFrame(DATA)
WINDOW = (2.30, 48.83, 2.40, 48.89)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    FRAME.to_csv(folder / "t.csv", index=False)
    parquet.write_table(pa.Table.from_pandas(FRAME), folder / "t.parquet")
    return {
        "csv": folder / "t.csv",
        "parquet": str(folder / "t.parquet"),
        "pandas": FRAME,
        "polars": pl.DataFrame(FRAME),
        "arrow": pa.Table.from_pandas(FRAME),
        "dict": DATA,
    }


def study_of(source, columns=("lon",), **given):
    window = WINDOW if len(columns) == 2 else WINDOW[::2]
    given = {"window": window, "where": "kind != 'c'"} | given
    frame = plan(source, columns, **given)
    return EventStudy(frame, model="tree", holdout=0.0).fit(source)


def unfitted():
    return EventStudy(plan(FRAME, ["lon"], window=WINDOW[::2]), model="tree", holdout=0.0)


def test_every_kind_of_table_gives_the_same_study_and_answers(sources):
    studies = {name: study_of(source) for name, source in sources.items()}
    first = studies["csv"]
    assert first.reading_.left_out["not where kind != 'c'"] == int(np.sum(DATA["kind"] == "c"))
    assert first.reading_.dropped == {}
    points = {name: first.predict(source) for name, source in sources.items()}
    for name, study in studies.items():
        assert study.reading_.replace(file="") == first.reading_.replace(file=""), name
        assert study.expect(grid=2) == first.expect(grid=2), name
        np.testing.assert_array_equal(points[name], points["csv"])
    inside = np.isfinite(points["csv"])
    assert inside.sum() >= first.reading_.kept  # rows to ask about need not meet the condition


def test_a_study_of_some_rows_is_that_of_a_table_with_these_rows():
    some = FRAME[(FRAME.kind == "a") & (FRAME.amount >= 5)]
    one = study_of(FRAME, where="kind == 'a' and amount >= 5")
    other = study_of(some, where="")
    assert one.reading_.kept == other.reading_.kept
    assert one.reading_.fingerprint == other.reading_.fingerprint
    np.testing.assert_array_equal(one.predict(FRAME), other.predict(FRAME))


def test_columns_are_found_by_name_in_any_order_and_with_others_beside_them():
    study = study_of(FRAME)
    both = study_of(FRAME, ("lon", "lat"))
    for found in (study, both):
        swapped = FRAME[["amount", "lat", "lon"]]
        np.testing.assert_array_equal(found.predict(swapped), found.predict(FRAME))
    with pytest.raises(TableError, match="'lon' is not in the table"):
        study.predict(FRAME[["lat"]])


def test_the_condition_is_stored_with_the_study(tmp_path):
    save(study_of(FRAME), tmp_path / "m.hplus")
    found = load(tmp_path / "m.hplus")
    assert found.frame.where.text == "kind != 'c'"
    assert found.facts()["where"] == "kind != 'c'"
    assert found.reading_.left_out == study_of(FRAME).reading_.left_out


def test_a_cut_on_purpose_is_no_bad_row_but_unreadable_cells_are():
    bad = FRAME.assign(lon=FRAME.lon.astype(str).where(FRAME.index % 2 == 0, "?x"))
    study = study_of(FRAME, window=(2.345, 2.355))  # more than half of the rows are outside
    assert study.reading_.left_out["outside the window"] > 0.5 * N
    assert study.reading_.share_dropped == 0.0
    with pytest.raises(TableError, match=r"lon is not a number.*most_dropped=0.2"):
        study_of(bad)


# Groups


def test_each_group_is_the_study_of_its_rows():
    single = unfitted()
    grouped = GroupedStudy(single, by="kind", most_groups=2).fit(FRAME)
    assert list(grouped.studies_) == ["a", "b"]
    alone = study_of(FRAME, where="kind == 'b'")
    assert grouped["b"].reading_.replace(left_out={}) == alone.reading_.replace(left_out={})
    np.testing.assert_array_equal(grouped["b"].predict(FRAME), alone.predict(FRAME))
    (reason,) = grouped.left_out_
    assert reason == "in 1 group beyond the 2 largest"


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_the_rows_of_all_groups_are_read_in_one_pass(source, sources):
    frame = plan(sources[source], ["lon"], window=WINDOW[::2], where="amount >= 2")
    single = EventStudy(frame, model="tree", holdout=0.0)
    table, passes = as_table(sources[source]), []
    read = table._reader
    table._reader = lambda *given: (passes.append(1), read(*given))[1]
    grouped = GroupedStudy(single, by="kind").fit(table)
    assert len(passes) == 2  # to find the groups, and to learn
    for study in grouped.studies_.values():
        alone = EventStudy(study.frame, model="tree", holdout=0.0).fit(sources[source])
        assert study.reading_ == alone.reading_
        np.testing.assert_array_equal(study.predict(FRAME), alone.predict(FRAME))


def test_the_ratio_of_two_groups_is_that_of_their_counts_and_regions_cover_it():
    single = unfitted()
    grouped = GroupedStudy(single, by="season").fit(pl.DataFrame(FRAME))
    assert set(grouped.studies_) == {"2012", "2015"}
    facts = grouped.facts()["ratios"][0]
    kept = {name: study.reading_.kept for name, study in grouped.studies_.items()}
    np.testing.assert_allclose(facts["ratio"], kept[facts["group"]] / kept[facts["to"]], rtol=1e-6)
    assert facts["low"] < facts["ratio"] < facts["high"]
    parts = grouped.ratio_by_region("2012", "2015", grid_regions(single.frame, (2,)))
    back = grouped.ratio_by_region("2015", "2012", grid_regions(single.frame, (2,)))
    for one, other in zip(parts, back, strict=True):
        np.testing.assert_allclose(one.ratio * other.ratio, 1.0)
        np.testing.assert_allclose(one.low * other.high, 1.0, rtol=1e-6)


def test_groups_are_saved_in_one_file_and_names_of_numbers_fit_every_table(tmp_path, sources):
    single = unfitted()
    grouped = GroupedStudy(single, by="season").fit(sources["csv"])
    save(grouped, tmp_path / "g.hplus", summary=grouped.facts())
    found = load(tmp_path / "g.hplus")
    assert found["2012"].frame.where.text == "season == 2012"  # also where the column has numbers
    rows = sampled(sources["parquet"], found["2012"].frame)
    assert found["2012"].fitted_to(rows.reading)


# Weights


def test_equal_weights_give_the_rate_times_the_weight():
    frame = FRAME.assign(three=3.0)
    plain = study_of(frame, where="")
    weighted = study_of(frame, where="", weight="three")
    np.testing.assert_allclose(weighted.predict(frame), 3.0 * plain.predict(frame))
    assert weight_unit(weighted) == 3.0
    for one, other in zip(plain.expect(grid=2), weighted.expect(grid=2), strict=True):
        np.testing.assert_allclose(other[1:], 3.0 * np.array(one[1:]))


def test_sums_of_weights_add_up_and_their_intervals_are_wider_than_those_of_counts():
    plain, weighted = study_of(FRAME), study_of(FRAME, weight="amount")
    inside = np.isfinite(plain.predict(FRAME)) & (DATA["kind"] != "c")
    (total,) = weighted.expect()
    np.testing.assert_allclose(total.expected, DATA["amount"][inside].sum(), rtol=1e-4)
    (count,) = plain.expect()
    assert (total.high - total.low) / total.expected > (count.high - count.low) / count.expected
    assert weighted.facts()["weights"].startswith("rates and counts are sums of amount")


def test_the_interval_of_a_sum_is_that_of_independent_weights():
    study = study_of(FRAME, weight="amount")
    inside = np.isfinite(study.predict(FRAME)) & (DATA["kind"] != "c")
    # a sum to come and the one observed vary alike, each with the variance Σw²
    sd = np.sqrt(2.0 * np.sum(DATA["amount"][inside] ** 2))
    (total,) = study.expect()
    np.testing.assert_allclose(total.high - total.low, 2 * 1.645 * sd, rtol=0.15)


def test_a_weight_that_is_tiny_beside_the_others_counts_as_nothing():
    # whatever factor all weights are multiplied by, their unit is multiplied by it too
    zero = DATA["amount"].copy()
    zero[::7] = 0.0
    tiny = zero.copy()
    tiny[::7] = 1e-9 * DATA["amount"].max()
    one, other = (study_of(FRAME.assign(amount=w), weight="amount") for w in (zero, tiny))
    np.testing.assert_allclose(other.predict(FRAME), one.predict(FRAME), rtol=1e-6)
    assert other.reading_.kept == one.reading_.kept


def test_weights_in_time_are_forecast_in_their_own_unit():
    given = {
        "time": "minutes",
        "time_unit": "min",
        "origin": "2020-01-01",
        "start": "0",
        "end": "40000",
    }
    frame = plan(FRAME, weight="amount", **given)
    study = EventStudy(frame, model="tree", holdout=0.0).fit(FRAME)
    (week,) = study.expect("7d")
    mean = DATA["amount"].sum() / 40_000 * 7 * 1440
    assert 0.5 * mean < week.expected < 2.0 * mean
    assert week.low < week.expected < week.high


# Numeric times


def test_numeric_times_are_the_same_as_dates():
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(FRAME.minutes, unit="min")
    both = FRAME.assign(at=dates)
    given = {"start": "2020-01-01", "end": "2020-01-28", "cycle": "day"}
    one = plan(both, time="at", **given)
    other = plan(both, time="minutes", time_unit="minutes", origin="2020-01-01", **given)
    a, b = (EventStudy(f, model="tree", holdout=0.0).fit(both) for f in (one, other))
    assert a.reading_.kept == b.reading_.kept == N
    assert [e[1:] for e in a.expect("7d")] == [e[1:] for e in b.expect("7d")]
    again = plan(
        both,
        time="minutes",
        time_unit="min",
        origin="2020-01-01",
        start="0",
        end="38880",
        cycle="day",
    )
    assert again.clock == other.clock
    numbers = {"start": 0, "end": 38880, "cycle": "day"}
    typed = plan(both, time="minutes", time_unit="min", origin="2020-01-01", **numbers)
    assert typed.clock == other.clock


# Estimators and other studies


def test_a_column_that_is_in_a_table_twice_is_refused():
    twice = pd.concat([FRAME[["lon", "amount"]], FRAME[["amount"]]], axis=1)
    for table in (twice, pa.Table.from_arrays([pa.array([1.0] * 30)] * 2, ["amount", "amount"])):
        with pytest.raises(ValueError, match="'amount' must be in the table once, got it 2 times"):
            QuantityStudy().fit(table, "amount")


def test_a_missing_entry_of_a_nullable_column_is_called_missing():
    known = pd.DataFrame({"x": [1, None, 3], "z": [1.5, 2.0, 3.0]}).convert_dtypes()
    with pytest.raises(TypeError, match=r"<NA> at row 1, column 0: drop or fill those rows first"):
        KernelRegressor().fit(known, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("dress", [lambda f: f, pl.DataFrame, pa.Table.from_pandas])
def test_rates_refuse_columns_in_another_order(dress):
    xy = FRAME[["lon", "lat"]]
    box = Box((2.2, 48.7), (2.5, 49.0), unit="x")
    rate = Intensity(box, model="tree").fit(dress(xy))
    np.testing.assert_array_equal(rate.predict(dress(xy)), rate.predict(xy.to_numpy()))
    assert list(rate.feature_names_in_) == ["lon", "lat"]
    stream = StreamingIntensity(box, method="tree").fit(dress(xy))
    for model in (rate, stream):
        with pytest.raises(ValueError, match=r"same order, \['lon', 'lat'\], got \['lat', 'lon'\]"):
            model.predict(dress(xy[["lat", "lon"]]))
    with pytest.raises(ValueError, match="same order"):
        stream.partial_fit(dress(xy[["lat", "lon"]]))


def test_a_stream_learns_from_tables_what_it_learns_from_lines(sources):
    frame = plan(FRAME, ["lon", "lat"], window=WINDOW, where="amount >= 2")
    lines = StreamStudy(frame).fit(sources["csv"])
    for name in ("pandas", "polars", "arrow"):
        table = StreamStudy(frame).fit(sources[name])
        assert (table.events_, table.fingerprint) == (lines.events_, lines.fingerprint), name
        assert table.left_out_ == lines.left_out_
    parts = StreamStudy(frame).partial_fit(FRAME[:100]).partial_fit(FRAME[100:])
    assert parts.fingerprint == lines.fingerprint


def test_a_quantity_is_learned_from_a_data_frame_by_the_name_of_its_target():
    table = FRAME[["minutes", "kind", "amount"]][:60]
    one = QuantityStudy(random_state=0).fit(pl.DataFrame(table), "amount")
    columns = {name: table[name].to_numpy() for name in ("minutes", "kind")}
    other = QuantityStudy(random_state=0).fit(columns, table.amount.to_numpy())
    np.testing.assert_array_equal(one.predict(table), other.predict(columns))
    np.testing.assert_array_equal(one.predict(table[["kind", "minutes"]]), other.predict(columns))


# What is wrong, in one sentence

LINE = {"x": np.linspace(0.0, 1.0, 50), "w": np.linspace(-1.0, 1.0, 50), "t": np.arange(50.0)}
NUMERIC = {"time": "t", "time_unit": "day", "origin": "2020-01-01", "start": "0", "end": "60"}

BAD = {
    "an unknown column in where": (
        lambda: plan(LINE, ["x"], window=(0, 1), where="z > 1"),
        "'z'",
        TableError,
    ),
    "an unknown weight": (lambda: plan(LINE, ["x"], window=(0, 1), weight="v"), "'v'", TableError),
    "negative weights": (lambda: _line(weight="w"), "'w' must be at least 0", TableError),
    "weights of text": (lambda: _line(weight="c", c=["a"] * 50), "c is not a number", TableError),
    "weights of zero": (lambda: _line(weight="c", c=np.zeros(50)), "'c' .* above 0", TableError),
    "weights that are missing": (
        lambda: _line(weight="c", c=[None] * 25 + [1.0] * 25),
        "no c: 25",
        TableError,
    ),
    "no row that is meant": (
        lambda: plan(LINE, ["x"], where="x > 5"),
        "no row .* where x > 5",
        TableError,
    ),
    "a unit without an origin": (
        lambda: plan(LINE, **NUMERIC | {"origin": None}),
        "origin= belong together",
        ValueError,
    ),
    "an origin without a unit": (
        lambda: plan(LINE, **NUMERIC | {"time_unit": ""}),
        "time_unit= and origin=",
        ValueError,
    ),
    "an unknown unit of time": (
        lambda: plan(LINE, **NUMERIC | {"time_unit": "moon"}),
        "unit of time such as",
        ValueError,
    ),
    "an origin that is no date": (
        lambda: plan(LINE, **NUMERIC | {"origin": "soon"}),
        "origin must look like",
        ValueError,
    ),
    "a unit and a format": (
        lambda: plan(LINE, **NUMERIC | {"form": "%Y"}),
        "form= or time_unit=",
        ValueError,
    ),
    "a unit without times": (
        lambda: plan(LINE, ["x"], window=(0, 1), time_unit="s"),
        "give time=",
        ValueError,
    ),
    "an end that is no time": (
        lambda: plan(LINE, **NUMERIC | {"end": "later"}),
        "end must look like",
        ValueError,
    ),
    "weights of a stream": (
        lambda: StreamStudy(plan(LINE, ["x"], window=(0, 1), weight="t")).begin(),
        "weight must be left out",
        ValueError,
    ),
    "weights of a self-exciting rate": (
        lambda: ExcitationStudy(plan(LINE, **NUMERIC, weight="x")).fit(LINE),
        "weight must be left out",
        ValueError,
    ),
    "groups of too few events": (lambda: _groups("t"), "group of at least 10 events", TableError),
    "groups of times": (
        lambda: _groups("d", d=pd.date_range("2020-01-01", periods=50)),
        "text or numbers",
        TableError,
    ),
    "groups of an unknown column": (lambda: _groups("z"), "'z' is not in", TableError),
    "no number of groups": (lambda: _groups("x", most_groups=0), "most_groups must be", ValueError),
    "groups of a rate": (
        lambda: GroupedStudy("x", by="x").fit(LINE),
        "study must be an EventStudy",
        TypeError,
    ),
    "a group that is not there": (
        lambda: _groups("k", k=["a"] * 50)["b"],
        "group must be one of a, got 'b'",
        ValueError,
    ),
    "a list as a table": (lambda: plan([1, 2], ["x"]), "path of a file, a data frame", TypeError),
    "exposure of a window of time": (
        lambda: _exposed(),
        "exposure must be longer than the window",
        ValueError,
    ),
    "a target that is not there": (
        lambda: QuantityStudy().fit(LINE, "z"),
        "y must be an array or the name",
        ValueError,
    ),
    "a week of numbers": (
        lambda: _line(unit="min").expect("7d"),
        "time='x', time_unit='min' and origin=",
        ValueError,
    ),
    "regions and a grid": (
        lambda: _line().expect(regions="a", grid=2),
        "regions= or grid=",
        ValueError,
    ),
}


def _line(c=(), unit="", **given):
    table = LINE | ({"c": c} if len(c) else {})
    frame = plan(table, ["x"], window=(0, 1), unit=unit, **given)
    return EventStudy(frame, model="tree", holdout=0.0).fit(table)


def _groups(by, most_groups=10, **more):
    single = EventStudy(plan(LINE, ["x"], window=(0, 1)), model="tree", holdout=0.0)
    return GroupedStudy(single, by=by, most_groups=most_groups).fit(LINE | more)


def _exposed():
    from hplus.studies.spans import Amount

    frame = plan(LINE, ["t"], window=(0, 60), unit="day")
    return EventStudy(frame, Amount(60.0, "day"), model="tree").fit(LINE)


@pytest.mark.parametrize(("call", "pattern", "error"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said_in_one_sentence(call, pattern, error):
    with pytest.raises(error, match=pattern) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 320
