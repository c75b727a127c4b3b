"""What cannot be read is a finding with its places, and no text or bytes end the process."""

from __future__ import annotations

import re
import textwrap
from contextlib import suppress

import numpy as np
import pytest
import recorded

import mind_mlir
from mind_mlir.languages.stablehlo.parsing import new_context
from mind_mlir.mlir.bindings import ir, stablehlo

ADD = """
module @program {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""


def test_everything_is_listed_at_once() -> None:
    text = textwrap.dedent("""\
        func.func @main(%a: tensor<4xf32>, %b: tensor<2x2xf32>) -> (tensor<4xf32>, tensor<2x2xf32>) {
          %0 = stablehlo.add %a, %a : tensor<4xf32>
          %1 = stablehlo.custom_call @one(%a) : (tensor<4xf32>) -> tensor<4xf32>
          %2 = stablehlo.custom_call @one(%1) : (tensor<4xf32>) -> tensor<4xf32>
          %3 = "stablehlo.collective_permute"(%b) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}
            : (tensor<2x2xf32>) -> tensor<2x2xf32>
          %4 = stablehlo.add %3, %b : tensor<2x2xf32>
          return %2, %4 : tensor<4xf32>, tensor<2x2xf32>
        }
        """)
    with pytest.raises(mind_mlir.UnsupportedError) as caught:
        mind_mlir.from_stablehlo(text)
    assert [(each.code, each.message) for each in caught.value.diagnostics] == [
        ("E7001", "stablehlo.custom_call is not read (2 times: lines 3, 4): the target one"),
        ("E7001", "stablehlo.collective_permute is not read (once: line 5): there is no rule for it"),
    ]


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        ("tensor<?xf32>", "extents that are not known before the program runs"),
        ("tensor<2xi2>", "elements of type i2"),
        ("!stablehlo.future<tensor<2xf32>>", "values of type !stablehlo.future"),
    ],
)
def test_types_that_are_none_of_ours(type_: str, reason: str) -> None:
    with pytest.raises(mind_mlir.UnsupportedError, match=re.escape(reason)):
        mind_mlir.from_stablehlo(f"func.func @main(%a: {type_}) -> {type_} {{ return %a : {type_} }}")


def test_mistakes_have_their_place() -> None:
    text = ADD.replace("stablehlo.add %arg0, %arg0", "stablehlo.add %arg0, %arg1")
    with pytest.raises(mind_mlir.ParseError) as caught:
        mind_mlir.from_stablehlo(text, name="program.mlir")
    (found,) = caught.value.diagnostics
    assert (found.code, found.location and found.location.line) == ("E1101", 4)
    assert "%arg1" in found.message or "undeclared" in found.message


def test_portable_artifacts_are_read() -> None:
    context = new_context()
    library = stablehlo()
    with context:
        data = library.serialize_portable_artifact(ir.Module.parse(ADD), library.get_current_version())
    assert mind_mlir.from_stablehlo(bytes(data)) == mind_mlir.from_stablehlo(ADD)


@pytest.mark.parametrize("data", [b"", b"ML\xefR", b"ML\xefR" + bytes(99), b"module {}", bytes(range(64))])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(mind_mlir.ParseError):
        mind_mlir.from_stablehlo(data)


def test_shortened_and_changed_programs_do_no_harm() -> None:
    chance = np.random.default_rng(5)
    for program in list(recorded.read().values())[:40:4]:
        for _ in range(6):
            at, length = chance.integers(len(program.text)), chance.integers(40)
            texts = program.text[:at], program.text[:at] + program.text[at + length :]
            for text in texts:
                with suppress(mind_mlir.MindError):
                    mind_mlir.from_stablehlo(text)


def test_bytes_that_were_cut_or_changed_do_no_harm() -> None:
    context = new_context()
    library = stablehlo()
    with context:
        data = bytes(library.serialize_portable_artifact(ir.Module.parse(ADD), library.get_current_version()))
    chance = np.random.default_rng(5)
    for _ in range(60):
        changed = bytearray(data[: chance.integers(4, len(data) + 1)])
        changed[chance.integers(4, len(changed) + 1) - 1] = chance.integers(256)
        with suppress(mind_mlir.MindError):
            mind_mlir.from_stablehlo(bytes(changed))


@pytest.mark.parametrize("depth", [70, 3000])
def test_deep_nesting_is_refused(depth: int) -> None:
    inner = "stablehlo.return %a : tensor<f32>"
    for level in range(depth):
        inner = (
            f'%v{level} = "stablehlo.if"(%p) ({{ {inner} }}, {{ stablehlo.return %a : tensor<f32> }}) '
            f": (tensor<i1>) -> tensor<f32> stablehlo.return %v{level} : tensor<f32>"
        )
    text = f"func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {{ {inner} }}"
    text = text.replace(f"stablehlo.return %v{depth - 1}", f"func.return %v{depth - 1}")
    with pytest.raises(mind_mlir.MindError):
        mind_mlir.from_stablehlo(text)


@pytest.mark.parametrize("program", [3, None, ["module {}"]])
def test_other_objects_are_refused(program: object) -> None:
    with pytest.raises(TypeError, match="program"):
        mind_mlir.from_stablehlo(program)  # type: ignore[arg-type]  # the mistake


def test_what_holds_nothing() -> None:
    """Tensors without elements are joined, and functions without results called."""
    text = """
func.func private @nothing(%a: tensor<0x3xf32>) { return }
func.func @main(%a: tensor<0x3xf32>, %b: tensor<0x2xf32>) -> tensor<0x5xf32> {
  call @nothing(%a) : (tensor<0x3xf32>) -> ()
  %0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<0x3xf32>, tensor<0x2xf32>) -> tensor<0x5xf32>
  return %0 : tensor<0x5xf32>
}
"""
    executable = mind_mlir.compile(mind_mlir.from_stablehlo(text), function="main")
    (found,) = executable(np.zeros((0, 3), np.float32), np.zeros((0, 2), np.float32))
    assert found.shape == (0, 5)
