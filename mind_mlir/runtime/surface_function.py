"""`SurfaceFunction`: a function of a `.mind` program, as Python calls it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics import ArgumentError, Diagnostic, VerificationError
from mind_mlir.diagnostics.display import brief
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.mind.elaboration.declarations import declared
from mind_mlir.languages.mind.elaboration.programs import function_of, instantiate, named_results
from mind_mlir.languages.mind.elaboration.resolve import resolved
from mind_mlir.languages.mind.elaboration.types import spell_dtype
from mind_mlir.languages.mind.program import SurfaceProgram, verified
from mind_mlir.runtime.staged import DEFAULT_MAX_SIGNATURES, StagedFunction
from mind_mlir.runtime.staged_values import NUMBERS, WeakType
from mind_mlir.runtime.surface_arguments import arranged, bound_types, result_form
from mind_mlir.support import argument_checks, pytrees
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.builders.builder import Builder
    from mind_mlir.ir.module import Function
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.mind.elaboration.file import File
    from mind_mlir.languages.staging import Instance, Unit
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.support.pytrees import Form


#: So many functions that came with pickles are kept for those that come again.
_KEPT = 64


class SurfaceFunction(StagedFunction):
    """A function of a program of the surface language; `mind_mlir.jit` and `compile` make one.

    It is called with arrays, and with dicts, named tuples or dataclasses for structs; named dimensions are
    what the arguments say. It is compiled for each dtypes, shapes and containers that it is called with.

    Attributes:
        program: The program.
        bindings: What some dimensions are always.
    """

    def __init__(
        self,
        program: SurfaceProgram,
        function: str,
        options: CompileOptions | None = None,
        *,
        bindings: Mapping[str, int] = FrozenDict(),
        max_signatures: int = DEFAULT_MAX_SIGNATURES,
    ) -> None:
        """Hold what is called.

        Raises:
            VerificationError: The program breaks a rule, or has no such function (E2002).
            TypeError: An argument is not of the type above.
            ValueError: ``bindings`` names a dimension that no function has, or an extent below 1.
        """
        self.program = verified(
            argument_checks.expect(program, SurfaceProgram, "program", "a SurfaceProgram")
        )
        self.bindings = FrozenDict(self.program.checked_bindings(bindings))
        self._file = _file(self.program)
        self._node = function_of(self._file, argument_checks.text(function, "function"))
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(each.name.text, kind) for each in self._node.parameters]
        super().__init__(function, inspect.Signature(parameters), options, max_signatures=max_signatures)

    def __str__(self) -> str:
        return self.program.source.text[slice(*self._node.head)].rstrip()

    def _made_of(self) -> tuple[Callable[..., SurfaceFunction], tuple[object, ...]]:
        shown = self.program.source.name  # which equal programs may have different ones of
        return _again, (self.program, shown, self.name, self.options, self.bindings, self.max_signatures)

    def flatten(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Form]:
        """Return the leaves of a call's arguments, and their form; numbers take the declared dtypes."""
        leaves, form = super().flatten(args, kwargs)
        if any(type(leaf) in NUMBERS for leaf in leaves):
            dtypes = arranged(self._file, self._node, form).dtypes
            wrong = []
            for place, leaf in enumerate(leaves):
                if type(leaf) in NUMBERS and place in dtypes:
                    try:
                        leaves[place] = _number(leaf, dtypes[place])
                    except OverflowError:
                        wrong.append(_too_large(self.names(form)[place], leaf, dtypes[place]))
            if wrong:
                raise ArgumentError(wrong)
        return leaves, form

    def stage(self, unit: Unit, form: Form, types: Sequence[TensorType]) -> Instance:
        """Make the function for arguments of a form and of types; see `StagedFunction.stage`.

        Raises:
            ArgumentError: The arguments are not what the parameters declare (E61xx).
            VerificationError: Something is wrong for these types.
        """
        file = _file(self.program)
        file.unit = unit
        arrangement = arranged(file, self._node, form)
        taken = [_declared(types[place], arrangement.dtypes.get(place)) for place in arrangement.order]
        declared_types, extents = bound_types(file, self._node, taken, self.bindings)
        made = instantiate(file, self.name, declared_types, extents)
        if made is None or file.findings:
            raise VerificationError(file.findings)
        returned, places = result_form(made.form, arrangement.forms)

        def build(name: str) -> Function:
            builder = unit.builder()
            parameters = [builder.parameter(TensorType(type_.dtype, type_.shape)) for type_ in types]
            operands = [
                _converted(builder, parameters[place], type_)
                for place, type_ in zip(arrangement.order, taken, strict=True)
            ]
            results = unit.call(builder, made, operands)
            return builder.function(name, [results[place] for place in places], public=False)

        names = named_results(self._node, made).result_names
        return replace(
            unit.define(self.name, build, returned), result_names=tuple([names[place] for place in places])
        )

    def prepare(self) -> None:
        """Compile it now, where its parameters are tensors of shapes that are known."""
        types = [
            resolved(self._file, parameter.type, self.bindings) if parameter.type else None
            for parameter in self._node.parameters
        ]
        tensors = [type_ for type_ in types if isinstance(type_, TensorType)]
        if len(tensors) == len(types):
            _, form = pytrees.flatten(((0.0,) * len(tensors), {}))
            kinds = tuple([(type_.dtype.numpy, type_.shape) for type_ in tensors])
            self._program(form, tensors, kinds)


