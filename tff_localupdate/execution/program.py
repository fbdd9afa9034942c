"""A TFF process as a program of this Python process.

`Program` is the form for a loop of one's own: `initialize` once, then one
compiled call a round, with the cohort given as stacked arrays. What has no
clients (`initialize`, plain TensorFlow logic) is a `LocalFunction`.
"""

import contextlib
import functools
import threading
from typing import Any, Optional, Sequence

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.execution import compiled_round
from tff_localupdate.execution import devices as devices_lib
from tff_localupdate.execution import forms
from tff_localupdate.execution import values


class LocalFunction:
  """A computation without client placement, as a function of this process."""

  def __init__(self, computation: Any):
    signature = computation.type_signature
    self._parameter = values.Codec(signature.parameter, 'argument')
    self._result = values.Codec(signature.result)
    self._imported = forms.ImportedFunction(forms.local_form(computation))
    self._specs = [values.leaf_spec(t) for t in self._parameter.leaf_types]
    # Calls in two threads would share its variables, if it has any.
    has_state = self._imported.has_state
    self._turn = threading.Lock() if has_state else contextlib.nullcontext()

  @functools.cached_property
  def _function(self):
    # A trace makes the call atomic: eager calls would not order initializers.
    # Made without a call, of which TensorFlow would say that it traces often.
    return tf.function(
        lambda *leaves: self._imported(leaves), autograph=False
    ).get_concrete_function(*self._specs)

  def __call__(self, arg: Any) -> Any:
    return self.call_flat(self._parameter.flatten(arg))

  def call_flat(self, leaves: Sequence[Any], as_numpy: bool = True) -> Any:
    """Calls with flat leaves; gives a packed result."""
    tensors = [
        tf.convert_to_tensor(leaf, spec.dtype)
        for leaf, spec in zip(leaves, self._specs)
    ]
    with self._turn:
      results = self._function(*tensors)
    if as_numpy:
      results = [
          values.to_numpy(leaf, leaf_type)
          for leaf, leaf_type in zip(results, self._result.leaf_types)
      ]
    return self._result.pack(results)


class Program:
  """A process that runs in this Python process, one compiled call a round."""

  def __init__(self, process: Any, options: devices_lib.ExecutionOptions):
    self._initialize = LocalFunction(process.initialize)
    self._round = compiled_round.CompiledRound(process.next, options)
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
    """Runs one round; returns the state, on the device, and the output, NumPy.

    Args:
      state: Result of `initialize` or of the last `next`.
      cohort: One client's value whose leaves have a leading axis M over the
        clients of the cohort (arrays or tensors).

    Raises:
      TypeError: If state or cohort do not match the process's types, or the
        cohort is a list of clients, as `process.next` takes them.
      ValueError: If the leaves disagree about M.
    """
    # A list of clients might pass for one value whose fields are the clients.
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

  Its `next` takes (state, client values) and returns (state, output). The
  options are those of `devices.ExecutionOptions`; if `devices` is None,
  `devices.configure` chooses them.

  Raises:
    forms.UnsupportedComputationError: If `next` is of another shape.
    TypeError: If clients hold data sets, which cannot be stacked: call
      `process.next` under `set_default_context()` then.
    ValueError: If an option is not one of those listed.
  """
  chosen = devices_lib.configure() if devices is None else devices
  return Program(process, devices_lib.ExecutionOptions(chosen, jit, clients))


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
