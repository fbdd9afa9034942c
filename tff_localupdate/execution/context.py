"""TFF execution contexts that run computations inside this Python process.

With one of them as TFF's default, `process.next(state, data)` of anybody's code
runs here: TFF calls `invoke`, which looks the computation up, compiles it the
first time, and hands over the arguments as TFF's callers give them: clients as
a list of values, not stacked.
"""

import asyncio
import collections
from concurrent import futures
from typing import Any, Optional, Sequence

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.execution import compiled_round as compiled_round_lib
from tff_localupdate.execution import devices as devices_lib
from tff_localupdate.execution import program
from tff_localupdate.execution import values

_MAX_COMPILED = 128


class InProcessContext(tff.framework.SyncContext):
  """Runs TFF computations on this process's TensorFlow; starts no worker.

  Three kinds of computation run:
    - those without placements (TensorFlow logic, `set_hparams`, ...),
    - those of the server alone without argument (`initialize`),
    - `(S@SERVER, D@CLIENTS) -> (S@SERVER, M@SERVER)`, the `next` of an
      iterative process, if it has a `tff.backends.mapreduce.MapReduceForm`.

  The state that `initialize` and `next` return is made of tensors that stay on
  the device; everything else comes back as NumPy values, as from TFF's own
  context. Client values may be structures of tensors or data sets.
  """

  def __init__(self, options: Optional[devices_lib.ExecutionOptions] = None):
    """Makes a context; None lets `devices.configure` choose the options."""
    super().__init__()
    self._options = options or devices_lib.ExecutionOptions(
        devices_lib.configure()
    )
    # Keyed by identity: TFF hashes the whole serialized graph instead. The
    # computation is kept, so that its id stays taken.
    self._compiled = collections.OrderedDict()

  def invoke(self, comp: Any, arg: Any) -> Any:
    """See `tff.framework.SyncContext`; other kinds are refused."""
    run = self._look_up(comp)
    return run(arg)

  def compiled_round(self, comp: Any) -> compiled_round_lib.CompiledRound:
    """The compiled form of a `next`, for its device report."""
    run = self._look_up(comp)
    if not isinstance(run, _FederatedRound):
      raise TypeError('comp: is no `next` of an iterative process.')
    return run.round

  def _look_up(self, comp):
    key = id(comp)
    if key not in self._compiled:
      self._compiled[key] = (comp, _compile(comp, self._options))
      if len(self._compiled) > _MAX_COMPILED:
        self._compiled.popitem(last=False)
    self._compiled.move_to_end(key)
    return self._compiled[key][1]


class AsyncInProcessContext(tff.framework.AsyncContext):
  """The same for `tff.program.NativeFederatedContext`.

  One computation runs at a time, on a thread of its own, so an event loop
  that is already running (a notebook's) is neither needed nor blocked.
  """

  def __init__(self, options: Optional[devices_lib.ExecutionOptions] = None):
    super().__init__()
    self._context = InProcessContext(options)
    self._thread = futures.ThreadPoolExecutor(1, thread_name_prefix='tff')

  async def invoke(self, comp: Any, arg: Any) -> Any:
    """See `tff.framework.AsyncContext`."""
    return await asyncio.get_running_loop().run_in_executor(
        self._thread, self._context.invoke, comp, arg
    )


def set_default_context(
    *,
    devices: Optional[Sequence[str]] = None,
    jit: str = 'auto',
    clients: str = 'auto',
) -> InProcessContext:
  """Makes a context TFF's default; arguments of `program.compile_process`."""
  chosen = devices_lib.configure() if devices is None else devices
  context = InProcessContext(devices_lib.ExecutionOptions(chosen, jit, clients))
  tff.framework.set_default_context(context)
  return context


class _FederatedRound:
  """`next` with client values given one by one, as TFF's callers do."""

  def __init__(self, comp, options):
    # First, as it checks the type.
    self.round = compiled_round_lib.CompiledRound(comp, options)
    self._codec = values.Codec(comp.type_signature.parameter[1].member)
    self._has_sequences = any(
        isinstance(leaf, tff.SequenceType) for leaf in self._codec.leaf_types
    )

  def __call__(self, arg):
    state, clients = arg
    if isinstance(clients, tff.structure.Struct):  # As tff.program does it.
      clients = list(clients)
    if not isinstance(clients, (list, tuple)) or hasattr(clients, '_fields'):
      raise TypeError(
          'clients: expected a list with one value per client, got '
          f'{type(clients).__name__}.'
      )
    flat = [
        self._codec.flatten(client, f'clients[{i}]')
        for i, client in enumerate(clients)
    ]
    if not flat:
      return self.round(state, [], 0)
    # Clients of one shape become one tensor per leaf, which a loop indexes.
    # Others, and data sets on a GPU, are handed over one by one.
    shapes = [tuple(tuple(leaf.shape) for leaf in leaves) for leaves in flat]
    stacks = self.round.stacks_sequences or not self._has_sequences
    if len(set(shapes)) > 1 or not stacks:
      return self.round(state, sum(flat, []), len(flat), stacked=False)
    return self.round(state, [_stack(column) for column in zip(*flat)],
                      len(flat))


def _stack(column):
  if isinstance(column[0], tf.Tensor):
    with tf.device('/device:CPU:0'):  # variants have no other kernel
      return tf.stack(column)
  return np.stack(column)


def _compile(comp, options):
  """Picks the form that fits the computation's type."""
  # Without argument and placed at the server, it makes a state, which stays on
  # the device. Without any placement it is a plain function of values. Anything
  # else has to be a round, and is refused by name if it is not.
  signature = comp.type_signature
  result = signature.result
  if signature.parameter is None and isinstance(result, tff.FederatedType):
    initialize = program.LocalFunction(comp)
    return lambda arg: initialize.call_flat([], as_numpy=False)
  if not tff.types.contains(
      signature, lambda t: isinstance(t, tff.FederatedType)
  ):
    return program.LocalFunction(comp)
  return _FederatedRound(comp, options)
