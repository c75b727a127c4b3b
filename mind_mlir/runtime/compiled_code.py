"""The code of a module: kept from before, or compiled now."""

from __future__ import annotations

import functools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.cache.codes import find_code, keep_code
from mind_mlir.cache.directory import store_for
from mind_mlir.cache.fingerprint import has_bindings
from mind_mlir.cache.key import key_of, labels_digest
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.diagnostics.display import brief
from mind_mlir.image.compiled import Compilation, CompiledCode
from mind_mlir.ir.entry import exported
from mind_mlir.ir.interface import interface_of
from mind_mlir.passes.forms import FrontHalf, reducible, timed
from mind_mlir.runtime.native import has_python_functions
from mind_mlir.runtime.threads import begin_pool, get_num_threads
from mind_mlir.support.compilations import note_compilation
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.loading import loading
from mind_mlir.support.resources import usable_cores
from mind_mlir.support.speed_ups import attempted
from mind_mlir.target import Target, named_target, runs_here

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module
    from mind_mlir.lowering.profiling.stamps import Stamps
    from mind_mlir.passes.record import Evaluate
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.support.stages import Observer


@fixed()
def code_of(
    module: Module,
    options: CompileOptions,
    *,
    target: Target,
    threads: int | None,
    observer: Observer | None = None,
    stamps: Stamps | None = None,
) -> Compilation:
    """Return the code of a module for this process (see `codegen.compiling.compile_module`).

    Where an observer looks, or code has stamps, the module goes through all stages.
    """
    compiled = partial(
        _compiled, module, options, target=target, threads=threads, observer=observer, stamps=stamps
    )
    store = None if observer is not None or stamps is not None else store_for(options.cache)
    if store is None:
        return compiled()
    timings: dict[str, float] = {}
    with reducible(module, lambda other, _: FrontHalf().run(other, "canonical")):
        canonical = FrontHalf(timer=partial(timed, timings)).run(module, "canonical")
    labels = functools.cache(partial(labels_digest, canonical))
    with timed(timings, "cache"):
        key = attempted(lambda: key_of(canonical, options, target, threads))
        found = None if key is None else attempted(lambda: find_code(store, key, labels))
        if found is not None and not _is_of(found, canonical):
            found = None
    if found is not None:
        return Compilation(found, canonical, timings)
    made = compiled(canonical=canonical)
    if key is not None:
        with timed(timings, "cache"):
            attempted(lambda: keep_code(store, key, labels, made.code))
    return replace(made, timings={**timings, **made.timings})


def _is_of(code: CompiledCode, canonical: Module) -> bool:
    """Return whether code shows callers the functions of a module."""
    shown = [(entry.name, entry.parameters, entry.outputs) for entry in code.entries]
    interfaces = [(function.name, interface_of(function)) for function in exported(canonical)]
    return shown == [(name, each.parameters, each.outputs) for name, each in interfaces]


def _compiled(
    module: Module,
    options: CompileOptions,
    *,
    target: Target,
    threads: int | None,
    canonical: Module | None = None,
    observer: Observer | None = None,
    stamps: Stamps | None = None,
) -> Compilation:
    if not has_bindings():
        raise UnsupportedError(_no_bindings(module))
    note_compilation()
    with loading():
        attempted(lambda: begin_pool(threads))
        from mind_mlir.codegen.compiling import compile_module  # noqa: PLC0415 -- loads MLIR, which kept code does without

    return compile_module(
        module,
        options,
        target=target,
        threads=threads,
        most=min(get_num_threads(), usable_cores()),
        canonical=canonical,
        observer=observer,
        evaluate=evaluation(options),
        stamps=stamps,
        polls=has_python_functions(),
    )


def _no_bindings(module: Module) -> Diagnostic:
    shown = brief(", ".join(str(interface_of(each)) for each in exported(module)))
    return Diagnostic(
        "E7003",
        f"{shown} must be compiled here, and the MLIR bindings are not installed",
        help="install torch-mlir; a worker without it runs what was compiled before it was sent, for "
        "arguments of the same dtypes and shapes",
        context={"program": shown},
    )


def evaluation(options: CompileOptions) -> Evaluate | None:
    """Return what runs code while a module is compiled with ``options``, where these ask for it.

    The code is for the processor that the module is for; where this machine is another one, nothing is run.
    """
    if not options.prepares or not runs_here(named_target(options.target)):
        return None
    from mind_mlir.runtime.executable import Executable  # noqa: PLC0415 -- which reads this module

    # What it gives is in the code that is kept.
    alone = replace(options, prepares=False, cache=False)
    return lambda module: Executable(module, alone)()
