"""Choose the values of a block that are computed again rather than kept in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ir.types import TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import ValueId
    from mind_mlir.passes.recompute.levels import Levels
    from mind_mlir.target import Target

#: The most operations that a level computes again: more would only spill registers, and cut its loops in two.
MOST_AGAIN = 16


class _Needed(NamedTuple):
    """The work that a level has to do for a value.

    Attributes:
        computed: The operations that it computes again, besides those that it does so already.
        read: The values that these read of memory.
    """

    computed: set[int]
    read: set[ValueId]


class RecomputationChoice:
    """The choice of the values that are computed again in a block.

    Attributes:
        values: The values that are not kept in memory.
        computed: The operations of earlier levels that a level computes again.
    """

    def __init__(self, levels: Levels, target: Target) -> None:
        self.values: set[ValueId] = set()
        self.computed: dict[int, set[int]] = {}
        self._levels = levels
        self._target = target
        self._read = {level: set(values) for level, values in levels.read.items()}
        self._left_alone = levels.around_reductions()
        for number in range(len(levels.operations)):  # all that a value is made of is decided before it
            self._decide(number)

    def is_computed(self, value: ValueId, level: int) -> bool:
        """Return whether ``level``, which reads ``value``, computes it again."""
        maker = self._levels.made_by.get(value)
        if maker is None or value not in self.values:
            return False
        return self._levels.of[maker] < level and maker in self.computed.get(level, ())

    def _decide(self, number: int) -> None:
        needed: dict[int, _Needed] = {}
        for level in self._levels_behind(number):
            found = self._needed(number, level)
            if found is None:
                return
            needed[level] = found
        if not needed or not self._pays(number, needed):
            return
        self.values.add(self._levels.operations[number].value_id)
        for level, found in needed.items():
            self.computed.setdefault(level, set()).update(found.computed)
            self._read.setdefault(level, set()).update(found.read)

    def _levels_behind(self, number: int) -> list[int]:
        """Return the later levels that read the result of an operation; none if it has to be in memory."""
        levels = self._levels
        value = levels.operations[number].value_id
        if not levels.costs[number] or number in self._left_alone or value in levels.returned:
            return []
        users = levels.users.get(value, ())
        later = [user for user in users if levels.of[user] > levels.of[number]]
        if not all(levels.costs[user] for user in users):
            return []
        if not all(self._has_shape_of(value, user) for user in later):
            return []
        return sorted({levels.of[user] for user in later})

    def _has_shape_of(self, value: ValueId, user: int) -> bool:
        types = self._levels.types[value], self._levels.operations[user].result_type
        one, other = (type_.shape if isinstance(type_, TensorType) else None for type_ in types)
        return one == other

    def _needed(self, number: int, level: int) -> _Needed | None:
        """Return what ``level`` has to do for the result of an operation; None if it cannot."""
        levels, there = self._levels, self.computed.get(level, set())
        left = MOST_AGAIN - sum(levels.costs[each] > 0 for each in there)
        found = _Needed(set(), set())
        pending = [number]
        while pending:
            each = pending.pop()
            if each in found.computed or each in there:
                continue
            found.computed.add(each)
            left -= levels.costs[each] > 0
            if left < 0:
                return None
            for value in levels.operations[each].operands:
                maker = levels.made_by.get(value)
                if maker is None or self._is_there(value, maker, level):
                    found.read.add(value)
                elif levels.costs[maker] or levels.is_view(maker):
                    pending.append(maker)
                else:
                    return None
        return found

    def _is_there(self, value: ValueId, maker: int, level: int) -> bool:
        """Return whether ``value`` is in memory anyway when ``level`` is computed."""
        if self._levels.is_view(maker) or value in self.values:
            return False
        return (
            self._levels.is_given(maker) or self._levels.last.get(value, 0) >= level > self._levels.of[maker]
        )

    def _pays(self, number: int, needed: Mapping[int, _Needed]) -> bool:
        """Return whether to compute a result again takes less time than to write and to read it."""
        levels = self._levels
        value = levels.operations[number].value_id
        saved = (1 + len(needed)) * levels.bytes_of(value)
        spent = 0.0
        for level, found in needed.items():
            known = self._read.get(level, set())
            saved -= sum(levels.bytes_of(each) for each in found.read if each not in known)
            spent += sum(levels.costs[each] * self._vectors(each) for each in found.computed)
        first = min(user for user in levels.users[value] if levels.of[user] > levels.of[number])
        is_far = levels.moved[first] - levels.moved[number] > self._target.l2_bytes
        rates = self._target.rates
        return spent < saved * ((rates.byte_ns if is_far else rates.l2_byte_ns) / rates.vector_ns)

    def _vectors(self, number: int) -> float:
        """Return how many vectors the result of an operation is; narrow floats are computed in f32."""
        type_ = self._levels.operations[number].tensor_type
        return type_.element_count / self._target.lanes(max(32, 8 * type_.dtype.itemsize))
