"""Random expressions of a type, from the names in scope."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import strategies as st
from surface_types import (
    BOOL,
    COUNT,
    FLOAT,
    Signature,
    StructOf,
    TensorOf,
    TupleOf,
    Type,
    call,
    ident,
    name,
    nested,
    numbers,
    real,
    type_node,
    whole,
)

from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DrawFn

_Rule: TypeAlias = "Callable[[TensorOf, int], nodes.Expression]"
#: How much is written in one function, at most: expressions.
_BUDGET = 40


@dataclass
class Expressions:
    """Draws expressions.

    Attributes:
        draw: Hypothesis's.
        variables: Names in scope, and their types.
        functions: What can be called.
        structs: The structs of the file.
        smooth: Whether gradients must agree with finite differences, and literals with any dtype.
        left: How many expressions may still be written.
    """

    draw: DrawFn
    variables: list[tuple[str, Type]]
    functions: list[Signature]
    structs: Sequence[StructOf]
    smooth: bool = False
    left: int = _BUDGET
    made: list[int] = field(default_factory=lambda: [0])

    def fresh(self, stem: str) -> str:
        """Return a name that nothing has."""
        self.made[0] += 1
        return f"{stem}{self.made[0]}"

    def number(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) < percent

    def expression(self, type_: Type, depth: int = 3) -> nodes.Expression:
        """Return an expression of a type, up to so many levels deep."""
        self.left -= 1
        if isinstance(type_, TupleOf):
            return self._tuple(type_, depth)
        if isinstance(type_, StructOf):
            return self._struct(type_, depth)
        if depth <= 0 or self.left <= 0:
            return self._leaf(type_)
        if type_ == BOOL:
            return self._condition(depth)
        rules = self._rules(type_)
        return self.draw(st.sampled_from(rules))(type_, depth - 1)

    def _rules(self, type_: TensorOf) -> list[_Rule]:
        rules: list[_Rule] = [
            self._leaf_of,
            self._leaf_of,
            self._binary,
            self._binary,
            self._unary,
            self._field,
            self._branch,
        ]
        rules += [self._block, self._call, self._closure]
        if not type_.is_open:
            rules += [self._sum, self._slice, self._reshape, self._transpose]
        if type_.is_float and len(type_.shape) == 2 and not type_.is_open:
            rules.append(self._matmul)
        if type_.is_float and not self.smooth and not type_.is_open:
            rules += [self._gradient]
        return rules

    # What has no parts

    def names(self, type_: Type) -> list[nodes.Expression]:
        """Return variables and their fields that are of a type."""
        found: list[nodes.Expression] = []
        for variable, of in self.variables:
            if of == type_:
                found.append(name(variable))
            if isinstance(of, StructOf):
                found += [nodes.Field(name(variable), ident(key)) for key, each in of.fields if each == type_]
            if isinstance(of, TupleOf):
                parts = enumerate(of.items)
                found += [nodes.Field(name(variable), ident(str(at))) for at, each in parts if each == type_]
        return found

    def _leaf_of(self, type_: TensorOf, depth: int) -> nodes.Expression:
        del depth
        return self._leaf(type_)

    def _leaf(self, type_: TensorOf) -> nodes.Expression:
        found = self.names(type_)
        if found and (type_.is_open or self.chance(75)):
            return self.draw(st.sampled_from(found))
        assert not type_.is_open, "a function has parameters of its open types"
        if type_ == BOOL:
            return nodes.Bool(self.chance(50))
        if not type_.is_float:
            literal = nested(type_.shape, lambda: whole(self.number(0, 5)))
            return literal if type_.dtype == "i64" else call("cast", literal, dtype=name(type_.dtype))
        literal = nested(type_.shape, self._element)
        return literal if type_.dtype == "f32" else call("cast", literal, dtype=name(type_.dtype))

    def _element(self) -> nodes.Expression:
        found: nodes.Expression = real(self.number(0, 8) / 4)
        return nodes.Unary("-", found) if self.chance(25) else found

    # What has parts of other types

    def _tuple(self, type_: TupleOf, depth: int) -> nodes.Expression:
        found = self.names(type_)
        if found and self.chance(50):
            return self.draw(st.sampled_from(found))
        return nodes.Tuple([self.expression(item, depth - 1) for item in type_.items])

    def _struct(self, type_: StructOf, depth: int) -> nodes.Expression:
        found = self.names(type_)
        if found and self.chance(70):
            return self.draw(st.sampled_from(found))
        fields = []
        for key, each in type_.fields:
            short = (key, each) in self.variables and self.chance(80)
            value = name(key) if short else self.expression(each, depth - 1)
            fields.append(nodes.FieldValue(ident(key), value, short))
        return nodes.StructLiteral(ident(type_.name), fields)

    def _condition(self, depth: int) -> nodes.Expression:
        kind = self.number(0, 5)
        if kind == 0:
            return self._leaf(BOOL)
        if kind == 1:
            return nodes.Unary("!", self.expression(BOOL, depth - 1))
        if kind == 2:
            operator = self.draw(st.sampled_from(("&&", "||")))
            return nodes.Binary(operator, self.expression(BOOL, depth - 1), self.expression(BOOL, depth - 1))
        of = COUNT if kind == 3 else FLOAT
        operator = self.draw(st.sampled_from(("<", "<=", ">", ">=", "==", "!=")))
        return nodes.Binary(operator, self.expression(of, depth - 1), self.expression(of, depth - 1))

    def _binary(self, type_: TensorOf, depth: int) -> nodes.Expression:
        operator = self.draw(st.sampled_from("+-*" if type_.is_float else "+-"))
        left, right = self.expression(type_, depth), self.expression(self._smaller(type_), depth)
        if self.chance(40):
            left, right = right, left
        return nodes.Binary(operator, left, right)

    def _smaller(self, type_: TensorOf) -> TensorOf:
        """Return a type that broadcasts to ``type_``."""
        if self.chance(60):
            return type_
        cut = self.number(0, len(type_.shape))
        kept = type_.shape[cut:]
        if type_.is_open:
            return type_ if kept and kept != type_.shape else TensorOf(type_.dtype, kept)
        return TensorOf(type_.dtype, tuple(1 if self.chance(25) else extent for extent in kept))

    def _unary(self, type_: TensorOf, depth: int) -> nodes.Expression:
        inner = self.expression(type_, depth)
        kind = self.number(0, 2)
        if kind == 0 or not type_.is_float:
            return nodes.Unary("-", inner)
        if kind == 1 and not self.smooth:
            return call("maximum", inner, self.expression(type_, depth))
        return call("neg" if self.smooth else "relu", inner)

    def _field(self, type_: TensorOf, depth: int) -> nodes.Expression:
        fitting = [(each, key) for each in self.structs for key, of in each.fields if of == type_]
        if fitting and self.chance(60):
            struct, key = self.draw(st.sampled_from(fitting))
            return nodes.Field(self.expression(struct, depth), ident(key))
        at = self.number(0, 1)
        pair = [self.expression(type_, depth), self.expression(FLOAT, depth - 1)]
        return nodes.Field(nodes.Tuple(pair if at == 0 else pair[::-1]), ident(str(at)))

    def _sum(self, type_: TensorOf, depth: int) -> nodes.Expression:
        axis = self.number(0, len(type_.shape))
        extents = (*type_.shape[:axis], self.number(1, 3), *type_.shape[axis:])
        return call("sum", self.expression(TensorOf(type_.dtype, extents), depth), axes=numbers(axis))

    def _slice(self, type_: TensorOf, depth: int) -> nodes.Expression:
        extents: list[int] = []
        items: list[nodes.Expression | nodes.Slice] = []
        for extent in type_.shape:
            assert isinstance(extent, int)
            start, step, more = self.number(0, 2), self.number(1, 2), self.number(0, 1)
            extents.append(start + (extent - 1) * step + 1 + more)
            end = None if more == 0 and extent else whole(start + (extent - 1) * step + 1)
            items.append(nodes.Slice(whole(start) if start else None, end, whole(step) if step > 1 else None))
        if not items or self.chance(50):
            at = self.number(0, len(items))
            extents.insert(at, self.number(1, 3))
            items.insert(at, whole(self.number(0, extents[at] - 1)))
        return nodes.Index(self.expression(TensorOf(type_.dtype, tuple(extents)), depth), items)

    def _reshape(self, type_: TensorOf, depth: int) -> nodes.Expression:
        shape = [extent for extent in type_.shape if isinstance(extent, int)]
        product = 1
        for extent in shape:
            product *= extent
        source = self.expression(TensorOf(type_.dtype, (product,)), depth)
        return call("reshape", source, numbers(*shape))

    def _transpose(self, type_: TensorOf, depth: int) -> nodes.Expression:
        order = self.draw(st.permutations(range(len(type_.shape))))
        extents = [1] * len(order)
        for place, axis in enumerate(order):
            extent = type_.shape[place]
            assert isinstance(extent, int)
            extents[axis] = extent
        source = self.expression(TensorOf(type_.dtype, tuple(extents)), depth)
        return call("transpose", source, permutation=numbers(*order))

    def _matmul(self, type_: TensorOf, depth: int) -> nodes.Expression:
        rows, columns = type_.shape
        inner = self.number(1, 3)
        left = self.expression(TensorOf(type_.dtype, (rows, inner)), depth)
        return call("matmul", left, self.expression(TensorOf(type_.dtype, (inner, columns)), depth))

    # What has blocks, and calls

    def _branch(self, type_: TensorOf, depth: int) -> nodes.Expression:
        if self.smooth:
            return self._binary(type_, depth)
        condition = self.expression(BOOL, min(depth, 2))
        then = nodes.Block([], self.expression(type_, depth))
        otherwise: nodes.Block | nodes.If = nodes.Block([], self.expression(type_, depth))
        if self.chance(25):
            more = nodes.Block([], self.expression(type_, depth - 1))
            otherwise = nodes.If(self.expression(BOOL, 1), more, otherwise)
        return nodes.If(condition, then, otherwise)

    def _block(self, type_: TensorOf, depth: int) -> nodes.Expression:
        variable = self.fresh("v")
        given: TensorOf = type_ if self.chance(50) or type_.is_open else FLOAT
        let = nodes.Let(ident(variable), None, self.expression(given, depth))
        self.variables.append((variable, given))
        block = nodes.Block([let], self.expression(type_, depth))
        self.variables.pop()
        return block

    def _closure(self, type_: TensorOf, depth: int) -> nodes.Expression:
        """Return a closure that is called where it is written."""
        variable = self.fresh("c")
        parameter = nodes.Parameter(ident(variable), type_node(type_) if self.chance(50) else None)
        argument = self.expression(type_, depth - 1)
        self.variables.append((variable, type_))
        closure = nodes.Closure([parameter], self.expression(type_, depth))
        self.variables.pop()
        return call(closure, argument)

    def _call(self, type_: TensorOf, depth: int) -> nodes.Expression:
        found = [(each, fit) for each in self.functions if (fit := _fitted(each, type_)) is not None]
        if self.smooth:
            found = [(each, fit) for each, fit in found if each.smooth]
        if not found:
            return self._binary(type_, depth)
        function, parameters = self.draw(st.sampled_from(found))
        return call(function.name, *[self.expression(each, depth - 1) for each in parameters])

    def _gradient(self, type_: TensorOf, depth: int) -> nodes.Expression:
        fitting = [each for each in self.functions if each.smooth and each.parameters[:1] == (type_,)]
        if not fitting:
            return self._sum(type_, depth)
        function = self.draw(st.sampled_from(fitting))
        gradient = call("grad", name(function.name))
        return call(gradient, *[self.expression(each, depth - 1) for each in function.parameters])


def _fitted(function: Signature, result: TensorOf) -> tuple[Type, ...] | None:
    """Return the types of the arguments that make ``function`` return ``result``; None where none do."""
    if function.result == result:
        return function.parameters
    if not isinstance(function.result, TensorOf) or not function.result.is_open or result.is_open:
        return None
    if function.result.dtype != result.dtype or len(function.result.shape) != len(result.shape):
        return None
    extents = dict(zip(function.result.shape, result.shape, strict=True))
    return tuple(
        TensorOf(each.dtype, tuple(extents.get(extent, extent) for extent in each.shape))
        if isinstance(each, TensorOf)
        else each
        for each in function.parameters
    )
