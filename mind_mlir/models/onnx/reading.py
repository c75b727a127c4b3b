"""ONNX's protobuf messages as `graph.Graph`s: names are checked, nodes are put in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar

from mind_mlir.models.onnx.graphs.graph import Function, ModelData, OnnxGraph, OnnxNode, Reference, reads
from mind_mlir.models.onnx.graphs.refusals import unreadable
from mind_mlir.models.onnx.graphs.tensors import Tensors, dtype_of
from mind_mlir.models.ports import Extent, Port
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Graphs within graphs are read to this depth.
_MAX_DEPTH = 32

#: Operators with graphs that have rules of their own.
_CONTROL = (("", "If"), ("", "Loop"), ("", "Scan"))

# The kinds of attributes in AttributeProto, as its specification numbers them.
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH = 1, 2, 3, 4, 5
_FLOATS, _INTS, _STRINGS, _TENSORS, _GRAPHS, _SPARSE, _TYPE = 6, 7, 8, 9, 10, 11, 13


def model_data(proto: Any, tensors: Tensors) -> ModelData:
    """Return a ModelProto as data.

    Raises:
        ParseError: E1120, it breaks the rules of the format.
    """
    texts = _Texts(tensors.name)
    opsets = {texts.domain(each.domain): each.version for each in proto.opset_import}
    if not proto.HasField("graph") or not proto.graph.output:
        raise unreadable(tensors.name, "it has no graph, or one that returns nothing")
    reader = _Reader(tensors, opsets)
    functions = {}
    for each in proto.functions:
        own = {**opsets, **{texts.domain(one.domain): one.version for one in each.opset_import}}
        functions[texts.domain(each.domain), texts.text(each.name)] = function_data(each, tensors, own)
    return ModelData(reader.graph(proto.graph), functions, opsets, proto.ir_version)


def function_data(proto: Any, tensors: Tensors, opsets: Mapping[str, int]) -> Function:
    """Return a FunctionProto as data (ParseError: E1120, as `model_data`)."""
    reader = _Reader(tensors, opsets)
    texts = reader.texts
    attributes: dict[str, Any] = dict.fromkeys(texts.all(proto.attribute))
    attributes |= {texts.text(each.name): reader.attribute(each, 0) for each in proto.attribute_proto}
    inputs = texts.all(proto.input)
    nodes = reader.nodes(proto.node, set(inputs), f"function {proto.name}", 0)
    return Function(inputs, texts.all(proto.output), attributes, nodes)


@dataclass(frozen=True)
class _Texts:
    """Names in a message, which protobuf gives as bytes where they are no UTF-8."""

    model: str

    def text(self, name: Any) -> str:
        """Return a name (ParseError: E1120, it is no text)."""
        if not isinstance(name, str):
            raise unreadable(self.model, f"the name {name!r} is not UTF-8")
        return name

    def domain(self, name: Any) -> str:
        """Return the name of a domain; ONNX's own has two."""
        return "" if self.text(name) == "ai.onnx" else name

    def all(self, names: Iterable[Any]) -> tuple[str, ...]:
        """Return several names."""
        return tuple(map(self.text, names))


