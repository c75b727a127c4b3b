"""`ModuleState`: what a module of torch is when it is read, but for the numbers of its weights."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from mind_mlir.models.torch.tensors import load_torch

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

#: Values that are the same if they are equal.
_PLAIN = (bool, int, str, bytes, type(None))


def key_of(value: Any) -> Hashable:
    """Return what tells a value that is no tensor from others: numbers by what they are, objects by which."""
    if type(value) in _PLAIN:
        return (type(value), value)
    return ("float", value.hex()) if type(value) is float else _Same(value)


class _Same:
    """An object as a key: it is equal to itself, and lives as long as the key."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class _Form:
    """A form of a module as a key, which is hashed once."""

    def __init__(self, parts: tuple[Hashable, ...]) -> None:
        self.parts = parts
        self._hash = hash(parts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Form) and self.parts == other.parts)

    def __hash__(self) -> int:
        return self._hash


class ModuleState:
    """Looks at a module before each call, for what it was when it was read may have changed.

    These are the modules in it, their attributes (modes, numbers, flags, tensors that are no buffers; objects
    count as changed where there are others in their place), how many hooks there are, and torch's autocast
    and default dtype. What the module itself changes when it runs is left out.
    """

    def __init__(self, module: Any) -> None:
        """Look at a module."""
        self._module = module
        self._torch = load_torch()
        self._common = vars(self._torch.nn.Module()).keys() - {"training"}
        self._changing: set[tuple[int, str]] = set()
        self._look()

    def key(self) -> Hashable:
        """Return what the module is now; equal keys are one program."""
        dicts, names, values, sizes, form = self._seen
        now = map(dict.get, dicts, names)
        if not all(map(is_, now, values)) or [len(each) for each in sizes[0]] != sizes[1]:
            form = self._look()
        torch = self._torch
        cast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
        return (form, cast, torch.get_default_dtype())

    def note_changes(self) -> None:
        """Leave out from now on what is other than at the last look: the module has changed it itself."""
        dicts, names, values, *_ = self._seen
        before = {(id(held), name): value for held, name, value in zip(dicts, names, values, strict=True)}
        for held, name in self._slots():
            if before.get((id(held), name), self) is not held[name]:
                self._changing.add((id(held), name))
        self._look()

    def _look(self) -> _Form:
        slots = [each for each in self._slots() if (id(each[0]), each[1]) not in self._changing]
        tied = self._tied()
        sized = [held for each in self._module.modules() for held in _sized(each)]
        sizes = [len(each) for each in sized]
        names = [name for _, name in slots]
        keys = [key_of(held[name]) for held, name in slots]
        form = _Form((*names, *keys, *sizes, *[(id(held), name) for held, name in tied]))
        watched = [*slots, *tied]
        values = [held[name] for held, name in watched]
        # Replaced together, for several threads may call.
        self._seen = (
            [held for held, _ in watched],
            [name for _, name in watched],
            values,
            (sized, sizes),
            form,
        )
        return form

    def _tied(self) -> list[tuple[dict[str, Any], str]]:
        """Return the places of weights that are in several, one after the other; torch reads one of them."""
        places: dict[int, list[tuple[dict[str, Any], str]]] = {}
        for module in self._module.modules():
            for held in (module._parameters, module._buffers):
                if isinstance(held, dict):
                    for name, tensor in held.items():
                        if tensor is not None:
                            places.setdefault(id(tensor), []).append((held, name))
        return [each for group in places.values() if len(group) > 1 for each in group]

    def _slots(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield where each module holds its attributes and the modules in it."""
        for module in self._module.modules():
            attributes = vars(module)
            for name in attributes:
                if name not in self._common:
                    yield attributes, name
            if isinstance(module._modules, dict):  # those of TorchScript are held elsewhere
                for name in module._modules:
                    yield module._modules, name


def _sized(module: Any) -> list[Any]:
    return [vars(module), module._modules, module._forward_hooks, module._forward_pre_hooks]
