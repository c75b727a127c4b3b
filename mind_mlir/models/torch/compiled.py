"""Graphs as functions of tensors: compiled once for the extents and numbers that a call brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.models.torch.graph import FxGraph, Ref
from mind_mlir.models.torch.running import GraphFunction, check, is_random
from mind_mlir.models.torch.tensors import as_array, load_torch, reader_of, writer_of
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.staged import DEFAULT_MAX_SIGNATURES
from mind_mlir.tracing.jit import JitFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.models.torch.graph import ArrayType
    from mind_mlir.support.options import CompileOptions


@dataclass(slots=True)
class GraphProgram:
    """The program of a graph for some extents and numbers.

    Attributes:
        module: The program; None where it returns nothing but its inputs, and numbers.
        executable: What runs it.
        outputs: For each output, how it is had from arrays of the program and from inputs.
    """

    module: Module | None
    executable: Executable | None
    outputs: list[Callable[[Sequence[Array], Sequence[Any]], Any]]


class CompiledGraph:
    """A graph that is called with tensors and integers, in the order of its inputs.

    Outputs that are inputs are handed on as they are, others are new tensors.

    Attributes:
        graph: The graph.
        options: How its programs are compiled.
    """

    def __init__(
        self,
        graph: FxGraph,
        options: CompileOptions,
        *,
        constants: Mapping[str, Any] | None = None,
        lasting: Collection[int] = (),
        orders: Sequence[Sequence[int] | None] = (),
    ) -> None:
        """Check that all operators are known.

        Args:
            graph: The graph.
            options: How its programs are compiled.
            constants: Inputs, by name, that are the same at each call, and become part of the code.
            lasting: The places of inputs that are mostly the same tensors from call to call: weights.
            orders: For each output, the order of its dimensions in memory, where it is another one.

        Raises:
            UnsupportedError: E7001, operators are not known.
        """
        check(graph)
        self.graph, self.options = graph, options
        self._constants = {name: as_array(tensor, name) for name, tensor in (constants or {}).items()}
        self._orders = list(orders) or [None] * len(graph.outputs)
        self._is_random = is_random(graph)
        self._numbers = [place for place, each in enumerate(graph.inputs) if each.type is None]
        self._places = [
            place
            for place, each in enumerate(graph.inputs)
            if each.type is not None and each.name not in self._constants
        ]
        self._weights = _Weights([place for place in self._places if place in lasting], self)
        self._others = [
            (number, place, reader_of(self.type_of(place).dtype))
            for number, place in enumerate(self._places)
            if place not in self._weights.places
        ]
        is_open = any(None in self.type_of(place).shape for place in self._places)
        self._is_fixed = not self._numbers and not is_open
        self._programs: BindingCache[Hashable, GraphProgram] = BindingCache(DEFAULT_MAX_SIGNATURES)
        self._only: GraphProgram | None = None

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Run the graph.

        Raises:
            ArgumentError: A tensor has another dtype or shape, or is none of this machine's memory.
            ExecutionError: As a call of an `Executable`.
        """
        try:
            arrays = self._weights.arrays(values)
            for number, place, read in self._others:
                arrays[number] = read(values[place])
        except (TypeError, RuntimeError, AttributeError):  # said with care, or mended
            arrays = self._with_care(values)
        program = self._only or self._program(arrays, values)
        executable = program.executable
        if executable is None:
            found: Sequence[Array] = ()
        elif self._is_random:
            found = executable(*arrays, new_seed())
        else:
            found = executable(*arrays)
        return [output(found, values) for output in program.outputs]

    def type_of(self, place: int) -> ArrayType:
        """Return the type of an input that is an array."""
        found = self.graph.inputs[place].type
        assert found is not None, "it is no number"
        return found

    @property
    def places(self) -> Sequence[int]:
        """Return the places of the inputs that the program takes."""
        return self._places

    def _with_care(self, values: Sequence[Any]) -> list[Array]:
        return [as_array(values[place], self.graph.inputs[place].name) for place in self._places]

    def prepare(self) -> None:
        """Compile the graph now, where all extents and numbers are known."""
        if self._is_fixed:
            self._program([], [])

    def module_for(self, values: Sequence[Any]) -> Module | None:
        """Return the program for the arguments of a call, before it is compiled."""
        arrays = self._with_care(values)
        return self._traced([int(values[place]) for place in self._numbers], [each.shape for each in arrays])[
            1
        ]

    def program(self, values: Sequence[Any]) -> GraphProgram:
        """Return the program for the arguments of a call."""
        return self._program(self._with_care(values), values)

    def _program(self, arrays: Sequence[Array], values: Sequence[Any]) -> GraphProgram:
        if self._is_fixed:
            self._only = self._programs.get((), lambda: self._made((), None))
            return self._only
        numbers = tuple([int(values[place]) for place in self._numbers])
        shapes = tuple([array.shape for array in arrays])
        return self._programs.get((numbers, shapes), lambda: self._made(numbers, shapes))

    def _made(self, numbers: Sequence[int], shapes: Sequence[tuple[int, ...]] | None) -> GraphProgram:
        function, module = self._traced(numbers, shapes)
        executable = None if module is None else Executable(module, self.options)
        inputs = {each.name: place for place, each in enumerate(self.graph.inputs)}
        made: list[Callable[[Sequence[Array], Sequence[Any]], Any]] = []
        count = 0
        for place, each in enumerate(self.graph.outputs):
            if place in function.numbers:
                made.append(_always(function.numbers[place]))
            elif not isinstance(each, Ref):
                made.append(_always(each))
            elif each.name in inputs:
                made.append(_input(inputs[each.name]))
            else:
                assert executable is not None, "it computes this output"
                dtype = executable.results[count].dtype
                made.append(_array(count, writer_of(dtype), self._orders[place]))
                count += 1
        return GraphProgram(module, executable, made)

    def _traced(
        self, numbers: Sequence[int], shapes: Sequence[tuple[int, ...]] | None
    ) -> tuple[GraphFunction, Module | None]:
        """Return the function for numbers and shapes, and its program, where it computes anything."""
        inputs = {each.name for each in self.graph.inputs}
        outputs = enumerate(self.graph.outputs)
        computed = [place for place, each in outputs if isinstance(each, Ref) and each.name not in inputs]
        known: list[int | None] = [None] * len(self.graph.inputs)
        for place, number in zip(self._numbers, numbers, strict=True):
            known[place] = number
        function = GraphFunction(self.graph, known, computed, self._orders)
        if not computed:
            return function, None
        module = JitFunction(function, self.options, promotes=False).lower(*self._types(shapes)).module
        return function, with_constants(module, self._constants) if self._constants else module

    def _types(self, shapes: Sequence[tuple[int, ...]] | None) -> list[TensorType]:
        """Return the types of the arrays that the graph's function takes, the constants among them."""
        extents = {} if shapes is None else dict(zip(self._places, shapes, strict=True))
        types = []
        for place, each in enumerate(self.graph.inputs):
            if each.type is not None:
                shape = extents[place] if place in extents else _known(each.type)
                types.append(TensorType(each.type.dtype, shape))
        return [*types, TensorType(DType.UI64)] if self._is_random else types


