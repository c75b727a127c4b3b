"""What calls of micro-kernels touch, against an enumeration of what they compute."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mind_mlir.lowering.buffers.kernel_footprint import ProductKernels
from mind_mlir.lowering.kernels.library import Library
from mind_mlir.lowering.kernels.product import PRODUCT_ARGUMENTS, ProductKernel
from mind_mlir.lowering.kernels.tile_operations import EMULATED
from mind_mlir.lowering.kernels.tile_product import TileProductKernel
from mind_mlir.mlir.bindings import ir, new_context


def kernels(*, ragged: bool) -> tuple[ProductKernels, ProductKernel]:
    kernel = ProductKernel(2, 2, 4, "f32", "f32", "f32", fma=True, masks=True, ragged=ragged, copies=False)
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        Library(module)._declare(kernel, [])
        return ProductKernels(module), kernel


def enumerated(n: dict[str, int], rows: int, panel: int, *, ragged: bool) -> tuple[int, int, int]:
    """Return the last element of each operand that a product in tiles of ``rows`` touches."""
    left, right, out = [], [], []
    columns = n["columns"] if ragged else -(-n["columns"] // panel) * panel
    places = itertools.product(*(range(n[each]) for each in ("planes", "rows", "blocks", "taps")))
    for p, i, b, t in places:
        out.append(p * n["out_plane"] + i * n["out_row"] + n["columns"] - 1)
        for k in range(n["last_depth"] if b == n["blocks"] - 1 else n["depth"]):
            inner = b * n["left_block"] + t * n["left_tap"] + k * n["left_step"]
            row = i // rows * n["left_tile"] + i % rows * n["left_row"]
            left.append(p * n["left_plane"] + row + inner)
            for j in range(columns):
                where = j // panel * n["right_panel"] + j % panel
                right.append(where + b * n["right_block"] + t * n["right_tap"] + k * n["right_step"])
    return max(left), max(right), max(out)


@pytest.mark.parametrize("ragged", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_reaches(seed: int, ragged: bool) -> None:
    rng = np.random.default_rng(seed)
    n = {name: int(rng.integers(0, 30)) for name in PRODUCT_ARGUMENTS}
    for name in ("rows", "planes", "taps", "blocks", "depth"):
        n[name] = int(rng.integers(1, 4))
    n["columns"] = int(rng.integers(1, 20))
    n["last_depth"] = int(rng.integers(1, n["depth"] + 1))
    declared, kernel = kernels(ragged=ragged)
    assert kernel.name in declared
    reaches = declared.reaches(kernel.name, n)
    assert reaches is not None
    assert tuple(each.extent for each in reaches) == enumerated(n, 2, 8, ragged=ragged)
    assert [each.writes for each in reaches] == [False, False, True]


@pytest.mark.parametrize("summands", [1, 3])
@pytest.mark.parametrize("rows", [1, 32, 33, 70])
def test_tiles_are_read_whole(rows: int, summands: int) -> None:
    """A left factor of squares ``[row / 32][step / 16][32 rows][16 steps]``, and panels of 32 columns."""
    kernel = TileProductKernel(32, 2, 16, "f32", "bf16", "bf16", False, EMULATED, summands)
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        Library(module)._declare(kernel, [])
        declared = ProductKernels(module)
    steps, columns = 48, 35
    n = dict.fromkeys(PRODUCT_ARGUMENTS, 0) | dict.fromkeys(("planes", "taps", "blocks"), 1)
    n |= {"rows": rows, "columns": columns, "depth": steps, "last_depth": steps, "out_row": columns}
    n |= {
        "left_row": 16 * summands,
        "left_step": 32 * summands,
        "left_tile": 32 * steps * summands,
        "right_step": 32 * summands,
        "right_panel": 32 * steps * summands,
    }
    reaches = declared.reaches(kernel.name, n)
    assert reaches is not None
    left, right, out = reaches
    whole = -(-rows // 32) * 32 * steps * summands
    assert whole - 1 <= left.extent < whole + 16 * 32 * summands
    assert (right.extent, out.extent) == (2 * 32 * steps * summands - 1, rows * columns - 1)


@pytest.mark.parametrize("unknown", [name for name in PRODUCT_ARGUMENTS if "first" not in name])
def test_what_is_not_known_is_said(unknown: str) -> None:
    declared, kernel = kernels(ragged=True)
    numbers: dict[str, int | None] = dict.fromkeys(PRODUCT_ARGUMENTS, 1)
    assert declared.reaches(kernel.name, numbers) is not None
    assert declared.reaches(kernel.name, numbers | {unknown: None}) is None
    assert declared.reaches(kernel.name, numbers | {unknown: -1}) is None


def test_other_functions_are_no_kernels() -> None:
    declared, _ = kernels(ragged=True)
    assert "main" not in declared


def test_what_is_declared_once_is_not_declared_again() -> None:
    """Products and attentions of a module call the same kernels."""
    kernel = ProductKernel(2, 2, 4, "f32", "f32", "f32", fma=True, masks=True, ragged=False, copies=False)
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @main() {\n  return\n}")
        with ir.InsertionPoint.at_block_begin(module.body.operations[0].regions[0].blocks[0]):
            for _ in range(2):
                Library(module).call(kernel, [])
        module.operation.verify()
        assert len(module.body.operations) == 2
