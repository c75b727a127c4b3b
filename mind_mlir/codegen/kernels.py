"""Micro-kernels of products, which become machine code once in a process, whichever modules call them.

Their code depends on nothing but the tile, the dtypes and the target. There are a few dozen at most, whose
objects stay until the process ends; what a module calls of them becomes part of its image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.codegen.ahead import making
from mind_mlir.codegen.library import NativeCode
from mind_mlir.lowering.schedule.contraction.kernels.library import define_kernel
from mind_mlir.lowering.to_llvm import target_attributes
from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.library import Kernel
    from mind_mlir.target import Target

#: LLVM's passes would take as long as making the code, and leave it as fast as it is.
_LEVEL = 0

_codes: dict[tuple[Kernel, Target], NativeCode] = {}


def begin_kernels(kernels: Sequence[Kernel], target: Target) -> None:
    """Begin to make the objects of ``kernels``, but for those there are; the context is the current one."""
    with making:
        missing = [kernel for kernel in kernels if (kernel, target) not in _codes]
        if not missing:
            return
        with ir.Location.unknown():
            module = ir.Module.create()
            attributes = target_attributes(target)
            for kernel in missing:
                function = define_kernel(kernel, attributes)
                del function.attributes["sym_visibility"]
                # So that linking can take one without the others.
                function.attributes["section"] = ir.StringAttr.get(f".text.{kernel.name}")
                module.body.append(function)
            code = NativeCode(module, opt_level=_LEVEL)
        _codes.update(((kernel, target), code) for kernel in missing)


def kernel_object(kernel: Kernel, target: Target) -> bytes:
    """Return the object that holds a kernel, which `begin_kernels` was given; others may be in it, too."""
    return _codes[kernel, target].object()
