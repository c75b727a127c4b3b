"""Saves what is needed to reproduce an internal error: the module, the stage and the version."""

from __future__ import annotations

import hashlib
import platform
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir import __version__
from mind_mlir.outputs.errors import OutputError
from mind_mlir.outputs.files import write_file

if TYPE_CHECKING:
    from mind_mlir.diagnostics import InternalError


def write_reproducer(error: InternalError, trace: str) -> Path | None:
    """Write a reproducer to the current directory or, failing that, to the one for temporary files.

    The file is the text of the module that the stage was given, under a head of comments, which hold the
    program where the text is MLIR; its name comes from its content, so that the same failure leaves one file.

    Args:
        error: The error, of a program as small as it can be had.
        trace: Where it was raised.

    Returns:
        Where the file is, or None where neither directory can be written to.
    """
    is_mlir = error.reproducer.lstrip().startswith(("module", "func.func", "#map", '"builtin.module"'))
    mark, suffix = ("//", ".mlir") if is_mlir else ("#", ".ir")
    head = (
        f"reproducer of an internal error of mind-mlir {__version__}",
        f"stage: {error.stage}",
        f"python {platform.python_version()} on {platform.system()} {platform.machine()}",
        *trace.rstrip().splitlines(),
        *(("the program:", *error.program.rstrip().splitlines()) if is_mlir and error.program else ()),
    )
    comments = "\n".join(f"{mark} {line}".rstrip() for line in head)
    data = f"{comments}\n{error.reproducer.rstrip()}\n".encode(errors="replace")
    name = f"mind-mlir-reproducer-{hashlib.sha256(data).hexdigest()[:12]}{suffix}"
    for find in (Path.cwd, tempfile.gettempdir):
        try:
            path = Path(find()) / name
            write_file(path, data)
        except (OSError, OutputError):  # the directory is gone, or not ours to write to
            continue
        return path
    return None
