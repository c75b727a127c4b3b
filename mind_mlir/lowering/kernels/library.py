"""Calls of the kernels, memory as they take it, and their code.

A module only declares the kernels that it calls, in the LLVM dialect, too: whoever runs it in this process
makes their code apart. Where it has to stand alone, as a text or an object file, `link_library` puts it in.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mind_mlir.lowering.emission.emitter import PRIVATE_ATTRIBUTE, Emitter, Index
from mind_mlir.lowering.kernels.activations import ActivationsKernel
from mind_mlir.lowering.kernels.gemv import AxpyKernel, DotKernel, JoinKernel
from mind_mlir.lowering.kernels.llvm_function import MicroKernel, function_of
from mind_mlir.lowering.kernels.packing import PackKernel
from mind_mlir.lowering.kernels.product import PanelProductKernel, ProductKernel
from mind_mlir.lowering.kernels.quantized import QuantizedKernel
from mind_mlir.lowering.kernels.quantized_tiles import PanelKernel, TileKernel
from mind_mlir.lowering.kernels.tile_product import TileProductKernel
from mind_mlir.lowering.kernels.vnni import are_normal
from mind_mlir.mlir.bindings import Attribute, Module, Operation, Type, Value, func, ir, memref
from mind_mlir.mlir.memory import metadata_of
from mind_mlir.mlir.passes import find_named
from mind_mlir.mlir.records import read_record, record_attribute
from mind_mlir.mlir.values import name_of
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def macro_tile_memory(type_: Type, *, is_shared: bool) -> Value:
    """Emit memory of ``type_`` for one macro-tile of a product: of its thread, where threads share these."""
    if not is_shared:
        return memref.AllocOp(type_, [], []).result
    return private_memory(type_, alignment=ALIGNMENT)


def private_memory(type_: Type, alignment: int | None = None) -> Value:
    """Emit memory of ``type_`` for a chunk: none of another one reads what is written there."""
    op = memref.AllocaOp(type_, [], [], alignment=alignment)
    op.operation.attributes[PRIVATE_ATTRIBUTE] = ir.UnitAttr.get()
    return op.result


def marked_operations(module: Module, attribute: str) -> Iterator[tuple[Emitter, list[Operation]]]:
    """Iterate over functions on memory with operations that ``attribute`` marks: what emits, and these."""
    for function in list(module.body.operations):
        if isinstance(function, func.FuncOp) and function.regions[0].blocks:
            ops = [
                op.operation for op in find_named(function, "linalg.generic") if attribute in op.attributes
            ]
            if ops:
                yield Emitter(function), ops


#: What modules call.
Kernel: TypeAlias = MicroKernel

#: What a declared kernel is, on its way down: a dictionary. Marks its code in the LLVM dialect.
LIBRARY_ATTRIBUTE = "mind.library"

_KINDS: dict[str, type[Any]] = {
    kernel.kind: kernel
    for kernel in (
        *(ProductKernel, PackKernel, AxpyKernel, JoinKernel, DotKernel),
        *(ActivationsKernel, QuantizedKernel, PanelKernel, TileKernel, TileProductKernel),
    )
}


class KernelBuffer:
    """A buffer that a kernel is given.

    Args:
        base: The pointer to its elements.
        first: Where it begins there.
        strides: How far it moves: what the kernel calls ``x_row`` of a buffer ``x`` is ``row``.
    """

    def __init__(self, base: Value, first: Index = 0, **strides: Index) -> None:
        self.base = base
        self.numbers = {"first": first, **strides}

    @staticmethod
    def of(room: Value, **strides: Index) -> KernelBuffer:
        """Emit where a room of a thread lies."""
        base, first, _ = metadata_of(room)
        return KernelBuffer(base, first, **strides)

    def with_steps(self, steps: int, **strides: Index) -> KernelBuffer:
        """Return a factor that moves from one block of so many steps to the next, and has other strides."""
        return KernelBuffer(self.base, **self.numbers, block=self.numbers["step"] * steps, **strides)


class Library:
    """The kernels that a module calls."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._declared = {
            name_of(op): ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).inputs
            for op in module.body.operations
            if LIBRARY_ATTRIBUTE in op.attributes
        }

    def call(self, kernel: Kernel, operands: Sequence[Value]) -> None:
        """Emit a call of ``kernel``, which is declared if need be."""
        types = self._declared.get(kernel.name)
        if types is None:
            types = self._declared[kernel.name] = [operand.type for operand in operands]
            self._declare(kernel, types)
        given = [_as(operand, type_) for operand, type_ in zip(operands, types, strict=True)]
        func.CallOp([], ir.FlatSymbolRefAttr.get(kernel.name), given)

    def call_with(
        self,
        e: Emitter,
        kernel: Kernel,
        operands: Sequence[KernelBuffer],
        numbers: Mapping[str, Index],
        rest: Sequence[Value] = (),
    ) -> None:
        """Emit a call of ``kernel`` with buffers, other numbers by their names, and the rest."""
        known: dict[str, Index] = {}
        for buffer, each in zip(kernel.buffers, operands, strict=True):
            known |= {f"{buffer}_{name}": number for name, number in each.numbers.items()}
        known |= numbers
        given = (known.get(name, int(name in kernel.ones)) for name in kernel.arguments)
        self.call(kernel, [*(each.base for each in operands), *(e.index(each) for each in given), *rest])

    def _declare(self, kernel: Kernel, types: Sequence[Type]) -> None:
        with ir.InsertionPoint.at_block_begin(self._module.body), ir.Location.unknown():
            function = func.FuncOp(kernel.name, (list(types), []), visibility="private")
        function.attributes["llvm.bareptr"] = ir.UnitAttr.get()
        function.attributes[LIBRARY_ATTRIBUTE] = record_attribute(kernel, kind=kernel.kind)


