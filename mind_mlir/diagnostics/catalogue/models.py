"""E1120 and E2420: models of ONNX."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import in_python

_SUM = """\
import onnx
import mind_mlir
mind_mlir.from_onnx(onnx.parser.parse_model('''
<ir_version: 10, opset_import: ["": 20]>
sum (float[2] x) => (float[2] y) {{ y = Add(x, {}) }}
'''))
"""
_PRODUCT = """\
import numpy as np
import onnx
import mind_mlir
model = mind_mlir.from_onnx(onnx.parser.parse_model('''
<ir_version: 10, opset_import: ["": 20]>
product (float[m, k] x, float[l, n] w) => (float[m, n] y) { y = MatMul(x, w) }
'''))
x = np.ones((2, 3), np.float32)
"""

ENTRIES = (
    in_python(
        "E1120: not an ONNX model",
        "The bytes are no message of ONNX's format, or what they say breaks its rules: a node reads what is "
        "defined nowhere or defined only behind it, a tensor holds fewer numbers than its shape says, or its "
        "data lies in a file that is missing or outside of the model's folder.",
        bad=_SUM.format("w"),
        good=_SUM.format("x"),
    ),
    in_python(
        "E2420: a node of a model that breaks a rule of its operator",
        "The operands and attributes of a node in an ONNX model do not go together, for the shapes that the "
        "model is called with: the message names the node, and what its operator asks for.",
        context=("operation", "name"),
        bad=_PRODUCT + "model(x, np.ones((4, 5), np.float32))\n",
        good=_PRODUCT + "model(x, np.ones((3, 5), np.float32))\n",
    ),
)
