"""MIND Core IR to fast native CPU code, through MLIR.

    module = mind_mlir.parse(text)                      # or load("model.ir")
    gradient = mind_mlir.differentiate(module, wrt=["w"])
    step = mind_mlir.compile(gradient.module)
    loss, dw = step(x=x, w=w)

Names are loaded when they are first used, so that reading, checking and printing IR never loads MLIR.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mind_mlir.support.interrupts import held
from mind_mlir.support.version import VERSION

if TYPE_CHECKING:
    from mind_mlir.builders.builder import Builder
    from mind_mlir.builders.function_builder import ModuleBuilder
    from mind_mlir.conversion import (
        Conversion,
        ConversionTarget,
        check_program_legality,
        convert,
        get_conversion_target,
        list_conversion_targets,
        register_conversion_target,
        walk_program,
    )
    from mind_mlir.conversion.buffers import BufferPlan, plan_buffers
    from mind_mlir.conversion.stablehlo.text import to_stablehlo
    from mind_mlir.diagnostics import (
        ArgumentError,
        ArtefactError,
        AutodiffError,
        Diagnostic,
        ExecutionError,
        InternalError,
        Location,
        MindError,
        ParseError,
        TracingError,
        UnsupportedError,
        VerificationError,
    )
    from mind_mlir.interpreter import interpret
    from mind_mlir.ir.module import Block, CoreOperation, Function, Module
    from mind_mlir.ir.types import DType, TensorType
    from mind_mlir.languages.core.printer import print_module
    from mind_mlir.languages.mind.expression_lowering import lower_expression
    from mind_mlir.languages.mind.program import SurfaceProgram
    from mind_mlir.languages.programs.differentiation import differentiate
    from mind_mlir.languages.programs.sources import load, parse
    from mind_mlir.languages.programs.verification import verify
    from mind_mlir.languages.ptir.program import Program
    from mind_mlir.languages.stablehlo.importing import from_stablehlo
    from mind_mlir.languages.stablehlo.tracing import from_jax
    from mind_mlir.ops.custom_attributes import custom_attributes
    from mind_mlir.ops.custom_targets import CustomAttribute, register_custom_call
    from mind_mlir.packaging.loading import Bundle, load_bundle
    from mind_mlir.packaging.writing import package
    from mind_mlir.passes.autodiff import Gradient
    from mind_mlir.passes.canonicalize import canonicalize
    from mind_mlir.runtime.bound import BoundFunction
    from mind_mlir.runtime.compilation import compile
    from mind_mlir.runtime.executable import Executable
    from mind_mlir.runtime.function import CompiledFunction
    from mind_mlir.runtime.lowered import Lowered
    from mind_mlir.runtime.memory import MemoryInfo, memory_info, release_memory, set_memory_limit
    from mind_mlir.runtime.program_executable import ProgramExecutable
    from mind_mlir.runtime.staged import StagedFunction
    from mind_mlir.runtime.surface_function import SurfaceFunction
    from mind_mlir.runtime.threads import get_num_threads, set_num_threads
    from mind_mlir.tracing.control import cond, fori_loop, scan, while_loop
    from mind_mlir.tracing.jit import jit
    from mind_mlir.tracing.transforms import grad, value_and_grad, vjp

__version__ = VERSION

#: Packages that are public names: functions of arrays, and the formats of PTIR.
_PACKAGES = {"numpy": "mind_mlir.numpy", "ptir": "mind_mlir.languages.ptir"}
_DIAGNOSTICS = "mind_mlir.diagnostics"
_HOMES = {
    "ArgumentError": _DIAGNOSTICS,
    "ArtefactError": _DIAGNOSTICS,
    "AutodiffError": _DIAGNOSTICS,
    "Block": "mind_mlir.ir.module",
    "BoundFunction": "mind_mlir.runtime.bound",
    "BufferPlan": "mind_mlir.conversion.buffers",
    "Bundle": "mind_mlir.packaging.loading",
    "Builder": "mind_mlir.builders.builder",
    "CompiledFunction": "mind_mlir.runtime.function",
    "Conversion": "mind_mlir.conversion",
    "ConversionTarget": "mind_mlir.conversion",
    "CoreOperation": "mind_mlir.ir.module",
    "CustomAttribute": "mind_mlir.ops.custom_targets",
    "DType": "mind_mlir.ir.types",
    "Diagnostic": _DIAGNOSTICS,
    "Executable": "mind_mlir.runtime.executable",
    "ExecutionError": _DIAGNOSTICS,
    "Function": "mind_mlir.ir.module",
    "Gradient": "mind_mlir.passes.autodiff",
    "InternalError": _DIAGNOSTICS,
    "Location": _DIAGNOSTICS,
    "Lowered": "mind_mlir.runtime.lowered",
    "MemoryInfo": "mind_mlir.runtime.memory",
    "MindError": _DIAGNOSTICS,
    "Module": "mind_mlir.ir.module",
    "ModuleBuilder": "mind_mlir.builders.function_builder",
    "ParseError": _DIAGNOSTICS,
    "Program": "mind_mlir.languages.ptir.program",
    "ProgramExecutable": "mind_mlir.runtime.program_executable",
    "StagedFunction": "mind_mlir.runtime.staged",
    "SurfaceFunction": "mind_mlir.runtime.surface_function",
    "SurfaceProgram": "mind_mlir.languages.mind.program",
    "TensorType": "mind_mlir.ir.types",
    "TracingError": _DIAGNOSTICS,
    "UnsupportedError": _DIAGNOSTICS,
    "VerificationError": _DIAGNOSTICS,
    "canonicalize": "mind_mlir.passes.canonicalize",
    "check_program_legality": "mind_mlir.conversion",
    "compile": "mind_mlir.runtime.compilation",
    "cond": "mind_mlir.tracing.control",
    "convert": "mind_mlir.conversion",
    "custom_attributes": "mind_mlir.ops.custom_attributes",
    "differentiate": "mind_mlir.languages.programs.differentiation",
    "fori_loop": "mind_mlir.tracing.control",
    "from_jax": "mind_mlir.languages.stablehlo.tracing",
    "from_stablehlo": "mind_mlir.languages.stablehlo.importing",
    "get_conversion_target": "mind_mlir.conversion",
    "get_num_threads": "mind_mlir.runtime.threads",
    "grad": "mind_mlir.tracing.transforms",
    "interpret": "mind_mlir.interpreter",
    "jit": "mind_mlir.tracing.jit",
    "list_conversion_targets": "mind_mlir.conversion",
    "load": "mind_mlir.languages.programs.sources",
    "load_bundle": "mind_mlir.packaging.loading",
    "lower_expression": "mind_mlir.languages.mind.expression_lowering",
    "memory_info": "mind_mlir.runtime.memory",
    "package": "mind_mlir.packaging.writing",
    "parse": "mind_mlir.languages.programs.sources",
    "plan_buffers": "mind_mlir.conversion.buffers",
    "print_module": "mind_mlir.languages.core.printer",
    "register_conversion_target": "mind_mlir.conversion",
    "register_custom_call": "mind_mlir.ops.custom_targets",
    "release_memory": "mind_mlir.runtime.memory",
    "scan": "mind_mlir.tracing.control",
    "set_memory_limit": "mind_mlir.runtime.memory",
    "set_num_threads": "mind_mlir.runtime.threads",
    "to_stablehlo": "mind_mlir.conversion.stablehlo.text",
    "value_and_grad": "mind_mlir.tracing.transforms",
    "verify": "mind_mlir.languages.programs.verification",
    "vjp": "mind_mlir.tracing.transforms",
    "walk_program": "mind_mlir.conversion",
    "while_loop": "mind_mlir.tracing.control",
}

__all__ = [
    "ArgumentError",
    "ArtefactError",
    "AutodiffError",
    "Block",
    "BoundFunction",
    "BufferPlan",
    "Builder",
    "Bundle",
    "CompiledFunction",
    "Conversion",
    "ConversionTarget",
    "CoreOperation",
    "CustomAttribute",
    "DType",
    "Diagnostic",
    "Executable",
    "ExecutionError",
    "Function",
    "Gradient",
    "InternalError",
    "Location",
    "Lowered",
    "MemoryInfo",
    "MindError",
    "Module",
    "ModuleBuilder",
    "ParseError",
    "Program",
    "ProgramExecutable",
    "StagedFunction",
    "SurfaceFunction",
    "SurfaceProgram",
    "TensorType",
    "TracingError",
    "UnsupportedError",
    "VerificationError",
    "canonicalize",
    "check_program_legality",
    "compile",
    "cond",
    "convert",
    "custom_attributes",
    "differentiate",
    "fori_loop",
    "from_jax",
    "from_stablehlo",
    "get_conversion_target",
    "get_num_threads",
    "grad",
    "interpret",
    "jit",
    "list_conversion_targets",
    "load",
    "load_bundle",
    "lower_expression",
    "memory_info",
    "package",
    "parse",
    "plan_buffers",
    "print_module",
    "register_conversion_target",
    "register_custom_call",
    "release_memory",
    "scan",
    "set_memory_limit",
    "set_num_threads",
    "to_stablehlo",
    "value_and_grad",
    "verify",
    "vjp",
    "walk_program",
    "while_loop",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        with held():
            return import_module(_PACKAGES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'mind_mlir' has no attribute {name!r}")
    home = _HOMES[name]
    if home not in sys.modules:
        with held():  # half an import of numpy or of the MLIR bindings cannot be completed later
            import_module(home)
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    # What else is here is the package's own: names that this file uses, and modules that have been loaded.
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, *_PACKAGES})
