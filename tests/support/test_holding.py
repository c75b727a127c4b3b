"""Handlers wait during `held`, and nobody but the one who waits notices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import mind_mlir
from mind_mlir.diagnostics import InternalError
from mind_mlir.lowering import pipeline
from mind_mlir.passes import forms
from mind_mlir.passes.verify import verify
from mind_mlir.support.interrupts import allowed, deliver, held
from mind_mlir.support.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

TEXT = """\
%0 = Input {name="x"} : tensor<f32[4]>
%1 = Exp (%0) : tensor<f32[4]>
outputs: %1
"""


def send() -> None:
    signal.raise_signal(signal.SIGUSR1)


@pytest.fixture
def install() -> Iterator[Callable[[object], None]]:
    """Return what installs a handler of SIGUSR1."""
    before = signal.getsignal(signal.SIGUSR1)

    def set_handler(handler: object) -> None:
        signal.signal(signal.SIGUSR1, handler)  # type: ignore[arg-type]  # handlers of every form

    yield set_handler
    signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def calls(install: Callable[[object], None]) -> list[str]:
    """Return the names of the functions that a handler, which returns, has interrupted."""
    names: list[str] = []

    def note(_number: int, frame: FrameType | None) -> None:
        assert frame is not None
        names.append(frame.f_code.co_name)

    install(note)
    return names


class ExpiredError(TimeoutError, ValueError):
    """What a handler of the user's raises: an exception that stages catch when MLIR raises it."""


def expire(_number: int, _frame: object) -> NoReturn:
    raise ExpiredError("too late")


def test_a_handler_runs_at_the_end_and_learns_the_place(calls: list[str]) -> None:
    def work() -> None:
        signal.raise_signal(signal.SIGUSR1)
        assert calls == []

    before = signal.getsignal(signal.SIGUSR1)
    with held():
        with held():
            work()
            work()  # signals do not queue
        assert calls == []
        assert signal.getsignal(signal.SIGUSR1) is not before
    assert calls == ["work"]
    assert signal.getsignal(signal.SIGUSR1) is before


def test_a_handler_that_returns_lets_the_work_go_on(calls: list[str]) -> None:
    with held():
        send()
        deliver()
        assert calls == ["send"]
        send()
        assert calls == ["send"]
        with allowed():
            assert calls == ["send"] * 2
            send()
            assert calls == ["send"] * 3
        send()
        assert calls == ["send"] * 3
    assert calls == ["send"] * 4


def test_outside_of_a_hold_nothing_waits(calls: list[str]) -> None:
    deliver()
    with allowed():
        send()
        assert calls == ["send"]


def test_what_a_handler_raises_passes_those_who_catch_exceptions(install: Callable[[object], None]) -> None:
    @held()
    def work() -> None:
        try:
            send()
            deliver()
        except Exception:
            pytest.fail("a handler's exception was taken for one of the work's")

    install(expire)
    with pytest.raises(ExpiredError, match="too late") as caught:
        work()
    assert caught.value.__cause__ is None
    assert signal.getsignal(signal.SIGUSR1) is expire


def test_a_failure_of_the_work_is_the_context_of_an_interrupt(install: Callable[[object], None]) -> None:
    @held()
    def work() -> None:
        send()
        raise KeyError

    install(expire)
    with pytest.raises(ExpiredError) as caught:
        work()
    assert isinstance(caught.value.__context__, KeyError)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_handlers_that_are_not_in_python_stay(install: Callable[[object], None], handler: object) -> None:
    install(handler)
    with held():
        assert signal.getsignal(signal.SIGUSR1) is handler
    assert signal.getsignal(signal.SIGUSR1) is handler


def test_a_handler_installed_meanwhile_stays_and_is_called(
    install: Callable[[object], None], calls: list[str]
) -> None:
    """As by a library that wraps the handler it finds when it is imported."""
    other: list[str] = []
    with held():
        found = signal.getsignal(signal.SIGUSR1)
        assert callable(found)

        def wrapper(number: int, frame: FrameType | None) -> None:
            other.append("wrapper")
            found(number, frame)

        install(wrapper)
    assert signal.getsignal(signal.SIGUSR1) is wrapper
    with held():
        send()
        assert other == []
    assert (other, calls) == (["wrapper"], ["send"])


