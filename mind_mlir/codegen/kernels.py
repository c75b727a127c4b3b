"""Micro-kernels of products, which become machine code once, whichever modules call them.

Their code depends on nothing but the tile, the dtypes and the target. There are a few dozen at most, whose
objects stay until the process ends, and in the cache where there is one; what a module calls of them becomes
part of its image.
"""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.cache.codes import find_object, keep_object
from mind_mlir.cache.key import key_of_function
from mind_mlir.codegen.ahead import making
from mind_mlir.codegen.library import NativeCode
from mind_mlir.image.elf import function_names
from mind_mlir.lowering.kernels.library import define_kernel
from mind_mlir.lowering.to_llvm import target_attributes
from mind_mlir.mlir.bindings import ir
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.speed_ups import attempted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.cache.store import Store
    from mind_mlir.lowering.kernels.library import Kernel
    from mind_mlir.target import Target

#: LLVM's passes would take as long as making the code, and leave it as fast as it is.
_LEVEL = 0


@dataclass(frozen=True, slots=True, eq=False)
class KernelCode:
    """The code of kernels that were made together.

    Attributes:
        names: What they are called.
        object: Returns the object that holds them, after waiting for it; any thread may call this.
        stores: The caches that have it.
    """

    names: tuple[str, ...]
    object: Callable[[], bytes]
    stores: set[Store] = field(default_factory=set)


_codes: dict[tuple[Kernel, Target], KernelCode] = {}


def begin_kernels(kernels: Sequence[Kernel], target: Target, store: Store | None = None) -> None:
    """Begin to make the objects of ``kernels``, but for those there are, also in the cache ``store``.

    The context is the current one.
    """
    with making:
        if store is not None:
            attempted(partial(_find, store, kernels, target))
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
            made = NativeCode(module, opt_level=_LEVEL)
        code = KernelCode(tuple(kernel.name for kernel in missing), made.object)
        _codes.update(((kernel, target), code) for kernel in missing)


def kernel_objects(kernels: Sequence[Kernel], target: Target, store: Store | None = None) -> list[bytes]:
    """Return the objects that hold kernels, which `begin_kernels` was given; others may be in them, too.

    The cache ``store`` has them afterwards.
    """
    codes = list(dict.fromkeys(_codes[kernel, target] for kernel in kernels))
    objects = [code.object() for code in codes]
    for code in codes:
        if store is not None and store not in code.stores:
            code.stores.add(store)
            attempted(partial(_keep, store, code, target))
    return list(dict.fromkeys(objects))


def _find(store: Store, kernels: Sequence[Kernel], target: Target) -> None:
    """Have the code of those kernels that are in a cache; objects that hold several are read once."""
    for kernel in kernels:
        key = None if (kernel, target) in _codes else key_of_function(kernel.name, target)
        data = None if key is None else find_object(store, key)
        if data is not None:
            names = function_names(data)
            code = KernelCode(names, partial(bytes, data), {store})
            for each in kernels:
                if each.name in names:
                    _codes.setdefault((each, target), code)


def _keep(store: Store, code: KernelCode, target: Target) -> None:
    keys = [key_of_function(name, target) for name in code.names]
    keep_object(store, [key for key in keys if key is not None], code.object())
