"""A framework's process as its parent sees it: asked one thing at a time, restarted when it died."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers.frameworks import environment

if TYPE_CHECKING:
    from types import TracebackType

#: Seconds that an answer may take: the longest are compilations.
_PATIENCE = 150.0


class Process:
    """One framework on a number of threads.

    Attributes:
        name: The framework.
        versions: As `Peer.versions`, once it is there.
        missing: Why it cannot be measured at all, if so.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.versions: dict[str, str] = {}
        self.missing = ""
        self._threads = threads
        self._scratch = tempfile.TemporaryDirectory(prefix="mind-mlir-peers-")
        self._start()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._scratch.cleanup()

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer to a request (see `Child`), or ``{"failed": why}``."""
        if self.missing:
            return {"not_written": self.missing}
        try:
            self._connection.send({"do": do, **arguments})
            return self._receive()
        except (EOFError, OSError, TimeoutError) as error:
            why = str(error) if isinstance(error, TimeoutError) else self._last_words()
        self._stop()
        self._start()
        return {"failed": why}

    def _start(self) -> None:
        scratch = Path(self._scratch.name)
        self._connection, theirs = multiprocessing.Pipe()
        self._log = (scratch / "log").open("w+b")
        command = [sys.executable, "-m", "benchmarks.peers.child", self.name, str(self._threads)]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [*command, str(theirs.fileno())],
            env=environment(self.name, self._threads, scratch),
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        theirs.close()
        try:
            hello = self._receive()
        except (EOFError, OSError, TimeoutError):
            hello = {"missing": self._last_words()}
        self.versions = hello.get("versions", {})
        self.missing = hello.get("missing", "")

    def _receive(self) -> dict[str, Any]:
        if not self._connection.poll(_PATIENCE):
            raise TimeoutError(f"no answer within {_PATIENCE:.0f} s")
        answer: dict[str, Any] = self._connection.recv()
        return answer

    def _stop(self) -> None:
        self._connection.close()  # an idle child ends by itself; one that hangs does not
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _last_words(self) -> str:
        """Return why the process died, as far as it said."""
        status = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"ended with status {status}" + (f": {lines[-1]}" if lines else "")
