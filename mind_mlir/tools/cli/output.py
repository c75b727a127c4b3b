"""Write what a command makes to standard output or to a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from mind_mlir.outputs.files import replace_file, write_file

#: The path that stands for standard output.
STDOUT = "-"


def write_output(text: str, path: str | None) -> None:
    """Write ``text`` and the end of its last line to a file, or to standard output (None or ``-``)."""
    if not text.endswith("\n"):
        text += "\n"
    if path is None or path == STDOUT:
        sys.stdout.write(text)
    else:
        write_file(path, text.encode("utf-8", "backslashreplace"))


def write_exactly(content: Iterable[str] | bytes, path: str | None) -> None:
    """Write pieces of a text, or bytes, as they are; as `write_output`."""
    if path is not None and path != STDOUT:
        data = [content] if isinstance(content, bytes) else (piece.encode() for piece in content)
        replace_file(path, lambda file: file.writelines(data))
    elif isinstance(content, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.writelines(content)
