"""What is saved comes back equal, bit for bit; what is damaged or foreign is refused."""

import dataclasses
import hashlib
import importlib
import json
import os
import pkgutil
import stat
import sys
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from safetensors.numpy import load_file, save_file
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

import hplus
from hplus import features, losses, windows
from hplus import kernels as k
from hplus.positivity import CONES, SumOfSquares
from hplus.solvers.result import SolverResult, Status
from hplus.space import Function
from hplus.storage import documents, files, load, registry, save, storable
from hplus.storage.models import read_record

CITY = windows.Polygon([[0, 0], [4, 0], [4, 3], [0, 3]], holes=[[[1, 1], [2, 1], [2, 2]]])
INSTANCES = [
    2.0 * k.Gaussian(0.5) + k.Linear() * k.Periodic(7.0, scale=0.1),
    k.Laplace([1.0, 3.0]),
    k.Matern32(0.1 + 0.2, columns=[1, 0]),
    k.Matern52(1e-300),
    k.RationalQuadratic(1.0, mixture=1 / 3),
    k.Constant(5e-324),
    k.Polynomial(3, offset=0.5),
    k.Nugget(columns=[1]),
    k.Finite([[2.0, 1.0], [1.0, 0.7]]),
    windows.Interval(-1.5, 2.5, unit="day") * windows.Box([0, 0], [1, 0.1], unit="km"),
    CITY,
    windows.Polygons((CITY,), unit="km"),
    windows.Cycle(24, unit="h"),
    *(loss() for loss in losses.LOSS_CLASSES),
    losses.Quantile(0.9),
    features.Nystroem(3, random_state=0)(k.Gaussian(1.0), np.eye(3)),
    features.RandomFourier(3, random_state=0)(k.Gaussian(1.0), np.eye(3)),
    features.Nystroem(3),
    features.RandomFourier(3),
    features.Pivots(1e-6),
    *(cone() for cone in CONES.values()),
    Function(k.Gaussian(1.0), [[0.0], [1.0]], [1.0, -0.1]),
    SumOfSquares(k.Gaussian(1.0), [[0.0], [1.0]], [[1.0, 0.0], [-0.1, 2.0]]),
    SolverResult(Status.MAX_ITER, 7, -np.inf, np.nan, 1.0),
]


@storable
class Smoother(BaseEstimator):
    """f = Σ_i coef[i] k(centers[i], ·)."""

    def __init__(self, window=None, *, kernel=None, extra=None):
        self.window, self.kernel, self.extra = window, kernel, extra

    def fit(self, X, y):
        self.centers_, self.coef_ = X, y
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return self.kernel(X, self.centers_) @ self.coef_ + self.centers_.sum()


@storable
class Committee(BaseEstimator):
    """A model made of models."""

    def __init__(self, member=None):
        self.member = member

    def fit(self, members):
        self.members_ = list(members)
        return self


@storable
class Season(Enum):
    DRY = "no rain"
    WET = "rain"


@storable
@dataclasses.dataclass(frozen=True)
class Summary:
    season: Season
    counts: np.ndarray
    total: float = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "total", float(self.counts.sum()))


class Unregistered(Enum):
    ONE = 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def smoother(extra=None, *, kernel=None, fitted=None):
    """A small fitted model that holds `extra` as a parameter and `fitted` as an attribute."""
    model = Smoother(windows.Box([0, 0], [1, 1], unit="km"), kernel=kernel, extra=extra)
    model.fit(np.arange(6.0).reshape(3, 2) / 7, np.array([0.3, -1.0, 2.5]))
    model.extra_ = fitted
    return model


def again(model, folder):
    save(model, folder / "again.hplus")
    return load(folder / "again.hplus")


def same(a, b):
    """Are a and b of one type and equal to the last bit?"""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        content = np.ndarray.tolist if a.dtype == object else np.ndarray.tobytes
        equal = content(np.asarray(a)) == content(np.asarray(b))
        return equal and a.dtype == b.dtype and a.shape == b.shape
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and same(list(a.values()), list(b.values()))
    if dataclasses.is_dataclass(a):
        names = [f.name for f in dataclasses.fields(a)]
        return all(same(getattr(a, name), getattr(b, name)) for name in names)
    if isinstance(a, BaseEstimator):
        return same(vars(a), vars(b))
    return repr(a) == repr(b)


