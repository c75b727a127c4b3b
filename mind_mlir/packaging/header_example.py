"""The example in the header of a library: a whole program that calls its first function."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.packaging.c_interface import CFunction, CLibrary

#: Longer argument lists are not written in one line.
_WIDTH = 84


def example_lines(library: CLibrary, file: str) -> list[str]:
    """Return the lines of a program in C99, which C++ compiles, too."""
    function = library.functions[0]
    taken = {buffer.name for buffer in function.buffers}
    status, memory = _free("status", taken), _free("memory", taken)
    lines = ["#include <stdio.h>", f'#include "{file}"', "", "int main(void)", "{"]
    lines += [
        f"    static {buffer.c_type} {buffer.name}[{max(buffer.length, 1)}];" for buffer in function.buffers
    ]
    if function.entry.scratch_bytes:
        alignment = f"{library.macro}_SCRATCH_ALIGNMENT"
        lines += [
            f"    static char {memory}[{function.macro}_SCRATCH_BYTES + {alignment}];",
            f"    void *scratch = {memory} + {alignment}",
            f"        - (uintptr_t){memory} % {alignment};",
        ]
    else:
        lines.append("    void *scratch = 0;")
    lines += _call(function, status)
    lines += [
        f"    if ({status} != 0) {{",
        f'        fprintf(stderr, "%s\\n", {library.message}({status}));',
        "        return 1;",
        "    }",
    ]
    written = [buffer for buffer in function.buffers if buffer.written and buffer.length]
    if written:
        lines.append(f'    printf("%g\\n", (double){written[0].name}[0]);')
    return [*lines, "    return 0;", "}"]


def _call(function: CFunction, status: str) -> Iterator[str]:
    names = [buffer.name for buffer in function.buffers]
    if function.takes_table:
        table = _free("buffers", set(names))
        yield f"    void *{table}[{len(names)}] = {{"
        yield from (f"        {line}" for line in _rows(names))
        yield "    };"
        yield f"    int {status} = {function.name}({table}, scratch);"
        return
    one = f"    int {status} = {function.name}({', '.join([*names, 'scratch'])});"
    if len(one) <= _WIDTH:
        yield one
        return
    yield f"    int {status} = {function.name}("
    yield from (f"        {line}" for line in _rows([*names, "scratch);"]))


def _rows(names: list[str]) -> Iterator[str]:
    """Yield names with commas between them, as many in a line as it has room for."""
    line = ""
    for number, name in enumerate(names):
        word = name if number == len(names) - 1 else f"{name},"
        if line and len(line) + len(word) + 1 > _WIDTH - 8:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
