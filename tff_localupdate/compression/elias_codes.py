"""Codes made of Elias gamma numbers: zigzag, and run-length as in QSGD.

A number n >= 1 is sent as floor(log2 n) zeros and then n in binary, which is
2 floor(log2 n) + 1 bits. Elias, Universal Codeword Sets and Representations of
the Integers, 1975.
"""

import numpy as np
import tensorflow as tf

from tff_localupdate.compression import bit_strings
from tff_localupdate.compression import codes


class EliasGammaCode(codes.Code):
  """The gamma code of 1 + zigzag(k): 0, -1, 1, -2, 2 -> 1, 2, 3, 4, 5."""

  def length(self, indices: tf.Tensor) -> tf.Tensor:
    numbers = 2 * tf.abs(indices) + tf.cast(indices >= 0, tf.int64)
    return tf.reduce_sum(_gamma_length(numbers))

  def _encode(self, indices):
    numbers = 2 * np.abs(indices) + (indices >= 0)
    return bit_strings.pack(numbers, _gamma_width(numbers))

  def decode(self, data: bytes, dimension: int) -> np.ndarray:
    reader = bit_strings.BitReader(data)
    numbers = np.array(
        [reader.read_gamma() for _ in range(dimension)], np.int64
    )
    reader.finish()
    halves = numbers >> 1
    return codes.checked_range(np.where(numbers & 1, halves, -halves))


class RunLengthCode(codes.Code):
  """For each k that is not 0, its distance from the last one, sign and |k|.

  Distance and magnitude in the Elias gamma code, between them one sign bit (0
  plus, 1 minus). The first distance is from the place before the vector. Unless
  the last coordinate is not 0, the distance to the place after the vector ends
  the message. So zeros cost next to nothing.

  Source: Alistarh et al., QSGD, NIPS 2017, section 3.1.

  Departures: they use Elias' omega code, and do not say how a message ends.
  """

  def length(self, indices: tf.Tensor) -> tf.Tensor:
    dimension = indices.shape[0]
    places = tf.range(dimension, dtype=tf.int64)
    nonzero = tf.not_equal(indices, 0)
    last = _running_maximum(tf.where(nonzero, places, -1))
    previous = tf.concat([tf.constant([-1], tf.int64), last], axis=0)
    each = (
        _gamma_length(places - previous[:-1])
        + 1
        + _gamma_length(tf.maximum(tf.abs(indices), 1))
    )
    rest = dimension - previous[-1]
    end = tf.where(rest > 1, _gamma_length(rest), 0)
    return tf.reduce_sum(tf.where(nonzero, each, 0)) + end

  def _encode(self, indices):
    places = np.flatnonzero(indices)
    distances = np.diff(places, prepend=-1)
    found = indices[places]
    numbers = np.stack([distances, found < 0, np.abs(found)], axis=1)
    widths = np.stack(
        [_gamma_width(distances), np.ones_like(found), _gamma_width(found)],
        axis=1,
    )
    rest = len(indices) - (places[-1] if len(places) else -1)
    end = np.array([rest] if rest > 1 else [], np.int64)
    return bit_strings.pack(
        np.concatenate([numbers.ravel(), end]),
        np.concatenate([widths.ravel(), _gamma_width(end)]),
    )

  def decode(self, data: bytes, dimension: int) -> np.ndarray:
    reader = bit_strings.BitReader(data)
    indices, place = np.zeros(dimension, np.int64), -1
    while place < dimension - 1:
      place += reader.read_gamma()
      if place > dimension:
        raise codes.DecodingError(
            f'The message is corrupted: it has an integer at place {place} of '
            f'{dimension}.'
        )
      if place < dimension:
        sign = -1 if reader.read_bit() else 1
        indices[place] = sign * reader.read_gamma()
    reader.finish()
    return codes.checked_range(indices)


def _gamma_width(numbers: np.ndarray) -> np.ndarray:
  """Returns 2 floor(log2 |n|) + 1 for n of magnitudes from 1 to 2^32 - 1."""
  _, exponents = np.frexp(np.abs(numbers).astype(np.float64))
  return 2 * exponents.astype(np.int64) - 1


def _gamma_length(numbers: tf.Tensor) -> tf.Tensor:
  """Returns 2 floor(log2 n) + 1 for n from 1 to 2^53, int64."""
  # The exponent of a float64; logarithms are not exact.
  bits = tf.bitcast(tf.cast(numbers, tf.float64), tf.int64)
  exponents = tf.bitwise.right_shift(bits, tf.constant(52, tf.int64)) - 1023
  return 2 * exponents + 1


def _running_maximum(values: tf.Tensor) -> tf.Tensor:
  """Returns the maxima of values[: i + 1], in log2(d) steps that XLA takes."""
  distance = 1
  while distance < values.shape[0]:
    shifted = tf.concat([values[:distance], values[:-distance]], axis=0)
    values = tf.maximum(values, shifted)
    distance *= 2
  return values
