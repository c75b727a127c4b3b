"""Objects of programs with debug information, and what pyelftools reads of them."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from elftools.elf.elffile import ELFFile

from mind_mlir.codegen.machine_code import listed_object
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.module import Module

DEBUG = CompileOptions(debug=True)
SOFTMAX = """\
%x = Input {name="x"} : tensor<f32[512, 900]>
%most = Reduce (%x) {kind=Max, axes=[1], keepdims=true, accum_dtype=f32, out_dtype=f32} : tensor<f32[512, 1]>
%below = Sub (%x, %most) : tensor<f32[512, 900]>
%exp = Exp (%below) : tensor<f32[512, 900]>
%sum = Sum (%exp) {axes=[1], keepdims=true} : tensor<f32[512, 1]>
%share = Reciprocal (%sum) : tensor<f32[512, 1]>
%shares = Mul (%exp, %share) : tensor<f32[512, 900]>
outputs: %shares
"""
#: Two products, which nothing joins, with something elementwise behind each: the same twice.
TWICE = """\
%x = Input {name="x"} : tensor<f32[32, 32]>
%a = MatMul (%x, %x) : tensor<f32[32, 32]>
%b = Exp (%a) : tensor<f32[32, 32]>
%c = MatMul (%b, %b) : tensor<f32[32, 32]>
%d = Exp (%c) : tensor<f32[32, 32]>
%e = MatMul (%d, %x) : tensor<f32[32, 32]>
outputs: %e
"""


def object_of(module: Module, options: CompileOptions = DEBUG) -> bytes:
    """Return an object of ``module``, as LLVM writes it."""
    lowering = Lowering(named_target("avx2"), options=options, threads=1)
    lowering.run(module)
    return listed_object(lowering.mlir, opt_level=0, pic=True)


def read(data: bytes) -> Any:
    # Debug sections are relocated when they are read, and pyelftools knows not all relocations of frames.
    return ELFFile(io.BytesIO(data.replace(b".eh_frame\0", b".xh_frame\0")))


def rows_of(data: bytes) -> Iterator[tuple[str, int, str, int]]:
    """Yield the rows of the line tables of an object: function, offset there, file and line."""
    elf = read(data)
    code = elf.get_section_index(".text")  # where all is that has lines
    spans = [
        (symbol.name, symbol["st_value"], symbol["st_size"])
        for symbol in elf.get_section_by_name(".symtab").iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] == code
    ]
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        directories = [b"", *program["include_directory"]]
        files = [os.path.join(directories[each.dir_index], each.name) for each in program["file_entry"]]  # noqa: PTH118 -- bytes
        for entry in program.get_entries():
            row = entry.state
            if row is None or row.end_sequence or not row.line:
                continue  # line 0 is of what LLVM has made of several lines
            for name, start, size in spans:
                if start <= row.address < start + size:
                    yield name, row.address - start, files[row.file - 1].decode(), row.line
