"""E40xx: the structure of a module, and the constraints of single operations. E41xx: profiles."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, Sample, bodies, function, in_python

_X = '%0 = Input {name="x"} : tensor<f32[2, 3]>\n'
_IMAGE = '%0 = Input {name="x"} : tensor<f32[1, 4, 4, 3]>\n'
_FILTER = '%1 = Input {name="f"} : tensor<f32[1, 1, 3, 2]>\n'
_CONV = "%2 = Conv2d (%0, %1) {{padding=Valid, strides={}}} : tensor<f32[1, {}, {}, 2]>\noutputs: %2\n"
_SLICE = "%1 = Slice (%0) {{ends=[2, {}], starts=[0, 0], steps={}}} : tensor<f32[2, {}]>\noutputs: %1\n"

ENTRIES = (
    CatalogueEntry(
        "E4001: operand used before, or without, a definition",
        "An operation reads only values that an instruction before it defines. Inputs may stand "
        "anywhere, but before their uses. A Builder takes only the values that it has made itself.",
        context=("instruction", "operand", "definition"),
        bad=_X + "%1 = Add (%0, %2) : tensor<f32[2, 3]>\n%2 = Neg (%0) : tensor<f32[2, 3]>\noutputs: %1\n",
        good=_X + "%2 = Neg (%0) : tensor<f32[2, 3]>\n%1 = Add (%0, %2) : tensor<f32[2, 3]>\noutputs: %1\n",
    ),
    CatalogueEntry(
        "E4002: value defined twice",
        "Every value id is defined by exactly one instruction.",
        context=("id", "places"),
        bad=_X + "%0 = Neg (%0) : tensor<f32[2, 3]>\noutputs: %0\n",
        good=_X + "%1 = Neg (%0) : tensor<f32[2, 3]>\noutputs: %1\n",
    ),
    CatalogueEntry(
        "E4003: output that does not exist",
        "The outputs line names values that instructions define.",
        context=("output", "id"),
        bad=_X + "outputs: %1\n",
        good=_X + "outputs: %0\n",
    ),
    CatalogueEntry(
        "E4004: invalid Input",
        "An input has a name that is not empty and that no other input has, a dtype of the "
        "profile, and positive extents.",
        context=("issue",),
        bad=_X + '%1 = Input {name="x"} : tensor<f32[3]>\noutputs: %0\n',
        good=_X + '%1 = Input {name="y"} : tensor<f32[3]>\noutputs: %0\n',
    ),
    CatalogueEntry(
        "E4005: constant data does not match its dtype",
        "Every number of a literal is a value of the declared dtype: integers in its range, no "
        "fractions in an integer tensor, no decimal beyond the largest float. Decimals are "
        "rounded to nearest. The same holds for numbers that Python passes to Builder.constant.",
        context=("id", "declared", "issue"),
        bad="%0 = ConstTensor {dtype=i32, shape=[2], value=[1, 2.5]} : tensor<i32[2]>\noutputs: %0\n",
        good="%0 = ConstTensor {dtype=f32, shape=[2], value=[1, 2.5]} : tensor<f32[2]>\noutputs: %0\n",
    ),
    CatalogueEntry(
        "E4006: Index list length differs from the rank",
        "Index picks one element, so it takes one index per dimension. Slice picks a part.",
        context=("id", "rank", "length"),
        bad=_X + "%1 = Index (%0) {indices=[1]} : tensor<f32[]>\noutputs: %1\n",
        good=_X + "%1 = Index (%0) {indices=[1, 2]} : tensor<f32[]>\noutputs: %1\n",
        surface=bodies("f(x: Tensor<f32, [2, 3]>) -> f32", "x[1, 2, 0]", "x[1, 2]"),
    ),
    CatalogueEntry(
        "E4007: Slice lists differ from the rank in length",
        "Slice takes a start, an end and a step for every dimension.",
        context=("id", "rank", "lengths"),
        bad=_X + _SLICE.format(3, "[1]", 3),
        good=_X + _SLICE.format(3, "[1, 1]", 3),
    ),
    CatalogueEntry(
        "E4008: Slice step zero",
        "A step of 0 would never reach the end of its range.",
        context=("id", "dimension"),
        bad=_X + _SLICE.format(3, "[1, 0]", 3),
        good=_X + _SLICE.format(3, "[1, 2]", 2),
        surface=bodies("f(x: Tensor<f32, [8]>) -> Tensor<f32, [4]>", "x[::0]", "x[::2]"),
    ),
    CatalogueEntry(
        "E4009: Conv2d channels differ",
        "The input is [batch, height, width, channels] and the filter [height, width, channels "
        "in, channels out]: the two numbers of input channels are equal. A Convolution in groups has "
        "as many times the channels that its filter takes, and as many features for each group.",
        context=("value", "channels"),
        bad='%0 = Input {name="x"} : tensor<f32[1, 4, 4, 5]>\n' + _FILTER + _CONV.format("[1, 1]", 4, 4),
        good=_IMAGE + _FILTER + _CONV.format("[1, 1]", 4, 4),
        surface=Sample(
            function(
                "f(x: Tensor<f32, [1, 4, 4, 5]>, w: Tensor<f32, [1, 1, 3, 2]>) -> Tensor<f32, [1, 4, 4, 2]>",
                "conv2d(x, w, strides=[1, 1], padding=Same)",
            ),
            function(
                "f(x: Tensor<f32, [1, 4, 4, 3]>, w: Tensor<f32, [1, 1, 3, 2]>) -> Tensor<f32, [1, 4, 4, 2]>",
                "conv2d(x, w, strides=[1, 1], padding=Same)",
            ),
        ),
    ),
    CatalogueEntry(
        "E4010: Conv2d strides invalid",
        "The strides are two positive integers: the steps along height and width.",
        context=("value", "strides"),
        bad=_IMAGE + _FILTER + _CONV.format("[2, 0]", 2, 2),
        good=_IMAGE + _FILTER + _CONV.format("[2, 2]", 2, 2),
        surface=bodies(
            "f(x: Tensor<f32, [1, 4, 4, 3]>, w: Tensor<f32, [1, 1, 3, 2]>) -> Tensor<f32, [1, 2, 2, 2]>",
            "conv2d(x, w, strides=[2, 0], padding=Same)",
            "conv2d(x, w, strides=[2, 2], padding=Same)",
        ),
    ),
    CatalogueEntry(
        "E4011: Gather indices are not integers",
        "Indices are a tensor of i32 or i64.",
        context=("value", "dtype"),
        bad=_X
        + '%1 = Input {name="i"} : tensor<f32[4]>\n%2 = Gather (%0, %1) : tensor<f32[4, 3]>\noutputs: %2\n',
        good=_X
        + '%1 = Input {name="i"} : tensor<i64[4]>\n%2 = Gather (%0, %1) : tensor<f32[4, 3]>\noutputs: %2\n',
        surface=Sample(
            function("f(x: Tensor<f32, [2, 3]>, i: Tensor<f32, [4]>) -> Tensor<f32, [4, 3]>", "gather(x, i)"),
            function("f(x: Tensor<f32, [2, 3]>, i: Tensor<i64, [4]>) -> Tensor<f32, [4, 3]>", "gather(x, i)"),
        ),
    ),
    CatalogueEntry(
        "E4101: the module has no outputs",
        "A warning: nothing that the module computes can be seen, so all of it is removed.",
        bad=_X + "%1 = Neg (%0) : tensor<f32[2, 3]>\n",
        good=_X + "%1 = Neg (%0) : tensor<f32[2, 3]>\noutputs: %1\n",
    ),
    CatalogueEntry(
        "E4102: operation not allowed in the profile",
        "The profile leaves this operation out on purpose. Core v1 has no division: multiply by "
        "the reciprocal instead.",
        context=("operation", "profile"),
        bad=_X + "%1 = Div (%0, %0) : tensor<f32[2, 3]>\noutputs: %1\n",
        good=_X
        + "%1 = Reciprocal (%0) : tensor<f32[2, 3]>\n%2 = Mul (%0, %1) : tensor<f32[2, 3]>\noutputs: %2\n",
    ),
    in_python(
        "E4103: functions or blocks in a flat profile",
        "A module of profile core-v1 is one flat list of instructions.",
        context=("profile",),
        bad="""\
