"""From vector code and marked operations on tensors to loops on memory.

After `tile` tensors are buffers: inputs are read where they lie, results are written to arguments that the
caller provides, temporaries are allocated one by one. Products and attentions, one operation each so far,
have become loops over tiles around calls of kernels; loops that end the tiles of a product are part of them.
"""

from __future__ import annotations

import contextlib
from graphlib import CycleError
from typing import TYPE_CHECKING

from mind_mlir.lowering.buffers.aliases import EscapeError
from mind_mlir.lowering.buffers.carried import align_carried_tensors, carry_in_place
from mind_mlir.lowering.buffers.coalesce import coalesce_copies
from mind_mlir.lowering.buffers.destination import pass_destinations
from mind_mlir.lowering.buffers.epilogues import end_pieces
from mind_mlir.lowering.buffers.preparation import bufferize_insert_chains, split_fan_out
from mind_mlir.lowering.emission.emitter import ATTENTION_ATTRIBUTE
from mind_mlir.lowering.schedule.contraction.emission import emit_contractions
from mind_mlir.lowering.schedule.quantized.emission import emit_quantized_products
from mind_mlir.mlir.bindings import MLIRError, ir, memref
from mind_mlir.mlir.memory import root_of
from mind_mlir.mlir.passes import find_all, run_passes, survey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.mlir.bindings import Module

_ONE_SHOT = "one-shot-bufferize{allow-return-allocs-from-loops=true}"
#: Upwards, since what uses a value is simplified before it then: that takes fewer rounds.
_CANONICALIZE = "canonicalize{region-simplify=disabled top-down=false}"
#: What is prepared for bufferization.
_PREPARED = ("arith.constant", "func.call", "linalg.generic", "scf.while", "tensor.insert_slice")


class BufferizationError(Exception):
    """A module is outside of what goes to memory: a defect of an earlier stage, not of the program."""


@contextlib.contextmanager
def bufferizing(module: Module) -> Iterator[None]:
    """Rewrite ``module`` within this; what fails is a `BufferizationError`."""
    with module.context, ir.Location.unknown():
        try:
            yield
        except (MLIRError, EscapeError, CycleError, ValueError) as error:
            raise BufferizationError(str(error)) from error


def tile(module: Module, *, verify: bool = False) -> None:
    """Rewrite ``module`` from tensors to loops on memory, in place.

    Args:
        module: Public functions, and private ones if need be, on tensors of static shape. A function
            without tensors in its signature keeps it.
        verify: Run MLIR's verifier after each pass.

    Raises:
        BufferizationError: MLIR cannot bufferize the module.
    """
    with bufferizing(module):
        _, found = survey(module, *_PREPARED)
        attends = any(ATTENTION_ATTRIBUTE in op.attributes for op in found["linalg.generic"])
        pass_destinations(module, found["func.call"])
        align_carried_tensors(found["scf.while"])
        bufferize_insert_chains(found["tensor.insert_slice"])
        split_fan_out(module, found["arith.constant"])
        run_passes(module, _ONE_SHOT, verify=verify)
        carry_in_place(module)
        run_passes(module, _CANONICALIZE, verify=verify)
        keep_prefetches_of_arguments(module)
        coalesce_copies(module)
        if attends:
            from mind_mlir.lowering.schedule.attention.emission import emit_attentions  # noqa: PLC0415 -- others do without

            emit_attentions(module)
        emit_quantized_products(module)
        emit_contractions(module, end_pieces)


def keep_prefetches_of_arguments(module: Module) -> None:
    """Erase the prefetches of temporaries: these are in the cache, and may become memory of a chunk."""
    for prefetch in find_all(module, memref.PrefetchOp):
        root = root_of(prefetch.operands[0])
        if not isinstance(root, ir.BlockArgument):
            prefetch.operation.erase()
