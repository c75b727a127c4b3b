"""From linalg, vector and scf on buffers to the LLVM dialect.

Functions keep their arguments one for one: a contiguous memref becomes a bare pointer. A public function of
more than `parts.MAX_BUFFERS` buffers takes one pointer instead, to a table of these. Compiled code calls
nothing but libm and mem* functions, and where threads share its loops, the pool that they belong to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import func, ir, memref
from mind_mlir.lowering.closures import ALIASING_ATTRIBUTE
from mind_mlir.lowering.copies import expand_copies
from mind_mlir.lowering.loop_hints import annotate_loops, attach_annotations
from mind_mlir.lowering.outline import outline_kernels
from mind_mlir.lowering.parts import add_table_functions, cut_into_parts
from mind_mlir.lowering.schedule.contraction.library import declared_kernels, link_library
from mind_mlir.lowering.streaming import stream_stores
from mind_mlir.lowering.threads import define_launches, outline_chunks
from mind_mlir.lowering.vector_math import INLINE_ATTRIBUTE, expand_math, inline_expansions
from mind_mlir.mlir.passes import run_passes, survey
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.bindings import Attribute, Module, Operation
    from mind_mlir.target import Target

#: The order matters: each pass leaves what a later one takes. A pass with names is for operations whose names
#: start so, and takes its time where there are none, too.
_TO_LOOPS = (
    ("convert-linalg-to-loops", ("linalg.",)),
    ("scf-forall-to-for", ()),
    ("func.func(lower-vector-multi-reduction)", ("vector.multi_reduction",)),
    ("convert-vector-to-scf{full-unroll=true target-rank=1}", ()),
    ("lower-affine", ()),
)
_TO_LLVM = (
    # bf16 arithmetic is done in f32 and rounded by integer code: that needs neither a run-time library,
    # nor the conversion instructions, which flush denormals.
    ("arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}", ()),
    ("arith-expand{include-bf16=true}", ()),
    ("memref-expand", ("memref.atomic_rmw", "memref.generic_atomic_rmw", "memref.reshape")),
    ("expand-strided-metadata", ()),
    ("lower-affine", ()),
    ("convert-scf-to-cf", ()),
    ("convert-math-to-llvm", ("math.", "linalg.")),
    ("convert-math-to-libm", ("math.", "linalg.")),
    ("convert-vector-to-llvm", ()),
    ("convert-to-llvm", ()),
    ("reconcile-unrealized-casts", ()),
    ("canonicalize{region-simplify=disabled}", ()),
)


def to_llvm(
    module: Module,
    target: Target | None = None,
    *,
    threads: int | None = None,
    link: bool = True,
    verify: bool = False,
) -> None:
    """Lower a bufferized ``module`` to the LLVM dialect, in place.

    Args:
        module: Functions on contiguous memrefs of static shape. The buffers that a function is given must not
            overlap, except for two that it only reads.
        target: The machine that will run the code; the one at hand by default.
        threads: How many threads share a parallel loop at most; with 1, all loops stay loops. By default it
            is what the process is set to when the code runs.
        link: Whether the micro-kernels that are called join the module; else they are declared.
        verify: Run MLIR's verifier after each pass.
    """
    machine = target or named_target()
    with module.context, ir.Location.unknown():
        expand_copies(module)
        stream_stores(module)
        launches = outline_chunks(module) if threads != 1 else []
        outline_kernels(module)
        tables = cut_into_parts(module)
        names, stack = survey(module, memref.AllocaOp)
        _hoist_stack_buffers(stack)
        for op in module.body.operations:
            if isinstance(op, func.FuncOp) and op.regions[0].blocks:
                _describe_pointers(op)
        run_passes(module, _needed(_TO_LOOPS, names), verify=verify)
        annotate_loops(module)
        inlined = expand_math(module, fma=machine.fma)
        run_passes(module, _needed(_TO_LLVM, names), verify=verify)
        add_table_functions(module, tables)
        define_launches(module, launches, limit=threads or 0)
        attach_annotations(module)
        inline_expansions(module, inlined)
        if link:
            link_library(module, kernel_attributes(machine))
        for op in module.body.operations:
            if op.operation.name == "llvm.func" and op.regions[0].blocks:
                _keep_apart(op)
                for name, value in target_attributes(machine).items():
                    op.attributes[name] = value


def target_attributes(target: Target) -> dict[str, Attribute]:
    """Return the attributes of functions of the LLVM dialect that are compiled for ``target``."""
    # LLVM would vectorize for 256 bits by itself, though registers are wider.
    attributes = {"prefer_vector_width": ir.StringAttr.get(str(8 * target.vector_bytes))}
    if target.cpu:  # else it is the machine that compiles
        features = ", ".join(f'"{feature}"' for feature in target.features)
        attributes["target_cpu"] = ir.StringAttr.get(target.cpu)
        attributes["target_features"] = ir.Attribute.parse(f"#llvm.target_features<[{features}]>")
    return attributes


def kernel_attributes(target: Target) -> dict[str, Attribute]:
    """Return the attributes of micro-kernels for ``target`` as functions of a module that calls them."""
    linkage = ir.Attribute.parse("#llvm.linkage<internal>")
    return {"no_inline": ir.UnitAttr.get(), "linkage": linkage, **target_attributes(target)}


def linked(module: Module, target: Target) -> Module:
    """Return ``module``, in the LLVM dialect, with the code of the kernels that it declares: then a copy."""
    if not declared_kernels(module):
        return module
    with module.context, ir.Location.unknown():
        copy = module.operation.clone().opview
        link_library(copy, kernel_attributes(target))
        return copy


def _needed(passes: Iterable[tuple[str, tuple[str, ...]]], names: Iterable[str]) -> str:
    """Return the pipeline of those ``passes`` that have something to do among operations ``names``."""
    return ",".join(
        text for text, prefixes in passes if not prefixes or any(name.startswith(prefixes) for name in names)
    )


def _hoist_stack_buffers(buffers: Iterable[Operation]) -> None:
    """Let each buffer on the stack be there once: what a loop allocates in each iteration would add up."""
    for op in buffers:
        function = op
        while function.name != "func.func":
            function = function.parent.operation
        entry = function.regions[0].blocks[0]
        if op.operation.block != entry:
            op.move_before(entry.operations[0])


def _describe_pointers(function: Operation) -> None:
    """Tell LLVM that arguments are bare pointers to memory that no other pointer writes."""
    unit = ir.UnitAttr.get()
    attributes = function.attributes
    attributes["llvm.bareptr"] = unit
    if ALIASING_ATTRIBUTE in attributes:
        return
    types = function.type.inputs
    given = attributes["arg_attrs"] if "arg_attrs" in attributes else [{}] * len(types)
    described = []
    for type_, old in zip(types, given, strict=True):
        merged = {each.name: each.attr for each in old}
        if isinstance(type_, ir.MemRefType):
            merged["llvm.noalias"] = unit
        described.append(ir.DictAttr.get(merged))
    attributes["arg_attrs"] = ir.ArrayAttr.get(described)


def _keep_apart(function: Operation) -> None:
    """Stop LLVM from inlining ``function``: copies in wrappers and callers would be compiled once more."""
    attributes = function.attributes
    if INLINE_ATTRIBUTE in attributes:
        return
    attributes["no_inline"] = ir.UnitAttr.get()
    if "sym_visibility" in attributes:  # private
        attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
