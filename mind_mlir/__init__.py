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

from mind_mlir.support.loading import loading
from mind_mlir.support.version import VERSION

if TYPE_CHECKING:
    from mind_mlir import distributed as distributed
    from mind_mlir import numpy as numpy
    from mind_mlir.builders.builder import Builder as Builder
    from mind_mlir.builders.function_builder import ModuleBuilder as ModuleBuilder
    from mind_mlir.collectives.sharded_array import ShardedArray as ShardedArray
    from mind_mlir.collectives.sharded_array import shard as shard
    from mind_mlir.conversion import Conversion as Conversion
    from mind_mlir.conversion import ConversionTarget as ConversionTarget
    from mind_mlir.conversion import check_program_legality as check_program_legality
    from mind_mlir.conversion import convert as convert
    from mind_mlir.conversion import get_conversion_target as get_conversion_target
    from mind_mlir.conversion import list_conversion_targets as list_conversion_targets
    from mind_mlir.conversion import register_conversion_target as register_conversion_target
    from mind_mlir.conversion import walk_program as walk_program
    from mind_mlir.conversion.buffers import BufferPlan as BufferPlan
    from mind_mlir.conversion.buffers import plan_buffers as plan_buffers
    from mind_mlir.conversion.stablehlo.text import to_stablehlo as to_stablehlo
    from mind_mlir.diagnostics import ArgumentError as ArgumentError
    from mind_mlir.diagnostics import ArtefactError as ArtefactError
    from mind_mlir.diagnostics import AutodiffError as AutodiffError
    from mind_mlir.diagnostics import Diagnostic as Diagnostic
    from mind_mlir.diagnostics import ExecutionError as ExecutionError
    from mind_mlir.diagnostics import InternalError as InternalError
    from mind_mlir.diagnostics import Location as Location
    from mind_mlir.diagnostics import MindError as MindError
    from mind_mlir.diagnostics import NotFiniteError as NotFiniteError
    from mind_mlir.diagnostics import ParseError as ParseError
    from mind_mlir.diagnostics import TracingError as TracingError
    from mind_mlir.diagnostics import UnsupportedError as UnsupportedError
    from mind_mlir.diagnostics import VerificationError as VerificationError
    from mind_mlir.interpreter import interpret as interpret
    from mind_mlir.ir.mesh import Mesh as Mesh
    from mind_mlir.ir.module import Block as Block
    from mind_mlir.ir.module import CoreOperation as CoreOperation
    from mind_mlir.ir.module import Function as Function
    from mind_mlir.ir.module import Module as Module
    from mind_mlir.ir.sharding import Sharding as Sharding
    from mind_mlir.ir.types import DType as DType
    from mind_mlir.ir.types import TensorType as TensorType
    from mind_mlir.languages import ptir as ptir
    from mind_mlir.languages.core.printer import print_module as print_module
    from mind_mlir.languages.mind.expression_lowering import lower_expression as lower_expression
    from mind_mlir.languages.mind.program import SurfaceProgram as SurfaceProgram
    from mind_mlir.languages.programs.differentiation import differentiate as differentiate
    from mind_mlir.languages.programs.sources import load as load
    from mind_mlir.languages.programs.sources import parse as parse
    from mind_mlir.languages.programs.verification import verify as verify
    from mind_mlir.languages.ptir.program import Program as Program
    from mind_mlir.languages.stablehlo.importing import from_stablehlo as from_stablehlo
    from mind_mlir.languages.stablehlo.tracing import from_jax as from_jax
    from mind_mlir.models.model import Model as Model
    from mind_mlir.models.onnx.importing import from_onnx as from_onnx
    from mind_mlir.models.torch.model import from_torch as from_torch
    from mind_mlir.models.weights.loading import Weights as Weights
    from mind_mlir.models.weights.loading import load_weights as load_weights
    from mind_mlir.models.weights.quantized import QuantizedWeights as QuantizedWeights
    from mind_mlir.ops.custom_attributes import custom_attributes as custom_attributes
    from mind_mlir.ops.custom_library import register_custom_call as register_custom_call
    from mind_mlir.ops.custom_targets import CustomAttribute as CustomAttribute
    from mind_mlir.packaging.loading import Bundle as Bundle
    from mind_mlir.packaging.loading import load_bundle as load_bundle
    from mind_mlir.packaging.writing import package as package
    from mind_mlir.passes.autodiff import Gradient as Gradient
    from mind_mlir.passes.canonicalize import canonicalize as canonicalize
    from mind_mlir.planning.network import Network as Network
    from mind_mlir.planning.plan import plan as plan
    from mind_mlir.planning.plan import plan_layouts as plan_layouts
    from mind_mlir.planning.report import PlannedLayouts as PlannedLayouts
    from mind_mlir.planning.report import ProgramPlan as ProgramPlan
    from mind_mlir.quantization.encoding import decode_weights as decode_weights
    from mind_mlir.quantization.encoding import encode_weights as encode_weights
    from mind_mlir.quantization.model import quantize as quantize
    from mind_mlir.quantization.report import QuantizedLayer as QuantizedLayer
    from mind_mlir.quantization.report import QuantizedModel as QuantizedModel
    from mind_mlir.runtime.compilation import compile as compile
    from mind_mlir.runtime.compilation_count import compilation_count as compilation_count
    from mind_mlir.runtime.executable import Executable as Executable
    from mind_mlir.runtime.function import BoundFunction as BoundFunction
    from mind_mlir.runtime.function import CompiledFunction as CompiledFunction
    from mind_mlir.runtime.gradient_check import GradientCheck as GradientCheck
    from mind_mlir.runtime.lowered import Lowered as Lowered
    from mind_mlir.runtime.memory import MemoryInfo as MemoryInfo
    from mind_mlir.runtime.memory import memory_info as memory_info
    from mind_mlir.runtime.memory import release_memory as release_memory
    from mind_mlir.runtime.memory import set_memory_limit as set_memory_limit
    from mind_mlir.runtime.open_function import OpenFunction as OpenFunction
    from mind_mlir.runtime.program_executable import ProgramExecutable as ProgramExecutable
    from mind_mlir.runtime.staged import StagedFunction as StagedFunction
    from mind_mlir.runtime.surface_function import SurfaceFunction as SurfaceFunction
    from mind_mlir.runtime.threads import get_num_threads as get_num_threads
    from mind_mlir.runtime.threads import set_num_threads as set_num_threads
    from mind_mlir.tracing.control import cond as cond
    from mind_mlir.tracing.control import fori_loop as fori_loop
    from mind_mlir.tracing.control import scan as scan
    from mind_mlir.tracing.control import while_loop as while_loop
    from mind_mlir.tracing.gradient_check import check_grad as check_grad
    from mind_mlir.tracing.jit import jit as jit
    from mind_mlir.tracing.partition import partition as partition
    from mind_mlir.tracing.partition import with_sharding as with_sharding
    from mind_mlir.tracing.printing import debug_print as debug_print
    from mind_mlir.tracing.sharding import all_gather as all_gather
    from mind_mlir.tracing.sharding import all_reduce as all_reduce
    from mind_mlir.tracing.sharding import all_to_all as all_to_all
    from mind_mlir.tracing.sharding import axis_index as axis_index
    from mind_mlir.tracing.sharding import broadcast_from as broadcast_from
    from mind_mlir.tracing.sharding import reduce_scatter as reduce_scatter
    from mind_mlir.tracing.sharding import shard_map as shard_map
    from mind_mlir.tracing.sharding import shift as shift
    from mind_mlir.tracing.transforms import grad as grad
    from mind_mlir.tracing.transforms import value_and_grad as value_and_grad
    from mind_mlir.tracing.transforms import vjp as vjp

