"""The server as an editor meets it: a client of the protocol over standard input and output."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features

ROOT = Path(__file__).parents[3]
#: Seconds that findings are waited for.
PATIENCE = 120
#: Findings as they came.
PUBLISHED: list[types.PublishDiagnosticsParams] = []


def make_client() -> LanguageClient:
    """Return a client that keeps all findings: who waits for the next may miss one of two at once."""

    def publish(client: LanguageClient, params: types.PublishDiagnosticsParams) -> None:
        PUBLISHED.append(params)

    client = LanguageClient(converter_factory=default_converter)
    method = types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS
    register_lsp_features(client, {**DEFAULT_CLIENT_FEATURES, method: publish})
    return client


SERVER = ClientServerConfig(
    server_command=[sys.executable, "-m", "mind_mlir", "lsp"], client_factory=make_client
)
pytestmark = pytest.mark.asyncio(loop_scope="module")

PROGRAM = """\
import math::sqrt;

struct Layer { w: Tensor<f32, [n, k]>, b: Tensor<f32, [k]> }

// What a layer makes of its input. It is for any number of rows.
fn apply(layer: Layer, x: Tensor<f32, [m, n]>) -> Tensor<f32, [m, k]> {
    let hidden = matmul(x, layer.w);
    sqrt(hidden * hidden) + layer.b
}

fn loss(layer: Layer, x: Tensor<f32, [m, n]>) -> f32 {
    let made = apply(layer, x);
    sum(made)
}
"""


@pytest_lsp.fixture(config=SERVER, scope="module")  # type: ignore[untyped-decorator]  # it has no types
async def client(lsp_client: LanguageClient) -> AsyncIterator[None]:
    lsp_client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)(lambda _: None)
    await lsp_client.initialize_session(
        types.InitializeParams(capabilities=client_capabilities("neovim@v0.11.0"))
    )
    yield
    await lsp_client.shutdown_session()


class Editor:
    """A document in an editor."""

    def __init__(self, client: LanguageClient, name: str, text: str, language: str = "mind") -> None:
        self.client, self.text, self.version = client, text, 1
        self.uri = f"file:///work/{name}"
        self.document = types.TextDocumentIdentifier(self.uri)
        client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(self.uri, language, 1, text))
        )

    async def findings(self) -> Sequence[types.Diagnostic]:
        """Wait for what is wrong with this version."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for found in PUBLISHED:
                if (found.uri, found.version) == (self.uri, self.version):
                    return list(found.diagnostics)
            await asyncio.sleep(0.01)
        raise TimeoutError(f"nothing was said of version {self.version} of {self.uri}")

    def change(self, text: str) -> None:
        self.text, self.version = text, self.version + 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.version, self.uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def replace(self, old: str, new: str) -> None:
        assert old in self.text
        self.change(self.text.replace(old, new, 1))

    def close(self) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(self.document))

    def at(self, words: str) -> types.Position:
        """Return the place of the sign ``|`` in words of the text."""
        before, _, behind = words.partition("|")
        return position(self.text, self.text.index(before + behind) + len(before))

    def spans(self, ranges: Sequence[types.Range]) -> list[str]:
        """Return lines and the words that ranges hold."""
        lines = self.text.split("\n")
        return [f"{r.start.line}:{lines[r.start.line][r.start.character : r.end.character]}" for r in ranges]


def position(text: str, offset: int) -> types.Position:
    return types.Position(text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset) - 1)


def shown(found: types.Hover | None) -> str:
    assert found is not None
    assert isinstance(found.contents, types.MarkupContent)
    return found.contents.value


async def test_findings_come_and_go_with_the_text(client: LanguageClient) -> None:
    editor = Editor(client, "findings.mind", PROGRAM)
    assert await editor.findings() == []
    editor.replace("layer.b", "layer.bias + layer.b")
    (wrong,) = await editor.findings()
    assert wrong.code == "E2202"
    assert editor.spans([wrong.range]) == ["7:bias"]
    assert "help: " in wrong.message
    assert wrong.code_description is not None
    page = Path(wrong.code_description.href.removeprefix("file://"))
    assert page.read_text(encoding="utf-8").startswith("E2202: ")
    editor.replace("layer.bias + ", "")
    assert await editor.findings() == []
    editor.replace("fn loss", "fn loss(")
    assert [each.code for each in await editor.findings()] == ["E1101"]
    editor.close()


async def test_of_versions_that_follow_quickly_the_last_one_counts(client: LanguageClient) -> None:
    editor = Editor(client, "quick.mind", PROGRAM)
    for number in range(40):
        editor.change(f"{PROGRAM}fn f{number}() -> f32 {{\n    missing\n}}\n")
    assert [each.message for each in await editor.findings()] == [
        "missing is not declared\nhelp: declare it with let, as a parameter or as a function"
    ]
    versions = [each.version or 0 for each in PUBLISHED if each.uri == editor.uri]
    assert versions == sorted(versions)
    editor.close()