def test_a_handler_may_install_another(install: Callable[[object], None]) -> None:
    """As those do that let a second Ctrl-C end the process."""

    def once(_number: int, _frame: object) -> None:
        install(signal.SIG_IGN)

    install(once)
    with held():
        send()
        deliver()
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


def test_every_signal_that_came_is_handled(install: Callable[[object], None]) -> None:
    """The first handler raises, the second one runs nevertheless."""

    @held()
    def work() -> None:
        send()
        signal.raise_signal(signal.SIGUSR2)

    seen: list[int] = []
    before = signal.signal(signal.SIGUSR2, lambda number, _: seen.append(number))
    install(expire)
    try:
        with pytest.raises(ExpiredError):
            work()
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert seen == [signal.SIGUSR2]


def test_other_threads_change_no_handler(calls: list[str]) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    inside, done = threading.Event(), threading.Event()

    def work() -> None:
        with held(), allowed(), held():
            inside.set()
            done.wait(60)
            deliver()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(60)
    assert signal.getsignal(signal.SIGUSR1) is before
    send()
    assert calls == ["send"]
    done.set()
    thread.join()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # what it says is what is tested
def test_a_child_that_another_thread_forks_gets_its_signals(calls: list[str]) -> None:
    statuses: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            send()
            os._exit(len(calls))
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with held():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert statuses == [1]
    assert calls == []


OF_RANKS = {stage.step for stage in STAGES if stage.of_ranks}


@pytest.mark.parametrize(
    "stage", ["verify", *(each for each in (*forms.STEPS, *pipeline.STEPS) if each not in OF_RANKS)]
)
def test_a_compilation_raises_what_a_handler_raised(
    stage: str, install: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = mind_mlir.parse(TEXT)
    owner = pipeline if stage in pipeline.STEPS else forms
    steps: Mapping[str, Any] = owner.STEPS
    original: Any = steps.get(stage, verify)

    def interrupted(*arguments: object, **options: object) -> object:
        send()
        return original(*arguments, **options)

    if stage in steps:
        monkeypatch.setattr(owner, "STEPS", {**steps, stage: interrupted})
    else:
        monkeypatch.setattr(forms, stage, interrupted)
    install(expire)
    with pytest.raises(ExpiredError):
        mind_mlir.compile(module)
    install(signal.SIG_IGN)
    mind_mlir.compile(module)


def test_an_observer_is_interrupted_at_once(install: Callable[[object], None]) -> None:
    seen: list[str] = []

    def observe(stage: str, text: object) -> None:
        seen.append(stage)
        if stage == "linalg":
            send()
            pytest.fail("the observer went on")

    install(expire)
    with pytest.raises(ExpiredError):
        mind_mlir.compile(mind_mlir.parse(TEXT), observer=observe)
    assert seen == ["core", "canonical", "structured", "optimized", "mind", "linalg"]


def test_a_failing_stage_is_still_a_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise ExpiredError("of our own making")

    monkeypatch.setattr(pipeline, "schedule", fail)
    with pytest.raises(InternalError, match="of our own making"):
        mind_mlir.compile(mind_mlir.parse(TEXT))


ENDING = """
import threading, time
from mind_mlir.codegen import ahead
from mind_mlir.support.interrupts import allowed, deliver, held
ahead.usable_cores = lambda: 2
Ahead = ahead.Ahead
inside, for_ever = threading.Event(), threading.Event()
def work():
    with held():
        {first}
        inside.set()
        try:
            {second}
        finally:
            print("left")
threading.Thread(target=work, daemon=True).start()
inside.wait()
"""


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        pytest.param("pass", "time.sleep(0.3)", "left\n", id="it is waited for"),
        pytest.param("pass", "while True: time.sleep(0.001) or deliver()", "left\n", id="it is told"),
        pytest.param(
            "manager = allowed(); manager.__enter__()",
            "for_ever.wait()",
            "",
            id="not where it runs code of others",
        ),
        pytest.param(
            "pass",
            "Ahead(lambda: (time.sleep(0.3), print('late')))",
            "left\nlate\n",
            id="those that it has started",
        ),
    ],
)
def test_daemon_threads_leave_before_the_process_ends(first: str, second: str, said: str) -> None:
    """Python ended them inside of MLIR, and that the process."""
    done = subprocess.run(
        [sys.executable, "-c", ENDING.format(first=first, second=second)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
