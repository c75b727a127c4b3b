"""Builds one operation from its definition statement, in either spelling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.ir.attributes import Attributes, TensorLiteral
from mind_mlir.ir.module import CoreOperation, Result
from mind_mlir.ir.nested import MAX_DEPTH
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import DType
from mind_mlir.languages.core.ranges import is_ranges, read_ranges
from mind_mlir.languages.core.syntax import Attribute, PaddingSyntax, Positional
from mind_mlir.languages.core.tokens import Token
from mind_mlir.languages.core.types import read_type
from mind_mlir.languages.core.values import ValueReader
from mind_mlir.ops import registry
from mind_mlir.ops.unknown import fixed_attribute, unknown_operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.names import Names
    from mind_mlir.ir.types import TensorType
    from mind_mlir.languages.core.syntax import Arguments, Definition, Integers, RawValue
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.ops.registry import Spelling

    Span: TypeAlias = tuple[int, int]
    Others: TypeAlias = list[tuple[int, Positional | Attribute]]

_BINARY = ("Add", "Sub", "Mul")
#: The opcode of a call, and the word that the text has for it.
CALL = "Call"
_CALL_KEYWORD = "call"
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
    """Builds the operations of one source.

    Attributes:
        resolve: Gives the id of the value named there.
        names: Gives the table that operations hold: in function form, that of the function being read.
        profile: The profile that says how operations are spelled.
    """

    source: SourceText
    resolve: Callable[[int, int], ValueId]
    names: Callable[[], Names]
    profile: str
    _values: ValueReader = field(init=False)
    _types: dict[str, TensorType] = field(default_factory=dict)
    _attributes: dict[str, Attributes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._values = ValueReader(self.source)

    def read(self, definition: Definition, value: ValueId) -> CoreOperation:
        """Return the operation whose first result is ``value``, without its regions.

        Raises:
            ParseError: The first finding about it.
        """
        spelled, others = self._opcode(definition)
        opcode, record = self._values.string(spelled), None
        # Looking for what is no opcode loads all records, for their other names.
        spelling = None if opcode == _CALL_KEYWORD else registry.lookup(opcode, self.profile)
        if spelling is not None:
            record = spelling.record
            opcode = record.opcode  # the one string of that name, not a copy for each operation
        types = self._result_types(definition)
        attributes: dict[str, AttributeValue] = {}
        spans: dict[str, Span] = {}
        if others:
            entries = self._entries(definition, opcode, spelling, others)
            try:
                attributes, spans = self._convert(record, entries, types[0])
            except ParseError as error:
                raise ParseError(_about(opcode, value, types[0], d) for d in error.diagnostics) from error
            if record is not None and isinstance(others[0][1], Positional):
                _complete_from_type(attributes, record, types[0])
        if definition.callee is not None:
            self._name_callee(definition, spelled, attributes, spans)
            opcode = CALL
        if spelling is not None and spelling.attributes:
            attributes |= spelling.attributes
        return self._operation(definition, value, opcode, spelled, attributes, spans, types)

    def _operation(
        self,
        definition: Definition,
        value: ValueId,
        opcode: str,
        spelled: Token,
        attributes: dict[str, AttributeValue],
        spans: dict[str, Span],
        types: list[TensorType],
    ) -> CoreOperation:
        operands, names = definition.arguments.values, definition.others
        several: tuple[int, ...] = ()
        if names:
            several = (definition.result.start_pos, definition.result.end_pos, *names, *definition.types)
        info = SourceInfo.of(
            self.source,
            definition.result.start_pos,
            (definition.types[0], definition.types[-1]),
            (spelled.start_pos, spelled.end_pos),
            operands,
            spans,
            several,
        )
        shared = self._shared(attributes) if attributes else attributes
        others = (
            [Result(self.resolve(*span), type_) for span, type_ in zip(_pairs(names), types[1:], strict=True)]
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
        return self._type(Token("TYPE", self.source.text[start:end], start, end))

    def string(self, token: Token) -> str:
        """Return the name that a LABEL or SYMBOL token spells, quoted or not."""
        start, text = token.start_pos + 1, token.text[1:]
        return self._values.string(Token("STRING" if text[0] == '"' else "WORD", text, start, token.end_pos))

    def argument_name(self, attributes: Arguments) -> str:
        """Return the name in the braces of a parameter: ``{name="a b"}``.

        Raises:
            ParseError: E1103, something else stands there.
        """
        help_text = 'what callers name an argument is given as %0 {name="a b"}: tensor<f32[]>'
        (_, given), *more = attributes.others
        for _, attribute in ((0, given), *more):
            assert isinstance(attribute, Attribute), "the grammar allows nothing else"
            if attribute is not given or self._values.string(attribute.name) != "name":
                message = "a parameter has one attribute, its name"
                raise self._error("E1103", message, attribute.name, help_text)
        value = given.value
        if isinstance(value, Token) and value.type in ("STRING", "WORD"):
            return self._values.string(value)
        token = value if isinstance(value, Token) else value.keyword
        raise self._error("E1103", "the name of an argument is a string", token, help_text)

    def _result_types(self, definition: Definition) -> list[TensorType]:
        """Return the types of the results, which must be as many.

        Raises:
            ParseError: E1101, they are not; or see `read_type`.
        """
        offsets, count = definition.types, 1 + len(definition.others) // 2
        if len(offsets) == 2 == 2 * count:
            return [self.type_at(*offsets)]
        types = [self.type_at(*span) for span in _pairs(offsets)]
        if len(types) == count:
            return types
        last = definition.others[-1] if definition.others else definition.result.end_pos
        noun = f"{count} results have" if count > 1 else "one result has"
        raise ParseError(
            Diagnostic(
                "E1101",
                f"syntax error: {noun} {len(types) or 'no'} type{'s' if len(types) > 1 else ''}",
                self.source.locate(definition.result.start_pos, last),
                (),
                "list a type for each result: %q, %r = call @f (%x) : (tensor<f32[]>, tensor<i64[]>)",
            )
        )

    def _name_callee(
        self,
        definition: Definition,
        spelled: Token,
        attributes: dict[str, AttributeValue],
        spans: dict[str, Span],
    ) -> None:
        """Make the function's name an attribute of the call."""
        callee = definition.callee
        assert callee is not None, "who calls this has looked"
        if spelled.text != _CALL_KEYWORD:
            message = f"syntax error: expected 'call', found '{spelled.text[:40]}'"
            raise self._error("E1101", message, spelled, "a call reads %1 = call @f (%0) : tensor<f32[]>")
        if "callee" in attributes:
            raise self._error("E1103", "attribute 'callee' is given twice", callee, "remove the attribute")
        attributes["callee"] = self.string(callee)
        spans["callee"] = (callee.start_pos, callee.end_pos)

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
        if opcode.text == _CALL_KEYWORD and definition.callee is None:
            help_text = "a call reads %1 = call @f (%0) : tensor<f32[]>"
            raise self._error("E1101", "a call names its function", opcode, help_text)
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
        self, definition: Definition, opcode: str, spelling: Spelling | None, others: Others
    ) -> list[_Entry]:
        """Name every attribute: trailing arguments take the names of the record's schema in its order."""
        entries: list[_Entry] = []
        fixed = spelling.attributes if spelling else {}
        schema = [a.name for a in spelling.record.attributes if a.name not in fixed] if spelling else []
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
                if spelling is not None and name in fixed:
                    location = self.source.locate(argument.name.start_pos, end)
                    raise ParseError(fixed_attribute(name, definition.opcode.text, spelling, location))
                entries.append(_Entry(name, argument.value, argument.name.start_pos, end))
                continue
            if spelling is None:
                raise ParseError(unknown_operation(opcode, self._locate(definition.opcode)))
            if position >= len(schema):
                self._too_many(spelling.record, schema, argument.value)
            name = schema[position]
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

    def _too_many(self, record: OpDef, schema: list[str], value: RawValue) -> NoReturn:
        names = ", ".join(schema)
        start, end = _span(value)
        raise ParseError(
            Diagnostic(
                "E1103",
                f"{record.opcode} takes {len(schema) or 'no'} trailing arguments"
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


def _pairs(offsets: Integers) -> Iterator[tuple[int, int]]:
    return zip(offsets[::2], offsets[1::2], strict=True)


def _holds_ranges(name: str, value: RawValue) -> bool:
    return name == _RANGES[0] and isinstance(value, Token) and value.type == "LIST" and is_ranges(value)
