"""How long an editor waits: for findings after a keystroke, and for what it asks of `mind-mlir lsp`.

A client of the protocol opens a file of each language, types in the middle of it, and asks for hovers there,
over the pipes that editors use. Findings are timed from the change to their arrival.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from benchmarks.command import parser, show
from benchmarks.report import Report
from benchmarks.surface_programs import realistic
from mind_mlir.languages.programs.sources import parse
from mind_mlir.languages.ptir import files
from mind_mlir.languages.ptir.from_module import from_module

if TYPE_CHECKING:
    from benchmarks.report import Row

_LONGEST = 60
#: Seconds between two keystrokes.
_BETWEEN = 0.15


def core(lines: int) -> str:
    """Return a program of Core IR."""
    found = ['%x = Input {name="x"} : tensor<f32[4, 8]>', '%w = Input {name="w"} : tensor<f32[8, 8]>']
    value = "%x"
    for number in range(lines - 3):
        made = ("MatMul ({0}, %w)", "Tanh ({0})", "Add ({0}, %x)")[number % 3].format(value)
        value = f"%v{number}"
        found.append(f"{value} = {made} : tensor<f32[4, 8]>")
    return "\n".join([*found, f"outputs: {value}"]) + "\n"


def ptir(lines: int) -> str:
    """Return the same as PTIR."""
    return files.dumps(from_module(parse(core(lines - 4), format="core")), "compact")


#: For each language: the end of a file's name, a text of some lines, and what is typed where.
LANGUAGES: dict[str, tuple[str, Callable[[int], str], str, str]] = {
    "mind": (".mind", realistic, "let rate = 0.1", "let rate = 0.1 + 0.2"),
    "Core IR": (".ir", core, "Tanh (", "Neg ("),
    "PTIR": (".ptir", ptir, "= tanh ", "= neg "),
}


class Session:
    """A server, and the client that talks to it."""

    def __init__(self) -> None:
        self.client = LanguageClient("benchmark", "1")
        self._found: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        def take(found: types.PublishDiagnosticsParams) -> None:
            self._found.put_nowait(found)

        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(take)

    async def start(self) -> None:
        """Start the server."""
        await self.client.start_io(sys.executable, "-m", "mind_mlir", "lsp")
        params = types.InitializeParams(types.ClientCapabilities(), process_id=os.getpid())
        await self.client.initialize_async(params)
        self.client.initialized(types.InitializedParams())

    async def stop(self) -> None:
        """End it."""
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()  # type: ignore[no-untyped-call]  # it has no types

    async def findings(self, uri: str, version: int) -> Sequence[types.Diagnostic]:
        """Wait for what is wrong with a version of a file."""
        while True:
            found = await asyncio.wait_for(self._found.get(), _LONGEST)
            if (found.uri, found.version) == (uri, version):
                return found.diagnostics

    async def measure(self, name: str, lines: int, edits: int) -> Row:
        """Open a file, type in it, and return how long everything took."""
        suffix, make, old, new = LANGUAGES[name]
        text = make(lines)
        middle = text.find(old, len(text) // 2)
        middle = text.rindex(old) if middle < 0 else middle
        changed = text[:middle] + new + text[middle + len(old) :]
        uri = f"file:///benchmark{suffix}"
        opened = types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "", 0, text))
        place = types.Position(text.count("\n", 0, middle), middle - text.rfind("\n", 0, middle) - 1)
        about = types.TextDocumentIdentifier(uri)

        async def first() -> None:
            self.client.text_document_did_open(opened)
            if await self.findings(uri, 0):
                raise ValueError(f"the program of {name} is wrong")

        async def edit(version: int) -> None:
            self.client.text_document_did_change(_change(uri, version, changed if version % 2 else text))
            await self.findings(uri, version)

        async def hover(version: int) -> None:
            """Ask right behind a keystroke, before anything is known of the text."""
            self.client.text_document_did_change(_change(uri, version, text if version % 2 else changed))
            await self.client.text_document_hover_async(types.HoverParams(about, place))

        once = await _timed(first)
        edited = [await _timed(partial(edit, number)) for number in range(1, edits + 1)]
        hovered = []
        for number in range(edits + 1, 2 * edits + 1):
            hovered.append(await _timed(partial(hover, number)))
            await self.findings(uri, number)
        return {
            "language": name,
            "lines": text.count("\n"),
            "opened ms": once,
            "findings ms": statistics.median(edited),
            "worst findings ms": max(edited),
            "hover ms": statistics.median(hovered),
            "worst hover ms": max(hovered),
        }


def _change(uri: str, version: int, text: str) -> types.DidChangeTextDocumentParams:
    whole = types.TextDocumentContentChangeWholeDocument(text)
    return types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(version, uri), [whole])


async def _timed(work: Callable[[], Any]) -> float:
    await asyncio.sleep(_BETWEEN)
    start = time.perf_counter()
    await work()
    return (time.perf_counter() - start) * 1e3


async def measure(lines: int, edits: int) -> Report:
    """Measure all languages, with one server."""
    session = Session()
    await session.start()
    try:
        rows = [await session.measure(name, lines, edits) for name in LANGUAGES]
    finally:
        await session.stop()
    notes = [
        f"medians of {edits} edits; opened: the first look at a text, with what a process loads once;",
        "hover: asked right behind a keystroke",
    ]
    return Report("what an editor waits for", rows, notes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("editor", __doc__)
    options_parser.add_argument("--lines", type=int, default=1000)
    options_parser.add_argument("--edits", type=int, default=20)
    options = options_parser.parse_args(arguments)
    return show(asyncio.run(measure(options.lines, options.edits)), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
