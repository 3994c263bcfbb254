"""Collections of Dask, and files read by a cluster: the same as without Dask."""

from __future__ import annotations

import dask
import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

from hplus import Box, Density, EventStudy, Intensity, StreamingIntensity
from hplus.files.tables import as_table
from hplus.rates.statistic import Statistic
from hplus.studies.clusters import fit_groups_on_cluster, fit_on_cluster
from hplus.studies.grouped_study import GroupedStudy
from hplus.studies.plans import plan

WINDOW = Box((0, 0), (8, 8))
X = 8.0 * np.random.default_rng(0).beta(2, 3, (3000, 2))
WEIGHTS = np.random.default_rng(1).integers(1, 5, len(X)).astype(float)


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture(params=["array", "frame"])
def lazy(request):
    if request.param == "array":
        return dask.array.from_array(X, chunks=(271, 1))
    return dask.dataframe.from_pandas(pd.DataFrame(X, columns=["x", "y"]), npartitions=11)


def test_statistics_are_those_of_all_rows(lazy):
    assert Statistic.of(WINDOW, lazy) == Statistic.of(WINDOW, X)
    array = dask.array.from_array(X, chunks=(271, 2))
    weights = dask.array.from_array(WEIGHTS, chunks=271)
    assert Statistic.of(WINDOW, array, weights) == Statistic.of(WINDOW, X, WEIGHTS)
    with pytest.raises(ValueError, match="must have the 12 partitions of X, got 3"):
        Statistic.of(WINDOW, array, weights.rechunk(1000))
    with pytest.raises(TypeError, match="sample_weight must be an array or data frame of Dask"):
        Statistic.of(WINDOW, array, WEIGHTS)


def test_fits_are_those_of_all_rows(lazy):
    for kind in (Intensity, Density):
        ours, theirs = (kind(WINDOW, model="tree", random_state=0).fit(Z) for Z in (lazy, X))
        np.testing.assert_array_equal(ours.predict(X[:50]), theirs.predict(X[:50]))
    with pytest.raises(ValueError, match="window must be given for a collection of Dask"):
        Density().fit(lazy)


def test_streams_learn_partition_by_partition(lazy):
    ours, theirs = (StreamingIntensity(WINDOW, method="tree").partial_fit(Z) for Z in (lazy, X))
    np.testing.assert_array_equal(ours.predict(X[:20]), theirs.predict(X[:20]))
    with pytest.raises(ValueError, match="exposure must be None for a collection of Dask"):
        ours.partial_fit(lazy, exposure=1.0)


def test_files_read_by_a_cluster_give_the_same_study(tmp_path):
    table = pd.DataFrame({"x": X[:, 0], "y": X[:, 1]})
    for i, rows in enumerate(np.array_split(np.arange(len(X)), 10)):
        table.iloc[rows].to_parquet(tmp_path / f"{i}.parquet")
    (tmp_path / "3.parquet").write_bytes(b"")
    frame = plan(table, ("x", "y"), window=(0, 0, 8, 8))
    named = str(tmp_path.with_suffix(".parquet"))
    table.assign(z=np.where(X[:, 0] > X[:, 1] + 1.0, "a", "b")).to_parquet(named)

    def study():
        return EventStudy(frame, model="tree", updatable=True, skip_bad=True)

    files = as_table(str(tmp_path), skip_bad=True)
    with (
        LocalCluster(
            processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None
        ) as c,
        Client(c),
    ):
        found = fit_on_cluster(study(), files, c.scheduler_address)
        grouped = GroupedStudy(EventStudy(frame, model="tree", holdout=0.0), by="z")
        groups = fit_groups_on_cluster(clone(grouped), as_table(named), c.scheduler_address)
    one_by_one = grouped.fit(named)
    assert list(groups.studies_) == list(one_by_one.studies_) == ["b", "a"]
    np.testing.assert_array_equal(groups["a"].predict(table), one_by_one["a"].predict(table))
    alone = study().fit(files)
    assert found.summary_ == alone.summary_
    assert found.reading_ == alone.reading_
    assert len(found.reading_.skipped) == 1
