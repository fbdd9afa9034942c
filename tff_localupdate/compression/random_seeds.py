"""Stateless seeds: one seed for each thing that is drawn, pure functions all.

A seed is an int64 tensor [2], as the `tf.random.stateless_*` functions take.
The generator is Philox on every device, so that a seed gives the same numbers
eagerly, in a graph and under XLA.
"""

import math
import numbers
from typing import Any, Union

import tensorflow as tf

_ALGORITHM = 'philox'
# As many as a float of the dtype holds.
_NUM_BITS = {tf.float32: 24, tf.float64: 53}

Integer = Union[int, tf.Tensor]


def check_seed(name: str, value: Any) -> None:
  """Raises ValueError unless `value` is a whole number that fits an int64."""
  is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
  if not is_whole or not -(2**63) <= int(value) < 2**63:
    raise ValueError(
        f'{name} must be a whole number of at most 64 bits, found {value!r}.'
    )


def derive_seed(seed: Integer, *path: Integer) -> tf.Tensor:
  """Returns the seed, int64 [2], at the end of a path of whole numbers.

  `seed` is that of a whole process; the path may be round and client. Different
  paths give unrelated seeds, and so unrelated draws.
  """
  derived = tf.stack([tf.cast(seed, tf.int64), tf.constant(0, tf.int64)])
  for number in path:
    derived = tf.random.experimental.stateless_fold_in(
        derived, tf.cast(number, tf.int64), alg=_ALGORITHM
    )
  return derived


def draw_uniforms(shape: Any, seed: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
  """Returns independent draws from the uniform distribution on [0, 1).

  They are the first 24 bits of draws of whole numbers, in float64 the first 53:
  one seed gives nearly the same numbers in both. XLA lays out the draws of
  `tf.random.stateless_uniform` differently for floats, not for whole numbers.
  `seed` is int64 [2], `dtype` float32 or float64.
  """
  num_bits = _NUM_BITS[dtype]
  kept = tf.bitwise.bitwise_and(
      tf.bitwise.right_shift(
          _draw_integers(shape, seed), tf.constant(64 - num_bits, tf.int64)
      ),
      tf.constant(2**num_bits - 1, tf.int64),
  )
  return tf.cast(kept, dtype) * 2.0**-num_bits


def draw_unit_vector(
    dimension: int, seed: tf.Tensor, dtype: tf.DType
) -> tf.Tensor:
  """Returns a draw from the uniform distribution on the unit sphere, [d]."""
  radius, angle = tf.unstack(draw_uniforms([2, dimension], seed, dtype))
  # Box and Muller's normals; 1 - u is never 0.
  normals = tf.sqrt(-2.0 * tf.math.log(1.0 - radius)) * tf.cos(
      2.0 * math.pi * angle
  )
  return normals / tf.norm(normals)


def digest(vector: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
  """Returns a digest of the bits of `vector`, an int64 scalar.

  The sum, modulo 2^64, of the coordinates' bit patterns, in words of 32 bits,
  each times a random 64-bit number that `seed`, int64 [2], determines. Equal
  vectors, float32 or float64, have equal digests. Two that differ have the same
  one with a chance of at most 2^-32 over the random numbers.
  """
  words = tf.cast(tf.bitcast(vector, tf.int32), tf.int64)
  factors = _draw_integers(tf.shape(words), seed)
  # Integer arithmetic of TensorFlow wraps around, on every device.
  return tf.reduce_sum(words * factors)


def _draw_integers(shape: Any, seed: tf.Tensor) -> tf.Tensor:
  """Returns independent draws from all numbers of 64 bits, int64."""
  return tf.random.stateless_uniform(
      shape, seed, minval=None, maxval=None, dtype=tf.int64, alg=_ALGORITHM
  )
