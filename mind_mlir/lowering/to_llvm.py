"""From linalg, vector and scf on buffers to the LLVM dialect.

Functions keep their arguments one for one: a contiguous memref becomes a bare pointer. A public function of
more than `parts.MAX_BUFFERS` buffers takes one pointer instead, to a table of these. Compiled code calls
nothing but libm and mem* functions, where threads share its loops the pool that they belong to, and where its
loops look for interrupts the clock and CPython.

Only those passes run that a module needs. A pass takes its time where it finds nothing, too: greedy rewriting
looks at every operation several times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.booleans import move_as_bytes
from mind_mlir.lowering.copies import expand_copies, expand_fills
from mind_mlir.lowering.custom_calls import define_custom_calls, take_custom_calls
from mind_mlir.lowering.functions.captures import ALIASING_ATTRIBUTE
from mind_mlir.lowering.functions.outlining import outline_kernels
from mind_mlir.lowering.functions.splitting import add_table_functions, cut_into_parts
from mind_mlir.lowering.functions.threads import define_launches, outline_chunks
from mind_mlir.lowering.kernels.library import declared_kernels, link_library
from mind_mlir.lowering.llvm_hints import SCALAR_ATTRIBUTE, annotate_loops, attach_annotations, fence_shuffles
from mind_mlir.lowering.math.expansion import INLINE_ATTRIBUTE, REPLACED, define_expansions, expand_math
from mind_mlir.lowering.math.narrow_floats import expand_narrow_floats
from mind_mlir.lowering.math.quotients import DIVISIONS, divide_as_floats
from mind_mlir.lowering.polling import poll_in_loops
from mind_mlir.lowering.streaming import stream_stores
from mind_mlir.lowering.strided_rows import move_strided_rows, place_gathers
from mind_mlir.mlir.bindings import func, ir
from mind_mlir.mlir.locations import Sharing
from mind_mlir.mlir.memory import reinterpreted
from mind_mlir.mlir.passes import run_passes, survey
from mind_mlir.mlir.values import function_around
from mind_mlir.target import AARCH64, X86_64, named_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Attribute, Module, Operation, Type
    from mind_mlir.target import Target

#: What every processor of an architecture has.
_LEAST = {X86_64: ("+sse2",), AARCH64: ("+neon",)}
_LINALG = ("linalg.",)
#: Names, among those of a module's operations, for what the name of an operation alone does not tell: a
#: transfer of more than a row, or a view that is more than a cast.
_WIDE_TRANSFER, _OTHER_VIEW = "wide transfer", "other view"
#: The order matters: each pass leaves what a later one takes. A pass takes its time where it has nothing to
#: do, too: one with names is for operations whose names start so.
_TO_LOOPS = (
    ("convert-linalg-to-loops", _LINALG),
    ("scf-forall-to-for", ("scf.forall",)),
    ("func.func(lower-vector-multi-reduction)", ("vector.multi_reduction",)),
    ("convert-vector-to-scf{full-unroll=true target-rank=1}", (_WIDE_TRANSFER,)),
    ("lower-affine", ("affine.", _WIDE_TRANSFER, *_LINALG)),
)
_TO_LLVM = (
    ("arith-expand", ()),
    ("memref-expand", ("memref.atomic_rmw", "memref.generic_atomic_rmw", "memref.reshape")),
    ("expand-strided-metadata", (_OTHER_VIEW, *_LINALG)),
    ("lower-affine", (_OTHER_VIEW, *_LINALG)),
    ("convert-scf-to-cf", ("scf.", *_LINALG)),
    ("convert-math-to-llvm", ("math.", *_LINALG)),
    ("convert-math-to-libm", ("math.", *_LINALG)),
    ("convert-vector-to-llvm", ()),
    ("convert-to-llvm", ()),
    ("reconcile-unrealized-casts", ()),
    # Upwards, one time is enough: what uses a value is simplified before it.
    ("canonicalize{max-iterations=1 region-simplify=disabled top-down=false}", ()),
)


def to_llvm(
    module: Module,
    target: Target | None = None,
    *,
    threads: int | None = None,
    link: bool = True,
    verify: bool = False,
    sharing: Sharing = Sharing.FIRST,
    polls: bool = False,
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
        sharing: What code says of its places that several places of the program have in common.
        polls: Whether loops of the program look for interrupts.
    """
    machine = target or named_target()
    with module.context, ir.Location.unknown():
        _, found = survey(module, "memref.copy", "linalg.map", "linalg.fill", "scf.for")
        expand_copies(found["memref.copy"], machine)
        expand_fills(found["linalg.map"] + found["linalg.fill"], machine)
        stream_stores(found["scf.for"])
        custom = take_custom_calls(module)
        launches = outline_chunks(module, sharing) if threads != 1 else []
        outline_kernels(module, sharing)
        tables = cut_into_parts(module)
        names, found = _survey(module)
        place_gathers(found["vector.gather"])
        _hoist_stack_buffers(found["memref.alloca"])
        move_as_bytes(move_strided_rows(op for name in TRANSFERS for op in found[name]))
        for op in module.body.operations:
            if isinstance(op, func.FuncOp) and op.regions[0].blocks:
                _describe_pointers(op)
        to_loops = _needed(_TO_LOOPS, names)
        if to_loops:
            run_passes(module, to_loops, verify=verify)
            names, found = _survey(module)
        loops = found["scf.for"] + found["scf.while"]
        annotate_loops(loops)
        poll_in_loops(module, loops if polls else [])
        divide_as_floats(op for name in DIVISIONS for op in found[name])
        replaced = [op for name in REPLACED for op in found[name]]
        expansions = expand_math(module, replaced, fma=machine.fma, scales=machine.scales)
        if not expansions.others:
            names.difference_update(REPLACED)
        expand_narrow_floats(module, names, machine, verify=verify)
        run_passes(module, _needed(_TO_LLVM, names), verify=verify)
        if "vector.shuffle" in names:
            fence_shuffles(module)
        add_table_functions(module, tables)
        define_launches(module, launches, limit=threads or 0)
        attach_annotations(module)
        define_expansions(module, expansions)
        define_custom_calls(module, custom)
        if link:
            link_library(module, kernel_attributes(machine))
        attributes = target_attributes(machine)
        for op in module.body.operations:
            if op.operation.name == "llvm.func" and op.regions[0].blocks:
                _keep_apart(op)
                _use_full_vectors(op, machine)
                for name, value in attributes.items():
                    op.attributes[name] = value


