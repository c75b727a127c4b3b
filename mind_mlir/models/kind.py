"""Models as programs: what is done with a program of any language can be done with a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, MindError
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.types import DType, SymbolicDim, TensorType
from mind_mlir.languages.kind import ProgramKind
from mind_mlir.models.model import Model
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module


class ModelKind(ProgramKind[Model]):
    """Models of other frameworks, whose weights are constants of their programs."""

    name = "model"
    title = "ONNX"
    step = "trace"

    def exported(
        self,
        program: Model,
        functions: Sequence[str] | None,
        bindings: Mapping[str, int] | None,
        seed: int | None = None,
    ) -> Module:
        """Return the module of a model for the types that it says."""
        module = verify(program.closed(bindings))
        return module if functions is None else restricted(module, *functions)

    def check(self, program: Model, bindings: Mapping[str, int] | None) -> list[Diagnostic]:
        """Return everything there is to say about a model; one with open extents is only read."""
        if not bindings and any(map(_is_open, self.open_types(program, None).values())):
            return []
        try:
            self.exported(program, None, bindings)
        except MindError as error:
            return list(error.diagnostics)
        return []

    def open_types(self, program: Model, function: str | None) -> Mapping[str, TensorType]:
        """Return the tensors that a model takes, as far as it says their ranks."""
        found = {}
        for port in program.inputs:
            dtype = None if port.dtype is None else DType.from_numpy(port.dtype)
            if port.kind == "tensor" and port.shape is not None and dtype is not None:
                shape = [each if isinstance(each, int) else SymbolicDim(each.name) for each in port.shape]
                found[port.name] = TensorType(dtype, tuple(shape))
        return found


def _is_open(type_: TensorType) -> bool:
    return any(isinstance(each, SymbolicDim) for each in type_.shape)


KIND = ModelKind()
