"""Objects of AArch64 are linked as the system's linker does it."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
from emulated import Crossed, build_loader, missing_tool, run_crossed

from mind_mlir.image.elf import read_object
from mind_mlir.image.entry import Entry
from mind_mlir.image.errors import LinkingError
from mind_mlir.image.linking import link
from mind_mlir.ir.interface import Output
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from pathlib import Path

ASSEMBLER, LINKER = "aarch64-linux-gnu-as", "aarch64-linux-gnu-ld"
#: Each kind of relocation that code has, forwards and backwards, with addends.
SOURCE = """
.text
.global _start, other
_start:
  adrp x0, there + 24
  add x0, x0, :lo12:there + 24
  ldrb w1, [x0, :lo12:there + 1]
  ldrh w1, [x0, :lo12:there + 2]
  ldr w1, [x0, :lo12:there + 4]
  ldr x1, [x0, :lo12:there + 8]
  ldr q1, [x0, :lo12:there + 16]
  adr x2, other
  cbz x1, _start
  tbz x1, #3, _start
  b.ne other
  bl other
  b other
.space 70000
other:
  bl _start
  adrp x3, written
  str x3, [x3, :lo12:written + 32]
  ret
.section .rodata, "a"
.balign 16
.space 4080
there: .space 64
table: .word other - ., _start - table
  .xword other - .
.data
.balign 16
.space 48
written: .xword 0, there + 5, other, 0, 0
"""
#: Through the slot of a symbol of this image, and of one that the process has.
RUNNABLE = """
.text
.type entry, %function
entry:
  stp x29, x30, [sp, #-32]!
  str x19, [sp, #16]
  ldr x19, [x0]
  adrp x1, :got:inside
  ldr x1, [x1, :got_lo12:inside]
  ldr w0, [x1]
  bl abs
  str w0, [x19]
  adrp x1, :got:labs
  ldr x1, [x1, :got_lo12:labs]
  mov x0, #-7
  blr x1
  str w0, [x19, #4]
  ldr x19, [sp, #16]
  ldp x29, x30, [sp], #32
  ret
.size entry, . - entry
.data
.global inside
inside: .word -42
"""

needs_tools = pytest.mark.skipif(
    shutil.which(ASSEMBLER) is None or shutil.which(LINKER) is None, reason=f"there is no {LINKER}"
)


def assembled(source: str, folder: Path) -> bytes:
    (folder / "code.s").write_text(source, encoding="utf-8")
    subprocess.run([ASSEMBLER, "code.s", "-o", "code.o"], cwd=folder, check=True)
    return (folder / "code.o").read_bytes()


@needs_tools
def test_code_and_data_are_those_of_the_linker(tmp_path: Path) -> None:
    image = link([assembled(SOURCE, tmp_path)])
    text, constants = image.text, image.constants
    assert (text, constants, len(image.imports)) == (2 << 16, 1 << 16, 0)
    places = [f"-Ttext=0x{1 << 20:x}", f"--section-start=.rodata=0x{(1 << 20) + text:x}"]
    places += [f"-Tdata=0x{(1 << 20) + text + constants:x}"]
    subprocess.run([LINKER, "code.o", "-o", "code", "--no-relax", *places], cwd=tmp_path, check=True)
    for section, start in ((".text", 0), (".rodata", text), (".data", text + constants)):
        command = ["aarch64-linux-gnu-objcopy", "-O", "binary", f"--only-section={section}", "code", "part"]
        subprocess.run(command, cwd=tmp_path, check=True)
        theirs = (tmp_path / "part").read_bytes()
        ours = np.frombuffer(image.memory, np.uint8)[start : start + len(theirs)].copy()
        for place in image.rebased.tolist():  # where loading adds the address
            if start <= place < start + len(theirs):
                ours[place - start : place - start + 8].view("<u8")[0] += 1 << 20
        assert ours.tobytes() == theirs, section


@needs_tools
def test_what_does_not_fit_is_an_error(tmp_path: Path) -> None:
    far = assembled(".text\n cbz x0, far\n.space 2 << 20\n.global far\nfar: ret\n", tmp_path)
    with pytest.raises(LinkingError, match="too far apart"):
        link([far])
    odd = assembled(".text\n ldr x0, [x0, :lo12:odd]\n.data\n.space 4\nodd: .xword 0\n", tmp_path)
    with pytest.raises(LinkingError, match="multiple of its size"):
        link([odd])
    absolute = assembled(".text\n movz x0, #:abs_g3:far\n", tmp_path)
    with pytest.raises(LinkingError, match="no relocation of kind"):
        link([absolute])


@needs_tools
@pytest.mark.skipif(missing_tool() is not None, reason=f"there is no {missing_tool()}")
def test_slots_and_functions_of_the_process(tmp_path: Path) -> None:
    data = assembled(RUNNABLE, tmp_path)
    assert read_object(data).machine == 183
    image = link([data])
    assert [each.symbol for each in image.imports] == ["abs", "labs"]
    entry = Entry("f", "entry", (), (Output("y", TensorType(DType.SI32, (2,))),), (), 0)
    ((found,),) = run_crossed(build_loader(tmp_path), Crossed(image, (entry,), data), [("f", [])])
    assert found.tolist() == [42, 7]