NUMBERS = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
arrays = st.sampled_from(NUMBERS).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
)
texts = st.lists(st.text(max_size=6)).flatmap(
    lambda items: st.sampled_from([np.array(items, "U8"), np.array(items, object)])
)
leaves = st.one_of(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    st.sampled_from([*INSTANCES, *Season, -(2**63), 2**64, np.str_("é"), np.bool_(True)]),
    arrays | arrays.map(lambda a: np.moveaxis(a, 0, -1) if a.ndim else a) | texts,
    hnp.from_dtype(np.dtype("f4")) | hnp.from_dtype(np.dtype("i8")),
)
structures = st.recursive(
    leaves,
    lambda part: (
        st.lists(part, max_size=4)
        | st.lists(part, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=4), part, max_size=4)
        | st.builds(smoother, part)
    ),
    max_leaves=12,
)


@given(part=structures)
def test_any_structure_comes_back_equal_as_parameter_and_as_fitted_attribute(part, folder):
    model = smoother(part, fitted=(part,))
    assert same(model, again(model, folder))


def test_whole_numbers_come_back_beyond_the_digits_that_python_prints(folder):
    assert again(smoother(-(10**5000)), folder).extra == -(10**5000)


@pytest.mark.parametrize("value", INSTANCES, ids=lambda value: type(value).__name__)
def test_every_kernel_window_and_loss_comes_back_equal_in_type_and_content(value, folder):
    assert same(value, again(smoother(value), folder).extra)


def test_the_instances_above_are_of_every_class_that_can_be_saved():
    def classes(part):
        inside = part.get_params() if hasattr(part, "get_params") else vars(part)
        return {type(part), *(type(p) for p in inside.values())}

    covered = set().union(*map(classes, INSTANCES))
    values = [registry.find_class(name) for name in registry.stored_names() if "." in name]
    assert set(values) - covered == {k.Scalar, k.Custom}
    families = (k.KERNELS, windows.WINDOWS, losses.LOSS_CLASSES, features.FEATURES, CONES)
    assert len(values) == sum(map(len, families))


@pytest.mark.parametrize("order", ["C", "F"])
def test_predictions_after_load_are_equal_to_the_last_bit(order, folder, rng):
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    model = Smoother(kernel=0.3 * k.Matern52(0.7) + k.Polynomial(2))
    model.fit(np.asarray(X, order=order), y)
    loaded = again(model, folder)
    assert_array_equal(loaded.predict(X), model.predict(X), strict=True)
    assert loaded.centers_.flags.f_contiguous == (order == "F")


CUBE = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "array",
    [CUBE, CUBE.T, np.moveaxis(CUBE, 0, -1), CUBE[:, ::-1, ::2], CUBE[0, 0, 0], CUBE[:0].T],
    ids=lambda array: f"{array.shape} {array.strides}",
)
def test_arrays_come_back_in_the_order_that_they_have_in_memory(array, folder):
    loaded = again(smoother(fitted=array), folder).extra_
    assert_array_equal(loaded, array, strict=True)
    assert loaded.strides == array.copy(order="K").strides


def test_arrays_with_the_other_byte_order_come_back_with_equal_numbers(folder):
    loaded = again(smoother(fitted=np.array([1.5, -2.0], ">f8")), folder).extra_
    assert_array_equal(loaded, np.array([1.5, -2.0]), strict=True)


def test_arrays_of_values_stay_frozen_and_others_can_be_written(folder):
    loaded = again(smoother(k.Finite(np.eye(2)), fitted=Summary(Season.WET, np.zeros(3))), folder)
    assert not loaded.extra.matrix.flags.writeable
    assert loaded.extra_.total == 0.0
    loaded.coef_[0] = 1.0
    loaded.extra_.counts[:] = 2.0


def test_attributes_that_share_memory_are_stored_once_and_share_it_again(folder):
    model = smoother()
    model.extra_ = [model.coef_, model.centers_.T]
    loaded = again(model, folder)
    assert len(load_file(folder / "again.hplus")) == 2
    assert same(loaded, model)
    assert np.shares_memory(loaded.extra_[0], loaded.coef_)
    assert np.shares_memory(loaded.extra_[1], loaded.centers_)


