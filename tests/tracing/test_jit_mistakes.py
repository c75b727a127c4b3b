"""What goes wrong in functions that `mind_mlir.jit` is given, and how it is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import MindError, TracingError, jit

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@jit
def doubled(x: Any) -> Any:
    return x + x


def fails(function: Any, *args: Any) -> MindError:
    with pytest.raises(MindError) as caught:
        jit(function)(*args)
    return caught.value


@pytest.mark.parametrize(
    ("function", "code", "quoted"),
    [
        (lambda x: x if x[0, 0] > 0 else -x, "E2301", "x[0, 0] > 0"),
        (lambda x: (x > 0) and x, "E2301", "(x > 0) and x"),
        (lambda x: x * float(x[0, 0]), "E2302", "float(x[0, 0])"),
        (lambda x: list(range(x.sum())), "E2302", "range(x.sum())"),
        (lambda x: np.asarray(x)[0], "E2302", "np.asarray(x)"),
        (lambda x: x.sum().item(), "E2302", "x.sum().item()"),
        (lambda x: len(x.sum()), "E2302", "len(x.sum())"),
        (lambda x: x + np.ones(4, np.float32), "E3001", "x + np.ones(4, np.float32)"),
        (
            lambda x: x.astype("fp8_e4m3") + x.astype("fp8_e5m2"),
            "E2004",
            'x.astype("fp8_e4m3") + x.astype("fp8_e5m2")',
        ),
        (lambda x: x.astype("i32").at[0].set(1.5), "E2004", 'x.astype("i32").at[0].set(1.5)'),
        (lambda x: x + 1e300, "E4005", "x + 1e300"),
        (lambda x: -(x > 0), "E2005", "-(x > 0)"),
        (lambda x: x + "é", "E2305", 'x + "é"'),
        (lambda x: x.sum(axis=2), "E3004", "x.sum(axis=2)"),
        (lambda x: "é".upper() * 0 or x.reshape(7), "E3007", "x.reshape(7)"),
        (lambda x: x @ x, "E3003", "x @ x"),
    ],
)
def test_mistakes_quote_the_expression(function: Any, code: str, quoted: str) -> None:
    (found, *_) = fails(function, X).diagnostics
    assert (found.code, found.location and found.location.text) == (code, quoted)
    assert found.help


@pytest.mark.parametrize("result", [None, "text", print, object(), (each for each in "ab"), [None, {}]])
def test_results_that_are_no_arrays(result: object) -> None:
    error = fails(lambda x: result, X)
    assert error.code == "E2304"
    assert error.diagnostics[0].location is not None
    assert "lambda x: result" in error.diagnostics[0].location.text


@pytest.mark.parametrize("argument", ["text", print, object(), 1 << 70, np.array(["a"])])
def test_arguments_that_are_no_arrays(argument: object) -> None:
    with pytest.raises(TracingError, match=r"argument 'p\.k' is no array") as caught:
        jit(lambda p: p["k"])({"k": argument})
    assert caught.value.code == "E2305"


def test_arrays_that_leak() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return x

    jit(keep)(X)
    uses: list[Any] = [
        lambda: kept[0] + 1,
        lambda: doubled(kept[0]),
        lambda: jit(lambda y: y + kept[0])(X),
    ]
    for use in uses:
        with pytest.raises(TracingError) as caught:
            use()
        assert caught.value.code == "E2303"

    def in_branch(x: Any) -> Any:
        mind_mlir.cond(x.sum() > 0, lambda: keep(x * 2), lambda: x)
        return kept[-1] + 1

    assert fails(in_branch, X).code == "E2303"


def test_arrays_cannot_be_written_to() -> None:
    def write(x: Any) -> Any:
        x[0] = 1
        return x

    assert fails(write, X).code == "E2306"
