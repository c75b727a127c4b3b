"""Machine code of the runtime's own texts (`*.mlir`), kept in the cache: MLIR makes it once on a machine."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.outputs.errors import refused

if TYPE_CHECKING:
    from mind_mlir.cache.directory import Choice
    from mind_mlir.code.image import Image

_FOLDER = Path(__file__).parent


@functools.cache
def runtime_text(*names: str) -> str:
    """Return the texts ``<name>.mlir``, one behind the other.

    Raises:
        UnsupportedError: E7102, the system does not let them be read.
    """
    try:
        return "\n".join((_FOLDER / f"{name}.mlir").read_text(encoding="utf-8") for name in names)
    except OSError as error:
        raise refused("codegen", error) from error


def find_image(text: str, cache: Choice) -> Image | None:
    """Return the image of a text, or None where none is kept.

    Args:
        text: The text, and what else its code depends on.
        cache: Where code is kept, as callers of `mind_mlir.compile` say it.
    """
    from mind_mlir.cache.codes import find_code  # noqa: PLC0415 -- loads numpy, which the number of threads does without
    from mind_mlir.cache.directory import store_for  # noqa: PLC0415 -- as above
    from mind_mlir.cache.key import key_of_text  # noqa: PLC0415 -- as above

    store = store_for(cache)
    found = None if store is None else find_code(store, key_of_text(text), bytes)
    return None if found is None else found.image


def keep_image(text: str, cache: Choice, image: Image) -> None:
    """Keep the image of a text, as `find_image` takes it."""
    from mind_mlir.cache.codes import keep_code  # noqa: PLC0415 -- as above
    from mind_mlir.cache.directory import store_for  # noqa: PLC0415 -- as above
    from mind_mlir.cache.key import key_of_text  # noqa: PLC0415 -- as above
    from mind_mlir.code.compiled import CompiledCode  # noqa: PLC0415 -- as above

    store = store_for(cache)
    if store is not None:
        keep_code(store, key_of_text(text), bytes, CompiledCode(image, ()))
