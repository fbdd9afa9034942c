"""The fused round: a whole federated round as one TensorFlow function.

prepare -> for each client: work, accumulate in order -> merge the devices'
partial sums in order -> report -> update, all inside one compiled function
per (process, cohort size, shapes). The state never leaves the device, and the
order of summation is fixed, so equal seeds give equal bits on one device.
"""

import dataclasses
import logging
from typing import Any, Optional, Sequence

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.execution import devices as devices_lib
from tff_localupdate.execution import forms
from tff_localupdate.execution import host_call
from tff_localupdate.execution import local_function
from tff_localupdate.execution import round_graph
from tff_localupdate.execution import values

_JIT = ('auto', 'on', 'off')
_CLIENTS = ('auto', 'loop', 'parallel')
_HOST = ('/device:CPU:0',)

# What TensorFlow raises when XLA cannot compile a graph.
_NOT_COMPILABLE = (
    tf.errors.InvalidArgumentError,
    tf.errors.UnimplementedError,
    tf.errors.NotFoundError,
)


@dataclasses.dataclass(frozen=True)
class ExecutionOptions:
  """How rounds are compiled; never what they compute.

  Attributes:
    devices: Names from `devices.configure`; several share each cohort, in
      contiguous parts.
    jit: `'on'` compiles the round with XLA, `'off'` runs TensorFlow's own
      kernels; `'auto'` takes XLA where it compiles, except for convolutions on
      a CPU, where TensorFlow's kernels are faster.
    clients: `'loop'` (one after another), `'parallel'` (several at a time on
      the cores; still summed in order; XLA then compiles the work of a client,
      not the round); `'auto'` picks `'parallel'` where XLA is not used, and on
      a CPU for recurrent models and for 100,000 weights or more. Client work
      with variables is never parallel.
  """

  devices: tuple[str, ...] = _HOST
  jit: str = 'auto'
  clients: str = 'auto'

  def __post_init__(self):
    if not self.devices:
      raise ValueError('devices: at least one is needed, got none.')
    if self.jit not in _JIT:
      raise ValueError(f'jit: must be one of {_JIT}, got {self.jit!r}.')
    if self.clients not in _CLIENTS:
      raise ValueError(
          f'clients: must be one of {_CLIENTS}, got {self.clients!r}.'
      )


class CompiledRound:
  """`next` of a process, compiled once per cohort shape.

  Attributes:
    jit: Whether the last round was compiled with XLA.
    client_devices: Devices that client work of the last round ran on, read off
      the tensors it produced.
    num_compiled: How many cohort shapes have been compiled so far.
  """

  def __init__(self, next_computation: Any, options: ExecutionOptions):
    signature = next_computation.type_signature
    self._options = options
    self._graph = round_graph.RoundGraph(
        forms.map_reduce_form(next_computation), options.devices
    )
    self._state = values.Codec(signature.parameter[0], 'state')
    self._output_types = values.leaf_types(signature.result[1])
    self._result = values.Codec(signature.result)
    self._functions = {}
    self._jit_failed = False
    self.jit = self._wants_jit()
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
    with tf.device(self._options.devices[0]):
      leaves = [
          leaf if isinstance(leaf, tf.Tensor) else tf.convert_to_tensor(leaf)
          for leaf in leaves
      ]
    if key not in self._functions:
      return self._first_run(key, leaves, size, stacked)
    return self._graph.unpack(self._functions[key](*leaves))

  def _first_run(self, key, leaves, size, stacked):
    """Compiles and runs; falls back to TensorFlow's kernels under `auto`."""
    function = self._build(leaves, size, stacked)
    try:
      results = function(*leaves)
    except _NOT_COMPILABLE as error:
      if not self.jit or self._options.jit == 'on':
        raise
      logging.info('XLA cannot compile this round: %s', _first_line(error))
      self._jit_failed, self.jit = True, False
      function = self._build(leaves, size, stacked)
      results = function(*leaves)
    self._functions[key] = function
    return self._graph.unpack(results)

  def _build(self, leaves, size, stacked):
    clients = self._clients()
    build = self._graph.build(
        size, jit=self.jit, clients=clients, stacked=stacked
    )
    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves]
    if self._options.devices != _HOST:
      return build.get_concrete_function(*specs)
    one_program = self.jit and clients == 'loop'
    return host_call.host_call(build, specs, one_program=one_program)

  def _wants_jit(self):
    if self._options.jit != 'auto' or self._jit_failed:
      return self._options.jit == 'on'
    if self._graph.needs_host:
      return False
    return not (self._on_cpu() and self._graph.convolves)

  def _clients(self):
    """'loop' or 'parallel'."""
    if self._options.clients != 'auto':
      return self._options.clients
    heavy = self._on_cpu() and self._graph.is_heavy
    return 'parallel' if heavy or not self.jit else 'loop'

  def _on_cpu(self):
    return any('CPU' in device for device in self._options.devices)


class Program:
  """A process that runs in this Python process, one compiled call a round."""

  def __init__(self, process: Any, options: ExecutionOptions):
    self._initialize = local_function.LocalFunction(process.initialize)
    self._round = CompiledRound(process.next, options)
    client_type = process.next.type_signature.parameter[1].member
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
      TypeError: If state or cohort do not match the process's types.
      ValueError: If the leaves disagree about M.
    """
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
    """Number of cohort shapes compiled so far."""
    return self._round.num_compiled

  @property
  def device_report(self) -> str:
    """Where client work of the last round ran; says so if none has run."""
    ran_on = self._round.client_devices
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
    jit: See `ExecutionOptions`.
    clients: See `ExecutionOptions`.
    devices: Result of `devices.configure`; None calls it.

  Returns:
    The compiled program.

  Raises:
    forms.UnsupportedComputationError: If `next` is of another shape.
    ValueError: If an option is not one of those listed.
  """
  chosen = tuple(devices) if devices else devices_lib.configure()
  return Program(process, ExecutionOptions(chosen, jit, clients))


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
