"""Operations and operands from the data of JSON, led by the fields of the contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.ptir.literals import BAD_LITERAL, LiteralProblem, literal_of
from mind_mlir.languages.ptir.program import Operand, Operation, TupleElement, ValueRef
from mind_mlir.languages.ptir.reading import Path, ValueConverter, clip, describe
from mind_mlir.languages.ptir.schema import OPTIONAL, OperationForm, form_of, forms
from mind_mlir.ops.contract import MAP_KINDS, SCALAR_KINDS, Field, FieldKind, Tagged
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import TensorLiteral
    from mind_mlir.ir.types import Dim


@dataclass(slots=True)
class InstructionValues(ValueConverter):
    """Makes parts of instructions, too."""

    def literal(self, data: object, path: Path) -> TensorLiteral:
        """Return a literal: its type and its bytes."""
        found = self.members(data, path, ("spec", "bytes"), what="a literal, an object with spec and bytes")
        if found is None:
            return BAD_LITERAL
        before = len(self.problems)
        type_ = self.tensor_type(found["spec"], (*path, "spec"))
        if len(self.problems) > before:
            return BAD_LITERAL
        try:
            return literal_of(type_, found["bytes"])
        except LiteralProblem as problem:
            place = (*path, problem.part) if problem.index is None else (*path, problem.part, problem.index)
            self.report(
                place, problem.message, problem.help, code=problem.code, span=problem.span, **problem.context
            )
            return BAD_LITERAL

    def operand(self, data: object, path: Path) -> Operand:
        """Return an operand."""
        found = self.one_of(data, path, ("Value", "TupleElement", "Literal"), "operand")
        if found is None:
            return ValueRef(0)
        kind, value = found
        if kind == "Value":
            return ValueRef(self.identifier(value, (*path, kind)))
        if kind == "Literal":
            return self.literal(value, (*path, kind))
        parts = self.members(value, (*path, kind), ("tuple", "index"))
        if parts is None:
            return ValueRef(0)
        return TupleElement(
            self.identifier(parts["tuple"], (*path, kind, "tuple")),
            self.identifier(parts["index"], (*path, kind, "index")),
        )

    def operation(self, data: object, path: Path) -> Operation:
        """Return an operation: a bare name, or a name with its variant or the fields of its spec."""
        spec: Any = {}
        if type(data) is str:
            name, place, bare = data, path, True
        elif type(data) is dict and len(data) == 1:
            ((name, spec),) = data.items()
            place, bare = (*path, name), False
        else:
            self.expected(path, "an operation, a name or an object with one name", data)
            return Operation("")
        if name not in forms():
            suggestion = did_you_mean(name, forms())
            self.report(
                place,
                f"unknown operation '{clip(name)}'{suggestion}",
                "names are those of the contract, such as DotGeneral",
                code="E1102",
                at_key=not bare,
                operation=name,
                suggestion=suggestion,
            )
            return Operation(name)
        if None not in forms()[name]:
            return self._variant(name, None if bare else spec, place)
        form = form_of(name, None)
        assert form is not None, "it is not one of a family"
        return Operation(name, None, self.spec(form, spec, place))

    def _variant(self, name: str, variant: object, path: Path) -> Operation:
        variants = [known for known in forms()[name] if known]
        if type(variant) is str and variant in variants:
            return Operation(name, variant)
        suggestion = did_you_mean(variant, variants) if type(variant) is str else ""
        self.report(
            path,
            f"expected a variant of {name}, found {describe(variant)}{suggestion}",
            f"the variants are {', '.join(variants)}",
            code="E1102",
            operation=name,
            suggestion=suggestion,
        )
        return Operation(name, variants[0])

    def spec(self, form: OperationForm, data: object, path: Path) -> FrozenDict[str, Any]:
        """Return the fields of an operation."""
        self.opcode = form.variant or form.name
        try:
            if form.literal is not None:
                return FrozenDict({form.literal.name: self.literal(data, path)})
            required = [one.name for one in form.fields if one.kind not in OPTIONAL]
            optional = [one.name for one in form.fields if one.kind in OPTIONAL]
            found = self.members(data, path, required, optional, f"the fields of {form.name}, an object")
            if found is None:
                return FrozenDict()
            return FrozenDict(
                {one.name: self.field(one, found.get(one.name), (*path, one.name)) for one in form.fields}
            )
        finally:
            self.opcode = None

    def field(self, one: Field, data: object, path: Path) -> Any:
        """Return the value of a field."""
        if data is None and one.kind in OPTIONAL:
            return None
        if one.kind is FieldKind.WORD:
            return self._word(one, data, path)
        return _READERS[one.kind](self, data, path)

    def _word(self, one: Field, data: object, path: Path) -> str:
        if type(data) is str and data in one.choices:
            return data
        suggestion = did_you_mean(data, one.choices) if type(data) is str else ""
        self.expected(path, f"one of {', '.join(one.choices)}", data, suggestion.removeprefix("; ") or None)
        return one.choices[0]

    def _integers(self, data: object, path: Path) -> tuple[int, ...]:
        items = self.items(data, path, "a list of integers")
        return tuple([self.integer(item, (*path, index)) for index, item in enumerate(items)])

    def _pairs(self, data: object, path: Path) -> tuple[tuple[int, ...], ...]:
        pairs = []
        for index, item in enumerate(self.items(data, path, "a list of pairs of integers")):
            pairs.append(self._integers(item, (*path, index)))
            if type(item) is list and len(item) != 2:
                self.report((*path, index), f"expected a pair of integers, found {len(item)} items")
        return tuple(pairs)

    def _new_shape(self, data: object, path: Path) -> tuple[Dim | None, ...]:
        extents: list[Dim | None] = []
        for index, item in enumerate(self.items(data, path, "a list of extents")):
            place = (*path, index)
            if item == "Infer":
                extents.append(None)
            elif found := self.one_of(item, place, ("Explicit",), 'extent ("Infer" is the other)'):
                extents.append(self.dim(found[1], (*place, "Explicit")))
        return tuple(extents)

    def _scalar(self, data: object, path: Path) -> Tagged:
        found = self.one_of(data, path, tuple(SCALAR_KINDS), "scalar literal")
        if found is None:
            return Tagged("Float", 0.0)
        kind, value = found
        return Tagged(
            kind, self._of_class(SCALAR_KINDS[kind], value, (*path, kind), unsigned=kind == "Unsigned")
        )

    def _map(self, data: object, path: Path) -> FrozenDict[str, Tagged]:
        if type(data) is not dict:
            self.expected(path, "an object of attributes", data)
            return FrozenDict()
        found = {}
        for name, item in data.items():
            place = (*path, name)
            parts = self.members(item, place, ("kind", "value"))
            if parts is None:
                continue
            kind, value = self.text(parts["kind"], (*place, "kind")), parts["value"]
            if kind not in MAP_KINDS:
                message = f"'{clip(kind)}' is no kind of attribute{did_you_mean(kind, MAP_KINDS)}"
                self.report((*place, "kind"), message, f"the kinds are {', '.join(MAP_KINDS)}")
            elif kind.endswith("Array"):
                items = enumerate(self.items(value, (*place, "value")))
                plain = [self._of_class(MAP_KINDS[kind], e, (*place, "value", index)) for index, e in items]
                found[name] = Tagged(kind, tuple(plain))
            else:
                found[name] = Tagged(kind, self._of_class(MAP_KINDS[kind], value, (*place, "value")))
        return FrozenDict(found)

    def _of_class(self, kind: type, data: object, path: Path, *, unsigned: bool = False) -> Any:
        if kind is int:
            return self.integer(data, path, 0, 2**64 - 1) if unsigned else self.integer(data, path)
        if kind is complex:
            parts = self.members(data, path, ("re", "im"))
            if parts is None:
                return 0j
            return complex(self.number(parts["re"], (*path, "re")), self.number(parts["im"], (*path, "im")))
        if kind is float:
            return self.number(data, path)
        return self.boolean(data, path) if kind is bool else self.text(data, path)


_READERS: Mapping[FieldKind, Callable[[InstructionValues, Any, Path], Any]] = FrozenDict(
    {
        FieldKind.BOOLEAN: InstructionValues.boolean,
        FieldKind.INTEGER: InstructionValues.integer,
        FieldKind.OPTIONAL_INTEGER: InstructionValues.integer,
        FieldKind.INTEGERS: InstructionValues._integers,
        FieldKind.FLOAT: InstructionValues.number,
        FieldKind.TEXT: InstructionValues.text,
        FieldKind.DTYPE: InstructionValues.dtype,
        FieldKind.OPTIONAL_DTYPE: InstructionValues.dtype,
        FieldKind.SHAPE: InstructionValues.shape,
        FieldKind.NEW_SHAPE: InstructionValues._new_shape,
        FieldKind.PAIRS: InstructionValues._pairs,
        FieldKind.SCALAR: InstructionValues._scalar,
        FieldKind.LITERAL: InstructionValues.literal,
        FieldKind.REGION: InstructionValues.identifier,
        FieldKind.MAP: InstructionValues._map,
    }
)
