"""A language is one row of a table, and a kind of programs one method: all else follows from these."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.kind import ProgramKind
from mind_mlir.languages.programs import kinds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TEXT = '%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Add (%0, %0) : tensor<f32[2]>\noutputs: %1\n'
X = np.array([1, 2], np.float32)


@dataclass(frozen=True)
class Quoted:
    """A program of a language that the compiler does not know."""

    text: str


class QuotedKind(ProgramKind[Quoted]):
    name = "quoted"
    title = "quotes"

    def exported(
        self,
        program: Quoted,
        functions: Sequence[str] | None,
        bindings: Mapping[str, int] | None,
        seed: int | None = None,
    ) -> mind_mlir.Module:
        return mind_mlir.parse(program.text, format="core")


KIND = QuotedKind()


@pytest.fixture
def quoted(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(kinds._KINDS, f"{__name__}.Quoted", __name__)
    return Quoted(TEXT)


def test_every_row_of_the_table_leads_somewhere() -> None:
    for language in kinds.LANGUAGES:
        if language.program is None:
            continue
        home, _, name = language.program[0].rpartition(".")
        kind = import_module(language.program[1]).KIND
        assert isinstance(getattr(import_module(home), name), type)
        assert isinstance(kind, ProgramKind)
        assert kind.name
        assert kind.title


def test_a_source_is_of_the_language_that_its_name_says() -> None:
    names = {"p.mind": "mind", "p.ptir": "compact", "p.ptir.json": "json", "p.ir": "core", "p.mlir": "core"}
    for name, format_ in names.items():
        assert kinds.language_of(SourceText(name, "%0 = x")) is kinds.FORMATS[format_]
    assert kinds.language_of(SourceText("p.mlir", ""), tools=True).formats == ()


def test_a_kind_that_exports_functions_can_do_all_that_programs_can(quoted: Any, tmp_path: Path) -> None:
    assert mind_mlir.verify(quoted) is quoted
    (found,) = mind_mlir.compile(quoted)(X)
    (expected,) = mind_mlir.interpret(quoted, {"x": X})
    assert found.tolist() == expected.tolist() == [2, 4]
    assert mind_mlir.differentiate(quoted).module.outputs
    assert mind_mlir.convert(quoted, "c").text
    assert list(mind_mlir.plan_buffers(quoted).functions) == ["main"]
    assert mind_mlir.package(quoted, tmp_path / "p.o", "object").is_file()


def test_what_a_kind_does_not_take_is_refused(quoted: Any) -> None:
    with pytest.raises(ValueError, match=r"(?m)^seed must be left out for a program of quotes$"):
        mind_mlir.compile(quoted, seed=1)
    with pytest.raises(TypeError, match=r"^module must be a Module"):
        mind_mlir.verify(Quoted)  # type: ignore[type-var]  # that is what is tested
    assert [each.code for each in KIND.check(Quoted("%0 ="), None)] == ["E1101"]
