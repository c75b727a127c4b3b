"""Loads ONNX files: bytes to a ModelProto, and models of older operator sets to one that the rules know."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mind_mlir.diagnostics import Diagnostic, ParseError, UnsupportedError
from mind_mlir.diagnostics.display import display_path
from mind_mlir.models.onnx.graphs.refusals import unreadable
from mind_mlir.support import argument_checks

#: Models of operator sets before this, which broadcast in another way, are converted to a later one.
OLDEST = 7
_CONVERTED = 13


def onnx_package() -> Any:
    """Return the package `onnx` (UnsupportedError: E7003, it is not installed)."""
    try:
        import onnx  # noqa: PLC0415 -- only here, and only where somebody has a model
    except ImportError:
        found = Diagnostic(
            "E7003", "onnx is not installed, which reads the files", help="run: pip install onnx"
        )
        raise UnsupportedError(found) from None
    return onnx


def load(source: object) -> tuple[Any, str, Path | None]:
    """Return a model, what messages call it, and the folder that it lies in.

    Args:
        source: A path, the bytes of a file, or a ModelProto.

    Raises:
        UnsupportedError: E7003, the package onnx is not installed.
        ParseError: E1106, the file cannot be read; E1120, it is no model.
        TypeError: ``source`` is none of these.
    """
    onnx = onnx_package()
    if isinstance(source, onnx.ModelProto):
        return source, str(source.graph.name) or "<onnx>", None
    if isinstance(source, bytes):
        return _parsed(onnx, source, "<onnx>"), "<onnx>", None
    if not isinstance(source, str | os.PathLike):
        argument_checks.reject("source", "the path of an ONNX file, its bytes or an onnx.ModelProto", source)
    path, name = Path(source), display_path(source)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParseError(
            Diagnostic(
                "E1106",
                f"cannot read '{name}': {reason}",
                help="check the path and its permissions",
                context={"path": name, "reason": reason},
            )
        ) from None
    return _parsed(onnx, data, name), name, path.parent


def _parsed(onnx: Any, data: bytes, name: str) -> Any:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:  # protobuf's error is of another class in each of its versions
        raise unreadable(name, f"its bytes are no protobuf message ({error})") from None
    return proto


def current(proto: Any, name: str) -> Any:
    """Return a model of an operator set that the rules know; an older one is converted by ONNX itself.

    Raises:
        UnsupportedError: E7001, ONNX does not convert it.
    """
    versions = [each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")]
    if not versions or max(versions) >= OLDEST:
        return proto
    onnx = onnx_package()
    from onnx import version_converter  # noqa: PLC0415 -- few models need it

    del onnx
    try:
        return version_converter.convert_version(proto, _CONVERTED)
    except Exception as error:  # it raises RuntimeError, and errors of protobuf
        raise UnsupportedError(
            Diagnostic(
                "E7001",
                f"'{name}' is of operator set {max(versions)}, and ONNX does not convert it to {_CONVERTED}",
                notes=(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__,),
                help="export the model again, with a later operator set",
            )
        ) from None
