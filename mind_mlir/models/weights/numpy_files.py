"""numpy's files: one array, or an archive of several. What is compressed is unpacked when it is asked for."""

from __future__ import annotations

import io
import zipfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.models.weights.array_files import (
    MAX_HEADER,
    Archive,
    ArrayFileError,
    Header,
    read_header,
    reading,
)
from mind_mlir.models.weights.errors import UnknownType, WeightsProblem
from mind_mlir.models.weights.mapped_file import MappedFile, settled
from mind_mlir.models.weights.tensors import Contents

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

ARRAY_MAGIC, ARCHIVE_MAGIC = b"\x93NUMPY", b"PK"
#: How a member of an archive begins.
_MEMBER_MAGIC = b"PK\x03\x04"
#: The magic word, the version and the length of a header.
_BEFORE_HEADER = 12
#: The fixed part of what stands before a member of an archive, and where it has the lengths of the rest.
_LOCAL, _LENGTHS = 30, 26


def read_npy(file: MappedFile) -> Contents:
    """Return the array of a file; it is called as the file is, without its suffix.

    Raises:
        WeightsProblem: The file holds no array of numbers.
        UnknownType: It does not say of which type they are.
    """
    name = Path(file.path).stem
    header, data = _header(file, 0, name)
    if file.size - data != header.size:
        raise WeightsProblem(
            f"its header promises {header.size} bytes of data, but {file.size - data} follow"
        )
    return Contents("npy", {name: partial(_mapped, file, data, header)})


def read_npz(file: MappedFile) -> Contents:
    """Return the arrays of an archive.

    Raises:
        WeightsProblem: It is damaged, or holds something else than arrays of numbers.
        UnknownType: It does not say of which type they are.
    """
    try:
        with closing(Archive(file.path)) as archive:
            if archive.twice:
                raise WeightsProblem(f"it has several arrays called '{archive.twice[0]}'")
            if strange := [info for info in archive.members.values() if not info.filename.endswith(".npy")]:
                raise WeightsProblem(
                    f"'{strange[0].filename}' in it is no array; torch's files are no archives of arrays"
                )
            makers = {}
            for name, info in archive.members.items():
                if info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1:
                    header, data = _member(file, info, name)
                    makers[name] = partial(_mapped, file, data, header)
                else:
                    makers[name] = partial(_unpacked, file.path, name)
    except ArrayFileError as error:
        raise WeightsProblem(str(error)) from None
    return Contents("npz", makers)


def _member(file: MappedFile, info: zipfile.ZipInfo, name: str) -> tuple[Header, int]:
    """Return the header of a member that is not compressed, and where its data is."""
    if file.bytes(info.header_offset, len(_MEMBER_MAGIC)) != _MEMBER_MAGIC:
        raise WeightsProblem(f"array '{name}' is not where the archive says")
    named, extra = file.unpack("<HH", info.header_offset + _LENGTHS)
    begin = info.header_offset + _LOCAL + named + extra
    header, data = _header(file, begin, name)
    if data - begin + header.size != info.file_size:
        raise WeightsProblem(f"array '{name}' has another size than the archive says")
    return header, data


def _header(file: MappedFile, begin: int, name: str) -> tuple[Header, int]:
    """Return the header of an array that begins at a place of a file, and where its data is."""
    stream = io.BytesIO(file.bytes(begin, min(MAX_HEADER + _BEFORE_HEADER, file.size - begin)))
    try:
        with reading():
            header = read_header(stream)
    except ArrayFileError as error:
        raise WeightsProblem(f"'{name}': {error}") from None
    _is_typed(header, name)
    return header, begin + stream.tell()


def _is_typed(header: Header, name: str) -> bool:
    """Return True where a file says what the elements of an array are (UnknownType: it does not)."""
    if header.dtype.kind == "V":
        raise UnknownType(
            f"array '{name}' is of {header.dtype.itemsize} bytes an element, without a type",
            "numpy's files have no bf16 and fp8: write them as safetensors",
        )
    return True


def _mapped(file: MappedFile, data: int, header: Header) -> Array:
    shape = header.shape[::-1] if header.fortran else header.shape
    array = file.array(data, header.stored, shape)
    return settled((array.T if header.fortran else array).astype(header.dtype, copy=False))


def _unpacked(path: str, name: str) -> Array:
    try:
        with closing(Archive(path)) as archive:
            if name not in archive.members:
                raise WeightsProblem(f"the archive has changed: '{name}' is gone")
            array = archive.read(name, lambda header: _is_typed(header, name))
            assert array is not None, "what has no type is refused"
    except ArrayFileError as error:
        raise WeightsProblem(f"'{name}': {error}") from None
    return settled(array)
