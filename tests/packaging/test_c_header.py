"""The C header: names, words, and the example, which compiles as C99 and as C++."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from mind_mlir.diagnostics.checks import DivisorCheck, IndexCheck, PositionCheck
from mind_mlir.image.entry import Entry
from mind_mlir.ir.interface import Output, Parameter
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.packaging.c_interface import (
    MOST_PARAMETERS,
    CLibrary,
    c_library,
    library_name,
    status_messages,
)
from mind_mlir.packaging.header import header_text

if TYPE_CHECKING:
    from pathlib import Path


def typed(words: str) -> list[tuple[str, TensorType]]:
    """Return names and types from words such as ``x:f32:2,3``."""
    parts = [word.rsplit(":", 2) for word in words.split()]
    return [
        (name, TensorType(DType(dtype), tuple(int(extent) for extent in shape.split(",") if extent)))
        for name, dtype, shape in parts
    ]


def entry(name: str, inputs: str = "", outputs: str = "", scratch: int = 0) -> Entry:
    parameters = tuple(Parameter(*each) for each in typed(inputs))
    results = tuple(Output(*each) for each in typed(outputs))
    return Entry(name, f"mind.entry.{name}", parameters, results, (), scratch)


def header(library: CLibrary, file: str = "lib.h") -> str:
    return header_text(library, file=file, machine="x86_64", features=("avx2",), version="1.0")


def example(text: str) -> str:
    """Return the program in the comment of a header."""
    lines = iter(text.splitlines())
    for line in lines:
        if line == " * Example:":
            break
    return "\n".join(line[7:] for line in iter(lambda: next(lines), " */")) + "\n"


@pytest.mark.parametrize(
    ("name", "found"),
    [("lib", "lib"), ("my-lib.v2", "my_lib_v2"), ("3d", "lib3d"), ("-", "lib"), ("été", "t"), ("__a__", "a")],
)
def test_a_library_has_a_name_in_c(name: str, found: str) -> None:
    assert library_name(name) == found


def test_names_in_c_are_distinct_and_mean_nothing_else() -> None:
    names = ["f", "F", "a.b", "a_b", "message", "set_num_threads", "int", "create"]
    library = c_library([entry(name) for name in names], "l", threads=True, avoiding=["l_create"])
    assert [function.name.removeprefix("l_") for function in library.functions] == [
        *("f", "F", "a_b", "a_b_2", "message_2", "set_num_threads_2", "int", "create_2")
    ]
    macros = [function.macro for function in library.functions]
    assert macros[:2] == ["L_F", "L_F_2"]
    assert len(set(macros)) == len(macros)
    inputs = "x:f32: int:f32: %3:f32: a.b:f32: a_b:f32: I:f32: uint8_t:f32: scratch:f32:"
    (function,) = c_library([entry("f", inputs, "x:f32: %3:f32:")], "l", threads=False).functions
    assert [buffer.name for buffer in function.buffers] == [
        *("x", "int_2", "input_2", "a_b", "a_b_2", "I_2", "uint8_t_2", "scratch_2", "x_2", "output_1")
    ]


def test_a_header_says_what_a_function_takes() -> None:
    checks = (
        IndexCheck("Gather", "%1", place=("dir/a*/b.ir", 3, 1), axis=1, shape=(2, 5)),
        PositionCheck("DynamicSlice", "%2", axis=0, shape=(4,), window=3),
        DivisorCheck("Div", "%3", place=("a.mind", 4, 9)),
    )
    first = entry("run", "x:f32:2,3 c:cf64: w:bf16:0,4", "y:i1:", 640)
    second = Entry("more", "mind.entry.more", first.parameters, (), checks, 0)
    library = c_library([first, second], "lib", threads=False)
    text = header(library)
    assert text == header(library)
    for part in (
        "int lib_run(const float *x, const double *c, const uint16_t *w, uint8_t *y, void *scratch);",
        " *   x        in: f32[2][3], 6 elements, aligned to 4 bytes\n",
        " *   c        in: cf64, 1 element, 2 doubles, aligned to 8 bytes\n",
        " *   w        in: bf16[0][4], 0 elements, aligned to 2 bytes\n",
        " *   y        out: bool, 1 element, aligned to 1 byte\n",
        "#define LIB_RUN_SCRATCH_BYTES 640\n",
        "#define LIB_MORE_SCRATCH_BYTES 0\n",
        "Linux on x86_64 with avx2.",
        " *   16: E6001: dir/a* /b.ir:3:1: Gather %1: an index is out of bounds for axis 1 with extent 5;\n"
        " *       indices must lie in [-5, 4]; negative ones count from the end\n",
        " *   17: E6001: DynamicSlice %2: an index of a window of 3 is out of bounds",
        " *   18: E6009: a.mind:4:9: '/': division of an integer by zero",
    ):
        assert part in text
    assert "set_num_threads" not in text
    messages = status_messages(library, "avx2")
    assert list(messages) == [0, 1, 2, 3, 16, 17, 18]
    assert "avx2" in messages[3]
    assert messages[18].startswith("lib_more: E6009: a.mind:4:9: '/': division")


def test_more_parameters_than_c_promises_are_a_table() -> None:
    inputs = " ".join(f"p.{number}:f32:2" for number in range(MOST_PARAMETERS - 1))
    whole, table = c_library([entry("f", inputs), entry("g", inputs, "y:f32:")], "l", threads=True).functions
    assert not whole.takes_table
    text = header(c_library([table.entry], "l", threads=True))
    assert "int l_g(void *const *buffers, void *scratch);" in text
    assert (
        f" *   buffers[{MOST_PARAMETERS - 1}]  out: f32, 1 element, aligned to 4 bytes; y in the program"
        in text
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="compiles with cc")
def test_examples_compile_as_c_and_as_cpp(tmp_path: Path) -> None:
    every = " ".join(f"{dtype.value}:{dtype.value}:2,1" for dtype in DType)
    many = " ".join(f"p{number}:si4:" for number in range(MOST_PARAMETERS))
    nothing, alone = entry("nothing"), entry("alone", "", "empty:f64:0")
    entries = [entry("int", every, "??/:f32:3 */:bf16:", 64), entry("many", many), nothing, alone]
    for number, first in enumerate(entries):
        rest = [each for each in entries if each is not first]
        text = header(c_library([first, *rest], "my_lib", threads=True), f"e{number}.h")
        (tmp_path / f"e{number}.h").write_text(text, encoding="utf-8")
        for suffix in ("c", "cc"):
            (tmp_path / f"e{number}.{suffix}").write_text(example(text), encoding="utf-8")
    flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
    compilers = [("cc", "c99", "c")] + [("c++", "c++98", "cc")] * (shutil.which("c++") is not None)
    for compiler, standard, suffix in compilers:
        sources = [f"e{number}.{suffix}" for number in range(len(entries))]
        subprocess.run([compiler, f"-std={standard}", *flags, *sources], cwd=tmp_path, check=True)
