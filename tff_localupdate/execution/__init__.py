"""Runs TFF computations inside the Python process, on its TensorFlow.

From the bottom up:

- `devices`: which devices there are, memory growth, determinism, options.
- `values`: Python values to flat tensors and back, by TFF type.
- `forms`: from a TFF computation to a function of flat tensors.
- `round_graph`: the graph of one round.
- `compiled_round`: the same, compiled once per cohort shape.
- `program`: a process with its compiled round.
- `context`: the same, as the contexts that TFF itself calls.
"""

from tff_localupdate.execution.context import AsyncInProcessContext
from tff_localupdate.execution.context import InProcessContext
from tff_localupdate.execution.context import set_default_context
from tff_localupdate.execution.devices import configure
from tff_localupdate.execution.devices import ExecutionOptions
from tff_localupdate.execution.program import compile_process
from tff_localupdate.execution.program import Program

__all__ = (
    'AsyncInProcessContext',
    'ExecutionOptions',
    'InProcessContext',
    'Program',
    'compile_process',
    'configure',
    'set_default_context',
)
