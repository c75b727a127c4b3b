"""Executes commands: programs run in processes of their own, and what they give is shown."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from lsprotocol.types import (
    LogMessageParams,
    MessageType,
    ShowDocumentParams,
    ShowMessageParams,
    WorkDoneProgressBegin,
    WorkDoneProgressEnd,
)

from mind_mlir.tools.lsp.workers import Worker, WorkerError

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from mind_mlir.tools.lsp.documents import Document
    from mind_mlir.tools.lsp.pages import Pages
    from mind_mlir.tools.lsp.runs import JobOutcome

#: Seconds that a program may run.
_LONGEST = 120
#: Characters of a message that an editor shows.
_SHOWN = 600
_TITLES = {"run": "Running", "gradient": "Differentiating"}
_SUFFIXES = {"run": "output.txt", "gradient": "gradient.ir"}


class Executor:
    """Runs functions of documents, and shows what they give."""

    def __init__(self, connection: LanguageServer, pages: Pages) -> None:
        self._connection = connection
        self._pages = pages
        self._workers: set[Worker] = set()
        self._numbers = itertools.count()

    def stop(self) -> None:
        """End what is running."""
        for worker in list(self._workers):
            worker.stop()

    async def execute(self, job: str, document: Document, function: str | None) -> str | None:
        """Do a job with a function, show what it gives, and return that."""
        name = function or document.name
        try:
            async with self._at_work(f"{_TITLES[job]} {name}") as worker:
                outcome: JobOutcome = await worker.ask(
                    job, document.name, document.text, function, seconds=_LONGEST
                )
        except WorkerError as error:
            self._say(MessageType.Error, f"{name}: {error.reason}")
            if error.details:
                self._connection.window_log_message(LogMessageParams(MessageType.Error, error.details))
            return None
        self._say(MessageType.Info if outcome.is_good else MessageType.Error, outcome.summary)
        file = re.sub(r"[^\w.-]", "_", name)
        await self._show(f"{file}.{_SUFFIXES[job] if outcome.is_good else 'errors.txt'}", outcome.text)
        return outcome.text

    @asynccontextmanager
    async def _at_work(self, title: str) -> AsyncIterator[Worker]:
        """Give a process, which the editor shows as being at work, and lets people end."""
        worker = Worker()
        self._workers.add(worker)
        progress, token = self._connection.work_done_progress, f"mind-mlir-{next(self._numbers)}"
        window = self._connection.client_capabilities.window
        is_shown = bool(window and window.work_done_progress)
        try:
            if is_shown:
                await progress.create_async(token)
                progress.tokens[token].add_done_callback(lambda _: worker.stop())  # it is done when cancelled
                progress.begin(token, WorkDoneProgressBegin(title, cancellable=True))
            yield worker
        finally:
            await worker.close()
            self._workers.discard(worker)
            if is_shown:
                progress.end(token, WorkDoneProgressEnd())
                progress.tokens.pop(token, None)

    async def explain(self, code: str) -> str | None:
        """Show what a code means, and return where that stands."""
        address = self._pages.of_code(code)
        if address is not None:
            await self._open(address)
        return address

    async def _show(self, name: str, text: str) -> None:
        address = self._pages.write(name, text)
        if address is None or not await self._open(address):
            self._connection.window_log_message(LogMessageParams(MessageType.Info, text))

    async def _open(self, address: str) -> bool:
        """Have the editor open a file, and return whether it does."""
        window = self._connection.client_capabilities.window
        if not (window and window.show_document and window.show_document.support):
            return False
        shown = await self._connection.window_show_document_async(
            ShowDocumentParams(address, take_focus=False)
        )
        return shown.success

    def _say(self, kind: MessageType, text: str) -> None:
        short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        self._connection.window_show_message(ShowMessageParams(kind, short))
