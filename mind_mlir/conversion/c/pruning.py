"""Leaves out variables and arrays that nothing reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from mind_mlir.conversion.c.nodes import CompoundStatement, Element, LineStatement, Set, Text, names_in

if TYPE_CHECKING:
    from mind_mlir.conversion.c.nodes import Statement


def pruned(statements: Sequence[Statement], arrays: Collection[str]) -> list[Statement]:
    """Return ``statements`` without what only sets something that nothing reads; of arrays, ``arrays``."""
    current = list(statements)
    while True:
        read = set(_read(current))
        kept = _kept(current, read, arrays)
        if kept == current:
            return current
        current = kept


def _read(statements: Sequence[Statement]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case LineStatement(text):
                if not text.startswith("/*"):
                    yield from re.findall(r"[A-Za-z_]\w*", text)
            case Set(target, value):
                yield from names_in(value) if target != value else ()
                if isinstance(target, Element):
                    yield from (name for name, _ in target.index.terms)
            case CompoundStatement(head, body, otherwise):
                yield from re.findall(r"[A-Za-z_]\w*", head)
                yield from _read(body)
                yield from _read(otherwise)


def _kept(statements: Sequence[Statement], read: set[str], arrays: Collection[str]) -> list[Statement]:
    kept: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Set):
            target = statement.target
            if isinstance(target, Text) and not target.text.startswith("*") and target.text not in read:
                continue
            if isinstance(target, Element) and target.array in arrays and target.array not in read:
                continue
        elif isinstance(statement, CompoundStatement):
            body = _kept(statement.body, read, arrays)
            otherwise = _kept(statement.otherwise, read, arrays)
            if not body and not otherwise:
                continue
            statement = CompoundStatement(statement.head, body, otherwise)  # noqa: PLW2901  what is kept of it
        kept.append(statement)
    return [
        each
        for number, each in enumerate(kept)
        if not _is_comment(each) or (number + 1 < len(kept) and not _is_comment(kept[number + 1]))
    ]


def _is_comment(statement: Statement) -> bool:
    return isinstance(statement, LineStatement) and statement.text.startswith("/*")
