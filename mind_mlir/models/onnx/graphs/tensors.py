"""Tensors of ONNX files as arrays of numpy: in the file, or beside it as external data that is mapped."""

from __future__ import annotations

import math
import mmap
from dataclasses import field
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from mind_mlir.models.onnx.graphs.refusals import unreadable
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

#: numpy's dtypes by the number that ONNX has for them; strings are objects.
DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.uint8),
    3: np.dtype(np.int8),
    4: np.dtype(np.uint16),
    5: np.dtype(np.int16),
    6: np.dtype(np.int32),
    7: np.dtype(np.int64),
    8: np.dtype(object),
    9: np.dtype(np.bool_),
    10: np.dtype(np.float16),
    11: np.dtype(np.float64),
    12: np.dtype(np.uint32),
    13: np.dtype(np.uint64),
    14: np.dtype(np.complex64),
    15: np.dtype(np.complex128),
    16: np.dtype(ml_dtypes.bfloat16),
    17: np.dtype(ml_dtypes.float8_e4m3fn),
    18: np.dtype(ml_dtypes.float8_e4m3fnuz),
    19: np.dtype(ml_dtypes.float8_e5m2),
    20: np.dtype(ml_dtypes.float8_e5m2fnuz),
    21: np.dtype(ml_dtypes.uint4),
    22: np.dtype(ml_dtypes.int4),
    23: np.dtype(ml_dtypes.float4_e2m1fn),
    24: np.dtype(ml_dtypes.float8_e8m0fnu),
    25: np.dtype(ml_dtypes.uint2),
    26: np.dtype(ml_dtypes.int2),
}
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
#: How many bits an element takes in a file, where it is less than a byte.
_PACKED = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
#: The field in which numbers lie that are not given as bytes.
_FIELDS = {1: "float_data", 14: "float_data", 7: "int64_data", 11: "double_data", 15: "double_data"}
_FIELDS |= {12: "uint64_data", 13: "uint64_data", 8: "string_data"}
#: Dtypes whose bits lie in integers of another dtype, and those.
_AS_BITS = {
    10: np.uint16,
    16: np.uint16,
    17: np.uint8,
    18: np.uint8,
    19: np.uint8,
    20: np.uint8,
    24: np.uint8,
}


def dtype_of(number: int) -> np.dtype[Any] | None:
    """Return numpy's dtype for ONNX's number, or None where ONNX has none."""
    return DTYPES.get(number)


