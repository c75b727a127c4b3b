"""Entry points refuse a processor that lacks what their code needs, before any of it runs."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pytest

from mind_mlir.codegen.engines import make_objects
from mind_mlir.image.entry import Entry
from mind_mlir.image.linking import link
from mind_mlir.image.loading import Loaded, host_machine
from mind_mlir.ir.interface import Output
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.packaging import processor_check
from mind_mlir.packaging.c_entries import entries_text
from mind_mlir.packaging.c_interface import c_library
from mind_mlir.packaging.processor_check import LEAVE, STATE, SUPPORTED, in_words, questions
from mind_mlir.target import FEATURES, host_features
from mind_mlir.target.processors import PROCESSORS
from mind_mlir.target.tile_state import tiles_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What the entry does here: it writes a number.
ENTRY = """
llvm.func internal @mind.entry.f(%table: !llvm.ptr) attributes {no_inline} {
  %out = llvm.load %table : !llvm.ptr -> !llvm.ptr
  %number = llvm.mlir.constant(42 : i32) : i32
  llvm.store %number, %out : i32, !llvm.ptr
  llvm.return
}
"""
LIBRARY = c_library(
    [Entry("f", "mind.entry.f", (), (Output("y", TensorType(DType.SI32)),), (), 0)], "l", threads=False
)
HERE = tuple(sorted(host_features()))
LACKING = [feature for feature in FEATURES[host_machine()] if feature not in HERE]


def called(features: Sequence[str]) -> tuple[int, int]:
    """Return the status of a call, twice, and what has been written."""
    text = entries_text(LIBRARY, machine=host_machine(), features=features)
    declared = 'llvm.func @"mind.entry.f"(!llvm.ptr)\n'
    assert declared in text
    with new_context(("llvm",)), ir.Location.unknown():
        unit = (ir.Module.parse(text.replace(declared, ENTRY)), "l_message", 3)
        loaded = Loaded(link(make_objects([unit], pic=True)))
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(loaded.address_of("l_f"))
    out = ctypes.c_int32(-1)
    first, second = (function(ctypes.addressof(out), None) for _ in range(2))
    assert first == second
    return first, out.value


def test_what_the_processor_has_lets_code_run() -> None:
    assert called(()) == (0, 42)
    assert called(HERE) == (0, 42)


@pytest.mark.skipif(not LACKING, reason="this machine lacks no feature")
def test_what_the_processor_lacks_is_a_status() -> None:
    asked = {questions(host_machine(), [feature])[0][0]: feature for feature in LACKING}
    for feature in asked.values():  # one for each register that is looked at
        assert called([*HERE, feature]) == (3, -1), feature


def test_the_state_that_the_system_saves_is_asked_for_last() -> None:
    assert questions("x86_64", ()) == []
    assert STATE not in dict(questions("x86_64", ["bmi", "sse4.2"]))
    asked = questions("x86_64", ["avx512fp16", "avx512bw", "lzcnt", "avx2"])
    assert asked[-1] == (STATE, 0xE6)
    masks = {(each.leaf, each.register): mask for each, mask in asked[:-1]}
    assert masks == {
        (1, 2): 1 << 27,
        (7, 1): 1 << 5 | 1 << 30,
        (7, 3): 1 << 23,
        (0x80000001, 2): 1 << 5,
    }


def test_linux_is_asked_for_tiles_where_all_else_is_there() -> None:
    assert LEAVE not in dict(questions("x86_64", ["avx512bf16", "avx2"]))
    *_, state, leave = questions("x86_64", ["avx512f", "amx-int8"])
    assert (state, leave) == ((STATE, 0xE6 | 3 << 17), (LEAVE, 0))
    text = entries_text(LIBRARY, machine="x86_64", features=["amx-bf16"])
    assert text.index("xgetbv") < text.index("syscall")


@pytest.mark.skipif(host_machine() != "x86_64", reason="tiles of x86-64")
def test_what_linux_says_of_tiles_is_what_it_says_to_python() -> None:
    lines = ["llvm.func @look() -> i32 {", *processor_check._ask_for_tiles(0)]
    for number, label in ((SUPPORTED, ""), (0, "^lacking:")):
        lines += [
            label,
            f"  %n{number} = llvm.mlir.constant({number} : i32) : i32",
            f"  llvm.return %n{number} : i32",
        ]
    with new_context(("llvm",)), ir.Location.unknown():
        loaded = Loaded(
            link(make_objects([(ir.Module.parse("\n".join([*lines, "}"])), "look", 3)], pic=True))
        )
    look = ctypes.CFUNCTYPE(ctypes.c_int)(loaded.address_of("look"))
    assert (look() == SUPPORTED) is not bool(tiles_refusal())


def test_arm_asks_the_system() -> None:
    text = entries_text(LIBRARY, machine="aarch64", features=("bf16", "dotprod"))
    with new_context(("llvm",)), ir.Location.unknown():
        assert "llvm.call @getauxval" in str(ir.Module.parse(text))


def test_all_that_targets_may_need_can_be_asked_for() -> None:
    for machine, features in FEATURES.items():
        assert questions(machine, features)


def test_needs_are_told_in_words() -> None:
    assert in_words("x86_64", ()) == ""
    native = PROCESSORS["x86-64-v3"].features | {"vaes", "aes"}
    assert in_words("x86_64", native) == "x86-64-v3, aes, vaes"
    assert in_words("x86_64", native - {"bmi"}).startswith("x86-64-v2, aes, avx, avx2, bmi2")
    assert in_words("aarch64", ["dotprod"]) == "dotprod"
