from __future__ import annotations

import re
import sys

import pytest
from native_code import assembly, put_on_memory

from mind_mlir.diagnostics import UnsupportedError
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context

SOURCE = """
func.func @main(%a: tensor<1000xf32>) -> tensor<1000xf32> {
  %e = tensor.empty() : tensor<1000xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%a : tensor<1000xf32>) outs(%e : tensor<1000xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = math.atan %x : f32
    linalg.yield %y : f32
  } -> tensor<1000xf32>
  return %r : tensor<1000xf32>
}"""


def compiled() -> str:
    with new_context():
        module = ir.Module.parse(SOURCE)
        put_on_memory(module)
        to_llvm(module)
        return assembly(module)


def test_assembly_names_functions_targets_and_callees() -> None:
    pytest.importorskip("capstone")
    pytest.importorskip("elftools")
    text = compiled()
    assert re.search(r"^main:$", text, re.MULTILINE)
    assert re.search(r"; atanf$", text, re.MULTILINE)
    labels = set(re.findall(r"^(\.L\d+):$", text, re.MULTILINE))
    assert labels
    assert set(re.findall(r"    j\w+ ([.0-9]\S*)$", text, re.MULTILINE)) == labels
    places = re.findall(r"^\.L(\d+):$", text, re.MULTILINE)
    assert places == [str(number) for number in range(len(places))]
    assert ".byte" not in text


def test_assembly_is_deterministic() -> None:
    pytest.importorskip("capstone")
    pytest.importorskip("elftools")
    assert compiled() == compiled()


@pytest.mark.parametrize("missing", ["capstone", "elftools.elf.elffile"])
def test_missing_extra_is_reported(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing != "capstone":
        pytest.importorskip("capstone")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UnsupportedError) as caught:
        compiled()
    (finding,) = caught.value.diagnostics
    assert finding.code == "E7003"
    assert finding.help == "run: pip install 'mind-mlir[asm]'"
