"""What a process loads that runs kept code."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: A loop for several threads, and so many calls that they become native.
_RUN = """
import sys
import numpy as np
import mind_mlir
mind_mlir.set_num_threads(2)
module = mind_mlir.parse('''%0 = Input {name="x"} : tensor<f32[1000, 1000]>
%1 = Exp (%0) : tensor<f32[1000, 1000]>
%2 = ConstF32 {value=0.5} : tensor<f32[]>
%3 = Mul (%1, %2) : tensor<f32[1000, 1000]>
%4 = Sum (%3) {axes=[1], keepdims=false} : tensor<f32[1000]>
outputs: %4
''')
run = mind_mlir.compile(module)
x = np.zeros((1000, 1000), np.float32)
for _ in range(102):
    (result,) = run(x)
assert (result == 500).all()
print(type(type(run).__call__).__name__)
print(*sorted(sys.modules))
"""
#: Compilers, parsers, and what other languages and narrow dtypes need.
_NOT_LOADED = {
    *(
        "mind_mlir.mlir.bindings",
        "mind_mlir.codegen.compiling",
        "mind_mlir.codegen.library",
        "mind_mlir.lowering",
    ),
    *("mind_mlir.languages.core.function_ids", "mind_mlir.passes.optimize", "mind_mlir.passes.structure"),
    *(
        "mind_mlir.ops.convolution",
        "mind_mlir.languages.ptir",
        "mind_mlir.languages.mind",
        "ml_dtypes",
        "torch_mlir",
    ),
}


def test_kept_code_runs_without_the_compiler(tmp_path: Path) -> None:
    environment = {**os.environ, "MIND_MLIR_CACHE": "on", "MIND_MLIR_CACHE_DIR": str(tmp_path / "kept")}

    def loaded() -> tuple[str, set[str]]:
        command = [sys.executable, "-c", _RUN]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        method, names = done.stdout.splitlines()
        return method, set(names.split())

    compiled, kept = loaded(), loaded()
    assert "mind_mlir.mlir.bindings" in compiled[1]
    assert kept[0] == compiled[0]
    assert not kept[1] & _NOT_LOADED
