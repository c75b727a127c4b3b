"""E41xx from E4107 on: functions, blocks, branches and regions (core-ir-page.md, "IR structure")."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, Sample, function, in_python


def _main(*lines: str, parameters: str = "%x: tensor<f32[2]>, %p: tensor<i1[]>", entry: str = "") -> str:
    """Return the text of a function with one result; ``lines`` are its statements and labels."""
    body = "\n".join(line if line.startswith("^") else f"  {line}" for line in lines)
    return f"func @main({parameters}) -> (tensor<f32[2]>) {{\n^entry:\n{entry}{body}\n}}\n"


_NEG = "%y = Neg (%x) : tensor<f32[2]>"
_CALL = "%y = call @f (%x) : tensor<f32[2]>"
_F = "internal func @f(%a: tensor<f32[2]>) -> (tensor<f32[2]>) {\n^entry:\n  return %a\n}\n"
_G = (
    "internal func @g(%a: tensor<f32[2]>, %b: tensor<f32[{}]>) -> (tensor<f32[2]>) {{\n"
    "^entry:\n  return %a\n}}\n"
)
_CALLED = _main(_CALL, "return %y") + _F
_DIAMOND = ("cond_br %p, ^one, ^done(%x)", "^one:", _NEG, "br ^done(%y)")
_JOINED = _main(*_DIAMOND, "^done(%r: tensor<f32[2]>):", "return %r")
_COND = (
    "%r = Cond (%p) : tensor<f32[2]> {{",
    "^then:",
    "  %y = Neg (%x) : tensor<f32[2]>",
    "  yield {then}",
    "^else:",
    "  yield %x",
    "}}",
    "return {result}",
)


def _cond(then: str = "%y", result: str = "%r") -> str:
    lines = "\n".join(f"  {line}" for line in _COND).format(then=then, result=result)
    head = "func @main(%x: tensor<f32[2]>, %p: tensor<i1[]>) -> (tensor<f32[2]>) {"
    return f"{head}\n^entry:\n{lines}\n}}\n"


_NESTED = """\
from mind_mlir import DType, TensorType
from mind_mlir.ir.module import Block, CoreOperation, Function, Functions, Module, Parameter, Return, Yield
from mind_mlir.passes.verify import verify
F32, I1 = TensorType(DType.F32), TensorType(DType.I1)
inner = CoreOperation.create(2, "Neg", [0], {{}}, F32)
for value in range(3, {depth} + 3):
    regions = [Block([inner], Yield([value - 1]), label="then"), Block([], Yield([0]), label="else")]
    inner = CoreOperation.create(value, "Cond", [1], {{}}, F32, regions=regions)
