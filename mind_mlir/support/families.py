"""Tables whose rows are spread over the modules of a package, which nothing lists."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def families(package: str, table: str) -> Iterator[Any]:
    """Yield what the modules of a package have that is called ``table``, in the order of their names."""
    for module in iter_modules(import_module(package).__path__):
        found = import_module(f"{package}.{module.name}")
        if hasattr(found, table):
            yield getattr(found, table)
