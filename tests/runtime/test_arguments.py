"""Doubtful arguments of many kinds, in a child process that must give an answer or a typed error for each.

A child process, because what is tested is that nothing a caller passes can take the process down.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# x: f32[4, 6], n: i64[], s: f32[];  y = x * s, m = n + n
PRELUDE = """
import json
import numpy as np
import mind_mlir
from mind_mlir import DType, TensorType

b = mind_mlir.Builder()
x_in = b.input("x", TensorType(DType.F32, (4, 6)))
n_in = b.input("n", TensorType(DType.SI64, ()))
s_in = b.input("s", TensorType(DType.F32, ()))
f = mind_mlir.compile(b.build([b.emit("Mul", x_in, s_in), b.emit("Add", n_in, n_in)]))
base = np.arange(24, dtype=np.float32).reshape(4, 6)
n, s = np.asarray(3), np.asarray(2.0, np.float32)
"""

EPILOGUE = """
def outcome(attempt, expected, reference):
    try:
        for _ in range(3):
            y, m = attempt()
        right = np.array_equal(y, 2 * np.asarray(expected)) and y.shape == (4, 6) and int(m) == 6
        return {"right": bool(right), "untouched": bool(np.array_equal(base, reference))}
    except mind_mlir.ArgumentError as error:
        return {"codes": [d.code for d in error.diagnostics], "message": str(error)}

for name, body in json.loads(input()).items():
    given = {**globals(), "expected": base}
    exec(body, given)
    print(json.dumps([name, outcome(given["attempt"], given["expected"], base.copy())]), flush=True)
"""


RIGHT = {
    "read-only": "x = base.copy(); x.setflags(write=False)\nattempt = lambda: f(x, n, s)",
    "negative strides": "x = base[::-1, ::-1]; expected = x\nattempt = lambda: f(x, n, s)",
    "Fortran order": "x = np.asfortranarray(base)\nattempt = lambda: f(x, n, s)",
    "misaligned": (
        "raw = np.zeros(24 * 4 + 1, np.uint8)\n"
        "x = raw[1:].view(np.float32).reshape(4, 6); x[:] = base\n"
        "assert not x.flags.aligned\nattempt = lambda: f(x, n, s)"
    ),
    "scalars for rank 0": "attempt = lambda: f(base, 3, 2.0)",
    "numpy scalars for rank 0": "attempt = lambda: f(base, np.int64(3), np.float32(2.0))",
    "overlapping views": (
        "memory = np.arange(40, dtype=np.float32)\n"
        "x = np.lib.stride_tricks.as_strided(memory, (4, 6), (8, 4)); expected = x.copy()\n"
        "attempt = lambda: f(x, n, memory[2:3].reshape(()))"
    ),
    "strided view": (
        "wide = np.zeros((4, 12), np.float32); wide[:, ::2] = base\nattempt = lambda: f(wide[:, ::2], n, s)"
    ),
    "by name": "attempt = lambda: f(s=s, x=base, n=n)",
}

WRONG = {
    "missing": ("attempt = lambda: f(base, n)", ["E6101"]),
    "extra positional": ("attempt = lambda: f(base, n, s, s)", ["E6102"]),
    "extra by name": ("attempt = lambda: f(base, n, s, z=s)", ["E6102"]),
    "given twice": ("attempt = lambda: f(base, n, s, x=base)", ["E6102"]),
    "wrong dtype": ("attempt = lambda: f(base.astype(np.float64), n, s)", ["E6103"]),
    "swapped bytes": ("attempt = lambda: f(base.astype('>f4'), n, s)", ["E6103"]),
    "wrong shape": ("attempt = lambda: f(base.T, n, s)", ["E6104"]),
    "object array": ("attempt = lambda: f(base.astype(object), n, s)", ["E6105"]),
    "zero size": ("attempt = lambda: f(base[:0], n, s)", ["E6104"]),
    "a string": ("attempt = lambda: f('x', n, s)", ["E6105"]),
    "ragged lists": ("attempt = lambda: f([[1.0], [1.0, 2.0]], n, s)", ["E6105"]),
    "None": ("attempt = lambda: f(None, n, s)", ["E6105"]),
    "a scalar too large": ("attempt = lambda: f(base, 2**70, s)", ["E6105"]),
    "everything at once": (
        "attempt = lambda: f(base.T, x=base, q=1)",
        ["E6102", "E6102", "E6104", "E6101", "E6101"],
    ),
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, object]]:
    """Return what came of each; what is missing has taken the process down, or a kind before it has."""
    bodies = RIGHT | {kind: body for kind, (body, _) in WRONG.items()}
    child = subprocess.run(
        [sys.executable, "-c", PRELUDE + EPILOGUE],
        input=json.dumps(bodies),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found: dict[str, dict[str, object]] = dict(json.loads(line) for line in child.stdout.splitlines())
    assert child.returncode == 0, f"died behind {list(found)[-1:]}: {child.stderr}"
    return found


@pytest.mark.parametrize("kind", RIGHT)
def test_right_answer(kind: str, outcomes: dict[str, dict[str, object]]) -> None:
    assert outcomes[kind] == {"right": True, "untouched": True}


@pytest.mark.parametrize("kind", WRONG)
def test_typed_error(kind: str, outcomes: dict[str, dict[str, object]]) -> None:
    assert outcomes[kind]["codes"] == WRONG[kind][1]
