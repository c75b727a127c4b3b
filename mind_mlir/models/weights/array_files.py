"""Reads arrays of numbers from .npy and .npz files of any origin, with as little trust as they deserve.

A file's header says how large its array is. It is read first and compared with what is wanted, so that never
more is read, unpacked or allocated than the array that a program asks for. Nothing is unpickled.

What numpy.save writes of the types that ml_dtypes adds (bfloat16, the fp8 and 4-bit ones) is an array of
bytes without a type, `V2` or `V1`: the input that the array is for says what they are. The type that it
writes of float8_e5m2, `f1`, it does not know when it reads that; here it is known.
"""

from __future__ import annotations

import ast
import math
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

_MAGIC = b"\x93NUMPY"
_ZIP_MAGIC = b"PK"
#: Format version -> how the header's length is stored, and its encoding.
_VERSIONS = {1: ("<H", "latin-1"), 2: ("<I", "latin-1"), 3: ("<I", "utf-8")}
#: Longer headers, which only structured arrays have, are refused, as by numpy.
MAX_HEADER = 10_000
_NUMBERS = re.compile(r"[<>|=]?(?:b1|[iufc][0-9]{1,2})|[<|]?V[12]")
_PYTHON_2_LONG = re.compile(r"(?<=[0-9])L\b")
_KEYS = {"descr", "fortran_order", "shape"}
_ENCRYPTED = 0x1
#: What `numpy.dtype.isbuiltin` is of a type that another package registers.
ADDED = 2
_SUFFIX = ".npy"


class ArrayFileError(Exception):
    """A file, or a member of an archive, holds no array of numbers; the message says why."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of an array file: the elements' type and byte order, the shape, and the order in memory."""

    stored: np.dtype[np.generic]
    shape: tuple[int, ...]
    fortran: bool

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Return the elements' type in this machine's byte order."""
        return self.stored.newbyteorder("=")

    def dtype_for(self, wanted: np.dtype[Any]) -> np.dtype[Any]:
        """Return the elements' type where the array is for elements of ``wanted``."""
        is_untyped = self.stored.kind == "V" and wanted.isbuiltin == ADDED
        return wanted if is_untyped and wanted.itemsize == self.stored.itemsize else self.dtype

    @property
    def size(self) -> int:
        """Return the bytes of data that follow the header."""
        return math.prod(self.shape) * self.stored.itemsize


@contextmanager
def reading() -> Iterator[None]:
    """Turn whatever a malformed file makes the libraries raise into `ArrayFileError`.

    Which exceptions these are is documented nowhere, and fuzzing finds others in every version of Python.
    """
    try:
        yield
    except (ArrayFileError, MemoryError):
        raise
    except OSError as error:
        raise ArrayFileError(error.strerror or str(error)) from error
    except Exception as error:
        raise ArrayFileError(str(error).split("\n", 1)[0] or type(error).__name__) from error


def read_header(stream: IO[bytes]) -> Header:
    """Return the header of an array, behind which ``stream`` is then (within `reading`)."""
    magic = stream.read(len(_MAGIC) + 2)
    if magic.startswith(_ZIP_MAGIC):
        raise ArrayFileError("it is an archive; pass it whole, as --input FILE.npz")
    if not magic.startswith(_MAGIC) or len(magic) < len(_MAGIC) + 2:
        raise ArrayFileError("it is no numpy file")
    version = magic[len(_MAGIC)]
    if version not in _VERSIONS:
        raise ArrayFileError(f"its format version {version}.{magic[-1]} is unknown")
    form, encoding = _VERSIONS[version]
    (length,) = struct.unpack(form, _exactly(stream, struct.calcsize(form)))
    if length > MAX_HEADER:
        raise ArrayFileError(f"its header of {length} bytes is too long for an array of numbers")
    return _header(_literal(_exactly(stream, length).decode(encoding)))


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise ArrayFileError("its header is cut off")
    return data


