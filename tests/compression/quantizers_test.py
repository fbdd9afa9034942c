"""Quantizers: exact values, unbiasedness, bounds, wrong arguments."""

import inspect
import textwrap

import numpy as np
import pytest
import tensorflow as tf

from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds

SEED = random_seeds.derive_seed(11)
# Quantizer, resolution.
ALL = {
    'vector': (quantizers.GridQuantizer('vector'), 0.7),
    'coordinate': (quantizers.GridQuantizer('coordinate'), 0.3),
    'qsgd': (quantizers.QsgdQuantizer(), 4),
    'uniform': (quantizers.UniformQuantizer(), 3),
}
DTYPES = (tf.float32, tf.float64)


def _vector(dtype=tf.float64, dimension=9):
  rng = np.random.default_rng(3)
  return tf.constant(rng.normal(size=dimension), dtype)


def _decode_often(quantizer, vector, resolution, count):
  """Returns decoded values for many seeds, float64 [count, d]."""

  def decode(number):
    seed = random_seeds.derive_seed(5, number)
    quantized = quantizer.quantize(vector, resolution, seed)
    return quantizer.dequantize(quantized, resolution)

  @tf.function
  def draw(numbers):
    return tf.map_fn(decode, numbers, fn_output_signature=vector.dtype)

  return draw(tf.range(count, dtype=tf.int64)).numpy().astype(np.float64)


def test_group_7_grid():
  ratios = tf.constant([0.30, -0.30, 0.0, 1.0, -1.2], tf.float64) / 0.25
  uniforms = tf.constant([0.5, 0.5, 0.5, 0.2, 0.7], tf.float64)
  indices = quantizers.stochastic_round(ratios, uniforms)
  np.testing.assert_array_equal(indices, [1, -1, 0, 4, -5])


def test_group_9_step():
  assert quantizers.grid_step(0.6, 36, 'vector') == pytest.approx(0.1, 1e-15)
  assert quantizers.grid_step(0.6, 36, 'coordinate') == 0.6


@pytest.mark.parametrize(
    'uniforms, values',
    [
        ([0.1, 0.5, 0.9, 0.0], [5 / 3, -10 / 3, 0.0, 0.0]),
        ([0.9, 0.7, 0.9, 0.0], [10 / 3, -5.0, 0.0, 0.0]),
    ],
)
def test_group_10_qsgd(uniforms, values):
  vector = tf.constant([3.0, -4.0, 0.0, 0.0], tf.float64)
  levels = tf.constant(3.0, tf.float64)
  indices, norm = quantizers.qsgd_round(vector, levels, tf.constant(
      uniforms, tf.float64))
  decoded = quantizers.QsgdQuantizer().dequantize(
      quantizers.QuantizedVector(indices, norm[tf.newaxis]), 3
  )
  np.testing.assert_allclose(decoded, values, rtol=1e-15)


def test_whole_numbers_are_never_rounded():
  # 4 + u is 5 in float32 for the largest u below 1.
  largest = np.nextafter(np.float32(1.0), np.float32(0.0))
  ratios = tf.constant([4.0, -4.0, 0.0, 2.0**25], tf.float32)
  indices = quantizers.stochastic_round(ratios, tf.fill([4], largest))
  np.testing.assert_array_equal(indices, [4, -4, 0, 2**25])


def test_what_has_no_index_is_out_of_range():
  ratios = tf.constant([np.nan, np.inf, -np.inf, 2.0**31, 2.0**31 - 1.0],
                       tf.float64)
  indices = quantizers.stochastic_round(ratios, tf.zeros([5], tf.float64))
  np.testing.assert_array_equal(indices, [2**31] * 4 + [2**31 - 1])


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('name', ALL)
def test_decoded_value_is_unbiased(name, dtype):
  quantizer, resolution = ALL[name]
  vector = _vector(dtype)
  draws = _decode_often(quantizer, vector, resolution, 2000)
  # No grid here has steps above 1, so no deviation is above 1/2.
  assert np.abs(draws.mean(axis=0) - vector).max() < 4.0 * 0.5 / np.sqrt(2000)


