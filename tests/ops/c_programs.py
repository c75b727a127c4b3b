"""Runs the functions of a C file in one process, each on arguments of its own."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mind_mlir.ir.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]
#: The compiler, if there is one.
COMPILER = shutil.which("gcc") or shutil.which("cc")
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")

_MAIN = """
#include <stdio.h>
static void *taken(FILE *file, size_t bytes)
{
    void *data = malloc(bytes);
    if (data == NULL || (file != NULL && fread(data, 1, bytes, file) != bytes)) exit(3);
    return data;
}
static void given(void *data, size_t bytes) { fwrite(data, 1, bytes, stdout); free(data); }
"""


def run(
    text: str,
    calls: Sequence[tuple[str, Sequence[Array], Sequence[TensorType]]],
    folder: Path,
    *flags: str,
) -> list[tuple[int, list[Array]]]:
    """Compile ``text`` and make ``calls``: name, arguments and result types; return status and results."""
    main = ["int main(int argc, char **argv)", "{", '    FILE *file = fopen(argv[argc - 1], "rb");']
    data = []
    for name, arguments, results in calls:
        names = []
        main.append("    {")
        for number, array in enumerate(arguments):
            main.append(f"        void *a{number} = taken(file, {array.nbytes});")
            names.append(f"a{number}")
            data.append(np.ascontiguousarray(array).tobytes())
        sizes = [int(np.prod(type_.extents)) * type_.dtype.numpy.itemsize for type_ in results]
        for number, size in enumerate(sizes):
            main.append(f"        void *r{number} = taken(NULL, {size});")
            names.append(f"r{number}")
        main.append(f"        int status = {name}({', '.join(names)});")
        main.append("        fwrite(&status, 1, sizeof status, stdout);")
        main += [f"        given(r{number}, {size});" for number, size in enumerate(sizes)]
        main += [f"        free(a{number});" for number in range(len(arguments))]
        main.append("    }")
    main += ["    fclose(file);", "    return 0;", "}"]
    source, program, given = folder / "program.c", folder / "program", folder / "arguments"
    source.write_text(text + _MAIN + "\n".join(main) + "\n")
    given.write_bytes(b"".join(data))
    assert COMPILER is not None
    command = [COMPILER, *STRICT, *flags, str(source), "-o", str(program), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:3000]
    ran = subprocess.run([str(program), str(given)], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()[:3000]
    found, offset = [], 0
    for _, _, results in calls:
        status = int(np.frombuffer(ran.stdout, np.int32, 1, offset)[0])
        offset += 4
        arrays = []
        for type_ in results:
            dtype = np.dtype(np.bool_) if type_.dtype is DType.I1 else np.dtype(type_.dtype.numpy)
            count = int(np.prod(type_.extents))
            arrays.append(np.frombuffer(ran.stdout, dtype, count, offset).reshape(type_.extents))
            offset += count * dtype.itemsize
        found.append((status, arrays))
    assert offset == len(ran.stdout)
    return found
