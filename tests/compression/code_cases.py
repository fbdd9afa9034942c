"""What every code has to pass; the tests of codes share it."""

import numpy as np
import pytest
import tensorflow as tf

from tff_localupdate.compression import codes

DIMENSIONS = (1, 2, 5, 17, 64)


def bits_of(data):
  """Returns the bits of `data` as text."""
  return ''.join(f'{byte:08b}' for byte in data)


def random_vectors(code, count):
  """Yields vectors of many magnitudes and densities, in range of the code."""
  rng = np.random.default_rng(1)
  low, high = code.index_range()
  for i in range(count):
    dimension = 7840 if i % 100 == 0 else DIMENSIONS[i % len(DIMENSIONS)]
    scale = 10.0 ** rng.uniform(-1.0, 3.0 if dimension < 7840 else 1.0)
    vector = np.round(scale * rng.standard_cauchy(dimension))
    vector *= rng.random(dimension) < rng.random()
    limit = 1e5 if dimension < 7840 else 1e3
    yield np.clip(vector, max(low, -limit), min(high, limit)).astype(np.int64)


def check_round_trips(code, count=1000):
  """Checks that vectors come back, in as many bits as `length` says."""
  length = tf.function(code.length)
  zeros = [np.zeros([d], np.int64) for d in (0, 1, 7840)]
  for vector in [*random_vectors(code, count), *zeros]:
    data = code.encode(vector)
    np.testing.assert_array_equal(code.decode(data, len(vector)), vector)
    num_bits = int(length(tf.constant(vector)))
    assert len(data) == -(-num_bits // 8)
    assert '1' not in bits_of(data)[num_bits:]


def check_extremes(code):
  """Checks the largest magnitudes, alone and among others."""
  for vector in ([1], [-1], [0, 1, 0], [-1, 0, 1]):
    vector = np.array(vector, np.int64) * (2**31 - 1)
    data = code.encode(vector)
    np.testing.assert_array_equal(code.decode(data, len(vector)), vector)
    assert len(data) == -(-int(code.length(tf.constant(vector))) // 8)


def check_corruption(code):
  """Checks that what is no message is refused, and only that.

  Bytes that are accepted must be those that `encode` makes of the result.
  """
  vector = next(random_vectors(code, 1))[:50]
  data = code.encode(vector)
  for end in range(len(data)):
    with pytest.raises(codes.DecodingError):
      code.decode(data[:end], 50)
  with pytest.raises(codes.DecodingError, match='too long'):
    code.decode(data + b'\x00', 50)
  with pytest.raises(codes.DecodingError):
    code.decode(data, 5000)
  rng, refused = np.random.default_rng(2), 0
  for i in range(1000):
    if i % 2:
      changed = rng.bytes(rng.integers(1, 40))
    else:
      changed = bytearray(data)
      changed[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
      changed = bytes(changed)
    try:
      found = code.decode(changed, 50)
    except codes.DecodingError:
      refused += 1
    else:
      assert code.encode(found) == changed
  assert refused > 300


def check_range(code):
  """Checks that integers out of range are refused, and told by `fits`."""
  low, high = code.index_range()
  for wrong in (low - 1, high + 1):
    with pytest.raises(ValueError, match=f'from {low} to {high} .* {wrong}'):
      code.encode(np.array([0, wrong]))
    assert not codes.fits(code, tf.constant([0, wrong], tf.int64))
  assert codes.fits(code, tf.constant([low, high], tf.int64))


ALL = (check_round_trips, check_corruption, check_range)
