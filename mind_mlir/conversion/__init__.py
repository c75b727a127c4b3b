"""Programs and modules in other forms, and services around that (ptir-v0.4.md, Conversion infrastructure)."""

from mind_mlir.conversion.converting import Conversion, EntryPoint, convert
from mind_mlir.conversion.legality import check_program_legality
from mind_mlir.conversion.names import entry_point_name, entry_point_names
from mind_mlir.conversion.registry import (
    conversion_target_names,
    conversion_target_problems,
    get_conversion_target,
    list_conversion_targets,
    register_conversion_target,
)
from mind_mlir.conversion.target import ConversionTarget, LegalityTable, OperationRule
from mind_mlir.conversion.walk import Visit, VisitKind, walk_program

__all__ = [
    "Conversion",
    "ConversionTarget",
    "EntryPoint",
    "LegalityTable",
    "OperationRule",
    "Visit",
    "VisitKind",
    "check_program_legality",
    "conversion_target_names",
    "conversion_target_problems",
    "convert",
    "entry_point_name",
    "entry_point_names",
    "get_conversion_target",
    "list_conversion_targets",
    "register_conversion_target",
    "walk_program",
]
