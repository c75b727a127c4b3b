"""Which nests become the end of each piece of a product.

Scheduling cuts a nest that reads a product like that product, and gives both the same number (see
`schedule/epilogues.py`). On memory, the body of the nest becomes the end of each piece where that is sound:
nothing between the two needs the result or changes the factors, and the nest does not write these either.
Where nothing else reads the result, each thread has memory for one piece of it instead.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.abi import OWN_BYTES
from mind_mlir.bindings import ir
from mind_mlir.lowering.buffers.aliases import VIEWS, Use, buffer_uses, root_of, within
from mind_mlir.lowering.buffers.footprint import METADATA, bounds_of
from mind_mlir.lowering.schedule.contraction.epilogue import Epilogue
from mind_mlir.lowering.schedule.contraction.marked import START_ATTRIBUTE
from mind_mlir.lowering.schedule.contraction.pieces import in_memory_order
from mind_mlir.lowering.schedule.emission.emitter import EPILOGUE_ATTRIBUTE
from mind_mlir.mlir.memory import element_bytes, is_contiguous

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Attribute, Operation, Value
    from mind_mlir.lowering.schedule.contraction.pieces import Part

#: Accesses of elements and of vectors, whose indices stand behind the buffer.
_READS = ("memref.load", "vector.load", "vector.maskedload", "vector.transfer_read", "memref.prefetch")
_WRITES = ("memref.store", "vector.store", "vector.maskedstore", "vector.transfer_write")


def find_epilogue(product: Operation, parts: tuple[Part, ...]) -> Epilogue | None:
    """Return what ends each piece of ``product``, a marked contraction on memory; None if nothing does.

    Args:
        product: The operation.
        parts: The loops over its result.
    """
    mark = product.attributes.get(EPILOGUE_ATTRIBUTE)
    dims = in_memory_order(parts)
    roots = [root for operand in product.operands if (root := root_of(operand)) is not None]
    if mark is None or dims is None or len(roots) != len(product.operands):
        return None
    *factors, out = roots
    uses = buffer_uses(out).found
    loop = _loop(product, uses, mark)
    if loop is None or bounds_of(loop) != (0, math.prod(part.count for part in parts), 1) or out in factors:
        return None
    if any(_is_between(product, use.user, loop) for use in uses if use.user.name not in VIEWS):
        return None
    for factor in factors:
        for use in buffer_uses(factor).found:
            meanwhile = _is_inside(use.user, loop) or _is_between(product, use.user, loop)
            if meanwhile and not _only_reads(use):
                return None
    found = Epilogue(loop, parts, dims, ir.MemRefType(out.type).element_type)
    if START_ATTRIBUTE not in product.attributes:
        return found  # the result holds what its sums start from
    views = _views(out)
    accesses = _accesses(found, product, views)
    return dataclasses.replace(found, accesses=accesses, views=views) if accesses else found


def _loop(product: Operation, uses: Sequence[Use], mark: Attribute) -> Operation | None:
    """Return the loop of the same mark behind ``product`` in its block that is among the users."""
    for use in uses:
        around = within(product.block, use.user)
        if around is None or around.name != "scf.for" or EPILOGUE_ATTRIBUTE not in around.attributes:
            continue
        if around.attributes[EPILOGUE_ATTRIBUTE] == mark and product.is_before_in_block(around):
            return around
    return None


def _is_between(first: Operation, user: Operation, last: Operation) -> bool:
    """Return whether ``user`` runs after ``first`` and before ``last``, two operations of a block."""
    around = within(first.block, user)
    return around is not None and _is_before(first, around) and _is_before(around, last)


def _is_before(one: Operation, other: Operation) -> bool:
    before: bool = one.is_before_in_block(other)
    return before


def _is_inside(op: Operation, loop: Operation) -> bool:
    around = within(loop.block, op)
    return around is not None and around == loop


def _only_reads(use: Use) -> bool:
    """Return whether an operation certainly does not write to what it uses."""
    name, number = use.user.name, use.operand
    if name in (*_READS, *VIEWS, METADATA):
        return True
    if name == "memref.copy":
        return number == 0
    if name == "func.call":
        # Kernels read their first operand; those for products, which have three buffers, the second one, too.
        operands = use.user.operands
        return number == 0 or (number == 1 and isinstance(operands[2].type, ir.MemRefType))
    sizes = "operandSegmentSizes"
    if name.startswith("linalg.") and sizes in use.user.attributes:
        return number < int(ir.DenseI32ArrayAttr(use.user.attributes[sizes])[0])
    return False


def _views(root: Value) -> tuple[Value, ...]:
    """Return ``root`` and all views of it, each before those that are made of it."""
    found = [root]
    for value in found:
        found += [use.owner.results[0] for use in value.uses if use.owner.operation.name in VIEWS]
    return tuple(found)


def _accesses(
    epilogue: Epilogue, product: Operation, views: tuple[Value, ...]
) -> tuple[tuple[Operation, int], ...]:
    """Return the accesses of ``views``, the result, by the loop, if it and the product alone use them."""
    root = views[0]
    if isinstance(root, ir.BlockArgument) or root.owner.operation.name != "memref.alloc":
        return ()
    if math.prod(epilogue.own_shape) * element_bytes(epilogue.element) > OWN_BYTES // 2:
        return ()
    shape = [epilogue.parts[number].extent for number in epilogue.dims]
    found: list[tuple[Operation, int]] = []
    for view in views:
        for use in view.uses:
            user = use.owner.operation
            if user == product or user.name in VIEWS:
                continue
            is_access = user.name in (*_READS, *_WRITES) and _is_inside(user, epilogue.loop)
            if not is_access or not is_contiguous(view.type) or list(view.type.shape) != shape:
                return ()
            found.append((user, use.operand_number))
    return tuple(found)
