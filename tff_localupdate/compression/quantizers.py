"""Unbiased quantizers: from a vector to integers and back, pure TensorFlow.

A quantizer rounds each coordinate at random to one of its two neighbours on a
grid, so that the expectation is the coordinate. It is a pure function of
(vector, resolution, seed). To add one, write a `Quantizer`.
"""

import abc
from typing import Any, NamedTuple, Union

import tensorflow as tf

from tff_localupdate import arguments
from tff_localupdate.compression import random_seeds

# The largest magnitude of an index; one more stands for what has no index.
MAX_INDEX = 2**31 - 1
GRIDS = ('vector', 'coordinate')

Resolution = Union[float, int, tf.Tensor]


class QuantizedVector(NamedTuple):
  """What a quantizer makes of a vector: all that has to be sent.

  Attributes:
    indices: int64 [n], the integers that a code carries; usually n = d.
    header: [c], floats in the dtype of the vector that are sent as they are; c
      may be 0.
  """

  indices: Any
  header: Any


class Quantizer(abc.ABC):
  """Maps vectors to integers and a few floats, and back.

  The resolution is known to both sides and is not sent. What it means is up to
  the quantizer. This one sends all floats as they are, in the header:

      class IdentityQuantizer(quantizers.Quantizer):

        def quantize(self, vector, resolution, seed):
          no_indices = tf.zeros([0], tf.int64)
          return quantizers.QuantizedVector(no_indices, header=vector)

        def dequantize(self, quantized, resolution):
          return quantized.header
  """

  @abc.abstractmethod
  def quantize(
      self, vector: tf.Tensor, resolution: Resolution, seed: tf.Tensor
  ) -> QuantizedVector:
    """Quantizes [d], float32 or float64; `seed` is int64 [2]."""

  @abc.abstractmethod
  def dequantize(
      self, quantized: QuantizedVector, resolution: Resolution
  ) -> tf.Tensor:
    """Returns the vector that `quantized` stands for, in the header's dtype."""

  def check_resolution(self, resolution: Any) -> None:
    """Raises ValueError if a number is out of the range of resolutions."""
    del resolution  # Without a rule, all are in range.


class GridQuantizer(Quantizer):
  """The quantizer of CEAL: a fixed grid through 0, without header.

  With step h, of `grid_step`, and u_i uniform on [0, 1):

      k_i = floor(v_i / h + u_i),   decoded value k_i h

  Unbiased; each coordinate is off by less than h; 0 maps to 0. The resolution
  is a positive number, the accuracy asked for.

  Source: inferred; arXiv 2301.08869 needs a quantizer whose error its
  resolution bounds, and the one it has is not known.
  """

  def __init__(self, grid: str = 'vector'):
    """Makes a quantizer whose resolution bounds the error in L2 norm.

    That of the whole vector if `grid` is `vector`, of each coordinate if it is
    `coordinate`.
    """
    arguments.check_choice('grid', grid, GRIDS)
    self._grid = grid

  def quantize(
      self, vector: tf.Tensor, resolution: Resolution, seed: tf.Tensor
  ) -> QuantizedVector:
    step = self._step(vector, resolution)
    uniforms = random_seeds.draw_uniforms(tf.shape(vector), seed, vector.dtype)
    return QuantizedVector(
        stochastic_round(vector / step, uniforms), tf.zeros([0], vector.dtype)
    )

  def dequantize(
      self, quantized: QuantizedVector, resolution: Resolution
  ) -> tf.Tensor:
    values = tf.cast(quantized.indices, quantized.header.dtype)
    return values * self._step(values, resolution)

  def check_resolution(self, resolution: Any) -> None:
    arguments.check_positive('resolution', resolution)

  def rounding_variance(
      self, vector: tf.Tensor, resolution: Resolution
  ) -> tf.Tensor:
    """Returns the expected squared L2 norm of the error of rounding, a scalar.

    It is h^2 times the sum of p_i (1 - p_i), p_i the fractional part of v_i/h.
    """
    step = self._step(vector, resolution)
    ratios = vector / step
    fractions = ratios - tf.floor(ratios)
    return tf.square(step) * tf.reduce_sum(fractions * (1.0 - fractions))

  def _step(self, vector, resolution):
    return grid_step(
        _cast(resolution, vector.dtype), vector.shape[0], self._grid
    )


