"""Damaged input gives diagnostics: never another exception, never a hang, never a crash of the process."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from budget import examples
from hypothesis import example, given
from hypothesis import strategies as st
from mutation import CORE_FRAGMENTS, core_texts, example_modules, mutated

import mind_mlir
from mind_mlir import (
    AutodiffError,
    Builder,
    Diagnostic,
    DType,
    MindError,
    Module,
    TensorType,
    canonicalize,
    differentiate,
    parse,
    print_module,
    verify,
)
from mind_mlir.diagnostics.render import FORMATS, render
from mind_mlir.ops.registry import all_ops
from mind_mlir.runtime.stage_text import stage_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

#: Seconds of the processor that one small text may take; a hundred times what one does.
LIMIT = 20
#: Controls, formatting marks, surrogates, and separators of lines and paragraphs.
UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Turn a hang into a failure, where the platform can interrupt one."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def expire(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer within {LIMIT} s of work")

    previous = signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)  # no time that passes while others have the processor
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def check_diagnostics(error: MindError, text: str) -> None:
    assert error.diagnostics
    lines = text.split("\n")
    for diagnostic in error.diagnostics:
        assert isinstance(diagnostic, Diagnostic)
        assert diagnostic.code[0] == "E"
        assert diagnostic.message
        location = diagnostic.location
        if location is None:
            continue
        assert 1 <= location.line <= len(lines)
        assert 1 <= location.column <= len(lines[location.line - 1]) + 1
        assert location.length >= 0
    check_rendering(error.diagnostics)


def check_rendering(diagnostics: tuple[Diagnostic, ...]) -> None:
    for form in FORMATS:
        text = render(diagnostics, form)
        text.encode()
        # Nothing that acts on a terminal, whatever the source holds.
        assert not {
            c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        }
    objects = [json.loads(line) for line in render(diagnostics, "json").splitlines()]
    assert [found["code"] for found in objects] == [diagnostic.code for diagnostic in diagnostics]
    assert len(render(diagnostics, "short").splitlines()) == len(diagnostics)


def read(text: str) -> None:
    """Read and check a text; what is accepted must print and read back."""
    try:
        module = verify(parse(text))
    except MindError as error:
        check_diagnostics(error, text)
        return
    canonical = verify(canonicalize(module))
    with contextlib.suppress(AutodiffError):
        verify(differentiate(module, extensions=True).module)
    printed = print_module(module)
    assert print_module(parse(printed)) == printed
    assert print_module(parse(print_module(canonical))) == print_module(canonical)


@examples(120)
@given(mutated(core_texts(), CORE_FRAGMENTS))
def test_damaged_texts(text: str) -> None:
    with time_limit():
        read(text)


@examples(120)
@given(st.text(max_size=200) | st.lists(st.sampled_from(CORE_FRAGMENTS), max_size=30).map(" ".join))
def test_arbitrary_texts(text: str) -> None:
    with time_limit():
        read(text)


@examples(90)
@given(st.binary(max_size=200), st.sampled_from(core_texts()), st.data())
@example(b"\xff\xfe", "", None)
def test_arbitrary_bytes(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, text: str, data: st.DataObject | None
) -> None:
    content = text.encode()
    if data is not None:
        at = data.draw(st.integers(0, len(content)))
        content = content[:at] + noise + content[at + data.draw(st.integers(0, 3)) :]
    path = tmp_path_factory.getbasetemp() / "noise.ir"
    path.write_bytes(content + noise)
    with time_limit(), contextlib.suppress(MindError):
        verify(mind_mlir.load(path))


class Child:
    """A process that reads MLIR; a new one takes the place of one that has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, text: str) -> dict[str, object]:
        """Return what the process makes of ``text``."""
        if self._process is None:
            script = str(Path(__file__).with_name("mlir_child.py"))
            self._process = subprocess.Popen(
                [sys.executable, script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(LIMIT, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(text) + "\n")
            process.stdin.flush()
            reply = process.stdout.readline()
        finally:
            timer.cancel()
        if reply:
            answer: dict[str, object] = json.loads(reply)
            return answer
        self._process = None
        _, errors = process.communicate()
        pytest.fail(f"the process ended with {process.returncode}:\n{errors[-4000:]}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.communicate()  # closes its input, at whose end it ends


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    process = Child()
    yield process
    process.stop()


@cache
def mlir_texts() -> tuple[str, ...]:
    """Return the `mind` dialect form of the modules with all examples of an operation."""
    # IRDL wants one type for all operands of a variadic one: the examples of Concat have parts of several.
    known = [module for module in example_modules() if all(op.opcode != "Concat" for op in module.operations)]
    return tuple(stage_text(module, "mind") for module in (*known, _concatenation()))


def _concatenation() -> Module:
    b = Builder()
    x, y = (b.input(name, TensorType(DType.F32, shape)) for name, shape in (("x", (2, 3)), ("y", (1, 3))))
    return b.build([b.emit("Concat", x, y, y, axis=0)])


MLIR_FRAGMENTS = (
    *(f'"mind.{record.mnemonic}"' for record in all_ops()),
    *"()[]{}<>,:=%-+.\"'#/\\@;*?!&|^$\n\0",
    *("%0", "%arg0", "%99", "->", "return", "func.func @f()", "module {", "array<i64>", "array<i64: -1>"),
    *(
        "array<i32: 0>",
        "dense<0.0>",
        "dense<[1, 2]>",
        "dense<>",
        "sparse<0, 1>",
        "dense_resource<x>",
        '"Same"',
    ),
    *(
        "f32",
        "i1",
        "si64",
        "ui8",
        "bf16",
        "index",
        "complex<f32>",
        "true",
        "unit",
        "0 : i64",
        "2 : i128",
        '"x"',
    ),
    *("tensor<f32>", "tensor<2xf32>", "tensor<?xf32>", "tensor<*xf32>", "tensor<0xi1>", "tensor<2xsi32>"),
    *(
        "memref<2xf32>",
        "vector<2xf32>",
        "tuple<>",
        "none",
        "()",
        "() -> ()",
        "({ })",
        "[^bb0]",
        "loc(unknown)",
    ),
    *("9223372036854775807", "99999999999999999999", "-1", "1000000000000x", "0x", "{a = 1}", "<{}>"),
)


@pytest.mark.parametrize("index", range(len(mlir_texts())))
def test_the_child_accepts_what_is_not_damaged(child: Child, index: int) -> None:
    assert child.ask(mlir_texts()[index]) == {"accepted": True}


@examples(120)
@given(st.data())
def test_damaged_mlir(child: Child, data: st.DataObject) -> None:
    text = data.draw(mutated(mlir_texts(), MLIR_FRAGMENTS))
    assert set(child.ask(text)) < {"accepted", "error"}


T, L = "tensor<2xf32>", "tensor<2xcomplex<f32>>"


@pytest.mark.parametrize(
    "text",
    [
        f'func.func @f(%a: {T}) {{ "mind.add"(%a, %a) : ({T}, {T}) -> () return }}',
        '"mind.neg"() : () -> ()',
        f'%0 = "mind.const_tensor"() {{value = dense<(1.0, 2.0)> : {L}, dtype = complex<f32>, '
        f"shape = array<i64: 2>}} : () -> {L}",
        '%0 = "mind.const_tensor"() {value = dense<0.0> : tensor<100000000000xf32>, dtype = f32, '
        "shape = array<i64: 100000000000>} : () -> tensor<100000000000xf32>",
        '%0 = "mind.const_tensor"() {value = dense_resource<x> : tensor<1xf32>, dtype = f32, '
        "shape = array<i64: 1>} : () -> tensor<1xf32>",
        f'func.func @f(%a: {T}) {{ %0 = "mind.sum"(%a) {{axes = array<i32: 0>, keepdims = 1 : i64}} '
        f": ({T}) -> tensor<f32> return }}",
    ],
)
def test_mlir_that_once_broke_the_verifier(child: Child, text: str) -> None:
    assert "error" in child.ask(text)


@pytest.mark.parametrize(
    "opening", ["module {", "module attributes {a = [", "#a = tuple<", '// { "\nmodule {']
)
def test_deeply_nested_mlir_is_refused(opening: str) -> None:
    """MLIR's parser recurses, and would take the process with it."""
    child = subprocess.run(
        [sys.executable, "-c", "from mind_mlir.tools.opt.main import main; main()"],
        input=opening * 50_000,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert child.returncode == 1, child.stderr[-2000:]
    assert "error[E1101]: brackets nest more than 1000 deep" in child.stderr