def _as(pointer: Value, type_: Type) -> Value:
    """Emit ``pointer`` as a kernel is declared: it takes bf16 as words, too."""
    if pointer.type == type_:
        return pointer
    cast = ir.Operation.create("builtin.unrealized_conversion_cast", results=[type_], operands=[pointer])
    return cast.results[0]


class Blocks(NamedTuple):
    """The steps of a product in blocks, which are summed by themselves: of a size, but for the last one."""

    number: Index
    size: int
    last: Index


#: What is packed: columns, steps, and how far the source moves from one to the next.
PackBounds: TypeAlias = "tuple[Index, Index, int]"


class KernelCalls:
    """Emits calls of kernels with accumulators of a type that sum so many steps at ``most``.

    Blocks of steps are a ``multiple`` of a number, if all steps are, and so is ``most``.
    """

    def __init__(
        self, emitter: Emitter, library: Library, element: Type, most: int, multiple: int = 1
    ) -> None:
        self._e, self._library, self._element = emitter, library, element
        self._most, self._multiple = most, multiple

    def blocks(self, steps: Index) -> Blocks:
        """Return so many steps in blocks."""
        e, most = self._e, self._most
        if isinstance(steps, int):
            count, multiple = -(-steps // most), self._multiple
            size = -(-steps // (count * multiple)) * multiple
            count = -(-steps // size)
            return Blocks(count, size, steps - (count - 1) * size)
        before = e.floordiv(e.sub(steps, 1), most)
        return Blocks(e.add(before, 1), most, e.sub(steps, e.mul(before, most)))

    def pack(
        self, kernel: PackKernel, source: KernelBuffer, target: Value, bounds: PackBounds, **others: Index
    ) -> None:
        """Emit a packing of what begins at ``source`` to a room of the thread."""
        numbers: dict[str, Index] = {"panel": math.prod(target.type.shape)}
        numbers |= {**dict(zip(("columns", "depth", "stride"), bounds, strict=True)), **others}
        self._library.call_with(self._e, kernel, (source, KernelBuffer(metadata_of(target)[0])), numbers)

    def product(
        self,
        kernels: Sequence[PanelProductKernel],
        bounds: tuple[Index, Index],
        blocks: Blocks,
        matrices: tuple[KernelBuffer, KernelBuffer, KernelBuffer],
        adds: Value,
        info: tuple[Value, Value] | None = None,
    ) -> None:
        """Emit a product.

        Args:
            kernels: The kernel, and another one where its instruction may not be used.
            bounds: Rows and columns of the result.
            blocks: The steps.
            matrices: The left factor, by rows and steps, the right one, by panels and steps, and the result.
            adds: Whether it is added to what there is.
            info: Of words, the packing info of both factors: it says whether their instruction may be used.
        """
        e = self._e
        left, right, out = matrices
        tile = left.numbers["row"] * kernels[0].rows
        operands = left.with_steps(blocks.size, tile=tile), right.with_steps(blocks.size), out
        numbers = {"rows": bounds[0], "columns": bounds[1]}
        numbers |= {"depth": blocks.size, "last_depth": blocks.last, "blocks": blocks.number}

        def call(kernel: PanelProductKernel) -> None:
            self._library.call_with(e, kernel, operands, numbers, (e.number(self._element, 0), adds))

        if info is None:
            call(kernels[0])
        else:
            e.when(are_normal(*info), lambda: call(kernels[0]), lambda: call(kernels[1]))


def declared_kernels(module: Module) -> list[tuple[Operation, Kernel]]:
    """Return the declarations of kernels in ``module``, in the LLVM dialect, with what they declare."""
    found = []
    for op in module.body.operations:
        if op.operation.name != "llvm.func" or LIBRARY_ATTRIBUTE not in op.attributes or op.regions[0].blocks:
            continue
        values = ir.DictAttr(op.attributes[LIBRARY_ATTRIBUTE])
        type_ = _KINDS[ir.StringAttr(values["kind"]).value]
        found.append((op, read_record(type_, values)))
    return found


def define_kernel(kernel: Kernel, attributes: Mapping[str, Attribute]) -> Operation:
    """Return ``kernel`` as a function of the LLVM dialect with further ``attributes``, not in any module."""
    function = ir.Operation.parse(function_of(kernel))
    function.attributes[LIBRARY_ATTRIBUTE] = ir.UnitAttr.get()
    for name, value in attributes.items():
        function.attributes[name] = value
    return function


def link_library(module: Module, attributes: Mapping[str, Attribute]) -> None:
    """Put the code of each kernel, with ``attributes``, in the place of its declaration in ``module``."""
    for op, kernel in declared_kernels(module):
        ir.InsertionPoint(op).insert(define_kernel(kernel, attributes))
        op.operation.erase()
