// Starts the language server, which does everything else: `mind-mlir lsp`.

const { LanguageClient } = require("vscode-languageclient/node");
const vscode = require("vscode");

const LANGUAGES = ["mind", "mind-ir", "ptir"];
let client;

async function start() {
  const [command, ...args] = vscode.workspace.getConfiguration("mind-mlir").get("command");
  const selected = LANGUAGES.flatMap((language) => [
    { scheme: "file", language },
    { scheme: "untitled", language },
  ]);
  const json = { scheme: "file", language: "json", pattern: "**/*.ptir.json" };
  client = new LanguageClient(
    "mind-mlir",
    "MIND",
    { command, args },
    { documentSelector: [...selected, json] },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    vscode.window.showErrorMessage(
      `The language server '${command}' cannot be started (${error?.message ?? error}). Install it with ` +
        "pip install 'mind-mlir[lsp]', or say where it is in the setting mind-mlir.command.",
    );
  }
}

async function stop() {
  const stopped = client;
  client = undefined;
  await stopped?.stop();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("mind-mlir.restart", async () => {
      await stop();
      await start();
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("mind-mlir.command")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
