"""Reads source files: bytes in, `SourceText` out, every failure a diagnostic."""

from __future__ import annotations

import codecs
import errno
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

from mind_mlir.diagnostics import Diagnostic, ParseError, SourceText
from mind_mlir.diagnostics.display import display_path

if TYPE_CHECKING:
    import os

#: Larger sources are refused. Nobody writes them, and a device such as /dev/zero has no end.
MAX_BYTES = 1 << 30
_CHUNK = 1 << 20
#: How many of the bytes at a fault a message shows.
_SHOWN_BYTES = 4

#: How other kinds of files begin -> what to do about them.
_OTHER_FORMATS = {
    codecs.BOM_UTF16_LE: "the file looks like UTF-16: save it as UTF-8",
    codecs.BOM_UTF16_BE: "the file looks like UTF-16: save it as UTF-8",
    b"ML\xefR": "the file looks like MLIR bytecode: mlir-opt turns it into text",
}


def read_source(path: str | os.PathLike[str]) -> SourceText:
    """Read a UTF-8 source file, or standard input where ``path`` is ``-``.

    Raises:
        ParseError: E1106 where the file cannot be read, E1001 where it is not UTF-8.
    """
    name = "<stdin>" if str(path) == "-" else display_path(path)
    try:
        if not name:
            raise OSError(errno.EINVAL, "the name is empty")
        if name == "<stdin>":
            data = _read(sys.stdin.buffer)
        else:
            with Path(path).open("rb") as file:
                data = _read(file)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ParseError(
            Diagnostic(
                "E1106",
                f"cannot read '{name}': {reason}",
                help="check the path and its permissions; '-' reads standard input",
                context=MappingProxyType({"path": name, "reason": reason}),
            )
        ) from error
    return decode_source(data, name)


def _read(stream: BinaryIO) -> bytes:
    """Return all of ``stream``, which may be a device without an end.

    Raises:
        OSError: It holds more than `MAX_BYTES`.
    """
    pieces = []
    size = 0
    while piece := stream.read(_CHUNK):
        size += len(piece)
        if size > MAX_BYTES:
            raise OSError(errno.EFBIG, f"it holds more than {MAX_BYTES >> 20} MiB")
        pieces.append(piece)
    return b"".join(pieces)


def decode_source(data: bytes, name: str) -> SourceText:
    """Decode the bytes of a source; a byte order mark at its head is dropped.

    Raises:
        ParseError: E1001 with the byte offset and the bytes found there.
    """
    text = data.removeprefix(codecs.BOM_UTF8)
    try:
        return SourceText(name, text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ParseError(_ill_formed(text, name, error.start, len(data) - len(text))) from error


def _ill_formed(text: bytes, name: str, start: int, mark_length: int) -> Diagnostic:
    found = text[start : start + _SHOWN_BYTES].hex(" ")
    offset = start + mark_length
    column_start = len(text[:start].decode("utf-8"))
    source = SourceText(name, text.decode("utf-8", errors="replace"))
    return Diagnostic(
        "E1001",
        f"the source is not UTF-8: ill-formed bytes at byte offset {offset}",
        source.locate(column_start, column_start + 1),
        (f"found bytes {found}",),
        next(
            (help_ for mark, help_ in _OTHER_FORMATS.items() if text.startswith(mark)),
            "save the file as UTF-8",
        ),
        context=MappingProxyType({"byte_offset": offset, "bytes": found}),
    )
