"""Takes a textual pass pipeline apart into our passes and runs of MLIR's own.

    pipeline ::= anchor '(' element (',' element)* ')'      element ::= pass ['{' options '}'] | pipeline

Our passes are Python functions over a whole module, which MLIR's parser does not know; what stands between
them is handed to MLIR as it is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: Anchors under which our passes may stand: those that mean the whole module.
MODULE_ANCHORS = ("builtin.module", "any")

_CLOSING = {"(": ")", "{": "}", "[": "]"}
_PIPELINE = re.compile(r"\s*(?P<anchor>[\w.$-]+)\s*\((?P<body>.*)\)\s*\Z", re.S)
_NAME = re.compile(r"\s*(?P<name>[\w.$-]*)\s*(?P<rest>.*)\Z", re.S)


class PipelineError(click.ClickException):
    """A pipeline is malformed; the message says how."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of a pipeline.

    Attributes:
        name: The name of one of our passes, or None for passes of MLIR's own.
        text: The pipeline for MLIR's parser, anchor included; empty for one of ours.
    """

    name: str | None
    text: str = ""


def split_pipeline(text: str, ours: Collection[str]) -> list[Segment]:
    """Return the steps of a pipeline, in order.

    Args:
        text: The whole pipeline, anchor included.
        ours: Names of our passes.

    Raises:
        PipelineError: Brackets do not match, or one of our passes stands where it cannot run.
    """
    match = _PIPELINE.match(text)
    if match is None or match["anchor"] not in MODULE_ANCHORS:
        _reject_nested(text, text, ours)
        return [Segment(None, text)]  # MLIR says what is wrong with it
    anchor = match["anchor"]
    segments: list[Segment] = []
    pending: list[str] = []
    for element in _split(match["body"]):
        name, rest = _head(element)
        if name not in ours:
            _reject_nested(element, element, ours)
            pending.append(element)
            continue
        if rest.strip("{} \t\n"):
            raise PipelineError(f"pass '{name}' takes no options, found '{rest.strip()}'")
        if pending:
            segments.append(Segment(None, f"{anchor}({','.join(pending)})"))
            pending = []
        segments.append(Segment(name))
    if pending:
        segments.append(Segment(None, f"{anchor}({','.join(pending)})"))
    return segments


def _reject_nested(element: str, whole: str, ours: Collection[str]) -> None:
    match = _PIPELINE.match(element)
    if match is None:
        name, _ = _head(element)
        if name in ours:
            raise PipelineError(
                f"pass '{name}' runs on a whole builtin.module, found it in '{whole.strip()}'"
            )
        return
    for inner in _split(match["body"]):
        _reject_nested(inner, whole, ours)


def _head(element: str) -> tuple[str, str]:
    match = _NAME.match(element)
    assert match is not None, "the pattern matches every text"
    return match["name"], match["rest"]


def _split(body: str) -> Iterator[str]:
    """Yield what stands between the commas of ``body`` that are in no brackets and no string."""
    expected: list[str] = []
    quote, start = "", 0
    for position, character in enumerate(body):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in _CLOSING:
            expected.append(_CLOSING[character])
        elif character in ")}]":
            if not expected or expected.pop() != character:
                raise PipelineError(f"unexpected '{character}' in pass pipeline '{body}'")
        elif character == "," and not expected:
            yield body[start:position]
            start = position + 1
    if expected or quote:
        raise PipelineError(f"missing '{quote or expected[-1]}' in pass pipeline '{body}'")
    if body[start:].strip() or start:
        yield body[start:]
