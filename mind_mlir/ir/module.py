"""The in-memory IR: Module > Function > Block > CoreOperation.

    Module    ::= profile, Function+
    Function  ::= name, visibility, result types, Block+     (the first block is the entry)
    Block     ::= label, Parameter*, CoreOperation*, Terminator
    CoreOperation ::= results, opcode, operands, attributes, region*        (a region is a Block)

A flat Core IR v1 module is one function ``main`` with one block and no parameters: its inputs are `Input`
operations, and its outputs are the operands of the block's `Return`. A module of profile ``core-functions``
may hold any number of functions, whose entry parameters are their arguments; its blocks end in `Return`,
`Branch` or `CondBranch`, or, in *structured form*, each function is one block, and control flow is in the
regions of operations, each a block that ends in `Yield` and may read what is defined around its operation.

Everything is immutable, pickles, and compares and hashes by meaning: source locations and names do not take
part. Whoever builds one of these gets a `TypeError` that names the part where it is not of the kind above;
whether the parts make sense together is the verifier's question.

Values are known by their ids, unique in their function. What people call them are facts beside: the names of
a text (``%x``), with which it is printed again, and, where a pass has renumbered a value, what the program
that it comes from calls it, for messages. Only the parameters of a function's entry have names that mean
something: those of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, SupportsIndex, overload

from mind_mlir.diagnostics.display import brief
from mind_mlir.ir.operation import Block, CoreOperation, Parameter, Result
from mind_mlir.ir.terminators import (
    Branch,
    CondBranch,
    Return,
    Target,
    Terminator,
    ValueId,
    Yield,
    check_location,
    ids,
)
from mind_mlir.ir.types import TensorType, TupleType
from mind_mlir.support import argument_checks
from mind_mlir.support.argument_checks import counted, sequence_of
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.notebooks import shown_by

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.types import ValueType

__all__ = (
    "Block",
    "Branch",
    "CondBranch",
    "CoreOperation",
    "Function",
    "Functions",
    "Module",
    "Parameter",
    "Result",
    "Return",
    "Target",
    "Terminator",
    "ValueId",
    "Yield",
)

#: What is said of the values of nearly all functions.
NO_NOTES: Mapping[ValueId, str] = FrozenDict()
#: What a parameter called ``module`` must be, in the words of an error.
MODULE = "a Module (parse, load and Builder.build make one)"


@dataclass(frozen=True, slots=True)
class Function:
    """A named function.

    Attributes:
        name: What calls and callers name it.
        blocks: The first one is its entry, whose parameters are the function's arguments.
        public: Whether it is exported: callable from outside.
        result_types: The declared types of its results; None in a flat module, whose outputs tell.
        location: Where its name stands in the source.
        result_locations: Where the declared types of its results stand, as far as that is known.
        result_names: What the program that it comes from calls its results; empty where it does not say.
        notes: What a pass says of values, which is printed behind them.
    """

    name: str
    blocks: tuple[Block, ...]
    public: bool = True
    result_types: tuple[ValueType, ...] | None = None
    location: Location | None = field(default=None, compare=False, repr=False)
    result_locations: Sequence[Location] = field(default=(), compare=False, repr=False)
    result_names: tuple[str, ...] = field(default=(), compare=False, repr=False)
    notes: Mapping[ValueId, str] = field(default_factory=lambda: NO_NOTES, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", argument_checks.text(self.name, "name"))
        object.__setattr__(self, "blocks", sequence_of(self.blocks, Block, "blocks"))
        object.__setattr__(self, "public", argument_checks.flag(self.public, "public"))
        check_location(self.location)
        names = argument_checks.names(self.result_names, "result_names")
        object.__setattr__(self, "result_names", names)
        if not isinstance(self.result_locations, Sequence):
            argument_checks.reject("result_locations", "a sequence of Locations", self.result_locations)
        if self.result_types is not None:
            types = argument_checks.items(
                self.result_types, "result_types", "a sequence of TensorTypes, or None"
            )
            for type_ in types:
                if not isinstance(type_, (TensorType, TupleType)):
                    argument_checks.reject("each of result_types", "a TensorType", type_)
            object.__setattr__(self, "result_types", types)

    def __str__(self) -> str:
        from mind_mlir.languages.core.printer import print_function  # noqa: PLC0415 -- the printer stands above the data

        return print_function(self)

    def __repr__(self) -> str:
        return f"<Function @{self.name}: {counted(self.blocks, 'block')}>"

    @property
    def entry(self) -> Block:
        """Return the first block; a `ValueError` where there is none."""
        if not self.blocks:
            raise ValueError("the function must be one of at least one block")
        return self.blocks[0]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters of the entry: the function's arguments."""
        return self.entry.parameters


