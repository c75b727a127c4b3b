"""safetensors: a length, a header in JSON, and the bytes of all tensors one after the other.

The library of that name copies what it gives to numpy, so the header is read here. Files of several parts
have an index beside them, which says in which each tensor is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.ir.types import DType
from mind_mlir.models.weights.errors import UnknownType, WeightsProblem
from mind_mlir.models.weights.mapped_file import MappedFile, size_of
from mind_mlir.models.weights.tensors import Contents, Weight

if TYPE_CHECKING:
    import numpy as np


#: The index of a model in several files, and the file of one that is in one, by the names that are usual.
INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"

_LENGTH = 8
#: The format allows no longer header.
_MOST_HEADER = 100_000_000
_MOST_EXTENT = 1 << 63
_METADATA = "__metadata__"
#: Tensors by what the format calls their elements. Those that begin with F8 are OCP's.
_DTYPES = {
    "BOOL": DType.I1,
    "I8": DType.SI8,
    "U8": DType.UI8,
    "I16": DType.SI16,
    "U16": DType.UI16,
    "I32": DType.SI32,
    "U32": DType.UI32,
    "I64": DType.SI64,
    "U64": DType.UI64,
    "F8_E4M3": DType.FP8_E4M3,
    "F8_E5M2": DType.FP8_E5M2,
    "BF16": DType.BF16,
    "F16": DType.F16,
    "F32": DType.F32,
    "F64": DType.F64,
    "C64": DType.CF32,
}
#: The dtypes that a file can hold.
STORED = frozenset(_DTYPES.values())


class _Tensor(NamedTuple):
    begin: int
    end: int
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def looks_like_safetensors(file: MappedFile) -> bool:
    """Return whether a file begins as one of safetensors does."""
    if file.size <= _LENGTH:
        return False
    return bool(file.bytes(_LENGTH, 1) == b"{")


def read_safetensors(file: MappedFile) -> Contents:
    """Return what is in a file.

    Raises:
        WeightsProblem: It is damaged.
        UnknownType: Elements of it are of a type that is not known here.
    """
    (length,) = file.unpack("<Q", 0)
    if length > min(_MOST_HEADER, file.size - _LENGTH):
        raise WeightsProblem(f"its header of {length} bytes is longer than the file, or than is allowed")
    fields = _object(file.bytes(_LENGTH, length), "its header")
    metadata = fields.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(each, str) for each in metadata.values()):
        raise WeightsProblem(f"{_METADATA} maps names to what is no text")
    tensors = [_tensor(name, said) for name, said in fields.items()]
    start = _LENGTH + length
    _check_places(tensors, file.size - start)
    makers: dict[str, Callable[[], Weight]] = {
        each.name: partial(file.array, start + each.begin, each.dtype, each.shape) for each in tensors
    }
    return Contents("safetensors", makers, metadata)


def read_index(file: MappedFile) -> Contents:
    """Return what is in the files that an index names, which lie beside it.

    Raises:
        WeightsProblem: The index or a file is damaged, or a file lacks what the index says.
        UnknownType: Elements are of a type that is not known here.
    """
    if file.size > _MOST_HEADER:
        raise WeightsProblem("it is too long for an index")
    fields = _object(file.bytes(0, file.size), "the index")
    places = fields.get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(each, str) for each in places.values()):
        raise WeightsProblem("it is JSON, but no index: its weight_map does not map names to files")
    parts = {name: _part(file, name) for name in sorted(set(places.values()))}
    makers = {}
    for name, part in places.items():
        if name not in parts[part].tensors:
            raise WeightsProblem(f"{part} has no tensor '{name}', which the index says is there")
        makers[name] = parts[part].tensors[name]
    metadata = fields.get("metadata")
    return Contents("safetensors", makers, metadata if isinstance(metadata, dict) else {})


def _part(index: MappedFile, name: str) -> Contents:
    if Path(name).name != name:
        raise WeightsProblem(f"the index names '{name}', which is no file beside it")
    try:
        return read_safetensors(MappedFile(str(Path(index.path).with_name(name))))
    except WeightsProblem as problem:
        raise WeightsProblem(f"{name}: {problem}") from None


def _object(data: bytes, what: str) -> dict[str, Any]:
    """Return an object of JSON.

    Raises:
        WeightsProblem: It is none, has a name twice, or numbers that JSON lacks.
    """
    try:
        found = json.loads(data, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise WeightsProblem(f"{what} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise WeightsProblem(f"{what} holds no object")
    return found


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"it has '{name}' twice")
        found[name] = value
    return found


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _tensor(name: str, said: object) -> _Tensor:
    if not isinstance(said, dict) or said.keys() != {"dtype", "shape", "data_offsets"}:
        raise WeightsProblem(f"tensor '{name}' has other fields than dtype, shape and data_offsets")
    word, shape, offsets = said["dtype"], said["shape"], said["data_offsets"]
    if not isinstance(word, str) or not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise WeightsProblem(f"the dtype, shape or place of tensor '{name}' is none")
    dtype = _DTYPES.get(word)
    if dtype is None:
        raise UnknownType(
            f"tensor '{name}' is of {word}",
            f"the types that are read are {', '.join(_DTYPES)}: convert it to one of them",
        )
    size = size_of(shape, dtype.itemsize)
    if offsets[1] - offsets[0] != size:
        extents = ", ".join(map(str, shape))
        raise WeightsProblem(
            f"tensor '{name}', {word} of [{extents}], takes {size} bytes, "
            f"but has the bytes from {offsets[0]} to {offsets[1]}"
        )
    return _Tensor(offsets[0], offsets[1], name, dtype.numpy, tuple(shape))


def _are_counts(values: object) -> bool:
    return isinstance(values, list) and all(type(each) is int and 0 <= each < _MOST_EXTENT for each in values)


def _check_places(tensors: list[_Tensor], size: int) -> None:
    """Make sure that tensors lie one after the other and fill the file, as the format says."""
    end = 0
    for tensor in sorted(tensors):
        if tensor.begin != end:
            what = "overlaps the one before it" if tensor.begin < end else "leaves a gap before it"
            raise WeightsProblem(f"tensor '{tensor.name}' {what}")
        end = tensor.end
    if end != size:
        raise WeightsProblem(f"its tensors have {end} bytes, but {size} follow the header")


def header_of(tensors: dict[str, tuple[DType, tuple[int, ...]]]) -> bytes:
    """Return the length and header of a file that holds tensors in this order, one after the other."""
    words = {dtype: word for word, dtype in _DTYPES.items()}
    fields, end = {}, 0
    for name, (dtype, shape) in tensors.items():
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        fields[name] = {"dtype": words[dtype], "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(fields, ensure_ascii=True).encode("ascii")
    text += b" " * (-(len(text) + _LENGTH) % 64)
    return len(text).to_bytes(_LENGTH, "little") + text