async def test_other_places_are_related(client: LanguageClient) -> None:
    text = '%a = Input {name="a"} : tensor<f32[2]>\n%a = Neg (%a) : tensor<f32[2]>\noutputs: %a\n'
    editor = Editor(client, "twice.ir", text, "mind-ir")
    (wrong,) = await editor.findings()
    assert (wrong.code, wrong.range.start.line) == ("E4002", 1)
    assert wrong.related_information
    assert editor.spans([each.location.range for each in wrong.related_information]) == ["0:%a"]
    editor.close()


@pytest.mark.parametrize(
    ("name", "text", "meant"),
    [
        ("meant.mind", "fn f(x: f32) -> f32 {\n    sqr(x)\n}\n", "sqrt"),
        ("meant.ir", '%0 = Inptu {name="x"} : tensor<f32[2]>\noutputs: %0\n', "Input"),
    ],
)
async def test_a_name_that_was_meant_is_offered(
    client: LanguageClient, name: str, text: str, meant: str
) -> None:
    editor = Editor(client, name, text)
    wrong = (await editor.findings())[0]
    context = types.CodeActionContext([wrong])
    found = await client.text_document_code_action_async(
        types.CodeActionParams(editor.document, wrong.range, context)
    )
    fix, explanation = found or ()
    assert isinstance(fix, types.CodeAction)
    assert fix.title == f"Change to '{meant}'"
    assert fix.edit is not None
    assert fix.edit.changes is not None
    (edit,) = fix.edit.changes[editor.uri]
    assert (edit.new_text, edit.range) == (meant, wrong.range)
    assert explanation.title.startswith(f"Explain {wrong.code}: ")
    editor.close()


async def test_names_are_explained_found_and_renamed(client: LanguageClient) -> None:
    editor = Editor(client, "names.mind", PROGRAM)
    await editor.findings()

    async def hover(words: str) -> str:
        place = editor.at(words)
        return shown(await client.text_document_hover_async(types.HoverParams(editor.document, place)))

    assert "let hidden: Tensor<f32, [m, k]>" in await hover("let hid|den")
    assert "Computes the product of two matrices" in await hover("mat|mul(")
    assert "What a layer makes of its input." in await hover("= app|ly(")
    assert "Tensor<f32, [m, k]>" in await hover("hidden |* hidden")
    assert "Declares a variable" in await hover("le|t made")
    place = editor.at("It is fo|r any")
    assert await client.text_document_hover_async(types.HoverParams(editor.document, place)) is None
    assert "32 bits" in await hover("-> f3|2 {")
    place = editor.at("matmul(x, layer.|w)")
    found = await client.text_document_definition_async(types.DefinitionParams(editor.document, place))
    assert isinstance(found, types.Location)
    assert editor.spans([found.range]) == ["2:w"]
    place = editor.at("[n, |k]>, b")
    params = types.ReferenceParams(types.ReferenceContext(include_declaration=True), editor.document, place)
    uses = await client.text_document_references_async(params)
    assert uses is not None
    assert editor.spans([each.range for each in uses]) == ["2:k", "2:k", "5:k"]
    edit = await client.text_document_rename_async(types.RenameParams(editor.document, place, "wide"))
    assert edit is not None
    assert edit.changes is not None
    assert [each.new_text for each in edit.changes[editor.uri]] == ["wide"] * 3
    for refused in ("m", "let", "2k"):
        with pytest.raises(Exception, match=r"means something else|is no name"):
            await client.text_document_rename_async(types.RenameParams(editor.document, place, refused))
    editor.close()


async def test_completion_hints_and_signatures(client: LanguageClient) -> None:
    editor = Editor(client, "completion.mind", PROGRAM)
    await editor.findings()

    async def labels(words: str) -> list[str]:
        params = types.CompletionParams(editor.document, editor.at(words))
        found = await client.text_document_completion_async(params)
        assert isinstance(found, types.CompletionList)
        return [each.label for each in found.items]

    whole = types.Range(types.Position(0, 0), types.Position(99, 0))
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(editor.document, whole))
    assert [each.label for each in hints or ()] == [": Tensor<f32, [m, k]>"] * 2
    editor.replace("sum(made)", "sum(made, ax)\n    layer.")
    assert {"axes", "keepdims"} <= {*await labels("made, ax|)")}
    assert await labels("    layer.|") == ["w", "b"]
    assert {"layer", "made", "matmul", "while", "apply"} <= {*await labels("sum(ma|de")}
    params = types.SignatureHelpParams(editor.document, editor.at("apply(layer, |x);"))
    found = await client.text_document_signature_help_async(params)
    assert found is not None
    assert found.active_parameter == 1
    assert found.signatures[0].label.startswith("fn apply(layer: Layer, ")
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(editor.document, whole))
    assert hints, "what was known of the text before it broke is still shown"
    editor.close()