parameters = [Parameter(0, F32, name="x"), Parameter(1, I1, name="p")]
entry = Block([inner], Return([inner.value_id]), parameters)
verify(Module(Functions([Function("main", [entry], result_types=[F32])]), "core-functions"))
"""


ENTRIES = (
    CatalogueEntry(
        "E4107: function defined twice",
        "Every function of a module has a name of its own, exported or internal.",
        context=("function",),
        bad=_CALLED + _F,
        good=_CALLED,
    ),
    CatalogueEntry(
        "E4108: branch to the entry block",
        "The first block of a function is entered by calls alone, with the arguments as its parameters. "
        "A loop begins in a block of its own.",
        context=("block",),
        bad=_main("br ^entry"),
        good=_main(
            "br ^head(%x)",
            "^head(%y: tensor<f32[2]>):",
            "cond_br %p, ^head(%y), ^done",
            "^done:",
            "return %y",
        ),
    ),
    CatalogueEntry(
        "E4109: label used twice",
        "Every block of a function has a label of its own. Other functions may use it again.",
        context=("block",),
        bad=_main("cond_br %p, ^one, ^one", "^one:", "return %x", "^one:", "return %x"),
        good=_main("cond_br %p, ^one, ^two", "^one:", "return %x", "^two:", "return %x"),
    ),
    CatalogueEntry(
        "E4110: branch to a block that does not exist",
        "Branches go to blocks of their own function.",
        context=("block", "function"),
        bad=_main("br ^done", "^end:", "return %x"),
        good=_main("br ^end", "^end:", "return %x"),
    ),
    CatalogueEntry(
        "E4111: block without its terminator",
        "A block of a function ends in return, br or cond_br, and the block of a region in yield: "
        "control never falls through to what stands below.",
        context=("block",),
        bad=_main(_NEG, "^done:", "return %x"),
        good=_main(_NEG, "br ^done", "^done:", "return %x"),
    ),
    CatalogueEntry(
        "E4112: statement after a terminator",
        "A return, br, cond_br or yield ends its block; what follows belongs to another one.",
        context=("terminator",),
        bad=_main("return %x", _NEG),
        good=_main(_NEG, "return %x"),
    ),
    CatalogueEntry(
        "E4113: branch does not match the block's parameters",
        "Every branch to a block passes one value for each of its parameters, of the declared type.",
        context=("block", "parameters", "arguments"),
        bad=_main("br ^done(%p)", "^done(%r: tensor<f32[2]>):", "return %r"),
        good=_main("br ^done(%x)", "^done(%r: tensor<f32[2]>):", "return %r"),
    ),
    CatalogueEntry(
        "E4114: condition is no scalar of i1",
        "What cond_br asks is a single truth value: a tensor<i1[]>.",
        context=("expected", "found"),
        bad=_main("cond_br %x, ^one, ^two", "^one:", "return %x", "^two:", "return %x"),
        good=_main("cond_br %p, ^one, ^two", "^one:", "return %x", "^two:", "return %x"),
    ),
    CatalogueEntry(
        "E4115: return does not match the signature",
        "Every return of a function gives one value for each declared result, of the declared type.",
        context=("function", "declared", "returned"),
        bad=_main("return %p"),
        good=_main("return %x"),
    ),
    CatalogueEntry(
        "E4116: value not visible",
        "A value can be read where every way from the entry leads through its definition: after it in "
        "the same block, and in the blocks that this block dominates. What a region defines can be read "
        "in that region alone. Block arguments and yields carry values to other places.",
        context=("operand", "definition", "block"),
        bad=_main("cond_br %p, ^one, ^done", "^one:", _NEG, "br ^done", "^done:", "return %y"),
        good=_JOINED,
    ),
    CatalogueEntry(
        "E4117: block that nothing reaches",
        "Every block can be reached from the entry of its function, by one branch after another.",
        context=("block", "function"),
        bad=_main("return %x", "^lost:", "return %x"),
        good=_main("return %x"),
    ),
    CatalogueEntry(
        "E4118: recursion",
        "No function calls itself, be it through others, and no region of a PTIR program runs itself: "
        "memory is planned before anything runs. Loops are branches to an earlier block, While or "
        "Scan; the surface language has while and for.",
        context=("cycle",),
        bad=_main("%y = call @main (%x, %p) : tensor<f32[2]>", "return %y"),
        good=_JOINED,
        surface=Sample(
            function("factorial(n: i64) -> i64", "if n < 2 { 1 } else { n * factorial(n - 1) }"),
            function(
                "factorial(n: i64) -> i64",
                "let r = 1;",
                "for i in range(n) {",
                "    r = r * (i + 1);",
                "}",
                "r",
            ),
        ),
    ),
    CatalogueEntry(
        "E4119: no exported function",
        "A module exports at least one function: what nobody can call computes nothing.",
        context=("functions",),
        bad=_F,
        good=_F.removeprefix("internal "),
    ),
    CatalogueEntry(
        "E4120: the regions are not those of the operation",
        "Cond has the regions ^then and ^else, While has ^condition and ^body, in this order, and "
        "Scan has ^body. No other operation has regions.",
        context=("operation", "expected", "found"),
        bad=_cond().replace("^else", "^otherwise"),
        good=_cond(),
    ),
    CatalogueEntry(
        "E4121: call of an unknown function",
        "A call names a function of its module, exported or internal, which may stand before or after "
        "it; so does the entry of a PTIR program.",
        context=("callee",),
        bad=_main(_CALL, "return %y"),
        good=_CALLED,
    ),
    CatalogueEntry(
        "E4122: control flow without a result",
        "A Cond, a While, a Scan and a call each have at least one result. Programs have no effects "
        "other than their results, so that without one they compute nothing.",
        context=("operation",),
        bad=_main(_CALL, "return %y")
        + _F.replace("(tensor<f32[2]>) {", "() {").replace("return %a", "return"),
        good=_CALLED,
    ),
    in_python(
        "E4124: function without blocks or signature",
        "A function has at least one block, and says which types its results have.",
        context=("function",),
        bad="""\
from mind_mlir.ir.module import Function, Functions, Module
from mind_mlir.passes.verify import verify
verify(Module(Functions([Function("f", (), result_types=())]), "core-functions"))
""",
        good="""\
from mind_mlir.ir.module import Block, Function, Functions, Module, Return
from mind_mlir.passes.verify import verify
verify(Module(Functions([Function("f", (Block((), Return(())),), result_types=())]), "core-functions"))
""",
    ),
    in_python(
        "E4125: regions nested too deep",
        "Regions hold operations with regions, down to 64 of them.",
        context=("limit",),
        bad=_NESTED.format(depth=65),
        good=_NESTED.format(depth=64),
    ),
    CatalogueEntry(
        "E4126: type that no parameter or result has",
        "The parameters of blocks and of internal functions and the results of functions are tensors of "
        "known extents, with a dtype of the profile. For the arguments of exported functions, see E4004.",
        context=("issue",),
        bad=_CALLED + _G.format("?N"),
        good=_CALLED + _G.format("3"),
    ),
    CatalogueEntry(
        "E4127: a loop without an exit",
        "From some block no return can be reached: a function that gets there never ends, and so has "
        "no results.",
        context=("block", "function"),
        bad=_main("br ^again", "^again:", "br ^again"),
        good=_main("cond_br %p, ^again, ^done", "^again:", "br ^done", "^done:", "return %x"),
    ),
)
