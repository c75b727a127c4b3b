"""Expressions as Python objects (core-ir.md, "Surface language lowering"; surface.md).

    x, w = Variable("x"), Variable("w")
    total = Call("sum", x @ w * 2.0, axes=[0])
    print(lower_expression(total, {"x": TensorType("f32", [4, 8]), "w": TensorType("f32", [8, 2])}))

They are what the surface language's expressions are, without a text: `str` gives one. Python's operators on
them make larger ones; numbers, lists and arrays beside them are literals. ``==`` compares objects, as it does
everywhere in Python: the surface language's is ``BinaryOperation("==", a, b)``. An object that is used
several times is evaluated once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.elements import ElementProblem
from mind_mlir.ir.nested import flattened, is_masked
from mind_mlir.ir.types import DType, dtype_of
from mind_mlir.languages.mind.elaboration.types import spell_dtype
from mind_mlir.languages.mind.syntax.slips import LEVELS
from mind_mlir.languages.mind.syntax.tokens import KEYWORDS
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

#: A number or truth value.
Element: TypeAlias = bool | int | float

_EXPECTED = "a number, a truth value, nested lists of them or an array"


def _elements_of(value: object) -> tuple[tuple[int, ...], tuple[Element, ...], DType | None]:
    """Return the shape of ``value``, its elements row by row, and the dtype that it has as numpy's, or None.

    Raises:
        TypeError: It is no number, and no lists or array of numbers.
        VerificationError: E3010, lists are ragged, or nest deeper than any tensor.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        dtype = dtype_of(value.dtype)
        if dtype is None or value.dtype.kind == "c" or is_masked(value):
            argument_checks.reject("value", _EXPECTED, value)
        return value.shape, tuple([_element(item) for item in value.ravel().tolist()]), dtype
    try:
        shape, elements = flattened(value)
    except ElementProblem as problem:
        finding = Diagnostic(problem.code, problem.message, None, (), problem.help)
        raise VerificationError(finding) from None
    return shape, tuple([_element(item) for item in elements]), None


def _element(item: Any) -> Element:
    """Return the plain number that an element is."""
    if type(item) in (bool, int, float):
        return item  # type: ignore[no-any-return]  # one of the three
    plain = item.item() if isinstance(item, np.generic) else item
    number = argument_checks.whole(plain)
    if number is not None:
        return number
    if isinstance(plain, (bool, float)):
        return plain if isinstance(plain, bool) else float(plain)
    return argument_checks.reject("each element of value", "a number or a truth value", item)


def _operator(operator: str) -> Callable[[Expression, Any], BinaryOperation]:
    """Return the method of Python's operator that stands for one of the language."""
    return lambda self, other: BinaryOperation(operator, self, other)


def _swapped(operator: str) -> Callable[[Expression, Any], BinaryOperation]:
    """Return the method for an expression on the right of the operator."""
    return lambda self, other: BinaryOperation(operator, other, self)


