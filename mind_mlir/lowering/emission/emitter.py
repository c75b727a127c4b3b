"""A thin layer over the bindings' builders for emitting loops and vector operations on tensors.

Indices are ``int | Value``: what is known stays a Python integer until an operation needs it, so constant
arithmetic costs no operations, loops of one trip are emitted as their body and loops of none not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.ir.allocation import check_extents
from mind_mlir.lowering.emission.indices import Constants, Index, zero
from mind_mlir.mlir.bindings import Attribute, Operation, Type, Value, arith, ir, memref, scf, tensor, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.lowering.emission.split import Split

__all__ = ["Emitter", "Index", "zero"]

#: A loop's bounds and step, and what emits its body of the induction variable and what is carried.
Bounds: TypeAlias = "tuple[Index, Index, int]"
LoopBody: TypeAlias = "Callable[[Index, list[Value]], list[Value]]"
#: Emit something of what is carried: in a branch; of a chunk, from its first iteration and the one behind its
#: last; of a vector, from its first element and its mask, if it is not whole.
Branch: TypeAlias = "Callable[[list[Value]], list[Value]]"
ChunkBody: TypeAlias = "Callable[[Index, Index, list[Value]], list[Value]]"
VectorBody: TypeAlias = "Callable[[Index, Value | None, list[Value]], list[Value]]"

#: Marks an `scf.for` from 0 by 1 whose iterations, called chunks, are independent: threads may run them in
#: any order and at the same time. It is no more than permission; one thread runs them as the loop says.
PARALLEL_ATTRIBUTE = "mind.parallel"
#: Marks those among them that are over so soon that no thread is to be woken for them.
BRIEF_ATTRIBUTE = "mind.brief"
#: Marks a product, and an `scf.for` over its macro-tiles that works on each of them, with the same number.
EPILOGUE_ATTRIBUTE = "mind.epilogue"
#: The schedule of an attention, a dictionary.
ATTENTION_ATTRIBUTE = "mind.attention"
#: Marks an `scf.for` that is compiled as a function of its own: a pass of a row program over a block of rows.
#: Else LLVM would keep the constants of all passes in registers at once, of which there are not enough.
APART_ATTRIBUTE = "mind.apart"
#: Marks parallel loops that may be one, which goes through their chunks one loop after the other: those with
#: the same number (see `buffers/concatenation.py`).
TOGETHER_ATTRIBUTE = "mind.together"
#: Marks memory of a chunk: what is written there by a chunk is not read by another one.
PRIVATE_ATTRIBUTE = "mind.private"
#: Marks an `scf.for` whose vectors are stored at multiples of so many elements from the start of a buffer,
#: and may go past the cache (see `lowering/streaming.py`).
STREAMING_ATTRIBUTE = "mind.streaming"
#: Mark loads of f32: of what was rounded to bf16; of numbers whose NaNs, if any, are quiet ones with a lower
#: half of zero, as those of sums of products of bf16 are.
EXACT_ATTRIBUTE, PLAIN_ATTRIBUTE = "mind.exact", "mind.plain"


class Emitter(Constants):
    """Emits at the current insertion point of one function, inside the caller's context and location.

    Constants are shared: they are placed once at the head of the function's entry block.
    """

    def __init__(self, function: Operation) -> None:
        super().__init__(function)
        self._vector_types: dict[tuple[int, Type], Type] = {}
        self._transfer_maps: dict[int, Attribute] = {}
        self._in_bounds = ir.ArrayAttr.get([ir.BoolAttr.get(True)])
        #: What parallel loops are marked with that may be one.
        self.together: Attribute | None = None

    def either(
        self, condition: Value, carried: Sequence[Value], then: Branch, otherwise: Branch
    ) -> list[Value]:
        """Emit what either of two functions makes of ``carried``, and return that."""
        branch = scf.IfOp(condition, [value.type for value in carried], has_else=True)
        for block, body in ((branch.then_block, then), (branch.else_block, otherwise)):
            with ir.InsertionPoint(block):
                scf.YieldOp(body(list(carried)))
        return list(branch.results)

    def when(
        self, condition: Value, then: Callable[[], object], otherwise: Callable[[], object] | None = None
    ) -> None:
        """Emit what either of two functions emits, or what one does if a condition holds."""
        branch = scf.IfOp(condition, has_else=otherwise is not None)
        for block, body in zip(branch.regions, (then, otherwise), strict=True):
            if body is not None:
                with ir.InsertionPoint(block.blocks[0]):
                    body()
                    scf.YieldOp([])

    # Loops.

    def vectors(self, extent: int, lanes: int, carried: Sequence[Value], body: VectorBody) -> list[Value]:
        """Emit ``body`` for each vector of ``extent`` elements, the last one masked where it is not whole."""
        whole = extent - extent % lanes
        inside = self.loop((0, whole, lanes), carried, lambda at, inside: body(at, None, inside))
        return inside if whole == extent else body(whole, self.mask(lanes, extent - whole), inside)

    def loop(
        self,
        bounds: Bounds,
        carried: Sequence[Value],
        body: LoopBody,
        *,
        streaming: int = 0,
        unrolled: bool = False,
    ) -> list[Value]:
        """Emit ``for (lower, upper, step)`` around ``body`` and return what it carries out.

        Args:
            bounds: lower bound, exclusive upper bound and step.
            carried: initial values of the loop-carried values.
            body: called once with the induction variable and the carried values; returns their next values.
            streaming: the elements of a vector register, if stores may go past the cache.
            unrolled: whether iterations are emitted one after the other, if bounds are integers.
        """
        lower, upper, step = bounds
        if isinstance(lower, int) and isinstance(upper, int) and (unrolled or upper - lower <= step):
            values = list(carried)
            for index in range(lower, upper, step):
                values = body(index, values)
            return values
        marks = {STREAMING_ATTRIBUTE: ir.IntegerAttr.get(self.index_type, streaming)} if streaming else {}
        return self._for(bounds, carried, body, marks)

    def each(self, bounds: Bounds, body: Callable[[Index], object]) -> None:
        """Emit a loop around ``body`` that carries nothing."""

        def inside(index: Index, _: list[Value]) -> list[Value]:
            body(index)
            return []

        self.loop(bounds, [], inside)

    def _for(
        self, bounds: Bounds, carried: Sequence[Value], body: LoopBody, marks: Mapping[str, Attribute | None]
    ) -> list[Value]:
        lower, upper, step = bounds
        loop = scf.ForOp(self.index(lower), self.index(upper), self.index(step), list(carried))
        block = loop.regions[0].blocks[0]
        induction, *arguments = block.arguments
        with ir.InsertionPoint(block):
            scf.YieldOp(body(induction, arguments))
        for name, mark in marks.items():
            if mark is not None:
                loop.operation.attributes[name] = mark
        return list(loop.results)

    def apart(self, bounds: Bounds, carried: Sequence[Value], body: LoopBody) -> list[Value]:
        """Emit a loop as `loop` does, and let it be compiled as a function of its own."""
        return self._for(bounds, carried, body, {APART_ATTRIBUTE: ir.UnitAttr.get()})

    def chunks(self, split: Split, extent: int, carried: Sequence[Value], body: ChunkBody) -> list[Value]:
        """Emit ``body`` for each chunk of a loop of ``extent`` iterations, as a loop that threads may share.

        Args:
            split: How the loop is cut.
            extent: Its iterations.
            carried: Tensors; each chunk writes parts of them that no other chunk reads or writes.
            body: called with the first iteration of a chunk, the one behind its last, and the tensors.
        """
        if split.count == 1:
            return body(0, extent, list(carried))

        def chunk(number: Index, inside: list[Value]) -> list[Value]:
            first = self.mul(number, split.step)
            end = self.add(first, split.step)
            return body(first, self.minimum(end, extent) if extent % split.step else end, inside)

        unit, number, epilogue = ir.UnitAttr.get(), self.index_type, split.epilogue
        marks = {
            PARALLEL_ATTRIBUTE: unit,
            BRIEF_ATTRIBUTE: unit if split.brief else None,
            EPILOGUE_ATTRIBUTE: None if epilogue is None else ir.IntegerAttr.get(number, epilogue),
            TOGETHER_ATTRIBUTE: self.together,
        }
        return self._for((0, split.count, 1), carried, chunk, marks)

    def iterations(self, split: Split, extent: int, carried: Sequence[Value], body: LoopBody) -> list[Value]:
        """Emit ``body`` for each iteration of a loop that threads may share, in the chunks of ``split``."""
        return self.chunks(
            split, extent, carried, lambda first, end, inside: self.loop((first, end, 1), inside, body)
        )

    # Vector and scalar access to tensors.

    def vector_type(self, lanes: int, element: Type) -> Type:
        """Return ``vector<lanes x element>``."""
        key = (lanes, element)
        if key not in self._vector_types:
            self._vector_types[key] = ir.VectorType.get([lanes], element)
        return self._vector_types[key]

    def read(
        self, type_: Type, source: Value, indices: Sequence[Index], padding: Value, mask: Value | None = None
    ) -> Value:
        """Read the vector of ``type_`` that starts at ``indices`` and runs along the last dimension.

        Lanes whose ``mask`` is off read as ``padding``; without a mask all lanes lie inside the tensor.
        """
        places, map_ = [self.index(i) for i in indices], self._minor_map(len(indices))
        return vector.TransferReadOp(type_, source, places, map_, padding, self._in_bounds, mask=mask).result

    def write(
        self, value: Value, target: Value, indices: Sequence[Index], mask: Value | None = None
    ) -> Value:
        """Return ``target`` with the vector ``value`` written at ``indices`` along the last dimension."""
        places, map_ = [self.index(i) for i in indices], self._minor_map(len(indices))
        type_, inside = target.type, self._in_bounds
        return vector.TransferWriteOp(type_, value, target, places, map_, inside, mask=mask).result

    def prefetch(self, source: Value, indices: Sequence[Index], *, write: bool, once: bool = False) -> None:
        """Prefetch the cache line of ``source`` that its element at ``indices`` is in.

        Args:
            source: A tensor.
            indices: Where in it.
            write: Whether it is to be written.
            once: Whether it is read once, so that no cache but the first need hold it.
        """
        shape, free = list(source.type.shape), ir.ShapedType.get_dynamic_stride_or_offset()
        # Any layout: of a part of a tensor, there would be a copy otherwise.
        layout = ir.StridedLayoutAttr.get(free, [free] * len(shape))
        type_ = ir.MemRefType.get(shape, source.type.element_type, layout)
        attributes = {"read_only": ir.UnitAttr.get()}
        buffer = ir.Operation.create("bufferization.to_buffer", [type_], [source], attributes).result
        memref.PrefetchOp(buffer, [self.index(i) for i in indices], write, 0 if once else 3, True)

    def extract(self, source: Value, indices: Sequence[Index]) -> Value:
        """Return the element of the tensor ``source`` at ``indices``."""
        return tensor.ExtractOp(source, [self.index(i) for i in indices]).result

    def insert(self, value: Value, target: Value, indices: Sequence[Index]) -> Value:
        """Return ``target`` with the scalar ``value`` written at ``indices``."""
        return tensor.InsertOp(value, target, [self.index(i) for i in indices]).result

    def select(self, mask: Value, on: Value, off: Value) -> Value:
        """Return ``on`` in the lanes that ``mask`` has on, ``off`` in the others."""
        return arith.SelectOp(mask, on, off).result

    def empty(self, shape: Sequence[int], element: Type) -> Value:
        """Return a new tensor of undefined contents."""
        check_extents(shape)
        return tensor.EmptyOp(list(shape), element).result

    def broadcast(self, type_: Type, value: Value) -> Value:
        """Return the scalar ``value`` in every lane of ``type_``."""
        return vector.BroadcastOp(type_, value).result

    def cast(self, value: Value, element: Type) -> Value:
        """Return ``value``, a float or a vector of floats, with elements of another float type."""
        is_vector = isinstance(value.type, ir.VectorType)
        before = value.type.element_type if is_vector else value.type
        if before == element:
            return value
        type_ = self.vector_type(value.type.shape[0], element) if is_vector else element
        return (arith.ExtFOp if element.width > before.width else arith.TruncFOp)(type_, value).result

    def part(self, value: Value, first: int, lanes: int) -> Value:
        """Return ``lanes`` of the vector ``value``, from ``first`` on."""
        type_ = self.vector_type(lanes, ir.VectorType(value.type).element_type)
        return vector.ExtractStridedSliceOp(type_, value, [first], [lanes], [1]).result

    def mask(self, lanes: int, live: Index) -> Value | None:
        """Return a mask of the first ``live`` of ``lanes`` lanes; None when statically all of them are."""
        type_ = ir.VectorType.get([lanes], self._boolean)
        if isinstance(live, int):
            if live >= lanes:
                return None
            bits = [ir.BoolAttr.get(lane < live) for lane in range(lanes)]
            return self.constant(type_, ir.DenseElementsAttr.get(bits, type_))
        return vector.CreateMaskOp(type_, [live]).result

    def _minor_map(self, rank: int) -> Attribute:
        attribute = self._transfer_maps.get(rank)
        if attribute is None:
            attribute = ir.AffineMapAttr.get(ir.AffineMap.get_minor_identity(rank, 1))
            self._transfer_maps[rank] = attribute
        return attribute
