"""The `mind` dialect: its definition, made from the records, and in-memory IR as modules of it."""

from mind_mlir.lowering.dialect.definition import (
    NAMESPACE,
    PREFIX,
    decode_attributes,
    encode_attributes,
    irdl_text,
    load,
    verify_operation,
)
from mind_mlir.mlir.codec import MAX_LITERAL_BYTES, decode_literal

__all__ = [
    "MAX_LITERAL_BYTES",
    "NAMESPACE",
    "PREFIX",
    "decode_attributes",
    "decode_literal",
    "encode_attributes",
    "irdl_text",
    "load",
    "verify_operation",
]
