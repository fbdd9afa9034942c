"""How rounds are compiled."""

import dataclasses

_JIT = ('auto', 'on', 'off')
_CLIENTS = ('auto', 'loop', 'parallel')
HOST = ('/device:CPU:0',)


@dataclasses.dataclass(frozen=True)
class ExecutionOptions:
  """How rounds are compiled; never what they compute, but for errors.

  TensorFlow's kernels check indices and divisors; XLA does not: it takes the
  nearest row for an index out of range. Client work that has assertions
  (`tf.debugging.assert_*`) is not compiled by it under `'auto'`.

  Attributes:
    devices: Names as `configure` returns them, such as '/device:GPU:0'; several
      share each cohort, in contiguous parts.
    jit: `'on'` compiles the round with XLA, `'off'` runs TensorFlow's own
      kernels; `'auto'` takes XLA where it compiles, except for convolutions on
      a CPU, where TensorFlow's kernels are faster.
    clients: `'loop'` (one after another), `'parallel'` (several at a time on
      the cores; still summed in order; XLA then compiles the work of a client,
      not the round); `'auto'` picks `'parallel'` where XLA is not used, and on
      a CPU for recurrent models and for 100,000 weights or more. Client work
      with variables is never parallel.
  """

  devices: tuple[str, ...] = HOST
  jit: str = 'auto'
  clients: str = 'auto'

  def __post_init__(self):
    if isinstance(self.devices, str) or not self.devices or not all(
        name.startswith('/device:') for name in self.devices
    ):
      raise ValueError(
          'devices: must be names as configure returns them, at least one, got '
          f'{self.devices!r}.'
      )
    object.__setattr__(self, 'devices', tuple(self.devices))
    if self.jit not in _JIT:
      raise ValueError(f'jit: must be one of {_JIT}, got {self.jit!r}.')
    if self.clients not in _CLIENTS:
      raise ValueError(
          f'clients: must be one of {_CLIENTS}, got {self.clients!r}.'
      )

  @property
  def use_cpu(self) -> bool:
    """Whether any of the devices is a CPU."""
    return any('CPU' in device for device in self.devices)
