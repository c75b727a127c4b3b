"""GGUF, the format of llama.cpp: metadata of any kind, and tensors whose rows may be quantised in blocks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.models.weights.errors import UnknownType, WeightsProblem
from mind_mlir.models.weights.gguf_metadata import MetadataReader, TensorInfo, read_tensor_info
from mind_mlir.models.weights.mapped_file import MappedFile, size_of
from mind_mlir.models.weights.other_blocks import other_layout
from mind_mlir.models.weights.quantized import BLOCK, LAYOUTS, QuantizedKind, QuantizedWeights
from mind_mlir.models.weights.tensors import Contents, Weight

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = "general.alignment"
_MOST_ALIGNMENT = 1 << 20
#: The least bytes of an entry of the metadata, and of the description of a tensor.
_LEAST_ENTRY, _LEAST_TENSOR = 13, 24
#: Tensors of plain numbers, by the numbers that the format gives their types.
_PLAIN = {
    0: DType.F32,
    1: DType.F16,
    24: DType.SI8,
    25: DType.SI16,
    26: DType.SI32,
    27: DType.SI64,
    28: DType.F64,
    30: DType.BF16,
}
#: Those of quantised numbers that are kept as they lie.
_QUANTIZED: dict[int, QuantizedKind] = {2: "Q4_0", 8: "Q8_0"}


class _Stored(NamedTuple):
    """The place of a tensor in the file, and what makes it."""

    begin: int
    end: int
    name: str
    make: Callable[[], Weight]


def read_gguf(file: MappedFile, *, dequantize: bool) -> Contents:
    """Return what is in a file.

    Args:
        file: The file.
        dequantize: Whether quantised tensors become arrays of f32, each when somebody asks for it.

    Raises:
        WeightsProblem: The file is damaged.
        UnknownType: Tensors are of types that are not known, or that are not kept as they lie.
        UnsupportedError: E7003, the package gguf is needed, and not installed.
    """
    reader = MetadataReader(file, len(MAGIC))
    version = reader.number("I")
    if version not in _VERSIONS:
        order = ", in the byte order of another machine" if version and not version & 0xFFFF else ""
        raise WeightsProblem(f"its format is of version {version}{order}; versions 2 and 3 are read")
    tensor_count, entry_count = reader.numbers("Q", 2)
    reader.expect(entry_count, _LEAST_ENTRY)
    metadata: dict[str, Any] = {}
    for _ in range(entry_count):
        key = reader.text()
        if key in metadata:
            raise WeightsProblem(f"it has '{key}' twice")
        metadata[key] = reader.value(reader.number("I"))
    reader.expect(tensor_count, _LEAST_TENSOR)
    infos = [read_tensor_info(reader) for _ in range(tensor_count)]
    if not dequantize:
        _refuse_others(infos)
    alignment = _alignment(metadata)
    start = -(-reader.offset // alignment) * alignment
    stored = [_stored(file, start, info, dequantize=dequantize) for info in infos]
    _check(infos, stored, alignment, file.size)
    return Contents("GGUF", {each.name: each.make for each in stored}, metadata)


def _alignment(metadata: Mapping[str, Any]) -> int:
    value = metadata.get(_ALIGNMENT, 32)
    if type(value) is not int or not 0 < value <= _MOST_ALIGNMENT or value & (value - 1):
        raise WeightsProblem(f"its {_ALIGNMENT} is no power of two")
    return value


def _refuse_others(infos: list[TensorInfo]) -> None:
    """Refuse types that are not kept as they lie, all of them at once."""
    counts = Counter(info.kind for info in infos if info.kind not in _PLAIN and info.kind not in _QUANTIZED)
    if counts:
        names = [f"{number} of {_name(kind)}" for kind, number in sorted(counts.items())]
        raise UnknownType(
            f"it has tensors that are not kept as they lie: {', '.join(names)}",
            "load_weights(path, dequantize=True) gives them as f32, by the package gguf; "
            f"{' and '.join(LAYOUTS)} are kept",
        )


#: What the format calls types of blocks, for messages.
_OTHERS = {3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K"}


def _name(kind: int) -> str:
    return (_OTHERS | {14: "Q6_K", 15: "Q8_K"}).get(kind, f"type {kind}")


def _stored(file: MappedFile, start: int, info: TensorInfo, *, dequantize: bool) -> _Stored:
    begin = start + info.offset
    dtype = _PLAIN.get(info.kind)
    if dtype is not None:
        end = begin + size_of(info.shape, dtype.itemsize)
        return _Stored(begin, end, info.name, lambda: file.array(begin, dtype.numpy, info.shape))
    kind = _QUANTIZED.get(info.kind)
    if kind is None:
        layout = other_layout(info.kind, info.name)
        shape = _in_blocks(info, layout.width)
        size = size_of((*shape, layout.size), 1)
        bytes_ = partial(_blocks, file, begin, (*shape, layout.size))
        return _Stored(begin, begin + size, info.name, lambda: layout.numbers(bytes_()).reshape(info.shape))
    shape = (*_in_blocks(info, BLOCK), LAYOUTS[kind].size)
    kept = partial(_quantized, file, begin, shape, kind)
    end = begin + size_of(shape, 1)
    return _Stored(begin, end, info.name, (lambda: kept().dequantized()) if dequantize else kept)


def _in_blocks(info: TensorInfo, count: int) -> tuple[int, ...]:
    """Return the shape of a tensor's blocks of ``count`` numbers."""
    *rows, width = info.shape or (0,)
    if not info.shape or width % count:
        raise WeightsProblem(f"the rows of tensor '{info.name}' are no blocks of {count} numbers")
    return (*rows, width // count)


def _blocks(file: MappedFile, begin: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return file.array(begin, np.dtype(np.uint8), shape)


def _quantized(file: MappedFile, begin: int, shape: tuple[int, ...], kind: QuantizedKind) -> QuantizedWeights:
    return QuantizedWeights(_blocks(file, begin, shape), kind)


def _check(infos: list[TensorInfo], stored: list[_Stored], alignment: int, size: int) -> None:
    """Make sure that tensors have names and places of their own in a file of ``size`` bytes."""
    names = Counter(info.name for info in infos)
    for name, number in names.items():
        if number > 1:
            raise WeightsProblem(f"it has {number} tensors called '{name}'")
    for info in infos:
        if info.offset % alignment:
            raise WeightsProblem(f"tensor '{info.name}' begins at no multiple of {alignment} bytes")
    for each in stored:
        if each.end > size:
            raise WeightsProblem(f"it ends at byte {size}, before byte {each.end}, where '{each.name}' does")
    for before, after in itertools.pairwise(sorted(stored, key=lambda each: (each.begin, each.end))):
        if before.end > after.begin:
            raise WeightsProblem(f"tensor '{after.name}' overlaps '{before.name}'")
