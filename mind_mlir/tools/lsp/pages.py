"""Texts that the server shows in the editor: files in a folder of its own, which goes with it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from mind_mlir.diagnostics.codes import explain, lookup
from mind_mlir.outputs.errors import OutputError
from mind_mlir.outputs.files import write_file


class Pages:
    """The folder, which is made when there is something to show."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._codes: dict[str, str | None] = {}

    def write(self, name: str, text: str) -> str | None:
        """Return the address of a file of this name with this text; None where none can be written."""
        try:
            if self._folder is None or not self._folder.is_dir():
                self._folder = Path(tempfile.mkdtemp(prefix="mind-mlir-lsp-"))
            path = self._folder / name
            write_file(path, text.encode("utf-8", "backslashreplace"))
        except (OSError, OutputError):
            return None
        return path.as_uri()

    def of_code(self, code: str) -> str | None:
        """Return the address of the page that explains a code."""
        if code not in self._codes:
            entry = lookup(code)
            self._codes[code] = None if entry is None else self.write(f"{code}.txt", explain(entry))
        return self._codes[code]

    def remove(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
