"""`debug_print`: in the program's order, as often as it says, once in gradients, and nothing else changes."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.runtime.call import CALLS_BEFORE

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.array([1, 2], np.float32)


def lines(capsys: pytest.CaptureFixture[str], call: Callable[[], object]) -> list[str]:
    """Return what a call prints."""
    capsys.readouterr()
    call()
    return capsys.readouterr().out.splitlines()


def test_formats(capsys: pytest.CaptureFixture[str]) -> None:
    @mind_mlir.jit
    def f(x: Any, n: Any) -> Any:
        mind_mlir.debug_print("{{x}} = {}, {y:.2f}, {name!r:>6}, {n:03d}", x, y=x / 3, name="ab", n=n)
        mind_mlir.debug_print("{1} {0} {1:+}", x > 1, np.array([7, 8]))
        mind_mlir.debug_print("nothing {:.1f} {}", 0.25, None)
        return x

    assert lines(capsys, lambda: f(X, 5)) == [
        "{x} = [1. 2.], [0.33 0.67],   'ab', 005",
        "[7 8] [False  True] [+7 +8]",
        "nothing 0.2 None",
    ]


def test_dtypes_and_shapes(capsys: pytest.CaptureFixture[str]) -> None:
    f = mind_mlir.jit(lambda *xs: [mind_mlir.debug_print("{}", x) for x in xs] and xs[0])
    made = mind_mlir.jit(lambda *xs: [mind_mlir.debug_print("{}", x.T) for x in xs] and xs[0])
    given: list[Any] = [
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.zeros((0, 2), np.float64),
        np.array(2 + 1j, np.complex64),
        np.array([True, False]),
        np.array([2**63], np.uint64),
        np.array([1.5], np.float32).astype(mind_mlir.DType.BF16.numpy),
    ]
    assert lines(capsys, lambda: f(*given)) == "\n".join(map(str, given)).splitlines()
    turned = "\n".join(str(each.T) for each in given).splitlines()
    assert lines(capsys, lambda: made(*given)) == turned


def program(x: Any, n: Any) -> Any:
    def inner(c: Any) -> Any:
        mind_mlir.debug_print("inner {:.1f}", c)
        return mnp.sin(c)

    @mind_mlir.jit
    def called(c: Any) -> Any:
        for _ in range(20):  # too large to take the place of its calls by itself
            c = c + mnp.cos(c)
        mind_mlir.debug_print("called {:.1f}", c)
        return c

    def body(i: Any, c: Any) -> Any:
        mind_mlir.debug_print("step {}", i)
        return c * inner(c)

    y = mind_mlir.fori_loop(0, n, body, x)
    y = mind_mlir.cond(y.sum() > 100, lambda: y, lambda: (mind_mlir.debug_print("small"), y + 1)[1])
    y = called(called(y))
    _, ys = mind_mlir.scan(lambda s, r: (mind_mlir.debug_print("row {:.1f}", r), (s + r, s * r))[1], 0.0, y)
    mind_mlir.debug_print("same")
    mind_mlir.debug_print("same")
    return (y * y).sum() + ys.sum()


@pytest.mark.parametrize("known", [True, False])
def test_order_in_programs_and_once_in_gradients(capsys: pytest.CaptureFixture[str], known: bool) -> None:
    """The gradient of a loop of unknown length runs parts of it again, which prints nothing."""
    run = mind_mlir.jit(program, static_argnames="n") if known else mind_mlir.jit(program)
    forward = lines(capsys, lambda: run(X, 3))
    assert [line.split()[0] for line in forward] == [
        *["step", "inner"] * 3,
        "small",
        *["called"] * 2,
        *["row"] * 2,
        *["same"] * 2,
    ]
    assert forward[:4] == ["step 0", "inner [1.0 2.0]", "step 1", "inner [0.8 1.8]"]
    assert lines(capsys, lambda: run.grad()(X, 3)) == forward
    assert lines(capsys, lambda: run.value_and_grad()(X, 3)) == forward
    module = run.lower(X, 3).module
    assert lines(capsys, lambda: mind_mlir.compile(module)(X, *([] if known else [3]))) == forward
    named = {"x": X} if known else {"x": X, "n": np.array(3)}
    assert lines(capsys, lambda: mind_mlir.interpret(module, named)) == forward
    assert lines(capsys, lambda: mind_mlir.jit(program, interpret=True)(X, 3)) == forward
    assert lines(capsys, lambda: mind_mlir.jit(program, interpret=True).grad()(X, 3)) == forward


def test_loops_print_what_does_not_change_and_their_conditions(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        def more(c: Any) -> Any:
            mind_mlir.debug_print("more {:.1f}", c)
            return c < 10.0

        def body(c: Any) -> Any:
            mind_mlir.debug_print("body")
            mind_mlir.debug_print("{}", x)
            return c * c + mnp.sin(x)

        return mind_mlir.while_loop(more, body, x)

    wanted = ["more 1.5", "body", "1.5", "more 3.2", "body", "1.5", "more 11.5"]
    x = np.float64(1.5)
    assert lines(capsys, lambda: mind_mlir.jit(f)(x)) == wanted
    assert lines(capsys, lambda: mind_mlir.grad(f)(x)) == wanted
    assert lines(capsys, lambda: mind_mlir.vjp(f, x)[1](x)) == wanted
    assert lines(capsys, lambda: mind_mlir.jit(f, interpret=True).grad()(x)) == wanted
    assert lines(capsys, lambda: mind_mlir.vjp(mind_mlir.jit(f, interpret=True), x)[1](x)) == wanted


def test_what_nothing_needs_prints(capsys: pytest.CaptureFixture[str]) -> None:
    @mind_mlir.jit
    def f(x: Any) -> Any:
        def shown(i: Any, c: Any) -> Any:
            mind_mlir.debug_print("{} {}", i, c)
            return c * 2

        mind_mlir.fori_loop(0, 2, shown, x)
        mind_mlir.cond(x.sum() > 0, lambda: (mind_mlir.debug_print("yes"), x)[1], lambda: x)
        mind_mlir.cond(x.sum() > 0, lambda: mind_mlir.debug_print("alone"), lambda: None)
        return x + 1

    wanted = ["0 [1. 2.]", "1 [2. 4.]", "yes", "alone"]
    assert lines(capsys, lambda: f(X)) == wanted
    for options in ({"disabled_passes": ["all"]}, {"opt_level": 0}, {"threads": 1}):
        again = mind_mlir.compile(f.lower(X).module, **options)
        assert lines(capsys, lambda again=again: again(X)) == wanted  # type: ignore[misc]  # bound now


def test_calls_that_are_native_print(capsys: pytest.CaptureFixture[str]) -> None:
    f = mind_mlir.jit(lambda x: (mind_mlir.debug_print("{}", x[0]), x * 2)[1])
    assert lines(capsys, lambda: [f(X) for _ in range(300)]) == ["1.0"] * 300


@pytest.mark.parametrize("shape", [(7,), (64, 48), (300, 200)])
def test_no_bit_of_a_result_changes(capsys: pytest.CaptureFixture[str], shape: tuple[int, ...]) -> None:
    def f(x: Any, show: Callable[[Any], object]) -> Any:
        y = mnp.exp(x) * x + 1
        show(y)
        z = mnp.tanh(y).sum(axis=-1)
        return z, mnp.sqrt(abs(y)).sum(), (z * 3).mean()

    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    one = mind_mlir.jit(lambda x: f(x, lambda _: None))(x)
    two = mind_mlir.jit(lambda x: f(x, lambda y: mind_mlir.debug_print("{}", y.ravel()[0])))(x)
    assert capsys.readouterr().out
    assert [each.tobytes() for each in one] == [each.tobytes() for each in two]


def test_a_check_of_what_is_printed_is_one() -> None:
    f = mind_mlir.jit(lambda x, i: (mind_mlir.debug_print("{}", x[i] * 2), x[i])[1])
    with pytest.raises(mind_mlir.ExecutionError) as caught:
        f(X, np.array([0, 7]))
    assert [each.code for each in caught.value.diagnostics] == ["E6001"]


def test_outside_of_functions_it_prints_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, lambda: mind_mlir.debug_print("{:.1f} {}", X, "a")) == ["[1.0 2.0] a"]


def test_a_search_for_nan_prints_nothing_again(capsys: pytest.CaptureFixture[str]) -> None:
    f = mind_mlir.jit(lambda x: (mind_mlir.debug_print("{}", x), mnp.log(x))[1], check_nan=True)

    def call() -> None:
        with pytest.raises(mind_mlir.NotFiniteError):
            f(np.array([1, -1], np.float32))

    assert lines(capsys, call) == ["[ 1. -1.]"]


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("{", (), "Single '{'|expected '}'"),
        ("{} {}", (X,), "nothing is for {1}"),
        ("{x}", (X,), "nothing is for {x}"),
        ("x", (X,), "has no field for argument 0"),
        ("{:{0}}", (X,), "fields within fields"),
        ("{:d}", (X,), "'d' shows no f32"),
    ],
)
def test_mistakes(text: str, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mind_mlir.jit(lambda x: (mind_mlir.debug_print(text, *[x for _ in args]), x)[1])(X)
    with pytest.raises(TypeError, match="format must be"):
        mind_mlir.debug_print(7)  # type: ignore[arg-type]  # that is what is tested


def test_what_printing_raises_is_raised_after_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError("no room")

    @mind_mlir.jit
    def f(x: Any) -> Any:
        mind_mlir.debug_print("{}", x)
        return x * 2

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Full())
        for _ in range(2 * CALLS_BEFORE):  # in calls that would be native without prints, too
            with pytest.raises(OSError, match="no room"):
                f(X)
    assert f(X).tolist() == [2, 4]


def test_characters_that_a_terminal_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    mind_mlir.jit(lambda x: (mind_mlir.debug_print("é {}", x), x)[1])(X)
    assert buffer.getvalue() == b"\\xe9 [1. 2.]\n"


def test_numbers_that_a_format_cannot_show(capsys: pytest.CaptureFixture[str]) -> None:
    f = mind_mlir.jit(lambda n: (mind_mlir.debug_print("{:c}", n), n)[1])
    assert lines(capsys, lambda: f(np.array([65, 66]))) == ["[A B]"]
    assert lines(capsys, lambda: f(np.array([65, -1]))) == ["[65 -1]"]
    with pytest.raises(ValueError, match="'99999999999' shows no f32"):
        mind_mlir.jit(lambda x: (mind_mlir.debug_print("{:99999999999}", x), x)[1])(X)


def test_tracebacks_of_formats_end_with_the_caller() -> None:
    with pytest.raises(ValueError, match="no field for argument 0") as caught:
        mind_mlir.debug_print("x", X)
    assert caught.traceback[-1].path == Path(__file__)


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("check_nan", [False, True])
def test_an_interrupt_while_a_loop_prints(*, interpret: bool, check_nan: bool) -> None:
    def step(i: Any, c: Any) -> Any:
        mind_mlir.debug_print("{}", i)
        return c * 0.5 + 1

    f = mind_mlir.jit(
        lambda x: mind_mlir.fori_loop(0, 10**9, step, x), interpret=interpret, check_nan=check_nan
    )
    handler = signal.getsignal(signal.SIGINT)
    over = threading.Event()

    def interrupt() -> None:
        """Ask once; and again much later, as Python drops what is raised in a finalizer."""
        pause = 0.3
        while not over.wait(pause):
            os.kill(os.getpid(), signal.SIGINT)
            pause = 20

    asking = threading.Thread(target=interrupt)
    asking.start()
    with pytest.raises(KeyboardInterrupt):
        f(1.0)
    over.set()
    asking.join()
    assert signal.getsignal(signal.SIGINT) is handler
