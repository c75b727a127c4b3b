"""The in-memory IR: Module > Function > Block > CoreOperation.

    Module    ::= profile, Function+
    Function  ::= name, visibility, Block+            (the first block is the entry)
    Block     ::= label, Parameter*, CoreOperation*, Return
    CoreOperation ::= value_id, opcode, operands, attributes, result_type

A flat Core IR v1 module is one function ``main`` with one block and no parameters: its inputs are `Input`
operations, and its outputs are the operands of the block's `Return`. Everything is immutable, pickles, and
compares and hashes by meaning: source locations and names do not take part.

Values are known by their ids. What people call them are facts beside: the names of a text (``%x``), with
which it is printed again, and, where a pass has renumbered a value, what the program that it comes from calls
it, for messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.frozen import FrozenDict
from mind_mlir.ir.types import TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.types import ValueType

ValueId: TypeAlias = int

_NO_ATTRIBUTES: Mapping[str, AttributeValue] = FrozenDict()
_NO_NAMES: Mapping[ValueId, str] = FrozenDict()


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Where the parts of an operation stand in the source, as exact as the frontend knows it."""

    statement: Location
    operands: tuple[Location, ...] = ()
    attributes: Mapping[str, Location] = field(default_factory=FrozenDict)
    result_type: Location | None = None
    opcode: Location | None = None


@dataclass(frozen=True, slots=True)
class CoreOperation:
    """One instruction (core-ir.md, "CoreOperation structure").

    Attributes:
        value_id: The value it defines; unique in its function.
        opcode: The spelling of the Core IR, for example ``Add``; need not be known (the verifier says so).
        operands: Values it reads.
        attributes: Immutable, by parameter name.
        result_type: The declared type of its value.
        source: Where it was written.
        names: What the text it was read from calls values, without the ``%``; values that are numbers there
            have none. One table, which all operations of the text share.
        origin: What messages call its value where a pass has given that another id: ``%x`` as it was written,
            or ``in the derivative of %x``.

    The last three take no part in equality.
    """

    value_id: ValueId
    opcode: str
    operands: tuple[ValueId, ...]
    attributes: Mapping[str, AttributeValue]
    result_type: ValueType
    source: SourceInfo | None = field(default=None, compare=False, repr=False)
    names: Mapping[ValueId, str] = field(default=_NO_NAMES, compare=False, repr=False)
    origin: str | None = field(default=None, compare=False, repr=False)

    @classmethod
    def create(
        cls,
        value_id: ValueId,
        opcode: str,
        operands: Iterable[ValueId],
        attributes: Mapping[str, AttributeValue],
        result_type: ValueType,
        source: SourceInfo | None = None,
        names: Mapping[ValueId, str] = _NO_NAMES,
        origin: str | None = None,
    ) -> CoreOperation:
        """Build an operation, freezing its operands and attributes (sorted by name)."""
        frozen = FrozenDict(sorted(attributes.items())) if attributes else _NO_ATTRIBUTES
        return cls(value_id, opcode, tuple(operands), frozen, result_type, source, names, origin)

    @property
    def tensor_type(self) -> TensorType:
        """Return the type of the value of a verified flat module, where there are no tuples."""
        assert isinstance(self.result_type, TensorType), "flat modules have no tuples"
        return self.result_type

    @property
    def label(self) -> str:
        """Return what messages call its value: as the program that somebody wrote does."""
        return self.origin or self.spell(self.value_id)

    def spell(self, value: ValueId) -> str:
        """Return ``value`` as the text of this operation writes it: ``%x``, or ``%3`` without a name."""
        return f"%{self.names.get(value, value)}"

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
    """A block parameter: a value defined by control flow entering the block."""

    value_id: ValueId
    type: ValueType
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Return:
    """The terminator that ends a function: its operands are the function's results."""

    operands: tuple[ValueId, ...]
    locations: tuple[Location | None, ...] = field(default=(), compare=False, repr=False)
    names: Mapping[ValueId, str] = field(default=_NO_NAMES, compare=False, repr=False)

    def location_of(self, index: int) -> Location | None:
        """Return where result ``index`` is named in the source."""
        return self.locations[index] if index < len(self.locations) else None

    def spell(self, value: ValueId) -> str:
        """Return ``value`` as the text writes it: ``%x``, or ``%3`` without a name."""
        return f"%{self.names.get(value, value)}"


@dataclass(frozen=True, slots=True)
class Block:
    """A straight line of operations with one terminator."""

    operations: tuple[CoreOperation, ...]
    terminator: Return
    parameters: tuple[Parameter, ...] = ()
    label: str = "entry"


@dataclass(frozen=True, slots=True)
class Function:
    """A named function; ``public`` functions can be called from outside."""

    name: str
    blocks: tuple[Block, ...]
    public: bool = True


@dataclass(frozen=True, slots=True)
class Module:
    """A program: functions under one profile."""

    functions: tuple[Function, ...]
    profile: str = "core-v1"

    @classmethod
    def flat(
        cls, operations: Iterable[CoreOperation], outputs: Return | Iterable[ValueId], name: str = "main"
    ) -> Module:
        """Build a flat Core IR v1 module from its instruction list and outputs."""
        terminator = outputs if isinstance(outputs, Return) else Return(tuple(outputs))
        return cls((Function(name, (Block(tuple(operations), terminator),)),))

    @property
    def body(self) -> Block:
        """Return the single block of a flat module."""
        (function,) = self.functions
        (block,) = function.blocks
        return block

    @property
    def name(self) -> str:
        """Return the name of the entry function."""
        return self.functions[0].name

    @property
    def operations(self) -> tuple[CoreOperation, ...]:
        """Return the instruction list of a flat module."""
        return self.body.operations

    @property
    def inputs(self) -> tuple[CoreOperation, ...]:
        """Return the `Input` operations of a flat module, in order."""
        return tuple(op for op in self.operations if op.opcode == "Input")

    @property
    def inputs_by_name(self) -> dict[str, CoreOperation]:
        """Return the `Input` operations of a flat module by the names that callers use, in order."""
        return {str(op.attributes["name"]): op for op in self.inputs}

    @property
    def outputs(self) -> tuple[ValueId, ...]:
        """Return the output values of a flat module."""
        return self.body.terminator.operands

    def with_body(self, block: Block) -> Module:
        """Return this flat module with another block."""
        (function,) = self.functions
        return replace(self, functions=(replace(function, blocks=(block,)),))
