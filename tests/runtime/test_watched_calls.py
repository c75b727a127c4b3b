"""`check_nan` and `interpret` of compiled modules and functions: calls that stay in Python, and look."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import NotFiniteError

if TYPE_CHECKING:
    from pathlib import Path

MODULE = mind_mlir.parse(
    '%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Log (%0) : tensor<f32[2]>\noutputs: %1\n', "log.ir"
)
GATHER = mind_mlir.parse("""\
%0 = Input {name="x"} : tensor<f32[3]>
%1 = Input {name="i"} : tensor<i64[2]>
%2 = Gather (%0, %1) : tensor<f32[2]>
outputs: %2
""")
GOOD, BAD = np.array([1, 2], np.float32), np.array([1, -1], np.float32)


def test_an_executable_looks_at_every_call() -> None:
    """After some hundreds of calls others are native; these are not."""
    f = mind_mlir.compile(MODULE, check_nan=True)
    plain = mind_mlir.compile(MODULE)
    for _ in range(300):
        assert f(GOOD)[0].tobytes() == plain(GOOD)[0].tobytes()
    with pytest.raises(NotFiniteError, match="Log %1 makes a NaN at \\[1\\]"):
        f(BAD)
    with pytest.raises(NotFiniteError):
        f["main"](x=BAD)
    assert np.isnan(plain(BAD)[0][1])


def test_a_bound_function_looks_too() -> None:
    out, x = np.empty(2, np.float32), GOOD.copy()
    bound = mind_mlir.compile(MODULE, check_nan=True).bind(x, out=out)
    for _ in range(300):
        bound()
    x[1] = -1
    with pytest.raises(NotFiniteError):
        bound()


def test_a_staged_function_looks_at_every_call() -> None:
    @mind_mlir.jit(check_nan=True)
    def f(x: Any, y: Any) -> Any:
        return mind_mlir.numpy.log(x) / y["a"]

    for _ in range(300):
        f(GOOD, {"a": GOOD})
    with pytest.raises(NotFiniteError) as caught:
        f(BAD, {"a": GOOD})
    location = caught.value.diagnostics[0].location
    assert location is not None
    assert location.source.name == __file__
    assert "log(x)" in location.source.text.splitlines()[location.line - 1]
    with pytest.raises(NotFiniteError, match="Div %3 makes an infinity"):
        f(np.array([3, 3], np.float32), {"a": np.array([0, 1], np.float32)})


def test_gradients_and_open_functions_look_too() -> None:
    def loss(x: Any) -> Any:
        return mind_mlir.numpy.sqrt(x).sum()

    checked = mind_mlir.jit(loss, check_nan=True)
    with pytest.raises(NotFiniteError, match="in the derivative of"):
        checked.grad()(np.array([1, 0], np.float32))
    opened = mind_mlir.jit(loss, dynamic={"x": {0: "n"}}, check_nan=True)
    assert opened(np.array([1, 4, 9], np.float32)) == 6
    with pytest.raises(NotFiniteError):
        opened(np.array([1, -4, 9], np.float32))


def test_results_that_overflow_only_where_they_are_compiled() -> None:
    from mind_mlir.interpreter.not_finite import check_results  # noqa: PLC0415 -- beside what it is for

    with pytest.raises(NotFiniteError, match="compiled, and none where they run one by one") as caught:
        check_results(MODULE, None, {"x": GOOD}, [np.array([np.inf, 1], np.float32)])
    assert caught.value.diagnostics[0].context["index"] == (0,)


def test_a_module_runs_without_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mind_mlir.runtime.executable.code_of", None)
    f = mind_mlir.compile(GATHER, interpret=True)
    x, i = np.array([1, 2, 3], np.float32), np.array([2, 0])
    out = np.empty(2, np.float32)
    for _ in range(200):
        assert f(x, i)[0].tolist() == [3, 1]
    assert f(x=x, i=i, out=out)[0] is out
    assert out.tolist() == [3, 1]
    with pytest.raises(mind_mlir.ExecutionError, match="index 7 is out of bounds"):
        f(x, np.array([0, 7]))
    with pytest.raises(mind_mlir.ArgumentError):
        f(x)
    assert pickle.loads(pickle.dumps(f))(x, i)[0].tolist() == [3, 1]  # noqa: S301 -- of our own making


def test_the_environment_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_INTERPRET", "1")
    with monkeypatch.context() as patch:
        patch.setattr("mind_mlir.runtime.executable.code_of", None)
        assert mind_mlir.compile(MODULE)(GOOD)[0][0] == 0
    assert mind_mlir.compile(MODULE, interpret=False)(GOOD)[0][0] == 0
    monkeypatch.setenv("MIND_MLIR_INTERPRET", "maybe")
    with pytest.raises(ValueError, match="MIND_MLIR_INTERPRET must be 0 or 1, not 'maybe'"):
        mind_mlir.compile(MODULE)


def test_programs_of_other_languages(tmp_path: Path) -> None:
    path = tmp_path / "p.mind"
    path.write_text("fn main(x: Tensor<f32, [n]>) -> f32 {\n    let y = log(x);\n    sum(y)\n}\n")
    f = mind_mlir.compile(mind_mlir.load(path), check_nan=True)
    assert f(x=GOOD) > 0
    with pytest.raises(NotFiniteError) as caught:
        f(x=BAD)
    (found,) = caught.value.diagnostics
    assert found.message == "log makes a NaN at [1], of finite numbers"
    assert str(found.location) == f"{path}:2:13"
    assert found.notes[0].startswith("argument 1 is -1.0 there; it is Tensor<f32, [2]>")


def test_mistakes() -> None:
    with pytest.raises(TypeError, match="check_nan must be"):
        mind_mlir.compile(MODULE, check_nan=1)  # type: ignore[call-overload]  # that is what is tested
    with pytest.raises(TypeError, match="interpret must be"):
        mind_mlir.jit(lambda x: x, interpret="yes")  # type: ignore[call-overload]  # as above
