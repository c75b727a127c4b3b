"""Factors that are constants of the program: laid out as kernels read them when the program is compiled.

No call packs them then, and the constant as it was goes where nothing else reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.lowering.schedule.contraction.kernels.vnni import LEAST, NO_MAGNITUDE, RAISED, SUMS
from mind_mlir.lowering.schedule.contraction.match import Operand, is_factor
from mind_mlir.mlir.bindings import arith, ir, memref, raw_elements
from mind_mlir.mlir.memory import METADATA, VIEWS, is_contiguous, root_of
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.references import reference, referenced
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel
    from mind_mlir.lowering.schedule.contraction.packing import Packing
    from mind_mlir.lowering.schedule.linalg_view.view import Views
    from mind_mlir.mlir.bindings import Attribute, Module, Operation, OpOperand, Value

Array: TypeAlias = npt.NDArray[Any]

#: What a product reads through.
_FORMS = ("tensor.collapse_shape", "tensor.expand_shape", "linalg.transpose")
#: Conversions of factors that are exact, and so the same wherever they are made.
_EXACT = ("arith.extf", "arith.extsi", "arith.extui")
_NUMPY = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    **{f"i{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
}


def constants_for_products(function: Operation, views: Views) -> set[Value]:
    """Return the constants of ``function`` that nothing but products reads, all of them in the same way."""
    found = set()
    for op in find_all(function, arith.ConstantOp):
        value = op.operation.results[0]
        if not isinstance(value.type, ir.RankedTensorType):
            continue
        uses = [_way(use, views) for use in reads_of(value)]
        if uses and uses[0] is not None and all(use == uses[0] for use in uses):
            found.add(value)
    return found


def constant_of(value: Value) -> Value:
    """Return what ``value`` is a form of, as products read it."""
    while not isinstance(value, ir.BlockArgument) and value.owner.operation.name in _FORMS:
        value = value.owner.operation.operands[0]
    return value


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
    types = [str(operand.type) for operand in view.operands]
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
    ordered = np.ascontiguousarray(split.transpose(0, 1, 3, 4, 2, 5))
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
        self._globals: dict[str, Operation] | None = None
        self._made: dict[object, tuple[str, Any]] = {}
        self._replaced: dict[str, None] = {}

    def get(self, source: Value, packing: Packing, casts: Sequence[Operation]) -> Value | None:
        """Emit and return what ``packing`` makes of ``source``; None if that is not a whole constant."""
        root = root_of(source)
        owner = None if root is None or isinstance(root, ir.BlockArgument) else root.owner.operation
        if owner is None or owner.name != "memref.get_global" or not is_contiguous(source.type):
            return None
        name = str(ir.FlatSymbolRefAttr(owner.attributes["name"]).value)
        key = name, packing
        if key not in self._made:
            definition = self._global(name)
            data = data_of(definition.attributes["initial_value"])
            self._made[key] = self._add(f"{name}_packed", definition, packed(data, packing, casts))
            self._replaced[name] = None
        symbol, type_ = self._made[key]
        return memref.GetGlobalOp(type_, symbol).result

    def _global(self, name: str) -> Operation:
        if self._globals is None:
            ops = [op.operation for op in self._module.body.operations]
            self._globals = {
                ir.StringAttr(op.attributes["sym_name"]).value: op for op in ops if op.name == "memref.global"
            }
        return self._globals[name]

    def _add(self, name: str, before: Operation, data: Array) -> tuple[str, Any]:
        """Add a constant that holds ``data``; return its name and type."""
        name = f"{name}_{len(self._made)}"
        literal = TensorLiteral.from_array(data)
        element = next(each for each, dtype in _NUMPY.items() if dtype == data.dtype)
        type_ = ir.RankedTensorType.get(list(data.shape), ir.Type.parse(element))
        value = reference(literal, type_, aligned=True) or ir.DenseElementsAttr.get(data, type=type_)
        memory = ir.MemRefType.get(type_.shape, type_.element_type)
        word = ir.IntegerType.get_signless(64)
        with ir.InsertionPoint(before), ir.Location.unknown():
            memref.GlobalOp(
                name,
                ir.TypeAttr.get(memory),
                sym_visibility="private",
                initial_value=value,
                constant=True,
                alignment=ir.IntegerAttr.get(word, ALIGNMENT),
            )
        return name, memory

    def drop_replaced(self) -> None:
        """Erase the constants that have been packed and that nothing reads any more."""
        if not self._replaced:
            return
        names = set()
        for op in find_all(self._module, memref.GetGlobalOp):
            name = str(ir.FlatSymbolRefAttr(op.operation.attributes["name"]).value)
            if name in self._replaced and not _erased(op.operation):
                names.add(name)
        for name in self._replaced:
            if name not in names:
                self._global(name).erase()


def _erased(op: Operation) -> bool:
    """Return whether ``op``, which says where memory lies, is read by nothing else, and erase it if so."""
    for user in [use.owner.operation for use in op.results[0].uses]:
        if user.name not in (*VIEWS, METADATA) or not _erased(user):
            return False
    if any(True for result in op.results for _ in result.uses):
        return False
    op.erase()
    return True


def data_of(value: Attribute) -> Array:
    """Return the elements of a constant, one after the other."""
    literal = referenced(value)
    if literal is not None:
        return literal.array.reshape(-1)
    dtype = _NUMPY[str(value.type.element_type)]
    elements = np.frombuffer(raw_elements(value, dtype.itemsize), dtype)
    count = int(np.prod(value.type.shape))
    return np.broadcast_to(elements, count).copy() if value.is_splat else elements
