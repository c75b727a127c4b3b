"""The scheduling stage: each function of a module is scheduled; see the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.decision import Decisions
from mind_mlir.lowering.schedule.driver import FunctionScheduler
from mind_mlir.mlir.bindings import Module, ir
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.library import Kernel
    from mind_mlir.target import Target


def schedule(
    module: Module,
    target: Target,
    decisions: Decisions | None = None,
    options: CompileOptions | None = None,
) -> tuple[Kernel, ...]:
    """Schedule every function of ``module`` for ``target``, in place.

    Floating-point sums are reassociated inside contractions and reductions only, in an order that depends on
    shapes, dtypes and target alone; everything else computes the bits that the linalg operations define.
    Convolutions in Winograd's form are other sums (see `windows/winograd.py`), which ``options`` ask for.

    Args:
        module: functions of linalg operations on tensors of static shape.
        target: the processor to schedule for.
        decisions: is told what was decided for each nest, and why.
        options: what the caller chose; the defaults unless given.

    Returns:
        The micro-kernels that its products are going to call.
    """
    kernels: dict[Kernel, None] = {}
    decisions = decisions or Decisions(wanted=False)
    options = options or CompileOptions()
    with module.context, ir.Location.unknown():
        for operation in module.body.operations:
            function = operation.operation
            if function.name == "func.func" and len(function.regions[0].blocks):
                FunctionScheduler(function, target, decisions, kernels, options).run()
    return tuple(kernels)
