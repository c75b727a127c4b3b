"""Processes that do what may take long, crash or hang, and what becomes of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any

import mind_mlir
from mind_mlir.tools.lsp.wire import HEAD, packed

_MODULE = "mind_mlir.tools.lsp.worker"


class WorkerError(Exception):
    """A job has no result.

    Attributes:
        reason: Why, for the person who waits for it.
        details: Where, for us; nothing where it is no fault of ours.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = details


class Worker:
    """A process that does one job after another; it is started when there is one."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> asyncio.subprocess.Process:
        """Start the process, unless it is there."""
        if self._process is None or self._process.returncode is not None:
            root = str(Path(mind_mlir.__file__).parents[1])
            paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", _MODULE),  # -P: what lies in the user's folder is not imported
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )
        return self._process

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            _kill(self._process)
        self._process = None

    async def close(self) -> None:
        """End the process, and wait until it has ended."""
        process = self._process
        self.stop()
        if process is not None:
            await process.wait()

    async def ask(self, job: str, *arguments: object, seconds: int) -> Any:
        """Return the result of a job.

        Raises:
            WorkerError: There is none: it took longer, or the process crashed or was stopped.
        """
        try:
            process = await self.start()
        except OSError as error:
            raise WorkerError(f"no process can be started: {error.strerror or error}") from None
        try:
            kind, result = await asyncio.wait_for(
                _answer(process, packed((job, seconds, arguments))), seconds
            )
        except TimeoutError:
            self._stop(process)
            await process.wait()
            raise WorkerError(f"it took longer than {seconds} s, and was ended") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await process.wait()
            stopped = self._process is not process
            self._stop(process)
            raise WorkerError("it was ended" if stopped else _ended(code)) from None
        except asyncio.CancelledError:
            self._stop(process)
            raise
        if kind == "failed":
            last = result.rstrip().rpartition("\n")[2]
            raise WorkerError(f"internal error: {last}", result)
        return result

    def _stop(self, process: asyncio.subprocess.Process) -> None:
        if self._process is process:
            self._process = None
        _kill(process)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            process.kill()


async def _answer(process: asyncio.subprocess.Process, request: bytes) -> tuple[str, Any]:
    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "so is this"
    process.stdin.write(request)
    await process.stdin.drain()
    (length,) = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
    answer: tuple[str, Any] = pickle.loads(await process.stdout.readexactly(length))  # noqa: S301 -- our process wrote it
    return answer


def _ended(code: int) -> str:
    if code == -signal.SIGALRM:
        return "it took too long, and was ended"
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"the process ended with {name}"
