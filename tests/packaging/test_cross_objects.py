"""Objects for AArch64, made here: their form, and programs in C that an emulator runs."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from emulated import COMPILER, build_loader, crossed, missing_tool, run_c, run_crossed

import mind_mlir
from mind_mlir.builders.builder import Builder
from mind_mlir.diagnostics import ArtefactError
from mind_mlir.image.elf import read_object
from mind_mlir.image.linking import link
from mind_mlir.image.loading import Loaded
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.packaging import cross
from mind_mlir.packaging.header import header_text
from mind_mlir.packaging.objects import object_of
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import artefact_target, host_architecture, named_target, runs_here

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir.ir.module import Module

SHAPE = (17, 17, 1000)
TABLE = np.arange(17 * 1000, dtype=np.float32).reshape(17, 1000) / 8
#: What ELF calls the machines.
AARCH64, X86_64 = 183, 62
needs_llvmlite = pytest.mark.skipif(missing_tool() == "llvmlite", reason="there is no llvmlite")
needs_emulator = pytest.mark.skipif(missing_tool() is not None, reason=f"there is no {missing_tool()}")
on_x86 = pytest.mark.skipif(host_architecture() != "x86_64", reason="llvmlite makes code for other machines")

#: A loop that threads share, sums, and a large constant.
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "lib.h"

int main(int argc, char **argv) {
    static float x[17 * 17 * 1000], y[17 * 17 * 1000], sums[17 * 17];
    void *scratch = aligned_alloc(64, (LIB_MAIN_SCRATCH_BYTES + 127) / 64 * 64);
    for (int i = 0; i < 17 * 17 * 1000; i++) x[i] = (float)(i % 4001) * 0.001f - 2;
    lib_set_num_threads(atoi(argv[1]));
    int status = lib_main(x, y, sums, scratch);
    if (status || argc != 2) return fprintf(stderr, "%s\\n", lib_message(status)), 1;
    fwrite(y, sizeof y, 1, stdout);
    fwrite(sums, sizeof sums, 1, stdout);
    return 0;
}
"""


def program() -> Module:
    builder = Builder()
    x = builder.input("x", TensorType(DType.F32, SHAPE))
    y = builder.emit("Add", builder.emit("Exp", x), builder.constant(TABLE, DType.F32))
    return builder.build([y, builder.emit("Sum", y, axes=[2], keepdims=False)])


@on_x86
@needs_llvmlite
def test_an_object_is_for_its_machine_and_always_the_same() -> None:
    target = artefact_target("aarch64-linux")
    made = [object_of(program(), CompileOptions(), library="lib", target=target).data for _ in range(2)]
    assert made[0] == made[1]
    found = read_object(made[0])
    assert found.machine == AARCH64
    assert {symbol.name for symbol in found.symbols} >= {"lib_main", "lib_message", "mind.entry.main"}
    capstone = pytest.importorskip("capstone")
    code = bytes(next(each.data for each in found.sections if each.name == ".text"))
    words = {each.mnemonic for each in capstone.Cs(*_arm(capstone)).disasm(code, 0)}
    assert {
        "fmla",
        "ldaxr",
        "adrp",
    } <= words  # vectors fuse; what threads share is taken


def _arm(capstone: object) -> tuple[int, int]:
    return capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM  # type: ignore[attr-defined]  # a module as a value


