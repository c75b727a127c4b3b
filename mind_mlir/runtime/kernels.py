"""Micro-kernels of products, which become machine code once in a process, whichever modules call them.

Their code depends on nothing but the tile, the dtypes and the target. There are a few dozen at most, and they
stay until the process ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.contraction.library import define_kernel
from mind_mlir.lowering.to_llvm import target_attributes
from mind_mlir.runtime.ahead import making
from mind_mlir.runtime.library import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.contraction.library import Kernel
    from mind_mlir.target import Target

#: LLVM's passes would take as long as making the code, and leave it as fast as it is.
_LEVEL = 0

_codes: dict[tuple[Kernel, Target], Code] = {}


def begin_kernels(kernels: Sequence[Kernel], target: Target) -> None:
    """Begin to make the code of ``kernels``, but for those there are; the context is the current one."""
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
                module.body.append(function)
            code = Code(module, opt_level=_LEVEL)
        _codes.update(((kernel, target), code) for kernel in missing)


def kernel_address(kernel: Kernel, target: Target) -> int:
    """Return where the machine code of a kernel is, which `begin_kernels` was given."""
    return _codes[kernel, target].addresses()[kernel.name]
