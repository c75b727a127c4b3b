"""Programs and modules in other forms, and services around that (ptir-v0.4.md, Conversion infrastructure).

Names are loaded when they are first used, so that what only asks for the names of targets loads no numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "converting": ("Conversion", "EntryPoint", "convert"),
    "legality": ("check_program_legality",),
    "names": ("entry_point_name", "entry_point_names"),
    "registry": (
        *("conversion_target_names", "conversion_target_problems", "get_conversion_target"),
        *("list_conversion_targets", "register_conversion_target"),
    ),
    "target": ("ConversionTarget", "LegalityTable", "OperationRule"),
    "walk": ("Visit", "VisitKind", "walk_program"),
}

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


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'mind_mlir.conversion' has no attribute {name!r}")
    return getattr(import_module(f"mind_mlir.conversion.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
