"""Lines of the program in machine code: what a debugger reads of objects that are made with ``debug``."""

from __future__ import annotations

import io
import os
import runpy
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

import mind_mlir
from mind_mlir.abi import symbol_of
from mind_mlir.bindings import create_engine
from mind_mlir.options import CompileOptions
from mind_mlir.pipeline import Lowering
from mind_mlir.ptir.to_module import convert
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from pathlib import Path

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


def object_of(module: Module, directory: Path, options: CompileOptions = DEBUG) -> bytes:
    """Return an object of ``module``, as LLVM writes it."""
    lowering = Lowering(named_target("avx2"), options=options, threads=1)
    lowering.run(module)
    engine = create_engine(lowering.mlir, opt_level=0, pic=True, dumps=True)
    for function in module.functions:
        assert not function.public or engine.raw_lookup(symbol_of(function.name))
    path = directory / "module.o"
    engine.dump_to_object_file(str(path))
    return path.read_bytes()


def read(data: bytes) -> Any:
    # Debug sections are relocated when they are read, and pyelftools knows not all relocations of frames.
    return ELFFile(io.BytesIO(data.replace(b".eh_frame\0", b".xh_frame\0")))


def lines_of(data: bytes) -> dict[str, set[tuple[str, int]]]:
    """Return the files and lines that the addresses of each function of an object belong to."""
    elf = read(data)
    spans = [
        (symbol.name, symbol["st_value"], symbol["st_size"])
        for symbol in elf.get_section_by_name(".symtab").iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC"
    ]
    found: dict[str, set[tuple[str, int]]] = defaultdict(set)
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
                    found[name].add((files[row.file - 1].decode(), row.line))
    return found


def test_the_kernels_of_a_text_have_the_lines_of_what_they_compute(tmp_path: Path) -> None:
    module = mind_mlir.parse(SOFTMAX, "models/softmax.ir")
    found = {
        name: {line for _, line in places} for name, places in lines_of(object_of(module, tmp_path)).items()
    }
    assert found["softmax.main_kernel_0.Reduce"] == {2}
    assert found["softmax.main_kernel_1.Mul"] == {7}
    assert found["softmax.main_kernel_2.Sub_Exp_Sum_Reciprocal"] == {3, 4, 5, 6}
    assert {file for places in lines_of(object_of(module, tmp_path)).values() for file, _ in places} == {
        "models/softmax.ir"
    }


def test_files_are_in_the_working_directory_or_where_they_are_mapped_to(tmp_path: Path) -> None:
    module = mind_mlir.parse(SOFTMAX, "models/softmax.ir")

    def unit(options: CompileOptions) -> tuple[str, str]:
        top = next(read(object_of(module, tmp_path, options)).get_dwarf_info().iter_CUs()).get_top_DIE()
        name, directory = (top.attributes[f"DW_AT_{each}"].value.decode() for each in ("name", "comp_dir"))
        return name, directory

    assert unit(DEBUG) == ("models/softmax.ir", os.getcwd())  # noqa: PTH109 -- as it is, links and all
    prefixes = (("/", "/other/"), (os.getcwd(), "/src"), ("models", "zoo"))  # noqa: PTH109 -- as above
    assert unit(CompileOptions(debug=True, debug_prefixes=prefixes)) == ("zoo/softmax.ir", "/src")


def test_a_program_of_the_surface_language_has_its_own_lines(tmp_path: Path) -> None:
    program = mind_mlir.parse(
        "export fn twice(x: Tensor<f32, [64, n]>) -> Tensor<f32, [64, n]> {\n"
        "    let shown = exp(x);\n"
        "    let total = sum(shown, axes=[1], keepdims=true);\n"
        "    shown / total\n"
        "}\n",
        "shares.mind",
    )
    found = lines_of(object_of(program.lower("twice", {"n": 50}), tmp_path))
    assert set().union(*found.values()) == {("shares.mind", line) for line in (2, 3, 4)}


def test_a_program_of_ptir_has_its_own_lines(tmp_path: Path) -> None:
    program = mind_mlir.parse(
        "func @main(%x: tensor<f32, 4x8>) -> tensor<f32, 4x8> {\n"
        "  %e = exp %x -> tensor<f32, 4x8>\n"
        "  %r = mul %e, %e -> tensor<f32, 4x8>\n"
        "  return %r\n"
        "}\n",
        "square.ptir",
    )
    found = lines_of(object_of(convert(program).module, tmp_path))
    assert found["main"] == {("square.ptir", 2), ("square.ptir", 3)}


def test_functions_of_python_have_the_lines_of_their_files(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(
        "import mind_mlir.numpy as np\n\n\ndef grown(x):\n    return np.exp(x)\n"
    )
    (tmp_path / "model.py").write_text(
        "import runpy\n"
        "import mind_mlir\n"
        f"grown = runpy.run_path({str(tmp_path / 'parts.py')!r})['grown']\n"
        "@mind_mlir.jit\n"
        "def f(x):\n"
        "    y = grown(x)\n"
        "    return y * y\n"
    )
    function = runpy.run_path(str(tmp_path / "model.py"))["f"]
    module = function.lower(np.zeros((8, 32), np.float32)).module
    assert lines_of(object_of(module, tmp_path))["main"] == {
        (str(tmp_path / "parts.py"), 5),
        (str(tmp_path / "model.py"), 7),
    }


def test_kernels_of_different_places_stay_apart(tmp_path: Path) -> None:
    module = mind_mlir.parse(TWICE, "twice.ir")
    found = lines_of(object_of(module, tmp_path))
    exact = [{line for _, line in places} for name, places in found.items() if name.endswith(".Exp")]
    assert sorted(map(sorted, exact)) == [[3], [5]]


@pytest.mark.parametrize("source", [SOFTMAX, TWICE])
def test_without_the_option_nothing_is_said_and_with_it_the_same_is_computed(
    source: str, tmp_path: Path
) -> None:
    module = mind_mlir.parse(source, "plain.ir")
    elf = read(object_of(module, tmp_path, CompileOptions()))
    assert [section.name for section in elf.iter_sections() if "debug" in section.name] == []
    shape = module.inputs[0].result_type.shape
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) / 8
    (plain,), (described,) = mind_mlir.compile(module)(x), mind_mlir.compile(module, debug=True)(x)
    assert plain.tobytes() == described.tobytes()
