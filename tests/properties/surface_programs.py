"""Random `.mind` programs that are accepted: structs, functions, statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from surface_expressions import Expressions
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
    type_node,
    whole,
)

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.formatting import format_program
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.reading import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn

#: Types of variables, parameters and results.
_TENSORS = (
    *(FLOAT, COUNT, BOOL, TensorOf("f64"), TensorOf("i32")),
    *(TensorOf("f32", (2,)), TensorOf("f32", (2, 3)), TensorOf("f32", (3, 1)), TensorOf("f64", (3,))),
    TensorOf("i64", (2, 2)),
)
_SMOOTH = tuple(each for each in _TENSORS if each.dtype == "f32")


@dataclass(frozen=True)
class Generated:
    """A program as the elaboration takes it."""

    tree: nodes.SourceFile
    source: SourceText
    foreign: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"Generated:\n{self.source.text}"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # what Hypothesis shows
        printer.text(repr(self))


def reading_of(text: str) -> Generated:
    """Return what a text says, which has no syntax errors."""
    source = SourceText("generated.mind", text)
    reading = read(source)
    assert reading.findings == (), f"{reading.findings}\n{text}"
    return Generated(reading.program, source)


@st.composite
def surface_programs(draw: DrawFn) -> Generated:
    """Generate programs whose function ``main`` lowers without a finding."""
    tree = _Program(draw).program()
    return Generated(tree, SourceText("generated.mind", format_program(tree)))


class _Program:
    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw
        self.structs: list[StructOf] = []
        self.functions: list[Signature] = []
        self.counter = [0]

    def program(self) -> nodes.SourceFile:
        items: list[nodes.Item] = []
        for number in range(self.draw(st.integers(0, 2))):
            fields = tuple((f"f{at}", self._tensor(_SMOOTH)) for at in range(self.draw(st.integers(1, 3))))
            struct = StructOf(f"S{number}", fields)
            self.structs.append(struct)
            items.append(
                nodes.Struct(ident(struct.name), [nodes.FieldType(ident(k), type_node(t)) for k, t in fields])
            )
        kinds = self.draw(st.lists(st.sampled_from(("plain", "smooth", "open")), max_size=3))
        items += [self._function(f"h{number}", kind) for number, kind in enumerate(kinds)]
        items.append(self._function("main", "plain"))
        return nodes.SourceFile(items)

    def _tensor(self, among: tuple[TensorOf, ...] = _TENSORS) -> TensorOf:
        return self.draw(st.sampled_from(among))

    def _type(self) -> Type:
        kind = self.draw(st.integers(0, 5))
        if kind == 0 and self.structs:
            return self.draw(st.sampled_from(self.structs))
        if kind == 1:
            return TupleOf(tuple(self._tensor() for _ in range(self.draw(st.integers(1, 3)))))
        return self._tensor()

    def _function(self, called: str, kind: str) -> nodes.Function:
        count = self.draw(st.integers(1, 3))
        if kind == "smooth":
            types: list[Type] = [self._tensor(_SMOOTH) for _ in range(count)]
            result: Type = FLOAT
        elif kind == "open":
            matrix = TensorOf("f32", ("m", "n"))
            types, result = list((matrix, matrix, FLOAT)[:count]), matrix
        else:
            types, result = [self._type() for _ in range(count)], self._type()
        parameters = [(f"p{at}" if called != "main" else f"x{at}", each) for at, each in enumerate(types)]
        smooth = kind == "smooth"
        body = _Body(
            self.draw, list(parameters), list(self.functions), self.structs, smooth, made=self.counter
        )
        made = nodes.Function(
            ident(called),
            [nodes.Parameter(ident(key), type_node(each)) for key, each in parameters],
            type_node(result),
            body.body(result, open_=kind == "open"),
        )
        self.functions.append(Signature(called, tuple(types), result, smooth))
        return made


class _Body(Expressions):
    """Draws the body of a function."""

    def body(self, result: Type, *, open_: bool) -> nodes.Block:
        """Return a block whose value is of a type."""
        statements: list[nodes.Statement] = []
        for _ in range(self.number(0, 3)):
            rules = [self._let]
            if not open_ and not self.smooth:
                rules += [
                    self._let,
                    self._pattern,
                    self._while,
                    self._for,
                    self._assign,
                    self._inner,
                    self._named,
                ]
            statements += self.draw(st.sampled_from(rules))()
        if not open_ and self.chance(15) and not self.smooth:
            returned = nodes.Return(self.expression(result, 2))
            early = nodes.If(self.expression(BOOL, 2), nodes.Block([returned], None), None)
            statements.append(nodes.Evaluate(early))
        value = self.expression(result)
        if self.chance(20):
            return nodes.Block([*statements, nodes.Return(value)], None)
        return nodes.Block(statements, value)

    def _of(self) -> Type:
        """Return the type of some variable, or of a number."""
        return self.draw(st.sampled_from([FLOAT, *(each for _, each in self.variables)]))

    def _declare(self, type_: Type, depth: int = 3) -> nodes.Let:
        value = self.expression(type_, depth)
        variable = self.fresh("v")
        self.variables.append((variable, type_))
        written = type_node(type_) if self.chance(40) else None
        return nodes.Let(ident(variable), written, value)

    def _let(self) -> list[nodes.Statement]:
        return [self._declare(self._of())]

    def _pattern(self) -> list[nodes.Statement]:
        first, second = self._of(), self._of()
        value = self.expression(TupleOf((first, TupleOf((second, FLOAT)))))
        names = [self.fresh("v"), self.fresh("v")]
        self.variables += zip(names, (first, second), strict=True)
        inner = nodes.TuplePattern([ident(names[1]), ident("_")])
        return [nodes.Let(nodes.TuplePattern([ident(names[0]), inner]), None, value)]

    def _assign(self) -> list[nodes.Statement]:
        """Return a variable that gets another value, sometimes under a condition."""
        let = self._declare(self.draw(st.sampled_from((FLOAT, COUNT, TensorOf("f32", (2,))))))
        assert isinstance(let.pattern, nodes.Ident)
        target, type_ = let.pattern.text, self.variables[-1][1]
        change = nodes.Assign(ident(target), self.expression(type_))
        if self.chance(50):
            return [let, change]
        other = nodes.Block([nodes.Assign(ident(target), self.expression(type_, 2))], None)
        branch = nodes.If(
            self.expression(BOOL, 2), nodes.Block([change], None), other if self.chance(50) else None
        )
        return [let, nodes.Evaluate(branch)]

    def _loop_body(self) -> tuple[nodes.Let, nodes.Assign]:
        """Return a variable, and what a turn of a loop makes of it; it grows slowly."""
        let = self._declare(self.draw(st.sampled_from((FLOAT, COUNT, TensorOf("f32", (2,))))), 2)
        assert isinstance(let.pattern, nodes.Ident)
        target, type_ = let.pattern.text, self.variables[-1][1]
        self.variables.pop()  # what is added is the same in every turn
        step = self.expression(type_, 2)
        self.variables.append((target, type_))
        return let, nodes.Assign(ident(target), nodes.Binary("+", name(target), step))

    def _while(self) -> list[nodes.Statement]:
        let, change = self._loop_body()
        counter = self.fresh("i")
        begin = nodes.Let(ident(counter), None, whole(0))
        on = nodes.Assign(ident(counter), nodes.Binary("+", name(counter), whole(1)))
        condition = nodes.Binary("<", name(counter), whole(self.number(0, 3)))
        return [let, begin, nodes.While(condition, nodes.Block([change, on], None))]

    def _for(self) -> list[nodes.Statement]:
        let, change = self._loop_body()
        bounds = [whole(self.number(0, 1)), whole(self.number(1, 4))][self.number(0, 1) :]
        return [let, nodes.For(ident(self.fresh("i")), call("range", *bounds), nodes.Block([change], None))]

    def _inner(self) -> list[nodes.Statement]:
        """Return a function in the function, which sees what is around it."""
        types = [FLOAT, self._of()][: self.number(1, 2)]
        called, result = self.fresh("g"), self._of()
        parameters = [(self.fresh("q"), each) for each in types]
        before = len(self.variables)
        self.variables += parameters
        block = nodes.Block([], self.expression(result))
        del self.variables[before:]
        self.functions.append(Signature(called, tuple(types), result))
        written = [nodes.Parameter(ident(key), type_node(each)) for key, each in parameters]
        return [nodes.Function(ident(called), written, type_node(result), block)]

    def _named(self) -> list[nodes.Statement]:
        """Return a closure with a name."""
        of, called, variable = self._of(), self.fresh("k"), self.fresh("q")
        self.variables.append((variable, of))
        body = self.expression(of)
        self.variables.pop()
        self.functions.append(Signature(called, (of,), of))
        return [nodes.Let(ident(called), None, nodes.Closure([nodes.Parameter(ident(variable))], body))]
