"""What calls of the micro-kernels of products touch: the elements of buffers, as their arguments say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.kernels.library import LIBRARY_ATTRIBUTE
from mind_mlir.lowering.kernels.product import PRODUCT_ARGUMENTS, ProductKernel
from mind_mlir.lowering.kernels.tile_product import TileProductKernel
from mind_mlir.lowering.kernels.vnni import I8
from mind_mlir.mlir.bindings import func, ir

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.mlir.bindings import Attribute, Module


class Reach(NamedTuple):
    """The elements that a call touches: from ``first``, an argument, to the one ``extent`` elements on."""

    operand: int
    first: str
    extent: int
    writes: bool


class ProductKernels:
    """The micro-kernels for products that a module declares."""

    def __init__(self, module: Module) -> None:
        #: Columns of a panel, whether it is ragged, and elements of a step of it.
        self._declared: dict[str, tuple[int, bool, int]] = {}
        self._rows: dict[str, tuple[int, bool]] = {}  # rows of a tile, whether all of them are read
        self._noted: set[str] = set()  # those that read sums behind the right factor
        for op in module.body.operations:
            if not isinstance(op, func.FuncOp) or LIBRARY_ATTRIBUTE not in op.attributes:
                continue
            values = ir.DictAttr(op.attributes[LIBRARY_ATTRIBUTE])
            kind = ir.StringAttr(values["kind"]).value
            if kind not in (ProductKernel.kind, TileProductKernel.kind):
                continue
            name, is_plain = op.name.value, kind == ProductKernel.kind
            rows, vectors, lanes = (_integer(values[each]) for each in ("rows", "vectors", "lanes"))
            self._rows[name] = rows, not is_plain
            is_ragged = is_plain and bool(ir.BoolAttr(values["ragged"]).value)
            line = vectors * lanes * (1 if is_plain else _integer(values["summands"]))
            self._declared[name] = vectors * lanes, is_ragged, line
            if is_plain and ir.StringAttr(values["dot"]).value == I8:
                self._noted.add(name)

    def __contains__(self, name: str) -> bool:
        return name in self._declared

    def reaches(self, name: str, most: Mapping[str, int | None]) -> list[Reach] | None:
        """Return what a call of kernel ``name`` touches.

        Args:
            name: One of these kernels.
            most: What each argument of `PRODUCT_ARGUMENTS`, those called ``first`` apart, is at most: strides
                exactly. None if that is not known.

        Returns:
            None if it cannot be told.
        """
        known = {argument: value for argument, value in most.items() if value is not None}
        if any(name not in known or known[name] < 0 for name in PRODUCT_ARGUMENTS if "first" not in name):
            return None
        panel, ragged, line = self._declared[name]
        rows, planes, columns = (known[each] for each in ("rows", "planes", "columns"))
        panels = -(-columns // panel)
        last = columns - (panels - 1) * panel if ragged else line
        right = (panels - 1) * known["right_panel"] + last - 1
        if panels > 1:
            right = max(right, (panels - 2) * known["right_panel"] + line - 1)
        height, is_whole = self._rows[name]
        tiles = -(-rows // height)
        last_rows = height if is_whole else rows - (tiles - 1) * height
        left = (tiles - 1) * known["left_tile"] + (last_rows - 1) * known["left_row"]
        if tiles > 1:
            left = max(left, (tiles - 2) * known["left_tile"] + (height - 1) * known["left_row"])
        left += (planes - 1) * known["left_plane"]
        out = (rows - 1) * known["out_row"] + (planes - 1) * known["out_plane"] + columns - 1
        reaches = [
            Reach(0, "left_first", left + _along_depth(known, "left"), writes=False),
            Reach(1, "right_first", right + _along_depth(known, "right"), writes=False),
            Reach(2, "out_first", out, writes=True),
        ]
        if name in self._noted:
            reaches.append(Reach(1, "sums_first", panels * panel - 1, writes=False))
        return reaches


def _integer(attribute: Attribute) -> int:
    return int(ir.IntegerAttr(attribute).value)


def _along_depth(known: Mapping[str, int], side: str) -> int:
    """Return how far the loops over products reach in a factor."""
    step, tap, block = (known[f"{side}_{loop}"] for loop in ("step", "tap", "block"))
    blocks = known["blocks"]
    reach = (blocks - 1) * block + (known["last_depth"] - 1) * step
    if blocks > 1:
        reach = max(reach, (blocks - 2) * block + (known["depth"] - 1) * step)
    return reach + (known["taps"] - 1) * tap
