"""Modules of several functions: each exported one can be called, and is told about as it was written."""

from __future__ import annotations

import copy
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mind_mlir
from mind_mlir import ArgumentError, ExecutionError, VerificationError

TEXT = """\
func @scale(%x: tensor<f32[4]>, %by: tensor<f32[]>) -> (tensor<f32[4]>) {
^entry:
  %y = Mul (%x, %by) : tensor<f32[4]>
  return %y
}
func @doubled(%x: tensor<f32[4]>, %n: tensor<i64[]>) -> (tensor<f32[4]>, tensor<i64[]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  br ^head(%x, %zero)
^head(%y: tensor<f32[4]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %two = ConstF32 {value=2.0} : tensor<f32[]>
  %y2 = call @scale (%y, %two) : tensor<f32[4]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  %i2 = Add (%i, %one) : tensor<i64[]>
  br ^head(%y2, %i2)
^done:
  return %y, %i
}
func @pick(%table: tensor<f32[4]>, %at: tensor<i64[]>) -> (tensor<f32[]>) {
^entry:
  %v = call @read (%table, %at) : tensor<f32[]>
  return %v
}
internal func @read(%t: tensor<f32[4]>, %k: tensor<i64[]>) -> (tensor<f32[]>) {
^entry:
  %w = Gather (%t, %k) : tensor<f32[]>
  return %w
}
"""
MAIN = TEXT.replace("@pick", "@main")
X = np.array([1, 2, 3, 4], np.float32)


@pytest.fixture(scope="module")
def executable() -> mind_mlir.Executable:
    return mind_mlir.compile(mind_mlir.parse(TEXT, "several.ir", format="core"))


def test_each_exported_function_can_be_called(executable: mind_mlir.Executable) -> None:
    assert list(executable.functions) == ["scale", "doubled", "pick"]
    assert executable["scale"](X, 3.0)[0].tolist() == [3, 6, 9, 12]
    y, n = executable["doubled"](x=X, n=np.int64(5))
    assert y.tolist() == (32 * X).tolist()
    assert n == 5
    assert executable.functions["pick"](X, 2)[0] == 3


def test_a_function_says_what_it_takes_and_returns(executable: mind_mlir.Executable) -> None:
    doubled = executable["doubled"]
    assert doubled.name == "doubled"
    assert [str(parameter) for parameter in doubled.parameters] == ["x: tensor<f32[4]>", "n: tensor<i64[]>"]
    assert [str(type_) for type_ in doubled.results] == ["tensor<f32[4]>", "tensor<i64[]>"]
    assert list(inspect.signature(doubled).parameters) == ["x", "n"]
    assert repr(doubled) == f"<CompiledFunction {doubled}>"
    assert str(doubled) == "doubled(x: tensor<f32[4]>, n: tensor<i64[]>) -> (tensor<f32[4]>, tensor<i64[]>)"
    with pytest.raises(ArgumentError) as caught:
        doubled(X)
    assert [finding.code for finding in caught.value.diagnostics] == ["E6101"]


def test_without_main_it_must_be_said_which_function_to_run(executable: mind_mlir.Executable) -> None:
    message = r"no function is called 'main'.*executable\['scale'\].*scale, doubled, pick"
    for ask in (
        lambda: executable(X, 2),
        lambda: executable.parameters,
        lambda: executable.results,
        executable.signature,
    ):
        with pytest.raises(ValueError, match=message):
            ask()
    assert repr(executable) == "<Executable of scale, doubled, pick>"


def test_main_is_what_a_call_runs() -> None:
    executable = mind_mlir.compile(mind_mlir.parse(MAIN))
    assert executable(X, 1)[0] == 2
    assert executable.parameters == executable["main"].parameters
    assert executable.results == executable["main"].results
    assert list(inspect.signature(executable).parameters) == ["table", "at"]
    assert repr(executable).startswith("<Executable main(table")


def test_one_function_can_be_compiled_alone() -> None:
    module = mind_mlir.parse(TEXT)
    executable = mind_mlir.compile(module, function="doubled")
    assert list(executable.functions) == ["doubled"]
    assert executable(X, 1)[0].tolist() == (2 * X).tolist()
    assert "@pick" not in executable.as_text("canonical")
    assert "@pick" not in executable.as_text("llvm")