@dataclass
class Tensors:
    """What reads the tensors of one model.

    Attributes:
        name: What messages call the model.
        folder: Where its external data lies; None where it has no place.
        maps: The files that are mapped already.
    """

    name: str
    folder: Path | None
    maps: dict[Path, mmap.mmap | bytes] = field(default_factory=dict)

    def array(self, tensor: Any) -> npt.NDArray[Any]:
        """Return a TensorProto as an array, which may be written to; a file that is mapped stays as it is.

        Raises:
            ParseError: E1120, it does not hold what it says.
        """
        dtype, shape = dtype_of(tensor.data_type), tuple(tensor.dims)
        if dtype is None:
            raise self._refused(tensor, f"its dtype is number {tensor.data_type}, which ONNX does not have")
        if any(extent < 0 for extent in shape):
            raise self._refused(tensor, f"its shape is {list(shape)}")
        try:
            if tensor.data_location == 1:
                data = self._external(tensor, dtype, math.prod(shape))
                return self._of_bytes(tensor, data, dtype, shape)
            if tensor.HasField("raw_data"):
                return self._of_bytes(tensor, tensor.raw_data, dtype, shape)
            return self._of_fields(tensor, dtype, shape)
        except (ValueError, OverflowError) as error:  # numpy has no such shape, or the dtype no such number
            raise self._refused(tensor, f"it cannot be an array: {error}") from None

    def _of_bytes(
        self, tensor: Any, data: bytes | memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> npt.NDArray[Any]:
        bits = _PACKED.get(tensor.data_type)
        count = math.prod(shape)
        size = count * dtype.itemsize if bits is None else -(-count * bits // 8)
        if dtype.hasobject or len(data) != size:
            raise self._refused(tensor, f"its {count} elements of {dtype} are given in {len(data)} bytes")
        if bits is not None:
            return (
                _unpacked(np.frombuffer(data, np.uint8), bits, count)
                .astype(np.uint8)
                .view(dtype)
                .reshape(shape)
            )
        found = np.frombuffer(data, dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype)
        whole = found.view(dtype).reshape(shape)
        # Calls take arrays without a copy where they are aligned.
        return whole if whole.flags.writeable and whole.flags.aligned else whole.copy()

    def _of_fields(self, tensor: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        kind, count = tensor.data_type, math.prod(shape)
        listed = getattr(tensor, _FIELDS.get(kind, "int32_data"))
        pairs = 2 if kind in (14, 15) else 1
        bits = _PACKED.get(kind)
        wanted = -(-count * bits // 8) if bits else count * pairs
        if len(listed) != wanted:
            raise self._refused(tensor, f"it has {len(listed)} numbers for {count} elements")
        if kind == 8:
            return np.array([each.decode(errors="replace") for each in listed], object).reshape(shape)
        if bits:
            packed = np.array(listed, np.int64).astype(np.uint8)
            return _unpacked(packed, bits, count).astype(np.uint8).view(dtype).reshape(shape)
        if kind in _AS_BITS:
            return np.array(listed, np.int64).astype(_AS_BITS[kind]).view(dtype).reshape(shape)
        if pairs == 2:
            return np.array(listed, np.float64 if kind == 15 else np.float32).view(dtype).reshape(shape)
        return np.array(listed).astype(dtype).reshape(shape)

    def sparse(self, tensor: Any) -> npt.NDArray[Any]:
        """Return a SparseTensorProto as an array with all its elements."""
        values, places, shape = self.array(tensor.values), self.array(tensor.indices), tuple(tensor.dims)
        if any(extent < 0 for extent in shape) or math.prod(shape) > 2**28:
            raise self._refused(tensor.values, f"its shape is {list(shape)}")
        found = np.zeros(math.prod(shape), values.dtype)
        try:
            at = places if places.ndim == 1 else np.ravel_multi_index(tuple(places.T), shape)
            found[at] = values
        except (ValueError, IndexError) as error:
            raise self._refused(tensor.values, f"its indices are none of its shape: {error}") from None
        return found.reshape(shape)

    def _external(self, tensor: Any, dtype: np.dtype[Any], count: int) -> memoryview:
        """Return the bytes of a tensor that lie in a file beside the model."""
        facts = {entry.key: entry.value for entry in tensor.external_data}
        path = self._path(tensor, facts.get("location", ""))
        if path not in self.maps:
            try:
                with path.open("rb") as file:
                    empty = path.stat().st_size == 0
                    self.maps[path] = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            except OSError as error:
                raise self._refused(
                    tensor, f"its file '{path.name}' cannot be read: {error.strerror}"
                ) from None
        whole = memoryview(self.maps[path])
        bits = _PACKED.get(tensor.data_type)
        size = count * dtype.itemsize if bits is None else -(-count * bits // 8)
        try:
            start = int(facts.get("offset", 0))
            length = int(facts.get("length", size))
        except ValueError:
            raise self._refused(tensor, "its offset or length is no integer") from None
        if start < 0 or length < 0 or start + length > len(whole):
            raise self._refused(
                tensor,
                f"its bytes {start} to {start + length} are not in '{path.name}', of {len(whole)} bytes",
            )
        return whole[start : start + length]

    def _path(self, tensor: Any, location: str) -> Path:
        if self.folder is None:
            raise self._refused(
                tensor, "its data lies in a file, and the model has no place: load it by its path"
            )
        folder = self.folder.resolve()
        wanted = folder / location
        if not location or not wanted.resolve().is_relative_to(folder):
            raise self._refused(
                tensor, f"its data is said to lie at '{location}', outside of the model's folder"
            )
        return wanted

    def _refused(self, tensor: Any, message: str) -> Exception:
        return unreadable(self.name, f"tensor '{tensor.name}': {message}")


def _unpacked(packed: npt.NDArray[np.uint8], bits: int, count: int) -> npt.NDArray[Any]:
    """Return the numbers of few bits in bytes, whose first one lies in the lowest bits."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]