def test_views_of_one_array_that_differ_in_shape_or_dtype_come_back_as_they_were(folder):
    model = smoother()
    model.extra_ = [model.coef_[:2], model.coef_.view(np.int64), model.coef_.reshape(1, 3)]
    assert same(again(model, folder), model)


def test_models_inside_models_come_back_fitted_or_not(folder):
    model = Committee(Smoother(kernel=k.Gaussian(1.0))).fit([smoother(1), smoother(2.0)])
    assert same(model, again(model, folder))


def test_only_attributes_that_end_with_one_underscore_are_stored(folder):
    model = smoother()
    model._private_, model.plain, model.double__ = 1, 2, 3
    loaded = again(model, folder)
    assert not {"_private_", "plain", "double__"} & set(vars(loaded))


def test_the_file_is_a_safetensors_file_that_says_what_it_holds(folder):
    save(smoother(kernel=k.Gaussian(1.0)), folder / "model.hplus")
    tensors, document = opened(folder / "model.hplus")
    assert {name.partition(":")[2] for name in tensors} == {"centers_", "coef_"}
    assert (document["format"], document["schema"]) == ("hplus", 1)
    assert set(document["versions"]) == {"hplus", "numpy", "scikit-learn", "python"}
    assert document["units"] == ["km", "km"]
    assert document["model"]["params"]["kernel"]["fields"]["scale"] == 1.0


def test_every_tensor_of_a_file_is_aligned_for_readers_that_map_it(folder):
    parts = [np.zeros(shape, dtype) for shape in (1, 3) for dtype in NUMBERS]
    save(smoother(parts), folder / "model.hplus")
    size, header = header_of(folder / "model.hplus")
    tensors = load_file(folder / "model.hplus")
    starts = {name: 8 + size + header[name]["data_offsets"][0] for name in tensors}
    assert all(starts[name] % array.itemsize == 0 for name, array in tensors.items())


def squares(X):
    return X**2


CYCLE = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("kernel", "extra", "message"),
    [
        (k.Gaussian(1.0) + k.Custom(squares), None, "kernel__right: Custom holds a Python call"),
        (2.0 * k.Scalar(squares), None, "kernel__kernel: Scalar holds a Python callable"),
        (losses.Own(losses.Squared()), None, "kernel: Smoother holds .* type Own.*register"),
        (None, [1, squares], "extra: Smoother holds a Python callable, .* numbers and strings"),
        (None, np.random.RandomState(0), "extra: .*RandomState.* whole number"),
        (None, np.random.default_rng(0), "extra: .*Generator.* whole number"),
        (None, Unregistered.ONE, "extra: .*Unregistered.*storable"),
        (None, Enum("Season", "DRY").DRY, "extra: .*Season.*storable"),
        (None, Committee(squares), "extra__member: Committee holds a Python callable"),
        (None, {1: 2}, "extra: .*dict with keys that are not strings"),
        (None, 1j, "extra: .*complex"),
        (None, b"", "extra: .*bytes"),
        (None, np.float16(1.0), "extra: .*float16"),
        (None, np.ones(2, complex), "extra: .*complex128"),
        (None, np.ma.ones(2), "extra: .*MaskedArray"),
        (None, np.array(["a", None]), "extra: .*object"),
        (None, CYCLE, "nested at most 64 levels deep"),
        (None, sys.__stdout__, "extra: .*TextIOWrapper.* use numbers, strings, arrays"),
    ],
)
def test_what_cannot_be_saved_is_refused_with_its_place_and_nothing_is_written(
    kernel, extra, message, tmp_path
):
    with pytest.raises(ValueError, match=message) as caught:
        save(smoother(extra, kernel=kernel), tmp_path / "model.hplus")
    assert str(caught.value).endswith(".")
    assert not list(tmp_path.iterdir())


def test_64_levels_of_lists_in_a_model_are_saved_and_65_are_refused(folder):
    assert again(smoother(nested(63)), folder).extra == nested(63)
    with pytest.raises(ValueError, match="nested at most 64 levels deep"):
        save(smoother(nested(64)), folder / "again.hplus")