@pytest.mark.parametrize('grid', quantizers.GRIDS)
def test_grid_error_is_within_its_resolution(grid):
  quantizer, resolution = ALL[grid]
  vector = _vector(dimension=2000)
  quantized = quantizer.quantize(vector, resolution, SEED)
  error = quantizer.dequantize(quantized, resolution) - vector
  order = 2 if grid == 'vector' else np.inf
  assert np.linalg.norm(error, order) < resolution
  assert quantized.header.shape == [0]


def test_rounding_variance_is_that_of_the_error():
  quantizer, resolution = ALL['vector']
  vector = _vector()

  errors = _decode_often(quantizer, vector, resolution, 3000) - vector
  mean = np.mean(np.sum(errors**2, axis=1))
  expected = float(quantizer.rounding_variance(vector, resolution))
  assert mean == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize('name', ALL)
def test_zero_maps_to_zero(name):
  quantizer, resolution = ALL[name]
  quantized = quantizer.quantize(tf.zeros([5]), resolution, SEED)
  np.testing.assert_array_equal(quantized.indices, np.zeros([5]))
  np.testing.assert_array_equal(
      quantizer.dequantize(quantized, resolution), np.zeros([5])
  )


@pytest.mark.parametrize('name', ALL)
def test_pure_function_of_the_seed(name):
  quantizer, resolution = ALL[name]
  one, same, other = (
      quantizer.quantize(_vector(), resolution, seed).indices.numpy()
      for seed in (SEED, SEED, random_seeds.derive_seed(12))
  )
  np.testing.assert_array_equal(one, same)
  assert not np.array_equal(one, other)


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('levels', [1, 3])
def test_indices_stay_within_the_levels(dtype, levels):
  quantize_qsgd = tf.function(quantizers.QsgdQuantizer().quantize)
  quantize_uniform = tf.function(quantizers.UniformQuantizer().quantize)
  for i in range(200):
    seed = random_seeds.derive_seed(i)
    vector = _vector(dtype, dimension=1 + i % 3)
    qsgd = quantize_qsgd(vector, levels, seed)
    uniform = quantize_uniform(vector, levels, seed)
    assert np.abs(qsgd.indices).max() <= levels
    assert 0 <= np.min(uniform.indices) <= np.max(uniform.indices) <= levels


def test_uniform_keeps_its_ends():
  quantizer = quantizers.UniformQuantizer()
  vector = tf.constant([-1.0, 3.0, 0.2])
  quantized = quantizer.quantize(vector, 4, SEED)
  np.testing.assert_array_equal(quantized.header, [-1.0, 3.0])
  np.testing.assert_array_equal(quantized.indices[:2], [0, 4])
  np.testing.assert_array_equal(
      quantizer.dequantize(quantized, 4)[:2], [-1.0, 3.0]
  )


def test_identity_of_the_docs_takes_at_most_30_lines():
  text = inspect.getdoc(quantizers.Quantizer)
  example = text[text.index('    class Identity') :]
  assert len(example.splitlines()) <= 30
  scope = {'quantizers': quantizers, 'tf': tf}
  exec(textwrap.dedent(example), scope)
  identity = scope['IdentityQuantizer']()
  quantized = identity.quantize(_vector(), 1.0, SEED)
  np.testing.assert_array_equal(identity.dequantize(quantized, 1.0), _vector())


@pytest.mark.parametrize(
    'name, resolution',
    [
        ('vector', 0.0), ('coordinate', -1.0), ('vector', np.inf),
        ('qsgd', 0), ('qsgd', 2.0), ('uniform', 0), ('uniform', True),
    ],
)
def test_wrong_resolutions_are_refused(name, resolution):
  with pytest.raises(ValueError, match='resolution must be a .*, found'):
    ALL[name][0].check_resolution(resolution)


def test_wrong_grid_is_refused():
  with pytest.raises(ValueError, match="grid must be one of .*, found 'x'"):
    quantizers.GridQuantizer('x')
