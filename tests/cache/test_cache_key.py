"""Keys: equal for equal programs, and for no others."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import CoreOperation, DType, Module, TensorType
from mind_mlir.cache import fingerprint, key
from mind_mlir.cache.key import key_of, labels_digest
from mind_mlir.ir.attributes import Padding, TensorLiteral
from mind_mlir.passes.canonicalize import canonicalize
from mind_mlir.support import version
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir.ir.attributes import AttributeValue

AVX2 = named_target("avx2")
FLAT = """
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Input {name="y"} : tensor<f32[2, 3]>
%2 = Add (%0, %1) : tensor<f32[2, 3]>
%3 = Sum (%2) {axes=[1], keepdims=false} : tensor<f32[2]>
outputs: %3
"""
FUNCTIONS = """
func @f(%c: tensor<i1[]>, %x: tensor<f32[4]>) -> (tensor<f32[4]>) {
^entry:
  cond_br %c, ^then, ^join(%x)
^then:
  %y = Exp (%x) : tensor<f32[4]>
  br ^join(%y)
^join(%z: tensor<f32[4]>):
  return %z
}
"""


def of(module: Module | str, options: CompileOptions | None = None, **changed: object) -> str | None:
    """Return the key of a module or a text."""
    parsed = mind_mlir.parse(module) if isinstance(module, str) else module
    target = changed.pop("target", AVX2)
    threads = changed.pop("threads", None)
    return key_of(canonicalize(parsed), options or CompileOptions(**changed), target, threads)  # type: ignore[arg-type] # as tests give them


def test_equal_programs_have_equal_keys() -> None:
    renamed = FLAT.replace("%2", "%sum")
    assert of(FLAT) == of(renamed) == of(f"# A comment.\n\n{FLAT}")
    assert len(of(FLAT) or "") == 64
    assert of(FUNCTIONS) == of(FUNCTIONS.replace("^join", "^end").replace("%y", "%e"))


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (FLAT, '"x"', '"z"'),
        (FLAT, "[2, 3]", "[2, 4]"),
        (FLAT, "f32", "f64"),
        (FLAT, "Add", "Mul"),
        (FLAT, "(%0, %1)", "(%0, %0)"),
        (
            FLAT,
            "{axes=[1], keepdims=false} : tensor<f32[2]>",
            "{axes=[1], keepdims=true} : tensor<f32[2, 1]>",
        ),
        (FLAT, "outputs: %3", "outputs: %3, %2"),
        (FLAT, "%3", "%rows"),  # what is said of the result
        (FUNCTIONS, "@f", "@g"),
        (FUNCTIONS, "^then, ^join(%x)", "^join(%x), ^then"),
        (FUNCTIONS, "Exp", "Log"),
    ],
)
def test_different_programs_have_different_keys(text: str, old: str, new: str) -> None:
    assert of(text) != of(text.replace(old, new))


def constant(array: np.ndarray[Any, Any]) -> Module:
    literal = TensorLiteral.from_array(array)
    attributes: dict[str, AttributeValue] = {"dtype": literal.type.dtype, "value": literal}
    attributes["shape"] = literal.type.extents
    return Module.flat([CoreOperation(0, "ConstTensor", (), attributes, literal.type)], [0])


@pytest.mark.parametrize("count", [1, 5000])
def test_every_bit_of_a_literal_counts(count: int) -> None:
    """NaNs, and the zeros, are one number each to most comparisons; long literals are told by digests."""
    found = set()
    for bits in (0, 0x80000000, 0x7FC00000, 0x7FC00001, 0xFFC00000, 0x7F800001, 0x3F800000):
        array = np.zeros(count, np.uint32)
        array[-1] = bits
        found.add(of(constant(array.view(np.float32))))
    assert len(found) == 7


def test_attributes_of_different_kinds_are_told_apart() -> None:
    values: list[AttributeValue] = [
        *(0, False, 0.0, -0.0, "0", "", (), (0,), (False,), ((0,),), ("dtype", "f32"), DType.F32, "f32"),
        *(Padding("Valid"), Padding("Custom", ((0, 0), (0, 0))), ("padding", "Valid", ())),  # type: ignore[arg-type] # names of modes are taken, too
        TensorLiteral(TensorType(DType.F32, ()), bytes(4)),
        TensorLiteral(TensorType(DType.SI32, ()), bytes(4)),
        TensorLiteral(TensorType(DType.F32, (1,)), bytes(4)),
        ("literal", ("f32", ()), "\0\0\0\0"),
    ]
    assert len({key._digest(key._attribute(value)) for value in values}) == len(values)


@pytest.mark.parametrize(
    "changed",
    [
        *({"opt_level": 2}, {"disabled_passes": frozenset(["all"])}, {"prepares": True}),
        *({"winograd": True}, {"bf16x6": False}),
        *(
            {"threads": 1},
            {"threads": 2},
            {"target": named_target("sse")},
            {"target": named_target("native")},
        ),
        {"target": dataclasses.replace(AVX2, l2_bytes=1)},
        {"target": dataclasses.replace(AVX2, rates=dataclasses.replace(AVX2.rates, byte_ns=1.0))},
    ],
)
def test_what_changes_code_is_in_the_key(changed: dict[str, Any]) -> None:
    assert of(FLAT) != of(FLAT, **changed)


def test_choices_about_the_cache_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of(FLAT) == of(FLAT, CompileOptions(cache="/nowhere", target="avx2", threads=None))
    monkeypatch.setenv("MIND_MLIR_NUM_THREADS", "1")
    assert of(FLAT) == of(FLAT)


@pytest.mark.parametrize(("name", "target"), [("compiler", "avx2"), ("machine", "native")])
def test_compiler_and_machine_are_in_the_key(monkeypatch: pytest.MonkeyPatch, name: str, target: str) -> None:
    before = of(FLAT, target=named_target(target))
    key._processor.cache_clear()
    monkeypatch.setattr(key, f"{name}_fingerprint", lambda: b"another")
    assert of(FLAT, target=named_target(target)) != before
    key._processor.cache_clear()


def test_a_change_of_the_compiler_changes_its_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mind_mlir" / "passes").mkdir(parents=True)
    (tmp_path / "mind_mlir" / "tools").mkdir()
    source, shown = tmp_path / "mind_mlir" / "passes" / "a.py", tmp_path / "mind_mlir" / "tools" / "b.py"
    monkeypatch.setattr(fingerprint, "_PACKAGE", tmp_path / "mind_mlir")
    monkeypatch.setattr(version, "LOADED_NS", time.time_ns() + 3600 * 10**9)
    found = []

    def note() -> None:
        found.append(fingerprint._look.__wrapped__()[0])

    for text in ("1", "2", "22"):
        source.write_text(text)
        os.utime(source, ns=(0, len(found)))
        note()
    shown.write_text("what people see")
    note()
    record = tmp_path / "mind_mlir-1.dist-info" / "RECORD"
    record.parent.mkdir()
    for text in ("a", "b"):
        record.write_text(text)
        note()
    monkeypatch.setenv("MIND_MLIR_BINDINGS", "no.such")
    note()
    assert len(set(found)) == 6
    assert found[2] == found[3]


def test_what_is_left_out_of_the_fingerprint_makes_no_code() -> None:
    """What makes code of the canonical form loads no package that the fingerprint leaves out."""
    loaded = run("import sys, mind_mlir.codegen.compiling; print(*sys.modules)").split()
    ours = [name.split(".")[1:] for name in loaded if name.startswith("mind_mlir.")]
    assert {"codegen", "lowering", "passes", "ops"} <= {parts[0] for parts in ours}
    assert not {"/".join(parts[:depth]) for parts in ours for depth in (1, 2)} & fingerprint.NO_PART


def test_calls_of_functions_of_this_process_have_no_key() -> None:
    scalar = TensorType(DType.F32, ())
    call = CoreOperation(0, "CustomCall", (), {"target": "mine.f.v1", "attrs": "{}"}, scalar)
    assert key_of(Module.flat([call], [0]), CompileOptions(), AVX2, None) is None


KEY = """
import sys
import mind_mlir
from mind_mlir.cache.key import key_of
from mind_mlir.support.options import CompileOptions
from mind_mlir.passes.canonicalize import canonicalize
from mind_mlir.target import named_target
options = CompileOptions(disabled_passes=frozenset("abcdef"))
print(key_of(canonicalize(mind_mlir.parse(sys.argv[1])), options, named_target("native"), None))
print("torch_mlir" in sys.modules)
"""


def run(program: str, *arguments: str) -> str:
    """Return what a program of Python prints in a process of its own, with a hash seed of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_keys_are_the_same_in_every_process() -> None:
    options, native = CompileOptions(disabled_passes=frozenset("fedcba")), named_target("native")
    expected = of(FUNCTIONS, options, target=native)
    assert run(KEY, FUNCTIONS) == f"{expected}\nFalse\n"


def test_labels_and_places_have_a_digest_of_their_own() -> None:
    def digest(text: str) -> bytes:
        return labels_digest(canonicalize(mind_mlir.parse(text)))

    found = [
        digest(text) for text in (FLAT, FLAT.replace("%2", "%sum"), f"\n{FLAT}", FLAT.replace("2 =", "2  ="))
    ]
    assert len({*found, digest(FUNCTIONS)}) == 4
    assert found[3] == found[0]
    assert digest(FLAT) == found[0]
