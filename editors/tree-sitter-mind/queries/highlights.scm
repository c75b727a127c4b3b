; Written by editors/grammars.py from the compiler's own tables; do not edit.
; What stands further down counts more.

(identifier) @variable
["export" "let" "struct" "type"] @keyword
["fn"] @keyword.function
["import"] @keyword.import
["else" "if"] @keyword.conditional
["for" "in" "while"] @keyword.repeat
["return"] @keyword.return
["!" "!=" "&&" "*" "+" "-" "->" "/" "<" "<=" "=" "==" ">" ">=" "||"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," "." ":" "::" ";"] @punctuation.delimiter

[(line_comment) (block_comment)] @comment
(string) @string
(escape) @string.escape
(number) @number
(tuple_index) @number
(boolean) @boolean

(type_identifier) @type
((type_identifier) @type.builtin (#any-of? @type.builtin "i32" "i64" "f32" "f64" "bool" "unit"))
"Tensor" @type.builtin
(dimension) @variable.parameter

(field_identifier) @property
(shorthand) @property
(parameter name: (identifier) @variable.parameter)
(closure_parameter name: (identifier) @variable.parameter)
(named_argument name: (identifier) @variable.parameter)
(import_item module: (identifier) @module)
(function_item name: (identifier) @function)
(call function: (identifier) @function.call)
((identifier) @function.builtin (#any-of? @function.builtin "abs" "add" "all_gather" "all_reduce" "all_to_all" "and" "arg_sort" "argmax" "atan2" "axis_index" "bitcast" "broadcast_from" "broadcast_to" "cast" "cbrt" "ceil" "clamp" "compare" "complex" "concat" "conv2d" "convolution" "cos" "count_leading_zeros" "cumulate" "dequantize" "div" "dot" "dot_general" "dynamic_slice" "dynamic_update_slice" "erf" "exp" "expand_dims" "expm1" "extract_patches" "eye" "floor" "full" "gather" "gather_elements" "gather_windows" "grad" "imag" "index" "iota" "is_finite" "join_parts" "layer_norm" "log" "log1p" "logistic" "matmul" "max" "maximum" "mean" "min" "minimum" "mul" "neg" "not" "ones" "or" "pad" "population_count" "pow" "power" "print" "quantize" "quantized_dot" "real" "reciprocal" "reduce" "reduce_bits" "reduce_max" "reduce_min" "reduce_prod" "reduce_scatter" "reduce_window" "relu" "remainder" "requantize" "reshape" "rng_normal" "rng_uniform" "round" "round_even" "rsqrt" "scatter_add" "scatter_reduce" "scatter_windows" "segment_reduce" "select" "shard" "shift" "shift_left" "shift_right_arithmetic" "shift_right_logical" "sigmoid" "sign" "sin" "slice" "sqrt" "squeeze" "stop_gradient" "sub" "sum" "take" "take_part" "tan" "tanh" "tile" "top_k" "transpose" "value_and_grad" "vjp" "where" "xor" "zeros"))
