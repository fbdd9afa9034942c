"""Runs TFF computations inside the Python process, on its TensorFlow.

  devices.py     which devices there are, memory growth, determinism
  forms.py       computation proto -> MapReduceForm -> TensorFlow functions
  values.py      Python values <-> flat tensors, by TFF type
  local_function.py   computations without clients
  round_graph.py     the graph of one round
  program.py         the fused round: one compiled function per cohort shape
  context.py     the same as contexts that TFF itself calls
"""

from tff_localupdate.execution.context import AsyncInProcessContext
from tff_localupdate.execution.context import InProcessContext
from tff_localupdate.execution.context import set_default_context
from tff_localupdate.execution.devices import configure
from tff_localupdate.execution.program import compile_process
from tff_localupdate.execution.program import ExecutionOptions
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
