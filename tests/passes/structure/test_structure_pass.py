"""What the structured form of a program looks like, and what has none."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from mind_mlir import interpret, parse
from mind_mlir.diagnostics import UnsupportedError
from mind_mlir.passes.canonicalize import canonicalize
from mind_mlir.passes.structure import structure
from mind_mlir.passes.verify import verify


def structured(text: str) -> str:
    return str(verify(structure(verify(parse(dedent(text))))))


def test_a_loop_that_its_header_leaves_has_the_header_as_condition() -> None:
    text = """\
        func @main(%x: tensor<f32[2]>, %n: tensor<i64[]>) -> (tensor<f32[2]>) {
        ^entry:
          %zero = ConstI64 {value=0} : tensor<i64[]>
          br ^head(%x, %zero)
        ^head(%y: tensor<f32[2]>, %i: tensor<i64[]>):
          %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
          cond_br %more, ^body, ^done
        ^body:
          %z = Add (%y, %x) : tensor<f32[2]>
          %one = ConstI64 {value=1} : tensor<i64[]>
          %j = Add (%i, %one) : tensor<i64[]>
          br ^head(%z, %j)
        ^done:
          return %y
        }
        """
    assert structured(text) == dedent(
        """\
        func @main(%x: tensor<f32[2]>, %n: tensor<i64[]>) -> (tensor<f32[2]>) {
        ^entry:
          %2 = ConstI64 {value=0} : tensor<i64[]>
          %3, %4 = While (%x, %2) : (tensor<f32[2]>, tensor<i64[]>) {
          ^condition(%5: tensor<f32[2]>, %6: tensor<i64[]>):
            %7 = Compare (%6, %n) {op=Less} : tensor<i1[]>
            yield %7, %5, %6
          ^body(%8: tensor<f32[2]>, %9: tensor<i64[]>):
            %10 = Add (%x, %8) : tensor<f32[2]>
            %11 = ConstI64 {value=1} : tensor<i64[]>
            %12 = Add (%9, %11) : tensor<i64[]>
            yield %10, %12
          }
          return %3
        }"""
    )


def test_a_loop_that_its_last_block_leaves_runs_in_the_condition() -> None:
    text = """\
        func @main(%x: tensor<f64[]>, %n: tensor<f64[]>) -> (tensor<f64[]>) {
        ^entry:
          br ^body(%x)
        ^body(%y: tensor<f64[]>):
          %z = Add (%y, %y) : tensor<f64[]>
          %far = Compare (%z, %n) {op=Greater} : tensor<i1[]>
          cond_br %far, ^done, ^body(%z)
        ^done:
          return %z
        }
        """
    assert structured(text) == dedent(
        """\
        func @main(%x: tensor<f64[]>, %n: tensor<f64[]>) -> (tensor<f64[]>) {
        ^entry:
          %2 = While (%x) : tensor<f64[]> {
          ^condition(%3: tensor<f64[]>):
            %4 = Add (%3, %3) : tensor<f64[]>
            %5 = Compare (%4, %n) {op=Greater} : tensor<i1[]>
            %6 = Not (%5) : tensor<i1[]>
            yield %6, %4
          ^body(%7: tensor<f64[]>):
            yield %7
          }
          return %2
        }"""
    )


def test_branches_that_meet_become_one_operation_and_what_follows_stands_behind_it() -> None:
    text = """\
        func @main(%p: tensor<i1[]>, %x: tensor<f64[]>) -> (tensor<f64[]>) {
        ^entry:
          cond_br %p, ^double, ^meet(%x)
        ^double:
          %y = Add (%x, %x) : tensor<f64[]>
          br ^meet(%y)
        ^meet(%z: tensor<f64[]>):
          %r = Mul (%z, %z) : tensor<f64[]>
          return %r
        }
        """
    assert structured(text) == dedent(
        """\
        func @main(%p: tensor<i1[]>, %x: tensor<f64[]>) -> (tensor<f64[]>) {
        ^entry:
          %2 = Cond (%p) : tensor<f64[]> {
          ^then:
            %3 = Add (%x, %x) : tensor<f64[]>
            yield %3
          ^else:
            yield %x
          }
          %4 = Mul (%2, %2) : tensor<f64[]>
          return %4
        }"""
    )


CROSSING = """\
func @main(%p: tensor<i1[]>, %q: tensor<i1[]>, %x: tensor<f64[]>) -> (tensor<f64[]>) {
^entry:
  cond_br %p, ^a, ^b
^a:
  %ya = Add (%x, %x) : tensor<f64[]>
  cond_br %q, ^c(%ya), ^d
^b:
  %yb = Mul (%x, %x) : tensor<f64[]>
  cond_br %q, ^d, ^c(%yb)
^c(%y: tensor<f64[]>):
  %w = Sub (%y, %x) : tensor<f64[]>
  return %w
^d:
  %v = Neg (%x) : tensor<f64[]>
  return %v
}
"""


def test_branches_that_lead_to_two_places_say_to_which() -> None:
    assert structured(CROSSING) == dedent(
        """\
        func @main(%p: tensor<i1[]>, %q: tensor<i1[]>, %x: tensor<f64[]>) -> (tensor<f64[]>) {
        ^entry:
          %3, %4 = Cond (%p) : (tensor<i1[]>, tensor<f64[]>) {
          ^then:
            %5 = Add (%x, %x) : tensor<f64[]>
            %6 = Not (%q) : tensor<i1[]>
            yield %6, %5
          ^else:
            %7 = Mul (%x, %x) : tensor<f64[]>
            yield %q, %7
          }
          %8 = Cond (%3) : tensor<f64[]> {
          ^then:
            %9 = Neg (%x) : tensor<f64[]>
            yield %9
          ^else:
            %10 = Sub (%4, %x) : tensor<f64[]>
            yield %10
          }
          return %8
        }"""
    )


def test_operations_are_written_once_whatever_the_graph() -> None:
    text = structured(CROSSING)
    assert [text.count(f" = {opcode} ") for opcode in ("Add", "Mul", "Sub", "Neg")] == [1, 1, 1, 1]


IRREDUCIBLE = """\
func @main(%p: tensor<i1[]>, %x: tensor<f64[]>, %n: tensor<i64[]>) -> (tensor<f64[]>, tensor<i64[]>) {
^entry:
  cond_br %p, ^a(%x, %n), ^b(%x, %n)
^a(%y: tensor<f64[]>, %i: tensor<i64[]>):
  %y2 = Add (%y, %x) : tensor<f64[]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  %i2 = Sub (%i, %one) : tensor<i64[]>
  br ^b(%y2, %i2)
^b(%z: tensor<f64[]>, %j: tensor<i64[]>):
  %z2 = Mul (%z, %x) : tensor<f64[]>
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %more = Compare (%j, %zero) {op=Greater} : tensor<i1[]>
  cond_br %more, ^a(%z2, %j), ^done
^done:
  return %z2, %j
}
"""


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_loop_with_two_entries_starts_with_the_right_one(flag: bool, count: int) -> None:
    module = verify(structure(parse(IRREDUCIBLE)))
    (loop,) = [op for op in module.functions["main"].entry.operations if op.opcode == "While"]
    assert len(loop.regions) == 2
    arguments = {"p": np.array(flag), "x": np.array(1.5), "n": np.array(count)}
    value, left, at_first = 1.5, count, flag
    while True:
        if at_first:
            value, left = value + 1.5, left - 1
        value, at_first = value * 1.5, True
        if left <= 0:
            break
    assert [float(each) for each in interpret(module, arguments)] == [value, left]


def test_several_exits_lead_where_they_led() -> None:
    text = """\
        func @main(%x: tensor<i64[]>, %n: tensor<i64[]>) -> (tensor<i64[]>, tensor<i64[]>) {
        ^entry:
          %one = ConstI64 {value=1} : tensor<i64[]>
          %seven = ConstI64 {value=7} : tensor<i64[]>
          br ^head(%x)
        ^head(%i: tensor<i64[]>):
          %end = Compare (%i, %n) {op=Equal} : tensor<i1[]>
          cond_br %end, ^whole, ^body
        ^body:
          %j = Add (%i, %one) : tensor<i64[]>
          %lucky = Compare (%j, %seven) {op=Equal} : tensor<i1[]>
          cond_br %lucky, ^found, ^head(%j)
        ^found:
          %k = Mul (%j, %j) : tensor<i64[]>
          return %k, %i
        ^whole:
          return %i, %n
        }
        """
    module = verify(structure(parse(dedent(text))))

    def run(x: int, n: int) -> tuple[int, ...]:
        return tuple(int(a) for a in interpret(module, {"x": np.array(x), "n": np.array(n)}))

    assert run(3, 5) == (5, 5)
    assert run(3, 9) == (49, 6)
    assert run(8, 8) == (8, 8)


def test_a_loop_that_hands_on_a_new_state_or_leaves_with_the_old_one_carries_one() -> None:
    text = """\
        func @main(%x: tensor<f64[4]>, %p: tensor<i1[]>, %n: tensor<i64[]>) -> (tensor<f64[4]>) {
        ^entry:
          %zero = ConstI64 {value=0} : tensor<i64[]>
          %one = ConstI64 {value=1} : tensor<i64[]>
          br ^head(%x, %zero)
        ^head(%a: tensor<f64[4]>, %i: tensor<i64[]>):
          %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
          cond_br %more, ^body, ^old
        ^body:
          %b = Add (%a, %x) : tensor<f64[4]>
          %j = Add (%i, %one) : tensor<i64[]>
          cond_br %p, ^head(%b, %j), ^new
        ^new:
          return %b
        ^old:
          return %a
        }
        """
    assert structured(text) == dedent(
        """\
        func @main(%x: tensor<f64[4]>, %p: tensor<i1[]>, %n: tensor<i64[]>) -> (tensor<f64[4]>) {
        ^entry:
          %3 = ConstI64 {value=0} : tensor<i64[]>
          %4 = ConstI64 {value=1} : tensor<i64[]>
          %5, %6 = While (%x, %3) : (tensor<f64[4]>, tensor<i64[]>) {
          ^condition(%7: tensor<f64[4]>, %8: tensor<i64[]>):
            %9 = Compare (%8, %n) {op=Less} : tensor<i1[]>
            %10, %11, %12 = Cond (%9) : (tensor<i1[]>, tensor<f64[4]>, tensor<i64[]>) {
            ^then:
              %13 = Add (%x, %7) : tensor<f64[4]>
              %14 = Add (%4, %8) : tensor<i64[]>
              yield %p, %13, %14
            ^else:
              %15 = ConstTensor {dtype=i1, shape=[], value=false} : tensor<i1[]>
              %16 = ConstI64 {value=0} : tensor<i64[]>
              yield %15, %7, %16
            }
            yield %10, %11, %12
          ^body(%17: tensor<f64[4]>, %18: tensor<i64[]>):
            yield %17, %18
          }
          return %5
        }"""
    )


def test_operations_with_regions_stay_beside_blocks() -> None:
    text = """\
        func @main(%p: tensor<i1[]>, %x: tensor<f64[]>) -> (tensor<f64[]>) {
        ^entry:
          %y = Cond (%p) : tensor<f64[]> {
          ^then:
            %a = Add (%x, %x) : tensor<f64[]>
            yield %a
          ^else:
            yield %x
          }
          cond_br %p, ^one, ^two
        ^one:
          return %y
        ^two:
          return %x
        }
        """
    assert structured(text) == dedent(
        """\
        func @main(%p: tensor<i1[]>, %x: tensor<f64[]>) -> (tensor<f64[]>) {
        ^entry:
          %2 = Cond (%p) : tensor<f64[]> {
          ^then:
            %3 = Add (%x, %x) : tensor<f64[]>
            yield %3
          ^else:
            yield %x
          }
          %4 = Cond (%p) : tensor<f64[]> {
          ^then:
            yield %2
          ^else:
            yield %x
          }
          return %4
        }"""
    )


def test_inputs_of_a_flat_module_become_parameters() -> None:
    module = canonicalize(
        parse('%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Neg (%0) : tensor<f32[2]>\noutputs: %1')
    )
    (function,) = structure(module).functions
    (parameter,) = function.parameters
    assert (parameter.value_id, parameter.name) == (0, "x")
    assert function.entry.operations == module.operations[1:]
    assert structure(module).profile == "core-v1"


def test_values_are_called_what_the_program_calls_them() -> None:
    module = structure(parse(IRREDUCIBLE))
    labels = {op.label for op in module.functions["main"].entry.operations[0].regions[0].operations}
    inner = {
        op.label
        for outer in module.functions["main"].entry.operations[0].regions[0].operations
        for region in outer.regions
        for op in region.operations
    }
    assert {"%y2", "%i2", "%z2", "%more"} <= labels | inner


# What has no structured form


def returns(count: int) -> str:
    """Return a function that leaves in many places; each test is within the branch of the one before it."""
    tests = "".join(f"^t{i}:\n  cond_br %p, ^t{i + 1}, ^r{i}\n^r{i}:\n  return %v{i}\n" for i in range(count))
    values = "".join(f"  %v{i} = ConstI64 {{value={i}}} : tensor<i64[]>\n" for i in range(count + 1))
    head = f"func @main(%p: tensor<i1[]>) -> (tensor<i64[]>) {{\n^entry:\n{values}  br ^t0\n"
    return f"{head}{tests}^t{count}:\n  return %v{count}\n}}\n"


def test_branches_nest_to_a_limit() -> None:
    module = structure(parse(returns(64)))
    assert [int(each) for each in interpret(module, {"p": np.array(True)})] == [64]
    with pytest.raises(UnsupportedError) as raised:
        structure(parse(returns(65)))
    assert [finding.code for finding in raised.value.diagnostics] == ["E7004"]


def test_what_nests_far_too_deeply_is_refused_soon() -> None:
    with pytest.raises(UnsupportedError, match="E7004"):
        structure(parse(returns(3000)))


# Calls


def calls(size: int, times: int, head: str = "internal func") -> str:
    body = "".join(f"  %b{i + 1} = Mul (%b{i}, %a) : tensor<f32[]>\n" for i in range(size))
    uses = "".join(f"  %y{i + 1} = call @f (%y{i}) : tensor<f32[]>\n" for i in range(times))
    return (
        f"func @main(%y0: tensor<f32[]>) -> (tensor<f32[]>) {{\n^entry:\n{uses}  return %y{times}\n}}\n"
        f"{head} @f(%a: tensor<f32[]>) -> (tensor<f32[]>) {{\n"
        f"^entry:\n  %b0 = Exp (%a) : tensor<f32[]>\n{body}  return %b{size}\n}}\n"
    )


@pytest.mark.parametrize(
    ("size", "times", "head", "names"),
    [
        (15, 2, "internal func", ["main"]),
        (16, 2, "internal func", ["main", "f"]),
        (40, 1, "internal func", ["main"]),
        (40, 1, "func", ["main", "f"]),
        (15, 2, "func", ["main", "f"]),
    ],
)
def test_small_functions_and_those_called_once_take_the_place_of_calls(
    size: int, times: int, head: str, names: list[str]
) -> None:
    module = parse(calls(size, times, head))
    result = structure(module)
    assert [function.name for function in verify(result).functions] == names
    opcodes = [op.opcode for op in result.functions["main"].entry.operations]
    is_inlined = names == ["main"] or size < 16
    assert opcodes.count("Call") == (0 if is_inlined else times)
    assert opcodes.count("Exp") == (times if is_inlined else 0)
    arguments = {"y0": np.array(0.1, np.float32)}
    assert interpret(result, arguments) == interpret(module, arguments)


def test_calls_of_calls_do_not_grow_without_bound() -> None:
    functions = [
        "internal func @f0(%a: tensor<f32[]>) -> (tensor<f32[]>) {\n^entry:\n"
        "  %b = Exp (%a) : tensor<f32[]>\n  return %b\n}"
    ]
    functions += [
        f"internal func @f{index}(%a: tensor<f32[]>) -> (tensor<f32[]>) {{\n^entry:\n"
        f"  %b = call @f{index - 1} (%a) : tensor<f32[]>\n"
        f"  %c = call @f{index - 1} (%b) : tensor<f32[]>\n  return %c\n}}"
        for index in range(1, 30)
    ]
    functions[-1] = functions[-1].removeprefix("internal ")
    module = structure(parse("\n".join(functions)))
    assert sum(len(function.entry.operations) for function in module.functions) < 200


#: Blocks of loops with several entries, and exits of which one leads to where several meet; 10 returns.
_TANGLED = ((9, 9), (5, 3), (3, 10), (4, 2), (5, 1), (6, 10), (7, 7), (8, 10), (9, 4), (10, 4))


def test_exits_that_a_multiplexer_joins() -> None:
    """Each block does ``x = 3 x + number``, uses up fuel, and takes its second way while there is some."""
    state, other = "tensor<i64[]>", "tensor<f64[]>"
    text = f"""func @main(%fuel: {state}, %x: {state}, %y: {other}) -> ({state}, {other}) {{
^entry:
  br ^b0(%fuel, %x)
"""
    for number, (spent, going) in enumerate(_TANGLED):
        f, x = f"%f{number}", f"%x{number}"
        text += f"""^b{number}({f}: {state}, {x}: {state}):
  {x}a = ConstI64 {{value=3}} : {state}
  {x}b = Mul ({x}, {x}a) : {state}
  {x}c = ConstI64 {{value={number + 1}}} : {state}
  {x}d = Add ({x}b, {x}c) : {state}
  {f}a = ConstI64 {{value=1}} : {state}
  {f}b = Sub ({f}, {f}a) : {state}
  {f}c = ConstI64 {{value=0}} : {state}
  {f}d = Compare ({f}b, {f}c) {{op=Greater}} : tensor<i1[]>
  cond_br {f}d, ^b{going}({f}b, {x}d), ^b{spent}({f}b, {x}d)
"""
    module = parse(f"{text}^b10(%f10: {state}, %x10: {state}):\n  return %x10, %y\n}}\n")
    y = np.float64(2.5)
    for fuel in range(-1, 14):
        number, left, block = 0, fuel, 0
        while block < len(_TANGLED):
            number, left, block = 3 * number + block + 1, left - 1, _TANGLED[block][left > 1]
        found = interpret(module, {"fuel": np.int64(fuel), "x": np.int64(0), "y": y})
        assert found == (number, y)
