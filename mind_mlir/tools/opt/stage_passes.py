"""Our lowering stages as passes that `mind-opt` runs by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mind_mlir.lowering.control import CONTROL
from mind_mlir.lowering.dialect import PREFIX
from mind_mlir.lowering.pipeline import STEPS, Lowering
from mind_mlir.mlir.bindings import Module, Operation, Type, ir
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.abi import SCRATCH_ATTRIBUTE

#: Returns why an operation cannot stand in a module that a pass is given, or None where it can.
Objection = Callable[["Operation"], str | None]


@dataclass(frozen=True, slots=True)
class OurPass:
    """One of our passes.

    Attributes:
        run: The pass, which returns the module to go on with: the same one or a new one.
        objection: What it has against an operation of the module it is given.
    """

    run: Callable[[Module], Module]
    objection: Objection


def _steps_of(*stages: str) -> Callable[[Module], Module]:
    """Return what runs the steps of stages over a module."""

    def run(module: Module) -> Module:
        lowering = Lowering(mlir=module)
        for stage in stages:
            STEPS[stage](lowering)
        return lowering.mlir

    return run


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a pass cannot apply to a module, and the operation that shows it."""

    operation: Operation
    reason: str


def find_misfit(name: str, module: Module) -> Misfit | None:
    """Return why pass ``name`` cannot apply to ``module``, or None where it can."""
    operations = [view.operation for view in module.body.operations]
    if operations and not any(operation.name == "func.func" for operation in operations):
        found = f"works on the functions (func.func) of a module, which has none, but '{operations[0].name}'"
        return Misfit(operations[0], found)
    if name != "mind-to-llvm" and SCRATCH_ATTRIBUTE in module.operation.attributes:
        return Misfit(module.operation, "works on tensors, but the module has been bufferized already")
    objection = PASSES_BY_NAME[name].objection
    misfits: list[Misfit] = []

    def visit(operation: Operation) -> object:
        reason = objection(operation)
        if reason is None:
            return ir.WalkResult.ADVANCE
        misfits.append(Misfit(operation, reason))
        return ir.WalkResult.INTERRUPT

    for operation in operations:
        operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        if misfits:
            return misfits[0]
    return None


#: What ends functions and the regions of control flow.
_TERMINATORS = ("func.return", "scf.condition", "scf.yield")


def _not_mind(operation: Operation) -> str | None:
    name = operation.name
    if name == "func.func":
        blocks = len(operation.regions[0].blocks)
        return None if blocks == 1 else f"expects functions of one block, found {blocks or 'a declaration'}"
    if name in _TERMINATORS or name.startswith(PREFIX):
        return None
    if name in CONTROL:
        if any(len(region.blocks) != 1 for region in operation.regions):
            return f"expects an '{name}' with one block in each region"
        indexed = name == "tensor.extract" and len(operation.operands) > 1
        return "expects 'tensor.extract' of tensors of rank 0 alone" if indexed else None
    return f"expects `mind` operations, found '{name}'"


def _not_tensors(operation: Operation) -> str | None:
    if operation.name.startswith(PREFIX):
        return f"expects linalg on tensors, found '{operation.name}': run convert-mind-to-linalg first"
    for type_ in _types(operation):
        if isinstance(type_, ir.ShapedType):
            if not (type_.has_rank and type_.has_static_shape):
                return f"expects static shapes, found {type_}"
            if _is_packed(type_.element_type):
                return f"expects elements of whole bytes, found {type_}"
    return None


def _not_memory(operation: Operation) -> str | None:
    if operation.name.startswith(PREFIX):
        return (
            f"expects operations on memory, found '{operation.name}': run convert-mind-to-linalg and "
            "mind-bufferize first"
        )
    tensors = (ir.RankedTensorType, ir.UnrankedTensorType)
    found = next((type_ for type_ in _types(operation) if isinstance(type_, tensors)), None)
    return None if found is None else f"expects operations on memory, found {found}: run mind-bufferize first"


def _types(operation: Operation) -> list[Type]:
    values = [*operation.operands, *operation.results]
    values += [argument for region in operation.regions for block in region for argument in block.arguments]
    return [value.type for value in values]


def _is_packed(element: Type) -> bool:
    """Return whether elements are smaller than a byte; booleans are handled."""
    return isinstance(element, ir.IntegerType | ir.FloatType) and 1 < element.width < 8


PASSES_BY_NAME: Mapping[str, OurPass] = {
    "convert-mind-to-linalg": OurPass(_steps_of("linalg"), _not_mind),
    "mind-schedule": OurPass(_steps_of("scheduled"), _not_tensors),
    "mind-tile": OurPass(_steps_of("tiled"), _not_tensors),
    # Tiling leaves what is on memory as it is.
    "mind-bufferize": OurPass(_steps_of("tiled", "bufferized"), _not_tensors),
    "mind-to-llvm": OurPass(_steps_of("llvm"), _not_memory),
}
