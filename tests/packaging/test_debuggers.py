"""What gdb and valgrind show of objects with debug information, in a program of C."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from debug_objects import SOFTMAX

import mind_mlir
from mind_mlir.packaging.objects import object_of
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import X86_64, host_architecture, named_target

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or host_architecture() != X86_64, reason="links code for x86-64 with cc"
)

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>

int net_main(const float *x, float *shares, void *scratch);

int main(int argc, char **argv)
{
    float *x = calloc((size_t)atol(argv[1]), sizeof *x), *shares = calloc(512 * 900, sizeof *shares);
    int status = net_main(x, shares, aligned_alloc(64, 65536));
    printf("%d %d\\n", argc, status);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that takes the number of elements of the array that it passes."""
    directory = tmp_path_factory.mktemp("program")
    (directory / "models").mkdir()
    (directory / "models" / "net.ir").write_text(SOFTMAX)
    before = Path.cwd()
    os.chdir(directory)  # which is what names of files are relative to
    try:
        module = mind_mlir.load("models/net.ir")
        options = CompileOptions(threads=1, debug=True)
        # valgrind knows no AVX-512, and what runs the tests may not know AVX.
        made = object_of(module, options, library="net", target=named_target("sse"))
    finally:
        os.chdir(before)
    (directory / "net.o").write_bytes(made.data)
    (directory / "program.c").write_text(PROGRAM)
    command = ["cc", "-g", "-O1", "program.c", "net.o", "-o", "program", "-lm"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / "program"


@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb")
def test_gdb_stops_at_lines_and_shows_who_called(program: Path) -> None:
    told = ["break net.ir:4", "run 460800", "backtrace", "info line net.ir:7", "list 4,4"]
    command = ["gdb", "-batch", "-nx", *(word for each in told for word in ("-ex", each)), str(program)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "ptrace" in said.stderr or "Couldn't get" in said.stderr:
        pytest.skip(f"gdb may start no program here: {said.stderr.splitlines()[-1]}")
    text = said.stdout
    frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S+) \(.*\)(?: at (\S+):(\d+))?", text, re.MULTILINE)
    assert re.fullmatch(r"net\.main_kernel_\d+\.\w*Exp\w*", frames[0][0])
    assert frames[0][1:] == ("models/net.ir", "4")
    assert [name for name, *_ in frames[1:]] == ["net.main", "mind.entry.main", "net_main", "main"]
    assert frames[1][1] == "models/net.ir"
    assert 'Line 7 of "models/net.ir" starts at address' in text
    assert text.splitlines()[-1] == f"4\t{SOFTMAX.splitlines()[3]}"


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_valgrind_shows_the_line_that_reads_beyond_an_array(program: Path) -> None:
    command = ["valgrind", "--error-exitcode=9", str(program), "460000"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 9, said.stderr
    first = said.stderr[said.stderr.index("Invalid read") :].splitlines()
    assert re.search(r"at 0x\w+: net\.main_kernel_\d+\.Reduce \(net\.ir:2\)$", first[1])
    assert re.search(r"by 0x\w+: net\.main \(net\.ir:\d\)$", first[2])
    assert any("main (program.c:10)" in line for line in first[3:7])
