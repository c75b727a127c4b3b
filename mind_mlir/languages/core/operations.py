"""Builds one operation from its definition statement, in either spelling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeAlias

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.ir.analysis.call_graph import CALL
from mind_mlir.ir.attributes import Attributes, AttributeValue, TensorLiteral
from mind_mlir.ir.module import CoreOperation, Result, ValueId
from mind_mlir.ir.nested import MAX_DEPTH
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.core.syntax import Arguments, Attribute, Definition, PaddingSyntax, RawValue, spans
from mind_mlir.languages.core.values import ValueReader, read_ranges, read_type, spelled
from mind_mlir.languages.text.cursor import Token
from mind_mlir.ops import registry
from mind_mlir.ops.unknown import fixed_attribute, unknown_operation
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.names import Names
    from mind_mlir.languages.text.report import Report, Span
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.ops.registry import Spelling

    Others: TypeAlias = list[tuple[int, Attribute]]

_BINARY = ("Add", "Sub", "Mul")
#: The word that the text has for a call.
CALL_KEYWORD = "call"
_CALL_FORM = "a call reads %1 = call @f (%0) : tensor<f32[]>"
#: What one list of ranges spells in the grammar form of Slice.
_RANGES = ("starts", "ends", "steps")
#: Types and attributes that are remembered: most programs repeat few, a generated one may have millions.
_KEPT = 1 << 12
#: What is said of attributes that are remembered takes no more characters.
_LONGEST_KEY = 200
#: core-ir.md calls the literal of ConstTensor ``data`` in its signature and `value` elsewhere.
_ATTRIBUTE_ALIASES = {("ConstTensor", "data"): "value"}


class _Entry(NamedTuple):
    """An attribute before conversion: its name, its value as written, and the span to show for it."""

    name: str
    value: RawValue
    span: Span


@dataclass(slots=True)
class OperationReader:
    """Builds the operations of one source.

    Attributes:
        resolve: Gives the id of the value named there.
        names: Gives the table that operations hold: that of the function being read.
        profile: The profile that says how operations are spelled.
    """

    report: Report
    resolve: Callable[[int, int], ValueId]
    names: Callable[[], Names]
    profile: str
    _values: ValueReader = field(init=False)
    _types: dict[str, TensorType] = field(default_factory=dict)
    _attributes: dict[str, Attributes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._values = ValueReader(self.report)

    def read(self, definition: Definition, value: ValueId) -> CoreOperation:
        """Return the operation whose first result is ``value``, without its regions.

        Raises:
            ParseError: The first finding about it.
        """
        opcode_token, others = self._opcode(definition)
        opcode, record = spelled(opcode_token), None
        # Looking for what is no opcode loads all records, for their other names.
        spelling = None if opcode == CALL_KEYWORD else registry.lookup(opcode, self.profile)
        if spelling is not None:
            record = spelling.record
            opcode = record.opcode  # the one string of that name, not a copy for each operation
        types = self._result_types(definition)
        attributes: dict[str, AttributeValue] = {}
        places: dict[str, Span] = {}
        if others:
            entries = self._entries(definition, opcode, spelling, others)
            try:
                attributes, places = self._convert(record, entries, types[0])
            except ParseError as error:
                raise ParseError(_about(opcode, value, types[0], d) for d in error.diagnostics) from error
            if record is not None and others[0][1].name is None:
                _complete_from_type(attributes, record, types[0])
        if definition.callee is not None:
            self._name_callee(definition.callee, opcode_token, attributes, places)
            opcode = CALL
        if spelling is not None and spelling.attributes:
            attributes |= spelling.attributes
        return self._operation(definition, value, opcode, opcode_token, attributes, places, types)

    def _operation(
        self,
        definition: Definition,
        value: ValueId,
        opcode: str,
        opcode_token: Token,
        attributes: dict[str, AttributeValue],
        places: dict[str, Span],
        types: list[TensorType],
    ) -> CoreOperation:
        operands, names, result = definition.arguments.values, definition.others, definition.result
        several: tuple[int, ...] = (*result.span, *names, *definition.types) if names else ()
        ends = definition.types[0], definition.types[-1]
        info = SourceInfo.of(
            self.report.source, result.start, ends, opcode_token.span, operands, places, several
        )
        shared = self._shared(attributes) if attributes else attributes
        others = (
            [Result(self.resolve(*span), type_) for span, type_ in zip(spans(names), types[1:], strict=True)]
            if names
            else ()
        )
        values = tuple(map(self.resolve, operands[::2], operands[1::2]))  # which may add to the names
        return CoreOperation.create(
            value, opcode, values, shared, types[0], info, self.names(), others=others
        )

    def type_at(self, start: int, end: int) -> TensorType:
        """Return the type that stands there.

        Raises:
            ParseError: See `read_type`.
        """
        text = self.report.source.text[start:end]
        found = self._types.get(text)
        if found is None:
            if len(self._types) >= _KEPT:
                self._types.clear()
            found = self._types[text] = read_type(Token("TYPE", text, start, end), self.report)
        return found

    def argument_name(self, attributes: Arguments) -> str:
        """Return the name in the braces of a parameter: ``{name="a b"}``.

        Raises:
            ParseError: E1103, something else stands there.
        """
        help_ = 'what callers name an argument is given as %0 {name="a b"}: tensor<f32[]>'
        for index, (_, (name, _)) in enumerate(attributes.others):
            assert name is not None, "the grammar allows nothing else"
            if index or spelled(name) != "name":
                raise self.report.error("E1103", "a parameter has one attribute, its name", name.span, help_)
        value = attributes.others[0][1].value
        if isinstance(value, Token) and value.kind in ("STRING", "WORD"):
            return spelled(value)
        token = value if isinstance(value, Token) else value.keyword
        raise self.report.error("E1103", "the name of an argument is a string", token.span, help_)

    def _result_types(self, definition: Definition) -> list[TensorType]:
        """Return the types of the results, which must be as many.

        Raises:
            ParseError: E1101, they are not; or see `read_type`.
        """
        offsets, count = definition.types, 1 + len(definition.others) // 2
        if len(offsets) == 2 == 2 * count:
            return [self.type_at(*offsets)]
        types = [self.type_at(*span) for span in spans(offsets)]
        if len(types) == count:
            return types
        last = definition.others[-1] if definition.others else definition.result.end
        noun = f"{count} results have" if count > 1 else "one result has"
        raise self.report.error(
            "E1101",
            f"syntax error: {noun} {len(types) or 'no'} type{'s' if len(types) > 1 else ''}",
            (definition.result.start, last),
            "list a type for each result: %q, %r = call @f (%x) : (tensor<f32[]>, tensor<i64[]>)",
        )

    def _name_callee(
        self,
        callee: Token,
        opcode: Token,
        attributes: dict[str, AttributeValue],
        places: dict[str, Span],
    ) -> None:
        """Make the function's name an attribute of the call."""
        if opcode.text != CALL_KEYWORD:
            message = f"syntax error: expected 'call', found '{opcode.text[:40]}'"
            raise self.report.error("E1101", message, opcode.span, _CALL_FORM)
        if "callee" in attributes:
            raise self.report.error(
                "E1103", "attribute 'callee' is given twice", callee.span, "remove the attribute"
            )
        attributes["callee"] = name_of(callee)
        places["callee"] = callee.span

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

    def _opcode(self, definition: Definition) -> tuple[Token, Others]:
        """Return the opcode as written and the arguments left; ``BinOp(Add, ...)`` is the operation Add."""
        opcode, others = definition.opcode, definition.arguments.others
        if opcode.text == CALL_KEYWORD and definition.callee is None:
            raise self.report.error("E1101", "a call names its function", opcode.span, _CALL_FORM)
        if opcode.text != "BinOp":
            return opcode, others
        for index, (_, argument) in enumerate(others):
            if argument.name is None or argument.name.text == "op":
                return self._binary_operator(argument.value), others[:index] + others[index + 1 :]
        raise self.report.error("E1103", "BinOp needs its operator", opcode.span, "write BinOp(Add, %0, %1)")

    def _binary_operator(self, operator: RawValue) -> Token:
        if isinstance(operator, Token) and operator.kind in ("WORD", "STRING"):
            record = registry.lookup(spelled(operator))
            if record is None or (len(record.operands) == 2 and not record.attributes):
                return operator
        token = operator.keyword if isinstance(operator, PaddingSyntax) else operator
        message = f"'{token.text[:40]}' is no binary operator"
        raise self.report.error("E1103", message, token.span, f"BinOp takes {', '.join(_BINARY)}")

    def _entries(
        self, definition: Definition, opcode: str, spelling: Spelling | None, others: Others
    ) -> list[_Entry]:
        """Name every attribute: trailing arguments take the names of the record's schema in its order."""
        entries: list[_Entry] = []
        fixed = spelling.attributes if spelling else {}
        schema = [a.name for a in spelling.record.attributes if a.name not in fixed] if spelling else []
        position, operands = 0, definition.arguments.values
        for before, argument in others:
            span = argument.value.span
            if before < len(operands) // 2:
                message = "syntax error: operands come before attributes"
                raise self.report.error("E1101", message, (operands[2 * before], operands[2 * before + 1]))
            if argument.name is not None:
                name = spelled(argument.name)
                name = _ATTRIBUTE_ALIASES.get((opcode, name), name)
                span = (argument.name.start, span[1])
                if spelling is not None and name in fixed:
                    place = self.report.locate(span)
                    raise ParseError(fixed_attribute(name, definition.opcode.text, spelling, place))
                entries.append(_Entry(name, argument.value, span))
                continue
            if spelling is None:
                raise ParseError(unknown_operation(opcode, self.report.locate(definition.opcode.span)))
            if position >= len(schema):
                self._too_many(spelling.record, schema, span)
            name = schema[position]
            entries.append(_Entry(name, argument.value, span))
            position += len(_RANGES) if _holds_ranges(name, argument.value) else 1
        return entries

    def _convert(
        self, record: OpDef | None, entries: list[_Entry], result_type: TensorType
    ) -> tuple[dict[str, AttributeValue], dict[str, Span]]:
        """Convert the values of all attributes; literals take the declared dtype, else the result's."""
        attributes: dict[str, AttributeValue] = {}
        places: dict[str, Span] = {}
        # The dtype attribute types the literal, wherever it stands.
        for name, value, span in sorted(entries, key=lambda entry: entry.name != "dtype"):
            if name in attributes:
                first = self.report.locate(places[name])
                raise self.report.error(
                    "E1103",
                    f"attribute '{name}' is given twice",
                    span,
                    "remove one of the two",
                    (f"it is also given at {first}",),
                    attribute=name,
                )
            if _holds_ranges(name, value):
                assert isinstance(value, Token), "ranges are a list token"
                attributes |= zip(_RANGES, read_ranges(value, self.report), strict=True)
                places |= dict.fromkeys(_RANGES, span)
                continue
            declared = attributes.get("dtype")
            dtype = declared if isinstance(declared, DType) else result_type.dtype
            schema = record.attribute(name) if record else None
            attributes[name] = self._values.read(value, schema, dtype)
            places[name] = span
        _complete_empty(attributes)
        return attributes, places

    def _too_many(self, record: OpDef, schema: list[str], span: Span) -> NoReturn:
        message = f"{record.opcode} takes {len(schema) or 'no'} trailing arguments"
        help_ = "operands are values such as %0"
        if schema:
            message, help_ = f"{message}: {', '.join(schema)}", "remove this argument"
        raise self.report.error("E1103", message, span, help_, operation=record.opcode)


