"""Runs TFF computations inside the Python process, on its TensorFlow.

- `devices`: which devices there are, memory growth, determinism.
- `forms`: from computation proto to MapReduceForm to TensorFlow functions.
- `values`: Python values to flat tensors and back, by TFF type.
- `local_function`: computations without clients.
- `round_graph`: the graph of one round.
- `compiled_round`: the fused round, one compiled function per cohort shape.
- `program`: a process with its fused round.
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
