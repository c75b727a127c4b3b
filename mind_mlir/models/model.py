"""`Model`: a model of another framework as a function of arrays, compiled for the shapes of its calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics import Diagnostic, UnsupportedError, VerificationError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.models.needed import Needed
from mind_mlir.models.open_extents import OpenExtent, OpenPrograms, Shapes
from mind_mlir.models.ports import Extent, Port, checked, checked_bindings, example_types, placed
from mind_mlir.models.programs import ModelProgram, traced, type_of
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.extent_ranges import checked_ends
from mind_mlir.runtime.lowered import Lowered
from mind_mlir.runtime.staged_values import STAGE, StagedValue
from mind_mlir.support import argument_checks, pytrees
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module

#: For so many shapes, and numbers that decide on shapes, code is kept.
_MAX_PROGRAMS = 64
#: Inputs of more elements are no extents, axes or the like: their numbers are not part of a program.
_MAX_KNOWN = 1024


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A program, and what runs it.

    Attributes:
        program: The program, of some extents in its range.
        module: What has been compiled.
        run: It as a function of arrays.
        shared: Whether it serves a range of extents.
    """

    program: ModelProgram
    module: Module
    run: Callable[..., Sequence[Array]]
    shared: bool = False


class _LearnedError(Exception):
    """While a program was made, inputs were found whose numbers are part of it: its key is another one."""


