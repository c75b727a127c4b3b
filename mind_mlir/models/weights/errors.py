"""Errors about files of weights (E6505, E6506)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.diagnostics import ArtefactError, Diagnostic
from mind_mlir.diagnostics.display import clipped, display_path
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    import os

_FORMATS = "a file of weights is safetensors (or the index of several), GGUF, .npz or .npy"


class WeightsProblem(Exception):  # noqa: N818 -- it becomes a diagnostic
    """A file of weights is not well-formed; the message says why."""


class UnknownType(Exception):  # noqa: N818 -- as above
    """A file of weights has tensors of a type that is not read here.

    Attributes:
        advice: What can be done.
    """

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


def unreadable(path: str | os.PathLike[str], reason: str) -> ArtefactError:
    """Return E6505 about a file that holds no weights, or is damaged."""
    return _unread("E6505", path, reason, _FORMATS)


def unknown_type(path: str | os.PathLike[str], problem: UnknownType) -> ArtefactError:
    """Return E6506 about weights of a type that is not read."""
    return _unread("E6506", path, str(problem), problem.advice)


def _unread(code: str, path: str | os.PathLike[str], reason: str, help_: str) -> ArtefactError:
    shown = display_path(path)
    message = f"cannot read weights from '{shown}': {clipped(reason)}"
    facts = FrozenDict({"path": shown, "reason": reason})
    return ArtefactError(Diagnostic(code, message, help=help_, context=facts))