class Functions(tuple[Function, ...]):
    """The functions of a module, in order; ``functions["f"]`` is the one of that name."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> Function: ...

    @overload
    def __getitem__(self, key: slice, /) -> tuple[Function, ...]: ...

    def __getitem__(self, key: SupportsIndex | str | slice, /) -> Function | tuple[Function, ...]:
        """Return a function by its place or its name, or some by a slice.

        Raises:
            KeyError: No function has that name.
            IndexError: There is no such place.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        for function in self:
            if function.name == key:
                return function
        names = ", ".join(function.name for function in self) or "none"
        raise KeyError(f"no function is called {brief(repr(key))}; the functions are: {names}")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Module:
    """A program: functions under one profile.

    What is said of a flat module raises a `ValueError` where a module is none.
    """

    _repr_html_ = shown_by("programs.module")

    functions: Functions
    profile: str = "core-v1"

    def __post_init__(self) -> None:
        if type(self.functions) is not Functions:
            functions = Functions(sequence_of(self.functions, Function, "functions"))
            object.__setattr__(self, "functions", functions)
        object.__setattr__(self, "profile", argument_checks.text(self.profile, "profile"))

    def __str__(self) -> str:
        from mind_mlir.languages.core.printer import print_module  # noqa: PLC0415 -- the printer stands above the data

        return print_module(self).removesuffix("\n")

    def __repr__(self) -> str:
        if not self.is_flat:
            return f"<Module {self.profile}: {counted(self.functions, 'function')}>"
        inputs = [f"{op.attributes.get('name')}: {op.result_type}" for op in self.inputs]
        head = brief(f"{self.name}({', '.join(inputs)})")
        return f"<Module {head}: {counted(self.operations, 'operation')}, {counted(self.outputs, 'output')}>"

    @property
    def is_flat(self) -> bool:
        """Return whether this is one list of instructions: a function of one block, without a signature."""
        if len(self.functions) != 1 or self.functions[0].result_types is not None:
            return False
        blocks = self.functions[0].blocks
        return len(blocks) == 1 and not blocks[0].parameters

    @classmethod
    def flat(
        cls, operations: Iterable[CoreOperation], outputs: Return | Iterable[ValueId], name: str = "main"
    ) -> Module:
        """Build a flat Core IR v1 module from its instruction list and outputs."""
        terminator = outputs if isinstance(outputs, Return) else Return(ids(outputs, "outputs"))
        block = Block(sequence_of(operations, CoreOperation, "operations"), terminator)
        return cls(Functions((Function(name, (block,)),)))

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
    def returned(self) -> Return:
        """Return the terminator of a flat module."""
        terminator = self.body.terminator
        if not isinstance(terminator, Return):
            raise ValueError(f"the module must be flat, and end in a Return, not '{terminator}'")
        return terminator

    @property
    def outputs(self) -> tuple[ValueId, ...]:
        """Return the output values of a flat module."""
        return self.returned.operands

    def with_body(self, block: Block) -> Module:
        """Return this flat module with another block."""
        if self.body is block:
            return self
        return replace(self, functions=Functions((replace(self.functions[0], blocks=(block,)),)))
