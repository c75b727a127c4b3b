"""Machine code of the runtime's own texts (`*.mlir`), kept in the cache: MLIR makes it once on a machine.

Where a process is sent compiled code, it comes along with that (`carried_images`).
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.cache.envelope import digest_of
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.outputs.errors import refused
from mind_mlir.support.speed_ups import attempted
from mind_mlir.support.version import is_older

if TYPE_CHECKING:
    from mind_mlir.cache.directory import Choice
    from mind_mlir.image.image import Image

_FOLDER = Path(__file__).parent
#: Images that came with pickles, by the digests of their texts.
_received: dict[str, Image] = {}


@functools.cache
def runtime_text(*names: str) -> str:
    """Return the texts ``<name>.mlir``, one behind the other.

    Raises:
        UnsupportedError: E7102, they are of another release than what this process has loaded, or the system
            does not let them be read.
    """
    paths = [_FOLDER / f"{name}.mlir" for name in names]
    try:
        text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
        same = all(is_older(path.stat().st_ctime_ns) for path in paths)
    except OSError as error:
        raise refused("codegen", error) from error
    if not same:
        reason = "the files of mind-mlir have changed since this process has loaded it"
        raise UnsupportedError(Diagnostic("E7102", reason, help="start the process anew"))
    return text


def find_image(text: str, cache: Choice) -> Image | None:
    """Return the image of a text, with what else its code depends on, or None; nothing here raises."""
    found = _received.get(text_digest(text)) if _received else None
    return found if found is not None else attempted(lambda: _find(text, cache))


def receive_image(digest: str, image: Image) -> None:
    """Take the image of the text of a digest, so that `find_image` finds it in this process."""
    _received.setdefault(digest, image)


def text_digest(text: str) -> str:
    """Return the digest of a text."""
    return digest_of(text.encode()).hexdigest()


def keep_image(text: str, cache: Choice, image: Image) -> None:
    """Keep the image of a text, as `find_image` takes it; nothing here raises."""
    attempted(lambda: _keep(text, cache, image))


def _find(text: str, cache: Choice) -> Image | None:
    from mind_mlir.cache.codes import find_code  # noqa: PLC0415 -- loads numpy, which the number of threads does without
    from mind_mlir.cache.directory import store_for  # noqa: PLC0415 -- as above
    from mind_mlir.cache.key import key_of_text  # noqa: PLC0415 -- as above

    store = store_for(cache)
    key = None if store is None else key_of_text(text)
    found = None if store is None or key is None else find_code(store, key, bytes)
    return None if found is None else found.image


def _keep(text: str, cache: Choice, image: Image) -> None:
    from mind_mlir.cache.codes import keep_code  # noqa: PLC0415 -- as above
    from mind_mlir.cache.directory import store_for  # noqa: PLC0415 -- as above
    from mind_mlir.cache.key import key_of_text  # noqa: PLC0415 -- as above
    from mind_mlir.image.compiled import CompiledCode  # noqa: PLC0415 -- as above

    store = store_for(cache)
    key = None if store is None else key_of_text(text)
    if store is not None and key is not None:
        keep_code(store, key, bytes, CompiledCode(image, ()))
