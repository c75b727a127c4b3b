"""What the records promise holds of code for AArch64, which an emulator runs."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pytest
from emulated import build_loader, crossed, missing_tool, run_crossed
from harness import assert_agrees, build, edge_operands, run_numpy_all, uses_of

from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ir.types import DType
from mind_mlir.ops.example_types import dtypes_of
from mind_mlir.ops.registry import all_ops, by_opcode
from mind_mlir.target import artefact_target

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Use

    from mind_mlir.ops.opdef import OpDef

#: What each run looks at: some operations of each kind, for a processor. Where somebody searches for more,
#: each operation of every dtype.
SAMPLES = {
    "generic": ("Add Div Exp MatMul Sum Gather", DType.F32),
    "neoverse-v2": ("Add Tanh Sum Sqrt", DType.F16),
}
EVERYTHING = "MIND_MLIR_FUZZ" in os.environ
RECORDS = [record for record in all_ops() if record.in_dialect and not record.collective]

pytestmark = pytest.mark.skipif(
    missing_tool() is not None, reason=f"there is no {missing_tool()}, to run code for AArch64"
)


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_loader(tmp_path_factory.mktemp("loader"))


def check(uses: list[Use], loader: Path, cpu: str) -> None:
    """Compare what an emulated processor computes with the numpy rules."""
    rng = np.random.default_rng(7)
    operands = [edge_operands(use, rng) for use in uses]
    program = crossed(build(uses), artefact_target("aarch64-linux", cpu=cpu))
    arrays = [array for each in operands for array in each]
    (found,) = run_crossed(loader, program, [(program.entries[0].name, arrays)])
    results = iter(found)
    for use, given in zip(uses, operands, strict=True):
        actual = tuple(islice(results, len(use.record.results)))
        expected = run_numpy_all(use.record, given, use.attributes)
        assert_agrees(use.record, actual, expected, given, use.attributes)


@pytest.mark.parametrize("cpu", SAMPLES)
def test_compiled_code_agrees_with_numpy(cpu: str, loader: Path) -> None:
    opcodes, dtype = SAMPLES[cpu]
    known = by_opcode()
    check([use for opcode in opcodes.split() for use in uses_of(known[opcode], dtype)], loader, cpu)


if EVERYTHING:

    @pytest.mark.parametrize("cpu", SAMPLES)
    @pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.opcode)
    def test_all_operations_of_every_dtype(record: OpDef, cpu: str, loader: Path) -> None:
        dtypes = dtypes_of(record)
        of_core = [dtype for dtype in dtypes if dtype is None or dtype in CORE_V1.dtypes]
        others = [dtype for dtype in dtypes if dtype not in of_core]
        for group in (of_core, others):
            uses = [use for dtype in group for use in uses_of(record, dtype)]
            if uses:
                check(uses, loader, cpu)