@pytest.mark.parametrize(("name", "code"), [("pik", "E2002"), ("read", "E2101"), ("", "E2002")])
def test_functions_that_cannot_be_asked_for(name: str, code: str) -> None:
    with pytest.raises(VerificationError) as caught:
        mind_mlir.compile(mind_mlir.parse(TEXT), function=name)
    assert caught.value.code == code
    assert "scale, doubled, pick" in str(caught.value.diagnostics[0].help)
    with pytest.raises(VerificationError):
        mind_mlir.interpret(mind_mlir.parse(TEXT), {}, function=name)


def test_names_that_there_are_not(executable: mind_mlir.Executable) -> None:
    with pytest.raises(KeyError, match="no function is called 'read'; the functions are: scale, doubled"):
        executable["read"]
    with pytest.raises(TypeError, match="name must be"):
        executable[0]  # type: ignore[index]  # the mistake that is tested
    with pytest.raises(TypeError, match="function must be"):
        mind_mlir.compile(mind_mlir.parse(TEXT), function=7)  # type: ignore[call-overload]  # as above


def test_an_error_in_a_callee_is_told_as_it_was_written(executable: mind_mlir.Executable) -> None:
    with pytest.raises(ExecutionError) as caught:
        executable["pick"](X, 4)
    (finding,) = caught.value.diagnostics
    assert finding.code == "E6001"
    assert finding.message.startswith("Gather %w: index 4")
    assert finding.location is not None
    assert finding.location.text == "%w = Gather (%t, %k) : tensor<f32[]>"
    with pytest.raises(ExecutionError) as interpreted:
        mind_mlir.interpret(mind_mlir.parse(TEXT, "several.ir"), {"table": X, "at": np.array(4)}, "pick")
    assert interpreted.value.diagnostics == caught.value.diagnostics


SAME_NAMES = """\
func @main(%x: tensor<f32[3]>, %i: tensor<i64[]>, %j: tensor<i64[]>) -> (tensor<f32[]>) {
^entry:
  %v = call @first (%x, %i) : tensor<f32[]>
  %w = call @second (%x, %j) : tensor<f32[]>
  %s = Add (%v, %w) : tensor<f32[]>
  return %s
}
internal func @first(%x: tensor<f32[3]>, %k: tensor<i64[]>) -> (tensor<f32[]>) {
^entry:
  %v = Gather (%x, %k) : tensor<f32[]>
  return %v
}
internal func @second(%x: tensor<f32[3]>, %k: tensor<i64[]>) -> (tensor<f32[]>) {
^entry:
  %v = Gather (%x, %k) : tensor<f32[]>
  return %v
}
"""


@pytest.mark.parametrize(("i", "j", "lines"), [(7, 0, [10]), (0, 8, [15]), (7, 8, [10, 15])])
def test_equal_names_in_different_functions_are_told_apart(i: int, j: int, lines: list[int]) -> None:
    executable = mind_mlir.compile(mind_mlir.parse(SAME_NAMES))
    with pytest.raises(ExecutionError) as caught:
        executable(np.zeros(3, np.float32), i, j)
    found = caught.value.diagnostics
    assert [finding.location.line for finding in found if finding.location] == lines
    assert [finding.context["index"] for finding in found] == [value for value in (i, j) if value]


LOOP = """\
func @main(%x: tensor<f32[3]>, %n: tensor<i64[]>) -> (tensor<f32[]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %none = ConstF32 {value=0.0} : tensor<f32[]>
  br ^head(%none, %zero)
^head(%sum: tensor<f32[]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %element = Gather (%x, %i) : tensor<f32[]>
  %next = Add (%sum, %element) : tensor<f32[]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  %i2 = Add (%i, %one) : tensor<i64[]>
  br ^head(%next, %i2)
^done:
  return %sum
}
"""


