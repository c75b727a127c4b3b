"""C code computes what the interpreter says, without undefined behaviour, and compiles without a warning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from c_programs import COMPILER, SANITIZED, run
from harness import assert_agrees, build, edge_operands, run_numpy_all, type_of, uses_of

import mind_mlir
from mind_mlir.conversion.c.module import to_c
from mind_mlir.diagnostics import UnsupportedError
from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.example_types import dtypes_of
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from harness import Use

    from mind_mlir.ops.opdef import OpDef

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
ROOT = Path(__file__).parents[2]


def _uses() -> list[Use]:
    found = []
    for record in all_ops():
        for dtype in dtypes_of(record) if record.in_dialect else []:
            if dtype is not None and dtype not in CORE_V1.dtypes:
                continue
            uses = uses_of(record, dtype)[:2]
            found += [use for use in uses if {type_.dtype for type_ in use.types} <= {*CORE_V1.dtypes}]
    return found


def test_operations(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    heads: dict[str, None] = {}
    bodies: list[str] = []
    calls: list[Any] = []
    kept = []
    for use in _uses():
        module = build([use])
        try:
            text = to_c(module).replace("run_main", f"f{len(calls)}")
        except UnsupportedError:
            refused = use.record.collective
            assert refused or use.record.opcode in ("Cast", "Iota", "DotGeneral", "Reduce", "Complex"), use
            continue
        name = f"f{len(calls)}"
        head, *functions = text.split(f"\n/* {name}\n")
        heads |= dict.fromkeys(head.splitlines())
        operands = edge_operands(use, rng)
        bodies += ["/* " + function for function in functions]
        given = [a if a.size else np.zeros([max(e, 1) for e in a.shape], a.dtype) for a in operands]
        expected = run_numpy_all(use.record, operands, use.attributes)
        types = [type_of(array) for array in expected]
        calls.append((name, given, types))
        kept.append((use, operands, expected))
    found = run("\n".join([*heads, *bodies]), calls, tmp_path, "-O1", *SANITIZED)
    failures = []
    for (use, operands, expected), (status, actual) in zip(kept, found, strict=True):
        assert status == 0, use
        results = tuple(actual) if len(actual) > 1 else actual[0]
        wanted = expected if len(expected) > 1 else expected[0]
        try:
            assert_agrees(use.record, results, wanted, operands, use.attributes)
        except AssertionError as error:
            failures.append(f"{use}: {str(error)[:300]}")
    assert not failures, f"{len(failures)} of {len(found)}: " + "\n".join(failures[:12])
    assert len(found) > 200


EXAMPLES = sorted([*ROOT.glob("examples/*.ir"), *ROOT.glob("examples/control/*.ir")])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path, tmp_path: Path) -> None:
    module = mind_mlir.parse(path.read_text())
    rng = np.random.default_rng(5)
    arguments = {}
    for parameter in mind_mlir.compile(module).parameters:
        type_ = parameter.type
        numbers = rng.integers(0, 2, type_.extents) if type_.dtype.is_integer else rng.random(type_.extents)
        if type_.rank == 2 and len(set(type_.extents)) == 1:
            numbers = numbers * 0.01 + np.eye(len(numbers))  # where iterations converge
        arguments[str(parameter.name)] = np.asarray(numbers).astype(type_.dtype.numpy)
    expected = mind_mlir.interpret(module, arguments)
    types = [type_of(array) for array in expected]
    calls = [("run_main", list(arguments.values()), types)]
    ((status, actual),) = run(to_c(module), calls, tmp_path, "-O2")
    assert status == 0
    for array, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=2e-4, atol=1e-6)


WITH_PROGRAMS = [pytest.param(record, id=record.opcode) for record in all_ops() if record.programs]


@pytest.mark.parametrize("record", WITH_PROGRAMS)
def test_programs(record: OpDef, tmp_path: Path) -> None:
    """Control flow and calls: what the interpreter gives, or a status where that refuses."""
    rng = np.random.default_rng(7)
    for number, program in enumerate(record.programs):
        module = mind_mlir.parse(program.text)
        arguments = {}
        for parameter in mind_mlir.compile(module)["main"].parameters:
            type_ = parameter.type
            whole = not type_.dtype.is_float
            numbers = rng.integers(0, 2, type_.extents) if whole else rng.random(type_.extents)
            arguments[parameter.name] = np.asarray(numbers).astype(type_.dtype.numpy)
        expected = mind_mlir.interpret(module, arguments, function="main")
        folder = tmp_path / str(number)
        folder.mkdir()
        calls = [("run_main", list(arguments.values()), [type_of(array) for array in expected])]
        ((status, actual),) = run(to_c(module), calls, folder, "-O1", *SANITIZED)
        assert status == 0
        for array, wanted in zip(actual, expected, strict=True):
            np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-6)


def test_a_failed_check_is_its_number(tmp_path: Path) -> None:
    module = mind_mlir.parse("""
        %x = Input {name="x"} : tensor<f32[4]>
        %i = Input {name="i"} : tensor<i64[2]>
        %j = Input {name="j"} : tensor<i64[2]>
        %a = Gather (%x, %i) : tensor<f32[2]>
        %b = Gather (%x, %j) : tensor<f32[2]>
        outputs: %a, %b
    """)
    x, good, bad = np.arange(4, dtype=np.float32), np.array([0, 3]), np.array([1, 4])
    results = [TensorType(DType.F32, (2,))] * 2
    pairs = [(good, good), (bad, good), (good, bad)]
    calls = [("run_main", [x, *pair], results) for pair in pairs]
    found = run(to_c(module), calls, tmp_path, "-O1", *SANITIZED)
    assert [status for status, _ in found] == [0, 1, 2]
