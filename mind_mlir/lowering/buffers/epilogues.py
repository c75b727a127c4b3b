"""Epilogues of products: nests that become the end of each piece of a product.

Scheduling cuts a nest that reads a product like that product, and gives both the same number (see
`schedule/epilogues.py`). On memory, the body of the nest becomes the end of each piece where that is sound:
nothing between the two needs the result or changes the factors, and the nest does not write these either.
Where nothing else reads the result, each thread has memory for one piece of it instead.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import TYPE_CHECKING

from mind_mlir.lowering.buffers.aliases import BufferUse, buffer_uses, input_count, within
from mind_mlir.lowering.buffers.footprint import bounds_of
from mind_mlir.lowering.emission.emitter import EPILOGUE_ATTRIBUTE
from mind_mlir.lowering.kernels.library import LIBRARY_ATTRIBUTE
from mind_mlir.lowering.schedule.contraction.epilogue import Epilogue
from mind_mlir.lowering.schedule.contraction.geometry import in_memory_order
from mind_mlir.lowering.schedule.contraction.marked import START_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import METADATA, VIEWS, element_bytes, is_contiguous, root_of, views_of
from mind_mlir.mlir.values import callee_of, is_result_of, is_within
from mind_mlir.target.abi import OWN_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.contraction.emission import Ended, Products
    from mind_mlir.lowering.schedule.contraction.geometry import TiledLoop
    from mind_mlir.mlir.bindings import Operation, Value

#: Accesses of elements and of vectors, whose indices stand behind the buffer.
_READS = ("memref.load", "vector.load", "vector.maskedload", "vector.transfer_read", "memref.prefetch")
_WRITES = ("memref.store", "vector.store", "vector.maskedstore", "vector.transfer_write")


def end_pieces(products: Products) -> Ended:
    """Return products, each with what ends its pieces, in runs that are computed together.

    Args:
        products: Marked contractions on memory, and the loops over the result of each. They are computed
            together unless that is not sound with what ends their pieces: then without those whose ends
            stand last.
    """
    together, alone = list(products), []
    while (found := _ended(together)) is None:
        alone.append(together.pop(_last_ended(together)))
    runs = [found, *(_ended([product]) or [(product[0], None)] for product in reversed(alone))]
    return [run for run in runs if run]


def _last_ended(products: Products) -> int:
    """Return the number of the product whose loop stands behind those of all others."""
    loops = {number: loop for number, product in enumerate(products) if (loop := _loop(*product)) is not None}
    last, *others = loops
    for number in others:
        if _is_before(loops[last], loops[number]):
            last = number
    return last


def _ended(products: Products) -> list[tuple[Operation, Epilogue | None]] | None:
    """Return ``products`` with what ends their pieces; None if it cannot, where they are one loop."""
    loops = [_loop(*product) for product in products]
    ends = [loop for loop in loops if loop is not None]
    if not ends:
        return [(op, None) for op, _ in products]
    if any(_is_before(loop, before) for before, loop in pairwise(ends)):
        return None  # one is put off, for what is computed from another product of them
    if not _may_join(ends) or not all(
        _may_wait(op, loop, ends) for (op, _), loop in zip(products, loops, strict=True)
    ):
        return None
    return [
        (op, None if loop is None else _epilogue(op, parts, loop))
        for (op, parts), loop in zip(products, loops, strict=True)
    ]


def _epilogue(product: Operation, parts: tuple[TiledLoop, ...], loop: Operation) -> Epilogue:
    dims = in_memory_order(parts)
    out = product.operands[2]
    root = root_of(out)
    assert dims is not None
    assert root is not None
    found = Epilogue(loop, parts, dims, ir.MemRefType(out.type).element_type)
    if START_ATTRIBUTE not in product.attributes:
        return found  # the result holds what its sums start from
    accesses = _accesses(found, product, root)
    return dataclasses.replace(found, accesses=accesses, result=root) if accesses else found


def _loop(product: Operation, parts: tuple[TiledLoop, ...]) -> Operation | None:
    """Return the loop over the pieces of ``product``, behind it in its block, that reads its result."""
    out = root_of(product.operands[2])
    if EPILOGUE_ATTRIBUTE not in product.attributes or in_memory_order(parts) is None or out is None:
        return None
    mark = product.attributes[EPILOGUE_ATTRIBUTE]
    for use in buffer_uses(out).found:
        around = within(product.block, use.user)
        if around is None or around.name != "scf.for" or EPILOGUE_ATTRIBUTE not in around.attributes:
            continue
        if around.attributes[EPILOGUE_ATTRIBUTE] == mark and _is_before(product, around):
            whole = 0, math.prod(part.count for part in parts), 1
            return around if bounds_of(around) == whole else None
    return None


def _may_join(ends: Sequence[Operation]) -> bool:
    """Return whether the loops ``ends`` may all stand where the last one does, and be one loop."""
    touched = [_touched(end) for end in ends] if len(ends) > 1 else []
    for number, one in enumerate(touched):
        for other in touched[:number] + touched[number + 1 :]:
            if one is None or other is None or any(root in other for root, writes in one.items() if writes):
                return False
        for root, writes in one.items() if one is not None else ():
            for use in buffer_uses(root).found:
                around = within(ends[0].block, use.user)
                if around is None or use.user.name in VIEWS or any(around == end for end in ends):
                    continue
                if (writes or not _only_reads(use)) and _is_meanwhile(around, ends[number], ends):
                    return False
    return True


def _touched(loop: Operation) -> dict[Value, bool] | None:
    """Return the buffers that ``loop`` uses, and whether it may write to each; None if that is not known."""
    found: dict[Value, bool] = {}
    unknown = False

    def look(op: Operation) -> object:
        nonlocal unknown
        for number, operand in enumerate(op.operands):
            if not isinstance(operand.type, ir.MemRefType):
                continue
            root = root_of(operand)
            if root is None:
                unknown = True
            else:
                found[root] = found.get(root, False) or not _only_reads(BufferUse(op, number))
        return ir.WalkResult.ADVANCE

    loop.walk(look)
    return None if unknown else found


def _may_wait(product: Operation, loop: Operation | None, ends: Sequence[Operation]) -> bool:
    """Return whether ``product`` may be computed where the last of ``ends`` stands, beside all of them."""
    roots = [root for operand in product.operands if (root := root_of(operand)) is not None]
    if len(roots) < len(product.operands):
        return False
    *factors, out = roots
    if out in factors:
        return False
    for factor in factors:
        for use in buffer_uses(factor).found:
            around = within(product.block, use.user)
            if around is not None and not _only_reads(use) and _is_meanwhile(around, product, ends):
                return False
    for use in buffer_uses(out).found:
        around = within(product.block, use.user)
        if use.user.name in VIEWS or around is None or (loop is not None and around == loop):
            continue
        if _is_meanwhile(around, product, ends):
            return False
    return True


def _is_meanwhile(op: Operation, product: Operation, ends: Sequence[Operation]) -> bool:
    """Return whether ``op`` is one of ``ends``, or runs after ``product`` and before the last of them."""
    if any(op == end for end in ends):
        return True
    return _is_before(product, op) and _is_before(op, ends[-1])


def _is_before(one: Operation, other: Operation) -> bool:
    before: bool = one.is_before_in_block(other)
    return before


def _only_reads(use: BufferUse) -> bool:
    """Return whether an operation certainly does not write to what it uses."""
    name, number = use.user.name, use.operand
    if name in (*_READS, *VIEWS, METADATA):
        return True
    if name == "memref.copy":
        return number == 0
    if name == "func.call":
        return _call_only_reads(use.user, number)
    return number < input_count(use.user)


def _call_only_reads(call: Operation, number: int) -> bool:
    """Return whether the function called certainly does not write to operand ``number`` of ``call``."""
    module = call.parent
    while module.parent is not None:
        module = module.parent
    callee = ir.SymbolTable(module.operation)[callee_of(call)]
    if LIBRARY_ATTRIBUTE in callee.attributes:
        # Kernels read their first operand; those for products, which have three buffers, the second one, too.
        operands = call.operands
        return number == 0 or (number == 1 and isinstance(operands[2].type, ir.MemRefType))
    blocks = callee.regions[0].blocks
    if not len(blocks):
        return False
    uses = buffer_uses(blocks[0].arguments[number]).found
    return all(use.user.name != "func.call" and _only_reads(use) for use in uses)


def _accesses(epilogue: Epilogue, product: Operation, root: Value) -> tuple[tuple[Operation, int], ...]:
    """Return the accesses of ``root``, the result, by the loop, if it and the product alone use it."""
    if not is_result_of(root, "memref.alloc"):
        return ()
    if math.prod(epilogue.own_shape) * element_bytes(epilogue.element) > OWN_BYTES // 2:
        return ()
    shape = [epilogue.tiled_loops[number].extent for number in epilogue.dims]
    found: list[tuple[Operation, int]] = []
    for view in views_of(root):
        for use in view.uses:
            user = use.owner.operation
            if user == product or user.name in VIEWS:
                continue
            is_access = user.name in (*_READS, *_WRITES) and is_within(user, epilogue.loop)
            if not is_access or not is_contiguous(view.type) or list(view.type.shape) != shape:
                return ()
            found.append((user, use.operand_number))
    return tuple(found)