def test_an_attribute_that_load_would_refuse_is_refused_by_save(tmp_path):
    model = smoother()
    model.X_ = 1
    with pytest.raises(ValueError, match="names like coef_, got 'X_'"):
        save(model, tmp_path / "model.hplus")


def test_a_header_above_the_limit_is_refused_by_save_and_by_load(tmp_path, monkeypatch):
    save(smoother(), tmp_path / "old.hplus")
    for module in (files, documents):
        monkeypatch.setattr(module, "MAX_HEADER_BYTES", 100)
    with pytest.raises(ValueError, match="header must have at most"):
        save(smoother(), tmp_path / "new.hplus")
    with pytest.raises(ValueError, match="header must have at most"):
        load(tmp_path / "old.hplus")
    with pytest.raises(ValueError, match="2 strings of dtype <U51 are too large: use dtype object"):
        save(smoother(np.array(["a", "b"], "U51")), tmp_path / "new.hplus")


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (Smoother(), NotFittedError, "Smoother must be fitted before it is saved"),
        (k.Gaussian(1.0), TypeError, r"must be an estimator.*Gaussian\(1.0\)"),
        (BaseEstimator(), TypeError, "must be an estimator that can be stored"),
    ],
)
def test_only_fitted_storable_estimators_can_be_saved(model, error, message, tmp_path):
    with pytest.raises(error, match=message):
        save(model, tmp_path / "model.hplus")


def test_paths_that_are_no_files_are_refused_with_a_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        load(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError, match="got the folder"):
        save(smoother(), tmp_path)
    with pytest.raises(FileNotFoundError, match="folder that exists"):
        save(smoother(), tmp_path / "none" / "model.hplus")
    with pytest.raises(ValueError, match="regular file"):
        save(smoother(), tmp_path / "pipe")
    with pytest.raises(IsADirectoryError, match="got the folder"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="must be a file that exists"):
        load(tmp_path / "none")


def test_a_class_is_storable_if_it_is_of_a_known_kind_and_its_name_is_free():
    with pytest.raises(TypeError, match="frozen dataclass"):
        storable(type("Plain", (), {}))
    with pytest.raises(TypeError, match="frozen dataclass"):
        storable(dataclasses.make_dataclass("Loose", ["x"]))
    with pytest.raises(ValueError, match="a unique name"):
        storable(type("Function", (BaseEstimator,), {}))
    twin = type("Smoother", (Smoother,), {"__module__": __name__})
    assert storable(twin) is twin is registry.find_class("Smoother")
    assert storable(Smoother) is registry.find_class("Smoother")


def test_every_line_of_the_registry_names_a_class_of_that_name_and_module():
    for name in registry.stored_names():
        cls = registry.find_class(name)
        assert cls.__name__ == name.rpartition(".")[2], name
        assert registry.registered_name(cls) == name
        if name in registry.MODULE_OF:
            assert cls.__module__ == registry.MODULE_OF[name], f"{name} has moved: change its line"


def test_every_public_estimator_and_value_of_a_stored_kind_is_in_the_registry():
    public = (getattr(hplus, name) for name in hplus.__all__)
    kinds = [cls for cls in public if isinstance(cls, type)]
    missing = {cls.__name__ for cls in kinds if registry.registered_name(cls) is None}
    assert missing == {"RateRatio"}, "add them to MODULES in hplus/storage/registry.py"


def test_all_classes_of_the_package_are_registered_by_name():
    for module in pkgutil.walk_packages(hplus.__path__, "hplus."):
        importlib.import_module(module.name)
    stray = [name for name, cls in registry.OWN.items() if cls.__module__.startswith("hplus.")]
    assert stray == [], "add them to MODULES in hplus/storage/registry.py"


def test_former_names_lead_to_classes_and_fields_of_today():
    assert not set(registry.FORMER_NAMES) & set(registry.stored_names())
    assert set(registry.FORMER_NAMES.values()) <= set(registry.stored_names())
    assert set(registry.FORMER_FIELDS) <= set(registry.stored_names())


