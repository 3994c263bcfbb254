"""save and load: a fitted model as one safetensors file, without pickle."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hplus.storage.documents import MALFORMED, Arrays, build, pack, reason
from hplus.storage.files import (
    SCHEMA,
    Json,
    digest,
    dumps,
    header,
    read_document,
    read_file,
    replace_file,
    seal,
)
from hplus.storage.registry import SAVED_VALUES, present_name, quick_class, registered_name


class Record(NamedTuple):
    """What a file says about its model: its class, `made_with_`, and a summary if it has one.

    Without a summary, `params` and `fitted` are those of the model, in which objects of classes
    that take long to import are namespaces. `versions` are of the packages that wrote the file.
    """

    kind: str
    made_with: Json
    summary: Json | None
    params: Json
    fitted: Json
    versions: dict[str, str]


def save(model: Any, path: str | os.PathLike[str], *, summary: Json | None = None) -> None:
    """Write a fitted model to `path`: the whole file appears there, or nothing changes.

    Later versions of hplus can load it, which they cannot promise for a pickle. A `Statistic` can
    be saved as well, to be added to others elsewhere. `summary` holds facts, as numbers and text,
    that can be read without building the model.
    """
    # here, since reading needs scikit-learn only for a file that holds an estimator
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(f"path must be a file, got the folder {path}: add a file name.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path must be in a folder that exists, got {path}: create it.")
    if target.exists() and not target.is_file():
        raise ValueError(f"path must be a regular file, got {path}.")
    name = registered_name(type(model))
    if name is None or not (isinstance(model, BaseEstimator) or name in SAVED_VALUES):
        advice = ": save its last step" if hasattr(model, "steps") else ""
        got = " ".join(repr(model).split())[:60]
        raise TypeError(f"model must be an estimator that can be stored, got {got}{advice}.")
    if name not in SAVED_VALUES:
        check_is_fitted(model, msg="%(name)s must be fitted before it is saved: call fit first.")
    try:
        pieces = contents(model, summary)
    except MALFORMED as error:
        raise ValueError(reason(error)) from error
    replace_file(target, pieces)


def load(path: str | os.PathLike[str]) -> Any:
    """The model that `save` wrote to `path`; it predicts the same, bit for bit."""
    with _loading(path):
        document, tensors = read_file(Path(path))
        return build(document["model"], tensors)


def read_record(path: str | os.PathLike[str]) -> Record:
    """What the file at `path` says about its model, without building it."""
    with _loading(path):
        document, tensors = read_file(Path(path))
        model = document["model"]
        fitted = model.get("fitted", {})
        made_with = build(fitted.get("made_with_", {"dict": {}}), tensors)
        summary = build(document.get("summary") or fitted.get("summary_"), tensors)
        parts = ({}, {}) if summary else (model.get("params", {}), fitted)
        params, fitted = (build({"dict": part}, tensors, find=quick_class) for part in parts)
        kind = present_name(model.get("model") or model["value"])
        return Record(kind, made_with, summary, params, fitted, document["versions"])


def read_summary(path: str | os.PathLike[str]) -> Json | None:
    """The facts that `save` was given, without reading the model; None if there are none."""
    with _loading(path):
        summary: Json | None = build(read_document(Path(path)).get("summary"), {})
        return summary


@contextmanager
def _loading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors that say which file cannot be loaded, and why."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"path must be a file, got the folder {path}.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"path must be a file that exists, got {path}: check the name.")
    try:
        yield
    except MALFORMED as error:
        raise ValueError(f"{path} cannot be loaded: {reason(error)}") from error


def contents(model: Any, summary: Json | None) -> list[Any]:
    """The contents of a model file, as pieces to be written one after another."""
    arrays: Arrays = {}
    packed = pack(model, "", "", arrays)
    facts = pack(summary, "summary", "summary", arrays)
    # the widest types first, so that each tensor is aligned
    tensors = dict(sorted(arrays.values(), key=lambda pair: -pair[1].itemsize))
    document = {
        "format": "hplus",
        "schema": SCHEMA,
        "versions": _versions(),
        "units": _units(model),
        "summary": facts,
        "model": packed,
        "arrays": {name: digest(array) for name, array in tensors.items()},
    }
    text = dumps(document | {"sha256": seal(document)})
    # a trial on read-only views: a file that load would reject must not replace a good one
    trial = {name: np.broadcast_to(array, array.shape) for name, array in tensors.items()}
    build(json.loads(text)["model"], trial)
    return [header(text, tensors), *(array.reshape(-1) for array in tensors.values())]


def _versions() -> dict[str, str]:
    # not by import: importing hplus from a lower layer would break the import contract
    modules = {"hplus": "hplus", "numpy": "numpy", "scikit-learn": "sklearn"}
    found = {name: str(sys.modules[module].__version__) for name, module in modules.items()}
    return found | {"python": platform.python_version()}


def _units(model: Any) -> list[str] | None:
    """The unit of each axis of the model's window, if it has one."""
    from hplus.windows import Window

    windows = (part for part in vars(model).values() if isinstance(part, Window))
    return next((list(window.axis_units) for window in windows), None)