class Expression:
    """A `Variable`, `Literal`, `List`, `UnaryOperation`, `BinaryOperation`, `Call` or `Index`."""

    __slots__ = ()
    __array_ufunc__ = None  # numpy's arrays leave operators with an expression to it
    __iter__: None = None  # __getitem__ would make it a sequence without an end

    def __str__(self) -> str:
        from mind_mlir.languages.mind.expression_text import written  # noqa: PLC0415 -- it stands above the data

        return written([self], several=False).text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __bool__(self) -> NoReturn:
        raise TypeError("an expression has no truth value; write ~a, a & b, a | b for !a, a && b, a || b")

    def __getitem__(self, items: Any) -> Index:
        return Index(self, items if isinstance(items, tuple) else (items,))

    def __neg__(self) -> UnaryOperation:
        return UnaryOperation("-", self)

    def __invert__(self) -> UnaryOperation:
        return UnaryOperation("!", self)

    def __matmul__(self, other: Any) -> Call:
        return Call("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Call:
        return Call("matmul", other, self)

    __add__, __radd__ = _operator("+"), _swapped("+")
    __sub__, __rsub__ = _operator("-"), _swapped("-")
    __mul__, __rmul__ = _operator("*"), _swapped("*")
    __truediv__, __rtruediv__ = _operator("/"), _swapped("/")
    __and__, __rand__ = _operator("&&"), _swapped("&&")
    __or__, __ror__ = _operator("||"), _swapped("||")
    __lt__, __le__, __gt__, __ge__ = _operator("<"), _operator("<="), _operator(">"), _operator(">=")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Variable(Expression):
    """A name that the symbol table declares; in a call also a word such as ``Same`` or ``f32``.

    Raises:
        ValueError: ``name`` is no identifier of the surface language.
    """

    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", identifier(self.name, "name"))


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Literal(Expression):
    """A number, a truth value, nested lists of them, or a numpy array.

    Args:
        value: The data.
        dtype: A `DType`, its name or its numpy type. Numpy's arrays and numbers have their own by default;
            other data takes that of the place where it stands, else f32, i64 or bool.

    Raises:
        TypeError: ``value`` is or holds no number, or ``dtype`` is none.
        VerificationError: E3010, the lists are ragged.
    """

    elements: tuple[Element, ...]
    shape: tuple[int, ...]
    dtype: DType | None

    def __init__(self, value: Any, dtype: Any = None) -> None:
        shape, elements, own = _elements_of(value)
        wanted = own if dtype is None else dtype_of(dtype)
        if wanted is None and dtype is not None:
            argument_checks.reject("dtype", "a DType, its name or its numpy type", dtype)
        object.__setattr__(self, "elements", elements)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", wanted)


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class List(Expression):
    """``[a, b]``: tensors of one shape and dtype, stacked on a new first axis."""

    items: tuple[Expression, ...]

    def __init__(self, items: Sequence[Any]) -> None:
        items = argument_checks.items(items, "items", "a sequence of expressions")
        object.__setattr__(self, "items", tuple([as_expression(item) for item in items]))


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class UnaryOperation(Expression):
    """``-x`` or ``!x``."""

    operator: str
    operand: Expression

    def __init__(self, operator: str, operand: Any) -> None:
        object.__setattr__(self, "operator", argument_checks.choice(operator, ("-", "!"), "operator"))
        object.__setattr__(self, "operand", as_expression(operand))


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class BinaryOperation(Expression):
    """``x + y``; operators are ``+ - * / < <= > >= == != && ||``."""

    operator: str
    left: Expression
    right: Expression

    def __init__(self, operator: str, left: Any, right: Any) -> None:
        object.__setattr__(self, "operator", argument_checks.choice(operator, tuple(LEVELS), "operator"))
        object.__setattr__(self, "left", as_expression(left))
        object.__setattr__(self, "right", as_expression(right))


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Call(Expression):
    """``sum(x, axes=[1])``.

    Args:
        callee: The name of a function.
        arguments: Expressions, or what is taken for one: numbers, lists, arrays; text is a name.
        named: The same by name.

    Raises:
        ValueError: A name is no identifier of the surface language.
    """

    callee: str
    arguments: tuple[Expression, ...]
    named: tuple[tuple[str, Expression], ...]

    def __init__(self, callee: str, /, *arguments: Any, **named: Any) -> None:
        object.__setattr__(self, "callee", identifier(callee, "callee"))
        object.__setattr__(self, "arguments", tuple([_argument(each) for each in arguments]))
        pairs = [(identifier(name, "a name"), _argument(each)) for name, each in named.items()]
        object.__setattr__(self, "named", tuple(pairs))


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Slice:
    """``start:end:step`` within the brackets of an `Index`; what is None is left out."""

    start: Expression | None
    end: Expression | None
    step: Expression | None

    def __init__(self, start: Any = None, end: Any = None, step: Any = None) -> None:
        for name, bound in (("start", start), ("end", end), ("step", step)):
            object.__setattr__(self, name, None if bound is None else as_expression(bound))

    @property
    def bounds(self) -> tuple[Expression, ...]:
        """Return the bounds that it has."""
        return tuple([bound for bound in (self.start, self.end, self.step) if bound is not None])


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Index(Expression):
    """``x[0, 1:, i]``, as Python's brackets write it: integers, expressions and slices."""

    value: Expression
    items: tuple[Expression | Slice, ...]

    def __init__(self, value: Any, items: Sequence[Any]) -> None:
        items = argument_checks.items(items, "items", "a sequence of integers, expressions and slices")
        object.__setattr__(self, "value", as_expression(value))
        object.__setattr__(self, "items", tuple([_item(item) for item in items]))


def as_expression(value: object) -> Expression:
    """Return the expression that Python means by ``value``: itself, a literal, or a list of expressions.

    Raises:
        TypeError: It means none.
        VerificationError: E3010, lists of numbers are ragged.
    """
    if isinstance(value, Expression):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(item, Expression) for item in value):
        return List(value)
    return Literal(value)


def identifier(value: object, parameter: str) -> str:
    """Return an identifier of the surface language."""
    name = argument_checks.text(value, parameter)
    if not name.isidentifier() or name in KEYWORDS:
        raise ValueError(
            f"{parameter} must be an identifier that is no keyword, not {argument_checks.describe(name)}"
        )
    return name


def _argument(value: object) -> Expression:
    if isinstance(value, DType):
        return Variable(spell_dtype(value))
    return Variable(value) if isinstance(value, str) else as_expression(value)


def _item(value: object) -> Expression | Slice:
    if isinstance(value, Slice):
        return value
    if isinstance(value, slice):
        return Slice(value.start, value.stop, value.step)
    return as_expression(value)
