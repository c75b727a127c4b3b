"""The patterns that the simplifying passes are made of, each with the reason why it holds."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: Returns the value that takes the place of the operation's result, or None where the pattern does not fit.
Rule: TypeAlias = "Callable[[Rewrite], ValueId | None]"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to write an operation more simply.

    Attributes:
        before: What it looks for, as a person writes it.
        after: What takes its place.
        why: Why results stay the same: of floats for NaN, infinities and both zeros, and of integers.
        opcodes: The operations that it is about.
        rule: Looks at one of them.
        unlike: What is close to it and does not hold, and why; empty where nothing is.
    """

    before: str
    after: str
    why: str
    opcodes: tuple[str, ...]
    rule: Rule
    unlike: str = ""


def by_opcode(patterns: Iterable[Pattern]) -> Mapping[str, tuple[Rule, ...]]:
    """Return the rules of ``patterns`` by the operations that they are about, in order."""
    found: dict[str, tuple[Rule, ...]] = {}
    for pattern in patterns:
        for opcode in pattern.opcodes:
            found[opcode] = (*found.get(opcode, ()), pattern.rule)
    return found


def beneath(*opcodes: str) -> Callable[[Callable[[Rewrite, CoreOperation], ValueId | None]], Rule]:
    """Make a rule of what is also given the operation, one of ``opcodes``, that makes the first operand."""

    def decorate(function: Callable[[Rewrite, CoreOperation], ValueId | None]) -> Rule:
        @wraps(function)
        def rule(at: Rewrite) -> ValueId | None:
            inner = at.maker(at.operands[0], *opcodes)
            return None if inner is None else function(at, inner)

        return rule

    return decorate


def same_type(at: Rewrite) -> ValueId | None:
    """Rule: the operand, where the operation leaves its type as it is."""
    (value,) = at.operands
    return value if at.type_of(value) == at.type else None


def neutral(number: float, *, right: bool = False) -> Rule:
    """Return a rule: the other operand, where one is ``number``; or only where the right one is."""

    def rule(at: Rewrite) -> ValueId | None:
        for value, constant in at.orders()[: 1 if right else 2]:
            if at.is_real(constant, number):
                return at.as_result(value)
        return None

    return rule


def undone(opcode: str) -> Rule:
    """Return a rule: what the operand is made of, where ``opcode`` makes it, which undoes the operation."""
    return beneath(opcode)(lambda _, inner: inner.operands[0])


def idle(*opcodes: str) -> Rule:
    """Return a rule: the operand, where one of ``opcodes`` makes it, which leaves nothing to do."""
    return beneath(*opcodes)(lambda at, _: at.operands[0])
