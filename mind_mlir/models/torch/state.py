"""`ModuleState`: what a module of torch is when it is read, but for the numbers of its weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from operator import is_
from typing import Any, NamedTuple

from mind_mlir.models.torch.tensors import load_torch

#: Values that are the same if they are equal.
_PLAIN = (bool, int, str, bytes, type(None))


def key_of(value: Any) -> Hashable:
    """Return what tells a value that is no tensor from others: numbers by what they are, objects by which."""
    if type(value) in _PLAIN:
        return (type(value), value)
    return ("float", value.hex()) if type(value) is float else _Same(value)


def modes_of(torch: Any) -> tuple[Hashable, ...]:
    """Return what torch is told besides a module: the dtype that it casts to, if any, and that of floats."""
    cast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    return cast, torch.get_default_dtype()


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


class _Seen(NamedTuple):
    """A module at the last look; replaced as one, for several threads may call.

    Attributes:
        held: The dicts of the modules in it.
        sizes: How large they were.
        versions: Their versions, where torch tells them: as long as these are the same, so is all else.
        dicts: The dict of each value that is looked at.
        names: The name of each.
        values: Each of them.
        form: All of it, as a key.
    """

    held: list[dict[str, Any]]
    sizes: list[int]
    versions: list[int] | None
    dicts: list[dict[str, Any]]
    names: list[str]
    values: list[Any]
    form: _Form


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
        # Torch's own guards ask for it, too: a number that is another one once a dict has been changed.
        self._version = getattr(self._torch._C._dynamo.guards, "dict_version", None)
        self._seen = self._look()

    def key(self) -> Hashable:
        """Return what the module is now; equal keys are one program."""
        seen = self._seen
        versions = self._versions(seen.held)
        if versions is None or versions != seen.versions:
            now = map(dict.get, seen.dicts, seen.names)
            is_same = all(map(is_, now, seen.values)) and list(map(len, seen.held)) == seen.sizes
            self._seen = seen = seen._replace(versions=versions) if is_same else self._look()
        return (seen.form, *modes_of(self._torch))

    def note_changes(self) -> None:
        """Leave out from now on what is other than at the last look: the module has changed it itself."""
        seen = self._seen
        places = zip(seen.dicts, seen.names, seen.values, strict=True)
        before = {(id(held), name): value for held, name, value in places}
        for held, name in self._slots():
            if before.get((id(held), name), self) is not held[name]:
                self._changing.add((id(held), name))
        self._seen = self._look()

    def _look(self) -> _Seen:
        held = [each for module in self._module.modules() for each in _held(module)]
        tied = self._tied()
        held += {id(each): each for each, _ in tied}.values()
        versions = self._versions(held)  # before anything else: what is changed from now on is seen
        slots = [each for each in self._slots() if (id(each[0]), each[1]) not in self._changing]
        sizes = list(map(len, held))
        names = [name for _, name in slots]
        keys = [key_of(each[name]) for each, name in slots]
        watched = [*slots, *tied]
        return _Seen(
            held,
            sizes,
            versions,
            [each for each, _ in watched],
            [name for _, name in watched],
            [each[name] for each, name in watched],
            _Form((*names, *keys, *sizes, *[(id(each), name) for each, name in tied])),
        )

    def _versions(self, held: list[dict[str, Any]]) -> list[int] | None:
        return None if self._version is None else list(map(self._version, held))

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


def _held(module: Any) -> list[dict[str, Any]]:
    """Return the dicts of a module that are looked at; those of TorchScript are none."""
    found = (vars(module), module._modules, module._forward_hooks, module._forward_pre_hooks)
    return [each for each in found if isinstance(each, dict)]