@on_x86
@needs_emulator
def test_a_program_in_c_computes_the_same_with_any_number_of_threads(tmp_path: Path) -> None:
    target = artefact_target("aarch64-linux", cpu="neoverse-n1")
    made = object_of(program(), CompileOptions(), library="lib", target=target)
    (tmp_path / "lib.o").write_bytes(made.data)
    text = header_text(made.library, file="lib.h", machine=made.machine, features=made.features, version="1")
    (tmp_path / "lib.h").write_text(text, encoding="utf-8")
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    command = [COMPILER, "-std=c11", "-Wall", "-Werror", "-O1", "main.c", "lib.o", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    one, three = (run_c([str(tmp_path / "main"), number]) for number in ("1", "3"))
    assert one == three
    counted = (np.arange(289_000) % 4001).astype(np.float32)
    x = (counted * np.float32(0.001) - np.float32(2)).reshape(SHAPE)
    values = np.frombuffer(one, np.float32)
    y, sums = values[: x.size].reshape(x.shape), values[x.size :]
    if runs_here(named_target("avx2")):  # fuses the same operations: elementwise results are the same bits
        theirs = mind_mlir.compile(program(), target="avx2")(x=x)
        assert np.array_equal(y, theirs[0])
    np.testing.assert_allclose(sums, y.astype(np.float64).sum(2).reshape(-1), rtol=1e-5)


@on_x86
@needs_emulator
def test_a_processor_that_lacks_features_is_a_status(tmp_path: Path) -> None:
    made = object_of(
        program(),
        CompileOptions(threads=1),
        library="lib",
        target=artefact_target("aarch64-linux", cpu="neoverse-v1"),
    )
    text = header_text(made.library, file="lib.h", machine=made.machine, features=made.features, version="1")
    (tmp_path / "lib.o").write_bytes(made.data)
    (tmp_path / "lib.h").write_text(text, encoding="utf-8")
    source = '#include "lib.h"\n#include <stdlib.h>\nstatic float x[289000], y[289000], s[289];\n'
    source += "int main(void) { return lib_main(x, y, s, aligned_alloc(64, 1 << 20)); }\n"
    (tmp_path / "main.c").write_text(source, encoding="utf-8")
    subprocess.run([COMPILER, "main.c", "lib.o", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    run_c([str(tmp_path / "main")], processor="max")
    with pytest.raises(subprocess.CalledProcessError) as found:
        run_c([str(tmp_path / "main")], processor="cortex-a72")
    assert found.value.returncode == 3


@on_x86
def test_without_llvmlite_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    target = artefact_target("aarch64-linux")
    with pytest.raises(ArtefactError, match=r"E6503.*llvmlite, which is not installed") as found:
        object_of(program(), CompileOptions(), library="lib", target=target)
    assert "pip install 'mind-mlir[cross]'" in str(found.value)


@on_x86
@needs_emulator
def test_an_image_is_linked_here_and_runs_there(tmp_path: Path) -> None:
    loaded = crossed(program(), artefact_target("aarch64-linux"))
    x = np.linspace(-2, 2, 289_000, dtype=np.float32).reshape(SHAPE)
    ((y, sums),) = run_crossed(build_loader(tmp_path), loaded, [("main", [x])])
    expected, totals = mind_mlir.interpret(program(), {"x": x})
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    np.testing.assert_allclose(sums, totals, rtol=1e-5)


@on_x86
@needs_llvmlite
def test_a_machine_of_another_kind_makes_code_for_the_least_of_x86(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross, "host_architecture", lambda: "aarch64")
    plain, options = artefact_target("x86_64-linux"), CompileOptions(threads=1)
    made = object_of(program(), options, library="lib", target=plain)
    assert read_object(made.data).machine == X86_64
    loaded = Loaded(link([made.data]))
    x = np.linspace(-2, 2, 289_000, dtype=np.float32).reshape(SHAPE)
    y, sums = np.empty_like(x), np.empty(SHAPE[:2], np.float32)
    scratch = np.empty(made.entries[0].scratch_bytes + 64, np.uint8)
    place = -(-scratch.ctypes.data // 64) * 64
    call = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(loaded.address_of("lib_main"))
    assert call(x.ctypes.data, y.ctypes.data, sums.ctypes.data, place) == 0
    theirs = mind_mlir.compile(program(), target="sse")(x=x)
    assert np.array_equal(y, theirs[0])
    np.testing.assert_allclose(sums, theirs[1], rtol=1e-6)
    with pytest.raises(ArtefactError, match="E6504"):
        object_of(program(), options, library="lib", target=named_target("avx2"))