class Model:
    """A model, which is called with arrays, by place or by name.

    Each call takes the weights as they are then: they may be changed in place, and exchanged for arrays of
    the same dtypes and shapes in `weights`. Those of a frozen model are part of the code instead, as they
    were when that was made. A program is made for each form and shape of the arguments, and for the numbers
    of inputs that decide on shapes. Once extents that the model leaves open have differed, or with
    ``buckets``, programs serve ranges of them; where there is no such one, for `reason`, each extent has one.

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
        buckets: Sequence[int] | None = None,
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
            buckets: The greatest extents of ranges that share a program, of the extents that it leaves open.

        Raises:
            TypeError: An argument is not of the type above.
            ValueError: An extent of ``buckets`` is below 1.
        """
        self.name = argument_checks.text(name, "name")
        self.inputs = argument_checks.sequence_of(inputs, Port, "inputs")
        self.outputs = argument_checks.sequence_of(outputs, Port, "outputs")
        self.weights = argument_checks.expect(weights, dict, "weights", "a dict of arrays")
        self.frozen = argument_checks.flag(frozen, "frozen")
        if not callable(evaluate):
            argument_checks.reject("evaluate", "callable", evaluate)
        self._evaluate = evaluate
        self._options = argument_checks.expect(options, CompileOptions, "options", "CompileOptions")
        argument_checks.mapping(bindings, "bindings", "a mapping from names to integers")
        self._bindings = dict(bindings)
        #: The inputs, and the weights, whose numbers are part of programs.
        self._static = frozenset(argument_checks.names(static, "static"))
        self._known = frozenset[str]()
        self._buckets = None if buckets is None else checked_ends(buckets, "buckets")
        self._programs: BindingCache[Hashable, _Compiled] = BindingCache(_MAX_PROGRAMS)
        #: Programs for ranges of extents, by the form of arguments, and the shapes that came first.
        self._open: dict[pytrees.Form, OpenPrograms] = {}
        self._first: dict[Hashable, Shapes] = {}
        #: What programs for ranges take and return.
        self._layouts: dict[Hashable, ModelProgram] = {}
        #: What calls with arrays alone run, by their classes, dtypes and shapes; nothing of it is static.
        self._recent: dict[Any, _Compiled] = {}

    def __reduce__(self) -> Any:
        options: dict[str, Any] = {
            "options": self._options,
            "bindings": self._bindings,
            "frozen": self.frozen,
            "buckets": self._buckets,
        }
        made = partial(Model, static=sorted(self._static), **options)
        return made, (self.name, self.inputs, self.outputs, self.weights, self._evaluate)

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
            VerificationError: E2420, a node breaks a rule of its operator for these shapes.
            UnsupportedError: E7001, a node is of a form that is not read.
        """
        facts = (
            None
            if kwargs
            else tuple(
                [(type(each), getattr(each, "dtype", None), getattr(each, "shape", None)) for each in args]
            )
        )
        known = self._recent.get(facts)
        if known is not None:
            return self._run(known, args)
        values = self._values(args, kwargs)
        leaves, form = pytrees.flatten(values)
        if any(isinstance(leaf, StagedValue) for leaf in leaves):
            return self._within(values, self.weights)
        arrays = [np.asarray(leaf) for leaf in leaves]
        compiled = self._compiled(form, arrays)
        if facts is not None and all(each[0] is np.ndarray for each in facts) and not self._static:
            if len(self._recent) >= _MAX_PROGRAMS:
                self._recent.clear()
            self._recent[facts] = compiled
        return self._run(compiled, arrays)

    @public
    def apply(self, weights: Mapping[str, Any], /, *args: Any, **kwargs: Any) -> Any:
        """Return what the model makes of arguments with other weights, within a function that is traced.

        So `mind_mlir.grad` of a function that calls it gives gradients with respect to weights; those that
        ``weights`` leaves out are the model's.

        Raises:
            TypeError: Nothing is being traced.
        """
        if STAGE.get() is None:
            raise TypeError("apply() is for functions that are traced: call the model itself")
        return self._within(self._values(args, kwargs), {**self.weights, **weights})

    @public
    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Return the program for arguments; a `mind_mlir.TensorType` may stand for an array.

        Without arguments, it is that of the types that the model says. With ``buckets``, it is that of the
        range that the extents are in: its parameters are arrays of the greatest, and then the extents.

        Raises:
            VerificationError: E4303, the model leaves extents open, and there are no arguments; or as a call.
            ArgumentError: As a call.
            UnsupportedError: As a call.
        """
        if not args and not kwargs:
            args = tuple(self._types(self._bindings))
        leaves, form = pytrees.flatten(self._values(args, kwargs))
        opened = None if self._buckets is None else self._opened(form, leaves)
        module = self._module(self._program(form, leaves)) if opened is None else opened.module
        return Lowered(module, replace(self._options, prepares=self.frozen))

    @property
    def module(self) -> Module:
        """Return the program for the types that the model says; as `lower`."""
        return self.lower().module

    @public
    def as_text(self, stage: str = "core") -> str:
        """Return the program for the types that the model says in the form that ``stage`` leaves it in."""
        return self.lower().as_text(stage)

    def closed(self, bindings: Mapping[str, int] | None = None) -> Module:
        """Return the program for the types that the model says, with its weights as constants.

        Raises:
            VerificationError: E4303, an extent is open; or as a call.
            UnsupportedError: As a call.
            TypeError: ``bindings`` is no mapping from names to integers.
            ValueError: ``bindings`` names no open extent, or a negative number.
        """
        settled = {**self._bindings, **checked_bindings(bindings, self.inputs)}
        types = self._types(settled)
        leaves, form = pytrees.flatten(checked(self.inputs, types, settled))
        return self._program(form, leaves).frozen(self.weights)

    @property
    def compiled(self) -> int:
        """Return how many programs have been compiled; one for a range of extents is one."""
        alone = [each for _, each in self._programs.items() if not each.shared]
        return len(alone) + sum(each.compiled for each in self._open.values())

    @property
    def reason(self) -> str | None:
        """Return why there is no program for a range of extents, where one was wanted; else None."""
        return next(filter(None, [each.reason for each in self._open.values()]), None)

    def _run(self, compiled: _Compiled, arrays: Sequence[Array]) -> Any:
        program = compiled.program
        given = [arrays[place] for place in program.inputs]
        if not self.frozen:
            weights = self.weights
            given += [weights[name] for name in program.weights.values()]
        return _single(program.returned.unflatten(compiled.run(*given)))

    def _types(self, bindings: Mapping[str, int]) -> Sequence[Any]:
        found = example_types(self.inputs, bindings)
        if not isinstance(found, str):
            return found
        raise VerificationError(
            Diagnostic(
                "E4303",
                f"{found} of {self.name} is open",
                help="give arguments, or say what it is: bindings={'batch': 4} of from_onnx, "
                "--bind batch=4 on the command line",
            )
        )

    def _values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        return checked(self.inputs, placed(self.name, self.inputs, args, kwargs), self._bindings)

    def _within(self, values: Sequence[Any], weights: Mapping[str, Any]) -> Any:
        """Return the results of the model within the trace that runs."""
        names = [port.name for port in self.inputs]
        try:
            return _single(self._evaluate(dict(zip(names, values, strict=True)), weights))
        except Needed as needed:
            raise self._undecided(needed) from None

    def _compiled(self, form: pytrees.Form, arrays: Sequence[Array]) -> _Compiled:
        def make() -> _Compiled:
            found = self._opened(form, arrays) if self._is_varied(form, arrays) else None
            if found is None:
                program = self._program(form, arrays)
                module = self._module(program)
            if self._static != static:
                raise _LearnedError
            if found is not None:
                return found
            options = replace(self._options, prepares=self.frozen)
            return _Compiled(program, module, Executable(module, options))

        places = self._places(form)
        while True:
            static = self._static
            facts = [
                (array.dtype, array.shape, array.tobytes() if place in static else b"")
                for array, place in zip(arrays, places, strict=True)
            ]
            try:
                return self._programs.get((static, form, tuple(facts)), make)
            except _LearnedError:
                continue

    def _is_varied(self, form: pytrees.Form, arrays: Sequence[Array]) -> bool:
        """Return whether extents differ from call to call: arguments of this form have had other shapes."""
        shapes = tuple([array.shape for array in arrays])
        first = self._first.setdefault((form, tuple([array.dtype for array in arrays])), shapes)
        return self._buckets is not None or first != shapes

    def _opened(self, form: pytrees.Form, leaves: Sequence[Any]) -> _Compiled | None:
        """Return the program for the ranges that extents are in; None where there is none."""
        found = self._open.get(form)
        if found is None:
            options = replace(self._options, prepares=self.frozen)
            found = self._open[form] = OpenPrograms(self._open_extents(form), options, self._buckets)
        places, programs = self._places(form), list[ModelProgram]()
        static = [
            leaf.tobytes()
            for leaf, place in zip(leaves, places, strict=True)
            if place in self._static and isinstance(leaf, np.ndarray)
        ]

        def trace(shapes: Shapes) -> Module:
            given = [
                leaf if leaf.shape == shape else type_of(leaf).with_shape(shape)
                for leaf, shape in zip(leaves, shapes, strict=True)
            ]
            programs.append(self._program(form, given))
            return programs[-1].module

        def constants() -> Mapping[str, Array] | None:
            weights = programs[-1].weights.items() if self.frozen else ()
            return {label: self.weights[name] for label, name in weights} or None

        shapes = tuple([tuple(leaf.shape) for leaf in leaves])
        more = (self._static, *static, *[str(leaf.dtype) for leaf in leaves])
        made = found.program(shapes, trace, constants, more)
        if made is None:
            return None
        key = (form, self._static, self._known)
        if programs:
            self._layouts[key] = programs[-1]
        return _Compiled(self._layouts[key], made[0].executable.module, made[1], shared=True)

    def _open_extents(self, form: pytrees.Form) -> list[OpenExtent]:
        """Return the extents that the model leaves open, of inputs that are tensors, but for settled ones."""
        found, places = [], self._places(form)
        fixed = {*self._bindings}
        for port in self.inputs:
            names = [each.name for each in port.shape or () if isinstance(each, Extent)]
            fixed |= {*names} if port.kind != "tensor" or port.name in self._static else set()
        for port in self.inputs:
            for axis, extent in enumerate(port.shape or () if port.kind == "tensor" else ()):
                if isinstance(extent, Extent) and extent.name not in fixed - {""}:
                    name = extent.name or f"{port.name}_{axis}"
                    found.append(OpenExtent(places.index(port.name), axis, name))
        return found

    def _module(self, program: ModelProgram) -> Module:
        return program.frozen(self.weights) if self.frozen else program.module

    def _places(self, form: pytrees.Form) -> list[str]:
        """Return of each leaf of the arguments the input that it is of."""
        return [
            port.name for port, part in zip(self.inputs, form.parts, strict=True) for _ in range(part.count)
        ]

    def _program(self, form: pytrees.Form, leaves: Sequence[Any]) -> ModelProgram:
        """Trace the model until all numbers are known that it asks for."""
        while True:
            try:
                return self._traced(form, leaves)
            except Needed as needed:
                self._learn(needed, form, leaves)

    def _traced(self, form: pytrees.Form, leaves: Sequence[Any]) -> ModelProgram:
        places, names = self._places(form), [port.name for port in self.inputs]
        for place, leaf in zip(places, leaves, strict=True):
            if place in self._static and not isinstance(leaf, np.ndarray):
                raise self._undecided(Needed(frozenset((place,)), "what an input decides"))
        open_ = [at for at, place in enumerate(places) if place not in self._static]
        weights = [name for name in self.weights if name not in self._known]

        def run(given: Sequence[Any]) -> list[Any]:
            now = dict(enumerate(leaves)) | dict(zip(open_, given, strict=False))
            values = form.unflatten([now[at] for at in range(len(leaves))])
            by_name: dict[str, Any] = {name: self.weights[name] for name in self._known}
            by_name |= dict(zip(weights, given[len(open_) :], strict=True))
            return self._evaluate(dict(zip(names, values, strict=True)), by_name)

        inputs = {at: (_label(places, at), type_of(leaves[at])) for at in open_}
        types = {name: type_of(self.weights[name]) for name in weights}
        return traced(run, inputs, types, self.name, [port.name for port in self.outputs])

    def _learn(self, needed: Needed, form: pytrees.Form, leaves: Sequence[Any]) -> None:
        """Make the numbers known that a node asks for, or say that they are not."""
        weights = frozenset(needed.sources & self.weights.keys()) - self._known
        inputs = needed.sources - self.weights.keys() - self._static
        if not weights and not inputs:
            raise self._undecided(needed)
        for leaf, place in zip(leaves, self._places(form), strict=True):
            if place in inputs and not (isinstance(leaf, np.ndarray) and _is_small(leaf)):
                raise self._undecided(needed)
        self._known |= weights
        self._static |= inputs
        self._recent = {}

    def _undecided(self, needed: Needed) -> UnsupportedError:
        sources = ", ".join(f"'{each}'" for each in sorted(needed.sources - self.weights.keys()))
        rest = f"follows from {sources}" if sources else "is decided while it runs"
        return UnsupportedError(
            Diagnostic(
                "E7001",
                f"{needed.why} must be known when {self.name} is compiled, and {rest}",
                help="call it with numbers for small inputs of integers, or name inputs in "
                "from_onnx(..., static=...), for whose numbers programs are made then",
            )
        )


def _single(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


def _label(places: Sequence[str], at: int) -> str:
    """Return what a parameter is called: as its input, with a number where that is a sequence."""
    alike = [each for each, place in enumerate(places) if place == places[at]]
    return places[at] if len(alike) == 1 else f"{places[at]}.{alike.index(at)}"


def _is_small(array: Array) -> bool:
    """Return whether an input may say extents, axes and the like: numbers that are part of a program."""
    return array.size <= _MAX_KNOWN and (array.dtype.kind in "iub" or array.ndim <= 1)
