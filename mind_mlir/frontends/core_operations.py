"""Builds one operation from its definition statement, in either spelling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.frontends.core_grammar import Attribute, PaddingSyntax, Positional
from mind_mlir.frontends.core_lexer import Token
from mind_mlir.frontends.core_ranges import is_ranges, read_ranges
from mind_mlir.frontends.core_types import read_type
from mind_mlir.frontends.core_values import ValueReader
from mind_mlir.ir.attributes import Attributes, TensorLiteral
from mind_mlir.ir.module import CoreOperation
from mind_mlir.ir.nested import MAX_DEPTH
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import DType
from mind_mlir.ops import registry
from mind_mlir.ops.unknown import unknown_operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.frontends.core_grammar import Definition, RawValue
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.names import Names
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ops.opdef import OpDef

    Span: TypeAlias = tuple[int, int]
    Others: TypeAlias = list[tuple[int, Positional | Attribute]]

_BINARY = ("Add", "Sub", "Mul")
#: What one list of ranges spells in the grammar form of Slice.
_RANGES = ("starts", "ends", "steps")
#: Types and attributes that are remembered: most programs repeat few, a generated one may have millions.
_KEPT = 1 << 12
#: What is said of attributes that are remembered takes no more characters.
_LONGEST_KEY = 200
#: core-ir.md calls the literal of ConstTensor ``data`` in its signature and `value` elsewhere.
_ATTRIBUTE_ALIASES = {("ConstTensor", "data"): "value"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """An attribute before conversion: its name, its value as written, and the span to show for it."""

    name: str
    value: RawValue
    start_pos: int
    end_pos: int


@dataclass(slots=True)
class OperationReader:
    """Builds the operations of one source; ``resolve`` gives the id of the value named there."""

    source: SourceText
    resolve: Callable[[int, int], ValueId]
    names: Names
    _values: ValueReader = field(init=False)
    _types: dict[str, TensorType] = field(default_factory=dict)
    _attributes: dict[str, Attributes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._values = ValueReader(self.source)

    def read(self, definition: Definition, value: ValueId) -> CoreOperation:
        """Return the operation that defines ``value``.

        Raises:
            ParseError: The first finding about it.
        """
        spelled, others = self._opcode(definition)
        opcode = self._values.string(spelled)
        record = registry.lookup(opcode)
        if record is not None and opcode == record.opcode:
            opcode = record.opcode  # the one string of that name, not a copy for each operation
        result_type = self._type(definition.type)
        operands = definition.arguments.values
        attributes: dict[str, AttributeValue] = {}
        spans: dict[str, Span] = {}
        if others:
            entries = self._entries(definition, opcode, record, others)
            try:
                attributes, spans = self._convert(record, entries, result_type)
            except ParseError as error:
                raise ParseError(_about(opcode, value, result_type, d) for d in error.diagnostics) from error
        info = SourceInfo.of(
            self.source,
            definition.result.start_pos,
            (definition.type.start_pos, definition.type.end_pos),
            (spelled.start_pos, spelled.end_pos),
            operands,
            spans,
        )
        shared = self._shared(attributes) if spans else attributes
        values = map(self.resolve, operands[::2], operands[1::2])
        return CoreOperation.create(value, opcode, values, shared, result_type, info, self.names)

    def _shared(self, attributes: dict[str, AttributeValue]) -> Mapping[str, AttributeValue]:
        """Return the same attributes, as one object where operations before had equal ones."""
        if any(isinstance(value, TensorLiteral) for value in attributes.values()):
            return attributes  # neither cheap to compare nor often the same
        key = repr(attributes)  # which tells 0 from False and from -0.0
        if len(key) > _LONGEST_KEY:
            return attributes
        if len(self._attributes) >= _KEPT:
            self._attributes.clear()
        return self._attributes.setdefault(key, Attributes.of(attributes))

    def _type(self, token: Token) -> TensorType:
        found = self._types.get(token.text)
        if found is None:
            if len(self._types) >= _KEPT:
                self._types.clear()
            found = self._types[token.text] = read_type(token, self.source)
        return found

    def _opcode(self, definition: Definition) -> tuple[Token, Others]:
        """Return the opcode as written and the arguments left; ``BinOp(Add, ...)`` is the operation Add."""
        opcode, others = definition.opcode, definition.arguments.others
        if opcode.text != "BinOp":
            return opcode, others
        for index, (_, argument) in enumerate(others):
            if isinstance(argument, Positional) or (
                isinstance(argument, Attribute) and argument.name.text == "op"
            ):
                operator = argument.value
                return self._binary_operator(operator), others[:index] + others[index + 1 :]
        message = "BinOp needs its operator"
        raise self._error("E1103", message, definition.opcode, "write BinOp(Add, %0, %1)")

    def _binary_operator(self, operator: RawValue) -> Token:
        if isinstance(operator, Token) and operator.type in ("WORD", "STRING"):
            name = self._values.string(operator)
            record = registry.lookup(name)
            if record is None or (len(record.operands) == 2 and not record.attributes):
                return operator
        token = operator.keyword if isinstance(operator, PaddingSyntax) else operator
        raise self._error(
            "E1103",
            f"'{token.text[:40]}' is no binary operator",
            token,
            f"BinOp takes {', '.join(_BINARY)}",
        )

    def _entries(
        self, definition: Definition, opcode: str, record: OpDef | None, others: Others
    ) -> list[_Entry]:
        """Name every attribute: trailing arguments take the names of the record's schema in its order."""
        entries: list[_Entry] = []
        position, operands = 0, definition.arguments.values
        for before, argument in others:
            if before < len(operands) // 2:
                message = "syntax error: operands come before attributes"
                location = self.source.locate(*operands[2 * before : 2 * before + 2])
                raise ParseError(Diagnostic("E1101", message, location))
            start, end = _span(argument.value)
            if isinstance(argument, Attribute):
                name = self._values.string(argument.name)
                name = _ATTRIBUTE_ALIASES.get((opcode, name), name)
                entries.append(_Entry(name, argument.value, argument.name.start_pos, end))
                continue
            if record is None:
                raise ParseError(unknown_operation(opcode, self._locate(definition.opcode)))
            if position >= len(record.attributes):
                self._too_many(record, argument.value)
            name = record.attributes[position].name
            entries.append(_Entry(name, argument.value, start, end))
            position += len(_RANGES) if _holds_ranges(name, argument.value) else 1
        return entries

    def _convert(
        self, record: OpDef | None, entries: list[_Entry], result_type: TensorType
    ) -> tuple[dict[str, AttributeValue], dict[str, Span]]:
        """Convert the values of all attributes; literals take the declared dtype, else the result's."""
        attributes: dict[str, AttributeValue] = {}
        spans: dict[str, Span] = {}
        # The dtype attribute types the literal, wherever it stands.
        for entry in sorted(entries, key=lambda entry: entry.name != "dtype"):
            span = (entry.start_pos, entry.end_pos)
            if entry.name in attributes:
                self._duplicate(entry, spans)
            if _holds_ranges(entry.name, entry.value):
                assert isinstance(entry.value, Token), "ranges are a list token"
                attributes |= zip(_RANGES, read_ranges(entry.value, self.source), strict=True)
                spans |= dict.fromkeys(_RANGES, span)
                continue
            declared = attributes.get("dtype")
            dtype = declared if isinstance(declared, DType) else result_type.dtype
            schema = record.attribute(entry.name) if record else None
            attributes[entry.name] = self._values.read(entry.value, schema, dtype)
            spans[entry.name] = span
        _complete_empty(attributes)
        return attributes, spans

    def _too_many(self, record: OpDef, value: RawValue) -> NoReturn:
        names = ", ".join(attribute.name for attribute in record.attributes)
        start, end = _span(value)
        raise ParseError(
            Diagnostic(
                "E1103",
                f"{record.opcode} takes {len(record.attributes) or 'no'} trailing arguments"
                + (f": {names}" if names else ""),
                self.source.locate(start, end),
                (),
                "operands are values such as %0" if not names else "remove this argument",
                context=MappingProxyType({"operation": record.opcode}),
            )
        )

    def _duplicate(self, entry: _Entry, spans: dict[str, Span]) -> NoReturn:
        raise ParseError(
            Diagnostic(
                "E1103",
                f"attribute '{entry.name}' is given twice",
                self.source.locate(entry.start_pos, entry.end_pos),
                (f"it is also given at {self.source.locate(*spans[entry.name])}",),
                "remove one of the two",
                context=MappingProxyType({"attribute": entry.name}),
            )
        )

    def _locate(self, token: Token) -> Location:
        return self.source.locate(token.start_pos, token.end_pos)

    def _error(self, code: str, message: str, token: Token, help_text: str | None = None) -> ParseError:
        return ParseError(Diagnostic(code, message, self._locate(token), (), help_text))


