"""The in-memory IR: Module > Function > Block > CoreOperation.

    Module    ::= profile, Function+
    Function  ::= name, visibility, Block+            (the first block is the entry)
    Block     ::= label, Parameter*, CoreOperation*, Return
    CoreOperation ::= value_id, opcode, operands, attributes, result_type

A flat Core IR v1 module is one function ``main`` with one block and no parameters: its inputs are `Input`
operations, and its outputs are the operands of the block's `Return`. Everything is immutable, pickles, and
compares and hashes by meaning: source locations and names do not take part. Whoever builds one of these gets
a `TypeError` that names the part where it is not of the kind above; whether the parts make sense together is
the verifier's question.

Values are known by their ids. What people call them are facts beside: the names of a text (``%x``), with
which it is printed again, and, where a pass has renumbered a value, what the program that it comes from calls
it, for messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from mind_mlir import border
from mind_mlir.diagnostics.display import brief
from mind_mlir.ir.attributes import Attributes, TensorLiteral, frozen
from mind_mlir.ir.names import Names
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import TensorType, TupleType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Sized

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.types import ValueType

T = TypeVar("T")

#: What a parameter called ``module`` must be, in the words of an error.
MODULE = "a Module (parse, load and Builder.build make one)"

ValueId: TypeAlias = int


def _count(things: Sized, noun: str) -> str:
    count = len(things)
    return f"{count} {noun}{'' if count == 1 else 's'}"


_NO_NAMES: Mapping[ValueId, str] = Names()


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
    names: Mapping[ValueId, str] = field(default_factory=lambda: _NO_NAMES, compare=False, repr=False)
    origin: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.result_type, (TensorType, TupleType)):
            border.reject("result_type", "a TensorType", self.result_type)
        if self.source is not None and not isinstance(self.source, SourceInfo):
            border.reject("source", "a SourceInfo or None", self.source)
        if type(self.value_id) is not int or abs(self.value_id) >= _PLAIN:
            object.__setattr__(self, "value_id", border.integer(self.value_id, "value_id"))
        if type(self.opcode) is not str:
            object.__setattr__(self, "opcode", border.text(self.opcode, "opcode"))
        object.__setattr__(self, "operands", _ids(self.operands, "operands"))
        object.__setattr__(self, "attributes", _attributes(self.attributes))

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
        """Build an operation, whose parts may be of any class that plainly means those it holds."""
        ids = _ids(operands, "operands")
        return cls(value_id, opcode, ids, attributes, result_type, source, names, origin)

    def __str__(self) -> str:
        from mind_mlir.ir.printer import print_operation  # noqa: PLC0415 -- the printer stands above the data

        return print_operation(self)

    def __repr__(self) -> str:
        large = {name: "..." for name, value in self.attributes.items() if isinstance(value, TensorLiteral)}
        shown = replace(self, attributes={**self.attributes, **large}) if large else self
        return f"<CoreOperation {brief(str(shown))}>"

    @property
    def tensor_type(self) -> TensorType:
        """Return the type of the value of a verified flat module, where there are no tuples."""
        return border.expect(self.result_type, TensorType, "the result type", "a TensorType")

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "value_id", border.integer(self.value_id, "value_id"))
        if not isinstance(self.type, (TensorType, TupleType)):
            border.reject("type", "a TensorType", self.type)

    def __str__(self) -> str:
        return f"%{self.value_id}: {self.type}"


@dataclass(frozen=True, slots=True)
class Return:
    """The terminator that ends a function: its operands are the function's results."""

    operands: tuple[ValueId, ...]
    locations: Sequence[Location | None] = field(default=(), compare=False, repr=False)
    names: Mapping[ValueId, str] = field(default_factory=lambda: _NO_NAMES, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", _ids(self.operands, "operands"))

    def location_of(self, index: int) -> Location | None:
        """Return where result ``index`` is named in the source."""
        return self.locations[index] if index < len(self.locations) else None

    def spell(self, value: ValueId) -> str:
        """Return ``value`` as the text writes it: ``%x``, or ``%3`` without a name."""
        return f"%{self.names.get(value, value)}"

    def __str__(self) -> str:
        return f"return {', '.join(map(self.spell, self.operands))}".rstrip()


@dataclass(frozen=True, slots=True)
class Block:
    """A straight line of operations with one terminator."""

    operations: tuple[CoreOperation, ...]
    terminator: Return
    parameters: tuple[Parameter, ...] = ()
    label: str = "entry"

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", _all(self.operations, CoreOperation, "operations"))
        border.expect(self.terminator, Return, "terminator", "a Return")
        object.__setattr__(self, "parameters", _all(self.parameters, Parameter, "parameters"))
        object.__setattr__(self, "label", border.text(self.label, "label"))

    def __str__(self) -> str:
        from mind_mlir.ir.printer import print_block  # noqa: PLC0415 -- the printer stands above the data

        return print_block(self)

    def __repr__(self) -> str:
        return f"<Block ^{self.label}: {_count(self.operations, 'operation')}>"


@dataclass(frozen=True, slots=True)
class Function:
    """A named function; ``public`` functions can be called from outside."""

    name: str
    blocks: tuple[Block, ...]
    public: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", border.text(self.name, "name"))
        object.__setattr__(self, "blocks", _all(self.blocks, Block, "blocks"))
        object.__setattr__(self, "public", border.flag(self.public, "public"))

    def __str__(self) -> str:
        from mind_mlir.ir.printer import print_function  # noqa: PLC0415 -- the printer stands above the data

        return print_function(self)

    def __repr__(self) -> str:
        return f"<Function @{self.name}: {_count(self.blocks, 'block')}>"


@dataclass(frozen=True, slots=True)
class Module:
    """A program: functions under one profile.

    What is said of a flat module raises a `ValueError` where a module is none.
    """

    functions: tuple[Function, ...]
    profile: str = "core-v1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "functions", _all(self.functions, Function, "functions"))
        object.__setattr__(self, "profile", border.text(self.profile, "profile"))

    def __str__(self) -> str:
        from mind_mlir.ir.printer import print_module  # noqa: PLC0415 -- the printer stands above the data

        return (
            print_module(self).removesuffix("\n") if self.is_flat else "\n\n".join(map(str, self.functions))
        )

    def __repr__(self) -> str:
        if not self.is_flat:
            return f"<Module {self.profile}: {_count(self.functions, 'function')}>"
        inputs = [f"{op.attributes.get('name')}: {op.result_type}" for op in self.inputs]
        head = brief(f"{self.name}({', '.join(inputs)})")
        return f"<Module {head}: {_count(self.operations, 'operation')}, {_count(self.outputs, 'output')}>"

    @property
    def is_flat(self) -> bool:
        """Return whether this is one list of instructions: one function of one block without parameters."""
        return (
            len(self.functions) == 1
            and len(self.functions[0].blocks) == 1
            and not self.functions[0].blocks[0].parameters
        )

    @classmethod
    def flat(
        cls, operations: Iterable[CoreOperation], outputs: Return | Iterable[ValueId], name: str = "main"
    ) -> Module:
        """Build a flat Core IR v1 module from its instruction list and outputs."""
        terminator = outputs if isinstance(outputs, Return) else Return(_ids(outputs, "outputs"))
        return cls((Function(name, (Block(_all(operations, CoreOperation, "operations"), terminator),)),))

    @property
    def body(self) -> Block:
        """Return the single block of a flat module."""
        blocks = [block for function in self.functions for block in function.blocks]
        if len(self.functions) != 1 or len(blocks) != 1:
            raise ValueError(
                f"the module must be flat, one function of one block, not {len(self.functions)} "
                f"functions of {len(blocks)} blocks"
            )
        return blocks[0]

    @property
    def name(self) -> str:
        """Return the name of the entry function."""
        if not self.functions:
            raise ValueError("the module must be one of at least one function")
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
        return {str(op.attributes["name"]): op for op in self.inputs if "name" in op.attributes}

    @property
    def outputs(self) -> tuple[ValueId, ...]:
        """Return the output values of a flat module."""
        return self.body.terminator.operands

    def with_body(self, block: Block) -> Module:
        """Return this flat module with another block."""
        if self.body is block:
            return self
        return replace(self, functions=(replace(self.functions[0], blocks=(block,)),))


_PLAIN = 2**63


def _ids(values: object, parameter: str) -> tuple[ValueId, ...]:
    found = border.items(values, parameter, "a sequence of value ids")
    for value in found:
        if type(value) is not int or not -_PLAIN < value < _PLAIN:
            return tuple(border.integer(item, f"each value id in {parameter}") for item in found)
    return cast("tuple[ValueId, ...]", found)


def _all(values: object, kind: type[T], parameter: str) -> tuple[T, ...]:
    expected = f"a sequence of {kind.__name__}s"
    found = border.items(values, parameter, expected)
    for value in found:
        if not isinstance(value, kind):
            border.reject(f"each of {parameter}", f"a {kind.__name__}", value)
    return cast("tuple[T, ...]", found)


def _attributes(attributes: object) -> Attributes:
    """Return the attributes in the form that operations hold."""
    if isinstance(attributes, Attributes):
        return attributes
    given = border.mapping(attributes, "attributes", "a mapping from names to values")
    plain: dict[str, AttributeValue] = {}
    for name, value in given.items():
        attribute = frozen(value)
        if attribute is None:
            border.reject(f"attribute {border.describe(name)}", "a number, a string or a list of them", value)
        plain[border.text(name, "each name in attributes")] = attribute
    return Attributes.of(plain)
