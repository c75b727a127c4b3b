"""The canonical form of functions: what is left of blocks and regions, one rule a test."""

from __future__ import annotations

from textwrap import dedent

import pytest

from mind_mlir import canonicalize, parse


def check(given: str, expected: str) -> None:
    found = canonicalize(parse(dedent(given)))
    assert str(found) == dedent(expected).rstrip()
    assert canonicalize(found) == found


def test_values_are_numbered_and_blocks_labelled_in_their_order() -> None:
    check(
        """\
        func @main(%p: tensor<i1[]>, %x: tensor<f32[]>) -> (tensor<f32[]>) {
        ^start:
          cond_br %p, ^last, ^other
        ^meet(%r: tensor<f32[]>):
          %s = Mul (%r, %r) : tensor<f32[]>
          return %s
        ^other:
          %b = Neg (%x) : tensor<f32[]>
          br ^meet(%b)
        ^last:
          %a = Add (%x, %x) : tensor<f32[]>
          br ^meet(%a)
        }
        """,
        """\
        func @main(%p: tensor<i1[]>, %x: tensor<f32[]>) -> (tensor<f32[]>) {
        ^entry:
          cond_br %p, ^b1, ^b2
        ^b1:
          %2 = Add (%x, %x) : tensor<f32[]>
          br ^b3(%2)
        ^b2:
          %3 = Neg (%x) : tensor<f32[]>
          br ^b3(%3)
        ^b3(%4: tensor<f32[]>):
          %5 = Mul (%4, %4) : tensor<f32[]>
          return %5
        }
        """,
    )


def test_attributes_are_given_and_operands_ordered() -> None:
    check(
        """\
        func @main(%x: tensor<f32[2]>, %y: tensor<f32[2]>) -> (tensor<f32[]>) {
        ^entry:
          %a = Add (%y, %x) : tensor<f32[2]>
          %s = Sum (%a) {axes=[0]} : tensor<f32[]>
          return %s
        }
        """,
        """\
        func @main(%x: tensor<f32[2]>, %y: tensor<f32[2]>) -> (tensor<f32[]>) {
        ^entry:
          %2 = Add (%x, %y) : tensor<f32[2]>
          %3 = Sum (%2) {axes=[0], keepdims=false} : tensor<f32[]>
          return %3
        }
        """,
    )


def test_decided_branches_vanish_with_what_they_do_not_reach() -> None:
    check(
        """\
        func @main(%x: tensor<i64[]>) -> (tensor<i64[]>) {
        ^entry:
          %one = ConstI64 {value=1} : tensor<i64[]>
          %two = Add (%one, %one) : tensor<i64[]>
          %less = Compare (%one, %two) {op=Less} : tensor<i1[]>
          cond_br %less, ^then(%two), ^else
        ^then(%a: tensor<i64[]>):
          %b = Mul (%a, %x) : tensor<i64[]>
          br ^end(%b)
        ^else:
          %c = call @unused (%x) : tensor<i64[]>
          br ^end(%c)
        ^end(%r: tensor<i64[]>):
          return %r
        }
        internal func @unused(%x: tensor<i64[]>) -> (tensor<i64[]>) {
        ^entry:
          return %x
        }
        """,
        """\
        func @main(%x: tensor<i64[]>) -> (tensor<i64[]>) {
        ^entry:
          %1 = ConstI64 {value=2} : tensor<i64[]>
          %2 = Mul (%x, %1) : tensor<i64[]>
          return %2
        }
        """,
    )


def test_a_branch_with_one_target_is_none() -> None:
    check(
        """\
        func @main(%p: tensor<i1[]>, %x: tensor<i64[]>) -> (tensor<i64[]>) {
        ^entry:
          cond_br %p, ^end(%x), ^end(%x)
        ^end(%r: tensor<i64[]>):
          return %r
        }
        """,
        """\
        func @main(%p: tensor<i1[]>, %x: tensor<i64[]>) -> (tensor<i64[]>) {
        ^entry:
          return %x
        }
        """,
    )


