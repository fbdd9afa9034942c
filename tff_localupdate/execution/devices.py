"""Where and how rounds run: TensorFlow's devices, and options of compilation.

`configure` prepares the process once, before anything runs on TensorFlow: which
devices, memory growth, threads, determinism. `ExecutionOptions` says how each
round is compiled for them.
"""

import ctypes
import dataclasses
import os
from typing import Optional, Sequence, Union

import tensorflow as tf

_JIT = ('auto', 'on', 'off')
_CLIENTS = ('auto', 'loop', 'parallel')
HOST = ('/device:CPU:0',)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Of `mallopt` in malloc.h.
# In bytes. A block that goes back costs new pages the next time: computations
# in NumPy, which take blocks of up to 16 MiB again and again, keep theirs.
_LARGE, _KEPT = 18 * 2 ** 20, 2 ** 26


@dataclasses.dataclass(frozen=True)
class ExecutionOptions:
  """How rounds are compiled; this changes only errors and rounding.

  TensorFlow's kernels check indices and divisors. XLA takes the nearest row for
  an index out of range. So `'auto'` never compiles client work that has
  assertions (`tf.debugging.assert_*`) by XLA.

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


def configure(
    devices: Union[str, Sequence[str]] = 'auto',
    *,
    require_gpu: bool = False,
    deterministic: bool = False,
    tensor_float_32: Optional[bool] = None,
) -> tuple[str, ...]:
  """Prepares TensorFlow's devices and returns the names of those in use.

  Call it before anything else runs on TensorFlow: once a device is in use,
  memory growth and threads stay as they are.

  Without a GPU an operation gets one thread, unless a number is set already
  (`tf.config.threading` or TF_NUM_INTRAOP_THREADS): the operations of a local
  step are too small to split, so the cores share the clients of a cohort.

  Large blocks of memory that are freed after building (weights in protos) go
  back to the system, where glibc would keep them, unless its own variables
  (MALLOC_MMAP_THRESHOLD_ and others) are set.

  Args:
    devices: `'auto'` (every visible GPU, else the first CPU), or names such as
      `'GPU:0,GPU:1'`, `'CPU:0'`, as one text or a sequence.
    require_gpu: Raise RuntimeError unless all chosen devices are GPUs.
    deterministic: On GPUs, ask TensorFlow for deterministic kernels, so that
      the same seed gives the same bits on one device; the CPU kernels used here
      are so anyway. TensorFlow then refuses to trace random operations without
      a seed, such as the noise of differential privacy.
    tensor_float_32: Whether GPUs may round the factors of float32 products to
      10 bits (TF32), which is faster; None leaves TensorFlow's setting, by
      default that they may.

  Returns full names, such as `('/device:GPU:0',)`. Raises ValueError if a
  device does not exist or is named twice.
  """
  _return_large_blocks()
  _grow_memory()
  _choose_threads()
  gpus = tf.config.list_logical_devices('GPU')
  if require_gpu and not gpus:
    raise RuntimeError(
        'require_gpu: TensorFlow sees no GPU on this machine '
        f'(CUDA_VISIBLE_DEVICES={os.environ.get("CUDA_VISIBLE_DEVICES")!r}); '
        'install requirements-gpu.txt on a GPU host or drop the flag.'
    )
  chosen = _resolve(devices, gpus)
  if require_gpu and any('GPU' not in name for name in chosen):
    raise RuntimeError(
        f'require_gpu: devices {list(chosen)} include one that is no GPU.'
    )
  if tensor_float_32 is not None:
    tf.config.experimental.enable_tensor_float_32_execution(tensor_float_32)
  if deterministic and any('GPU' in name for name in chosen):
    tf.config.experimental.enable_op_determinism()
  return chosen


def core_count() -> int:
  """Number of CPU cores that this process may use."""
  return len(os.sched_getaffinity(0))


def short_name(device: Optional[str]) -> str:
  """`'/job:localhost/.../device:GPU:0'` -> `'GPU:0'`."""
  return (device or '').rsplit('device:', 1)[-1] or 'unknown'


def _return_large_blocks() -> None:
  # Blocks above a threshold are mapped by themselves, and freeing one gives it
  # back. But glibc raises the threshold to the largest block freed so far,
  # unless it is set: after one large proto, all blocks would be kept. Tensors
  # have an allocator of TensorFlow, which this does not concern.
  if any(n.startswith(('MALLOC_', 'GLIBC_TUNABLES')) for n in os.environ):
    return
  mallopt = getattr(ctypes.CDLL(None), 'mallopt', None)
  if mallopt is not None:  # Another C library has none.
    mallopt(_MMAP_THRESHOLD, _LARGE)
    mallopt(_TRIM_THRESHOLD, _KEPT)


def _grow_memory() -> None:
  for gpu in tf.config.list_physical_devices('GPU'):
    try:
      tf.config.experimental.set_memory_growth(gpu, True)
    except RuntimeError:  # already in use: the setting in force is kept
      return


def _choose_threads() -> None:
  if tf.config.list_physical_devices('GPU'):
    return
  threading = tf.config.threading
  if threading.get_intra_op_parallelism_threads() or os.environ.get(
      'TF_NUM_INTRAOP_THREADS'):
    return
  try:
    threading.set_intra_op_parallelism_threads(1)
  except RuntimeError:  # already in use: the setting in force is kept
    return


def _resolve(devices, gpus) -> tuple[str, ...]:
  """Full names of the devices asked for, in any of the spellings allowed."""
  if devices == 'auto':
    return tuple('/device:' + short_name(d.name) for d in gpus) or HOST
  names = devices.split(',') if isinstance(devices, str) else list(devices)
  known = {short_name(d.name) for d in tf.config.list_logical_devices()}
  resolved = [short_name('device:' + n.strip().upper().replace(
      '/DEVICE:', '')) for n in names]
  for name in resolved:
    if name not in known:
      raise ValueError(
          f'devices: {name!r} is not one of {sorted(known)} that TensorFlow '
          'sees here.'
      )
  if not resolved:
    raise ValueError('devices: at least one is needed, got none.')
  if len(set(resolved)) != len(resolved):
    raise ValueError(f'devices: each at most once, got {resolved}.')
  return tuple('/device:' + name for name in resolved)