def test_files_with_former_names_of_classes_and_fields_are_read_and_saved_with_the_new(
    tmp_path, monkeypatch
):
    save(smoother(Summary(Season.WET, np.ones(2)), fitted=k.Gaussian(1.0)), tmp_path / "old.hplus")
    tensors, document = opened(tmp_path / "old.hplus")
    text = json.dumps(document["model"])
    for new, old in (("Smoother", "Blur"), ("kernels.Gaussian", "kernels.Normal"),
                     ("coef_", "alpha_"), ("season", "weather"), ("extra", "more")):  # fmt: skip
        text = text.replace(f'"{new}"', f'"{old}"')
    document["model"] = json.loads(text)
    save_file(tensors, tmp_path / "old.hplus", {"hplus": json.dumps(sealed(document))})
    with pytest.raises(ValueError, match="cannot be loaded"):
        load(tmp_path / "old.hplus")
    names = {"Blur": "Smoother", "kernels.Normal": "kernels.Gaussian"}
    fields = {"Smoother": {"alpha_": "coef_", "more": "extra"}, "Summary": {"weather": "season"}}
    monkeypatch.setattr(registry, "FORMER_NAMES", names)
    monkeypatch.setattr(registry, "FORMER_FIELDS", fields)
    model = load(tmp_path / "old.hplus")
    assert same(model, smoother(Summary(Season.WET, np.ones(2)), fitted=k.Gaussian(1.0)))
    save(model, tmp_path / "new.hplus")
    written = json.dumps(opened(tmp_path / "new.hplus")[1]["model"])
    assert not any(f'"{old}"' in written for old in ("Blur", "kernels.Normal", "alpha_", "more"))


@pytest.mark.parametrize(
    "name", ["os.path", "kernels.os", "hplus.kernels:Gaussian", "", "antigravity"]
)
def test_a_file_cannot_have_other_modules_imported(name, tmp_path):
    save(smoother(), tmp_path / "model.hplus")
    tensors, document = opened(tmp_path / "model.hplus")
    document["model"]["model"] = name
    save_file(tensors, tmp_path / "model.hplus", {"hplus": json.dumps(sealed(document))})
    with pytest.raises(ValueError, match="is unknown"):
        load(tmp_path / "model.hplus")
    assert "antigravity" not in sys.modules


def test_a_file_is_saved_where_folders_cannot_be_opened(tmp_path, monkeypatch):
    def no_folders(path, *_):
        raise PermissionError(13, "as on Windows", str(path))

    monkeypatch.setattr(files.os, "open", no_folders)
    assert same(smoother(), again(smoother(), tmp_path))


def test_a_summary_and_how_a_model_was_made_are_read_without_building_it(tmp_path, monkeypatch):
    model, path = smoother(), tmp_path / "model.hplus"
    model.made_with_ = {"seed": 0, "command": None}
    facts = {"events": 3, "rate": np.inf, "dropped": {"no x": 1}, "scales": ["2 km"]}
    save(model, path, summary=facts)
    assert same(load(path), model)
    monkeypatch.delitem(registry.OWN, "Smoother")
    assert read_record(path)[:3] == ("Smoother", model.made_with_, facts)


def test_a_file_without_a_summary_has_none_and_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "model.hplus"
    save(smoother(), path)
    assert read_record(path)[:3] == ("Smoother", {}, None)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match=r"model.hplus cannot be loaded: its array .* checksum"):
        read_record(path)


def test_parts_whose_classes_take_long_to_import_are_namespaces_in_a_record():
    record = read_record(Path(__file__).parent / "stored" / "sos_regressor.hplus")
    assert record.params["kernel"] == k.Gaussian(1.0)
    assert repr(record.params["cone"]) == "Full(trace=0.001, frobenius=0.001)"
    assert record.fitted["solution_"].status == "CONVERGED"
    assert set(record.versions) == {"hplus", "numpy", "scikit-learn", "python"}


STEPS = ["_write", "_write", "_write", "_sync", "_rename", "_sync"]


