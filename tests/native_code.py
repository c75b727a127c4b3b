"""Functions of modules of the LLVM dialect as machine code, for tests of lowering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.codegen.disassemble import disassemble
from mind_mlir.codegen.machine_code import listed_object, machine_code
from mind_mlir.lowering.bufferize import bufferize
from mind_mlir.lowering.tiling import tile
from mind_mlir.runtime.native import NativeFunction, NativeModule

if TYPE_CHECKING:
    from mind_mlir.target import Target


def native_function(
    module: Any, *, opt_level: int = 3, entry: str = "main", target: Target | None = None
) -> NativeFunction:
    """Return function ``entry`` of a module that `to_llvm` has lowered."""
    made = machine_code(module, opt_level=opt_level, target=target)
    signature = made.signatures[entry]
    loaded = NativeModule(made.image, made.data)
    return NativeFunction(loaded, signature.symbol, signature.pointers, signature.scratch_bytes)


def put_on_memory(module: Any, *, verify: bool = False) -> None:
    """Take a module on tensors to memory, and place its temporaries."""
    tile(module, verify=verify)
    bufferize(module)


def imports(native: NativeFunction) -> list[str]:
    """Return what the code of a function refers to elsewhere."""
    return [each.symbol for each in native._module._loaded.image.imports]


def assembly(module: Any, *, opt_level: int = 3) -> str:
    """Return the machine code of such a module as assembly."""
    return disassemble(listed_object(module, opt_level=opt_level))
