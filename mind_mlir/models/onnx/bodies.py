"""Operators that are functions: the bodies that the package onnx has for them, for the types of a node."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.models.onnx.files import onnx_package
from mind_mlir.models.onnx.graphs.graph import Function, OnnxNode, Reference
from mind_mlir.models.onnx.graphs.refusals import broken, unsupported
from mind_mlir.models.onnx.graphs.tensors import NUMBERS, Tensors
from mind_mlir.models.onnx.reading import function_data

if TYPE_CHECKING:
    from mind_mlir.models.onnx.graphs.use import NodeUse, Value


def has_body(node: OnnxNode) -> bool:
    """Return whether a node's operator is a function."""
    schema = _schema(node.operator, node.version)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


@cache
def _schema(operator: tuple[str, str], version: int) -> Any:
    """Return what onnx knows of an operator in a version of its domain, or later where that is a function."""
    from onnx import defs  # noqa: PLC0415 -- who has a model has it

    domain, name = operator
    found = None
    with contextlib.suppress(defs.SchemaError):
        found = defs.get_schema(name, version, domain)
    if found is not None and not (found.has_function or found.has_context_dependent_function):
        latest = defs.get_schema(name, domain=domain)
        # What an operator of plain arithmetic does has not changed since it was written as a function.
        return latest if latest.has_function else found
    return found


def body_of(use: NodeUse) -> Function:
    """Return the function that a node's operator is, for the types of its operands."""
    onnx_package()
    node = use.node
    schema = _schema(node.operator, node.version)
    if schema is None:
        unsupported("there is no rule for it")
    versions = [each for each in schema.function_opset_versions if each <= node.version] or list(
        schema.function_opset_versions
    )
    if schema.has_function and versions:
        return _body(_parsed(schema.get_function_with_opset_version(max(versions))))
    if not schema.has_context_dependent_function:
        unsupported("there is no rule for it")
    return _body(_of_context(use, schema))


def _body(proto: Any) -> Function:
    opsets = {each.domain: each.version for each in proto.opset_import}
    return function_data(proto, Tensors(proto.name, None), opsets)


def _of_context(use: NodeUse, schema: Any) -> Any:
    import onnx  # noqa: PLC0415 -- who has a model has it

    node = use.node
    inputs = list(node.inputs)
    given = {name: value for name, value in use.attributes().items() if not isinstance(value, Reference)}
    proto = onnx.helper.make_node(node.operator[1], inputs, list(node.outputs), domain=node.operator[0])
    for name, value in given.items():
        as_written = node.graph_protos.get(name)
        proto.attribute.append(_attribute(name, value) if as_written is None else as_written)
    types = [_type(value).SerializeToString() for value in use.operands]
    listed = list(schema.context_dependent_function_opset_versions)
    version = max([each for each in listed if each <= node.version] or listed)
    text = schema.get_context_dependent_function_with_opset_version(version, proto.SerializeToString(), types)
    return _parsed(text)


def _parsed(text: bytes) -> Any:
    import onnx  # noqa: PLC0415 -- who has a model has it

    found = onnx.FunctionProto()
    found.ParseFromString(text)
    return found


def _attribute(name: str, value: Any) -> Any:
    import onnx  # noqa: PLC0415 -- who has a model has it

    if isinstance(value, np.ndarray):
        return onnx.helper.make_attribute(name, onnx.numpy_helper.from_array(value))
    try:
        return onnx.helper.make_attribute(name, value)
    except (TypeError, ValueError):
        unsupported(f"its attribute {name} cannot be written for the function that it is")


def _type(value: Value) -> Any:
    import onnx  # noqa: PLC0415 -- who has a model has it

    found = onnx.TypeProto()
    if value is None:
        return found
    if isinstance(value, list):
        if not value:
            broken("it is given an empty sequence, whose elements have no dtype")
        found.sequence_type.elem_type.tensor_type.elem_type = NUMBERS[value[0].dtype]
        return found
    found.tensor_type.elem_type = NUMBERS[np.dtype(value.dtype)]
    found.tensor_type.shape.SetInParent()
    for extent in value.shape:
        found.tensor_type.shape.dim.add().dim_value = extent
    return found
