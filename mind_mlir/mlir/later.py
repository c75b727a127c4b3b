"""Modules of the bindings that are executed when somebody asks for something of theirs.

MLIR imports the module of a dialect where it first shows an operation of that, and needs none of its classes.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

_executing = threading.RLock()
_begun: set[str] = set()


class _Later(ModuleType):
    """A module that has not been executed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)  # who looks at all modules wants nothing of this one
        with _executing:  # other threads wait until it is complete
            if type(self) is _Later:
                if self.__name__ in _begun:  # it asks for something that it has not defined yet
                    raise AttributeError(name)
                _begun.add(self.__name__)
                loader: Any = self.__spec__ and self.__spec__.loader
                try:
                    loader.exec_module(self)
                finally:
                    _begun.discard(self.__name__)
                self.__class__ = ModuleType  # type: ignore[assignment]  # which it is from now on
        return getattr(self, name)


def put_off(name: str) -> None:
    """Let module ``name`` be executed when an attribute of it is first asked for; nothing if it is there."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None:
        return
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _Later
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
