"""Exported graphs that are read as they are, without torch tracing them again to take operators apart.

That takes as long as exporting, and is not needed where all operators have rules, and what is changed in
place is nothing that anybody else sees: the operator that changes it is then replaced by the one that returns
a new tensor.
"""

from __future__ import annotations

import operator
from typing import Any

from mind_mlir.models.torch.reading import name_of
from mind_mlir.models.torch.rules import find_rule
from mind_mlir.models.torch.tensors import load_torch

#: Operators of which torch says that it takes them apart, and which return new memory all the same.
_NEW = frozenset(
    f"aten.{name}"
    for name in (
        *("conv1d.default", "conv2d.default", "conv3d.default", "linear.default", "matmul.default"),
        *("batch_norm.default", "layer_norm.default", "max_pool2d.default", "softmax.int", "diff.default"),
    )
)


def made_plain(module: Any) -> bool:
    """Return whether an exported graph is read as it is; what it changes in place it no longer does then."""
    changes: list[tuple[Any, Any]] = []
    if not _is_plain(module, changes):
        return False
    order = {node: place for place, node in enumerate(module.graph.nodes)}
    for node, target in changes:
        changed = node.args[0]
        with module.graph.inserting_before(node):
            made = module.graph.call_function(target, node.args, node.kwargs)
        made.meta = node.meta
        order[made] = place = order[node]
        node.replace_all_uses_with(made)
        changed.replace_all_uses_with(made, lambda user, after=place: order[user] > after)
        module.graph.erase_node(node)
    return True


def _is_plain(module: Any, changes: list[tuple[Any, Any]]) -> bool:
    """Return whether all operators have rules; note those that change what is new, and seen by them alone."""
    new: dict[Any, Any] = {}  # nodes that are new memory, and which it is
    seen: set[Any] = set()  # memory that others may be views of
    for node in module.graph.nodes:
        if node.op == "get_attr":
            inner = operator.attrgetter(node.target)(module)
            within: list[tuple[Any, Any]] = []
            if not hasattr(inner, "graph") or not _is_plain(inner, within) or within:
                return False
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        if not _is_read(node):
            return False
        schema = getattr(node.target, "_schema", None)
        if getattr(schema, "is_mutable", False):
            target = _unchanging(node.target)
            memory = new.get(node.args[0])
            if target is None or memory is None or memory in seen:
                return False
            new[node] = memory
            changes.append((node, target))
        elif schema is not None and _is_new(node.target, schema):
            new[node] = node
        else:
            seen |= {new[each] for each in node.all_input_nodes if each in new}
    return True


def _is_read(node: Any) -> bool:
    name = name_of(node.target)
    if name == "aten.batch_norm.default":
        return not node.args[5]
    if name == "aten.dropout.default":
        return not (node.args[1] and node.args[2])
    if getattr(getattr(node.target, "_schema", None), "is_mutable", False):
        target = _unchanging(node.target)
        return target is not None and find_rule(name_of(target)) is not None
    return find_rule(name) is not None


def _unchanging(target: Any) -> Any:
    """Return the operator that returns what ``target`` writes to its first argument."""
    name, overload = target._schema.name.removeprefix("aten::"), target._overloadname
    if not name.endswith("_") or sum(each.alias_info is not None for each in target._schema.arguments) != 1:
        return None
    packet = getattr(load_torch().ops.aten, name[:-1], None)
    return getattr(packet, overload, None) if packet is not None else None


def _is_new(target: Any, schema: Any) -> bool:
    """Return whether the results of an operator are memory that nothing else has."""
    if any(each.alias_info is not None for each in schema.returns):
        return False
    has = load_torch()._C._dispatch_has_kernel_for_dispatch_key
    return str(target) in _NEW or not has(target.name(), "CompositeImplicitAutograd")
