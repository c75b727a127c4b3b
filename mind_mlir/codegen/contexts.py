"""Contexts of MLIR that small compilations use one after the other.

Making a context and taking it apart takes 4 ms, a sixth of compiling a small program. What MLIR has made
unique in a context stays there until it dies, so each is used a few times only, by one compilation at a time.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.mlir.bindings import new_context
from mind_mlir.mlir.passes import keeping
from mind_mlir.support.releasing import at_release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.module import Module
    from mind_mlir.mlir.bindings import Context

#: So many compilations use a context.
_USES = 16
#: The most operations of a small program, and bytes of its literals.
_OPERATIONS, _BYTES = 256, 1 << 16

#: The context that waits to be used again, if any, how often it has been used, and its pass managers.
_idle: deque[tuple[Context, int, dict[str, Any]]] = deque(maxlen=1)
at_release.append(_idle.clear)


def is_small(module: Module) -> bool:
    """Return whether a context is fit for further use after ``module`` has been compiled in it."""
    count = size = 0
    for function in module.functions:
        for operation in operations_of(function.blocks):
            count += 1
            for value in operation.attributes.values():
                size += len(value.data) if isinstance(value, TensorLiteral) else 0
            if count > _OPERATIONS or size > _BYTES:
                return False
    return True


@contextmanager
def borrowed(*, keep: bool) -> Iterator[Context]:
    """Lend a context that nothing else uses during the block.

    Args:
        keep: Whether it is to be used again; after an exception it is not.
    """
    if not keep:
        yield new_context(unregistered=True)
        return
    try:
        context, uses, managers = _idle.pop()
    except IndexError:
        context, uses, managers = new_context(unregistered=True), 0, {}
    with keeping(context, managers):
        yield context
    if uses + 1 < _USES:
        _idle.append((context, uses + 1, managers))
