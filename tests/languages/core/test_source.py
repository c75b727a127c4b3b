"""Reading files and standard input."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.languages.core import load
from mind_mlir.languages.source import decode_source, read_source

if TYPE_CHECKING:
    from pathlib import Path


def fault(data: bytes) -> Diagnostic:
    with pytest.raises(ParseError) as caught:
        decode_source(data, "m.ir")
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize(
    ("data", "offset", "found", "line", "column"),
    [
        (b"\xff", 0, "ff", 1, 1),
        (b"ab\n\xc3\xa9\xc3(x", 5, "c3 28 78", 2, 2),
        (b"\xef\xbb\xbfab\x80", 5, "80", 1, 3),
        (b"a\xed\xa0\x80bcdef", 1, "ed a0 80 62", 1, 2),
    ],
)
def test_ill_formed_utf8(data: bytes, offset: int, found: str, line: int, column: int) -> None:
    diagnostic = fault(data)
    assert diagnostic.code == "E1001"
    assert diagnostic.context["byte_offset"] == offset
    assert diagnostic.context["bytes"] == found
    assert f"byte offset {offset}" in diagnostic.message
    assert diagnostic.location is not None
    assert (diagnostic.location.line, diagnostic.location.column) == (line, column)


def test_utf16_is_recognised() -> None:
    assert "UTF-16" in (fault("%0".encode("utf-16")).help or "")


def test_byte_order_mark_is_dropped() -> None:
    assert decode_source(b"\xef\xbb\xbf%0", "m.ir").text == "%0"


def test_read_file(tmp_path: Path) -> None:
    path = tmp_path / "m.ir"
    path.write_bytes(b"%0 = Input {name=x} : tensor<f32[]>\r\noutputs: %0\n")
    assert read_source(path).name == str(path)
    assert load(path).outputs == (0,)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"outputs: %0"), encoding="ascii"))
    source = read_source("-")
    assert (source.name, source.text) == ("<stdin>", "outputs: %0")


@pytest.mark.parametrize("name", ["missing.ir", ".", "nul\0.ir"])
def test_unreadable_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_source(f"{tmp_path}/{name}")
    assert caught.value.code == "E1106"
    assert "cannot read" in str(caught.value)
