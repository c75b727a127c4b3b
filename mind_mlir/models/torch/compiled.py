"""Graphs as functions of tensors: compiled once for the extents and numbers that a call brings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.models.open_extents import OpenExtent, OpenPrograms, Shapes
from mind_mlir.models.torch.graph import ArrayType, FxGraph, Ref
from mind_mlir.models.torch.running import GraphFunction, check, is_random, numbers_of
from mind_mlir.models.torch.tensors import as_array, load_torch, reader_of, writer_of
from mind_mlir.ops.open_axes import NotOpen
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.staged import DEFAULT_MAX_SIGNATURES
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.tracing.jit import JitFunction

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions


@dataclass(slots=True)
class GraphProgram:
    """The program of a graph for some extents and numbers.

    Attributes:
        module: The program; None where it returns nothing but its inputs, and numbers.
        run: What runs it.
        outputs: For each output, how it is had from arrays of the program and from inputs.
        shared: Whether it serves a range of extents.
    """

    module: Module | None
    run: Callable[..., Sequence[Array]] | None
    outputs: list[Callable[[Sequence[Array], Sequence[Any]], Any]]
    shared: bool = False


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
        buckets: object = None,
    ) -> None:
        """Check that all operators are known.

        Args:
            graph: The graph.
            options: How its programs are compiled.
            constants: Inputs, by name, that are the same at each call, and become part of the code.
            lasting: The places of inputs that are mostly the same tensors from call to call: weights.
            orders: For each output, the order of its dimensions in memory, where it is another one.
            buckets: The greatest extents of ranges that share a program, of open extents; those of
                `mind_mlir.runtime.extent_ranges` without any.

        Raises:
            UnsupportedError: E7001, operators are not known.
            TypeError: ``buckets`` is no sequence of integers.
            ValueError: One of them is below 1.
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
        self._number_outputs = frozenset[int]()
        extents, reason = self._open_extents()
        self.open = OpenPrograms(extents, options, buckets, reason)

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
        run = program.run
        if run is None:
            found: Sequence[Array] = ()
        elif self._is_random:
            found = run(*arrays, new_seed())
        else:
            found = run(*arrays)
        return [output(found, values) for output in program.outputs]

    @property
    def compiled(self) -> int:
        """Return how many programs have been compiled; one for a range of extents is one."""
        alone = [each for _, each in self._programs.items() if not each.shared]
        return len(alone) + self.open.compiled

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
        return self._traced(self._shapes(self._with_care(values), values))[1]

    def program(self, values: Sequence[Any]) -> GraphProgram:
        """Return the program for the arguments of a call."""
        return self._program(self._with_care(values), values)

    def _program(self, arrays: Sequence[Array], values: Sequence[Any]) -> GraphProgram:
        if self._is_fixed:
            self._only = self._programs.get((), lambda: self._made(None))
            return self._only
        shapes = self._shapes(arrays, values)
        return self._programs.get(shapes, lambda: self._made(shapes))

    def _shapes(self, arrays: Sequence[Array], values: Sequence[Any]) -> Shapes:
        """Return what decides on the program of a call: shapes, and the numbers as one more."""
        numbers = tuple([int(values[place]) for place in self._numbers])
        return (*[array.shape for array in arrays], numbers)

    def _open_extents(self) -> tuple[list[OpenExtent], str | None]:
        """Return the extents that torch has names for, or why there are none."""
        found = []
        places = [(number, place) for number, place in enumerate(self._places)]
        texts = [
            (number, axis, text)
            for number, place in places
            for axis, text in enumerate(self.graph.inputs[place].extents)
            if text
        ]
        for axis, place in enumerate(self._numbers):
            texts += [(len(places), axis, text) for text in self.graph.inputs[place].extents]
        for text in texts:
            extent = OpenExtent.of(*text)
            if extent is None:
                return [], f"an extent is {text[2]}, which may be that of several dimensions in any order"
            found.append(extent)
        return found, None

    def _made(self, shapes: Shapes | None) -> GraphProgram:
        opened = None
        if shapes is not None:
            opened = self.open.program(shapes, self._open_traced, lambda: self._constants)
        module: Module | None
        run: Callable[..., Sequence[Array]] | None
        if opened is not None and shapes is not None:
            module, run = opened[0].executable.module, opened[1]
            dtypes = [each.dtype for each in opened[0].executable.results]
            numbers = numbers_of(self.graph, self._number_outputs, self._stand_ins(shapes))
        else:
            function, traced = self._traced(shapes)
            module, numbers = traced, function.numbers
            run = executable = None if module is None else Executable(module, self.options)
            dtypes = [] if executable is None else [each.dtype for each in executable.results]
        inputs = {each.name: place for place, each in enumerate(self.graph.inputs)}
        made: list[Callable[[Sequence[Array], Sequence[Any]], Any]] = []
        count = 0
        for place, each in enumerate(self.graph.outputs):
            if place in numbers:
                made.append(_always(numbers[place]))
            elif not isinstance(each, Ref):
                made.append(_always(each))
            elif each.name in inputs:
                made.append(_input(inputs[each.name]))
            else:
                made.append(_array(count, writer_of(dtypes[count]), self._orders[place]))
                count += 1
        return GraphProgram(module, run, made, shared=opened is not None)

    def _traced(
        self, shapes: Shapes | None, *, constants: bool = True
    ) -> tuple[GraphFunction, Module | None]:
        """Return the function for shapes and numbers, and its program, where it computes anything."""
        inputs = {each.name for each in self.graph.inputs}
        outputs = enumerate(self.graph.outputs)
        computed = [place for place, each in outputs if isinstance(each, Ref) and each.name not in inputs]
        function = GraphFunction(self.graph, self._known_numbers(shapes), computed, self._orders)
        if not computed:
            return function, None
        module = JitFunction(function, self.options, promotes=False).lower(*self._types(shapes)).module
        return function, with_constants(module, self._constants) if self._constants and constants else module

    def _open_traced(self, shapes: Shapes) -> Module | None:
        """Return the program for shapes, where numbers among its outputs can be had without it."""
        function, module = self._traced(shapes, constants=False)
        self._number_outputs = frozenset(function.numbers)
        if numbers_of(self.graph, self._number_outputs, self._stand_ins(shapes)) != function.numbers:
            raise NotOpen("it returns numbers that follow from more than its extents")
        return module

    def _stand_ins(self, shapes: Shapes) -> list[Any]:
        """Return the inputs as numbers, and as arrays that have shapes alone."""
        found: list[Any] = self._known_numbers(shapes)
        for place, shape in zip(self._places, shapes, strict=False):
            found[place] = np.broadcast_to(np.zeros((), bool), shape)
        return found

    def _known_numbers(self, shapes: Shapes | None) -> list[int | None]:
        known: list[int | None] = [None] * len(self.graph.inputs)
        for place, number in zip(self._numbers, shapes[-1] if shapes else (), strict=True):
            known[place] = number
        return known

    def _types(self, shapes: Shapes | None) -> list[TensorType]:
        """Return the types of the arrays that the graph's function takes, the constants among them."""
        extents = {} if shapes is None else dict(zip(self._places, shapes, strict=False))
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