class _Weights:
    """Inputs that are mostly the same tensors: their arrays are kept while their memory is the same.

    Attributes:
        places: Which inputs of the graph they are.
    """

    def __init__(self, places: Sequence[int], compiled: CompiledGraph) -> None:
        """Begin without arrays."""
        self.places = frozenset(places)
        self._listed = [
            (number, place, reader_of(compiled.type_of(place).dtype))
            for number, place in enumerate(compiled.places)
            if place in self.places
        ]
        self._count = len(compiled.places)
        #: Addresses and arrays are replaced together, for several threads may call.
        self._known: tuple[list[int], list[Any]] = ([], [None] * self._count)

    def arrays(self, values: Sequence[Any]) -> list[Any]:
        """Return the arrays of a program's inputs, with None for those that are no weights."""
        # Of tensors that are not contiguous, which only torch's steps tell apart, none is kept.
        addresses = [
            tensor.data_ptr() if (tensor := values[place]).is_contiguous() else 0
            for _, place, _ in self._listed
        ]
        known, arrays = self._known
        if addresses != known or 0 in addresses:
            # An array keeps its memory, so that nothing else can come to lie there.
            arrays = [None] * self._count
            for number, place, read in self._listed:
                arrays[number] = read(values[place])
            self._known = (addresses, arrays)
        return arrays.copy()


def _known(type_: ArrayType) -> tuple[int, ...]:
    extents = [each for each in type_.shape if each is not None]
    assert len(extents) == len(type_.shape), "all extents are known"
    return tuple(extents)


def _always(value: Any) -> Callable[[Sequence[Array], Sequence[Any]], Any]:
    return lambda _, __: value


def _input(place: int) -> Callable[[Sequence[Array], Sequence[Any]], Any]:
    return lambda _, values: values[place]


def _array(
    count: int, write: Callable[[Array], Any], order: Sequence[int] | None
) -> Callable[[Sequence[Array], Sequence[Any]], Any]:
    if order is None:
        return lambda arrays, _: write(arrays[count])
    back = [int(place) for place in np.argsort(order)]
    return lambda arrays, _: write(arrays[count]).permute(back)


def new_seed() -> Array:
    """Return a seed, which torch's generator draws."""
    torch = load_torch()
    return np.array(torch.randint(0, 2**63 - 1, ()).item(), np.uint64)
