"""Compiled functions in other processes: nothing is compiled there, and MLIR is not loaded."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import worker_functions as functions

import mind_mlir
from mind_mlir import ArtefactError, UnsupportedError, jit
from mind_mlir.runtime import parcel, threads
from mind_mlir.runtime.executable import _RECEIVED
from mind_mlir.target.abi import PARALLEL_SYMBOL

X, PARAMS = functions.X, functions.PARAMS


@pytest.fixture(scope="module")
def workers() -> Iterator[ProcessPoolExecutor]:
    """Yield two workers without a cache, where code could come from, and without bindings."""
    before = dict(os.environ)
    os.environ["MIND_MLIR_CACHE"] = "off"
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(2, context, functions.no_bindings) as pool:
            yield pool
    finally:
        os.environ.clear()
        os.environ.update(before)


def check(workers: ProcessPoolExecutor, function: Callable[..., Any], *args: Any) -> None:
    """Call a function here and in a worker, and compare the results."""
    expected = function(*args)
    found, (process, compiled, loaded) = workers.submit(functions.call, function, *args).result()
    assert process != os.getpid()
    assert (compiled, loaded) == (0, [])
    for one, other in zip(_leaves(found), _leaves(expected), strict=True):
        assert one.tobytes() == other.tobytes()


def _leaves(results: Any) -> list[Any]:
    return [leaf for each in results for leaf in _leaves(each)] if isinstance(results, tuple) else [results]


def test_executables_and_their_functions(workers: ProcessPoolExecutor) -> None:
    executable = mind_mlir.compile(mind_mlir.parse(functions.CORE))
    check(workers, executable, X, 1)
    check(workers, executable["main"], X, 2)
    with pytest.raises(mind_mlir.ExecutionError, match="E6001") as caught:
        workers.submit(executable, X, 7).result()
    assert caught.value.diagnostics[0].location is not None, "its place is found in the module"
    assert workers.submit(str, executable).result() == str(executable)


def test_functions_of_python(workers: ProcessPoolExecutor) -> None:
    check(workers, functions.loss, PARAMS, X)
    check(workers, functions.loss.grad(), PARAMS, X)
    check(workers, mind_mlir.value_and_grad(functions.loss, argnums=(0, 1)), PARAMS, X)
    check(workers, functions.scaled, X, 3)
    check(workers, jit(functions.plain), X)
    check(workers, functions.normed, X)


def test_loops_that_threads_share(workers: ProcessPoolExecutor) -> None:
    module = mind_mlir.parse(functions.SHARED)
    executable = mind_mlir.compile(module)
    imports = [each.symbol for each in executable._parcel._made[3].image.imports]
    assert (PARALLEL_SYMBOL in imports) == threads.is_available()
    check(workers, executable, np.linspace(-1, 1, 1 << 20, dtype=np.float32))


def test_vector_jacobian_products(workers: ProcessPoolExecutor) -> None:
    _, pull = mind_mlir.vjp(jit(functions.plain), X)
    check(workers, pull, np.ones(4, np.float32))


def test_programs_of_other_languages(workers: ProcessPoolExecutor) -> None:
    check(workers, jit(mind_mlir.parse(functions.SURFACE)), X[0])
    check(workers, mind_mlir.compile(mind_mlir.parse(functions.PTIR)), X[0], X[1])


def test_what_did_not_come_along_is_compiled_there_or_refused(workers: ProcessPoolExecutor) -> None:
    functions.scaled(X, 2)
    with pytest.raises(UnsupportedError, match=r"E7003.* must be compiled here") as caught:
        workers.submit(functions.scaled, X, 5).result()
    assert "torch-mlir" in str(caught.value.diagnostics[0].help)
    expected = functions.scaled(X, 2)
    (found, _) = workers.submit(functions.call, functions.scaled, X, 2).result()
    assert found.tobytes() == expected.tobytes()


def sent(thing: Any, protocol: int = 5, change: Callable[[list[Any]], None] | None = None) -> Any:
    """Return a thing as another process gets it, with its parts changed."""
    cls, parts = thing.__reduce_ex__(protocol)
    given = list(parts)
    if change is not None:
        change(given)
    return pickle.loads(pickle.dumps((cls, given)))  # noqa: S301 -- our own


@pytest.mark.parametrize("part", [1, 2, 3, 4])
def test_damaged_pickles_are_refused(part: int) -> None:
    executable = mind_mlir.compile(mind_mlir.parse(functions.CORE.replace("[4,", f"[{part + 4},")))

    def change(parts: list[Any]) -> None:
        data = parts[part][0] if part == 4 else parts[part]
        data = data[:-70] + bytes([data[-70] ^ 1]) + data[-69:]
        parts[part] = (data,) if part == 4 else data

    make, parts = sent(executable, change=change)
    with pytest.raises(ArtefactError, match=r"E6501.*changed after it was written"):
        make(*parts)(np.ones((part + 4, 3), np.float32), 1)
    make, parts = sent(executable)
    assert make(*parts)(np.ones((part + 4, 3), np.float32), 1)[0].tolist() == [1, 1, 1]


def test_parts_of_something_else_are_refused() -> None:
    make, parts = sent(mind_mlir.compile(mind_mlir.parse(functions.CORE)))
    for others in (parts[:-1], [*parts, 1], [parts[0], 5, *parts[2:]], [[], *parts[1:]], ["x"]):
        with pytest.raises(ArtefactError, match=r"E6501.*another form"):
            make(*others)


def test_results_are_watched_on_workers(workers: ProcessPoolExecutor) -> None:
    checked = jit(functions.plain, check_nan=True)
    check(workers, checked, X)
    with pytest.raises(mind_mlir.NotFiniteError, match="E6006"):
        workers.submit(checked, np.full_like(X, 1e9)).result()


def test_code_for_another_processor_or_release(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = mind_mlir.compile(mind_mlir.parse(functions.CORE.replace("f32", "f64")))
    x = np.ones((4, 3))

    def called() -> Any:
        _RECEIVED.forget(executable._parcel.parts()[0])
        make, parts = sent(executable)
        return make(*parts)(x, 1)

    with monkeypatch.context() as patch:
        patch.setattr(parcel, "missing_features", lambda _: ("avx512f", "fma"))
        before = mind_mlir.compilation_count()
        assert called()[0].tolist() == [1, 1, 1]
        assert mind_mlir.compilation_count() > before, "it is compiled anew where that can be done"
        patch.setitem(sys.modules, "torch_mlir", None)
        with pytest.raises(ArtefactError, match=r"E6502.*a processor with avx512f, fma") as caught:
            called()
        assert "MIND_MLIR_TARGET=avx2" in str(caught.value.diagnostics[0].help)
        patch.undo()
    monkeypatch.setattr(parcel, "VERSION", "9.9")
    before = mind_mlir.compilation_count()
    assert called()[0].tolist() == [1, 1, 1]
    assert mind_mlir.compilation_count() > before
    monkeypatch.setitem(sys.modules, "torch_mlir", None)
    with pytest.raises(ArtefactError, match=r"E6502.*mind_mlir 0\.1\.0"):
        called()


def test_large_constants_are_sent_once_and_not_copied() -> None:
    w = np.arange(1 << 16, dtype=np.float32).reshape(256, 256)
    added = jit(lambda x: x + w)
    x = np.ones((256, 256), np.float32)
    (program,) = (added(x), added.programs())[1]
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(program.executable, 5, buffer_callback=buffers.append)
    assert [each.raw().nbytes for each in buffers] == [w.nbytes]
    assert len(data) < 64 << 10
    assert len(pickle.dumps(program.executable)) < w.nbytes + (64 << 10)
    again = pickle.loads(data, buffers=buffers)  # noqa: S301 -- our own
    np.testing.assert_array_equal(again(x)[0], added(x))
    assert again.module == program.executable.module
    assert pickle.loads(data, buffers=buffers) is again  # noqa: S301 -- as above
    assert pickle.dumps(again, 5, buffer_callback=lambda _: None) == data


def test_what_other_processes_cannot_know_stays_behind() -> None:
    class Local(NamedTuple):
        x: Any

    assert functions.scaled.__module__ == functions.__name__
    thing = object()
    functions.either(Local(X), None)
    functions.either(X, thing)
    functions.either(X, (1, "two"))
    _, _, programs = functions.either.__reduce__()
    assert [len(functions.either.programs()), len(programs)] == [3, 1]
    assert pickle.loads(pickle.dumps(functions.either)) is functions.either  # noqa: S301 -- our own
    module = mind_mlir.parse(functions.CORE)
    for executable in (mind_mlir.compile(module, debug=True), mind_mlir.compile(module, interpret=True)):
        assert executable._parcel.parts()[2] == b""
        assert sent_whole(executable)(X, 1)[0].tobytes() == X[1].tobytes()


def sent_whole(executable: Any) -> Any:
    return pickle.loads(pickle.dumps(executable))  # noqa: S301 -- our own


def test_what_was_sent_runs_in_the_place_of_what_there_was() -> None:
    def of(value: Any) -> list[Any]:
        """Return the state of a pickle of a function of the same signature, which multiplies by a value."""
        function = jit(lambda x, times: x * value, static_argnames="times")
        function(X, 6)
        return sent_whole(function.__reduce__()[2])  # type: ignore[no-any-return]

    assert functions.scaled(X, 6).tolist() == (X * np.float32(6)).tolist()
    for value in (2, 2, 3, 6):
        functions.scaled.__setstate__(of(value))
        for _ in range(2):
            assert functions.scaled(X, 6).tolist() == (X * np.float32(value)).tolist()
    before = functions.normed(X)
    *others, program, returned = functions.normed.__reduce__()[2][0]
    other = jit(lambda x: x * 0 + 1, dynamic={"x": {0: "batch"}}, buckets={"batch": [16]})
    other(X)
    functions.normed.__setstate__([(*others, *other.__reduce__()[2][0][-2:])])
    assert functions.normed(X).tolist() == np.ones_like(X).tolist()
    functions.normed.__setstate__([(*others, program, returned)])
    assert functions.normed(X).tobytes() == before.tobytes()


def test_what_prints_is_compiled_where_it_runs(capfd: pytest.CaptureFixture[str]) -> None:
    def shown(x: Any) -> Any:
        mind_mlir.debug_print("{}", x)
        return x * 2

    executable = jit(shown).lower(np.float32(3)).compile()
    assert executable._parcel.parts()[2] == b""
    assert sent_whole(executable)(np.float32(3))[0] == 6
    assert "3" in capfd.readouterr().out


def test_pickles_are_the_same_in_each_process() -> None:
    text = """if True:
        import hashlib, pickle
        import worker_functions as functions
        from mind_mlir import jit
        f = jit(functions.plain, disabled_passes=["cse", "dce", "taps", "hoist"])
        for g in (f, functions.loss):
            g(functions.X) if g is f else g.grad()(functions.PARAMS, functions.X)
        print(hashlib.sha256(pickle.dumps([f, functions.loss.grad()])).hexdigest())
    """
    places = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(Path(__file__).parent)])
    found = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": places, "MIND_MLIR_CACHE": cache},
            cwd=Path(__file__).parents[2],
            check=True,
            capture_output=True,
        ).stdout
        for seed, cache in (("1", "off"), ("2", "on"))
    }
    assert len(found) == 1