def _number(leaf: Any, dtype: DType) -> Any:
    """Return a number as an array of the declared dtype; as it is where that is of another kind."""
    return np.asarray(leaf, dtype.numpy) if np.can_cast(type(leaf), dtype.numpy, "same_kind") else leaf


def _too_large(name: str, leaf: int, dtype: DType) -> Diagnostic:
    return Diagnostic(
        "E6103",
        f"argument '{name}' is {brief(str(leaf))}, which no {spell_dtype(dtype)} is",
        help="declare a larger dtype",
        context=FrozenDict({"input": name, "expected": spell_dtype(dtype)}),
    )


def _declared(type_: TensorType, dtype: DType | None) -> TensorType:
    """Return the type in which an argument is taken: a number of a trace takes the dtype that is declared."""
    if dtype is None or not isinstance(type_, WeakType):
        return TensorType(type_.dtype, type_.shape)
    kept = np.can_cast(type_.dtype.numpy, dtype.numpy, "same_kind")
    return TensorType(dtype if kept else type_.dtype, type_.shape)


def _converted(builder: Builder, value: Value, type_: TensorType) -> Value:
    return value if value.type == type_ else builder.emit("Cast", value, dtype=type_.dtype)


def _file(program: SurfaceProgram) -> File:
    return declared(program.source, program.tree, program.foreign)


def surface_function(
    program: SurfaceProgram,
    name: str | None,
    options: CompileOptions,
    bindings: Mapping[str, int] | None,
    most: int,
) -> SurfaceFunction:
    """Return the function that is meant: the one called ``name``, or the only entry."""
    if name is None:
        entries = program.entries
        if len(entries) != 1:
            raise VerificationError(
                Diagnostic(
                    "E2102",
                    f"the program has {len(entries)} functions that may be meant",
                    help=f"name one of them: {', '.join(entries)}"
                    if entries
                    else "write a function: fn main() -> ...",
                    context=FrozenDict({"functions": entries}),
                )
            )
        (name,) = entries
    given = FrozenDict() if bindings is None else bindings
    return SurfaceFunction(program, name, options, bindings=given, max_signatures=most)


@functools.lru_cache(maxsize=_KEPT)
def _again(
    program: SurfaceProgram,
    shown: str,
    name: str,
    options: CompileOptions,
    bindings: Mapping[str, int],
    most: int,
) -> SurfaceFunction:
    """Return a function that has been pickled: checking a program takes milliseconds, once for each."""
    return SurfaceFunction(program, name, options, bindings=bindings, max_signatures=most)