@dataclass(frozen=True)
class _Reader:
    tensors: Tensors
    opsets: Mapping[str, int]

    @property
    def texts(self) -> _Texts:
        """Return what reads names."""
        return _Texts(self.tensors.name)

    def graph(self, proto: Any, depth: int = 0, around: frozenset[str] = frozenset()) -> OnnxGraph:
        """Return a GraphProto as data; ``around`` are the names of graphs that it is within."""
        if depth > _MAX_DEPTH:
            raise self._refused(f"graphs are nested more than {_MAX_DEPTH} deep")
        what = f"graph '{proto.name}'"
        arrays: dict[str, npt.NDArray[Any]] = {}
        for each in proto.initializer:
            arrays[self.texts.text(each.name)] = self.tensors.array(each)
        for each in proto.sparse_initializer:
            arrays[self.texts.text(each.values.name)] = self.tensors.sparse(each)
        ports = [self._port(each) for each in proto.input]
        names = [each.name for each in ports]
        if "" in names or len(set(names)) < len(names):
            raise self._refused(f"inputs of {what} have no name, or the same one: {names}")
        known = {*around, *arrays, *names}
        nodes = self.nodes(proto.node, known, what, depth)
        known.update(name for node in nodes for name in node.outputs)
        outputs = tuple([self._port(each) for each in proto.output])
        for each in outputs:
            if each.name not in known:
                raise self._refused(f"output '{each.name}' of {what} is defined nowhere")
        return OnnxGraph(self.texts.text(proto.name), tuple(ports), outputs, nodes, arrays)

    def nodes(self, protos: Iterable[Any], known: set[str], what: str, depth: int) -> tuple[OnnxNode, ...]:
        """Return nodes in an order in which each reads what is defined before it."""
        known = set(known)
        defined = {name for proto in protos for name in self.texts.all(proto.output) if name}
        around = frozenset(known | defined)
        found = [self._node(proto, depth, around) for proto in protos]
        once: set[str] = set(known)
        for node in found:
            for name in filter(None, node.outputs):
                if name in once and name in defined and name not in known:
                    raise self._refused(f"'{name}' is defined twice in {what}")
                once.add(name)
        return self._ordered(found, known, defined, what)

    def _ordered(
        self, nodes: Sequence[OnnxNode], known: set[str], defined: set[str], what: str
    ) -> tuple[OnnxNode, ...]:
        """Return nodes in order; files are to have them so, and some have not."""
        waiting: dict[str, list[int]] = {}  # the nodes that wait for a name
        missing = []
        for place, node in enumerate(nodes):
            wanted = reads(node) - known
            unknown = wanted - defined
            if unknown:
                shown = f"node {node} in {what} reads '{min(unknown)}'"
                raise self._refused(f"{shown}, which is defined nowhere")
            missing.append(len(wanted))
            for name in wanted:
                waiting.setdefault(name, []).append(place)
        ready = [place for place, count in enumerate(missing) if not count]
        heapify(ready)
        ordered: list[OnnxNode] = []
        while ready:
            node = nodes[heappop(ready)]
            ordered.append(node)
            for name in filter(None, node.outputs):
                for place in waiting.pop(name, ()):
                    missing[place] -= 1
                    if not missing[place]:
                        heappush(ready, place)
        if len(ordered) < len(nodes):
            rest = next(node for node, count in zip(nodes, missing, strict=True) if count)
            raise self._refused(f"nodes of {what} wait for one another, among them {rest}")
        return tuple(ordered)

    def _node(self, proto: Any, depth: int, around: frozenset[str]) -> OnnxNode:
        texts = self.texts
        operator = (texts.domain(proto.domain), texts.text(proto.op_type))
        attributes = {texts.text(each.name): self.attribute(each, depth, around) for each in proto.attribute}
        is_kept = operator not in _CONTROL  # a message keeps all of its model in memory
        graphs = {each.name: each for each in proto.attribute if is_kept and each.type in (_GRAPH, _GRAPHS)}
        inputs, outputs = texts.all(proto.input), texts.all(proto.output)
        version = self.opsets.get(operator[0], 0)
        return OnnxNode(operator, texts.text(proto.name), inputs, outputs, attributes, version, graphs)

    def attribute(self, proto: Any, depth: int, around: frozenset[str] = frozenset()) -> Any:
        """Return what an AttributeProto holds."""
        if proto.ref_attr_name:
            return Reference(self.texts.text(proto.ref_attr_name))
        read = self._READERS.get(proto.type)
        if read is not None:
            return read(self, proto)
        if proto.type == _GRAPH:
            return self.graph(proto.g, depth + 1, around)
        if proto.type == _GRAPHS:
            return tuple([self.graph(each, depth + 1, around) for each in proto.graphs])
        raise self._refused(f"attribute '{proto.name}' is of kind {proto.type}, which is none that is read")

    #: What reads attributes of each kind, but for graphs.
    _READERS: ClassVar[Mapping[int, Callable[[Any, Any], Any]]] = {
        _FLOAT: lambda _, proto: float(proto.f),
        _INT: lambda _, proto: int(proto.i),
        _STRING: lambda _, proto: proto.s.decode(errors="replace"),
        _TENSOR: lambda self, proto: self.tensors.array(proto.t),
        _FLOATS: lambda _, proto: tuple(map(float, proto.floats)),
        _INTS: lambda _, proto: tuple(map(int, proto.ints)),
        _STRINGS: lambda _, proto: tuple([each.decode(errors="replace") for each in proto.strings]),
        _TENSORS: lambda self, proto: tuple([self.tensors.array(each) for each in proto.tensors]),
        _SPARSE: lambda self, proto: self.tensors.sparse(proto.sparse_tensor),
        _TYPE: lambda self, proto: self._type("", proto.tp),
    }

    def _port(self, proto: Any) -> Port:
        return self._type(self.texts.text(proto.name), proto.type)

    def _type(self, name: str, proto: Any) -> Port:
        kind = proto.WhichOneof("value")
        if kind == "tensor_type":
            tensor = proto.tensor_type
            shape = None
            if tensor.HasField("shape"):
                shape = tuple([self._extent(each) for each in tensor.shape.dim])
            return Port(name, "tensor", self._dtype(tensor.elem_type), shape)
        if kind in ("sequence_type", "optional_type"):
            inner = self._type(name, getattr(proto, kind).elem_type)
            return Port(name, kind.removesuffix("_type"), inner.dtype, inner.shape)
        if kind is None:
            return Port(name)
        raise self._refused(f"'{name}' is of a {kind.replace('_', ' ')}, which is not read")

    def _dtype(self, number: int) -> np.dtype[Any] | None:
        found = dtype_of(number)
        if found is None and number:
            raise self._refused(f"a tensor has dtype number {number}, which ONNX does not have")
        return found

    def _extent(self, proto: Any) -> int | Extent:
        if proto.WhichOneof("value") != "dim_value":
            return Extent(self.texts.text(proto.dim_param))
        extent = int(proto.dim_value)
        if extent < 0:
            return Extent("")
        return extent

    def _refused(self, message: str) -> Exception:
        return unreadable(self.tensors.name, message)