def name_of(token: Token) -> str:
    """Return the name that a LABEL or SYMBOL token spells, quoted or not."""
    kind = "STRING" if token.text[1] == '"' else "WORD"
    return spelled(Token(kind, token.text[1:], token.start + 1, token.end))


def _about(opcode: str, value: ValueId, declared: TensorType, finding: Diagnostic) -> Diagnostic:
    """Add the facts that the catalogue lists for a literal that does not fit its type."""
    if finding.code not in ("E3010", "E4005"):
        return finding
    issue = "shape" if finding.code == "E3010" else "value"
    facts = {"operation": opcode, "id": value, "declared": str(declared), "issue": issue}
    found = {"found": "ragged"} if issue == "shape" else {}
    return replace(finding, context={**facts, **found})


def _complete_empty(attributes: dict[str, AttributeValue]) -> None:
    """Give a literal without elements its declared shape, of which its text shows only the beginning."""
    literal, shape = attributes.get("value"), attributes.get("shape")
    if not isinstance(literal, TensorLiteral) or not isinstance(shape, tuple) or literal.array.size:
        return
    if 0 in shape and literal.array.shape == shape[: shape.index(0) + 1] and len(shape) <= MAX_DEPTH:
        extents = [extent for extent in shape if isinstance(extent, int) and extent >= 0]
        if len(extents) == len(shape) and literal.type.with_shape(tuple(extents)).is_addressable:
            attributes["value"] = TensorLiteral.from_array(literal.array.reshape(extents))


def _complete_from_type(
    attributes: dict[str, AttributeValue], record: OpDef, result_type: TensorType
) -> None:
    """Add the attributes that the grammar form leaves to the declared type."""
    for attribute in record.attributes:
        if attribute.of_result == "dtype":
            attributes.setdefault(attribute.name, result_type.dtype)
        elif attribute.of_result == "shape" and all(isinstance(extent, int) for extent in result_type.shape):
            attributes.setdefault(attribute.name, result_type.extents)
    _complete_empty(attributes)


def _holds_ranges(name: str, value: RawValue) -> bool:
    return name == _RANGES[0] and isinstance(value, Token) and value.kind == "LIST" and ":" in value.text
