"""What notebooks ask objects for; what makes it is loaded when they do."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def shown_by(maker: str) -> Callable[[Any], str]:
    """Return a method ``_repr_html_``.

    Args:
        maker: A function of the package `mind_mlir.tools.notebooks`, as ``module.name``, which returns an
            object as HTML. That package stands above all those that have such objects.
    """
    module, _, name = maker.rpartition(".")

    def shown(self: Any) -> str:
        html: str = getattr(import_module(f"mind_mlir.tools.notebooks.{module}"), name)(self)
        return html

    return shown