@pytest.mark.parametrize("failing", range(len(STEPS)))
def test_if_any_step_of_a_save_fails_either_the_old_or_the_new_file_is_intact(
    failing, tmp_path, monkeypatch
):
    save(smoother("old"), tmp_path / "model.hplus")
    steps = []

    def step(name, action):
        def act(*arguments):
            steps.append(name)
            if len(steps) - 1 == failing:
                raise OSError(28, "No space left on device")
            return action(*arguments)

        monkeypatch.setattr(files, name, act)

    for name in dict.fromkeys(STEPS):
        step(name, getattr(files, name))
    with pytest.raises(OSError, match="No space left"):
        save(smoother("new"), tmp_path / "model.hplus")
    assert steps == STEPS[: failing + 1]
    assert [file.name for file in tmp_path.iterdir()] == ["model.hplus"]
    # only the folder's own entry is synced after the new file has taken its place
    assert load(tmp_path / "model.hplus").extra == ("new" if failing == 5 else "old")


def test_an_interrupt_in_the_middle_of_a_save_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(file, piece):
        file.write(bytes(piece)[:10])
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(smoother(), tmp_path / "model.hplus")
    assert not list(tmp_path.iterdir())


def test_a_save_follows_links_and_keeps_the_mode_of_the_file_it_replaces(tmp_path):
    target, link = tmp_path / "model.hplus", tmp_path / "link"
    save(smoother("old"), target)
    target.chmod(0o640)
    link.symlink_to(target)
    save(smoother("new"), link)
    assert link.is_symlink()
    assert load(target).extra == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def header_of(path):
    """The size of a file's header, and the header."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return size, json.loads(file.read(size))


def opened(path):
    """The tensors and the document of a file, read without hplus."""
    return load_file(path), json.loads(header_of(path)[1]["__metadata__"]["hplus"])


def sealed(document):
    """A document with the checksum that fits it."""
    content = {key: part for key, part in document.items() if key != "sha256"}
    text = json.dumps(content, separators=(",", ":"))
    return content | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def nested(depth):
    return [nested(depth - 1)] if depth else []


def put(*keys, value):
    """A change to a document: the part under `keys` becomes `value`."""

    def change(document, tensors):
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


def extra(value):
    return put("model", "params", "extra", value=value)


def foreign_dtype(document, tensors):
    tensors["half"] = np.zeros(2, np.float16)
    document["arrays"]["half"] = ""


def retyped(document, tensors):
    tensors["1:coef_"] = tensors["1:coef_"].view(np.int64)


def reshaped(document, tensors):
    tensors["1:coef_"] = tensors["1:coef_"].reshape(1, 3)


TAMPERINGS = [
    (put("format", value="other"), "not written by hplus"),
    (put("schema", value=2), "schema 2, .*upgrade hplus"),
    (put("schema", value="1"), "TypeError"),
    (put("model", "model", value="Missing"), "class 'Missing' is unknown"),
    (put("model", "model", value="builtins.eval"), "class 'builtins.eval' is unknown"),
    (put("model", "params", "window", "fields", "low", value=[3, 0]), "windows.Box rejects.*low"),
    (put("model", "params", "other", value=1), "Smoother rejects.* unexpected keyword"),
    (put("model", "fitted", "__class__", value=1), "names like coef_, got '__class__'"),
    (put("model", "fitted", "predict", value=1), "names like coef_, got 'predict'"),
    (put("model", "fitted", "Coef_", value=1), "names like coef_, got 'Coef_'"),
    (put("model", "fitted", "coef_", "array", value="0:none"), "KeyError: '0:none'"),
    (put("model", "fitted", "coef_", "axes", value=[1, 0]), "axes don't match"),
    (put("arrays", "1:coef_", value="0" * 64), "array 1:coef_ does not match its checksum"),
    (put("arrays", "9:none", value="0" * 64), "tensors do not match its document"),
    (lambda document, tensors: tensors.pop("1:coef_"), "tensors do not match its document"),
    (lambda document, tensors: tensors.update(strange=np.zeros(1)), "tensors do not match"),
    (lambda document, tensors: tensors["1:coef_"].sort(), "array 1:coef_ does not match"),
    (retyped, "array 1:coef_ does not match"),
    (reshaped, "array 1:coef_ does not match"),
    (foreign_dtype, "dtypes of its arrays must be among .* got F16"),
    (extra(nested(65)), "nested at most 64 levels deep"),
    (extra({"unknown": 1}), "{'unknown': 1}, which has no meaning in schema 1"),
    (extra({"text": ["a"], "dtype": "<U999999999", "shape": [1]}), "too large"),
    (extra({"text": ["a"], "dtype": "<f8", "shape": [1]}), "too large"),
    (extra({"text": ["a"], "dtype": "object", "shape": [2]}), "reshape"),
    (extra({"enum": "Season", "member": "SNOW"}), "KeyError: 'SNOW'"),
]


@pytest.mark.parametrize(("change", "message"), TAMPERINGS)
def test_a_file_that_was_tampered_with_is_refused_even_if_its_checksum_fits(
    change, message, tmp_path
):
    save(smoother(), tmp_path / "model.hplus")
    tensors, document = opened(tmp_path / "model.hplus")
    change(document, tensors)
    save_file(tensors, tmp_path / "model.hplus", {"hplus": json.dumps(sealed(document))})
    with pytest.raises(ValueError, match=rf"model.hplus cannot be loaded: .*{message}"):
        load(tmp_path / "model.hplus")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (None, "not written by hplus"),
        ({"format": "pt"}, "not written by hplus"),
        ({"hplus": "{"}, "Expecting"),
        ({"hplus": "[]"}, "not written by hplus"),
        ({"hplus": "[" * 10**6}, "nested at most 64 levels deep"),
        ({"hplus": "9" * 10**5}, "limit"),
    ],
)
def test_a_safetensors_file_of_someone_else_is_refused(metadata, message, tmp_path):
    save_file({"x": np.zeros(2)}, tmp_path / "model.hplus", metadata)
    with pytest.raises(ValueError, match=rf"cannot be loaded: .*{message}"):
        load(tmp_path / "model.hplus")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a file written by hplus.save"),
        (b"PK\x03\x04" * 9, "not a file written by hplus.save"),
        ((2**40).to_bytes(8, "little") + b"{", "header must have at most 1 MiB"),
        ((2**20).to_bytes(8, "little") + b"{", "it is truncated"),
        ((2).to_bytes(8, "little") + b"{{", "truncated or damaged"),
    ],
)
def test_a_file_that_is_not_of_the_format_is_refused(content, message, tmp_path):
    (tmp_path / "model.hplus").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "model.hplus")


def test_a_document_changed_without_its_checksum_is_refused(tmp_path):
    save(smoother(1), tmp_path / "model.hplus")
    tensors, document = opened(tmp_path / "model.hplus")
    document["model"]["params"]["extra"] = 2
    save_file(tensors, tmp_path / "model.hplus", {"hplus": json.dumps(document)})
    with pytest.raises(ValueError, match="its document does not match its checksum"):
        load(tmp_path / "model.hplus")


def outcome(path, content):
    """The model in `content`, or None if it is refused with our sentence."""
    path.write_bytes(content)
    try:
        return load(path)
    except ValueError as error:
        sentence = str(error)
    assert sentence.startswith(f"{path} cannot be loaded: ")
    return None


@pytest.mark.parametrize(("first", "mask"), [(0, 0x01), (1, 0x20), (2, 0x80)])
def test_a_changed_byte_anywhere_is_refused_or_changes_nothing(first, mask, tmp_path):
    path = tmp_path / "model.hplus"
    model = smoother([np.arange(5), "é", np.inf], kernel=k.Finite(np.eye(2)))
    save(model, path)
    content = path.read_bytes()
    outcomes = []
    for i in range(first, len(content), 3):
        flipped = bytes([content[i] ^ mask])
        outcomes.append(outcome(path, content[:i] + flipped + content[i + 1 :]))
    assert all(loaded is None or same(loaded, model) for loaded in outcomes)
    assert sum(loaded is None for loaded in outcomes) > 0.95 * len(outcomes)


def test_a_file_cut_at_any_length_is_refused(tmp_path):
    path = tmp_path / "model.hplus"
    save(smoother(np.arange(5)), path)
    content = path.read_bytes()
    assert not any(outcome(path, content[:length]) for length in range(len(content)))
    assert outcome(path, content + b"\0") is None
