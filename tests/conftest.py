"""What every test may use: a seeded generator; hypothesis draws the same examples every time."""

import gc
import importlib
import os
import sys
from contextlib import contextmanager, suppress
from copy import copy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from hplus.evaluation import bandwidths, residuals, smoothing
from hplus.rates import binned, judging, map_by_time, selection
from hplus.rates.excitation import alternation, learned_places, posterior_draws
from hplus.rates.forecasts import block_edges, weighing
from hplus.rates.trees import concentrations, growing
from hplus.studies import triggered_counts
from hplus.tuning import penalties, scales

# a test run starts some forty processes: what one of them compiles, the others read
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("house", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("house")


def pytest_configure():
    """Machine code that is older than what it was made from goes: numba looks at one file only."""
    folder = Path(find_spec("hplus").origin).parent
    parts = ("streaming/engine/*.py", "rates/trees/*.py", "kernels/compiled.py")
    sources = [source for part in parts for source in folder.glob(part)]
    newest = max(source.stat().st_mtime for source in sources)
    for kept in folder.rglob("__pycache__/*.nb[ci]"):
        with suppress(FileNotFoundError):  # another worker was quicker
            if kept.stat().st_mtime < newest:
                kept.unlink()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and tests stay until the end: the garbage collector need not look at them again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


AT_THE_DOOR = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_complex_data",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimators_empty_data_messages",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_pickle(readonly_memmap=True)",
    "check_fit1d",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_score_takes_y",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_requires_y_none",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
    "check_supervised_y_2d",
    "check_supervised_y_no_nan",
}
"""Checks of scikit-learn that see what one door does for all settings of a class."""

HELD_OTHERWISE = {
    "check_classifiers_train",
    "check_classifiers_train(readonly_memmap=True,X_dtype=float32)",
    "check_regressors_train",
    "check_regressors_train(readonly_memmap=True,X_dtype=float32)",
}
"""As those in read-only memory, which is stricter; check_estimators_dtypes has the other types."""


FIRST = ("test_stream_intensity.py", "test_tree_regions.py")
"""One worker compiles the engine of streams and the other trees: each finds the rest on disk."""


def order(item):
    """The pages, of which some take long, come before most files: no worker ends with them."""
    name = item.path.name
    page = item.path.suffix == ".md" or name == "test_docs.py"
    return FIRST.index(name) if name in FIRST else len(FIRST) + (not page)


def pytest_collection_modifyitems(items):
    """Both kinds of checks run with the first setting of a class in a file only."""
    first, kept = {}, []
    for item in items:
        values = getattr(getattr(item, "callspec", None), "params", {})
        if "check" in values and "estimator" in values:
            name = item.callspec.id.rpartition("-")[2]
            kind = (item.path, type(values["estimator"]))
            if first.setdefault(kind, values["estimator"]) is not values["estimator"] and (
                name in AT_THE_DOOR | HELD_OTHERWISE
            ):
                continue
        kept.append(item)
    items[:] = sorted(kept, key=order)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


LIGHTLY = [
    (growing, "MAX_TREES", 8),
    (growing, "USUAL_TREES", 6),
    (growing, "MIN_TREES", 4),
    (selection, "USUAL_EFFORT", selection.Effort(8, again=True, kept=2, draws=64, skipped=0)),
    (selection, "MAX_MATRIX_NODES", {1: 257, 2: 500, 3: 800}),
    (binned, "COARSE_CELLS", {1: 64, 2: 48, 3: 16}),
    (judging, "HELD_OUT_PARTS", ((4, 1000), (3, 2000), (2, 3000), (1, np.inf))),
    (concentrations, "EVIDENCE_TREES", ((10_000, 4), (1_000_000, 3), (np.inf, 2))),
    (map_by_time, "MAP_TREES", 8),
    (block_edges, "USUAL_BLOCKS", 64),
    (weighing, "FIRST_TRIALS", 32),
    (weighing, "CLIMBING_TRIALS", 40),
    (weighing, "SWEEPS", 2),
    (bandwidths, "KDE_FOLDS", 3),
    (posterior_draws, "POSTERIOR_DRAWS", 25),
    (triggered_counts.futures, "__kwdefaults__", {"n_paths": 300}),
    (scales, "SCALE_FACTORS", np.array([0.25, 0.5, 1.0, 2.0])),
    (scales, "RELATIVE_PENALTIES", np.array([1.0, 1e-2, 1e-4])),
    (scales, "MOST_ROWS", 400),
    (penalties, "SCALE_FACTORS", np.array([0.25, 0.5, 1.0, 2.0])),
    (penalties, "RELATIVE_STEPS", np.array([1e-1, 1e-3, 1e-5])),
    (penalties, "MOST_TUNED_ROWS", 400),
    (residuals, "LATTICE_POINTS", 2**15),
    (learned_places, "TIME_BLOCKS", 4),
    (smoothing, "COUNT_NODES", {1: 1025, 2: 201, 3: 41}),
]
"""The effort of fits in tests: every step of the usual one, with fewer trees, priors and nodes."""

COARSELY = [
    (selection, "PLENTY_OF_EVENTS", 0),
    (binned, "COARSE_CELLS", {1: 64, 2: 32, 3: 16}),
    (map_by_time, "MAP_TREES", 4),
    (alternation, "ROUNDS", 1),
    (learned_places, "TIME_BLOCKS", 1),
]
"""Even less: few priors, and self-exciting rates in one round with one map of the background."""

