"""The fused round: a whole federated round as one compiled function.

`round_graph` says what a round computes, as a `tf.function`. Here it is traced
and compiled once for every shape of cohort, kept, and called. Three questions
are answered on the way:

  - Which rounds share a function? With XLA only those of equal shapes. Without
    it, all those that differ in sizes which the client's type leaves open.
  - XLA or TensorFlow's kernels? See `ExecutionOptions.jit`. Under `auto` a
    round that XLA cannot compile falls back, and so do all shapes that follow.
  - What does a call cost? A round of a small model takes half a millisecond, so
    binding arguments counts: see `host_call`.

The state never leaves the device between rounds.
"""

from collections.abc import Callable, Sequence
import contextlib
import itertools
import logging
import threading
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.execution import devices as devices_lib
from tff_localupdate.execution import forms
from tff_localupdate.execution import round_graph
from tff_localupdate.execution import values

# Cohorts whose clients differ in shape come in ever new combinations.
_MAX_COMPILED = 128
# What TensorFlow raises when XLA cannot compile a graph.
_NOT_COMPILABLE = (
    tf.errors.InvalidArgumentError,
    tf.errors.UnimplementedError,
    tf.errors.NotFoundError,
)


class CompiledRound:
  """`next` of a process, compiled once per cohort shape.

  XLA compiles each shape by itself; TensorFlow's kernels take all that differ
  only in sizes that the type of a client leaves open, such as the number of
  batches.

  Attributes:
    jit: Whether the last round was compiled with XLA.
    client_devices: Where client work of the last round ran, by its results.
    num_compiled: How many cohort shapes are kept compiled, the latest 128.
  """

  def __init__(
      self, next_computation: Any, options: devices_lib.ExecutionOptions
  ):
    signature = next_computation.type_signature
    self._options = options
    self._graph = round_graph.RoundGraph(
        forms.map_reduce_form(next_computation), options.devices
    )
    if self._graph.draws:
      logging.warning(
          'This process draws random numbers that are not in its state (%s): '
          'its rounds repeat neither in a second run nor after a resumption.',
          ', '.join(self._graph.draws),
      )
    self._state = values.Codec(signature.parameter[0], 'state')
    self._client_types = values.leaf_types(signature.parameter[1])
    self._output_types = values.leaf_types(signature.result[1])
    self._result = values.Codec(signature.result)
    # By `_shapes`, the oldest first: the function, and whether XLA compiled it.
    self._functions = {}
    # Rounds in two threads would share the variables, if there are any.
    has_state = self._graph.has_state
    self._turn = threading.Lock() if has_state else contextlib.nullcontext()
    self.jit = self._jit_now = self._wants_jit()
    self.client_devices: tuple[str, ...] = ()

  @property
  def num_compiled(self) -> int:
    return len(self._functions)

  @property
  def stacks_sequences(self) -> bool:
    """Whether data sets may be stacked; a loop on a GPU cannot hold them."""
    return all('CPU' in device for device in self._options.devices)

  def __call__(
      self, state: Any, cohort: Sequence[Any], size: int, stacked: bool = True
  ) -> Any:
    """Runs one round; returns the state, on the device, and the output, NumPy.

    Args:
      state: Server state, by the process's type.
      cohort: Leaves of the clients' values, each stacked over the cohort to
        `[M, ...]`; all leaves of the first client, then of the second, ...,
        if not `stacked`.
      size: M, the number of clients; may be 0.
      stacked: False for clients whose leaves differ in shape. Such a round is
        traced client by client and anew for each combination of shapes.

    Raises:
      ValueError: If a secure sum's input is out of its declared range.
    """
    # Tensors that are on the device already stay there: the last round's state
    # is handed on as it is, and only data and what is read cross to or from the
    # host.
    server = self._state.flatten(state)
    with self._turn:
      results = self._run(server + list(cohort), size, stacked)
    # Where tensors lie is what TensorFlow did, not what it was asked for.
    self.client_devices = tuple(
        devices_lib.short_name(probe.backing_device) for probe in results.probes
    )
    if results.in_range is not None and not bool(results.in_range):
      raise ValueError(
          'A client\'s input to a secure sum is outside the range that its bit '
          'width or maximum declares; the round was dropped.'
      )
    split = len(results.server) - len(self._output_types)
    output = [
        values.to_numpy(leaf, leaf_type)
        for leaf, leaf_type in zip(results.server[split:], self._output_types)
    ]
    return self._result.pack(results.server[:split] + output)

  def _run(self, leaves, size, stacked):
    key = (size, stacked, self._shapes(leaves, stacked))
    # An XLA program runs where it is called, whatever its graph says.
    with tf.device(self._options.devices[0]):
      leaves = [
          leaf if isinstance(leaf, tf.Tensor) else tf.convert_to_tensor(leaf)
          for leaf in leaves
      ]
      if key not in self._functions:
        return self._first_run(key, leaves, size, stacked)
      function, self.jit = self._functions[key]
      return self._graph.unpack(function(*leaves))

  def _first_run(self, key, leaves, size, stacked):
    """Compiles and runs; falls back to TensorFlow's kernels under `auto`."""
    # XLA compiles with the first call, so only that tells whether it can. It
    # has run nothing by then, so the round can start again. From then on new
    # shapes take the kernels at once; those that XLA has compiled keep it.
    # Kernels share functions over shapes, so the key is another one, too.
    self.jit = self._jit_now
    function = self._build(key, leaves)
    try:
      results = function(*leaves)
    except _NOT_COMPILABLE as error:
      if not self.jit or self._options.jit == 'on':
        raise
      reason = str(error).strip().splitlines()[0][:200]
      logging.info('XLA cannot compile this round: %s', reason)
      self.jit = self._jit_now = False
      key = (size, stacked, self._shapes(leaves, stacked))
      function = self._build(key, leaves)
      results = function(*leaves)
    self._functions[key] = function, self.jit
    if len(self._functions) > _MAX_COMPILED:
      del self._functions[next(iter(self._functions))]
    return self._graph.unpack(results)

  def _shapes(self, leaves, stacked):
    """The key of a function: shapes of the leaves as it takes them."""
    shapes = [tuple(leaf.shape) for leaf in leaves]
    if self._jit_now:
      return tuple(shapes)
    # The state keeps its shapes. Of the clients, sizes that their type leaves
    # open stay open, so that rounds of other numbers of batches need no new
    # function.
    split = len(self._state.leaf_types)
    types = itertools.cycle(self._client_types)
    return (
        *shapes[:split],
        *(_opened(*pair, stacked) for pair in zip(shapes[split:], types)),
    )

  def _build(self, key, leaves):
    size, stacked, shapes = key
    clients = self._clients()
    build = self._graph.build(
        size, jit=self.jit, clients=clients, stacked=stacked
    )
    specs = [
        tf.TensorSpec(shape, leaf.dtype) for shape, leaf in zip(shapes, leaves)
    ]
    if self._options.devices != devices_lib.HOST:
      return build.get_concrete_function(*specs)
    # Else XLA compiles parts of the graph only, or nothing.
    one_program = self.jit and clients == 'loop'
    return host_call(build, specs, one_program=one_program)

  def _wants_jit(self):
    # XLA's convolutions on a CPU take many times as long as TensorFlow's
    # kernels, and data sets, variables and assertions are nothing for it.
    if self._options.jit != 'auto':
      return self._options.jit == 'on'
    if self._graph.needs_host:
      return False
    return not (self._options.use_cpu and self._graph.convolves)

  def _clients(self):
    """'loop' or 'parallel'."""
    # Without XLA the kernels of a client leave cores idle, which others can
    # use. With it, starting a program for each client costs more than small
    # work.
    if self._options.clients != 'auto':
      return self._options.clients
    heavy = self._options.use_cpu and self._graph.is_heavy
    return 'parallel' if heavy or not self.jit else 'loop'



