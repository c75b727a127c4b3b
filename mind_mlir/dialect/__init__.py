"""The `mind` dialect: its definition, made from the records, and in-memory IR as modules of it."""

from mind_mlir.dialect.definition import (
    MAX_LITERAL_BYTES,
    NAMESPACE,
    PREFIX,
    decode_attributes,
    decode_literal,
    encode_attribute,
    irdl_text,
    load,
    verify_operation,
)

__all__ = [
    "MAX_LITERAL_BYTES",
    "NAMESPACE",
    "PREFIX",
    "decode_attributes",
    "decode_literal",
    "encode_attribute",
    "irdl_text",
    "load",
    "verify_operation",
]
