"""What Python shows of things: `str` is their text, `repr` one short line, a traceback the findings."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, Diagnostic, DType, MindError, ParseError, TensorType
from mind_mlir.diagnostics.tracebacks import HIDDEN, public
from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral
from mind_mlir.ir.module import Block, Function, Functions, Module, Parameter, Return
from mind_mlir.languages.ptir.program import Function as PtirFunction
from mind_mlir.languages.ptir.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = """\
%x = Input {name="x"} : tensor<f32[2]>
%w = Input {name="w"} : tensor<f32[2]>
%y = Mul (%x, %w) : tensor<f32[2]>
outputs: %y
"""
MODULE = mind_mlir.parse(TEXT, "net.ir")
F32 = TensorType(DType.F32)
PUBLIC = public(len).__code__


def test_modules_and_operations_are_their_text() -> None:
    assert str(MODULE) == TEXT.removesuffix("\n")
    assert str(MODULE.operations[2]) == "%y = Mul (%x, %w) : tensor<f32[2]>"
    assert repr(MODULE.operations[2]) == "<CoreOperation %y = Mul (%x, %w) : tensor<f32[2]>>"
    assert repr(MODULE) == "<Module main(x: tensor<f32[2]>, w: tensor<f32[2]>): 3 operations, 1 output>"
    assert str(mind_mlir.canonicalize(MODULE)).startswith('%0 = Input {name="x"}')


def test_parts_are_shown_in_function_form() -> None:
    body = MODULE.body
    block = (
        '^entry:\n  %x = Input {name="x"} : tensor<f32[2]>\n  %w = Input {name="w"} : tensor<f32[2]>\n'
        "  %y = Mul (%x, %w) : tensor<f32[2]>\n  return %y"
    )
    assert str(body.terminator) == "return %y"
    assert str(body) == block
    assert str(MODULE.functions[0]) == f"func @main() -> (tensor<f32[2]>) {{\n{block}\n}}"
    assert (repr(body), repr(MODULE.functions[0])) == (
        "<Block ^entry: 3 operations>",
        "<Function @main: 1 block>",
    )


def test_modules_of_several_functions() -> None:
    head = Block((), Return(()), (Parameter(0, F32),))
    tail = Block((), Return((0, 3)), (Parameter(3, F32),), "done")
    module = Module(Functions([Function("f", (head, tail), public=False), Function("g", ())]))
    assert str(module) == (
        "internal func @f(%0: tensor<f32[]>) -> (tensor<f32[]>, tensor<f32[]>) {\n"
        "^entry:\n  return\n^done(%3: tensor<f32[]>):\n  return %0, %3\n}\n\nfunc @g() -> () {\n}"
    )
    assert repr(module) == "<Module core-v1: 2 functions>"


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (DType.SI32, "i32"),
        (TensorType(DType.SI64, (2, 3)), "tensor<i64[2, 3]>"),
        (TensorLiteral.of([[1.5, -0.0]], DType.F32), "[[1.5, -0.0]]"),
        (Padding(PaddingMode.CUSTOM, ((1, 2), (3, 4))), "Custom([[1, 2], [3, 4]])"),
        (PaddingMode.SAME, "Same"),
        (Parameter(4, F32), "%4: tensor<f32[]>"),
        (MODULE.operations[2].location, "net.ir:3:1"),
        (
            Diagnostic("E3001", "extents differ", MODULE.operations[2].location),
            "net.ir:3:1: error[E3001]: extents differ",
        ),
        (mind_mlir.compile(MODULE), TEXT.removesuffix("\n")),
        (mind_mlir.differentiate(MODULE, wrt=[]), str(mind_mlir.canonicalize(MODULE))),
    ],
)
def test_text_of_other_things(thing: object, text: str) -> None:
    assert str(thing) == text


def test_builders_and_values() -> None:
    builder = Builder()
    value = builder.emit("Neg", builder.input("x", F32))
    assert (str(value), repr(value)) == ("%1", "<Value %1 : tensor<f32[]>>")
    assert str(builder) == '%0 = Input {name="x"} : tensor<f32[]>\n%1 = Neg (%0) : tensor<f32[]>'
    assert repr(builder) == "<Builder of 2 operations>"


def test_every_public_class_has_a_short_repr() -> None:
    """The one that `dataclass` makes shows all that is in an object; what can hold much says how much."""
    small = {
        "CustomAttribute",
        "Location",
        "Lowered",
        "MemoryInfo",
        "Network",
        "QuantizedLayer",
        "TensorType",
    }
    classes: Any = {
        name: kind for name in mind_mlir.__all__ if isinstance(kind := getattr(mind_mlir, name), type)
    }
    codes = {name: getattr(kind.__repr__, "__code__", None) for name, kind in classes.items()}
    made = {name for name, code in codes.items() if not (code and "mind_mlir" in code.co_filename)}
    assert made == small
    targets = mind_mlir.list_conversion_targets()
    plan, text = mind_mlir.plan_buffers(MODULE), mind_mlir.convert(MODULE, "c")
    program = Program(tuple(PtirFunction(str(i), (), (), (), (), ()) for i in range(99)))
    things = (
        *targets,
        *(each.legality for each in targets),
        plan,
        text,
        program,
        mind_mlir.InternalError("s", "m", TEXT * 99),
    )
    for thing in (*things, *targets[0].legality.operations.values()):
        assert len(repr(thing)) < 200
        assert repr(thing).isprintable()
    assert repr(targets[0]) == "<ConversionTarget name='c', summary='C99 without dependencies', suffix='.c'>"


def test_the_package_lists_what_is_public() -> None:
    listed = {name for name in dir(mind_mlir) if not name.startswith("__")}
    assert listed == {*mind_mlir.__all__, "distributed", "numpy", "ptir"}
    functions: Any = mind_mlir.numpy
    assert dir(functions) == sorted(functions.__all__)
    assert not any(name.startswith("_") for name in functions.__all__)
    for part, some in ((functions.linalg, "solve"), (functions.fft, "rfft")):
        assert some in dir(part)
        assert all(getattr(part, name).__module__ == "mind_mlir.numpy" for name in dir(part))


def test_what_is_large_has_a_short_repr() -> None:
    builder = Builder()
    large = builder.constant([[float(i)] * 9 for i in range(999)], DType.F32)
    inputs = [builder.input(f"a_long_name_for_input_{i}", large.type) for i in range(99)]
    module = builder.build([large, *inputs])
    long = Diagnostic("E1101", "syntax error\n" * 10_000)
    gradient = mind_mlir.differentiate(module)
    things = (module, *module.operations[:2], *module.operations[0].attributes.values(), builder, gradient)
    for thing in (*things, mind_mlir.compile(module), long, ParseError([long, long])):
        assert len(repr(thing)) < 400
        assert repr(thing).isprintable()


def test_executables_tell_their_signature() -> None:
    executable = mind_mlir.compile(MODULE)
    assert repr(executable) == "<Executable main(x: tensor<f32[2]>, w: tensor<f32[2]>) -> (tensor<f32[2]>)>"
    signature = inspect.signature(executable)
    assert str(signature) == "(x: 'tensor<f32[2]>', w: 'tensor<f32[2]>') -> '(tensor<f32[2]>)'"
    odd = mind_mlir.compile(mind_mlir.parse(TEXT.replace('"w"', '"no identifier"')))
    assert list(inspect.signature(odd).parameters) == ["args", "kwargs"]


def test_errors_show_what_the_command_line_shows() -> None:
    with pytest.raises(MindError) as caught:
        mind_mlir.verify(mind_mlir.parse(TEXT.replace("tensor<f32[2]>\n%y", "tensor<f32[3]>\n%y"), "net.ir"))
    assert str(caught.value) == (
        "error[E3001]: Broadcasting failed at dimension 0: 2 against 3\n"
        " --> net.ir:3:6\n"
        "  |\n"
        "3 | %y = Mul (%x, %w) : tensor<f32[2]>\n"
        "  |      ^^^\n"
        "  |\n"
        "  = note: left shape [2]\n"
        "  = note: right shape [3]\n"
        "  = help: extents must be equal, or one of them 1, aligned from the right; "
        "Reshape or ExpandDims can line the dimensions up"
    )
    assert repr(caught.value) == (
        "<VerificationError E3001: Broadcasting failed at dimension 0: 2 against 3>"
    )


def test_tracebacks_show_the_findings(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import mind_mlir\nmind_mlir.parse('%0 = Frob (\\n%1 = ')\n")
    child = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert child.returncode == 1
    assert "ParseError: error[E1" in child.stderr
    assert "\n1 | %0 = Frob (\n" in child.stderr
    assert child.stderr.endswith(f"\n2 errors\n{HIDDEN}\n")
    assert "\x1b" not in child.stderr


def test_the_text_of_an_error_is_bounded() -> None:
    found = [Diagnostic("E1101", "x" * 10_000, notes=("y" * 10_000,), help="z" * 10_000)] * 5000
    text = str(ParseError(found))
    assert len(text) < 50_000
    assert "\n\nerror[E1107]: 4,980 more errors, not shown\n" in text
    assert text.endswith("\n\n5,000 errors")


def test_help_on_the_package_has_everything_public() -> None:
    text = pydoc.plain(pydoc.render_doc(mind_mlir))
    for name in mind_mlir.__all__:
        assert inspect.getdoc(getattr(mind_mlir, name))
        assert re.search(rf"class {name}\b|^    {name}\(|\.{name}\b", text, re.M)


def test_every_public_method_has_help() -> None:
    for class_ in (mind_mlir.Builder, mind_mlir.Executable, mind_mlir.Module, mind_mlir.CoreOperation):
        public = [member for name, member in inspect.getmembers(class_, callable) if not name.startswith("_")]
        assert all(inspect.getdoc(member) for member in public)


def frames(call: Callable[[], object]) -> list[str]:
    """Return the functions in the traceback of what a call raises, behind this one and what calls it."""
    try:
        call()
    except Exception as error:
        names = [each.name for each in traceback.extract_tb(error.__traceback__)]
        return names[names.index("<lambda>") + 1 :]
    raise AssertionError("it raises nothing")


def test_tracebacks_show_the_frames_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def inner(x: Any) -> Any:
        return x + np.ones(4)

    @mind_mlir.jit
    def f(x: Any) -> Any:
        return mind_mlir.cond(x.sum() > 0, lambda: inner(x), lambda: x)

    @mind_mlir.jit
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    compiled: Any = mind_mlir.compile(MODULE)
    calls: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: f(np.ones(3)), ["f", "<lambda>", "inner"]),
        (lambda: mind_mlir.grad(f)(np.ones(3)), ["f", "<lambda>", "inner"]),
        (lambda: f.lower(np.ones(3)), ["f", "<lambda>", "inner"]),
        (lambda: broken(np.ones(3)), ["broken"]),
        (lambda: mind_mlir.parse("%0 = Foo"), []),
        (lambda: mind_mlir.parse(7), []),  # type: ignore[call-overload]  # that is what is tested
        (lambda: mind_mlir.numpy.tanh("x"), []),
        (lambda: compiled(3, 4), []),
    ]
    for call, wanted in calls:
        assert frames(call) == wanted
    monkeypatch.setenv("MIND_MLIR_TRACEBACK", "full")
    for call, wanted in calls:
        assert len(frames(call)) > len(wanted)


def test_a_bug_of_ours_shows_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mind_mlir.languages.core.text.parse", lambda text: {}[text])
    monkeypatch.setattr("mind_mlir.diagnostics.tracebacks.PACKAGE", str(Path(__file__).parents[1]))
    assert len(frames(lambda: mind_mlir.parse("%0 = Foo"))) > 2


def test_all_public_functions_trim() -> None:
    functions = [getattr(mind_mlir, name) for name in mind_mlir.__all__]
    plain = [each.__name__ for each in functions if inspect.isfunction(each)]
    trimming = [each.__name__ for each in functions if getattr(each, "__code__", None) is PUBLIC]
    assert plain == trimming
