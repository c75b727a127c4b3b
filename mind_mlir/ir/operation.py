"""Operations, and the blocks of them.

    Block         ::= label, Parameter*, CoreOperation*, Terminator
    CoreOperation ::= results, opcode, operands, attributes, region*        (a region is a Block)

The parts of `mind_mlir.ir.module`, which says more about them.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.display import brief
from mind_mlir.ir.attributes import Attributes, TensorLiteral, frozen
from mind_mlir.ir.names import NO_NAMES
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.terminators import (
    PLAIN,
    TERMINATORS,
    Terminator,
    ValueId,
    check_location,
    check_names,
    ids,
)
from mind_mlir.ir.types import TensorType, TupleType
from mind_mlir.support import argument_checks
from mind_mlir.support.argument_checks import counted, sequence_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.types import ValueType


_NONE: tuple[()] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One value that an operation defines."""

    value_id: ValueId
    type: ValueType

    def __post_init__(self) -> None:
        object.__setattr__(self, "value_id", argument_checks.integer(self.value_id, "value_id"))
        if not isinstance(self.type, (TensorType, TupleType)):
            argument_checks.reject("type", "a TensorType", self.type)


@dataclass(frozen=True, slots=True)
class CoreOperation:
    """One instruction (core-ir.md, "CoreOperation structure").

    Attributes:
        value_id: The value it defines, or the first of several; unique in its function.
        opcode: The spelling of the Core IR, for example ``Add``; need not be known (the verifier says so).
        operands: Values it reads.
        attributes: Immutable, by parameter name.
        result_type: The declared type of that value.
        source: Where it was written.
        names: What the text it was read from calls values, without the ``%``; values that are numbers there
            have none. One table, which all operations of the text share.
        origin: What messages call its value where a pass has given that another id: ``%x`` as it was written,
            or ``in the derivative of %x``.
        others: The results after the first. Nearly all operations have one result, which stands in the
            operation itself; `results` shows all of them alike.
        regions: The blocks that it runs; its record says when. What is defined around it is visible there.

    Source, names and origin take no part in equality.
    """

    value_id: ValueId
    opcode: str
    operands: tuple[ValueId, ...]
    attributes: Mapping[str, AttributeValue]
    result_type: ValueType
    source: SourceInfo | None = field(default=None, compare=False, repr=False)
    names: Mapping[ValueId, str] = field(default_factory=lambda: NO_NAMES, compare=False, repr=False)
    origin: str | None = field(default=None, compare=False, repr=False)
    others: tuple[Result, ...] = ()
    regions: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        if type(self.others) is not tuple or self.others:
            object.__setattr__(self, "others", sequence_of(self.others, Result, "others"))
        if type(self.regions) is not tuple or self.regions:
            object.__setattr__(self, "regions", sequence_of(self.regions, Block, "regions"))
        if not isinstance(self.result_type, (TensorType, TupleType)):
            argument_checks.reject("result_type", "a TensorType", self.result_type)
        if self.source is not None and not isinstance(self.source, SourceInfo):
            argument_checks.reject("source", "a SourceInfo or None", self.source)
        if type(self.value_id) is not int or abs(self.value_id) >= PLAIN:
            object.__setattr__(self, "value_id", argument_checks.integer(self.value_id, "value_id"))
        if type(self.opcode) is not str:
            object.__setattr__(self, "opcode", argument_checks.text(self.opcode, "opcode"))
        object.__setattr__(self, "operands", ids(self.operands, "operands"))
        object.__setattr__(self, "attributes", _attributes(self.attributes))
        _check_names(self)

    @classmethod
    def create(
        cls,
        value_id: ValueId,
        opcode: str,
        operands: Iterable[ValueId],
        attributes: Mapping[str, AttributeValue],
        result_type: ValueType,
        source: SourceInfo | None = None,
        names: Mapping[ValueId, str] = NO_NAMES,
        origin: str | None = None,
        others: Iterable[Result] = _NONE,
        regions: Iterable[Block] = _NONE,
    ) -> CoreOperation:
        """Build an operation, whose parts may be of any class that plainly means those it holds."""
        read = ids(operands, "operands")
        # Nearly all operations have neither.
        more = () if others is _NONE else sequence_of(others, Result, "others")
        inside = () if regions is _NONE else sequence_of(regions, Block, "regions")
        return cls(value_id, opcode, read, attributes, result_type, source, names, origin, more, inside)

    def __str__(self) -> str:
        from mind_mlir.languages.core.printer import print_operation  # noqa: PLC0415 -- the printer stands above the data

        return print_operation(self)

    def __repr__(self) -> str:
        large = {name: "..." for name, value in self.attributes.items() if isinstance(value, TensorLiteral)}
        shown = replace(self, attributes={**self.attributes, **large}) if large else self
        return f"<CoreOperation {brief(str(shown))}>"

    @property
    def results(self) -> tuple[Result, ...]:
        """Return all values that it defines, in order."""
        return (Result(self.value_id, self.result_type), *self.others)

    @property
    def result_ids(self) -> tuple[ValueId, ...]:
        """Return the ids of all values that it defines, in order."""
        if not self.others:
            return (self.value_id,)
        return (self.value_id, *(result.value_id for result in self.others))

    @property
    def result_types(self) -> tuple[TensorType, ...]:
        """Return the types of all values that it defines, in a verified module, where there are no tuples."""
        if not self.others:
            return (self.tensor_type,)
        types = (self.result_type, *(result.type for result in self.others))
        return tuple(
            argument_checks.expect(type_, TensorType, "the result type", "a TensorType") for type_ in types
        )

    @property
    def tensor_type(self) -> TensorType:
        """Return the type of the value of a verified flat module, where there are no tuples."""
        return argument_checks.expect(self.result_type, TensorType, "the result type", "a TensorType")

    @property
    def label(self) -> str:
        """Return what messages call its value: as the program that somebody wrote does."""
        return self.origin or self.spell(self.value_id)

    def spell(self, value: ValueId) -> str:
        """Return ``value`` as the text of this operation writes it: ``%x``, or ``%3`` without a name.

        Raises:
            TypeError: ``value`` is no id.
        """
        return f"%{self.names.get(value := argument_checks.integer(value, 'value'), value)}"

    @property
    def location(self) -> Location | None:
        """Return where the whole operation stands in the source."""
        return self.source.statement if self.source else None

    @property
    def opcode_location(self) -> Location | None:
        """Return where its opcode stands, or the whole operation where that is all that is known."""
        return (self.source.opcode or self.source.statement) if self.source else None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A block parameter: a value defined by control flow entering the block.

    Attributes:
        value_id: The value it defines; unique in its function.
        type: Its type.
        location: Where it was written.
        name: What callers name the argument; only parameters of an exported function's entry have one.
        names: What the text it was read from calls values (see `CoreOperation`).
        origin: What messages call it where a pass has given it another id.

    Location, names and origin take no part in equality.
    """

    value_id: ValueId
    type: ValueType
    location: Location | None = field(default=None, compare=False, repr=False)
    name: str | None = None
    names: Mapping[ValueId, str] = field(default_factory=lambda: NO_NAMES, compare=False, repr=False)
    origin: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.name is not None:
            object.__setattr__(self, "name", argument_checks.text(self.name, "name"))
        _check_names(self)
        check_location(self.location)
        object.__setattr__(self, "value_id", argument_checks.integer(self.value_id, "value_id"))
        if not isinstance(self.type, (TensorType, TupleType)):
            argument_checks.reject("type", "a TensorType", self.type)

    def __str__(self) -> str:
        return f"{self.spelled}: {self.type}"

    @property
    def spelled(self) -> str:
        """Return the value as the text writes it: ``%x``, or ``%3`` without a name."""
        return f"%{self.names.get(self.value_id, self.value_id)}"

    @property
    def label(self) -> str:
        """Return what messages call the value."""
        return self.origin or self.spelled

    @property
    def tensor_type(self) -> TensorType:
        """Return its type in a verified module, where there are no tuples."""
        return argument_checks.expect(self.type, TensorType, "the type", "a TensorType")


@dataclass(frozen=True, slots=True)
class Block:
    """A straight line of operations with one terminator."""

    operations: tuple[CoreOperation, ...]
    terminator: Terminator
    parameters: tuple[Parameter, ...] = ()
    label: str = "entry"
    #: Where its label stands in the source.
    location: Location | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", sequence_of(self.operations, CoreOperation, "operations"))
        if not isinstance(self.terminator, TERMINATORS):
            argument_checks.reject("terminator", "a Return, Yield, Branch or CondBranch", self.terminator)
        object.__setattr__(self, "parameters", sequence_of(self.parameters, Parameter, "parameters"))
        object.__setattr__(self, "label", argument_checks.text(self.label, "label"))
        check_location(self.location)

    def __str__(self) -> str:
        from mind_mlir.languages.core.printer import print_block  # noqa: PLC0415 -- the printer stands above the data

        return print_block(self)

    def __repr__(self) -> str:
        return f"<Block ^{self.label}: {counted(self.operations, 'operation')}>"


def _check_names(named: CoreOperation | Parameter) -> None:
    check_names(named.names)
    if named.origin is not None and type(named.origin) is not str:
        object.__setattr__(named, "origin", argument_checks.text(named.origin, "origin"))


def _attributes(attributes: object) -> Attributes:
    """Return the attributes in the form that operations hold."""
    if isinstance(attributes, Attributes):
        return attributes
    given = argument_checks.mapping(attributes, "attributes", "a mapping from names to values")
    plain: dict[str, AttributeValue] = {}
    for name, value in given.items():
        attribute = frozen(value)
        if attribute is None:
            argument_checks.reject(
                f"attribute {argument_checks.describe(name)}", "a number, a string or a list of them", value
            )
        plain[argument_checks.text(name, "each name in attributes")] = attribute
    return Attributes.of(plain)
