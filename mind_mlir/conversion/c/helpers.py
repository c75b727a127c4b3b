"""Functions that C lacks: arithmetic on integers that wraps, conversions that are always defined."""

from __future__ import annotations

from collections.abc import Iterable

_INTEGERS = {"i8": "8", "i16": "16", "i32": "32", "i64": "64"}
_FLOATS = {"f32": "float", "f64": "double"}
_CARRIERS = {"f32": "i32", "f64": "i64"}


def _integer(kind: str, bits: str) -> dict[str, str]:
    signed, unsigned = f"int{bits}_t", f"uint{bits}_t"
    wide = "uint64_t" if bits == "64" else "uint32_t"
    mask = int(bits) - 1

    def binary(name: str, expression: str, result: str = signed) -> tuple[str, str]:
        head = f"static inline {result} {name}_{kind}({signed} a, {signed} b)"
        return f"{name}_{kind}", f"{head} {{ return {expression}; }}"

    def unary(name: str, body: str) -> tuple[str, str]:
        return f"{name}_{kind}", f"static inline {signed} {name}_{kind}({signed} a) {{ {body} }}"

    def wrapped(operator: str) -> str:
        return f"({signed})({unsigned})(({wide})a {operator} ({wide})b)"

    least = f"INT{bits}_MIN"
    shift = f"(({unsigned})b & {mask}u)"
    zero_b = f"({unsigned})b == 0 ? 0 : ({signed})"
    count = f"int n = 0; for ({unsigned} u = ({unsigned})a; u; u >>= 1)"
    return dict(
        (
            binary("add", wrapped("+")),
            binary("sub", wrapped("-")),
            binary("mul", wrapped("*")),
            binary("div", f"b == 0 ? 0 : b == -1 ? ({signed})({unsigned})(0u - ({wide})a)"
                   " : " f"({signed})(a / b)"),
            binary("rem", f"b == 0 || b == -1 ? 0 : ({signed})(a % b)"),
            binary("floordiv", f"b == 0 ? 0 : b == -1 ? ({signed})({unsigned})(0u - ({wide})a)"
                   f" : ({signed})(a / b - (a % b != 0 && (a < 0) != (b < 0)))"),
            binary("ceildiv", f"b == 0 ? 0 : b == -1 ? ({signed})({unsigned})(0u - ({wide})a)"
                   f" : ({signed})(a / b + (a % b != 0 && (a < 0) == (b < 0)))"),
            binary("udiv", f"{zero_b}(({unsigned})a / ({unsigned})b)"),
            binary("urem", f"{zero_b}(({unsigned})a % ({unsigned})b)"),
            binary("shl", f"({signed})({unsigned})(({wide})a << {shift})"),
            binary("shru", f"({signed})(({unsigned})a >> {shift})"),
            binary("shrs", f"a < 0 ? ({signed})~(~a >> {shift}) : ({signed})(a >> {shift})"),
            binary("min", "a < b ? a : b"),
            binary("max", "a > b ? a : b"),
            binary("umin", f"({unsigned})a < ({unsigned})b ? a : b"),
            binary("umax", f"({unsigned})a > ({unsigned})b ? a : b"),
            unary("abs", f"return a < 0 && a != {least} ? ({signed})-a : a;"),
            unary("popcount", f"{count} {{ n += (int)(u & 1u); }} return ({signed})n;"),
            unary("clz", f"{count} {{ n++; }} return ({signed})({bits} - n);"),
            unary("ctz", f"int n = 0; for ({unsigned} u = ({unsigned})a; n < {bits} && !(u & 1u); u >>= 1) "
                         f"{{ n++; }} return ({signed})n;"),
        )
    )  # fmt: skip


def _float(kind: str, type_: str) -> dict[str, str]:
    suffix = "f" if kind == "f32" else ""

    def extreme(name: str, order: str, first: str, second: str) -> tuple[str, str]:
        head = f"static inline {type_} {name}_{kind}({type_} a, {type_} b)"
        tied = f"signbit(a) ? {first} : {second}"
        body = f"a != a ? a : b != b ? b : a {order} b ? a : b {order} a ? b : {tied}"
        return f"{name}_{kind}", f"{head} {{ return {body}; }}"

    found = dict(
        (
            extreme("maximum", ">", "b", "a"),
            extreme("minimum", "<", "a", "b"),
            (
                f"rsqrt_{kind}",
                f"static inline {type_} rsqrt_{kind}({type_} a) {{ return 1 / sqrt{suffix}(a); }}",
            ),
        )
    )
    for to, bits in _INTEGERS.items():
        low, high = f"-0x1p{int(bits) - 1}{suffix}", f"0x1p{int(bits) - 1}{suffix}"
        name = f"{to}_of_{kind}"
        body = f"a > {low} - 1 && a < {high} ? (int{bits}_t)a : 0"
        if kind == "f32" or bits == "64":
            body = body.replace(f"> {low} - 1", f">= {low}")
        found[name] = f"static inline int{bits}_t {name}({type_} a) {{ return {body}; }}"
        name = f"u{to}_of_{kind}"
        body = f"a > -1 && a < 0x1p{bits}{suffix} ? (int{bits}_t)(uint{bits}_t)a : 0"
        found[name] = f"static inline int{bits}_t {name}({type_} a) {{ return {body}; }}"
    carrier = _CARRIERS[kind]
    integer = f"int{_INTEGERS[carrier]}_t"
    for name, source, target in (
        (f"{carrier}_bits_of_{kind}", type_, integer),
        (f"{kind}_of_bits_{carrier}", integer, type_),
    ):
        body = f"{target} b; memcpy(&b, &a, sizeof b); return b;"
        found[name] = f"static inline {target} {name}({source} a) {{ {body} }}"
    return found


#: The text of each function, by its name.
HELPERS = {
    name: text
    for found in (
        *(_integer(kind, bits) for kind, bits in _INTEGERS.items()),
        *(_float(kind, type_) for kind, type_ in _FLOATS.items()),
    )
    for name, text in found.items()
}


def helper_lines(used: Iterable[str]) -> list[str]:
    """Return the definitions of the functions in ``used``, in the order of the table."""
    wanted = set(used)
    return [text for name, text in HELPERS.items() if name in wanted]
