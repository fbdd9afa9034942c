"""Seeds, draws and digests: distinct, uniform, and the same under XLA."""

import numpy as np
import pytest
import tensorflow as tf

from tff_localupdate.compression import random_seeds

DTYPES = (tf.float32, tf.float64)


def test_paths_give_distinct_seeds():
  paths = [(7,), (7, 0), (7, 1), (8, 0), (7, 0, 0), (7, 0, 1), (7, -1), (-7, 0)]
  seeds = {tuple(random_seeds.derive_seed(*path).numpy()) for path in paths}
  assert len(seeds) == len(paths)


@pytest.mark.parametrize('dtype', DTYPES)
def test_draws_are_the_same_eagerly_in_graphs_and_under_xla(dtype):
  def draw(seed):
    seed = random_seeds.derive_seed(seed, 3, 4)
    uniforms = random_seeds.draw_uniforms([1001], seed, dtype)
    return seed, uniforms, random_seeds.digest(uniforms, seed)

  number = tf.constant(5, tf.int64)
  eager = draw(number)
  for jit_compile in (None, True):
    for a, b in zip(eager, tf.function(draw, jit_compile=jit_compile)(number)):
      np.testing.assert_array_equal(a, b)


def test_float32_draws_are_the_float64_ones_cut_off():
  seed = random_seeds.derive_seed(3)
  single, double = (
      random_seeds.draw_uniforms([500], seed, dtype).numpy() for dtype in DTYPES
  )
  assert np.all((double - single >= 0.0) & (double - single < 2.0**-24))


@pytest.mark.parametrize('dtype', DTYPES)
def test_draws_are_uniform_on_the_half_open_interval(dtype):
  draws = random_seeds.draw_uniforms(
      [200_000], random_seeds.derive_seed(1), dtype
  ).numpy()
  assert draws.dtype == dtype.as_numpy_dtype
  assert draws.min() >= 0.0 and draws.max() < 1.0
  counts, _ = np.histogram(draws, bins=20, range=(0.0, 1.0))
  assert np.abs(counts / 10_000 - 1.0).max() < 0.05


def test_unit_vectors_have_norm_1_and_no_direction():
  draw = tf.function(
      lambda i: random_seeds.draw_unit_vector(
          8, random_seeds.derive_seed(0, i), tf.float64
      )
  )
  vectors = np.stack([draw(i) for i in tf.range(400)])
  np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-12)
  assert np.linalg.norm(vectors.mean(axis=0)) < 3.0 / np.sqrt(400)
  np.testing.assert_allclose(
      vectors.T @ vectors / 400, np.eye(8) / 8, atol=0.04
  )


@pytest.mark.parametrize('dtype', DTYPES)
def test_digests_tell_values_apart(dtype):
  seed = random_seeds.derive_seed(0)
  vector = np.ones([50], dtype.as_numpy_dtype)
  variants = [vector.copy() for _ in range(4)]
  variants[1][7] = np.nextafter(vector[7], 2.0, dtype=vector.dtype)
  variants[2][7] = -1.0
  variants[3][7] = 2.0
  digests = [
      int(random_seeds.digest(tf.constant(v), seed)) for v in variants
  ]
  assert len(set(digests)) == 4
  assert digests[0] == int(random_seeds.digest(tf.constant(vector), seed))


@pytest.mark.parametrize('seed', [1.0, True, None, '1', 2**63])
def test_wrong_seeds_are_refused(seed):
  with pytest.raises(ValueError, match='seed must be a whole number of'):
    random_seeds.check_seed('seed', seed)


@pytest.mark.parametrize('seed', [0, -1, np.int64(3), 2**63 - 1])
def test_whole_numbers_of_any_kind_are_seeds(seed):
  random_seeds.check_seed('seed', seed)
