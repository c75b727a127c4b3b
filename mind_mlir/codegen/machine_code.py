"""Modules of the LLVM dialect to images of machine code, and to objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.codegen.constants import take_constants
from mind_mlir.codegen.engines import make_objects
from mind_mlir.codegen.entries import add_entries, is_public, join_entry
from mind_mlir.codegen.kernels import begin_kernels, kernel_objects
from mind_mlir.codegen.library import ADDRESSES
from mind_mlir.codegen.units import cut_into_units, whole
from mind_mlir.diagnostics import InternalError
from mind_mlir.image.errors import LinkingError
from mind_mlir.image.linking import link
from mind_mlir.lowering.kernels.library import declared_kernels
from mind_mlir.lowering.to_llvm import linked
from mind_mlir.support.interrupts import held
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.cache.store import Store
    from mind_mlir.codegen.entries import EntrySignature
    from mind_mlir.image.compiled import Data
    from mind_mlir.image.image import Image
    from mind_mlir.mlir.bindings import Module
    from mind_mlir.mlir.references import References
    from mind_mlir.target import Target


@dataclass(frozen=True, slots=True)
class MachineCode:
    """Machine code of a module.

    Attributes:
        image: The code.
        data: Large constants, which the image imports.
        signatures: How its public functions are called, by their names in the module.
    """

    image: Image
    data: tuple[Data, ...]
    signatures: Mapping[str, EntrySignature]


@held()
def machine_code(
    module: Module,
    *,
    opt_level: int = 3,
    target: Target | None = None,
    references: References | None = None,
    most: int = 1,
    store: Store | None = None,
    takes_long: bool = False,
) -> MachineCode:
    """Return the machine code of an LLVM dialect module, as `to_llvm` leaves it.

    Args:
        module: Is of no use afterwards.
        opt_level: The most that LLVM optimises, 0 to 3.
        target: What it was lowered for, this machine unless given; its micro-kernels are made for that.
        references: The data of constants that the module knows by name only.
        most: How many parts of it are compiled at the same time at most.
        store: The cache that has micro-kernels.
        takes_long: Whether this thread looks for interrupts while LLVM works.

    Raises:
        InternalError: LLVM does not take the module, or its code has what no image has.
    """
    machine = target or named_target()
    data = take_constants(module, references)
    kernels = list(dict.fromkeys(kernel for _, kernel in declared_kernels(module)))
    with module.context:
        begin_kernels(kernels, machine, store)  # most have been begun already
    signatures = add_entries(module)
    units = cut_into_units(module, opt_level, most, [each.symbol for each in signatures.values()])
    if units[0].level == 0:
        join_entry(module, signatures)
    named = [(unit.module, ADDRESSES, unit.level) for unit in units]
    objects = make_objects(named, takes_long=takes_long)
    library = kernel_objects(kernels, machine, store)
    try:
        return MachineCode(link(objects, library), data, signatures)
    except LinkingError as error:
        raise InternalError("codegen", f"there is no linking its code: {error}", str(module)) from error


@held()
def listed_object(
    module: Module, *, opt_level: int = 3, target: Target | None = None, pic: bool = False
) -> bytes:
    """Return an LLVM dialect module, as `to_llvm` leaves it, as one object to be looked at.

    Its functions have the names that they have in the module, micro-kernels included.

    Args:
        module: The module; it is not changed where it declares kernels.
        opt_level: The most that LLVM optimises, 0 to 3.
        target: As `machine_code` takes it.
        pic: Whether the code is position-independent.

    Raises:
        InternalError: LLVM does not take the module.
    """
    module = linked(module, target or named_target())
    public = [op for op in module.body.operations if is_public(op)]
    unit = whole(module, opt_level, [str(op.attributes["sym_name"].value) for op in public])
    return make_objects([(unit.module, ADDRESSES, unit.level)], pic=pic)[0]
