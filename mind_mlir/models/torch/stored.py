"""Graphs as JSON: what tests and reports keep of a model without torch, and read again."""

from __future__ import annotations

from typing import Any

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.graph import ArrayType, FxGraph, FxNode, Input, Ref, SourceLine, mapped


def to_data(graph: FxGraph) -> dict[str, Any]:
    """Return a graph as what `json.dump` takes."""
    return {
        "inputs": [_input_data(each) for each in graph.inputs],
        "nodes": [_node_data(node) for node in graph.nodes],
        "outputs": mapped(graph.outputs, _part_data),
    }


def from_data(data: dict[str, Any]) -> FxGraph:
    """Return the graph that `to_data` has written."""
    return FxGraph(
        tuple([Input(name, _type(type_), *map(tuple, more)) for name, type_, *more in data["inputs"]]),
        tuple([_node(node) for node in data["nodes"]]),
        tuple(_argument(data["outputs"])),
    )


def _input_data(given: Input) -> list[Any]:
    found: list[Any] = [given.name, _type_data(given.type)]
    return [*found, list(given.extents)] if given.extents else found


def _node_data(node: FxNode) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": node.name,
        "operator": node.operator,
        "args": mapped(node.args, _part_data),
        "types": [_type_data(each) for each in node.types],
    }
    if node.kwargs:
        found["kwargs"] = {name: mapped(value, _part_data) for name, value in node.kwargs.items()}
    if node.place is not None:
        found["place"] = [node.place.file, node.place.line]
    return found


def _node(data: dict[str, Any]) -> FxNode:
    return FxNode(
        data["name"],
        data["operator"],
        tuple(_argument(data["args"])),
        {name: _argument(value) for name, value in data.get("kwargs", {}).items()},
        tuple([_type(each) for each in data["types"]]),
        SourceLine(*data["place"]) if "place" in data else None,
    )


def _type_data(type_: ArrayType | None) -> Any:
    return None if type_ is None else [type_.dtype.core_name, list(type_.shape)]


def _type(data: Any) -> ArrayType | None:
    return None if data is None else ArrayType(_dtype(data[0]), tuple(data[1]))


def _dtype(name: str) -> DType:
    found = DType.from_name(name)
    if found is None:
        raise ValueError(f"there is no dtype {name!r}")
    return found


def _part_data(part: Any) -> Any:
    if isinstance(part, Ref):
        return {"ref": part.name}
    if isinstance(part, DType):
        return {"dtype": part.core_name}
    return {"graph": to_data(part)} if isinstance(part, FxGraph) else part


def _argument(data: Any) -> Any:
    if isinstance(data, list):
        return [_argument(each) for each in data]
    if not isinstance(data, dict):
        return data
    if "ref" in data:
        return Ref(data["ref"])
    return _dtype(data["dtype"]) if "dtype" in data else from_data(data["graph"])
