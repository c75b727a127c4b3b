"""The server: what editors ask, and who answers.

Answers come from the last version of a text. What goes wrong in one is told the editor's log, and the answer
is that there is nothing: nobody's typing ends the server.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import traceback
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from mind_mlir import __version__
from mind_mlir.tools.lsp import (
    completion,
    formatted,
    hover,
    navigation,
    outline,
    reports,
    semantic,
    signatures,
)
from mind_mlir.tools.lsp.analyst import Analyst
from mind_mlir.tools.lsp.commands import EXPLAIN, GRADIENT, RUN
from mind_mlir.tools.lsp.documents import Document, KnownTypes
from mind_mlir.tools.lsp.executor import Executor
from mind_mlir.tools.lsp.findings import TextFinding
from mind_mlir.tools.lsp.pages import Pages
from mind_mlir.tools.lsp.refusals import RefusedError

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.checks import Checked
    from mind_mlir.tools.lsp.workers import WorkerError

#: Objects that are made before those that nothing reaches are looked for: an index has tens of thousands.
_COLLECTED = 200_000
#: What a request answers that cannot be met, though nothing is wrong with it (RequestFailed).
_REFUSED = -32803
_ACTIONS = types.CodeActionOptions([types.CodeActionKind.QuickFix])
_COMPLETION = types.CompletionOptions(list(completion.TRIGGERS), resolve_provider=True)
_SIGNATURES = types.SignatureHelpOptions(list(signatures.TRIGGERS))
_RENAME = types.RenameOptions(prepare_provider=True)

#: What answers each request about a document, given that and the parameters; and what editors are told of it.
ANSWERS: dict[str, tuple[Callable[[Document, Any], Any], Any]] = {
    types.TEXT_DOCUMENT_HOVER: (hover.hover, None),
    types.TEXT_DOCUMENT_DEFINITION: (navigation.definition, None),
    types.TEXT_DOCUMENT_REFERENCES: (navigation.references, None),
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: (navigation.highlights, None),
    types.TEXT_DOCUMENT_PREPARE_RENAME: (navigation.prepare_rename, None),
    types.TEXT_DOCUMENT_RENAME: (navigation.rename, _RENAME),
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (outline.document_symbols, None),
    types.TEXT_DOCUMENT_COMPLETION: (completion.completion, _COMPLETION),
    types.TEXT_DOCUMENT_SIGNATURE_HELP: (signatures.signature_help, _SIGNATURES),
    types.TEXT_DOCUMENT_FORMATTING: (formatted.formatting, None),
    types.TEXT_DOCUMENT_INLAY_HINT: (outline.inlay_hints, None),
    types.TEXT_DOCUMENT_CODE_LENS: (outline.code_lenses, None),
    types.TEXT_DOCUMENT_CODE_ACTION: (reports.code_actions, _ACTIONS),
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: (semantic.semantic_tokens, semantic.LEGEND),
}


class MindServer:
    """Holds the texts that are open, and connects the editor with what answers it."""

    def __init__(self) -> None:
        # Whole texts come with each change: what is meant by a line is then nobody's guess.
        self.connection = LanguageServer("mind-mlir", __version__, types.TextDocumentSyncKind.Full)
        self._documents: dict[str, Document] = {}
        self._is_over = False
        self._pages = Pages()
        self._analyst = Analyst(self._is_current, self._deliver, self._fail)
        self._executor = Executor(self.connection, self._pages)
        self._register()

    def run(self) -> None:
        """Serve the editor at the other end of standard input and output, until it goes."""
        logging.getLogger("pygls").setLevel(logging.CRITICAL)
        gc.freeze()
        gc.set_threshold(_COLLECTED)
        signal.signal(signal.SIGTERM, lambda *_: self._leave(128 + signal.SIGTERM))
        try:
            self.connection.start_io()
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        self._analyst.stop()
        self._executor.stop()
        self._pages.remove()

    def _leave(self, code: int) -> None:
        """End the process at once: a thread waits for the editor's next words, which need not come."""
        self._clean_up()
        os._exit(code)

    def _register(self) -> None:
        feature = self.connection.feature  # which notes something on each function: a method takes no notes
        for method, (answer, options) in ANSWERS.items():
            feature(method, options)(self._answering(answer))
        feature(types.COMPLETION_ITEM_RESOLVE)(partial(completion.resolve))
        feature(types.TEXT_DOCUMENT_DID_OPEN)(partial(self._opened))
        feature(types.TEXT_DOCUMENT_DID_CHANGE)(partial(self._changed))
        feature(types.TEXT_DOCUMENT_DID_CLOSE)(partial(self._closed))
        feature(types.INITIALIZED)(partial(self._initialized))
        feature(types.SHUTDOWN)(partial(self._shut_down))
        feature(types.EXIT)(partial(self._exited))
        self.connection.command(RUN)(partial(self._run))
        self.connection.command(GRADIENT)(partial(self._gradient))
        self.connection.command(EXPLAIN)(partial(self._executor.explain))

    def _answering(self, answer: Callable[[Document, Any], Any]) -> Callable[[Any], Any]:
        def handle(params: Any) -> Any:
            document = self._documents.get(params.text_document.uri)
            if document is None:
                return None
            try:
                return answer(document, params)
            except RefusedError as error:
                raise JsonRpcException(str(error), _REFUSED) from None
            except Exception:
                self._log(f"internal error: {traceback.format_exc()}")
                return None

        return handle

    # Texts

    async def _initialized(self, _: types.InitializedParams) -> None:
        await self._analyst.start()

    def _shut_down(self, _: None) -> None:
        self._is_over = True
        self._clean_up()

    def _exited(self, _: None) -> None:
        self._leave(0 if self._is_over else 1)

    def _opened(self, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        encoding = str(getattr(self.connection.workspace.position_encoding, "value", "utf-16"))
        self._take(Document(item.uri, item.version, item.text, encoding, item.language_id))

    def _changed(self, params: types.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        old = self._documents.get(uri)
        if old is not None and params.content_changes:
            self._take(old.changed(params.content_changes[-1].text, version))

    def _take(self, document: Document) -> None:
        self._documents[document.uri] = document
        self._analyst.look_at(document)

    def _closed(self, params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        self._documents.pop(uri, None)
        self._publish(uri, None, [])

    # Results of checks

    def _is_current(self, document: Document) -> bool:
        return self._documents.get(document.uri) is document

    def _deliver(self, document: Document, found: Checked) -> None:
        document.findings, document.known = found.findings, KnownTypes(document.text, found.types)
        vars(document).pop("types", None)  # those of an earlier version, moved
        shown = [reports.report(document, each, self._pages.of_code) for each in found.findings]
        self._publish(document.uri, document.version, shown)
        workspace = self.connection.client_capabilities.workspace
        if found.types and workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self.connection.workspace_inlay_hint_refresh(None)

    def _fail(self, document: Document, error: WorkerError) -> None:
        """Say that a text could not be checked: at its beginning, and in the log."""
        message = f"this version could not be checked: {error.reason}"
        finding = TextFinding("", message, (0, 0), False, (), None, ())
        self._publish(document.uri, document.version, [reports.report(document, finding, lambda _: None)])
        if error.details:
            self._log(error.details)

    def _publish(self, uri: str, version: int | None, shown: list[types.Diagnostic]) -> None:
        self.connection.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown, version))

    def _log(self, text: str) -> None:
        self.connection.window_log_message(types.LogMessageParams(types.MessageType.Error, text))

    # Commands

    async def _run(self, uri: str, function: str | None) -> str | None:
        return await self._execute("run", uri, function)

    async def _gradient(self, uri: str, function: str | None) -> str | None:
        return await self._execute("gradient", uri, function)

    async def _execute(self, job: str, uri: str, function: str | None) -> str | None:
        document = self._documents.get(uri)
        if document is None:
            raise JsonRpcException(f"{uri} is not open", _REFUSED)
        return await self._executor.execute(job, document, function)


def serve() -> None:
    """Serve one editor."""
    MindServer().run()
