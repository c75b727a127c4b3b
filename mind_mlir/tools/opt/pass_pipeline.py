"""Takes a textual pass pipeline apart.

    pipeline ::= anchor '(' element (',' element)* ')'      element ::= pass ['{' options '}'] | pipeline

Our passes are Python functions over a whole module, which MLIR's parser does not know; what stands between
them is handed to MLIR as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import TypeAlias

import click

from mind_mlir.support.lazy_dataclass import dataclass

#: Anchors under which our passes may stand: those that mean the whole module.
MODULE_ANCHORS = ("builtin.module", "any")

#: Deeper pipelines are refused.
_MAX_DEPTH = 100

_CLOSING = {"(": ")", "{": "}", "[": "]"}
_PIPELINE = re.compile(r"\s*(?P<anchor>[\w.$-]+)\s*\((?P<body>.*)\)\s*\Z", re.S)
_PASS = re.compile(r"\s*(?P<name>[\w.$-]*)\s*(?P<rest>.*?)\s*\Z", re.S)


class PipelineError(click.ClickException):
    """A pipeline is malformed; the message says how."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class PipelinePass:
    """One pass of a pipeline.

    Attributes:
        name: Its name, for example ``canonicalize``.
        options: What follows the name: ``{max-iterations=3}``, or nothing.
    """

    name: str
    options: str = ""

    def __str__(self) -> str:
        return f"{self.name}{self.options}"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The passes and pipelines that run on each operation of one kind.

    Attributes:
        anchor: The name of the operation, for example ``func.func``.
        elements: What runs on it, in order.
    """

    anchor: str
    elements: tuple[Element, ...]

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.elements))})"


Element: TypeAlias = PipelinePass | Pipeline


def parse_pipeline(text: str) -> Pipeline:
    """Return what a textual pipeline says.

    Raises:
        PipelineError: Brackets do not match, or there is no operation to run on.
    """
    match = _PIPELINE.match(text)
    if match is None:
        for _ in _split(text):
            pass  # a bracket too few or too many is the better message
        raise PipelineError(
            "a pass pipeline names the operation that it runs on, for example 'builtin.module(cse)', "
            f"found '{text}'"
        )
    return Pipeline(match["anchor"], tuple(_elements(match["body"], 1)))


def _elements(body: str, depth: int) -> Iterator[Element]:
    if depth > _MAX_DEPTH:
        raise PipelineError(f"pass pipelines nest more than {_MAX_DEPTH} deep")
    for text in _split(body):
        match = _PIPELINE.match(text)
        if match is not None:
            yield Pipeline(match["anchor"], tuple(_elements(match["body"], depth + 1)))
            continue
        match = _PASS.match(text)
        assert match is not None, "the pattern matches every text"
        if not match["name"]:
            raise PipelineError(f"expected the name of a pass, found '{text}' in pass pipeline '{body}'")
        if match["rest"][:1] not in ("", "{") or match["rest"][-1:] not in ("", "}"):
            raise PipelineError(f"expected ',' or options in '{{}}' after '{match['name']}', found '{text}'")
        yield PipelinePass(match["name"], match["rest"])


def merge_neighbours(elements: Iterable[Element]) -> list[Element]:
    """Return ``elements`` with neighbours of one anchor made one, as MLIR does.

    ``func.func(a),func.func(b)`` runs both passes on a function before it goes on to the next one.
    """
    merged: list[Element] = []
    for anchor, group in groupby(elements, lambda element: getattr(element, "anchor", None)):
        if anchor is None:
            merged += group
            continue
        inner = (each.elements for each in group if isinstance(each, Pipeline))
        merged.append(Pipeline(anchor, tuple(chain.from_iterable(inner))))
    return merged


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
