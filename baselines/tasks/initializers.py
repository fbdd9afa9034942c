"""Initial weights with Keras's distributions, drawn by NumPy.

A draw depends on the generator alone, not on TensorFlow's kernels, devices or
global seeds. Source: `tf.keras.initializers` of Keras 2.14.
"""

from collections.abc import Callable, Sequence
import numbers
import zlib

import numpy as np

Initializer = Callable[[np.random.Generator, Sequence[int]], np.ndarray]

# Standard deviation of a standard normal cut at two of them.
_TRUNCATED_STDDEV = 0.87962566103423978


def _fans(shape: Sequence[int]) -> tuple[float, float]:
  """Returns (fan in, fan out) of a matrix or a convolution kernel."""
  receptive_field = float(np.prod(shape[:-2]))
  return receptive_field * shape[-2], receptive_field * shape[-1]


def zeros(generator: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
  """All 0."""
  del generator
  return np.zeros(shape)


def ones(generator: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
  """All 1."""
  del generator
  return np.ones(shape)


def small_normal(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Normal with standard deviation 0.01."""
  return 0.01 * generator.standard_normal(shape)


def glorot_uniform(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Uniform on [-l, l], l = sqrt(6 / (fan in + fan out))."""
  limit = np.sqrt(6.0 / sum(_fans(shape)))
  return generator.uniform(-limit, limit, shape)


def he_normal(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Normal cut at two standard deviations, with variance 2 / fan in."""
  values = generator.standard_normal(shape)
  while (outside := np.abs(values) > 2).any():
    values[outside] = generator.standard_normal(outside.sum())
  return values * (np.sqrt(2.0 / _fans(shape)[0]) / _TRUNCATED_STDDEV)


def embedding_uniform(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Uniform on [-0.05, 0.05]."""
  return generator.uniform(-0.05, 0.05, shape)


def orthogonal(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """Matrix whose shorter side is orthonormal, uniform among those."""
  rows, columns = shape
  q, r = np.linalg.qr(
      generator.standard_normal((max(rows, columns), min(rows, columns)))
  )
  q *= np.sign(np.diag(r))  # Makes the factorisation, and so q, unique.
  return q if rows >= columns else q.T


def unit_forget_bias(
    generator: np.random.Generator, shape: Sequence[int]
) -> np.ndarray:
  """LSTM bias [4 H] in the order i, f, c, o: 1 for the forget gate, else 0."""
  del generator
  bias = np.zeros(shape)
  units = shape[0] // 4
  bias[units : 2 * units] = 1.0
  return bias


def initial_weights(
    spec: Sequence[tuple[str, Sequence[int], Initializer]],
    seed: int,
    dtype: str,
) -> tuple[np.ndarray, ...]:
  """Draws a model's weights, a pure function of its arguments.

  Each weight has its own stream, named after it; float32 weights are the
  float64 ones rounded.

  Args:
    spec: (name, shape, initializer) of each weight.
    seed: Any integer.
    dtype: 'float32' or 'float64'.

  Returns:
    The weights in the order of `spec`.

  Raises:
    TypeError: If seed is not an integer.
    ValueError: If dtype is another one.
  """
  if not isinstance(seed, numbers.Integral) or isinstance(seed, bool):
    raise TypeError(f'seed must be an integer, got {seed!r}.')
  if dtype not in ('float32', 'float64'):
    raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}.")
  return tuple(
      initializer(
          np.random.default_rng([zlib.crc32(name.encode()), *_words(seed)]),
          shape,
      ).astype(dtype)
      for name, shape, initializer in spec
  )


def _words(seed: int) -> tuple[int, int]:
  """Returns the seed as integers >= 0, which is what NumPy takes."""
  seed = int(seed)
  return abs(seed), int(seed < 0)
