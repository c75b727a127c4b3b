"""Large constants of objects: put where they belong when the rest is there.

LLVM takes milliseconds, and several times their size in memory, for each megabyte of initialised data. So the
code that it makes has zeros in the place of large constants, and the data is copied over them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.codegen.constants import take_constants
from mind_mlir.image.elf import PROGBITS, read_object
from mind_mlir.mlir.bindings import ir
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.image.compiled import Data
    from mind_mlir.mlir.bindings import Module
    from mind_mlir.mlir.references import References


def empty_constants(module: Module, references: References) -> tuple[Data, ...]:
    """Put zeros in the place of the large constants of ``module``, and return these.

    Args:
        module: A module of the LLVM dialect; its context is the current one.
        references: The data of constants that the module knows by name only.
    """
    taken = {each.symbol: each for each in take_constants(module, references)}
    internal = ir.Attribute.parse("#llvm.linkage<internal>")
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT)
    for op in module.body.operations:
        if "sym_name" not in op.attributes or str(op.attributes["sym_name"].value) not in taken:
            continue
        op.attributes["linkage"], op.attributes["alignment"] = internal, alignment
        # Nothing may follow from the zeros.
        op.attributes["externally_initialized"] = ir.UnitAttr.get()
        with ir.InsertionPoint(op.regions[0].blocks.append()):
            zeros = ir.Operation.create("llvm.mlir.zero", [op.attributes["global_type"].value]).result
            ir.Operation.create("llvm.return", operands=[zeros])
    return tuple(taken.values())


def with_constants(code: bytes, constants: Sequence[Data]) -> bytes:
    """Return an object with the data of its constants in their places.

    Args:
        code: The object of a module that `empty_constants` has seen.
        constants: What that returned.
    """
    if not constants:
        return code
    filled = bytearray(code)
    read = read_object(memoryview(filled))
    places = {symbol.name: symbol for symbol in read.symbols}
    for constant in constants:
        symbol = places.get(constant.symbol)
        if symbol is None:  # nothing reads it
            continue
        assert symbol.section is not None, "a constant is in a section"
        section, end = read.sections[symbol.section], symbol.value + len(constant.data)
        assert section.kind == PROGBITS, "constants have bytes, zeros or not"
        assert symbol.size == len(constant.data), "a constant is as long as its data"
        section.data[symbol.value : end] = constant.data
    return bytes(filled)