def test_what_goes_around_a_loop_unchanged_or_for_itself_alone_is_not_passed() -> None:
    check(
        """\
        func @main(%x: tensor<f32[]>, %n: tensor<i64[]>) -> (tensor<f32[]>) {
        ^entry:
          %zero = ConstI64 {value=0} : tensor<i64[]>
          br ^outer(%x, %x, %zero, %n)
        ^outer(%a: tensor<f32[]>, %same: tensor<f32[]>, %unused: tensor<i64[]>, %i: tensor<i64[]>):
          %more = Compare (%i, %zero) {op=Greater} : tensor<i1[]>
          cond_br %more, ^inner(%a, %same), ^done
        ^inner(%b: tensor<f32[]>, %also: tensor<f32[]>):
          %c = Add (%b, %also) : tensor<f32[]>
          %far = Compare (%c, %also) {op=Greater} : tensor<i1[]>
          %next = Add (%unused, %i) : tensor<i64[]>
          %left = Add (%i, %zero) : tensor<i64[]>
          cond_br %far, ^outer(%c, %also, %next, %left), ^inner(%c, %also)
        ^done:
          return %a
        }
        """,
        """\
        func @main(%x: tensor<f32[]>, %n: tensor<i64[]>) -> (tensor<f32[]>) {
        ^entry:
          %2 = ConstI64 {value=0} : tensor<i64[]>
          br ^b1(%x, %n)
        ^b1(%3: tensor<f32[]>, %4: tensor<i64[]>):
          %5 = Compare (%4, %2) {op=Greater} : tensor<i1[]>
          cond_br %5, ^b2(%3), ^b3
        ^b2(%6: tensor<f32[]>):
          %7 = Add (%x, %6) : tensor<f32[]>
          %8 = Compare (%7, %x) {op=Greater} : tensor<i1[]>
          %9 = Add (%2, %4) : tensor<i64[]>
          cond_br %8, ^b1(%7, %9), ^b2(%7)
        ^b3:
          return %3
        }
        """,
    )


def test_results_of_branches_that_nobody_reads_go_with_what_they_need() -> None:
    check(
        """\
        func @main(%p: tensor<i1[]>, %x: tensor<f32[]>) -> (tensor<f32[]>) {
        ^entry:
          %a, %b, %c = Cond (%p) : (tensor<f32[]>, tensor<f32[]>, tensor<f32[]>) {
          ^then:
            %d = Exp (%x) : tensor<f32[]>
            %e = Neg (%x) : tensor<f32[]>
            yield %d, %e, %x
          ^else:
            yield %x, %x, %x
          }
          %r = Add (%b, %c) : tensor<f32[]>
          return %r
        }
        """,
        """\
        func @main(%p: tensor<i1[]>, %x: tensor<f32[]>) -> (tensor<f32[]>) {
        ^entry:
          %2 = Cond (%p) : tensor<f32[]> {
          ^then:
            %3 = Neg (%x) : tensor<f32[]>
            yield %3
          ^else:
            yield %x
          }
          %4 = Add (%x, %2) : tensor<f32[]>
          return %4
        }
        """,
    )


def test_a_decided_cond_is_the_region_that_runs() -> None:
    check(
        """\
        func @main(%x: tensor<f32[]>) -> (tensor<f32[]>) {
        ^entry:
          %p = ConstTensor {dtype=i1, shape=[], value=false} : tensor<i1[]>
          %a = Cond (%p) : tensor<f32[]> {
          ^then:
            yield %x
          ^else:
            %e = Neg (%x) : tensor<f32[]>
            yield %e
          }
          %r = Add (%a, %a) : tensor<f32[]>
          return %r
        }
        """,
        """\
        func @main(%x: tensor<f32[]>) -> (tensor<f32[]>) {
        ^entry:
          %1 = Neg (%x) : tensor<f32[]>
          %2 = Add (%1, %1) : tensor<f32[]>
          return %2
        }
        """,
    )


