"""The scheduling stage: linalg on tensors becomes loops of vector operations on tensors.

Before: functions of linalg operations on tensors of static shape, in destination-passing style.
After: the same functions with ``scf.for`` nests around ``vector`` operations in place of the linalg
operations that a schedule exists for; all other operations are left as they are. Values are still tensors,
and every tensor that a nest writes is threaded through the nest's loop-carried values, so that one-shot
bufferization updates it in place.
"""
