"""The fused round: a whole federated round as one TensorFlow function.

prepare -> for each client: work, accumulate in order -> merge the devices'
partial sums in order -> report -> update, all inside one compiled function
per (process, cohort size, shapes). The state never leaves the device, and the
order of summation is fixed, so equal seeds give equal bits on one device.
"""

import logging
from typing import Any, Optional, Sequence

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.execution import devices as devices_lib
from tff_localupdate.execution import forms
from tff_localupdate.execution import host_call
from tff_localupdate.execution import local_function
from tff_localupdate.execution import options as options_lib
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

  Attributes:
    jit: Whether the last round was compiled with XLA.
    client_devices: Devices that client work of the last round ran on, read off
      the tensors it produced.
    num_compiled: How many cohort shapes are kept compiled, the latest 128.
  """

  def __init__(
      self, next_computation: Any, options: options_lib.ExecutionOptions
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
    self._output_types = values.leaf_types(signature.result[1])
    self._result = values.Codec(signature.result)
    self._functions = {}  # And whether XLA compiled each.
    self.jit = self._jit_now = self._wants_jit()
    self.client_devices: tuple[str, ...] = ()

  @property
  def num_compiled(self) -> int:
    return len(self._functions)

  def __call__(
      self, state: Any, cohort: Sequence[Any], size: int, stacked: bool = True
  ) -> Any:
    """Runs one round.

    Args:
      state: Server state, by the process's type.
      cohort: Leaves of the clients' values, each stacked over the cohort to
        `[M, ...]`; all leaves of the first client, then of the second, ...,
        if not `stacked`.
      size: M, the number of clients; may be 0.
      stacked: False for clients whose leaves differ in shape. Such a round is
        traced client by client and anew for each combination of shapes.

    Returns:
      `(state, output)`: the state as tensors on the device, the output as
      NumPy values.

    Raises:
      ValueError: If a secure sum's input is out of its declared range.
    """
    server = self._state.flatten(state)
    results = self._run(server + list(cohort), size, stacked)
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
    key = (size, stacked, tuple(tuple(leaf.shape) for leaf in leaves))
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
    self.jit = self._jit_now
    function = self._build(leaves, size, stacked)
    try:
      results = function(*leaves)
    except _NOT_COMPILABLE as error:
      if not self.jit or self._options.jit == 'on':
        raise
      logging.info('XLA cannot compile this round: %s', _first_line(error))
      self.jit = self._jit_now = False
      function = self._build(leaves, size, stacked)
      results = function(*leaves)
    self._functions[key] = function, self.jit
    if len(self._functions) > _MAX_COMPILED:
      del self._functions[next(iter(self._functions))]
    return self._graph.unpack(results)

  def _build(self, leaves, size, stacked):
    clients = self._clients()
    build = self._graph.build(
        size, jit=self.jit, clients=clients, stacked=stacked
    )
    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves]
    if self._options.devices != options_lib.HOST:
      return build.get_concrete_function(*specs)
    one_program = self.jit and clients == 'loop'
    return host_call.host_call(build, specs, one_program=one_program)

  def _wants_jit(self):
    if self._options.jit != 'auto':
      return self._options.jit == 'on'
    if self._graph.needs_host:
      return False
    return not (self._options.use_cpu and self._graph.convolves)

  def _clients(self):
    """'loop' or 'parallel'."""
    if self._options.clients != 'auto':
      return self._options.clients
    heavy = self._options.use_cpu and self._graph.is_heavy
    return 'parallel' if heavy or not self.jit else 'loop'

  @property
  def stacks_sequences(self) -> bool:
    """Whether data sets may be stacked; a loop on a GPU cannot hold them."""
    return all('CPU' in device for device in self._options.devices)


class Program:
  """A process that runs in this Python process, one compiled call a round."""

  def __init__(self, process: Any, options: options_lib.ExecutionOptions):
    self._initialize = local_function.LocalFunction(process.initialize)
    self._round = CompiledRound(process.next, options)
    client_type = process.next.type_signature.parameter[1].member
    self._takes_list = (
        isinstance(client_type, tff.types.StructWithPythonType)
        and client_type.python_container is list
    )
    self._cohort = values.Codec(stacked_type(client_type), 'cohort')

  def initialize(self) -> Any:
    """Server state of round 0, as tensors."""
    return self._initialize.call_flat([], as_numpy=False)

  def next(self, state: Any, cohort: Any) -> tuple[Any, Any]:
    """Runs one round.

    Args:
      state: Result of `initialize` or of the last `next`.
      cohort: One client's value whose leaves have a leading axis M over the
        clients of the cohort (arrays or tensors).

    Returns:
      The new state (tensors that stay on the device) and the server's output
      (NumPy).

    Raises:
      TypeError: If state or cohort do not match the process's types, or the
        cohort is a list of clients, as `process.next` takes them.
      ValueError: If the leaves disagree about M.
    """
    # It might pass for one value whose fields are the clients.
    if isinstance(cohort, list) and not self._takes_list:
      raise TypeError(
          "cohort: expected one client's value with leaves stacked over the "
          f'cohort, [M, ...], got a list of {len(cohort)}; process.next under '
          'execution.set_default_context() takes a list of clients.'
      )
    leaves = self._cohort.flatten(cohort)
    sizes = {int(leaf.shape[0]) for leaf in leaves}
    if len(sizes) != 1:
      raise ValueError(
          f'cohort: all leaves need one leading axis M, got {sorted(sizes)}.'
      )
    state, output = self._round(state, leaves, sizes.pop())
    return state, output

  @property
  def jit(self) -> bool:
    """Whether rounds are compiled with XLA."""
    return self._round.jit

  @property
  def num_compiled(self) -> int:
    """Number of cohort shapes that are kept compiled."""
    return self._round.num_compiled

  @property
  def client_devices(self) -> tuple[str, ...]:
    """Devices that client work of the last round ran on, such as 'GPU:0'."""
    return self._round.client_devices

  @property
  def device_report(self) -> str:
    """Where client work of the last round ran; says so if none has run."""
    ran_on = self.client_devices
    if not ran_on:
      return 'no round has run yet'
    compiler = 'XLA' if self.jit else 'TensorFlow kernels'
    return f'client work ran on {", ".join(ran_on)} ({compiler})'


def compile_process(
    process: Any,
    *,
    jit: str = 'auto',
    clients: str = 'auto',
    devices: Optional[Sequence[str]] = None,
) -> Program:
  """Compiles a `tff.templates.IterativeProcess` for this Python process.

  Args:
    process: Process whose `next` takes (state, client values) and returns
      (state, output).
    jit: See `options.ExecutionOptions`.
    clients: See `options.ExecutionOptions`.
    devices: Result of `devices.configure`; None calls it.

  Returns:
    The compiled program.

  Raises:
    forms.UnsupportedComputationError: If `next` is of another shape.
    TypeError: If clients hold data sets, which cannot be stacked: call
      `process.next` under `set_default_context()` then.
    ValueError: If an option is not one of those listed.
  """
  chosen = devices_lib.configure() if devices is None else devices
  return Program(process, options_lib.ExecutionOptions(chosen, jit, clients))


def stacked_type(client_type: tff.Type) -> tff.Type:
  """The client's type with a leading axis of unknown size on each tensor."""
  if isinstance(client_type, tff.StructType):
    names = tff.structure.name_list_with_nones(client_type)
    items = [stacked_type(client_type[i]) for i in range(len(names))]
    if isinstance(client_type, tff.types.StructWithPythonType):
      return tff.types.StructWithPythonType(
          list(zip(names, items)), client_type.python_container
      )
    return tff.StructType([
        (name, item) if name else item for name, item in zip(names, items)
    ])
  if isinstance(client_type, tff.TensorType):
    return tff.TensorType(client_type.dtype, (None,) + tuple(client_type.shape))
  raise TypeError(
      f'cohort: a client value of type {client_type} has no stacked form; call '
      'process.next under execution.set_default_context() instead.'
  )


def _first_line(error):
  return str(error).strip().splitlines()[0][:200]
