"""Models in processes of their own, some at a time: a crash or a hang is a result.

Processes are forks of one that has loaded the frameworks: that takes longer than most small models.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.models.child import Request, run
from benchmarks.models.outcome import ABSENT, FAILED, Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

#: What the process that is forked has loaded, by family of models.
_LOADED = {
    "flax": ("flax.linen", "jax", "optax", "mind_mlir.languages.stablehlo", "benchmarks.models.ours"),
    "torch": (
        "torch",
        "torch._dynamo",
        "torch.export",
        "functorch.compile",
        "mind_mlir.models.torch.backend",
        "mind_mlir.models.torch.rules",
        "benchmarks.models.ours",
        "benchmarks.models.torch_check",
    ),
    "torchvision": ("torchvision",),
    "timm": ("timm",),
    "transformers": ("transformers",),
}
_LIBRARIES = ("OPENBLAS", "MKL", "OMP", "KMP", "XLA", "TORCHINDUCTOR", "TORCH")
#: Seconds in which a process that has said all there is ends.
_ENDING = 20.0


def outcomes(
    requests: Sequence[Request], *, jobs: int, limit: float, say: Callable[[str], None]
) -> Iterator[Outcome]:
    """Run models, ``jobs`` at a time; return what became of each, as they end.

    Args:
        requests: What is wanted; all on as many threads.
        jobs: How many at a time.
        limit: Seconds for one model.
        say: Is told of each that is done.
    """
    _set_environment(requests[0].threads)
    context = multiprocessing.get_context("forkserver")
    families = {each.entry.family for each in requests}
    torch = families - {"flax"}
    context.set_forkserver_preload(
        [
            name
            for family, names in _LOADED.items()
            if family in families or (family == "torch" and torch)
            for name in names
        ]
    )

    def outcome_of(request: Request) -> Outcome:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="mind-mlir-models-") as scratch:
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=run, args=(request, theirs, scratch), daemon=True)
            process.start()
            theirs.close()
            outcome = Outcome(request.entry.name, request.entry.family)
            ended = _listen(process, ours, outcome, limit)
            if ended:
                log = Path(scratch) / "log"
                _blame(outcome, request, ended + (_last_words(log.read_bytes()) if log.exists() else ""))
        told = ", ".join(f"{name} {stage.state}" for name, stage in outcome.stages.items())
        say(f"{outcome.name}: {told} ({time.perf_counter() - start:.0f} s)")
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        for each in as_completed([pool.submit(outcome_of, request) for request in requests]):
            yield each.result()


def _listen(process: ForkServerProcess, connection: Connection, outcome: Outcome, limit: float) -> str:
    """Take what a process says until it ends; return why it did not end as it should, or nothing."""
    end = time.perf_counter() + limit
    try:
        while connection.poll(max(0.0, end - time.perf_counter())):
            outcome.take(connection.recv())
        ended = f"not done within {limit:.0f} s"
    except EOFError:
        process.join(_ENDING)
        status = process.exitcode
        if status is not None and status < 0:
            return f"ended by {signal.Signals(-status).name}"
        ended = "" if status == 0 else f"ended with status {status}"
    if process.is_alive():
        assert process.pid is not None
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return ended


def _last_words(log: bytes) -> str:
    lines = log.decode(errors="replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def _blame(outcome: Outcome, request: Request, reason: str) -> None:
    """Say of the first stage that was not reached that the process ended there; times are no stage."""
    if outcome.parameters is None:
        outcome.stages["forward"] = Stage(ABSENT, reason=reason)
        return
    missing = next((name for name in request.stages() if name not in outcome.stages), None)
    if missing is not None:
        outcome.stages[missing] = Stage(FAILED, reason=reason)


def _set_environment(threads: int) -> None:
    """Set what models' processes take from this one: nothing is fetched, and nothing is kept."""
    for name in [name for name in os.environ if name.split("_")[0] in _LIBRARIES]:
        del os.environ[name]
    os.environ |= {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    os.environ |= {"PYTHONHASHSEED": "0", "JAX_PLATFORMS": "cpu", "NPROC": str(threads)}
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "MIND_MLIR_CACHE": "off"}
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
