"""One safetensors file: a document with a checksum in its metadata, and arrays with theirs."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

Array = NDArray[Any]
Json = dict[str, Any]

SCHEMA = 1
"""The version of the document's format; files with a later one are rejected."""

MAX_HEADER_BYTES = 2**20
"""Bytes of a file's header, which holds the document, and characters of an array of strings.

With this bound a malicious file is read within a second and 512 MiB.
"""

DTYPES = {
    "F32": "<f4", "F64": "<f8", "BOOL": "|b1",
    "I8": "|i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
    "U8": "|u1", "U16": "<u2", "U32": "<u4", "U64": "<u8",
}  # fmt: skip
"""The dtypes of tensors, by their names in safetensors."""

CODES = {dtype: code for code, dtype in DTYPES.items()}


def digest(array: Array) -> str:
    """The SHA-256 of dtype, shape and bytes."""
    digest = hashlib.sha256(f"{array.dtype.str} {list(array.shape)} ".encode())
    digest.update(array.reshape(-1).data)
    return digest.hexdigest()


def seal(document: Json) -> str:
    return hashlib.sha256(dumps(document).encode()).hexdigest()


def dumps(document: Json) -> str:
    return json.dumps(document, allow_nan=False, separators=(",", ":"))


def header(text: str, tensors: Mapping[str, Array]) -> bytes:
    """The beginning of a safetensors file: length, type and place of each tensor, padding."""
    entries: Json = {"__metadata__": {"hplus": text}}
    end = 0
    for name, array in tensors.items():
        start, end = end, end + array.nbytes
        code = CODES[array.dtype.str]
        entries[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [start, end]}
    header = dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    _check_size(len(header))
    return len(header).to_bytes(8, "little") + header


def _check_size(header: int) -> None:
    if header > MAX_HEADER_BYTES:
        raise ValueError(
            f"the header must have at most {MAX_HEADER_BYTES / 2**20:.3g} MiB, got "
            f"{header / 2**20:.3g} MiB: store numbers in arrays, not in lists."
        )


def read_document(path: Path) -> Json:
    """The document of a file, whose checksum is verified, without its tensors."""
    _check_start(path)
    try:
        with safe_open(path, framework="numpy") as file:
            return _document((file.metadata() or {}).get("hplus"))
    except SafetensorError as error:
        raise ValueError(f"it is truncated or damaged ({error}): copy it again.") from error


def read_file(path: Path) -> tuple[Json, dict[str, Array]]:
    """The document and the tensors of a file, with all checksums verified."""
    _check_start(path)
    try:
        with safe_open(path, framework="numpy") as file:
            document = _document((file.metadata() or {}).get("hplus"))
            digests = document["arrays"]
            if set(file.keys()) != set(digests):
                raise ValueError("its tensors do not match its document: copy it again.")
            return document, {name: _tensor(file, name, digests[name]) for name in digests}
    except SafetensorError as error:
        raise ValueError(f"it is truncated or damaged ({error}): copy it again.") from error


def _check_start(path: Path) -> None:
    if not path.is_file():
        raise ValueError("it is not a regular file.")
    with open(path, "rb") as file:
        start, length = file.read(9), os.fstat(file.fileno()).st_size
    if start[8:] != b"{":
        raise ValueError("it is not a file written by hplus.save.")
    size = int.from_bytes(start[:8], "little")
    _check_size(size)
    if 8 + size > length:
        raise ValueError("it is truncated: copy it again.")


def _document(text: str | None) -> Json:
    """The document in a file's metadata; an error if it is foreign, too new or changed."""
    document = {} if text is None else json.loads(text)
    if not isinstance(document, dict) or document.get("format") != "hplus":
        raise ValueError("it is a safetensors file that was not written by hplus.")
    if document["schema"] > SCHEMA:
        writer = document.get("versions")
        raise ValueError(
            f"it has schema {document['schema']}, written by {writer}: upgrade hplus to read it."
        )
    if document.pop("sha256") != seal(document):
        raise ValueError("its document does not match its checksum: copy it again.")
    return document


def _tensor(file: Any, name: str, expected: str) -> Array:
    code = file.get_slice(name).get_dtype()
    if code not in DTYPES:
        raise ValueError(f"the dtypes of its arrays must be among {list(DTYPES)}, got {code}.")
    array: Array = file.get_tensor(name)
    if digest(array) != expected:
        raise ValueError(f"its array {name} does not match its checksum: copy it again.")
    return array


def replace_file(target: Path, contents: Iterable[Any]) -> None:
    """Write a new file and, once it is safe on disk, put it in place of `target` in one step."""
    temporary = target.with_name(f".hplus-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            for piece in contents:
                _write(file, piece)
            file.flush()
            _sync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        _rename(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, where folders can be opened: not on Windows."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        _sync(opened)
    finally:
        os.close(opened)


def _write(file: BinaryIO, piece: Any) -> None:
    file.write(piece)


# with names of their own, so that a test can make one of them fail
_sync = os.fsync
_rename = os.replace
