"""The context of a record's StableHLO rule: an operation, and the means to say the same in StableHLO."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.stablehlo_builder import StablehloBuilder
from mind_mlir.mlir.stablehlo_structured import StructuredBuilder
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.bindings import Operation
    from mind_mlir.mlir.stablehlo_builder import HloValue


@dataclass(frozen=True, slots=True)
class HloRegion:
    """A region of the operation.

    Attributes:
        types: The types of its parameters.
        body: Appends what the region computes, given its parameters; returns what it yields.
        passes_through: Of each value that it yields, which parameter that is, if it is one.
    """

    types: tuple[TensorType, ...]
    body: Callable[[Sequence[HloValue]], list[HloValue]]
    passes_through: tuple[int | None, ...] = ()


@dataclass(slots=True)
class StablehloContext(StablehloBuilder):
    """One operation as its StableHLO rule sees it; the rule appends, and returns the result, or all results.

    Attributes:
        opcode: Core spelling.
        operands: The operands, with their types in our terms.
        attributes: Complete attributes in normal form, as Python values.
        result_types: The types of all results.
        regions: The regions of the operation, in order.
        symbols: What each function of the module is called.
        structured: Appends gathers, products, and operations with regions.
    """

    opcode: str
    operands: tuple[HloValue, ...]
    attributes: Mapping[str, Any]
    result_types: tuple[TensorType, ...]
    regions: tuple[HloRegion, ...] = ()
    symbols: Mapping[str, str] = field(default_factory=dict)
    structured: StructuredBuilder = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.structured = StructuredBuilder(self)

    @property
    def result_type(self) -> TensorType:
        """Return the type of the first result."""
        return self.result_types[0]

    def call(self, function: str) -> list[HloValue]:
        """Append a call of a function of the module with the operands."""
        operation: Operation = ir.Operation.create(
            "func.call",
            results=[self.mlir_type(type_) for type_ in self.result_types],
            operands=[operand.value for operand in self.operands],
            attributes={"callee": ir.FlatSymbolRefAttr.get(self.symbols[function])},
        )
        return self.results(operation, self.result_types)

    def foreign_call(self, target: str, config: str) -> list[HloValue]:
        """Append a call, with the operands, of what whoever runs the program knows as ``target``."""
        operation = self.operation(
            "custom_call",
            self.operands,
            self.result_types,
            call_target_name=ir.StringAttr.get(target),
            backend_config=ir.StringAttr.get(config),
        )
        return self.results(operation, self.result_types)
