func.func @main(%x: tensor<4xi1>, %i: index) -> i1 {
  %c = tensor.extract %x[%i] : tensor<4xi1>
  return %c : i1
}
