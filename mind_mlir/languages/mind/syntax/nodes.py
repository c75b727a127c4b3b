"""The nodes of the syntax tree of a `.mind` program, as its text has it (surface.md).

    program    ::= item*
    item       ::= import | struct | alias | function | let
    statement  ::= let | assign | while | for | function | return | expression
    expression ::= name | number | bool | string | list | tuple | struct literal | unary | binary
                 | call | index | field | if | block | closure
    type       ::= name | tensor | tuple

Every node knows its span: the offsets of its first character and behind its last one. What could not be read
is an `Invalid` expression or type, about which nobody complains a second time. Nodes compare by identity.

No tree is deeper than some multiple of `MAX_NESTING`, so that it may be walked recursively, but for one
thing: a chain of operators, as long as its author likes, is a tree of `Binary` that leans to the left.
Whoever walks one goes down its left sides in a loop.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from mind_mlir.support.lazy_dataclass import dataclass

#: Offsets of the first character and behind the last one.
Span: TypeAlias = tuple[int, int]

#: How many levels of parentheses, lists, blocks, calls, signs, closures and types may stand in one another.
MAX_NESTING = 64

#: Of what no text holds.
NOWHERE: Span = (-1, -1)


@dataclass(slots=True, eq=False)
class Ident:
    """A name where it is written."""

    text: str
    span: Span = NOWHERE


# Types


@dataclass(slots=True, eq=False)
class NamedType:
    """``f32``, ``unit``, or the name of a struct or an alias."""

    name: Ident
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Tensor:
    """``Tensor<f32, [2, n]>``."""

    dtype: Ident
    dimensions: list[Ident | Number]
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class TupleType:
    """``(A, B)``; ``()`` is unit."""

    items: list[Type]
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Invalid:
    """An expression or a type that could not be read; it has been reported."""

    span: Span = NOWHERE


Type: TypeAlias = NamedType | Tensor | TupleType | Invalid


# Expressions


@dataclass(slots=True, eq=False)
class Name:
    """A variable, a function, or a dimension."""

    text: str
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Number:
    """An integer or a float; ``text`` is as it is written, ``0x_ff`` or ``1.``."""

    value: int | float
    text: str
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Bool:
    """``true`` or ``false``."""

    value: bool
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class String:
    """A string; ``value`` has its escapes replaced, ``text`` is as it is written."""

    value: str
    text: str
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class List:
    """``[a, b]``: a literal of a tensor, a shape or a list of axes."""

    items: list[Expression]
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Tuple:
    """``(a, b)``, ``(a,)`` or ``()``; an expression in parentheses alone is that expression."""

    items: list[Expression]
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class FieldValue:
    """``w: a`` of a struct literal; ``w`` alone stands for ``w: w``, and ``value`` is that name."""

    name: Ident
    value: Expression
    short: bool = False


@dataclass(slots=True, eq=False)
class StructLiteral:
    """``Params { w: a, b }``."""

    name: Ident
    fields: list[FieldValue]
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Unary:
    """``-x`` or ``!x``; ``operator_span`` is where the operator stands."""

    operator: str
    operand: Expression
    operator_span: Span = NOWHERE
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Binary:
    """``x + y``; operators are ``+ - * / < <= > >= == != && ||``."""

    operator: str
    left: Expression
    right: Expression
    operator_span: Span = NOWHERE
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Argument:
    """An argument of a call, by position, or by ``name``: ``axes=[1]``."""

    value: Expression
    name: Ident | None = None


@dataclass(slots=True, eq=False)
class Call:
    """``f(x, axes=[1])``; what is called may be an expression, as in ``grad(f)(x)``."""

    callee: Expression
    arguments: list[Argument]
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Slice:
    """``0:2``, ``:``, ``::2`` within brackets."""

    start: Expression | None
    end: Expression | None
    step: Expression | None
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Index:
    """``x[0, 1:, i]``."""

    value: Expression
    items: list[Expression | Slice]
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Field:
    """``p.w``, or ``t.0`` of a tuple, whose name is its number."""

    value: Expression
    name: Ident
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Parameter:
    """A parameter of a function, or of a closure, which need not say its type."""

    name: Ident
    type: Type | None = None


@dataclass(slots=True, eq=False)
class Closure:
    """``|a, b| f(a, b)``; its parameters may have types: ``|a: f32| a``."""

    parameters: list[Parameter]
    body: Expression
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Block:
    """``{ statements; value }``; without a value it is worth unit."""

    statements: list[Statement]
    value: Expression | None
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class If:
    """``if c { a } else { b }``; what follows ``else`` is a block or another ``if``."""

    condition: Expression
    then: Block
    otherwise: Block | If | None
    span: Span = NOWHERE


Literal: TypeAlias = Number | Bool | String | List | Tuple | StructLiteral
Operation: TypeAlias = Unary | Binary | Call | Index | Field
Expression: TypeAlias = Name | Literal | Operation | Closure | Block | If | Invalid


# Statements


@dataclass(slots=True, eq=False)
class TuplePattern:
    """``(a, (b, _))`` on the left of a ``let``; ``_`` is the name of what is not wanted."""

    items: list[Pattern]
    span: Span = NOWHERE


Pattern: TypeAlias = Ident | TuplePattern


@dataclass(slots=True, eq=False)
class Let:
    """``let p: T = e;``, in a block or at the top."""

    pattern: Pattern
    type: Type | None
    value: Expression
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Assign:
    """``x = e;``: a variable declared before is given another value."""

    target: Ident
    value: Expression
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Evaluate:
    """``e;``: an expression whose value nobody wants, or an ``if`` of several in a block."""

    value: Expression
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Return:
    """``return e;``."""

    value: Expression | None
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class While:
    """``while c { ... }``."""

    condition: Expression
    body: Block
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class For:
    """``for i in range(n) { ... }``; behind ``in``, only calls of ``range`` mean something."""

    variable: Ident
    iterable: Expression
    body: Block
    span: Span = NOWHERE


# Items


@dataclass(slots=True, eq=False)
class Import:
    """``import diff::grad;``."""

    path: list[Ident]
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class FieldType:
    """``w: T`` in a struct."""

    name: Ident
    type: Type


@dataclass(slots=True, eq=False)
class Struct:
    """``struct Params { w: T, b: U }``."""

    name: Ident
    fields: list[FieldType]
    exported: bool = False
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Alias:
    """``type Matrix = T;``."""

    name: Ident
    type: Type
    exported: bool = False
    span: Span = NOWHERE


@dataclass(slots=True, eq=False)
class Function:
    """``export fn f(x: T) -> U { ... }``, at the top or in a block; without ``->`` it returns unit.

    ``head`` spans what stands before the body.
    """

    name: Ident
    parameters: list[Parameter]
    result: Type | None
    body: Block
    exported: bool = False
    head: Span = NOWHERE
    span: Span = NOWHERE


Statement: TypeAlias = Let | Assign | Evaluate | Return | While | For | Function
Item: TypeAlias = Import | Struct | Alias | Function | Let


@dataclass(slots=True, eq=False)
class SourceFile:
    """A file."""

    items: list[Item] = field(default_factory=list)
    span: Span = NOWHERE