def test_an_error_in_a_loop_is_told_as_it_was_written() -> None:
    executable = mind_mlir.compile(mind_mlir.parse(LOOP))
    assert executable(X[:3], 3)[0] == 6
    with pytest.raises(ExecutionError) as caught:
        executable(X[:3], 2**60)  # the loop stops: else this would never end
    (finding,) = caught.value.diagnostics
    assert finding.message.startswith("Gather %element: index 3 ")
    assert finding.location is not None
    assert finding.location.line == 10
    assert executable(X[:3], 2)[0] == 3


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])  # noqa: S301 -- made here
def test_functions_and_executables_can_be_copied(executable: mind_mlir.Executable, copied: object) -> None:
    assert callable(copied)
    assert copied(executable)["scale"](X, 2.0)[0].tolist() == [2, 4, 6, 8]
    function = copied(executable["doubled"])
    assert function(X, 1)[0].tolist() == [2, 4, 6, 8]
    assert function.name == "doubled"


def test_functions_outlive_their_executable() -> None:
    function = mind_mlir.compile(mind_mlir.parse(MAIN))["doubled"]
    assert function(X, 3)[0].tolist() == (8 * X).tolist()


def test_many_threads_call_different_functions(executable: mind_mlir.Executable) -> None:
    def call(number: int) -> bool:
        scaled = executable["scale"](X, float(number))[0]
        return bool((scaled == number * X).all()) and executable["pick"](X, number % 4)[0] == X[number % 4]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(400)))


def test_every_function_has_its_own_scratch_memory() -> None:
    text = """\
func @large(%x: tensor<f64[300, 300]>) -> (tensor<f64[300, 300]>) {
^entry:
  %a = MatMul (%x, %x) : tensor<f64[300, 300]>
  %b = MatMul (%a, %a) : tensor<f64[300, 300]>
  return %b
}
func @small(%x: tensor<f64[2]>) -> (tensor<f64[2]>) {
^entry:
  %a = Add (%x, %x) : tensor<f64[2]>
  return %a
}
"""
    executable = mind_mlir.compile(mind_mlir.parse(text))
    sizes = {name: function._native.scratch_bytes for name, function in executable.functions.items()}
    assert sizes["large"] >= 300 * 300 * 8
    assert sizes["small"] < 1024
    x = np.eye(300) * 2
    assert np.array_equal(executable["large"](x)[0], np.eye(300) * 16)


def test_a_function_of_many_arguments_beside_another() -> None:
    names = [f"%a{number}" for number in range(80)]
    parameters = ", ".join(f"{name}: tensor<f32[2]>" for name in names)
    results = ", ".join(["tensor<f32[2]>"] * 80)
    text = f"""\
func @many({parameters}) -> ({results}) {{
^entry:
  return {", ".join(reversed(names))}
}}
func @one(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {{
^entry:
  %y = Add (%x, %x) : tensor<f32[2]>
  return %y
}}
"""
    executable = mind_mlir.compile(mind_mlir.parse(text))
    arrays = [np.full(2, number, np.float32) for number in range(80)]
    assert [result[0] for result in executable["many"](*arrays)] == list(range(79, -1, -1))
    assert executable["one"](arrays[3])[0].tolist() == [6, 6]


RESERVED = (
    "memcpy",
    "memset",
    "exp",
    "expf",
    "llvm.exp",
    "malloc",
    "_start",
    "main_part_0",
    "kernel",
    "f.body",
)


@pytest.mark.parametrize("name", RESERVED)
def test_functions_may_have_any_name(name: str) -> None:
    text = f"""\
func @{name}(%x: tensor<f64[20000]>) -> (tensor<f64[20000]>, tensor<f64[20000]>) {{
^entry:
  %zero = ConstF64 {{value=0.0}} : tensor<f64[]>
  %zeros = BroadcastTo (%zero) {{result_shape=[20000]}} : tensor<f64[20000]>
  return %x, %zeros
}}
func @f(%x: tensor<f64[20000]>) -> (tensor<f64[20000]>) {{
^entry:
  %y = Exp (%x) : tensor<f64[20000]>
  return %y
}}
func @g(%x: tensor<f64[20000]>) -> (tensor<f64[20000]>) {{
^entry:
  %y = call @f (%x) : tensor<f64[20000]>
  %z, %zeros = call @{name} (%y) : (tensor<f64[20000]>, tensor<f64[20000]>)
  return %z
}}
"""
    executable = mind_mlir.compile(mind_mlir.parse(text))
    assert [float(array.sum()) for array in executable[name](np.ones(20000))] == [20000, 0]
    assert np.allclose(executable["g"](np.ones(20000))[0], np.e)