__version__ = VERSION

#: Packages that are public names: processes, functions of arrays, and the formats of PTIR.
_PACKAGES = {
    "distributed": "mind_mlir.distributed",
    "numpy": "mind_mlir.numpy",
    "ptir": "mind_mlir.languages.ptir",
}
#: Modules, and the public names that each is the home of; those above for type checkers are the same.
_NAMES = {
    "builders.builder": "Builder",
    "builders.function_builder": "ModuleBuilder",
    "conversion": (
        "Conversion ConversionTarget check_program_legality convert get_conversion_target "
        "list_conversion_targets register_conversion_target walk_program"
    ),
    "conversion.buffers": "BufferPlan plan_buffers",
    "conversion.stablehlo.text": "to_stablehlo",
    "diagnostics": (
        "ArgumentError ArtefactError AutodiffError Diagnostic ExecutionError InternalError "
        "Location MindError NotFiniteError ParseError TracingError UnsupportedError VerificationError"
    ),
    "interpreter": "interpret",
    "collectives.sharded_array": "ShardedArray shard",
    "ir.mesh": "Mesh",
    "ir.sharding": "Sharding",
    "ir.module": "Block CoreOperation Function Module",
    "ir.types": "DType TensorType",
    "languages.core.printer": "print_module",
    "languages.mind.expression_lowering": "lower_expression",
    "languages.mind.program": "SurfaceProgram",
    "languages.programs.differentiation": "differentiate",
    "languages.programs.sources": "load parse",
    "languages.programs.verification": "verify",
    "languages.ptir.program": "Program",
    "languages.stablehlo.importing": "from_stablehlo",
    "languages.stablehlo.tracing": "from_jax",
    "models.model": "Model",
    "models.onnx.importing": "from_onnx",
    "models.weights.loading": "Weights load_weights",
    "models.weights.quantized": "QuantizedWeights",
    "models.torch.model": "from_torch",
    "ops.custom_attributes": "custom_attributes",
    "ops.custom_library": "register_custom_call",
    "ops.custom_targets": "CustomAttribute",
    "packaging.loading": "Bundle load_bundle",
    "packaging.writing": "package",
    "passes.autodiff": "Gradient",
    "passes.canonicalize": "canonicalize",
    "planning.network": "Network",
    "planning.plan": "plan plan_layouts",
    "planning.report": "PlannedLayouts ProgramPlan",
    "quantization.encoding": "decode_weights encode_weights",
    "quantization.model": "quantize",
    "quantization.report": "QuantizedLayer QuantizedModel",
    "runtime.compilation": "compile",
    "runtime.compilation_count": "compilation_count",
    "runtime.executable": "Executable",
    "runtime.function": "BoundFunction CompiledFunction",
    "runtime.lowered": "Lowered",
    "runtime.memory": "MemoryInfo memory_info release_memory set_memory_limit",
    "runtime.program_executable": "ProgramExecutable",
    "runtime.open_function": "OpenFunction",
    "runtime.staged": "StagedFunction",
    "runtime.surface_function": "SurfaceFunction",
    "runtime.threads": "get_num_threads set_num_threads",
    "runtime.gradient_check": "GradientCheck",
    "tracing.control": "cond fori_loop scan while_loop",
    "tracing.gradient_check": "check_grad",
    "tracing.jit": "jit",
    "tracing.printing": "debug_print",
    "tracing.partition": "partition with_sharding",
    "tracing.sharding": (
        "all_gather all_reduce all_to_all axis_index broadcast_from reduce_scatter shard_map shift"
    ),
    "tracing.transforms": "grad value_and_grad vjp",
}
_HOMES = {name: f"mind_mlir.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)  # noqa: PLE0605 -- the names above, for type checkers said by their imports


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        with loading():
            return import_module(_PACKAGES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'mind_mlir' has no attribute {name!r}")
    home = _HOMES[name]
    if home not in sys.modules:
        with loading():
            import_module(home)
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    # What else is here is the package's own: names that this file uses, and modules that have been loaded.
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, *_PACKAGES})
