"""Factors that are constants of the program: laid out as kernels read them when the program is compiled.

No call packs them then, and the constant as it was goes where nothing else reads it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType
from mind_mlir.lowering.kernels.summands import packed_summands
from mind_mlir.lowering.kernels.tile_operations import LEFT_TILES
from mind_mlir.lowering.kernels.vnni import LEAST, NO_MAGNITUDE, RAISED, SUMS
from mind_mlir.lowering.schedule.contraction.match import Operand, is_factor
from mind_mlir.mlir.bindings import arith, ir, memref, raw_elements
from mind_mlir.mlir.memory import erase_unread, is_contiguous, root_of
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.references import referenced
from mind_mlir.mlir.types import dense_elements, tensor_type
from mind_mlir.mlir.values import is_result_of
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.lowering.kernels.packing import PackKernel
    from mind_mlir.lowering.schedule.contraction.kernel_choice import Packing
    from mind_mlir.lowering.schedule.linalg_view.view import Views
    from mind_mlir.mlir.bindings import Attribute, Module, Operation, OpOperand, Value

Array: TypeAlias = npt.NDArray[Any]

#: What a product reads through.
_FORMS = ("tensor.collapse_shape", "tensor.expand_shape", "linalg.transpose")
#: Conversions of factors that are exact, and so the same wherever they are made.
_EXACT = ("arith.extf", "arith.extsi", "arith.extui")
_NUMPY = {
    **{name: DType(name).numpy for name in ("f16", "bf16", "f32", "f64")},
    **{f"i{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
}


def constants_for_products(function: Operation, views: Views) -> set[Value]:
    """Return the constants of ``function`` that nothing but products reads, all of them in the same way."""
    found = set()
    for op in find_all(function, arith.ConstantOp):
        value = op.operation.results[0]
        uses = reads_of(value) if isinstance(value.type, ir.RankedTensorType) else ()
        ways = {_way(use, views) for use in uses}
        if len(ways) == 1 and None not in ways:
            found.add(value)
    return found


def constant_of(value: Value) -> Value:
    """Return what ``value`` is a form of, as products read it."""
    while is_result_of(value, *_FORMS):
        value = value.owner.operation.operands[0]
    return value


def elements_of(value: Value) -> Array:
    """Return the elements of the constant that ``value`` is a form of."""
    return data_of(constant_of(value).owner.operation.attributes["value"])


def is_exact(factor: Operand) -> bool:
    """Return whether the elements of ``factor`` are converted without rounding, if at all."""
    return all(op.name in _EXACT for op in factor.casts)


def reads_of(value: Value) -> Iterator[OpOperand]:
    """Iterate over the uses of ``value`` and of its forms that products read through."""
    for use in value.uses:
        owner = use.owner.operation
        if owner.name in _FORMS and use.operand_number == 0:
            yield from reads_of(owner.results[0])
        else:
            yield use


def _way(use: OpOperand, views: Views) -> object:
    """Return what says how a product reads a constant; None for anything else."""
    view = views.of(use.owner.operation)
    if view is None or not is_factor(views, use):
        return None
    types = tuple(str(operand.type) for operand in view.operands)
    return use.operand_number, types, str(view.accesses), view.extents


def packed(data: Array, packing: Packing, casts: Sequence[Operation]) -> Array:
    """Return what the kernel of ``packing`` makes of a factor, and its info; zeros where it writes anything.

    Args:
        data: The elements as they lie in memory.
        packing: Which of them, and where they go.
        casts: What converts them to accumulators, each of them exact.
    """
    kernel, panels = packing.kernel, packing.panels
    width, vnni = kernel.columns, kernel.vnni
    before, around = packing.batch[::-1], packing.outer[::-1]
    axes = (*before, packing.columns, *around, packing.inner)
    strides = [stride * data.itemsize for _, stride in axes]
    source = np.lib.stride_tricks.as_strided(data[packing.first :], [extent for extent, _ in axes], strides)
    outer = [extent for extent, _ in around]
    shape = [*(extent for extent, _ in before), panels * width, *outer, packing.steps * vnni]
    padded = np.zeros(shape, data.dtype)
    part: tuple[slice, ...] = tuple(slice(extent) for extent in source.shape)
    padded[part] = source
    batches = int(np.prod([extent for extent, _ in before]))
    split = padded.reshape(batches, panels, width, int(np.prod(outer)), packing.steps, vnni)
    order = (0, 1, 3, 4, 2, 5)
    if kernel.tiles == LEFT_TILES:
        split = split.reshape(batches, panels, width, -1, kernel.square, vnni)
        order = (0, 1, 3, 2, 4, 5)
    ordered = np.ascontiguousarray(split.transpose(order))
    if kernel.summands > 1:
        return packed_summands(_converted(ordered, casts), kernel.summands)
    return _words(ordered, kernel) if vnni > 1 else _converted(ordered, casts).reshape(-1)


def _converted(array: Array, casts: Sequence[Operation]) -> Array:
    for op in casts:
        if op.name == "arith.extui":
            array = array.view(f"u{array.itemsize}")
        array = array.astype(_NUMPY[str(op.results[0].type)])
    return array


def _words(array: Array, kernel: PackKernel) -> Array:
    """Return the words of ``array[batch][panel][1][step][column][term]`` and packing info of them."""
    if kernel.source == "i8:zext i16":
        array = array.view(np.uint8).astype(np.int16)
    words = array.view(np.int32).reshape(-1)
    info = np.zeros(0, np.int32)
    if kernel.info == RAISED:
        words = words ^ np.array(0x80808080, np.uint32).view(np.int32)
    elif kernel.info == SUMS:
        sums = array.astype(np.int32).sum(axis=(2, 3, 5), dtype=np.int32)
        info = (sums * np.int32(-128)).reshape(-1)
    elif kernel.info == LEAST:
        less_one = (array.view(np.uint16) & np.uint16(0x7FFF)) - np.uint16(1)
        info = np.array([less_one.min(initial=NO_MAGNITUDE)], np.int32)
    return np.concatenate([words, info])


class PackedConstants:
    """The constants of a bufferized module that have been packed, as further constants."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._made: dict[object, tuple[str, Any]] = {}
        self._replaced: dict[str, Operation] = {}

    @cached_property
    def _symbols(self) -> Any:
        return ir.SymbolTable(self._module.operation)

    def get(self, source: Value, packing: Packing, casts: Sequence[Operation]) -> Value | None:
        """Emit and return what ``packing`` makes of ``source``; None if that is not a whole constant."""
        root = root_of(source)
        if root is None or not is_result_of(root, "memref.get_global") or not is_contiguous(source.type):
            return None
        name = _global_of(root.owner.operation)
        key = name, packing
        if key not in self._made:
            definition = self._replaced[name] = self._symbols[name].operation
            data = data_of(definition.attributes["initial_value"])
            self._made[key] = self._add(f"{name}_packed", definition, packed(data, packing, casts))
        symbol, type_ = self._made[key]
        return memref.GetGlobalOp(type_, symbol).result

    def _add(self, name: str, before: Operation, data: Array) -> tuple[str, Any]:
        """Add a constant that holds ``data``; return its name and type."""
        name = f"{name}_{len(self._made)}"
        literal = TensorLiteral.from_array(data)
        type_ = tensor_type(literal.type)
        memory = ir.MemRefType.get(type_.shape, type_.element_type)
        word = ir.IntegerType.get_signless(64)
        with ir.InsertionPoint(before), ir.Location.unknown():
            memref.GlobalOp(
                name,
                ir.TypeAttr.get(memory),
                sym_visibility="private",
                initial_value=dense_elements(literal, signed=False, aligned=True),
                constant=True,
                alignment=ir.IntegerAttr.get(word, ALIGNMENT),
            )
        return name, memory

    def drop_replaced(self) -> None:
        """Erase the constants that have been packed and that nothing reads any more."""
        reads = find_all(self._module, memref.GetGlobalOp) if self._replaced else ()
        for op in reads:
            name = _global_of(op.operation)
            if name in self._replaced and not erase_unread(op.operation.results[0]):
                del self._replaced[name]
        for definition in self._replaced.values():
            definition.erase()


def _global_of(op: Operation) -> str:
    """Return the name of the constant that a `memref.get_global` reads."""
    return str(ir.FlatSymbolRefAttr(op.attributes["name"]).value)


def data_of(value: Attribute) -> Array:
    """Return the elements of a constant, one after the other."""
    literal = referenced(value)
    if literal is not None:
        return literal.array.reshape(-1)
    dtype = _NUMPY[str(value.type.element_type)]
    elements = np.frombuffer(raw_elements(value, dtype.itemsize), dtype)
    count = int(np.prod(value.type.shape))
    return np.broadcast_to(elements, count).copy() if value.is_splat else elements
