"""Loop-carried buffers, each kept in one place.

Where a loop hands another buffer to its next iteration than it was given, its iterations would need any
number of buffers. Here every carried value gets a home outside of the loop; what an iteration hands on is
copied there. Where it can be computed there, `coalesce` removes the copy.

Before that, an `scf.while` takes the form that bufferizes in place: every carried tensor at one position. The
tensors that the condition region takes, and those that it hands on, become one list of slots. A slot has the
same number among the operands, the arguments of both regions and the results; its buffer lives as long as the
loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.buffers.aliases import buffer_uses, within
from mind_mlir.lowering.buffers.destination import create_alloc, is_tensor
from mind_mlir.mlir.bindings import arith, ir, scf
from mind_mlir.mlir.memory import is_contiguous, root_of
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import is_defined_inside, is_result_of, terminator_of
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.mlir.bindings import Block, Module, Operation, Type, Value


def align_carried_tensors(loops: Iterable[Operation]) -> None:
    """Give tensors one position in both regions of ``loops``, each an `scf.while`, before bufferization."""
    for loop in loops:
        if any(is_tensor(value.type) for value in (*loop.operands, *loop.results)):
            align_slots(loop)


def carry_in_place(module: Module) -> None:
    """Give every buffer that a loop of ``module`` carries a home outside of the loop, after bufferization.

    The loops still carry the homes, unchanged; canonicalization removes that.
    """
    found = find_all(module, scf.ForOp, scf.WhileOp, scf.IfOp)
    carrying = [op for op in found if len(op.results) or op.name == "scf.while"]
    for op in sorted(carrying, key=_depth, reverse=True):  # the results of what is inside are replaced first
        deliver()
        if op.name == "scf.for":
            _carry_for(op)
        elif op.name == "scf.while":
            _carry_while(op)
        else:
            _see_through(op)


def _see_through(branching: Operation) -> None:
    """Put a buffer from outside in the place of results of ``branching`` that are it in either branch."""
    ends = [terminator_of(region.blocks[0]) for region in branching.regions if len(region.blocks)]
    for number, result in enumerate(branching.results):
        if not isinstance(result.type, ir.MemRefType):
            continue
        buffers = [_uncast(end.operands[number]) for end in ends]
        if all(buffer == buffers[0] for buffer in buffers) and not is_defined_inside(buffers[0], branching):
            with ir.InsertionPoint(branching), branching.location:
                result.replace_all_uses_with(_with_type(buffers[0], result.type))


def _uncast(value: Value) -> Value:
    """Return what ``value`` is a cast of."""
    while is_result_of(value, "memref.cast"):
        value = value.owner.operands[0]
    return value


def _depth(op: Operation) -> int:
    depth = 0
    while op.parent is not None:
        op = op.parent.operation
        depth += 1
    return depth


def _carry_for(loop: Operation) -> None:
    body = loop.regions[0].blocks[0]
    arguments = list(body.arguments)[1:]
    terminator = terminator_of(body)
    _pass_originals(terminator)
    homes = {}
    for index, argument in enumerate(arguments):
        if isinstance(argument.type, ir.MemRefType):
            stays = _is_same(terminator.operands[index], argument)
            homes[index] = _home(loop, 3 + index, stays=stays)
            argument.replace_all_uses_with(homes[index])
            loop.results[index].replace_all_uses_with(homes[index])
    _hand_on(terminator, 0, homes, arguments)


def _carry_while(loop: Operation) -> None:
    before, after = (region.blocks[0] for region in loop.regions)
    condition, terminator = terminator_of(before), terminator_of(after)
    _pass_originals(condition)
    _pass_originals(terminator)
    given, handed = list(before.arguments), list(after.arguments)
    homes = {}
    for index, argument in enumerate(given):
        if isinstance(argument.type, ir.MemRefType):
            stays = _is_same(condition.operands[1 + index], argument)
            stays = stays and _is_same(terminator.operands[index], handed[index])
            homes[index] = _home(loop, index, stays=stays)
            with ir.InsertionPoint(loop), loop.location:
                for value in (argument, handed[index], loop.results[index]):
                    value.replace_all_uses_with(_with_type(homes[index], value.type))
    _hand_on(condition, 1, homes, given)
    _hand_on(terminator, 0, homes, handed)


def _is_same(value: Value, argument: Value) -> bool:
    """Return whether ``value`` is ``argument``, possibly cast."""
    while value != argument and is_result_of(value, "memref.cast"):
        value = value.owner.operands[0]
    return bool(value == argument)


def _with_type(buffer: Value, type_: Type) -> Value:
    """Return ``buffer`` with another layout in its type: the regions of a loop may see one differently."""
    return buffer if buffer.type == type_ else ir.Operation.create("memref.cast", [type_], [buffer]).result


def _pass_originals(terminator: Operation) -> None:
    """Let ``terminator`` hand on the buffers themselves where it hands on copies made just before it.

    Bufferization keeps what a loop hands on apart by such copies; the homes do that.
    """
    ending: list[Operation] = []
    for op in reversed(list(terminator.block.operations)[:-1]):
        if op.operation.name not in ("memref.alloc", "memref.cast", "memref.copy"):
            break
        ending.append(op.operation)
    dead: list[Operation] = []
    for copy in [op for op in ending if op.name == "memref.copy"]:
        original, duplicate = copy.operands
        while original.type != duplicate.type and is_result_of(original, "memref.cast"):
            original = original.owner.operands[0]
        made_here = is_result_of(duplicate, "memref.alloc") and duplicate.owner.operation in ending
        users = [use.owner.operation for use in duplicate.uses]
        if made_here and original.type == duplicate.type and len(users) == 2 and terminator in users:
            terminator.replace_uses_of_with(duplicate, original)
            dead += [copy, duplicate.owner.operation]
    for op in dead:
        op.erase()


def _home(loop: Operation, number: int, *, stays: bool) -> Value:
    """Return the buffer outside of ``loop``, which carries it from then on, for operand ``number``.

    Where the loop only ever hands on the buffer that it was given, and so ``stays``, that is the home.
    """
    initial = loop.operands[number]
    # To bufferization a loop writes what it starts with, so that no temporary is needed again after it.
    if stays or is_result_of(initial, "memref.alloc"):
        return initial
    with ir.InsertionPoint(loop), loop.location:
        home = _allocate(initial.type)
        ir.Operation.create("memref.copy", [], [initial, home])
    loop.operands[number] = home
    return home


def _allocate(type_: Type) -> Value:
    """Return a new buffer of ``type_``, whatever its layout."""
    if is_contiguous(type_):
        return create_alloc(type_)
    strides, offset = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    chosen: list[int] = []
    for axis in reversed(range(len(strides))):
        row_major = chosen[0] * max(1, type_.shape[axis + 1]) if chosen else 1
        chosen.insert(0, row_major if strides[axis] == dynamic else strides[axis])
    start = 0 if offset == dynamic else offset
    end = start + 1 + sum((extent - 1) * stride for extent, stride in zip(type_.shape, chosen, strict=True))
    flat = create_alloc(ir.MemRefType.get([max(0, end)], type_.element_type))
    operands = [_index(start)] * (offset == dynamic)
    operands += [_index(real) for real, stated in zip(chosen, strides, strict=True) if stated == dynamic]
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(
            [1, int(offset == dynamic), 0, strides.count(dynamic)]
        ),
        "static_offsets": ir.DenseI64ArrayAttr.get([offset]),
        "static_sizes": ir.DenseI64ArrayAttr.get(type_.shape),
        "static_strides": ir.DenseI64ArrayAttr.get(strides),
    }
    return ir.Operation.create("memref.reinterpret_cast", [type_], [flat, *operands], attributes).result


def _index(value: int) -> Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result


def _hand_on(terminator: Operation, first: int, homes: Mapping[int, Value], arguments: list[Value]) -> None:
    """Copy the operands of ``terminator`` that are to be at ``homes`` there, and hand on the arguments.

    Args:
        terminator: Its operand ``first + index`` is the next value of ``arguments[index]``.
        first: Number of the first carried operand.
        homes: The homes by index.
        arguments: The block arguments, which have been replaced by homes.
    """
    pending: dict[int, Value] = {}
    for index in homes:
        value = terminator.operands[first + index]
        with ir.InsertionPoint(terminator), terminator.location:
            terminator.operands[first + index] = _with_type(arguments[index], value.type)
        if not _is_same(value, homes[index]):
            pending[index] = value
    with ir.InsertionPoint(terminator), terminator.location:
        while pending:
            free = next((i for i in pending if _is_free(i, homes, pending)), None)
            if free is not None:
                _store(pending.pop(free), homes[free], terminator)
                continue
            index = next(i for i in pending if any(_may_overlap(pending[i], h) for h in homes.values()))
            type_ = pending[index].type
            kept = create_alloc(ir.MemRefType.get(type_.shape, type_.element_type))
            ir.Operation.create("memref.copy", [], [pending[index], kept])
            pending[index] = kept


def _store(value: Value, home: Value, terminator: Operation) -> None:
    """Copy ``value`` to ``home`` before ``terminator``, or in those branches that compute something new."""
    branching = value.owner.operation if is_result_of(value, "scf.if") else None
    if branching is None or not _may_store_in_branches(branching, value, home, terminator):
        with ir.InsertionPoint(terminator), terminator.location:
            ir.Operation.create("memref.copy", [], [value, home])
        return
    for region in branching.regions:
        end = terminator_of(region.blocks[0])
        taken = end.operands[value.result_number]
        if not _is_same(taken, home):
            _store(taken, home, end)


def _may_store_in_branches(branching: Operation, value: Value, home: Value, terminator: Operation) -> bool:
    """Return whether the old contents of ``home`` are not needed any more when ``branching`` ends."""
    block = terminator.block
    if branching.block != block or len(list(value.uses)) > 0 or not is_contiguous(value.type):
        return False
    for region in branching.regions:
        others = list(terminator_of(region.blocks[0]).operands)
        del others[value.result_number]
        if any(isinstance(other.type, ir.MemRefType) and _may_overlap(other, home) for other in others):
            return False
    users = (within(block, use.user) for use in buffer_uses(root_of(home), escapes=True).found)
    return not any(
        user is not None and user != terminator and branching.is_before_in_block(user) for user in users
    )


def _is_free(index: int, homes: Mapping[int, Value], pending: Mapping[int, Value]) -> bool:
    """Return whether home ``index`` may be written now: no other value is in it, and its own not askew."""
    home = homes[index]
    others = [value for number, value in pending.items() if number != index]
    own = is_contiguous(pending[index].type) and is_contiguous(home.type)
    return (own or not _may_overlap(pending[index], home)) and not any(
        _may_overlap(value, home) for value in others
    )


def _may_overlap(value: Value, home: Value) -> bool:
    one, other = root_of(value), root_of(home)
    return one is None or other is None or bool(one == other)


class _Slot(NamedTuple):
    """A carried tensor: its number among the arguments of each region, or None where it is new."""

    before: int | None
    after: int | None


def align_slots(loop: Operation) -> tuple[Operation, int]:
    """Replace the `scf.while` operation ``loop`` by one that starts all its lists with its tensor slots.

    Returns:
        The new loop, and how many slots it has.
    """
    before, after = (region.blocks[0] for region in loop.regions)
    slots = _slots(before, after)
    types = [
        before.arguments[slot.before].type if slot.before is not None else after.arguments[slot.after].type
        for slot in slots
    ]
    first = [slot.before for slot in slots] + _scalars(before)
    second = [slot.after for slot in slots] + _scalars(after)
    with loop.location:
        with ir.InsertionPoint(loop):
            operands = [
                loop.operands[number] if number is not None else _empty(type_)
                for number, type_ in zip(first, [*types, *first], strict=False)
            ]
            results = [*types, *(after.arguments[number].type for number in _scalars(after))]
            new = ir.Operation.create("scf.while", results, operands, regions=2)
        first_arguments = _rearrange(before, first, types)
        second_arguments = _rearrange(after, second, types)
        condition, terminator = terminator_of(before), terminator_of(after)
        with ir.InsertionPoint(condition):
            flag, *forwarded = condition.operands
            ir.Operation.create("scf.condition", [], [flag, *_select(forwarded, second, first_arguments)])
        with ir.InsertionPoint(terminator):
            yielded = list(terminator.operands)
            ir.Operation.create("scf.yield", [], _select(yielded, first, second_arguments))
    condition.erase()
    terminator.erase()
    for block, region in ((before, new.regions[0]), (after, new.regions[1])):
        block.append_to(region)
    for position, number in enumerate(second):
        if number is not None:
            loop.results[number].replace_all_uses_with(new.results[position])
    loop.erase()
    return new, len(slots)


def _slots(before: Block, after: Block) -> list[_Slot]:
    """Pair each tensor argument of ``before`` with the argument of ``after`` that can share its buffer."""
    forwarded = list(terminator_of(before).operands)[1:]
    yielded = list(terminator_of(after).operands)
    free = [number for number, argument in enumerate(after.arguments) if is_tensor(argument.type)]
    slots = []
    for number, argument in enumerate(before.arguments):
        if not is_tensor(argument.type):
            continue
        handed_on = [k for k in free if forwarded[k] == argument]
        handed_back = [k for k in free if yielded[number] == after.arguments[k]]
        partner = next(iter(handed_on + handed_back), None)
        if partner is not None:
            free.remove(partner)
        slots.append(_Slot(number, partner))
    return slots + [_Slot(None, number) for number in free]


def _scalars(block: Block) -> list[int]:
    return [number for number, argument in enumerate(block.arguments) if not is_tensor(argument.type)]


def _empty(type_: Type) -> Value:
    return ir.Operation.create("tensor.empty", [type_], []).result


def _rearrange(block: Block, numbers: Sequence[int | None], types: Sequence[Type]) -> list[Value]:
    """Give ``block`` its arguments ``numbers`` in this order; None is a new one, of the type there."""
    old = list(block.arguments)
    new = []
    for position, number in enumerate(numbers):
        type_ = types[position] if number is None else old[number].type
        new.append(block.add_argument(type_, ir.Location.unknown()))
        if number is not None:
            old[number].replace_all_uses_with(new[-1])
    for number in reversed(range(len(old))):
        block.erase_argument(number)
    return list(block.arguments)


def _select(values: Sequence[Value], numbers: Sequence[int | None], passed: Sequence[Value]) -> list[Value]:
    """Return the ``values`` with ``numbers``; for None, the slot's own argument is passed through."""
    return [passed[position] if number is None else values[number] for position, number in enumerate(numbers)]
