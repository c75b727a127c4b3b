"""A module in the making: functions that come into being one by one, each for the types it is called with.

    unit = Unit()
    twice = unit.instance(("twice", types), lambda: unit.define("twice", build))
    (y,) = unit.call(builder, twice, [x])
    module = unit.module(twice, ["x"])

Functions of the surface language and of Python are templates: what they are depends on the types, and the
containers, of their arguments. Each use is an `Instance`: a function of Core IR, made once. Calls among
instances stay calls until the module is finished.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from mind_mlir.builders.builder import Builder
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.analysis.call_graph import CallGraph, callee_of, operations_of, with_calls_renamed
from mind_mlir.ir.analysis.effects import silent_function
from mind_mlir.ir.module import CoreOperation, Function, Functions, Module, Parameter, Return
from mind_mlir.ir.profiles import CORE_FUNCTIONS, CORE_V1, Profile
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.contexts import Signature
from mind_mlir.passes.activity import is_float
from mind_mlir.passes.autodiff_functions import gradient_functions
from mind_mlir.passes.forms import structured_form, without_custom_calls
from mind_mlir.passes.structure.effects import inline_effects
from mind_mlir.passes.structure.inline import inline_calls, inlined_size
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.source_info import SourceInfo
    from mind_mlir.ir.value import Value

#: A module of calls alone becomes one list of at most so many instructions; a larger one keeps its calls.
MAX_FLAT = 20_000


@dataclass(frozen=True, slots=True)
class Instance:
    """A function of a unit.

    Attributes:
        name: What calls name it.
        parameters: The types of its arguments.
        results: The types of its results.
        form: What its maker has to know of how arguments and results are put together.
        weak: Of each result, whether it takes the dtype of what it meets; empty where none does.
        result_names: What its maker calls its results; empty where it does not say.
    """

    name: str
    parameters: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    form: Any = None
    weak: tuple[bool, ...] = ()
    result_names: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Unit:
    """The functions made so far.

    Attributes:
        functions: The functions by name, each after those that it calls.
        profile: The rules that they are built by. A module that obeys those of Core IR is one of Core IR,
            whatever they are.
        reading: What notes which attributes of objects functions of Python read, if that is noted.
    """

    profile: Profile = CORE_FUNCTIONS
    functions: dict[str, Function] = field(default_factory=dict)
    reading: Any = None
    _signatures: dict[str, Signature | None] = field(default_factory=dict)
    _instances: dict[Hashable, Instance | None] = field(default_factory=dict)
    _used: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Unit of {len(self.functions)} functions>"

    def builder(self) -> Builder:
        """Return what builds a function that may call those of the unit."""
        return Builder(functions=self._signatures, profile=self.profile.name)

    def has(self, key: Hashable) -> bool:
        """Return whether the instance that ``key`` stands for has been made, or is being made."""
        return key in self._instances

    def instance(self, key: Hashable, make: Callable[[], Instance]) -> Instance:
        """Return the instance that ``key`` stands for, which ``make`` makes the first time.

        Raises:
            VerificationError: E4118, it is being made: a function calls itself.
        """
        if key in self._instances:
            found = self._instances[key]
            if found is None:
                raise VerificationError(recursion())
            return found
        self._instances[key] = None
        try:
            made = make()
        except BaseException:
            del self._instances[key]
            raise
        self._instances[key] = made
        return made

    def forget(self, key: Hashable) -> None:
        """Let what ``key`` stands for be made again, under another name, when it is asked for."""
        self._instances.pop(key, None)

    def define(self, name: str, build: Callable[[str], Function], form: Any = None) -> Instance:
        """Add the function that ``build`` returns for a free name like ``name``."""
        return self._add(build(self._free(name)), form)

    def call(
        self,
        builder: Builder,
        instance: Instance,
        operands: Sequence[Value],
        source: SourceInfo | None = None,
    ) -> tuple[Value, ...]:
        """Append a call of ``instance``, and return its results.

        Raises:
            VerificationError: The operands are not what it takes (E2001, E2007), or none of the builder's.
        """
        return builder.emit_all("Call", *operands, source=source, callee=instance.name)

    def derivative(self, instance: Instance, wrt: Sequence[int], *, cotangents: bool = False) -> Instance:
        """Return the function that computes what ``instance`` does, and then gradients.

        Args:
            instance: A function of this unit.
            wrt: The places of the parameters to differentiate with respect to; floats all.
            cotangents: Whether the gradient is that of the results weighted by further arguments, one of its
                type for each result that has floating-point elements; else that of the sum of all of these.

        Returns:
            A function of the parameters (and cotangents), which returns the results, then a gradient for each
            of ``wrt``.

        Raises:
            AutodiffError: E5001 to E5004, a rule on the way cannot be differentiated.
        """
        key = ("derivative", instance.name, tuple(wrt), cotangents)
        return self.instance(key, lambda: self._differentiated(instance, wrt, cotangents=cotangents))

    def without_first(self, instance: Instance, name: str | None = None, form: Any = None) -> Instance:
        """Return the function that returns what ``instance`` does, but for the first result.

        Of a derivative, it is the gradients alone.
        """

        def build(free: str) -> Function:
            builder = self.builder()
            parameters = [builder.parameter(type_) for type_ in instance.parameters]
            return builder.function(free, self.call(builder, instance, parameters)[1:], public=False)

        wanted = instance.name if name is None else name
        key = ("without first", instance.name, wanted, form)
        return self.instance(key, lambda: self.define(wanted, build, form))

    def module(self, instance: Instance, names: Sequence[str], name: str = "main") -> Module:
        """Return the module that exports ``instance``, with what it calls.

        Without branches, loops and operations that Core v1 refuses it is a flat module, in which functions
        have taken the place of their calls; else functions (profile ``core-functions``).

        Args:
            instance: A function of this unit.
            names: The names of its parameters.
            name: The name of the function; that of a flat module is ``main``, as its text says none.
        """
        return self.exported([(instance, names, name)])

    def exported(self, exports: Sequence[tuple[Instance, Sequence[str], str]]) -> Module:
        """Return the module that exports several instances, given as for `module`, in that order."""
        public = {instance.name: (names, name, instance.result_names) for instance, names, name in exports}
        taken = {name for _, _, name in exports}
        called = self.needed(instance.name for instance, _, _ in exports)
        called_so = {old: new for old, (_, new, _) in public.items()}
        for function in called:
            if function.name not in public and function.name in taken:
                called_so[function.name] = self._free(function.name)
        functions = [renamed(function, called_so) for function in called]
        chosen = [
            _exported(self_, *public[old.name]) if old.name in public else self_
            for old, self_ in zip(called, functions, strict=True)
        ]
        order = {name: place for place, (_, _, name) in enumerate(exports)}
        chosen.sort(key=lambda function: order.get(function.name, len(order)))
        is_core = _is_core(chosen)
        module = inline_effects(
            Module(Functions(chosen), CORE_FUNCTIONS.name if is_core else self.profile.name)
        )
        if not is_core:
            return module
        return (_flat(module) or module) if len(exports) == 1 else module

    def _free(self, name: str) -> str:
        """Return a name like ``name`` that no function has, nor will have."""
        number = self._used.get(name, 0)
        self._used[name] = number + 1
        found = f"{name}_{number}" if number else name
        if number and found in self._used:
            return self._free(name)
        self._used.setdefault(found, 1)
        return found

    def _add(self, function: Function, form: Any = None) -> Instance:
        parameters = tuple([parameter.tensor_type for parameter in function.parameters])
        results = tuple([type_ for type_ in function.result_types or () if isinstance(type_, TensorType)])
        self.functions[function.name] = function
        self._signatures[function.name] = Signature(parameters, results)
        return Instance(function.name, parameters, results, form)

    def needed(self, names: Iterable[str]) -> list[Function]:
        """Return the functions called ``names`` and what they call, in the order of their making."""
        needed: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in needed:
                continue
            needed.add(name)
            found = map(callee_of, operations_of(self.functions[name].blocks))
            pending += {callee for callee in found if callee}
        return [function for name, function in self.functions.items() if name in needed]

    def _differentiated(self, instance: Instance, wrt: Sequence[int], *, cotangents: bool) -> Instance:
        functions = self.needed([instance.name])
        internal = [replace(function, public=function.name == instance.name) for function in functions]
        written = Module(Functions(internal), self.profile.name)
        module = structured_form(inline_effects(without_custom_calls(written)))
        modes = ["given" if cotangents and is_float(type_) else "unit" for type_ in instance.results]
        made = gradient_functions(module, instance.name, list(wrt), modes, extensions=True)
        if cotangents:  # it goes back from a call that has been made, and has printed
            made = replace(made, functions=Functions(tuple(map(silent_function, made.functions))))
        called: dict[str, str] = {}
        for function in made.functions:
            name = f"grad_{function.name}" if function.name == instance.name else function.name
            # What it calls has become another function in structured form where it had branches.
            same = self.functions.get(name)
            called[function.name] = name if same == function else self._free(name)
        for function in CallGraph.of(made.functions).callees_first():
            name = called[function.name]
            if name not in self.functions:
                self._add(replace(renamed(function, called), public=False))
        name = called[instance.name]
        signature = self._signatures[name]
        assert signature is not None, "the unit's functions have signatures"
        return Instance(name, signature.parameters, signature.results, instance.form)


def recursion() -> Diagnostic:
    """Return what is wrong with a function that calls itself."""
    return Diagnostic(
        "E4118",
        "a function calls itself",
        help="write a loop; programs have no recursion, so that their memory is known beforehand",
    )


def renamed(function: Function, names: Mapping[str, str]) -> Function:
    """Return a function with other names, its own and those of what it calls."""
    name = names.get(function.name, function.name)
    if not any(callee in names for callee in map(callee_of, operations_of(function.blocks))):
        return replace(function, name=name) if name != function.name else function
    blocks = tuple(with_calls_renamed(block, names) for block in function.blocks)
    return replace(function, name=name, blocks=blocks)


def _exported(function: Function, names: Sequence[str], name: str, result_names: tuple[str, ...]) -> Function:
    entry, *others = function.blocks
    parameters = tuple(
        replace(parameter, name=called) for parameter, called in zip(entry.parameters, names, strict=True)
    )
    blocks = (replace(entry, parameters=parameters), *others)
    return replace(function, name=name, blocks=blocks, public=True, result_names=result_names)


def _is_core(functions: Sequence[Function]) -> bool:
    """Return whether all that functions compute are tensors of Core IR, with elements."""
    types = {parameter.tensor_type for function in functions for parameter in function.parameters}
    for function in functions:
        for operation in operations_of(function.blocks):
            types.update(operation.result_types)
    return all(type_.dtype in CORE_FUNCTIONS.dtypes and 0 not in type_.shape for type_ in types)


def _flat(module: Module) -> Module | None:
    """Return a module of one exported function as a list of instructions, or None where it cannot be one."""
    refused = CORE_V1.refused.keys() - {"Call"}
    for function in module.functions:
        if len(function.blocks) > 1:
            return None
        if any(operation.regions or operation.opcode in refused for operation in function.entry.operations):
            return None
    if inlined_size(module) > MAX_FLAT:
        return None
    inlined = inline_calls(module, every=True) if len(module.functions) > 1 else module
    (function,) = [function for function in inlined.functions if function.public]
    entry = function.entry
    assert isinstance(entry.terminator, Return), "a function of one block returns"
    inputs = [_input(parameter) for parameter in entry.parameters]
    flat = Module.flat([*inputs, *entry.operations], entry.terminator)
    return Module(Functions((replace(flat.functions[0], result_names=function.result_names),)))


def _input(parameter: Parameter) -> CoreOperation:
    return CoreOperation.create(
        parameter.value_id, "Input", (), {"name": str(parameter.name)}, parameter.tensor_type
    )
