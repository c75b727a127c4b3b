"""What the records promise holds of code for other processors than this one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from harness import assert_agrees, compile_uses, edge_operands, run_numpy_all, uses_of

from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ir.types import DType
from mind_mlir.ops.example_types import dtypes_of
from mind_mlir.ops.registry import all_ops
from mind_mlir.target import TARGETS, VARIABLE, host_target, named_target, runs_here

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef

#: Targets whose code is another than that which all other tests run.
OTHERS = [name for name in TARGETS if named_target(name).vector_bytes != host_target().vector_bytes]
#: Of the dtypes that Core lacks: one on each target. This machine's own target is tested with all.
SAMPLES = {"sse": (DType.F16,), "avx2": (DType.BF16,)}
RECORDS = [record for record in all_ops() if record.in_dialect and not record.collective]
#: Every record on one of the other targets, by turns; on all of them where somebody searches for more.
CASES = [
    pytest.param(record, target, id=f"{target}-{record.opcode}")
    for number, record in enumerate(RECORDS)
    for place, target in enumerate(OTHERS)
    if number % len(OTHERS) == place or "MIND_MLIR_FUZZ" in os.environ
]


@pytest.mark.parametrize(("record", "target"), CASES)
def test_compiled_code_agrees_with_numpy(record: OpDef, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not runs_here(named_target(target)):
        pytest.skip("this machine does not run its code")
    monkeypatch.setenv(VARIABLE, target)
    dtypes = dtypes_of(record)
    of_core = [dtype for dtype in dtypes if dtype is None or dtype in CORE_V1.dtypes]
    # PTIR's operands have one shape: uses of both cannot stand in one function.
    for group in (of_core, [dtype for dtype in dtypes if dtype in SAMPLES.get(target, ())]):
        uses = [use for dtype in group for use in uses_of(record, dtype)]
        rng = np.random.default_rng(7)
        operands = [edge_operands(use, rng) for use in uses]
        results = compile_uses(uses)(operands) if uses else []
        for use, arrays, actual in zip(uses, operands, results, strict=True):
            expected = run_numpy_all(record, arrays, use.attributes)
            assert_agrees(record, actual, expected, arrays, use.attributes)
