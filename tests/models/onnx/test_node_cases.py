"""ONNX's own tests of operators: every eighth is interpreted, every fortieth compiled, by `make onnx` all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("onnx", reason="reads ONNX models, which the extra test installs")
from node_cases import cases, run

import mind_mlir
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module


class Interpreted:
    """A module that is run by the interpreter, called as an `Executable` is."""

    def __init__(self, module: Module, options: object) -> None:
        del options
        self._module = module

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        names = [each.name for each in interface_of(entry_function(self._module)).parameters]
        return mind_mlir.interpret(self._module, dict(zip(names, arrays, strict=True)))


def test_operators_do_what_onnx_says(monkeypatch: pytest.MonkeyPatch) -> None:
    names = sorted(cases(quick=True))
    found = [run(name, quick=True) for name in names[::40]]
    monkeypatch.setattr("mind_mlir.models.model.Executable", Interpreted)
    found += [run(name, quick=True) for name in names[::8]]
    assert [each for each in found if each.verdict == "failed"] == []
    assert sum(each.verdict == "passed" for each in found) > 240
