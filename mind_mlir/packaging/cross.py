"""Objects for machines other than this one, whose code generators the bindings lack: llvmlite brings them.

It is LLVM, too, of another version: a module goes there as text, in the words of that version.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from mind_mlir.diagnostics import InternalError
from mind_mlir.mlir.bindings import Module, llvm
from mind_mlir.packaging.errors import missing_tool, unsupported
from mind_mlir.packaging.older_ir import in_older_words
from mind_mlir.support.interrupts import held
from mind_mlir.target import Target, host_architecture, triple_of
from mind_mlir.target.processors import LEVELS

#: The first release with LLVM 22, into whose words texts are put.
_LEAST = (0, 50)
#: How much code generators do. Passes that have nothing to gain are left out before.
_CODE_LEVEL = 3
_ASSEMBLY = re.compile(r"^ .*\bcall\b[^\"\n]*\basm\b", re.MULTILINE)


def needs_cross(target: Target) -> bool:
    """Return whether the code generators of the bindings, which are this machine's, make no code for it."""
    return target.machine != host_architecture()


@held()
def cross_object(module: Module, target: Target, *, opt_level: int = 3) -> bytes:
    """Return a module as a relocatable ELF object for Linux: position-independent, of the small code model.

    Args:
        module: A module of the LLVM dialect, whose functions say which processor they are for.
        target: The processor; functions that do not say theirs get the least of its architecture.
        opt_level: LLVM's level of optimisation, 0 to 3.

    Raises:
        ArtefactError: E6503, llvmlite is missing or too old; E6504, the module has assembly of another
            architecture than this machine's.
        InternalError: LLVM does not take the module.
    """
    binding = _binding(target)
    triple = triple_of(target)
    text = in_older_words(llvm.translate_module_to_llvmir(module.operation))
    if needs_cross(target) and _ASSEMBLY.search(text):
        raise unsupported(
            "processor",
            f"the code asks what a processor of {target.machine} has, in assembly, which needs one",
            f"compile there, or for the least processor: --target={target.machine}-linux",
        )
    try:
        machine = binding.Target.from_triple(triple).create_target_machine(
            cpu=LEVELS[target.machine][0], opt=_CODE_LEVEL, reloc="pic", codemodel="small"
        )
        layout = f'target triple = "{triple}"\ntarget datalayout = "{machine.target_data}"\n'
        parsed = binding.parse_assembly(layout + text)
        parsed.verify()
        _optimise(binding, parsed, machine, opt_level)
        data: bytes = machine.emit_object(parsed)
    except RuntimeError as error:
        raise InternalError("codegen", f"LLVM makes no code of the module: {error}", str(module)) from None
    return data


def _optimise(binding: Any, module: Any, machine: Any, level: int) -> None:
    """Run LLVM's passes, as the engine does."""
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_unrolling = options.loop_interleaving = True
    options.loop_vectorization = options.slp_vectorization = True
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _binding(target: Target) -> Any:
    """Return llvmlite's bindings of LLVM, ready to make code of all machines."""
    what = f"code for {target.machine} is made with llvmlite"
    help_ = "install it: pip install 'mind-mlir[cross]'"
    try:
        binding = importlib.import_module("llvmlite.binding")
        version = importlib.import_module("llvmlite").__version__
    except ImportError:
        raise missing_tool("llvmlite", f"{what}, which is not installed", help_) from None
    if tuple(int(part) for part in version.split(".")[:2]) < _LEAST:
        raise missing_tool("llvmlite", f"{what}, and llvmlite {version} is too old", help_)
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_asmparser()
    return binding
