"""Checks texts while they are typed: after a pause, the last version only, in another process."""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from mind_mlir.tools.lsp.workers import Worker, WorkerError

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.checks import Checked
    from mind_mlir.tools.lsp.documents import Document

#: Seconds after which a keystroke is one by itself, whose text is checked at once; and seconds that others
#: wait for the next one.
_ALONE, _PAUSE = 0.1, 0.03
#: Seconds that a check may go on for a version that is no longer the last.
_SUPERSEDED = 1.0
#: Seconds that a check may take.
_LONGEST = 30


class Analyst:
    """Checks the versions of texts that it is told of.

    A version is dropped when a newer one comes: while it waits, and while it is checked.
    """

    def __init__(
        self,
        is_current: Callable[[Document], bool],
        deliver: Callable[[Document, Checked], None],
        fail: Callable[[Document, WorkerError], None],
    ) -> None:
        """Say of which versions results are wanted, and who takes them, or the reason why there are none."""
        self._is_current = is_current
        self._deliver = deliver
        self._fail = fail
        self._worker = Worker()
        self._busy = asyncio.Lock()
        self._checked: Document | None = None
        self._last = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Have the process ready before there is anything to do."""
        with contextlib.suppress(OSError):  # which is told when there is something to do
            await self._worker.start()

    def stop(self) -> None:
        """End the process."""
        for task in self._tasks:
            task.cancel()
        self._worker.stop()

    def look_at(self, document: Document) -> None:
        """Check a version of a text soon, unless a newer one comes."""
        now = time.monotonic()
        pause = 0.0 if now - self._last > _ALONE else _PAUSE
        self._last = now
        task = asyncio.get_running_loop().create_task(self._look_at(document, pause))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look_at(self, document: Document, pause: float) -> None:
        await asyncio.sleep(pause)
        if not self._is_current(document):
            return
        while not await self._is_free():
            if self._checked is not None and not self._is_current(self._checked):
                self._worker.stop()
        try:
            if self._is_current(document):
                self._checked = document
                await self._check(document)
        finally:
            self._checked = None
            self._busy.release()

    async def _is_free(self) -> bool:
        """Wait for a while for the process to be free, and return whether it is, for us alone then."""
        try:
            await asyncio.wait_for(self._busy.acquire(), _SUPERSEDED)
        except TimeoutError:
            return False
        return True

    async def _check(self, document: Document) -> None:
        try:
            found = await self._worker.ask(
                "check", document.uri, document.name, document.text, seconds=_LONGEST
            )
        except WorkerError as error:
            if self._is_current(document):
                self._fail(document, error)
            return
        if not self._is_current(document):
            return
        try:
            self._deliver(document, found)
        except Exception as error:
            self._fail(document, WorkerError(f"internal error: {error}", traceback.format_exc()))
