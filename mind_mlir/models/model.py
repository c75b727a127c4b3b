"""`Model`: a model of another framework as a function of arrays, compiled for the shapes it is called with."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics import Diagnostic, UnsupportedError, VerificationError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.staging import Unit
from mind_mlir.models.onnx.refusals import Needed
from mind_mlir.models.ports import checked, example_types, placed
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.lowered import Lowered
from mind_mlir.runtime.staged_arguments import distinct
from mind_mlir.runtime.staged_values import STAGE, StagedValue
from mind_mlir.support import pytrees
from mind_mlir.tracing.jit import JitFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.models.onnx.graph import Port
    from mind_mlir.support.options import CompileOptions

#: For so many shapes, and numbers that decide on shapes, code is kept.
_MAX_PROGRAMS = 64
#: Inputs of more elements are no extents, axes or the like: their numbers are not part of a program.
_MAX_KNOWN = 1024


@dataclass(frozen=True, slots=True)
class _Program:
    """A model for arguments of some shapes.

    Attributes:
        module: The program; its parameters are the inputs, and then the weights.
        inputs: The places of the leaves of the arguments that it takes.
        weights: The names of the weights that it takes.
        returned: How its results are put together.
    """

    module: Module
    inputs: tuple[int, ...]
    weights: tuple[str, ...]
    returned: pytrees.Form


class Model:
    """A model, which is called with arrays, by place or by name.

    Each call takes the weights as they are then: they may be changed in place, and exchanged for arrays of the
    same dtype and shape in `weights`. Those of a frozen model are part of the code instead, as they were when
    that was made. A program is made for each form and shape of the arguments, and for the numbers of inputs that
    decide on shapes.

    Attributes:
        name: What messages call it.
        inputs: What it takes.
        outputs: What it returns: an array where that is one, else a tuple.
        weights: Its weights by name.
        frozen: Whether the weights are part of the code.
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        weights: dict[str, Array],
        evaluate: Callable[[Mapping[str, Any], Mapping[str, Any]], list[Any]],
        *,
        options: CompileOptions,
        bindings: Mapping[str, int],
        static: Sequence[str] = (),
        frozen: bool = False,
    ) -> None:
        """Hold a model.

        Args:
            name: What messages call it.
            inputs: What it takes.
            outputs: What it returns.
            weights: Its weights by name.
            evaluate: Appends it to the trace that runs: takes values by the names of inputs, and weights by
                theirs. It raises `Needed` where numbers must be known that are not.
            options: How it is compiled.
            bindings: Open extents that are settled.
            static: Inputs whose numbers are part of the program.
            frozen: Whether the weights are part of the code.
        """
        self.name, self.inputs, self.outputs = name, tuple(inputs), tuple(outputs)
        self.weights, self.frozen = weights, frozen
        self._evaluate, self._options, self._bindings = evaluate, options, dict(bindings)
        self._static, self._known_weights = set(static), set[str]()
        self._executables: BindingCache[Hashable, tuple[_Program, Executable]] = BindingCache(_MAX_PROGRAMS)

    def __repr__(self) -> str:
        return f"<Model {self.name}({', '.join(each.name for each in self.inputs)})>"

    @public
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the model.

        Args:
            args: Arrays, and lists of arrays for sequences; None for an optional that is empty.
            kwargs: Such by the names of inputs.

        Returns:
            The output, or a tuple of several.

        Raises:
            ArgumentError: E6101 to E6107, the arguments do not fit the inputs.
            VerificationError: E2401, a node breaks a rule of its operator for these shapes.
            UnsupportedError: E7001, a node is of a form that is not read.
        """
        values = checked(self.inputs, placed(self.name, self.inputs, args, kwargs), self._bindings)
        leaves, form = pytrees.flatten(values)
        if any(isinstance(leaf, StagedValue) for leaf in leaves):
            return self._shown(self._traced(values, self.weights))
        arrays = [np.asarray(leaf) for leaf in leaves]
        program, executable = self._program(form, arrays)
        given = [arrays[place] for place in program.inputs]
        if not self.frozen:
            given += [self.weights[name] for name in program.weights]
        return self._shown(program.returned.unflatten(executable(*given)))

    @public
    def apply(self, weights: Mapping[str, Any], /, *args: Any, **kwargs: Any) -> Any:
        """Return what the model makes of arguments with other weights, within a function that is traced.

        So `mind_mlir.grad` of a function that calls it gives gradients with respect to weights; those that
        ``weights`` leaves out are the model's.
        """
        values = checked(self.inputs, placed(self.name, self.inputs, args, kwargs), self._bindings)
        return self._shown(self._traced(values, {**self.weights, **weights}))

    @public
    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Return the program for arguments; a `mind_mlir.TensorType` may stand for an array.

        Without arguments, it is that of the types that the model says.

        Raises:
            VerificationError: E4303, the model leaves extents open, and there are no arguments; or as a call.
            ArgumentError: As a call.
            UnsupportedError: As a call.
        """
        if not args and not kwargs and self.inputs:
            found = example_types(self.inputs, self._bindings)
            if isinstance(found, str):
                raise VerificationError(
                    Diagnostic(
                        "E4303",
                        f"{found} of {self.name} is open",
                        help="give arguments or their types to lower(), or bindings={'batch': 4} when the model is read",
                    )
                )
            args = tuple(found)
        values = checked(self.inputs, placed(self.name, self.inputs, args, kwargs), self._bindings)
        leaves, form = pytrees.flatten(values)
        made = self._made(form, leaves)
        return Lowered(self._finished(made), replace(self._options, prepares=self.frozen))

    @property
    def module(self) -> Module:
        """Return the program for the types that the model says; as `lower`."""
        return self.lower().module

    @public
    def as_text(self, stage: str = "core") -> str:
        """Return the program for the types that the model says in the form that ``stage`` leaves it in."""
        return self.lower().as_text(stage)

    def _shown(self, values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 else tuple(values)

    def _traced(self, values: Sequence[Any], weights: Mapping[str, Any]) -> list[Any]:
        """Return the results of the model within the trace that runs."""
        names = [port.name for port in self.inputs]
        if STAGE.get() is None:
            raise TypeError("apply() is for functions that are traced: call the model itself")
        try:
            return self._evaluate(dict(zip(names, values, strict=True)), weights)
        except Needed as needed:
            raise self._undecided(needed) from None

    def _program(self, form: pytrees.Form, arrays: Sequence[Array]) -> tuple[_Program, Executable]:
        def make() -> tuple[_Program, Executable]:
            made = self._made(form, arrays)
            options = replace(self._options, prepares=self.frozen)
            return made, Executable(self._finished(made), options)

        found = self._executables.get((self._key(form, arrays), frozenset(self._static)), make)
        return found

    def _key(self, form: pytrees.Form, arrays: Sequence[Array]) -> Hashable:
        places = self._places(form)
        return form, tuple(
            [
                (array.dtype.str, array.shape, array.tobytes() if place in self._static else b"")
                for array, place in zip(arrays, places, strict=True)
            ]
        )

    def _places(self, form: pytrees.Form) -> list[str]:
        """Return of each leaf of the arguments the input that it is of."""
        return [port.name for port, part in zip(self.inputs, form.parts, strict=True) for _ in range(part.count)]

    def _finished(self, program: _Program) -> Module:
        if not self.frozen:
            return program.module
        taken = [each for each in self._names(program) if each[0] in self.weights]
        return with_constants(program.module, {label: self.weights[name] for name, label in taken})

    def _names(self, program: _Program) -> list[tuple[str, str]]:
        """Return the weights that a program takes, with what its parameters call them."""
        parameters = program.module.functions[0].entry.parameters
        del parameters
        labels = distinct([*(f"input{at}" for at in range(len(program.inputs))), *program.weights])
        return list(zip(program.weights, labels[len(program.inputs) :], strict=True))

    def _made(self, form: pytrees.Form, leaves: Sequence[Any]) -> _Program:
        """Trace the model until all numbers are known that it asks for."""
        while True:
            try:
                return self._made_with(form, leaves)
            except Needed as needed:
                self._learn(needed, form, leaves)

    def _learn(self, needed: Needed, form: pytrees.Form, leaves: Sequence[Any]) -> None:
        """Make the numbers known that a node asks for, or say that they are not."""
        weights = {name for name in needed.sources if name in self.weights} - self._known_weights
        inputs = (needed.sources - self.weights.keys()) - self._static
        if not weights and not inputs:
            raise self._undecided(needed)
        for leaf, place in zip(leaves, self._places(form), strict=True):
            if place in inputs and not (isinstance(leaf, np.ndarray) and _is_small(leaf)):
                raise self._undecided(needed)
        self._known_weights |= weights
        self._static |= inputs

    def _undecided(self, needed: Needed) -> UnsupportedError:
        sources = ", ".join(f"'{each}'" for each in sorted(needed.sources - self.weights.keys()))
        message = f"{needed.why} must be known when {self.name} is compiled, and "
        message += f"follows from {sources}" if sources else "is decided while it runs"
        return UnsupportedError(
            Diagnostic(
                "E7001",
                message,
                help="call the model with numbers for small integer inputs, or name inputs in from_onnx(..., static=...), "
                "for whose numbers programs are made then",
            )
        )

    def _made_with(self, form: pytrees.Form, leaves: Sequence[Any]) -> _Program:
        places = self._places(form)
        inputs = tuple([at for at, place in enumerate(places) if place not in self._static])
        for at, place in enumerate(places):
            if place in self._static and not isinstance(leaves[at], np.ndarray):
                raise self._undecided(Needed(frozenset((place,)), "what an input decides"))
        weights = tuple([name for name in self.weights if name not in self._known_weights])
        names = [port.name for port in self.inputs]

        def run(given: tuple[Any, ...]) -> list[Any]:
            all_leaves = list(leaves)
            for at, place in enumerate(inputs):
                all_leaves[place] = given[at]
            values = form.unflatten(all_leaves)
            by_name: dict[str, Any] = {name: self.weights[name] for name in self._known_weights}
            by_name |= dict(zip(weights, given[len(inputs) :], strict=True))
            return self._evaluate(dict(zip(names, values, strict=True)), by_name)

        types = [_type_of(leaves[place]) for place in inputs]
        types += [_type_of(self.weights[name]) for name in weights]
        labels = distinct([*(_label(places, at) for at in inputs), *weights])
        module, returned = traced_module(run, labels, types, self.name)
        return _Program(module, inputs, weights, returned)


def traced_module(
    run: Callable[[tuple[Any, ...]], Any], labels: Sequence[str], types: Sequence[TensorType], name: str
) -> tuple[Module, pytrees.Form]:
    """Return the module of a function of a tuple of arrays, whose parameters have names, and its results' form."""

    def main(*values: Any) -> Any:
        return run(values)

    facts: Any = main
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    facts.__signature__ = inspect.Signature([inspect.Parameter(f"v{at}", kind) for at in range(len(types))])
    main.__name__ = main.__qualname__ = name
    function = JitFunction(main, promotes=False)
    _, form = function.flatten([TensorType(DType.F32)] * len(types), {})
    unit = Unit(profile=EXTENDED_FUNCTIONS)
    instance = function.instance(unit, form, types)
    return unit.module(instance, list(labels)), instance.form


def _label(places: Sequence[str], at: int) -> str:
    """Return what a parameter is called: as its input, with a number where that is a sequence."""
    alike = [each for each, place in enumerate(places) if place == places[at]]
    return places[at] if len(alike) == 1 else f"{places[at]}.{alike.index(at)}"


def _type_of(leaf: Any) -> TensorType:
    if isinstance(leaf, TensorType):
        return leaf
    dtype = DType.from_numpy(leaf.dtype)
    if dtype is None:
        raise UnsupportedError(
            Diagnostic("E7001", f"there are no arrays of {leaf.dtype} here", help="the page on ONNX models lists what is read")
        )
    return TensorType(dtype, tuple(leaf.shape))


def _is_small(array: Array) -> bool:
    """Return whether an input may say extents, axes and the like: numbers that are part of a program."""
    return array.size <= _MAX_KNOWN and (array.dtype.kind in "iub" or array.ndim <= 1)