USUALLY = [(module, name, copy(getattr(module, name))) for module, name, _ in LIGHTLY]


def with_effort(patch, effort):
    for module, name, value in effort:
        if isinstance(value, dict):  # which others may have imported
            for dimension, cells in value.items():
                patch.setitem(getattr(module, name), dimension, cells)
        else:
            patch.setattr(module, name, value)


@pytest.fixture(scope="module", autouse=True)
def lightly():
    """Laws hold at any effort: all fits of tests are light unless HPLUS_SLOW is set.

    What holds at the usual effort only asks for the fixture `thoroughly`.
    """
    with pytest.MonkeyPatch.context() as patch:
        with_effort(patch, LIGHTLY if "HPLUS_SLOW" not in os.environ else [])
        yield


@pytest.fixture
def thoroughly(monkeypatch, lightly):
    """The fits of a test take their usual effort."""
    with_effort(monkeypatch, USUALLY)


@pytest.fixture(scope="session")
def coarsely():
    """`with coarsely():` fits try few priors on a coarse grid, and few trees, and hold out little.

    Self-exciting rates are learned in one round, with one map of the background.
    """

    @contextmanager
    def coarsely():
        with pytest.MonkeyPatch.context() as patch:
            with_effort(patch, [*LIGHTLY, *COARSELY])
            yield

    return coarsely


@pytest.fixture(scope="module")
def few_parts():
    """The laws of a module hold whatever the weights of the rates that are averaged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "HELD_OUT_PARTS", ((3, 3000), (1, np.inf)))
        patch.setattr(concentrations, "EVIDENCE_TREES", ((np.inf, 4),))
        yield


@pytest.fixture(scope="module")
def coarse_grids(coarsely):
    """All fits in the plane of a module are coarse: what they are asked holds on any grid."""
    with coarsely():
        yield


@pytest.fixture(scope="session")
def aftershocks(tmp_path_factory):
    """A file of 200 days of events in 50 × 50 km: first ones, and those that they trigger."""
    rng = np.random.default_rng(5)

    def generation(t, x):
        return t, x, 4.0 + rng.exponential(0.5, len(t))

    t, x, m = generation(rng.uniform(0, 200, 110), rng.uniform(0, 50, (110, 2)))
    parts = [(t, x, m)]
    while len(t):
        i = np.repeat(np.arange(len(t)), rng.poisson(0.35 * np.exp(m - 4.5)))
        t, x = t[i] + rng.exponential(0.3, len(i)), x[i] + rng.normal(0, 1.0, (len(i), 2))
        inside = (t < 200) & np.all((x > 0) & (x < 50), axis=1)
        t, x, m = generation(t[inside], x[inside])
        parts.append((t, x, m))
    t, x, m = map(np.concatenate, zip(*parts, strict=True))
    stamps = np.datetime64("2026-01-01T00:00:00") + (t * 86_400).astype("timedelta64[s]")
    kinds = np.where(x[:, 0] < 25, "west", "east")
    rows = zip(stamps, *x.T, m, kinds, strict=True)
    path = tmp_path_factory.mktemp("aftershocks") / "quakes.csv"
    lines = (f"{when},{a:.4f},{b:.4f},{mag:.2f},{kind}" for when, a, b, mag, kind in rows)
    path.write_text("when,x,y,mag,kind\n" + "\n".join(lines) + "\n")  # not in the order of time
    return path


@pytest.fixture(scope="module")
def few_nodes():
    """Kernels that are given act on coarser grids than usual: laws hold on any."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(selection.MAX_MATRIX_NODES, 1, 257)
        patch.setitem(selection.MAX_MATRIX_NODES, 2, 500)
        patch.setitem(selection.MAX_MATRIX_NODES, 3, 800)
        yield


@pytest.fixture
def few_candidates(monkeypatch):
    """Scales and penalties are learned from three each, on two folds: some laws hold anyway."""
    monkeypatch.setattr(scales, "SCALE_FACTORS", np.array([0.5, 1.0, 2.0]))
    monkeypatch.setattr(scales, "RELATIVE_PENALTIES", np.array([1.0, 1e-1, 1e-2]))
    monkeypatch.setattr(scales, "FOLDS", 2)
    monkeypatch.setattr(penalties, "SCALE_FACTORS", np.array([0.5, 1.0, 2.0]))
    monkeypatch.setattr(penalties, "RELATIVE_STEPS", np.array([1e-1, 1e-3, 1e-5]))


@pytest.fixture(scope="module")
def paper(request):
    """The module `run` of the paper in the folder PAPER that a test module names."""
    folder = request.module.PAPER
    with pytest.MonkeyPatch.context() as patch:
        for path in folder.glob("*.py"):  # papers may share the names of their modules
            patch.delitem(sys.modules, path.stem, raising=False)
        patch.syspath_prepend(folder)
        yield importlib.import_module("run")


@pytest.fixture(scope="module")
def data(request, paper):
    """What every section of the paper computes, on the sizes of the test module or quick ones."""
    sizes = getattr(paper, "QUICK", {}) | getattr(request.module, "SMALL", {})
    with threadpool_limits(1):  # the matrices are small
        return {s.name: s.data(**sizes.get(s.name, {})) for s in paper.SECTIONS}


@pytest.fixture
def full_cone_reference(monkeypatch):
    """The full cone of sums of squares by cvxpy, an oracle that benchmarks use too."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    return importlib.import_module("_full_cone").full_cone_reference
