"""The memory that a compiled function works in: which value lies where, and when."""

from mind_mlir.conversion.buffers.plan import BufferPlan, FunctionBuffers, plan_buffers

__all__ = ("BufferPlan", "FunctionBuffers", "plan_buffers")