class QsgdQuantizer(Quantizer):
  """QSGD with s levels: a grid on [-|v|, |v|], its header the norm.

  With u_i uniform on [0, 1):

      l_i = floor(s |v_i| / |v| + u_i),   decoded value sign(v_i) |v| l_i / s

  The index is sign(v_i) l_i, of magnitude at most s; all is 0 for v = 0, and
  where the squares of the v_i underflow (below about 1e-23 in float32). The
  resolution is s, a whole number that is at least 1.

  Source: Alistarh et al., QSGD, NIPS 2017, arXiv 1610.02132.
  """

  def quantize(
      self, vector: tf.Tensor, resolution: Resolution, seed: tf.Tensor
  ) -> QuantizedVector:
    levels = _cast(resolution, vector.dtype)
    uniforms = random_seeds.draw_uniforms(tf.shape(vector), seed, vector.dtype)
    indices, norm = qsgd_round(vector, levels, uniforms)
    return QuantizedVector(indices, norm[tf.newaxis])

  def dequantize(
      self, quantized: QuantizedVector, resolution: Resolution
  ) -> tf.Tensor:
    norm = quantized.header[0]
    values = tf.cast(quantized.indices, norm.dtype)
    return norm * values / _cast(resolution, norm.dtype)

  def check_resolution(self, resolution: Any) -> None:
    arguments.check_count('resolution', resolution)


class UniformQuantizer(Quantizer):
  """A grid of s equal steps from the least to the largest coordinate.

  With lo and hi those two, h = (hi - lo) / s, and u_i uniform on [0, 1):

      k_i = floor((v_i - lo) / h + u_i),   decoded value lo + k_i h

  The header is (lo, hi); indices are 0, ..., s; all are 0 if lo = hi. The
  resolution is s, a whole number that is at least 1.

  Source: Suresh et al., Distributed Mean Estimation with Limited Communication,
  ICML 2017, section 2.2, with k = s + 1.
  """

  def quantize(
      self, vector: tf.Tensor, resolution: Resolution, seed: tf.Tensor
  ) -> QuantizedVector:
    levels = _cast(resolution, vector.dtype)
    low, high = tf.reduce_min(vector), tf.reduce_max(vector)
    ratios = tf.math.divide_no_nan(levels * (vector - low), high - low)
    uniforms = random_seeds.draw_uniforms(tf.shape(vector), seed, vector.dtype)
    indices = stochastic_round(tf.minimum(ratios, levels), uniforms)
    return QuantizedVector(indices, tf.stack([low, high]))

  def dequantize(
      self, quantized: QuantizedVector, resolution: Resolution
  ) -> tf.Tensor:
    low, high = tf.unstack(quantized.header)
    values = tf.cast(quantized.indices, low.dtype)
    return low + (high - low) * values / _cast(resolution, low.dtype)

  def check_resolution(self, resolution: Any) -> None:
    arguments.check_count('resolution', resolution)


def grid_step(
    resolution: Resolution, dimension: int, grid: str
) -> Resolution:
  """Returns h: resolution / sqrt(d) for `vector`, else the resolution."""
  return resolution / dimension**0.5 if grid == 'vector' else resolution


def stochastic_round(ratios: tf.Tensor, uniforms: tf.Tensor) -> tf.Tensor:
  """Returns floor(r_i + u_i): r_i in expectation over u_i on [0, 1).

  For r and u, [d], int64 [d]; MAX_INDEX + 1 where r_i is not finite or the
  result's magnitude is above MAX_INDEX. A whole r_i stays as it is whatever
  u_i, also where r_i + u_i would be rounded up to the next whole number in
  floating point.
  """
  # The fraction is compared with u, not r + u floored: the sum may be rounded.
  floors = tf.floor(ratios)
  rounded_up = (ratios - floors) + uniforms >= 1.0
  rounded = floors + tf.cast(rounded_up, ratios.dtype)
  has_index = tf.abs(rounded) < MAX_INDEX + 1.0
  return tf.where(
      has_index,
      tf.cast(tf.where(has_index, rounded, tf.zeros_like(rounded)), tf.int64),
      tf.constant(MAX_INDEX + 1, tf.int64),
  )


def qsgd_round(
    vector: tf.Tensor, levels: tf.Tensor, uniforms: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the indices of QSGD, int64 [d], and the norm |v|.

  For v and u, [d], and `levels` s, a scalar in the dtype of v.
  """
  norm = tf.norm(vector)
  ratios = tf.math.divide_no_nan(levels * tf.abs(vector), norm)
  # |v_i| / |v| may come out above 1, by rounding, but no level is above s.
  indices = stochastic_round(tf.minimum(ratios, levels), uniforms)
  return tf.where(vector < 0.0, -indices, indices), norm


def _cast(resolution: Resolution, dtype: tf.DType) -> tf.Tensor:
  # The hint keeps a Python float in full precision on its way to float64.
  return tf.cast(tf.convert_to_tensor(resolution, dtype_hint=dtype), dtype)
