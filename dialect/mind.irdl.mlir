irdl.dialect @mind {
  irdl.operation @const_i64 {
    %attr_value_0 = irdl.base "#builtin.dense_typed_elements"
    %attr_value_1 = irdl.base "#builtin.array"
    %attr_value = irdl.any_of(%attr_value_0, %attr_value_1)
    irdl.attributes { "value" = %attr_value }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @const_f32 {
    %attr_value_0 = irdl.base "#builtin.dense_typed_elements"
    %attr_value_1 = irdl.base "#builtin.array"
    %attr_value = irdl.any_of(%attr_value_0, %attr_value_1)
    irdl.attributes { "value" = %attr_value }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @const_f64 {
    %attr_value_0 = irdl.base "#builtin.dense_typed_elements"
    %attr_value_1 = irdl.base "#builtin.array"
    %attr_value = irdl.any_of(%attr_value_0, %attr_value_1)
    irdl.attributes { "value" = %attr_value }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @const_tensor {
    %attr_value_0 = irdl.base "#builtin.dense_typed_elements"
    %attr_value_1 = irdl.base "#builtin.array"
    %attr_value = irdl.any_of(%attr_value_0, %attr_value_1)
    %attr_dtype = irdl.base "#builtin.type"
    %attr_shape = irdl.base "#builtin.dense_array"
    irdl.attributes { "value" = %attr_value, "dtype" = %attr_dtype, "shape" = %attr_shape }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @rng_uniform {
    %seed = irdl.base "!builtin.tensor"
    irdl.operands(seed: %seed)
    %attr_shape = irdl.base "#builtin.dense_array"
    %attr_dtype = irdl.base "#builtin.type"
    %attr_stream = irdl.base "#builtin.integer"
    irdl.attributes { "shape" = %attr_shape, "dtype" = %attr_dtype, "stream" = %attr_stream }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @rng_normal {
    %seed = irdl.base "!builtin.tensor"
    irdl.operands(seed: %seed)
    %attr_shape = irdl.base "#builtin.dense_array"
    %attr_dtype = irdl.base "#builtin.type"
    %attr_stream = irdl.base "#builtin.integer"
    irdl.attributes { "shape" = %attr_shape, "dtype" = %attr_dtype, "stream" = %attr_stream }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @add {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @sub {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @mul {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @neg {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @div {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @maximum {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @minimum {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @relu {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @exp {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @log {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @reciprocal {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @tanh {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @erf {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @rsqrt {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @sqrt {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @floor {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @ceil {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @round_even {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @round {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @sign {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @is_finite {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @log1p {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @expm1 {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @logistic {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @sin {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @cos {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @tan {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @atan2 {
    %y = irdl.base "!builtin.tensor"
    %x = irdl.base "!builtin.tensor"
    irdl.operands(y: %y, x: %x)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @power {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @cbrt {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @remainder {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @abs {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @clamp {
    %x = irdl.base "!builtin.tensor"
    %lo = irdl.base "!builtin.tensor"
    %hi = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, lo: %lo, hi: %hi)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @stop_gradient {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @compare {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %attr_op = irdl.base "#builtin.string"
    irdl.attributes { "op" = %attr_op }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @select {
    %pred = irdl.base "!builtin.tensor"
    %on_true = irdl.base "!builtin.tensor"
    %on_false = irdl.base "!builtin.tensor"
    irdl.operands(pred: %pred, on_true: %on_true, on_false: %on_false)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @and {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @or {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @xor {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @not {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @shift_left {
    %input = irdl.base "!builtin.tensor"
    %amount = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, amount: %amount)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @shift_right_logical {
    %input = irdl.base "!builtin.tensor"
    %amount = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, amount: %amount)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @shift_right_arithmetic {
    %input = irdl.base "!builtin.tensor"
    %amount = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, amount: %amount)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @population_count {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @count_leading_zeros {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @cast {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_dtype = irdl.base "#builtin.type"
    irdl.attributes { "dtype" = %attr_dtype }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @bitcast {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_dtype = irdl.base "#builtin.type"
    irdl.attributes { "dtype" = %attr_dtype }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @real {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @imag {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @complex {
    %real = irdl.base "!builtin.tensor"
    %imag = irdl.base "!builtin.tensor"
    irdl.operands(real: %real, imag: %imag)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @sum {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_axes = irdl.base "#builtin.dense_array"
    %attr_keepdims = irdl.base "#builtin.integer"
    irdl.attributes { "axes" = %attr_axes, "keepdims" = %attr_keepdims }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @mean {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_axes = irdl.base "#builtin.dense_array"
    %attr_keepdims = irdl.base "#builtin.integer"
    irdl.attributes { "axes" = %attr_axes, "keepdims" = %attr_keepdims }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @reduce {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_kind = irdl.base "#builtin.string"
    %attr_axes = irdl.base "#builtin.dense_array"
    %attr_keepdims = irdl.base "#builtin.integer"
    %attr_accum_dtype = irdl.base "#builtin.type"
    %attr_out_dtype = irdl.base "#builtin.type"
    irdl.attributes { "kind" = %attr_kind, "axes" = %attr_axes, "keepdims" = %attr_keepdims, "accum_dtype" = %attr_accum_dtype, "out_dtype" = %attr_out_dtype }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @reduce_prod {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_axes = irdl.base "#builtin.dense_array"
    %attr_keepdims = irdl.base "#builtin.integer"
    irdl.attributes { "axes" = %attr_axes, "keepdims" = %attr_keepdims }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @reduce_bits {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_axes = irdl.base "#builtin.dense_array"
    %attr_keepdims = irdl.base "#builtin.integer"
    %attr_kind = irdl.base "#builtin.string"
    irdl.attributes { "axes" = %attr_axes, "keepdims" = %attr_keepdims, "kind" = %attr_kind }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @cumulate {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_kind = irdl.base "#builtin.string"
    %attr_axis = irdl.base "#builtin.integer"
    %attr_exclusive = irdl.base "#builtin.integer"
    %attr_reverse = irdl.base "#builtin.integer"
    irdl.attributes { "kind" = %attr_kind, "axis" = %attr_axis, "exclusive" = %attr_exclusive, "reverse" = %attr_reverse }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @argmax {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_axis = irdl.base "#builtin.integer"
    %attr_keepdims = irdl.base "#builtin.integer"
    %attr_output_dtype = irdl.base "#builtin.type"
    irdl.attributes { "axis" = %attr_axis, "keepdims" = %attr_keepdims, "output_dtype" = %attr_output_dtype }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @top_k {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_k = irdl.base "#builtin.integer"
    %attr_axis = irdl.base "#builtin.integer"
    %attr_largest = irdl.base "#builtin.integer"
    %attr_indices_dtype = irdl.base "#builtin.type"
    irdl.attributes { "k" = %attr_k, "axis" = %attr_axis, "largest" = %attr_largest, "indices_dtype" = %attr_indices_dtype }
    %result_values = irdl.base "!builtin.tensor"
    %result_indices = irdl.base "!builtin.tensor"
    irdl.results(values: %result_values, indices: %result_indices)
  }
  irdl.operation @arg_sort {
    %key = irdl.base "!builtin.tensor"
    %keys = irdl.base "!builtin.tensor"
    irdl.operands(key: %key, keys: variadic %keys)
    %attr_axis = irdl.base "#builtin.integer"
    %attr_descending = irdl.base "#builtin.integer"
    %attr_total_order = irdl.base "#builtin.integer"
    %attr_indices_dtype = irdl.base "#builtin.type"
    irdl.attributes { "axis" = %attr_axis, "descending" = %attr_descending, "total_order" = %attr_total_order, "indices_dtype" = %attr_indices_dtype }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @reshape {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_new_shape = irdl.base "#builtin.dense_array"
    irdl.attributes { "new_shape" = %attr_new_shape }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @expand_dims {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_axes = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %attr_axes }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @squeeze {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_axes = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %attr_axes }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @transpose {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_permutation = irdl.base "#builtin.dense_array"
    irdl.attributes { "permutation" = %attr_permutation }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @broadcast_to {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_result_shape = irdl.base "#builtin.dense_array"
    irdl.attributes { "result_shape" = %attr_result_shape }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @concat {
    %input = irdl.base "!builtin.tensor"
    %inputs = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, inputs: variadic %inputs)
    %attr_axis = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %attr_axis }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @tile {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_repeats = irdl.base "#builtin.dense_array"
    irdl.attributes { "repeats" = %attr_repeats }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @iota {
    %attr_shape = irdl.base "#builtin.dense_array"
    %attr_dtype = irdl.base "#builtin.type"
    %attr_axis = irdl.base "#builtin.integer"
    irdl.attributes { "shape" = %attr_shape, "dtype" = %attr_dtype, "axis" = %attr_axis }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @index {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_indices = irdl.base "#builtin.dense_array"
    irdl.attributes { "indices" = %attr_indices }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @gather {
    %input = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, indices: %indices)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @take {
    %input = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, indices: %indices)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @gather_elements {
    %input = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, indices: %indices)
    %attr_axis = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %attr_axis }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @slice {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_starts = irdl.base "#builtin.dense_array"
    %attr_ends = irdl.base "#builtin.dense_array"
    %attr_steps = irdl.base "#builtin.dense_array"
    irdl.attributes { "starts" = %attr_starts, "ends" = %attr_ends, "steps" = %attr_steps }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @dynamic_slice {
    %input = irdl.base "!builtin.tensor"
    %start = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, start: %start)
    %attr_sizes = irdl.base "#builtin.dense_array"
    irdl.attributes { "sizes" = %attr_sizes }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @dynamic_update_slice {
    %operand = irdl.base "!builtin.tensor"
    %update = irdl.base "!builtin.tensor"
    %start = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, update: %update, start: %start)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @pad {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_low = irdl.base "#builtin.dense_array"
    %attr_high = irdl.base "#builtin.dense_array"
    %attr_interior = irdl.base "#builtin.dense_array"
    %attr_pad_value_0 = irdl.base "#builtin.dense_typed_elements"
    %attr_pad_value_1 = irdl.base "#builtin.array"
    %attr_pad_value = irdl.any_of(%attr_pad_value_0, %attr_pad_value_1)
    irdl.attributes { "low" = %attr_low, "high" = %attr_high, "interior" = %attr_interior, "pad_value" = %attr_pad_value }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @scatter_add {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    %attr_update_window_dims = irdl.base "#builtin.dense_array"
    %attr_inserted_window_dims = irdl.base "#builtin.dense_array"
    %attr_scatter_dims_to_operand_dims = irdl.base "#builtin.dense_array"
    %attr_index_vector_dim = irdl.base "#builtin.integer"
    %attr_from_end = irdl.base "#builtin.integer"
    irdl.attributes { "update_window_dims" = %attr_update_window_dims, "inserted_window_dims" = %attr_inserted_window_dims, "scatter_dims_to_operand_dims" = %attr_scatter_dims_to_operand_dims, "index_vector_dim" = %attr_index_vector_dim, "from_end" = %attr_from_end }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @scatter_reduce {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    %attr_axis = irdl.base "#builtin.integer"
    %attr_reduce = irdl.base "#builtin.string"
    irdl.attributes { "axis" = %attr_axis, "reduce" = %attr_reduce }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @gather_windows {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices)
    %attr_offset_dims = irdl.base "#builtin.dense_array"
    %attr_collapsed_slice_dims = irdl.base "#builtin.dense_array"
    %attr_operand_batching_dims = irdl.base "#builtin.dense_array"
    %attr_start_indices_batching_dims = irdl.base "#builtin.dense_array"
    %attr_start_index_map = irdl.base "#builtin.dense_array"
    %attr_index_vector_dim = irdl.base "#builtin.integer"
    %attr_slice_sizes = irdl.base "#builtin.dense_array"
    %attr_checked = irdl.base "#builtin.integer"
    irdl.attributes { "offset_dims" = %attr_offset_dims, "collapsed_slice_dims" = %attr_collapsed_slice_dims, "operand_batching_dims" = %attr_operand_batching_dims, "start_indices_batching_dims" = %attr_start_indices_batching_dims, "start_index_map" = %attr_start_index_map, "index_vector_dim" = %attr_index_vector_dim, "slice_sizes" = %attr_slice_sizes, "checked" = %attr_checked }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @scatter_windows {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    %attr_update_window_dims = irdl.base "#builtin.dense_array"
    %attr_inserted_window_dims = irdl.base "#builtin.dense_array"
    %attr_input_batching_dims = irdl.base "#builtin.dense_array"
    %attr_scatter_indices_batching_dims = irdl.base "#builtin.dense_array"
    %attr_scatter_dims_to_operand_dims = irdl.base "#builtin.dense_array"
    %attr_index_vector_dim = irdl.base "#builtin.integer"
    %attr_reduce = irdl.base "#builtin.string"
    %attr_checked = irdl.base "#builtin.integer"
    irdl.attributes { "update_window_dims" = %attr_update_window_dims, "inserted_window_dims" = %attr_inserted_window_dims, "input_batching_dims" = %attr_input_batching_dims, "scatter_indices_batching_dims" = %attr_scatter_indices_batching_dims, "scatter_dims_to_operand_dims" = %attr_scatter_dims_to_operand_dims, "index_vector_dim" = %attr_index_vector_dim, "reduce" = %attr_reduce, "checked" = %attr_checked }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @segment_reduce {
    %values = irdl.base "!builtin.tensor"
    %segment_ids = irdl.base "!builtin.tensor"
    irdl.operands(values: %values, segment_ids: %segment_ids)
    %attr_kind = irdl.base "#builtin.string"
    %attr_num_segments = irdl.base "#builtin.integer"
    %attr_accum_dtype = irdl.base "#builtin.type"
    %attr_indices_are_sorted = irdl.base "#builtin.integer"
    %attr_unique = irdl.base "#builtin.integer"
    irdl.attributes { "kind" = %attr_kind, "num_segments" = %attr_num_segments, "accum_dtype" = %attr_accum_dtype, "indices_are_sorted" = %attr_indices_are_sorted, "unique" = %attr_unique }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @quantize {
    %x = irdl.base "!builtin.tensor"
    %scale = irdl.base "!builtin.tensor"
    %zero_point = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, scale: %scale, zero_point: %zero_point)
    %attr_output_dtype = irdl.base "#builtin.type"
    %attr_axis = irdl.base "#builtin.dense_array"
    irdl.attributes { "output_dtype" = %attr_output_dtype, "axis" = %attr_axis }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @dequantize {
    %x = irdl.base "!builtin.tensor"
    %scale = irdl.base "!builtin.tensor"
    %zero_point = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, scale: %scale, zero_point: %zero_point)
    %attr_output_dtype = irdl.base "#builtin.type"
    %attr_axis = irdl.base "#builtin.dense_array"
    irdl.attributes { "output_dtype" = %attr_output_dtype, "axis" = %attr_axis }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @requantize {
    %x = irdl.base "!builtin.tensor"
    %in_scale = irdl.base "!builtin.tensor"
    %in_zero_point = irdl.base "!builtin.tensor"
    %out_scale = irdl.base "!builtin.tensor"
    %out_zero_point = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, in_scale: %in_scale, in_zero_point: %in_zero_point, out_scale: %out_scale, out_zero_point: %out_zero_point)
    %attr_output_dtype = irdl.base "#builtin.type"
    %attr_axis = irdl.base "#builtin.dense_array"
    irdl.attributes { "output_dtype" = %attr_output_dtype, "axis" = %attr_axis }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @quantized_dot {
    %x = irdl.base "!builtin.tensor"
    %weights = irdl.base "!builtin.tensor"
    %parameters = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, weights: %weights, parameters: variadic %parameters)
    %attr_format = irdl.base "#builtin.string"
    %attr_activations = irdl.base "#builtin.string"
    irdl.attributes { "format" = %attr_format, "activations" = %attr_activations }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @dot {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @matmul {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @dot_general {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %attr_batch_lhs = irdl.base "#builtin.dense_array"
    %attr_batch_rhs = irdl.base "#builtin.dense_array"
    %attr_contract_lhs = irdl.base "#builtin.dense_array"
    %attr_contract_rhs = irdl.base "#builtin.dense_array"
    %attr_accum_dtype = irdl.base "#builtin.type"
    %attr_out_dtype = irdl.base "#builtin.type"
    irdl.attributes { "batch_lhs" = %attr_batch_lhs, "batch_rhs" = %attr_batch_rhs, "contract_lhs" = %attr_contract_lhs, "contract_rhs" = %attr_contract_rhs, "accum_dtype" = %attr_accum_dtype, "out_dtype" = %attr_out_dtype }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @layer_norm {
    %x = irdl.base "!builtin.tensor"
    %gamma = irdl.base "!builtin.tensor"
    %beta = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, gamma: %gamma, beta: %beta)
    %attr_epsilon = irdl.base "#builtin.float"
    %attr_feature_axis = irdl.base "#builtin.integer"
    irdl.attributes { "epsilon" = %attr_epsilon, "feature_axis" = %attr_feature_axis }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @reduce_window {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_window_dims = irdl.base "#builtin.dense_array"
    %attr_strides = irdl.base "#builtin.dense_array"
    %attr_padding_low = irdl.base "#builtin.dense_array"
    %attr_padding_high = irdl.base "#builtin.dense_array"
    %attr_base_dilation = irdl.base "#builtin.dense_array"
    %attr_window_dilation = irdl.base "#builtin.dense_array"
    %attr_reduce = irdl.base "#builtin.string"
    %attr_accum_dtype = irdl.base "#builtin.type"
    irdl.attributes { "window_dims" = %attr_window_dims, "strides" = %attr_strides, "padding_low" = %attr_padding_low, "padding_high" = %attr_padding_high, "base_dilation" = %attr_base_dilation, "window_dilation" = %attr_window_dilation, "reduce" = %attr_reduce, "accum_dtype" = %attr_accum_dtype }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @extract_patches {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_window = irdl.base "#builtin.dense_array"
    %attr_strides = irdl.base "#builtin.dense_array"
    %attr_dilation = irdl.base "#builtin.dense_array"
    %attr_padding_low = irdl.base "#builtin.dense_array"
    %attr_padding_high = irdl.base "#builtin.dense_array"
    %attr_pad_value_0 = irdl.base "#builtin.dense_typed_elements"
    %attr_pad_value_1 = irdl.base "#builtin.array"
    %attr_pad_value = irdl.any_of(%attr_pad_value_0, %attr_pad_value_1)
    irdl.attributes { "window" = %attr_window, "strides" = %attr_strides, "dilation" = %attr_dilation, "padding_low" = %attr_padding_low, "padding_high" = %attr_padding_high, "pad_value" = %attr_pad_value }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @conv2d {
    %input = irdl.base "!builtin.tensor"
    %filter = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, filter: %filter)
    %attr_strides = irdl.base "#builtin.dense_array"
    %attr_padding_0 = irdl.base "#builtin.string"
    %attr_padding_1 = irdl.base "#builtin.dense_array"
    %attr_padding = irdl.any_of(%attr_padding_0, %attr_padding_1)
    irdl.attributes { "strides" = %attr_strides, "padding" = %attr_padding }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @convolution {
    %input = irdl.base "!builtin.tensor"
    %filter = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, filter: %filter)
    %attr_strides = irdl.base "#builtin.dense_array"
    %attr_padding_low = irdl.base "#builtin.dense_array"
    %attr_padding_high = irdl.base "#builtin.dense_array"
    %attr_base_dilation = irdl.base "#builtin.dense_array"
    %attr_window_dilation = irdl.base "#builtin.dense_array"
    %attr_groups = irdl.base "#builtin.integer"
    %attr_accum_dtype = irdl.base "#builtin.type"
    %attr_out_dtype = irdl.base "#builtin.type"
    irdl.attributes { "strides" = %attr_strides, "padding_low" = %attr_padding_low, "padding_high" = %attr_padding_high, "base_dilation" = %attr_base_dilation, "window_dilation" = %attr_window_dilation, "groups" = %attr_groups, "accum_dtype" = %attr_accum_dtype, "out_dtype" = %attr_out_dtype }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @custom_call {
    %inputs = irdl.base "!builtin.tensor"
    irdl.operands(inputs: variadic %inputs)
    %attr_target = irdl.base "#builtin.string"
    %attr_attrs = irdl.base "#builtin.string"
    irdl.attributes { "target" = %attr_target, "attrs" = %attr_attrs }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @all_reduce {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_mesh = irdl.base "#builtin.string"
    %attr_axes = irdl.base "#builtin.string"
    %attr_kind = irdl.base "#builtin.string"
    irdl.attributes { "mesh" = %attr_mesh, "axes" = %attr_axes, "kind" = %attr_kind }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @reduce_scatter {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_mesh = irdl.base "#builtin.string"
    %attr_axes = irdl.base "#builtin.string"
    %attr_axis = irdl.base "#builtin.integer"
    %attr_kind = irdl.base "#builtin.string"
    irdl.attributes { "mesh" = %attr_mesh, "axes" = %attr_axes, "axis" = %attr_axis, "kind" = %attr_kind }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @all_gather {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_mesh = irdl.base "#builtin.string"
    %attr_axes = irdl.base "#builtin.string"
    %attr_axis = irdl.base "#builtin.integer"
    irdl.attributes { "mesh" = %attr_mesh, "axes" = %attr_axes, "axis" = %attr_axis }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @all_to_all {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_mesh = irdl.base "#builtin.string"
    %attr_axes = irdl.base "#builtin.string"
    %attr_split_axis = irdl.base "#builtin.integer"
    %attr_concat_axis = irdl.base "#builtin.integer"
    irdl.attributes { "mesh" = %attr_mesh, "axes" = %attr_axes, "split_axis" = %attr_split_axis, "concat_axis" = %attr_concat_axis }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @broadcast_from {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_mesh = irdl.base "#builtin.string"
    %attr_axes = irdl.base "#builtin.string"
    %attr_root = irdl.base "#builtin.integer"
    irdl.attributes { "mesh" = %attr_mesh, "axes" = %attr_axes, "root" = %attr_root }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @shift {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_mesh = irdl.base "#builtin.string"
    %attr_axes = irdl.base "#builtin.string"
    %attr_offset = irdl.base "#builtin.integer"
    irdl.attributes { "mesh" = %attr_mesh, "axes" = %attr_axes, "offset" = %attr_offset }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @axis_index {
    %attr_mesh = irdl.base "#builtin.string"
    %attr_axes = irdl.base "#builtin.string"
    irdl.attributes { "mesh" = %attr_mesh, "axes" = %attr_axes }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @take_part {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_mesh = irdl.base "#builtin.string"
    %attr_sharding = irdl.base "#builtin.string"
    irdl.attributes { "mesh" = %attr_mesh, "sharding" = %attr_sharding }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @join_parts {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_mesh = irdl.base "#builtin.string"
    %attr_sharding = irdl.base "#builtin.string"
    irdl.attributes { "mesh" = %attr_mesh, "sharding" = %attr_sharding }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
  irdl.operation @shard {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %attr_mesh = irdl.base "#builtin.string"
    %attr_sharding = irdl.base "#builtin.string"
    irdl.attributes { "mesh" = %attr_mesh, "sharding" = %attr_sharding }
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }
}
