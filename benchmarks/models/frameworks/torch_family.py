"""Networks of our own in torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.models.entry import Entry


def build(entry: Entry, *, real: bool) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return a model, and the arguments that it is called with."""
    file, _, function = entry.architecture.partition(".")
    model, arguments = getattr(import_module(f"benchmarks.models.networks.{file}"), function)(
        **entry.settings(real=real)
    )
    return model, arguments, {}