def test_loops_carry_what_changes_and_is_needed() -> None:
    check(
        """\
        func @main(%x: tensor<f32[]>, %n: tensor<i64[]>) -> (tensor<f32[]>, tensor<f32[]>) {
        ^entry:
          %zero = ConstI64 {value=0} : tensor<i64[]>
          %a, %b, %c, %d = While (%x, %x, %zero, %x) \
              : (tensor<f32[]>, tensor<f32[]>, tensor<i64[]>, tensor<f32[]>) {
          ^condition(%e: tensor<f32[]>, %f: tensor<f32[]>, %g: tensor<i64[]>, %h: tensor<f32[]>):
            %more = Compare (%g, %n) {op=Less} : tensor<i1[]>
            yield %more, %e, %f, %g, %h
          ^body(%i: tensor<f32[]>, %j: tensor<f32[]>, %k: tensor<i64[]>, %l: tensor<f32[]>):
            %one = ConstI64 {value=1} : tensor<i64[]>
            %m = Add (%k, %one) : tensor<i64[]>
            %s = Mul (%i, %j) : tensor<f32[]>
            %t = Neg (%l) : tensor<f32[]>
            yield %s, %j, %m, %t
          }
          return %a, %b
        }
        """,
        """\
        func @main(%x: tensor<f32[]>, %n: tensor<i64[]>) -> (tensor<f32[]>, tensor<f32[]>) {
        ^entry:
          %2 = ConstI64 {value=0} : tensor<i64[]>
          %3, %4 = While (%x, %2) : (tensor<f32[]>, tensor<i64[]>) {
          ^condition(%5: tensor<f32[]>, %6: tensor<i64[]>):
            %7 = Compare (%6, %n) {op=Less} : tensor<i1[]>
            yield %7, %5, %6
          ^body(%8: tensor<f32[]>, %9: tensor<i64[]>):
            %10 = ConstI64 {value=1} : tensor<i64[]>
            %11 = Add (%9, %10) : tensor<i64[]>
            %12 = Mul (%x, %8) : tensor<f32[]>
            yield %12, %11
          }
          return %3, %x
        }
        """,
    )


def test_functions_that_no_exported_one_reaches_are_dropped() -> None:
    module = canonicalize(
        parse(
            dedent(
                """\
                internal func @c(%x: tensor<f32[]>) -> (tensor<f32[]>) {
                ^entry:
                  %y = call @d (%x) : tensor<f32[]>
                  return %y
                }
                internal func @d(%x: tensor<f32[]>) -> (tensor<f32[]>) {
                ^entry:
                  return %x
                }
                func @a(%x: tensor<f32[]>) -> (tensor<f32[]>) {
                ^entry:
                  %y = call @b (%x) : tensor<f32[]>
                  %z = call @c (%x) : tensor<f32[]>
                  return %y
                }
                internal func @b(%x: tensor<f32[]>) -> (tensor<f32[]>) {
                ^entry:
                  return %x
                }
                """
            )
        )
    )
    assert [function.name for function in module.functions] == ["a", "b"]


def test_operations_that_may_fail_are_not_folded() -> None:
    text = """\
        func @main(%x: tensor<i64[]>) -> (tensor<i64[]>) {
        ^entry:
          %a = ConstI64 {value=1} : tensor<i64[]>
          %b = ConstI64 {value=0} : tensor<i64[]>
          %c = Div (%a, %b) : tensor<i64[]>
          return %c
        }
        """
    module = canonicalize(parse(dedent(text)))
    assert [op.opcode for op in module.functions["main"].entry.operations] == ["ConstI64", "ConstI64", "Div"]


@pytest.mark.parametrize("count", [2000])
def test_long_chains_of_blocks_become_one(count: int) -> None:
    blocks = "".join(
        f"^b{i}(%x{i}: tensor<i64[]>):\n  %y{i} = Add (%x{i}, %n) : tensor<i64[]>\n  br ^b{i + 1}(%y{i})\n"
        for i in range(count)
    )
    text = (
        f"func @main(%n: tensor<i64[]>) -> (tensor<i64[]>) {{\n^entry:\n  br ^b0(%n)\n{blocks}"
        f"^b{count}(%r: tensor<i64[]>):\n  return %r\n}}\n"
    )
    (function,) = canonicalize(parse(text)).functions
    assert len(function.blocks) == 1
    assert len(function.entry.operations) == count
