"""Modules to `CompiledCode`: through all stages, and LLVM."""

from __future__ import annotations

import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.cache.directory import store_for
from mind_mlir.codegen.contexts import borrowed, is_small
from mind_mlir.codegen.kernels import begin_kernels
from mind_mlir.codegen.machine_code import machine_code
from mind_mlir.image.compiled import Compilation, CompiledCode
from mind_mlir.image.entry import Entry
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.entry import exported
from mind_mlir.ir.interface import interface_of
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.mlir.references import References
from mind_mlir.passes.forms import described, reducible
from mind_mlir.support import progress
from mind_mlir.support.interrupts import deliver, held
from mind_mlir.target import required_features
from mind_mlir.target.abi import symbol_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.codegen.entries import EntrySignature
    from mind_mlir.ir.module import Module
    from mind_mlir.lowering.profiling.stamps import Stamps
    from mind_mlir.passes.record import Evaluate
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.support.stages import Observer
    from mind_mlir.target import Target


@held()
def compile_module(
    module: Module,
    options: CompileOptions,
    *,
    target: Target,
    threads: int | None,
    most: int,
    canonical: Module | None = None,
    observer: Observer | None = None,
    evaluate: Evaluate | None = None,
    stamps: Stamps | None = None,
    polls: bool = False,
) -> Compilation:
    """Compile a module.

    Args:
        module: A module of any profile; it is verified and canonicalised first.
        options: What the caller chose.
        target: The processor.
        threads: How many threads share a loop at most, as `to_llvm` takes it.
        most: How many parts of the module are compiled at the same time at most.
        canonical: The module in canonical form, where that has been made already; there is no observer then.
        observer: Sees every stage's form as it appears.
        evaluate: Runs code while the module is compiled, if it is to be optimised so.
        stamps: Take the time of each nest where the code runs, if that is wanted.
        polls: Whether loops of the program look for interrupts, where Python calls the code.

    Raises:
        VerificationError: The module breaks a rule; the exception holds all findings.
        UnsupportedError: E7004, branches and loops nest too deeply.
        InternalError: A stage failed on a verified module.
    """
    store = store_for(options.cache)
    seen = progress.shown(partial(described, module)) if observer is None else nullcontext()
    small = is_small(module)
    with seen, borrowed(keep=observer is None and small) as context:
        references = None if observer else References()
        lowering = Lowering(
            target,
            threads=threads,
            options=options,
            observer=observer,
            kernels=partial(begin_kernels, target=target, store=store),
            references=references,
            context=context,
            canonical=canonical,
            evaluate=evaluate,
            stamps=stamps,
            polls=polls,
        )
        lowering.run(module)
        start = time.perf_counter()
        progress.step("codegen")
        alike = partial(compile_module, options=options, target=target, threads=threads, most=most)
        with reducible(module, lambda other, _: alike(other)):
            made = machine_code(
                lowering.mlir,
                opt_level=options.opt_level,
                target=target,
                references=references,
                most=most,
                store=store,
                takes_long=not small,
            )
        lowering.timings["codegen"] = time.perf_counter() - start
    assert lowering.canonical is not None, "a lowering that went through has a canonical module"
    entries = entries_of(lowering, made.signatures)
    code = CompiledCode(made.image, entries, made.data, required_features(target))
    return Compilation(code, lowering.canonical, lowering.timings)


def entries_of(lowering: Lowering, signatures: Mapping[str, EntrySignature]) -> tuple[Entry, ...]:
    """Return what is known of the exported functions of a module that has been lowered.

    Args:
        lowering: What has lowered it.
        signatures: How the functions are called, by their names in the code.
    """
    found = []
    assert lowering.canonical is not None, "a lowering that went through has a canonical module"
    mesh = mesh_text(lowering.canonical)
    for function in exported(lowering.canonical):
        deliver()
        symbol, interface = symbol_of(function.name), interface_of(function)
        # The MLIR values in the checks die with the module; only their facts are kept.
        checks = tuple(outcome.check for outcome in lowering.checks_of[symbol])
        entry, taken, given = signatures[symbol], interface.parameters, interface.outputs
        scratch = entry.scratch_bytes
        found.append(Entry(function.name, entry.symbol, taken, given, checks, scratch, mesh))
    return tuple(found)
