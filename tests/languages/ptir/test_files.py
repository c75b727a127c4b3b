"""Programs in files: which format is which, and files that are there as a whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mind_mlir.diagnostics import ParseError, SourceText, UnsupportedError
from mind_mlir.languages import ptir
from mind_mlir.languages.ptir.files import FORMATS, detect

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir.languages.ptir.files import Format

TEXT = "func @main(%x: tensor<f32>) -> tensor<f32> {\n  %y = exp %x -> tensor<f32>\n  return %y\n}\n"
untyped: Any = ptir


@pytest.mark.parametrize("form", FORMATS)
def test_the_text_tells_its_format(form: Format) -> None:
    program = ptir.parse(TEXT)
    text = ptir.dumps(program, form)
    assert detect(text) == detect(f"\n  {text}") == form
    assert ptir.parse(text) == ptir.parse(text, form) == ptir.parse(SourceText("x", text)) == program


@pytest.mark.parametrize(
    ("name", "form", "head"),
    [
        ("a.ptir.json", None, "{"),
        ("a.ptir", None, "spec_version"),
        ("a.ptir", "display", "program"),
        ("b", "json", "{"),
    ],
)
def test_files(tmp_path: Path, name: str, form: Format | None, head: str) -> None:
    program, path = ptir.parse(TEXT), tmp_path / name
    path.write_text("what was there before")
    ptir.save(program, path, form)
    assert path.read_text().startswith(head)
    assert ptir.load(path) == program
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_the_name_says_json(tmp_path: Path) -> None:
    path = tmp_path / "a.ptir.json"
    path.write_text(TEXT)
    with pytest.raises(ParseError, match="expected a value, found") as caught:
        ptir.load(path)
    assert str(caught.value.diagnostics[0].location).endswith("a.ptir.json:1:1")


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    program, path = ptir.parse(TEXT), tmp_path / "a.ptir"
    with pytest.raises(UnsupportedError, match="cannot write") as caught:
        ptir.save(program, tmp_path / "no" / "a.ptir")
    assert caught.value.code == "E7101"
    ptir.save(program, path)
    function = program.functions[0]
    broken = untyped.parse(TEXT)
    object.__setattr__(broken.functions[0], "hints", {"why": object()})
    with pytest.raises(TypeError):
        ptir.save(broken, path)
    assert ptir.load(path).functions == (function,)
    assert [file.name for file in tmp_path.iterdir()] == ["a.ptir"]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: untyped.parse(b"x"), TypeError, "text must be a string"),
        (lambda: untyped.parse("", "yaml"), ValueError, "format must be"),
        (lambda: untyped.dumps(ptir.parse(TEXT), "yaml"), ValueError, "format must be"),
        (lambda: untyped.load(3), TypeError, "path must be"),
    ],
)
def test_arguments(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ParseError) as caught:
        ptir.load(tmp_path / "absent.ptir")
    assert caught.value.code == "E1106"