def _opened(shape, client_type, stacked):
  """The shape of a client's leaf, open where its type is."""
  if not isinstance(client_type, tff.TensorType) or (
      tf.TensorShape(client_type.shape).rank is None
  ):
    return shape
  first = int(stacked)  # The axis of the clients.
  own = zip(shape[first:], client_type.shape)
  return (*shape[:first], *(None if n is None else size for size, n in own))


def host_call(
    build: Callable[..., list[tf.Tensor]],
    specs: Sequence[tf.TensorSpec],
    *,
    one_program: bool,
) -> Callable[..., list[tf.Tensor]]:
  """Traces a function of flat tensors and returns how to call it on a host.

  Returns a function of tensors as in `specs`. If `one_program`, XLA compiles
  all of it, and one operation calls it, which takes two thirds of the time.
  Without XLA that operation leaves out TensorFlow's optimization of graphs,
  which is a fifth of a convolutional round. The bits are the same either way.
  """
  # A function of TensorFlow 1 binds flat arguments twice as fast as a
  # `tf.function`, which looks for structures in them at every call.
  function = tf.compat.v1.wrap_function(lambda *args: build(*args), specs)
  if not one_program:
    return function
  # Captured tensors (large constants, see `forms`) are arguments like others to
  # the operation.
  captured = list(function.captured_inputs)
  dtypes = [output.dtype for output in function.outputs]
  return lambda *leaves: tf.raw_ops.StatefulPartitionedCall(
      args=[*leaves, *captured], Tout=dtypes, f=function
  )
