"""Lines of the program in machine code: what a debugger reads of objects that are made with ``debug``."""

from __future__ import annotations

import os
import runpy
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest
from debug_objects import DEBUG, SOFTMAX, TWICE, object_of, read, rows_of

import mind_mlir
from mind_mlir.cache.key import key_of
from mind_mlir.codegen.compiling import compile_module
from mind_mlir.image.lines import rows_within
from mind_mlir.languages.ptir.to_module import convert
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from pathlib import Path


def lines_of(data: bytes) -> dict[str, set[tuple[str, int]]]:
    """Return the files and lines that the addresses of each function of an object belong to."""
    found: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for function, _, file, line in rows_of(data):
        found[function].add((file, line))
    return found


def test_the_kernels_of_a_text_have_the_lines_of_what_they_compute(tmp_path: Path) -> None:
    module = mind_mlir.parse(SOFTMAX, "models/softmax.ir")
    found = {name: {line for _, line in places} for name, places in lines_of(object_of(module)).items()}
    assert found["softmax.main_kernel_0.Reduce"] == {2}
    assert found["softmax.main_kernel_1.Mul"] == {7}
    assert found["softmax.main_kernel_2.Sub_Exp_Sum_Reciprocal"] == {3, 4, 5, 6}
    assert {file for places in lines_of(object_of(module)).values() for file, _ in places} == {
        "models/softmax.ir"
    }


def test_files_are_in_the_working_directory_or_where_they_are_mapped_to(tmp_path: Path) -> None:
    module = mind_mlir.parse(SOFTMAX, "models/softmax.ir")

    def unit(options: CompileOptions) -> tuple[str, str]:
        top = next(read(object_of(module, options)).get_dwarf_info().iter_CUs()).get_top_DIE()
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
    found = lines_of(object_of(program.lower("twice", {"n": 50})))
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
    found = lines_of(object_of(convert(program).module))
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
    assert lines_of(object_of(module))["main"] == {
        (str(tmp_path / "parts.py"), 5),
        (str(tmp_path / "model.py"), 7),
    }


def test_kernels_and_micro_kernels_of_different_places_stay_apart(tmp_path: Path) -> None:
    module = mind_mlir.parse(TWICE, "twice.ir")
    found = lines_of(object_of(module))
    exact = [{line for _, line in places} for name, places in found.items() if name.endswith(".Exp")]
    assert sorted(map(sorted, exact)) == [[3], [5]]
    products = [{line for _, line in places} for name, places in found.items() if ".mind_product" in name]
    assert sorted(map(sorted, products)) == [[2], [4], [6]]


def test_code_in_memory_has_lines_and_is_not_kept() -> None:
    module = mind_mlir.parse(TWICE, "twice.ir")
    target = named_target("avx2")
    made = compile_module(module, DEBUG, target=target, threads=1, most=2)
    image = made.code.image
    found = {
        symbol.name: {row.line for row in rows_within(image.lines, symbol.offset, symbol.size)} - {0}
        for symbol in image.symbols
    }
    assert {name: lines for name, lines in found.items() if name.endswith(".Exp")} == {
        "twice.main_kernel_0.Exp": {3},
        "twice.main_kernel_1.Exp": {5},
    }
    assert found["mind.entry.main"] == {2}
    assert found["twice.main"] >= {2, 3, 4, 5}  # where it calls what
    assert key_of(made.canonical, DEBUG, target, 1) is None
    assert key_of(made.canonical, CompileOptions(), target, 1) is not None


@pytest.mark.parametrize("source", [SOFTMAX, TWICE])
def test_without_the_option_nothing_is_said_and_with_it_the_same_is_computed(
    source: str, tmp_path: Path
) -> None:
    module = mind_mlir.parse(source, "plain.ir")
    elf = read(object_of(module, CompileOptions()))
    assert [section.name for section in elf.iter_sections() if "debug" in section.name] == []
    shape = module.inputs[0].result_type.shape
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) / 8
    (plain,), (described,) = mind_mlir.compile(module)(x), mind_mlir.compile(module, debug=True)(x)
    assert plain.tobytes() == described.tobytes()
