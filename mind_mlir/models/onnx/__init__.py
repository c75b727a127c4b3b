"""ONNX models: their files as data, and a rule for each operator over traced arrays."""
