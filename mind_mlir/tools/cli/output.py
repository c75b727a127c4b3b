"""Write the text of a command to standard output or to a file."""

from __future__ import annotations

import sys

from mind_mlir.outputs.files import write_file

#: The path that stands for standard output.
STDOUT = "-"


def write_output(text: str, path: str | None) -> None:
    """Write ``text`` to file ``path``, or to standard output where that is None or ``-``."""
    if not text.endswith("\n"):
        text += "\n"
    if path is None or path == STDOUT:
        sys.stdout.write(text)
    else:
        write_file(path, text.encode("utf-8", "backslashreplace"))
