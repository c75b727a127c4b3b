"""`ReceivedParcels`: what came with pickles, so that the same content is loaded once in a process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakValueDictionary

from mind_mlir.support.releasing import at_release

if TYPE_CHECKING:
    from mind_mlir.runtime.parcel import ReceivedParcel

T = TypeVar("T")

#: So much of what came last is kept though nobody uses it: schedulers send a function anew with each task.
_KEPT, _KEPT_BYTES = 256, 256 << 20


class ReceivedParcels(Generic[T]):
    """What has been made of parcels, by their digests: what is in use, and what was asked for last."""

    def __init__(self) -> None:
        self._all: WeakValueDictionary[bytes, T] = WeakValueDictionary()
        self._last: OrderedDict[bytes, tuple[T, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        at_release.append(self.release)

    def __len__(self) -> int:
        """Return of how many parcels there is something."""
        return len(self._all)

    def get(self, parcel: ReceivedParcel, make: Callable[[ReceivedParcel], T]) -> T:
        """Return what there is of a parcel of the same digest, or what ``make`` makes of this one."""
        digest = parcel.digest
        with self._lock:
            if digest in self._last:
                self._last.move_to_end(digest)
                return self._last[digest][0]
            found = self._all.get(digest)
            if found is None:
                found = self._all[digest] = make(parcel)
            size = parcel.size
            self._last[digest] = found, size
            self._bytes += size
            while len(self._last) > 1 and (len(self._last) > _KEPT or self._bytes > _KEPT_BYTES):
                self._bytes -= self._last.popitem(last=False)[1][1]
            return found

    def release(self) -> None:
        """Keep only what is in use."""
        with self._lock:
            self._last.clear()
            self._bytes = 0

    def forget(self, digest: bytes) -> None:
        """Drop what there is of a parcel: a damaged one is not to stand for another of its digest."""
        with self._lock:
            self._all.pop(digest, None)
            _, size = self._last.pop(digest, (None, 0))
            self._bytes -= size
