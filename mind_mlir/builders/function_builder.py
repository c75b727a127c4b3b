"""Builds modules of functions, whose blocks branch, from Python.

    module = ModuleBuilder()
    main = module.function("main", {"x": F32, "n": I64}, [F32])
    x, n = main.parameters
    head = main.block(F32, I64)              # a block with two parameters
    main.entry.branch(head, x, main.entry.constant(0, DType.SI64))
    ...
    verify(module.build())

Types are inferred and checked where an operation, a branch, a return or a call is built: what is wrong is a
`VerificationError` with the code and the words of the verifier. What blocks and functions are together is for
`verify` to say: which values are visible where, which blocks are reached, whether functions call themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.builders import flow_rules, type_rules
from mind_mlir.builders.block_builder import PROFILE, BlockBuilder
from mind_mlir.builders.builder import Builder
from mind_mlir.builders.given import raise_any, tensor_types
from mind_mlir.ir.module import Function, Functions, Module
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.contexts import Signature
from mind_mlir.support import argument_checks
from mind_mlir.support.argument_checks import counted
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.ir.value import Value


@dataclass(slots=True, eq=False)
class ModuleBuilder:
    """Builds a module of functions (profile ``core-functions``).

    Example:
        >>> m = ModuleBuilder()
        >>> f = m.function("main", {"x": TensorType(DType.F32, (2,))}, [TensorType(DType.F32, (2,))])
        >>> f.entry.return_(f.entry.emit("Neg", *f.parameters))
        >>> print(m.build())
        func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
        ^entry:
          %0 = Neg (%x) : tensor<f32[2]>
          return %0
        }
    """

    _functions: dict[str, FunctionBuilder] = field(default_factory=dict, init=False)
    _signatures: dict[str, Signature | None] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<ModuleBuilder of {counted(self._functions, 'function')}>"

    def function(
        self,
        name: str,
        parameters: Mapping[str, TensorType],
        results: Iterable[TensorType] | TensorType,
        *,
        public: bool = True,
    ) -> FunctionBuilder:
        """Declare a function, which others may call from now on, and return what builds its blocks.

        Args:
            name: What it is called.
            parameters: The types of its arguments by their names, which callers from outside use.
            results: The types of its results, or of its one result.
            public: Whether it can be called from outside.

        Raises:
            VerificationError: E4107, the module has a function of that name; E4004, E4126, E4104 or E4106, no
                value has one of the types; E4004, an argument cannot be called that.
            TypeError: An argument is not of the kind above.
        """
        name = argument_checks.text(name, "name")
        public = argument_checks.flag(public, "public")
        given = argument_checks.mapping(parameters, "parameters", "a mapping from names to TensorTypes")
        listed = (results,) if isinstance(results, TensorType) else results
        types = tensor_types(argument_checks.items(listed, "results", "a sequence of TensorTypes"), "results")
        names = [argument_checks.text(key, "each name in parameters") for key in given]
        argument_types = tensor_types(tuple(given.values()), "parameters")
        wrong: list[Diagnostic | None] = []
        if name in self._functions:
            wrong.append(flow_rules.function_name_taken(name, None, "the one before"))
        code = "E4004" if public else "E4126"
        for key, type_ in zip(names, argument_types, strict=True):
            what = f"parameter %{key} of @{name}"
            wrong.append(type_rules.declared_type(what, type_, PROFILE, None, code))
            if public:
                wrong.append(type_rules.argument_name(what, key, None))
        if len(set(names)) < len(names):  # of a mapping with keys that are no plain strings
            twice = next(key for index, key in enumerate(names) if key in names[:index])
            wrong.append(type_rules.argument_name_taken(name, twice, None, f"%{twice}"))
        for index, type_ in enumerate(types):
            wrong.append(type_rules.declared_type(f"result {index} of @{name}", type_, PROFILE, None))
        raise_any(wrong)
        self._signatures[name] = Signature(argument_types, types)
        built = FunctionBuilder(self, name, tuple(names), self._signatures, public)
        self._functions[name] = built
        return built

    def build(self) -> Module:
        """Return the module.

        Raises:
            VerificationError: E4111, a block has not ended.
        """
        raise_any([finding for function in self._functions.values() for finding in function.unfinished()])
        return Module(Functions(function.build() for function in self._functions.values()), PROFILE.name)


@dataclass(slots=True, eq=False)
class FunctionBuilder:
    """Builds the blocks of one function; `ModuleBuilder.function` makes one.

    Attributes:
        module: What builds its module.
        name: What it is called.
        public: Whether it can be called from outside.
        parameters: The values of its arguments.
        entry: Builds its first block.
        builder: Takes the operations of the block, or of its region, that is being built.
        current: That block.
    """

    module: ModuleBuilder
    name: str
    _names: tuple[str, ...]
    _signatures: dict[str, Signature | None]
    public: bool
    parameters: tuple[Value, ...] = field(init=False)
    entry: BlockBuilder = field(init=False)
    _blocks: dict[str, BlockBuilder] = field(default_factory=dict, init=False)
    builder: Builder = field(init=False)
    current: BlockBuilder = field(init=False)

    def __post_init__(self) -> None:
        argument_checks.expect(self.module, ModuleBuilder, "module", "a ModuleBuilder")
        self.builder = Builder(functions=self._signatures, profile=PROFILE.name)
        signature = self.signature
        self.parameters = tuple(self.builder.fresh(type_) for type_ in signature.parameters)
        self.entry = self._add("entry", self.parameters)
        self.current = self.entry
        self.builder.operations = self.entry.operations

    def __repr__(self) -> str:
        return f"<FunctionBuilder @{self.name}: {counted(self._blocks, 'block')}>"

    @property
    def signature(self) -> Signature:
        """Return what the function takes and returns."""
        signature = self._signatures[self.name]
        assert signature is not None, "a builder's signatures are checked"
        return signature

    def block(self, *types: TensorType, label: str | None = None) -> BlockBuilder:
        """Add a block whose parameters are of ``types``.

        Args:
            types: The types of its parameters.
            label: What it is called; by default ``b1``, ``b2`` and so on.

        Raises:
            VerificationError: E4109, another block has that label; E4126, E4104 or E4106, no value has one of
                the types.
            TypeError: A type is no `TensorType`, or the label no string.
        """
        checked = tensor_types(types, "types")
        if label is None:
            number = len(self._blocks)
            while f"b{number}" in self._blocks:
                number += 1
            label = f"b{number}"
        label = argument_checks.text(label, "label")
        wrong: list[Diagnostic | None] = []
        if label in self._blocks:
            wrong.append(flow_rules.label_taken(label, None, "the one before"))
        for index, type_ in enumerate(checked):
            wrong.append(type_rules.declared_type(f"parameter {index} of ^{label}", type_, PROFILE, None))
        raise_any(wrong)
        return self._add(label, tuple(self.builder.fresh(type_) for type_ in checked))

    def _add(self, label: str, parameters: tuple[Value, ...]) -> BlockBuilder:
        block = BlockBuilder(self, label, parameters)
        self._blocks[label] = block
        return block

    def unfinished(self) -> list[Diagnostic]:
        """Return E4111 for each block that has not ended."""
        return [
            flow_rules.missing_terminator(block.label, None, "return_, branch or cond_branch", None)
            for block in self._blocks.values()
            if block.terminator is None
        ]

    def build(self) -> Function:
        """Return the function, all of whose blocks have ended."""
        names = self._names if self.public else None
        blocks = [block.build(names if block is self.entry else None) for block in self._blocks.values()]
        return Function(self.name, tuple(blocks), self.public, self.signature.results)
