"""Errors about ONNX models: files that are none, nodes that break a rule, and what is not supported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from mind_mlir.diagnostics import Diagnostic, ParseError, UnsupportedError, VerificationError

if TYPE_CHECKING:
    from mind_mlir.models.onnx.graphs.graph import OnnxNode


class RuleBrokenError(Exception):
    """A node's attributes or operands are not those that its operator has; a rule says so."""


class NotSupportedError(Exception):
    """A node is well-formed, and is none that a rule reads; a rule says why."""


def broken(message: str) -> NoReturn:
    """Say that a node breaks a rule of its operator."""
    raise RuleBrokenError(message)


def unsupported(message: str) -> NoReturn:
    """Say that a node is of a form that is not read."""
    raise NotSupportedError(message)


def check_few(count: float, most: int, what: str) -> None:
    """Refuse what there are too many of: all of them would be written out, or kept while a model is read."""
    if not count <= most:
        unsupported(f"there are {count:,} {what}, more than {most:,}")


def unreadable(name: str, message: str, help: str | None = None) -> ParseError:
    """Return the error that a file is no ONNX model."""
    hint = help or "onnx.checker.check_model says more about a model of ONNX"
    return ParseError(
        Diagnostic("E1120", f"'{name}' is no ONNX model that can be read: {message}", help=hint)
    )


def node_broken(node: OnnxNode, message: str, notes: tuple[str, ...] = ()) -> VerificationError:
    """Return the error that a node breaks a rule of its operator."""
    found = Diagnostic(
        "E2420",
        f"node {node}: {message}",
        notes=notes,
        help=f"the page of {node.operator[1]} in ONNX's list of operators says what it takes",
        context=_facts(node),
    )
    return VerificationError(found)


def node_unsupported(node: OnnxNode, message: str) -> UnsupportedError:
    """Return the error that a node is of a form that is not read."""
    found = Diagnostic(
        "E7001",
        f"node {node} is not read: {message}",
        help="the page on ONNX models lists what is read",
        context=_facts(node),
    )
    return UnsupportedError(found)


def _facts(node: OnnxNode) -> dict[str, Any]:
    return {"operation": node.operator[1], "name": node.name}
