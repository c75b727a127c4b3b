"""A cache of compiled code by binding of symbolic dimensions: bounded, and safe to share by threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import field
from typing import Generic, TypeVar

from mind_mlir.support.lazy_dataclass import dataclass

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


@dataclass(slots=True)
class _Entry(Generic[V]):
    """The value of one key, once it is made; whoever finds it unmade waits."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: V | None = None


class BindingCache(Generic[K, V]):
    """The values that were asked for last, at most ``capacity`` of them.

    Each is made once, however many threads ask for it at the same time, and while one is made, others can be
    had. A value that is dropped lives on while somebody uses it.

    Attributes:
        capacity: How many values it keeps.
        hits: How often a value was there, or being made.
        misses: How often it had to be made.
        evictions: How many values were dropped to make room.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.hits = self.misses = self.evictions = 0
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of ``key``, made by ``make`` where there is none; what that raises is raised."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self.hits += 1
                self._entries.move_to_end(key)
                value = entry.value
                if value is not None:
                    return value
            else:
                self.misses += 1
                entry = self._entries[key] = _Entry()
                if len(self._entries) > self.capacity:
                    self._entries.popitem(last=False)
                    self.evictions += 1
        with entry.lock:
            if entry.value is None:
                try:
                    entry.value = make()
                except BaseException:
                    self._forget(key, entry)
                    raise
            return entry.value

    def put(self, key: K, value: V) -> None:
        """Have ``value`` be that of ``key``, whatever there was."""
        made = _Entry(value=value)
        self.get(key, lambda: value)
        with self._lock:
            self._entries[key] = made

    def items(self) -> list[tuple[K, V]]:
        """Return what is there, the one asked for last at the end."""
        with self._lock:
            return [(key, entry.value) for key, entry in self._entries.items() if entry.value is not None]

    def clear(self) -> None:
        """Drop everything; the counts stay."""
        with self._lock:
            self._entries.clear()

    def _forget(self, key: K, entry: _Entry[V]) -> None:
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]
