func.func @loop() {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %many = stablehlo.constant dense<100> : tensor<i32>
  %last, %steps = stablehlo.while(%x = %one, %n = %one) : tensor<i32>, tensor<i32>
    cond {
      %go = stablehlo.compare LT, %x, %many : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %twice = stablehlo.add %x, %x : tensor<i32>
      %next = stablehlo.add %n, %one : tensor<i32>
      stablehlo.return %twice, %next : tensor<i32>, tensor<i32>
    }
  check.expect_eq_const %last, dense<128> : tensor<i32>
  check.expect_eq_const %steps, dense<8> : tensor<i32>
  func.return
}

// -----

// The last branch is taken for every number that has none.
func.func @branches() {
  %far = stablehlo.constant dense<-3> : tensor<i32>
  %a = "stablehlo.case"(%far) ({
    %x = stablehlo.constant dense<10> : tensor<i64>
    stablehlo.return %x : tensor<i64>
  }, {
    %x = stablehlo.constant dense<20> : tensor<i64>
    stablehlo.return %x : tensor<i64>
  }, {
    %x = stablehlo.constant dense<30> : tensor<i64>
    stablehlo.return %x : tensor<i64>
  }) : (tensor<i32>) -> tensor<i64>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %b = "stablehlo.if"(%no) ({
    stablehlo.return %a : tensor<i64>
  }, {
    %c = stablehlo.negate %a : tensor<i64>
    stablehlo.return %c : tensor<i64>
  }) : (tensor<i1>) -> tensor<i64>
  check.expect_eq_const %a, dense<30> : tensor<i64>
  check.expect_eq_const %b, dense<-30> : tensor<i64>
  func.return
}

// -----

func.func private @square(%x: tensor<f32>) -> tensor<f32> {
  %y = stablehlo.multiply %x, %x : tensor<f32>
  func.return %y : tensor<f32>
}

func.func @calls() {
  %a = stablehlo.constant dense<3.0> : tensor<f32>
  %b = func.call @square(%a) : (tensor<f32>) -> tensor<f32>
  %c = stablehlo.composite "ours.square" %b {decomposition = @square} : (tensor<f32>) -> tensor<f32>
  %d:2 = stablehlo.optimization_barrier %b, %c : tensor<f32>, tensor<f32>
  check.expect_eq_const %d#0, dense<9.0> : tensor<f32>
  check.expect_eq_const %d#1, dense<81.0> : tensor<f32>
  func.return
}
