"""E10xx: characters and words. E11xx: what the words make up."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import (
    CatalogueEntry,
    Sample,
    bodies,
    function,
    in_python,
    in_surface,
)

_INPUT = '%0 = Input {name="x"} : tensor<f32[2]>\n'

_PTIR = """\
from mind_mlir.languages.ptir import parse
parse('''{{{}"entry": "main", "functions": [
  {{"name": "main", "parameters": [], "parameter_ids": [], "results": [], "body": [], "result_ids": []}}
]}}''')
"""

ENTRIES = (
    in_python(
        "E1001: the source is not UTF-8",
        "Source files are UTF-8. The message gives the offset of the first byte that is not "
        "part of a well-formed character. An editor that saves in another encoding, or a binary "
        "file given by mistake, is the usual cause.",
        context=("byte_offset", "bytes"),
        bad="""\
from mind_mlir.languages.source import decode_source
decode_source(b'%0 = Input {name="caf\\xe9"} : tensor<f32[]>', "latin1.ir")
""",
        good="""\
from mind_mlir.languages.source import decode_source
decode_source('%0 = Input {name="caf\\u00e9"} : tensor<f32[]>'.encode(), "utf8.ir")
""",
    ),
    CatalogueEntry(
        "E1002: character that may not stand here",
        "Names consist of letters, digits and underscores and do not begin with a digit; a "
        "value is written % and a number or a name. Control characters in strings are written "
        "as escapes. Signs that only look like those of the language, such as a long dash or quotation "
        "marks of print, are no part of it.",
        context=("character",),
        bad=_INPUT + "%y@ = Neg (%0) : tensor<f32[2]>\noutputs: %0\n",
        good=_INPUT + "%y = Neg (%0) : tensor<f32[2]>\noutputs: %y\n",
        surface=bodies("f(x: f32) -> f32", "x @ 2.0", "x * 2.0"),
    ),
    CatalogueEntry(
        "E1003: string is not closed",
        'A string begins and ends with " on the same line; a line break inside it is written \\n.',
        bad='%0 = Input {name="x} : tensor<f32[2]>\noutputs: %0\n',
        good=_INPUT + "outputs: %0\n",
        surface=bodies(
            "f(x: Tensor<f32, [1, 4, 4, 1]>, w: Tensor<f32, [2, 2, 1, 1]>) -> Tensor<f32, [1, 4, 4, 1]>",
            'conv2d(x, w, strides=[1, 1], padding="Same)',
            "conv2d(x, w, strides=[1, 1], padding=Same)",
        ),
    ),
    CatalogueEntry(
        "E1004: unknown escape sequence",
        'The escapes of a string are \\n, \\r, \\t, \\\\, \\" and, in Core IR alone, \\u{...} with the '
        "hexadecimal number of a character.",
        context=("escape",),
        bad='%0 = Input {name="a\\d"} : tensor<f32[2]>\noutputs: %0\n',
        good='%0 = Input {name="a\\\\d"} : tensor<f32[2]>\noutputs: %0\n',
        surface=bodies(
            "f(x: Tensor<f32, [1, 4, 4, 1]>, w: Tensor<f32, [2, 2, 1, 1]>) -> Tensor<f32, [1, 4, 4, 1]>",
            'conv2d(x, w, strides=[1, 1], padding="Sa\\me")',
            "conv2d(x, w, strides=[1, 1], padding=Same)",
        ),
    ),
    CatalogueEntry(
        "E1005: malformed number",
        "Integers are decimal, or 0x, 0b and 0o with the digits of that base; floats have at "
        "most one point and one exponent; in Core IR, inf and nan are numbers too. Numbers outside "
        "literals fit 64 bits. In the surface language, single underscores may stand between digits, and "
        "no letter touches a number.",
        context=("text",),
        bad="%0 = ConstF32 {value=1.2.3} : tensor<f32[]>\noutputs: %0\n",
        good="%0 = ConstF32 {value=1.23} : tensor<f32[]>\noutputs: %0\n",
        surface=bodies("f() -> f32", "1.2.3", "1.23"),
    ),
    in_surface(
        "E1006: block comment is not closed",
        "In the surface language a block comment ends with */. The Core IR text has only line "
        "comments, which begin with # or //.",
        bad="/* the layer\nfn layer(x: Tensor<f32, [2]>) -> Tensor<f32, [2]> { relu(x) }\n",
        good="/* the layer */\nfn layer(x: Tensor<f32, [2]>) -> Tensor<f32, [2]> { relu(x) }\n",
    ),
    CatalogueEntry(
        "E1101: syntax error",
        "The text does not follow the grammar, of Core IR or of the surface language; the message says "
        "what was expected in that place. Every statement is read on its own, so all of them are "
        "reported at once.",
        bad=_INPUT + "%1 = Add (%0 %0) : tensor<f32[2]>\noutputs: %1\n",
        good=_INPUT + "%1 = Add (%0, %0) : tensor<f32[2]>\noutputs: %1\n",
        surface=Sample(
            function("f(x: f32) -> f32", "let y = (x + 1.0 * 2.0;", "y"),
            function("f(x: f32) -> f32", "let y = (x + 1.0) * 2.0;", "y"),
        ),
    ),
    CatalogueEntry(
        "E1102: unknown operation",
        "No operation has this name. Names are spelled as in the operation reference, with capitals.",
        context=("operation", "suggestion"),
        bad=_INPUT + "%1 = ReLU6 (%0) : tensor<f32[2]>\noutputs: %1\n",
        good=_INPUT + "%1 = Relu (%0) : tensor<f32[2]>\noutputs: %1\n",
    ),
    CatalogueEntry(
        "E1103: malformed attribute",
        "An attribute is missing, unknown to the operation, given twice, or not of its kind (a "
        "list of integers, a bool, ...). The help line says what the operation takes.",
        context=("operation",),
        bad=_INPUT + "%1 = Sum (%0) {axes=0, keepdims=false} : tensor<f32[]>\noutputs: %1\n",
        good=_INPUT + "%1 = Sum (%0) {axes=[0], keepdims=false} : tensor<f32[]>\noutputs: %1\n",
    ),
    CatalogueEntry(
        "E1104: unknown dtype",
        "The element types of Core v1 are i1, i32, i64, f32 and f64; PTIR has nineteen, from i1 to cf64.",
        context=("name",),
        bad='%0 = Input {name="x"} : tensor<float32[2]>\noutputs: %0\n',
        good=_INPUT + "outputs: %0\n",
    ),
    in_python(
        "E1105: program of another version of the contract",
        "A PTIR program says which version of the contract it follows. This compiler knows ptir.v0.4, "
        "which a missing or empty version stands for; what an operation means may differ in another.",
        context=("found", "expected"),
        bad=_PTIR.format('"spec_version": "ptir.v0.3", '),
        good=_PTIR.format('"spec_version": "ptir.v0.4", '),
    ),
    in_python(
        "E1106: the source cannot be read",
        "The file does not exist, is a directory, or may not be read; the message gives the "
        "reason the operating system gives.",
        context=("path", "reason"),
        bad='import mind_mlir\nmind_mlir.load("no/such/file.ir")\n',
        good='import mind_mlir\nmind_mlir.parse("%0 = Input {name=x} : tensor<f32[]>", "text")\n',
    ),
    CatalogueEntry(
        "E1107: more errors than are shown",
        "The last finding of a long list: it says how many errors were found beyond those that are "
        "shown. Reading and verifying keep the first 1,000 each; the command line prints as many as "
        "--error-limit says.",
        context=("omitted",),
    ),
    in_python(
        "E1108: not the form of a PTIR program",
        "A PTIR program in JSON has the objects, lists, numbers and strings that the format says, under "
        "the names that it gives, each of them once. The message begins with the path to what is wrong.",
        context=("path",),
        bad=_PTIR.format('"entrance": "main", '),
        good=_PTIR.format(""),
    ),
)
