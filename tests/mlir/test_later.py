"""Modules of dialects that are put off are complete for whoever asks for them."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mind_mlir.mlir.later import put_off

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM = """
import sys
from mind_mlir.mlir import bindings
from mind_mlir.mlir.bindings import NAMESPACE, ir, new_context
with new_context(), ir.Location.unknown():
    module = ir.Module.parse("llvm.func @f() { llvm.return }")
    name = f"{NAMESPACE}.dialects._llvm_ops_gen"
    assert [str(op.attributes["sym_name"].value) for op in module.body.operations] == ["f"]
    assert name not in sys.modules
    from torch_mlir.dialects import linalg, llvm
    import torch_mlir.dialects.llvm
    assert name not in sys.modules and torch_mlir.dialects.llvm is llvm
    kind = llvm.LLVMFuncOp
    assert name in sys.modules and isinstance(module.body.operations[0], kind)
    assert linalg.matmul.__module__ == linalg.__name__ and callable(linalg.copy)
    assert linalg.fill_builtin_region is bindings.linalg.fill_builtin_region
    assert issubclass(linalg.GenericOp, ir.OpView)
"""


@pytest.mark.skipif(importlib.util.find_spec("torch_mlir") is None, reason="it names these bindings")
def test_dialects_are_loaded_when_their_classes_are_asked_for() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True)


def test_a_module_is_executed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "put_off_sample"
    (tmp_path / f"{name}.py").write_text("import sys\nsys.runs_of_sample.append(1)\nvalue = 3\n")
    runs: list[int] = []
    monkeypatch.setattr(sys, "runs_of_sample", runs, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    put_off(name)
    put_off(name)
    sample = importlib.import_module(name)
    assert not hasattr(sample, "__wrapped__")
    assert not runs
    assert (sample.value, sample.value, runs) == (3, 3, [1])
    assert not hasattr(sample, "other")
    del sys.modules[name]


def test_a_module_that_is_not_there() -> None:
    put_off("no_such_module_at_all")
    assert "no_such_module_at_all" not in sys.modules
