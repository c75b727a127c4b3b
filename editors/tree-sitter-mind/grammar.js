/**
 * The surface language of mind-mlir: docs/language-reference.md has the grammar that the compiler's reader takes.
 * tests/test_editor_grammars.py compares the keywords here with those of the reader, and parses all programs.
 */

/* global module, grammar, seq, choice, repeat, repeat1, optional, field, alias, token, prec */

// Rules are functions, which read no lists from elsewhere: tree-sitter runs this file on its own.
const PREC = { closure: -1, or: 1, and: 2, comparison: 3, sum: 4, product: 5, unary: 6, postfix: 7 };

function listOf(rule) {
  return optional(seq(rule, repeat(seq(",", rule)), optional(",")));
}

module.exports = grammar({
  name: "mind",

  extras: ($) => [/\s/, $.line_comment, $.block_comment],

  word: ($) => $.identifier,

  // What stands behind a name in a condition is a block, which may look like the fields of a struct for a while.
  conflicts: ($) => [[$._expression, $.struct_literal]],

  rules: {
    source_file: ($) => repeat($._item),

    _item: ($) => choice($.import_item, $.struct_item, $.type_item, $.function_item, $.let_statement, ";"),

    import_item: ($) =>
      seq(
        "import",
        field("module", $.identifier),
        optional(seq("::", choice(field("name", $.identifier), $.import_list))),
        ";",
      ),
    import_list: ($) => seq("{", listOf(field("name", $.identifier)), "}"),

    struct_item: ($) =>
      seq(
        optional("export"),
        "struct",
        field("name", alias($.identifier, $.type_identifier)),
        "{",
        listOf($.field_declaration),
        "}",
      ),
    field_declaration: ($) =>
      seq(field("name", alias($.identifier, $.field_identifier)), ":", field("type", $._type)),

    type_item: ($) =>
      seq(
        optional("export"),
        "type",
        field("name", alias($.identifier, $.type_identifier)),
        "=",
        field("type", $._type),
        ";",
      ),

    function_item: ($) =>
      seq(
        optional("export"),
        "fn",
        field("name", $.identifier),
        field("parameters", $.parameters),
        optional(seq("->", field("result", $._type))),
        field("body", $.block),
      ),
    parameters: ($) => seq("(", listOf($.parameter), ")"),
    parameter: ($) => seq(field("name", $.identifier), ":", field("type", $._type)),

    // Types

    _type: ($) => choice(alias($.identifier, $.type_identifier), $.tensor_type, $.tuple_type),
    tensor_type: ($) =>
      seq(
        "Tensor",
        "<",
        field("dtype", alias($.identifier, $.type_identifier)),
        ",",
        "[",
        listOf(choice(alias($.identifier, $.dimension), $.number)),
        "]",
        ">",
      ),
    tuple_type: ($) => seq("(", listOf($._type), ")"),

    // Statements

    block: ($) => seq("{", repeat($._statement), optional(field("value", $._expression)), "}"),

    _statement: ($) =>
      choice(
        $.let_statement,
        $.assignment,
        $.return_statement,
        $.while_statement,
        $.for_statement,
        $.function_item,
        $.expression_statement,
        ";",
      ),
    let_statement: ($) =>
      seq(
        "let",
        field("pattern", $._pattern),
        optional(seq(":", field("type", $._type))),
        "=",
        field("value", $._expression),
        ";",
      ),
    _pattern: ($) => choice($.identifier, $.tuple_pattern),
    tuple_pattern: ($) => seq("(", listOf($._pattern), ")"),
    assignment: ($) => seq(field("target", $.identifier), "=", field("value", $._expression), ";"),
    return_statement: ($) => seq("return", optional($._expression), ";"),
    while_statement: ($) =>
      seq("while", field("condition", $._expression), field("body", $.block)),
    for_statement: ($) =>
      seq(
        "for",
        field("variable", $.identifier),
        "in",
        field("iterable", $._expression),
        field("body", $.block),
      ),
    expression_statement: ($) =>
      choice(seq($._expression, ";"), prec(1, choice($.if_expression, $.block))),

    // Expressions

    _expression: ($) =>
      choice(
        $.identifier,
        $.number,
        $.string,
        $.boolean,
        $.list,
        $.tuple,
        $.parenthesized,
        $.struct_literal,
        $.unary_expression,
        $.binary_expression,
        $.call,
        $.index,
        $.field,
        $.closure,
        $.if_expression,
        $.block,
      ),

    list: ($) => seq("[", listOf($._expression), "]"),
    parenthesized: ($) => seq("(", $._expression, ")"),
    tuple: ($) =>
      seq("(", optional(seq($._expression, ",", listOf($._expression))), ")"),

    struct_literal: ($) =>
      seq(
        field("name", alias($.identifier, $.type_identifier)),
        "{",
        listOf($.field_value),
        "}",
      ),
    field_value: ($) =>
      choice(
        seq(field("name", alias($.identifier, $.field_identifier)), ":", field("value", $._expression)),
        alias($.identifier, $.shorthand),
      ),

    unary_expression: ($) => prec(PREC.unary, seq(field("operator", choice("-", "!")), $._expression)),
    binary_expression: ($) =>
      choice(
        ...[
          [PREC.or, "||"],
          [PREC.and, "&&"],
          [PREC.comparison, choice("<", "<=", ">", ">=", "==", "!=")],
          [PREC.sum, choice("+", "-")],
          [PREC.product, choice("*", "/")],
        ].map(([level, operator]) =>
          prec.left(
            level,
            seq(field("left", $._expression), field("operator", operator), field("right", $._expression)),
          ),
        ),
      ),

    call: ($) =>
      prec(PREC.postfix, seq(field("function", $._expression), field("arguments", $.arguments))),
    arguments: ($) => seq("(", listOf(choice($._expression, $.named_argument)), ")"),
    named_argument: ($) => seq(field("name", $.identifier), "=", field("value", $._expression)),

    index: ($) =>
      prec(
        PREC.postfix,
        seq(
          field("value", $._expression),
          "[",
          choice($._expression, $.slice),
          repeat(seq(",", choice($._expression, $.slice))),
          optional(","),
          "]",
        ),
      ),
    slice: ($) =>
      choice(
        seq(
          optional(field("start", $._expression)),
          ":",
          optional(field("end", $._expression)),
          optional(seq(":", optional(field("step", $._expression)))),
        ),
        seq(optional(field("start", $._expression)), "::", optional(field("step", $._expression))),
      ),
    field: ($) =>
      prec(
        PREC.postfix,
        seq(
          field("value", $._expression),
          ".",
          field("name", choice(alias($.identifier, $.field_identifier), alias(/[0-9]+/, $.tuple_index))),
        ),
      ),

    closure: ($) =>
      prec(
        PREC.closure,
        seq(choice("||", seq("|", listOf($.closure_parameter), "|")), field("body", $._expression)),
      ),
    closure_parameter: ($) => seq(field("name", $.identifier), optional(seq(":", field("type", $._type)))),

    if_expression: ($) =>
      prec.right(
        seq(
          "if",
          field("condition", $._expression),
          field("then", $.block),
          optional(seq("else", field("otherwise", choice($.block, $.if_expression)))),
        ),
      ),

    // Words

    boolean: () => choice("true", "false"),
    identifier: () => /[_\p{XID_Start}][_\p{XID_Continue}]*/,
    number: () =>
      token(
        choice(
          /0[xX][0-9a-fA-F](_?[0-9a-fA-F])*/,
          /0[bB][01](_?[01])*/,
          /0[oO][0-7](_?[0-7])*/,
          /[0-9](_?[0-9])*(\.([0-9](_?[0-9])*)?)?([eE][+-]?[0-9](_?[0-9])*)?/,
        ),
      ),
    string: ($) => seq('"', repeat(choice($.escape, token.immediate(/[^"\\\n]+/))), '"'),
    escape: () => token.immediate(/\\[nrt\\"]/),
    line_comment: () => token(seq("//", /[^\n]*/)),
    block_comment: () => token(seq("/*", /[^*]*\*+([^/*][^*]*\*+)*/, "/")),
  },
});
