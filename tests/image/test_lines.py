"""Line tables as linking reads them, beside what pyelftools reads."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from debug_objects import SOFTMAX, TWICE, object_of, read, rows_of

import mind_mlir
from mind_mlir.image.errors import LinkingError
from mind_mlir.image.lines import rows_within
from mind_mlir.image.linking import link
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("source", [SOFTMAX, TWICE])
def test_lines_are_those_that_pyelftools_reads(source: str, tmp_path: Path) -> None:
    data = object_of(mind_mlir.parse(source, "models/net.ir"))
    image = link([data])
    found = [
        (symbol.name, row.offset - symbol.offset, row.file, row.line)
        for symbol in image.symbols
        for row in rows_within(image.lines, symbol.offset, symbol.size)
        if row.line
    ]
    assert found == list(rows_of(data))
    assert len({line for *_, line in found}) >= 5


def test_code_without_lines_has_none(tmp_path: Path) -> None:
    assert link([object_of(mind_mlir.parse(SOFTMAX, "net.ir"), CompileOptions())]).lines == ()


def test_a_damaged_table_is_an_error_and_nothing_worse(tmp_path: Path) -> None:
    data = bytearray(object_of(mind_mlir.parse(SOFTMAX, "net.ir")))
    section = read(bytes(data)).get_section_by_name(".debug_line")
    start, size = section["sh_offset"], section["sh_size"]
    draw = random.Random(0)  # noqa: S311 -- of places to damage
    refused = 0
    for _ in range(300):
        changed = bytearray(data)
        changed[start + draw.randrange(size)] ^= 1 << draw.randrange(8)
        try:
            link([bytes(changed)])
        except LinkingError:
            refused += 1
    assert 10 < refused < 300