from mind_mlir.ir.module import Module
from mind_mlir.passes.verify import verify
flat = Module.flat([], [])
verify(Module(flat.functions * 2))
""",
        good="""\
from mind_mlir.ir.module import Module
from mind_mlir.passes.verify import verify
verify(Module.flat([], []))
""",
    ),
    CatalogueEntry(
        "E4104: value larger than any address space",
        "The bytes of a tensor can be counted in 63 bits; where it has no elements, those of its other "
        "extents can. The padded input of Conv2d counts as a tensor.",
        context=("type",),
        bad='%0 = Input {name="x"} : tensor<f32[4294967296, 4294967296]>\noutputs: %0\n',
        good='%0 = Input {name="x"} : tensor<f32[4096, 4096]>\noutputs: %0\n',
    ),
    in_python(
        "E4105: unknown profile",
        "The module names a set of rules that this compiler does not have.",
        context=("profile",),
        bad="""\
from mind_mlir.ir.module import Module
from mind_mlir.passes.verify import verify
verify(Module(Module.flat([], []).functions, profile="core-v2"))
""",
        good="""\
from mind_mlir.ir.module import Module
from mind_mlir.passes.verify import verify
verify(Module(Module.flat([], []).functions, profile="core-v1"))
""",
    ),
    CatalogueEntry(
        "E4106: rank above the limit",
        "Arguments and results are numpy arrays, which have at most 64 dimensions.",
        context=("rank",),
        bad=f'%0 = Input {{name="x"}} : tensor<f32[{", ".join("1" * 65)}]>\noutputs: %0\n',
        good='%0 = Input {name="x"} : tensor<f32[1, 1, 1]>\noutputs: %0\n',
    ),
    CatalogueEntry(
        "E4123: window larger than the tensor",
        "DynamicSlice takes, and DynamicUpdateSlice replaces, a window of a tensor, which is nowhere "
        "larger than that. Where it begins is a matter of the run, and moved until it fits. PTIR's Slice "
        "says where it begins and must fit as it is.",
        context=("operation", "window", "shape", "axis"),
        bad='%0 = Input {name="x"} : tensor<f32[3]>\n%1 = Input {name="i"} : tensor<i64[1]>\n'
        "%2 = DynamicSlice (%0, %1) {sizes=[4]} : tensor<f32[4]>\noutputs: %2\n",
        good='%0 = Input {name="x"} : tensor<f32[3]>\n%1 = Input {name="i"} : tensor<i64[1]>\n'
        "%2 = DynamicSlice (%0, %1) {sizes=[2]} : tensor<f32[2]>\noutputs: %2\n",
    ),
)