async def test_formatting_outline_and_lenses(client: LanguageClient) -> None:
    editor = Editor(client, "layout.mind", PROGRAM.replace("    let made", "  let   made"))
    edits = await client.text_document_formatting_async(
        types.DocumentFormattingParams(editor.document, types.FormattingOptions(4, insert_spaces=True))
    )
    assert edits is not None
    assert [(each.range.start.line, each.new_text) for each in edits] == [
        (11, "    let made = apply(layer, x);\n")
    ]
    found = await client.text_document_document_symbol_async(types.DocumentSymbolParams(editor.document))
    symbols = [each for each in found or () if isinstance(each, types.DocumentSymbol)]
    assert [(each.name, len(each.children or ())) for each in symbols] == [
        ("Layer", 2),
        ("apply", 0),
        ("loss", 0),
    ]
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(editor.document))
    assert [each.command.title for each in lenses or () if each.command] == ["run", "differentiate"] * 2
    editor.close()


async def test_functions_run_and_are_differentiated(client: LanguageClient) -> None:
    editor = Editor(client, "run.mind", PROGRAM)

    async def execute(command: str, function: str) -> Any:
        arguments = [editor.uri, function]
        return await client.workspace_execute_command_async(types.ExecuteCommandParams(command, arguments))

    client.messages.clear()
    text = await execute("mind-mlir.run", "loss")
    assert text.startswith("# loss with n = 4, k = 4, m = 4 on random inputs (seed 0)\n")
    (told,) = client.messages
    assert told.type is types.MessageType.Info
    assert "(seed 0): result: float32[] " in told.message
    assert (await execute("mind-mlir.gradient", "loss")).count("MatMul") >= 2
    assert Path(client.shown_documents[-1].uri.removeprefix("file://")).name == "loss.gradient.ir"
    editor.change("fn main() -> i64 {\n    1 + x\n}\n")
    assert "E2002" in await execute("mind-mlir.run", "main")
    assert client.messages[-1].type is types.MessageType.Error
    editor.close()


FILES = (
    "examples/mlp.mind",
    "examples/control/training.ir",
    "lit_tests/ops/while.ir",
    "lit_tests/cli/convert.ptir",
)
PIECES = (
    *("(", ")", "{", "}", "[", "]", '"', "let x = ", "fn f(", "%0", "^b", "@f", ": ", "//", "/*"),
    *("ü\U0001d54f", "\n", "<", "="),
)


async def test_no_edit_is_an_error(client: LanguageClient) -> None:
    draw = random.Random(0)  # noqa: S311 -- the same edits in every run
    for file in FILES:
        text = (ROOT / file).read_text(encoding="utf-8")
        editor = Editor(client, file, text)
        for _ in range(50):
            start = draw.randrange(len(editor.text) + 1)
            end = min(len(editor.text), start + draw.choice((0, 1, 5, 40)))
            pieces = (*PIECES, editor.text[end : end + 30])
            editor.change(editor.text[:start] + draw.choice(pieces) + editor.text[end:])
            await ask(editor, draw)
        await editor.findings()
        editor.close()
    assert [each.message for each in client.log_messages if each.type is types.MessageType.Error] == []
    assert client.error is None


async def ask(editor: Editor, draw: random.Random) -> None:
    """Ask something about a place of a document."""
    client, document = editor.client, editor.document
    place = position(editor.text, draw.randrange(len(editor.text) + 1))
    whole = types.Range(types.Position(0, 0), types.Position(10_000, 0))
    asked = draw.randrange(10)
    if asked == 0:
        await client.text_document_hover_async(types.HoverParams(document, place))
    elif asked == 1:
        await client.text_document_definition_async(types.DefinitionParams(document, place))
    elif asked == 2:
        context = types.ReferenceContext(include_declaration=True)
        await client.text_document_references_async(types.ReferenceParams(context, document, place))
    elif asked == 3:
        await client.text_document_document_highlight_async(types.DocumentHighlightParams(document, place))
    elif asked == 4:
        await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    elif asked == 5:
        await client.text_document_signature_help_async(types.SignatureHelpParams(document, place))
    elif asked == 6:
        await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
    elif asked == 7:
        await client.text_document_inlay_hint_async(types.InlayHintParams(document, whole))
    elif asked == 8:
        await client.text_document_code_lens_async(types.CodeLensParams(document))
    else:
        await client.text_document_completion_async(types.CompletionParams(document, place))
