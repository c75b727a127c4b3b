"""Builds one operation from its definition statement, in either spelling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.frontends.core_grammar import Attribute, Operand, PaddingSyntax, Positional
from mind_mlir.frontends.core_lexer import Token
from mind_mlir.frontends.core_ranges import is_ranges, read_ranges
from mind_mlir.frontends.core_types import read_type
from mind_mlir.frontends.core_values import ValueReader
from mind_mlir.frozen import FrozenDict
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import CoreOperation, SourceInfo
from mind_mlir.ir.nested import MAX_DEPTH
from mind_mlir.ir.types import DType
from mind_mlir.ops import registry
from mind_mlir.ops.unknown import unknown_operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mind_mlir.diagnostics import Location
    from mind_mlir.frontends.core_grammar import Definition, RawValue
    from mind_mlir.frontends.positions import Positions
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ops.opdef import OpDef

_BINARY = ("Add", "Sub", "Mul")
#: What one list of ranges spells in the grammar form of Slice.
_RANGES = ("starts", "ends", "steps")
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
    """Builds the operations of one source; ``resolve`` gives the id of a value token."""

    positions: Positions
    resolve: Callable[[Token], ValueId]
    names: Mapping[ValueId, str]
    _values: ValueReader = field(init=False)
    _types: dict[str, TensorType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._values = ValueReader(self.positions)

    def read(self, definition: Definition, value: ValueId) -> CoreOperation:
        """Return the operation that defines ``value``.

        Raises:
            ParseError: The first finding about it.
        """
        spelled, arguments = self._opcode(definition)
        opcode = self._values.string(spelled)
        record = registry.lookup(opcode)
        operands = [argument.token for argument in arguments if isinstance(argument, Operand)]
        result_type = self._type(definition.type)
        locate = self.positions.locate
        attributes: dict[str, AttributeValue] = {}
        spans: dict[str, Location] = {}
        if len(operands) < len(arguments):
            entries = self._entries(definition, opcode, record, arguments)
            try:
                attributes, spans = self._convert(record, entries, result_type)
            except ParseError as error:
                raise ParseError(_about(opcode, value, result_type, d) for d in error.diagnostics) from error
        start = definition.result.start_pos
        source = SourceInfo(
            locate(start, definition.type.end_pos),
            tuple(locate(token.start_pos, token.end_pos) for token in operands),
            FrozenDict(spans),
            locate(definition.type.start_pos, definition.type.end_pos),
            locate(spelled.start_pos, spelled.end_pos),
        )
        return CoreOperation.create(
            value, opcode, map(self.resolve, operands), attributes, result_type, source, self.names
        )

    def _type(self, token: Token) -> TensorType:
        found = self._types.get(token.text)
        if found is None:
            found = self._types[token.text] = read_type(token, self.positions)
        return found

    def _opcode(self, definition: Definition) -> tuple[Token, list[Any]]:
        """Return the opcode as written and the arguments left; ``BinOp(Add, ...)`` is the operation Add."""
        opcode, arguments = definition.opcode, definition.arguments
        if opcode.text != "BinOp":
            return opcode, arguments
        for index, argument in enumerate(arguments):
            if isinstance(argument, Positional) or (
                isinstance(argument, Attribute) and argument.name.text == "op"
            ):
                operator = argument.value
                rest = arguments[:index] + arguments[index + 1 :]
                return self._binary_operator(operator), rest
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
        self, definition: Definition, opcode: str, record: OpDef | None, arguments: Iterable[Any]
    ) -> list[_Entry]:
        """Name every attribute: trailing arguments take the names of the record's schema in its order."""
        entries: list[_Entry] = []
        position = 0
        for argument in arguments:
            if isinstance(argument, Operand):
                if entries:
                    message = "syntax error: operands come before attributes"
                    raise self._error("E1101", message, argument.token)
                continue
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
    ) -> tuple[dict[str, AttributeValue], dict[str, Location]]:
        """Convert the values of all attributes; literals take the declared dtype, else the result's."""
        attributes: dict[str, AttributeValue] = {}
        spans: dict[str, Location] = {}
        # The dtype attribute types the literal, wherever it stands.
        for entry in sorted(entries, key=lambda entry: entry.name != "dtype"):
            span = self.positions.locate(entry.start_pos, entry.end_pos)
            if entry.name in attributes:
                self._duplicate(entry, spans)
            if _holds_ranges(entry.name, entry.value):
                assert isinstance(entry.value, Token), "ranges are a list token"
                attributes |= zip(_RANGES, read_ranges(entry.value, self.positions), strict=True)
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
                self.positions.locate(start, end),
                (),
                "operands are values such as %0" if not names else "remove this argument",
                context=MappingProxyType({"operation": record.opcode}),
            )
        )

    def _duplicate(self, entry: _Entry, spans: dict[str, Location]) -> NoReturn:
        raise ParseError(
            Diagnostic(
                "E1103",
                f"attribute '{entry.name}' is given twice",
                self.positions.locate(entry.start_pos, entry.end_pos),
                (f"it is also given at {spans[entry.name]}",),
                "remove one of the two",
                context=MappingProxyType({"attribute": entry.name}),
            )
        )

    def _locate(self, token: Token) -> Location:
        return self.positions.locate(token.start_pos, token.end_pos)

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
            attributes["value"] = TensorLiteral(literal.array.reshape(extents))


def _holds_ranges(name: str, value: RawValue) -> bool:
    return name == _RANGES[0] and isinstance(value, Token) and value.type == "LIST" and is_ranges(value)