def _about(opcode: str, value: ValueId, declared: TensorType, finding: Diagnostic) -> Diagnostic:
    """Add the facts that the catalogue lists for a literal that does not fit its type."""
    if finding.code not in ("E3010", "E4005"):
        return finding
    issue = "shape" if finding.code == "E3010" else "value"
    facts = {"operation": opcode, "id": value, "declared": str(declared), "issue": issue}
    found = {"found": "ragged"} if issue == "shape" else {}
    return replace(finding, context=MappingProxyType({**facts, **found}))


def _span(value: RawValue) -> tuple[int, int]:
    if isinstance(value, PaddingSyntax):
        return value.keyword.start_pos, value.pairs.end_pos + 1
    return value.start_pos, value.end_pos


def _complete_empty(attributes: dict[str, AttributeValue]) -> None:
    """Give a literal without elements its declared shape, of which its text shows only the beginning."""
    literal, shape = attributes.get("value"), attributes.get("shape")
    if not isinstance(literal, TensorLiteral) or not isinstance(shape, tuple) or literal.array.size:
        return
    if 0 in shape and literal.array.shape == shape[: shape.index(0) + 1] and len(shape) <= MAX_DEPTH:
        extents = [extent for extent in shape if isinstance(extent, int) and extent >= 0]
        if len(extents) == len(shape) and literal.type.with_shape(tuple(extents)).is_addressable:
            attributes["value"] = TensorLiteral.from_array(literal.array.reshape(extents))


def _holds_ranges(name: str, value: RawValue) -> bool:
    return name == _RANGES[0] and isinstance(value, Token) and value.type == "LIST" and is_ranges(value)
