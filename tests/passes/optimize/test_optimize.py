"""The passes of the optimiser over 1,200 programs: each alone, and all of them in any order."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from optimizer_programs import INEXACT, drawn

import mind_mlir
from mind_mlir.interpreter import run
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.passes.optimize import MODULE_PASSES, PASSES, optimize
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module

PROGRAMS = 1_200
#: Programs are taken in so many parts, for the tests to run side by side.
PARTS = 8
#: What sums in another order may be off by, relative to the greatest number that is about.
BOUND = {"f4": 1e-4, "f8": 1e-11}
OFF = frozenset(each.name for each in MODULE_PASSES)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short axes and parts be taken apart in programs as small as these."""
    monkeypatch.setattr("mind_mlir.passes.planes._FEWEST", 1)
    monkeypatch.setattr("mind_mlir.passes.stacks._FEWEST", 1)


def bits(arrays: Sequence[Array]) -> list[tuple[str, tuple[int, ...], bytes]]:
    """Return what is equal for equal results; NaNs are all alike."""
    plain = [
        np.where(np.isnan(a), np.array(np.nan, a.dtype), a) if a.dtype.kind == "f" else a for a in arrays
    ]
    return [(a.dtype.str, a.shape, a.tobytes()) for a in plain]


def opcodes(module: Module) -> set[str]:
    return {operation.opcode for each in module.functions for operation in operations_of(each.blocks)}


def assert_same(module: Module, expected: Sequence[Array], found: Sequence[Array], what: object) -> None:
    """Check results bit for bit, or within the bound of sums where there are such."""
    if bits(expected) == bits(found):
        return
    assert INEXACT & opcodes(module), f"{what}: {expected} is not {found} in\n{module}"
    for one, other in zip(expected, found, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype.kind != "f":
            np.testing.assert_array_equal(one, other, f"{what}\n{module}")
            continue
        scale = max(1.0, float(np.abs(one[np.isfinite(one)]).max(initial=0)))
        tolerance = BOUND[one.dtype.str[1:]] * scale
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance, err_msg=f"{what}\n{module}")


@cache
def part(number: int) -> list[tuple[Module, dict[str, Array], tuple[Array, ...]]]:
    """Return some programs with their arguments and results."""
    programs = [drawn(seed) for seed in range(number, PROGRAMS, PARTS)]
    return [(module, given, run(module, given)) for module, given in programs]


@pytest.mark.parametrize("number", range(PARTS))
def test_passes_alone_and_in_any_order(number: int) -> None:
    names = [each.name for each in PASSES]
    for index, (module, given, expected) in enumerate(part(number)):
        for name in names:
            once = optimize(module, OFF, [name])
            if once is module:
                continue
            assert str(optimize(once, OFF, [name])) == str(once), (
                f"{name} finds more the second time:\n{module}"
            )
            assert_same(module, expected, run(once, given), name)
        order = Random(index).sample(names, len(names))  # noqa: S311 -- an order, no secret
        everything = optimize(module, order=order)
        assert_same(module, expected, run(everything, given), order)
        if index % 5 == 0:
            verify(everything)


def test_every_pass_finds_something_to_do() -> None:
    changes = dict.fromkeys([each.name for each in PASSES], 0)
    for module, _, _ in part(0):
        for name in changes:
            changes[name] += optimize(module, OFF, [name]) is not module
    assert min(changes.values()) >= len(part(0)) // 50, changes


def test_gradients_of_optimised_programs_agree() -> None:
    compared = 0
    for module, given, _ in part(1):
        parameters = module.functions[0].parameters
        floats = [str(p.name) for p in parameters if p.tensor_type.dtype.is_float]
        if len(module.functions[0].entry.operations) > 9 or not floats:
            continue
        try:
            plain = mind_mlir.differentiate(module, wrt=floats).module
        except mind_mlir.AutodiffError:
            continue  # no float result depends on a float argument
        optimised = optimize(module)
        try:
            gradient = mind_mlir.differentiate(optimised, wrt=floats).module
        except mind_mlir.AutodiffError:
            continue
        assert_same(module, run(plain, given), run(gradient, given), "gradient")
        assert_same(module, run(plain, given), run(optimize(plain), given), "optimised gradient")
        compared += 1
    assert compared > 30