def target_attributes(target: Target) -> dict[str, Attribute]:
    """Return the attributes of functions of the LLVM dialect that are compiled for ``target``."""
    if not target.cpu:  # the machine that compiles
        return {}
    # Without features of its own, a function would have those of the machine that compiles.
    features = ", ".join(f'"{feature}"' for feature in target.features or _LEAST[target.machine])
    attributes = {
        "target_cpu": ir.StringAttr.get(target.cpu),
        "target_features": ir.Attribute.parse(f"#llvm.target_features<[{features}]>"),
    }
    if target.tune:
        attributes["tune_cpu"] = ir.StringAttr.get(target.tune)
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


def _survey(module: Module) -> tuple[set[str], dict[str, list[Operation]]]:
    """Return the names of all operations of ``module``, and those that later steps look at, by name.

    What `_WIDE_TRANSFER` and `_OTHER_VIEW` stand for is among the names; other views become casts.
    """
    kept = ("memref.alloca", "scf.for", "scf.while", "vector.gather")
    names, found = survey(module, *kept, *REPLACED, *DIVISIONS, *VIEWS, *TRANSFERS)
    if cast_views(op for name in VIEWS for op in found[name]):
        names.add(_OTHER_VIEW)
    if not move_rows(op for name in TRANSFERS for op in found[name]):
        names.add(_WIDE_TRANSFER)
    return names, found


def _needed(passes: Iterable[tuple[str, tuple[str, ...]]], names: Iterable[str]) -> str:
    """Return the pipeline of those ``passes`` that have something to do among operations ``names``."""
    return ",".join(
        text for text, prefixes in passes if not prefixes or any(name.startswith(prefixes) for name in names)
    )


def _hoist_stack_buffers(buffers: Iterable[Operation]) -> None:
    """Let each buffer on the stack be there once: what a loop allocates in each iteration would add up."""
    for op in buffers:
        entry = function_around(op).regions[0].blocks[0]
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


def _use_full_vectors(function: Operation, target: Target) -> None:
    """Let LLVM vectorize for the whole register, where it would stop at 256 bits by itself.

    It vectorizes scalars alone; our vectors stay as wide as they are. For each different setting of functions
    that it compiles together, LLVM makes tables, which take a millisecond, and 0.6 MB while the code lives.
    """
    if SCALAR_ATTRIBUTE in function.attributes:
        function.attributes["prefer_vector_width"] = ir.StringAttr.get(str(8 * target.vector_bytes))


#: Views that only `expand-strided-metadata` takes apart, unless they are at a place that is a constant.
VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.subview")
#: What may move more than a row of a buffer at once.
TRANSFERS = ("vector.transfer_read", "vector.transfer_write")


def cast_views(views: Iterable[Operation]) -> bool:
    """Turn those of a module's ``views`` at constant places into casts; return whether others are left."""
    others = False
    for view in views:
        type_ = view.results[0].type
        if len(view.operands) > 1 or not _is_static(type_):
            others = True
            continue
        with ir.InsertionPoint(view), view.location:
            cast = reinterpreted(view.operands[0], type_)
        view.results[0].replace_all_uses_with(cast)
        view.erase()
    return others


def _is_static(type_: Type) -> bool:
    """Return whether shape, strides and offset of a memref type are constants."""
    strides, offset = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return bool(type_.has_static_shape) and offset != dynamic and dynamic not in strides


def move_rows(transfers: Iterable[Operation]) -> bool:
    """Return whether ``transfers`` all are of vectors of rank 1 that run along the last axis of a buffer."""
    buffers: dict[Type, bool] = {}
    maps: dict[Attribute, bool] = {}
    for op in transfers:
        buffer = op.operands[0 if op.name == "vector.transfer_read" else 1].type
        map_ = op.attributes["permutation_map"]
        if buffer not in buffers:
            buffers[buffer] = isinstance(buffer, ir.MemRefType) and _has_dense_rows(buffer)
        if map_ not in maps:
            affine = ir.AffineMapAttr(map_).value
            maps[map_] = affine == ir.AffineMap.get_minor_identity(affine.n_dims, 1)
        if not (buffers[buffer] and maps[map_]):
            return False
    return True


def _has_dense_rows(type_: Type) -> bool:
    strides, _ = type_.get_strides_and_offset()
    return bool(strides) and strides[-1] == 1
