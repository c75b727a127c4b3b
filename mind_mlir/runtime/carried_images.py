"""Machine code of the runtime's own texts that goes along with compiled code to other processes.

Calls of compiled code need some of it that MLIR makes: the pool of threads where loops are shared, and the
native method `__call__`. Any processor of the architecture runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mind_mlir.image.compiled import CompiledCode
from mind_mlir.runtime import call, threads
from mind_mlir.runtime.kept_images import receive_image, text_digest
from mind_mlir.support.speed_ups import attempted
from mind_mlir.target.abi import PARALLEL_SYMBOL

if TYPE_CHECKING:
    from mind_mlir.image.image import Image


def carried_images(code: CompiledCode) -> dict[str, bytes]:
    """Return the images that calls of ``code`` need, by the digests of their texts.

    What cannot be had now is left out: whoever gets the code then looks for it as any process does.
    """
    makers = [call.own_image]
    if any(each.symbol == PARALLEL_SYMBOL for each in code.image.imports):
        makers.append(threads.own_image)
    found: dict[str, bytes] = {}
    for make in makers:
        made: tuple[str, Image] | None = attempted(make)
        if made is not None:
            text, image = made
            found[text_digest(text)] = b"".join(CompiledCode(image, ()).to_parts())
    return found


def accept_images(images: Mapping[str, bytes]) -> None:
    """Take images that came along, for where this process looks for them (CodeError: one is none)."""
    for digest, data in images.items():
        receive_image(digest, CompiledCode.from_bytes(data).image)