def _literal(text: str) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the parser thinks of the style of a hostile header
            return ast.literal_eval(_PYTHON_2_LONG.sub("", text).strip(" \t\n"))
    except Exception as error:  # ValueError, SyntaxError, TypeError, MemoryError, RecursionError, ...
        raise ArrayFileError("its header is malformed") from error


def _header(found: object) -> Header:
    if not isinstance(found, dict) or found.keys() != _KEYS:
        raise ArrayFileError("its header is malformed")
    descr, fortran, shape = found["descr"], found["fortran_order"], found["shape"]
    if not isinstance(fortran, bool) or not isinstance(shape, tuple):
        raise ArrayFileError("its header is malformed")
    if not all(type(extent) is int and 0 <= extent < 1 << 63 for extent in shape):
        raise ArrayFileError("its header gives a shape that is none")
    return Header(_dtype(descr), shape, fortran)


def _dtype(descr: object) -> np.dtype[np.generic]:
    if not isinstance(descr, str):
        raise ArrayFileError("its elements are records of several fields")
    if descr.endswith("O"):
        raise ArrayFileError("its elements are Python objects")
    if not _NUMBERS.fullmatch(descr):
        raise ArrayFileError(f"its elements are no numbers, but of numpy's type '{descr}'")
    if descr.lstrip("<|") == "f1":
        return DType.FP8_E5M2.numpy
    try:
        return np.dtype(descr)
    except TypeError as error:
        raise ArrayFileError(f"numpy knows no type '{descr}' here") from error


def _read_data(stream: IO[bytes], header: Header) -> Array:
    data = stream.read(header.size)
    if len(data) < header.size:
        raise ArrayFileError(f"its header promises {header.size} bytes of data, but {len(data)} follow")
    array = np.frombuffer(data, header.stored).astype(header.dtype, copy=False)
    return array.reshape(header.shape, order="F" if header.fortran else "C")


def read_array(path: str, accept: Callable[[Header], bool]) -> Array | None:
    """Return the array in the file at ``path``, or None where ``accept`` wants none with such a header.

    Raises:
        ArrayFileError: The file holds no array of numbers.
    """
    with reading():
        stream = open(path, "rb")  # noqa: PTH123, SIM115 -- Path takes an empty name for this directory
    with stream:
        with reading():
            header = read_header(stream)
        if not accept(header):
            return None
        with reading():
            return _read_data(stream, header)


class Archive:
    """An open .npz file; to be closed.

    Attributes:
        members: Its arrays, by name.
        twice: Names that several arrays have.
    """

    def __init__(self, path: str) -> None:
        """Open the archive at ``path``; its arrays are read one at a time (ArrayFileError: there is none)."""
        self.members: dict[str, zipfile.ZipInfo] = {}
        self.twice: list[str] = []
        with reading():
            self._file = _zip_file(path)
        for info in self._file.infolist():
            name = info.filename.removesuffix(_SUFFIX)
            if name in self.members:
                self.twice.append(name)
            self.members[name] = info

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, name: str, accept: Callable[[Header], bool]) -> Array | None:
        """Return array ``name``, or None where ``accept`` wants none with such a header.

        Raises:
            ArrayFileError: It cannot be read, is encrypted, is no array of numbers, or not of the size that
                the archive says.
        """
        info = self.members[name]
        if info.flag_bits & _ENCRYPTED:
            raise ArrayFileError("it is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArrayFileError("it is compressed in a way that numpy does not write")
        with reading():
            stream = self._file.open(info)
        with stream:
            with reading():
                header = read_header(stream)
            if not accept(header):
                return None
            follows = info.file_size - stream.tell()
            if follows != header.size:
                raise ArrayFileError(
                    f"its header promises {header.size} bytes of data, the archive {follows}"
                )
            with reading():
                return _read_data(stream, header)


def _zip_file(path: str) -> zipfile.ZipFile:
    with open(path, "rb") as file:  # noqa: PTH123 -- as above
        if file.read(len(_MAGIC)) == _MAGIC:
            raise ArrayFileError(f"it is a single array; pass it as --input NAME={path}")
    return zipfile.ZipFile(path)
