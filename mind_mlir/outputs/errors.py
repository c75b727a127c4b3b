"""Errors about outputs that the system refuses."""

from __future__ import annotations

import errno
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.diagnostics.display import display_path

if TYPE_CHECKING:
    import os

#: What messages call it.
STANDARD_OUTPUT = "standard output"

_MAKE_ROOM = "make room there, or write elsewhere with -o"
_CHOOSE = "choose a place that you may write to"
_HELP = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "the system limits the size of files; 'ulimit -f' shows how much",
    errno.EACCES: _CHOOSE,
    errno.EPERM: _CHOOSE,
    errno.EROFS: _CHOOSE,
    errno.ENOENT: "create the directory first",
    errno.EISDIR: "give the name of a file in it",
    errno.EBADF: "it is closed: leave it open, or write to a file with -o",
}
#: What helps where the system does not give something.
_HELP_OF_REFUSALS = {
    errno.EMFILE: "close files, or raise the limit of open files; 'ulimit -n' shows it",
    errno.EAGAIN: "end threads, or raise the limit of them; 'ulimit -u' shows it",
    errno.ENOSPC: "make room in the directory for temporary files, or name another with TMPDIR",
}


class ReaderGoneError(Exception):
    """Whoever read an output went away: no error, but the end."""


def refused(stage: str, error: OSError) -> UnsupportedError:
    """Return E7102 about what the system does not give, such as another descriptor."""
    reason = error.strerror or str(error)
    place = f": '{display_path(str(error.filename))}'" if error.filename else ""
    return UnsupportedError(
        Diagnostic(
            "E7102",
            f"the system refuses what stage '{stage}' needs: {reason}{place}",
            help=_HELP_OF_REFUSALS.get(error.errno or 0),
            context=MappingProxyType({"stage": stage, "reason": reason}),
        )
    )


class OutputError(UnsupportedError):
    """An output could not be written (E7101)."""

    def __init__(self, target: str | os.PathLike[str], error: OSError, *, verb: str = "write") -> None:
        path, reason = display_path(target), error.strerror or str(error)
        name = path if target == STANDARD_OUTPUT else f"'{path}'"
        context = MappingProxyType({"path": path, "reason": reason})
        help_ = _HELP.get(error.errno or 0)
        super().__init__(Diagnostic("E7101", f"cannot {verb} {name}: {reason}", help=help_, context=context))
