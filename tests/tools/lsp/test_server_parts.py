"""Places, names of IR texts, and processes that crash or hang."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from cli_harness import invoke
from lsprotocol.types import CompletionParams, Position, RenameParams, TextDocumentIdentifier

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.syntax.tokens import KEYWORDS
from mind_mlir.tools.lsp import checks, completion, navigation, runs, worker
from mind_mlir.tools.lsp.constructs import CONSTRUCTS
from mind_mlir.tools.lsp.documents import Document, KnownTypes
from mind_mlir.tools.lsp.editor_languages import index_of
from mind_mlir.tools.lsp.text_places import TextPlaces
from mind_mlir.tools.lsp.wire import packed
from mind_mlir.tools.lsp.workers import Worker, WorkerError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 6), ("utf-16", 4), ("utf-32", 3)])
def test_positions_count_what_the_editor_counts(encoding: str, column: int) -> None:
    text = "a\r\nx\U0001d54fy\u2028z\rb"
    places = TextPlaces(text, encoding)
    offset = text.index("\u2028")
    assert places.position(offset) == Position(1, column)
    assert places.offset(Position(1, column)) == offset
    assert places.position(text.index("b")) == Position(2, 0), "\\u2028 ends no line, \\r does"
    assert places.offset(Position(1, 99)) == text.index("\rb")
    assert places.offset(Position(99, 0)) == len(text)


def test_types_move_with_the_text() -> None:
    known = KnownTypes("abc def ghi", {(0, 3): "A", (4, 7): "D", (8, 11): "G"})
    assert known.moved("abc dxxef ghi") == {(0, 3): "A", (10, 13): "G"}
    assert known.moved("abc def ghi") == known.types
    assert known.moved("") == {}


def test_every_keyword_is_explained() -> None:
    assert CONSTRUCTS.keys() == KEYWORDS


def test_names_of_core_ir() -> None:
    text = (ROOT / "lit_tests" / "ops" / "while.ir").read_text(encoding="utf-8")
    text = text[: text.index("\n# MIND:")]
    index = index_of(SourceText("while.ir", text))
    places = {
        f"{each.name} {each.type}": len(index.of(each)) for each in index.names if each.kind != "region"
    }
    assert places["%y tensor<f32[3]>"] == 2
    assert places["%n tensor<i64[]>"] == 2, "regions see what is around them"
    assert places["%b tensor<f32[3]>"] == 3
    assert [each.name for each in index.runnable] == ["main"]
    for each in index.occurrences:
        assert text[each.start : each.end] == each.name.name


@pytest.mark.parametrize("name", ["lit_tests/cli/convert.ptir", "lit_tests/ops/custom_call.ptir"])
def test_names_of_ptir(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    index = index_of(SourceText("x.ptir", text))
    used = {each.name for each in index.occurrences if each.role == "read"}
    assert {each for each in index.names if each.kind in ("value", "parameter")} <= used
    for each in index.occurrences:
        assert text[each.start : each.end] == each.name.name


RENAMED = (
    *("examples/mlp.mind", "examples/heat.mind", "examples/newton.mind", "lit_tests/surface/structs.mind"),
    *("lit_tests/surface/closures.mind", "lit_tests/surface/dimensions.mind", "lit_tests/surface/vjp.mind"),
    *("examples/control/training.ir", "examples/grammar_form.ir", "lit_tests/ops/while.ir"),
    *("lit_tests/cli/convert.ptir", "lit_tests/ops/custom_call.ptir"),
)


@pytest.mark.parametrize("name", RENAMED)
def test_a_program_with_another_name_is_as_right_as_before(name: str) -> None:
    """Whatever is renamed, the program means what it did: no place was overlooked, and no other one hit."""
    text = (ROOT / name).read_text(encoding="utf-8")
    document = Document(f"file:///{name}", 1, text)
    assert checks.check("before", name, text).findings == []
    renamed = 0
    names = document.index.names
    for found in names[:: 1 + len(names) // 20]:
        if found.kind == "region" or found.declared is None:
            continue
        mark = found.name[0] if found.name[0] in "%@^" else ""
        place = document.places.position(found.declared[0])
        about = TextDocumentIdentifier(document.uri)
        edit = navigation.rename(document, RenameParams(about, place, f"{mark}other_name"))
        assert edit.changes is not None
        changed = text
        for each in reversed(edit.changes[document.uri]):  # which are in the order of the text
            start, end = map(document.places.offset, (each.range.start, each.range.end))
            changed = changed[:start] + each.new_text + changed[end:]
        assert checks.check("after", name, changed).findings == [], found.name
        renamed += 1
    assert renamed > 1


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("let a: ", ["i32", "i64"]),
        ("let a: (f32, ", ["i32", "i64"]),
        ("let a: Tensor<", ["i32", "i64"]),
        ("let a: Tensor<f32, [", ["n"]),
        ("let a = x[n:", ["P", "M"]),
        ("let a = P { w: ", ["w", "v"]),
        ("q.", ["w", "v"]),
        ("sum(x, ", ["axes", "keepdims"]),
        ("sum(x, keepdims=", ["true", "false"]),
        ("cast(x, dtype=", ["i32", "i64"]),
        ("g(p=q, ", ["p=", "x="]),
        ("// q.", []),
    ],
)
def test_completion_knows_what_may_stand_where(typed: str, first: list[str]) -> None:
    head = "struct P { w: f32, v: f32 }\ntype M = f32;\n"
    head += "fn g(p: P, x: Tensor<f32, [n]>) -> f32 {\n    let q = p;\n"
    document = Document("file:///a.mind", 1, f"{head}    {typed}\n}}\n")
    place = document.places.position(len(head) + 4 + len(typed))
    about = TextDocumentIdentifier(document.uri)
    found = completion.completion(document, CompletionParams(about, place)).items
    assert [each.label for each in found[:2]] == first


async def answered(job: str, *arguments: object, seconds: int) -> object:
    process = Worker()
    try:
        return await process.ask(job, *arguments, seconds=seconds)
    finally:
        await process.close()


def test_a_job_that_crashes_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")

    async def crash() -> None:
        process = Worker()
        child = await process.start()
        child.send_signal(signal.SIGSTOP)
        asking = asyncio.create_task(process.ask("check", "u", "a.mind", "fn", seconds=20))
        await asyncio.sleep(0.05)
        child.kill()
        with pytest.raises(WorkerError, match="ended with SIGKILL"):
            await asking
        found = await process.ask("check", "u", "a.mind", "fn", seconds=20)
        assert [each.code for each in found.findings] == ["E1101"], "the next process answers"
        await process.close()

    asyncio.run(crash())


def test_modules_beside_a_text_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numpy.py").write_text("raise SystemExit('taken from the folder of the text')\n")
    found = asyncio.run(answered("check", "u", "a.mind", "fn", seconds=20))
    assert isinstance(found, tuple)
    assert [each.code for each in found[0]] == ["E1101"]


def test_a_job_that_hangs_is_ended() -> None:
    text = "fn main(x: f64) -> f64 {\n    while x * x >= 0.0 {\n        x = sin(x);\n    }\n    x\n}\n"
    start = time.monotonic()
    with pytest.raises(WorkerError, match="longer than 2 s"):
        asyncio.run(answered("run", "loop.mind", text, "main", seconds=2))
    assert time.monotonic() - start < 30


def test_what_goes_wrong_in_a_job_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(checks, "check", fail)
    (tmp_path / "requests").write_bytes(packed(("check", 5, ("u", "a.mind", ""))))
    with (tmp_path / "requests").open("rb") as requests, (tmp_path / "answers").open("wb") as answers:
        worker.serve(requests, answers)
    assert b"RecursionError: too deep" in (tmp_path / "answers").read_bytes()


def test_open_dimensions_are_bound_to_what_the_program_takes() -> None:
    text = "fn main(x: Tensor<f32, [n, m]>) -> Tensor<f32, [2, 8]> {\n    reshape(x, new_shape=[2, 8])\n}\n"
    outcome = runs.gradient("a.mind", text, "main")
    assert outcome.is_good, outcome.text
    assert outcome.summary == "the gradient of main with n = 4, m = 4"


def test_without_pygls_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("pygls.", "mind_mlir.tools.lsp."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygls", None)
    result = invoke("lsp")
    assert result.exit_code == 1
    assert "error[E7003]: the language server needs the package pygls" in result.stderr
    assert "pip install 'mind-mlir[lsp]'" in result.stderr


def test_what_a_program_prints_is_shown() -> None:
    text = (
        'fn f(x: Tensor<f32, [n]>) -> f32 {\n    for i in range(3) { print("turn {}", i); }\n    sum(x)\n}\n'
    )
    assert "\n\nturn 0\nturn 1\nturn 2\n\nresult: float32[]" in runs.run("f.mind", text, "f").text
    endless = runs.run("f.mind", text.replace("range(3)", "range(20000)"), "f").text
    assert 100_000 < len(endless) < 101_000
