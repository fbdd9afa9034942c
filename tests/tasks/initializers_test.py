"""Initial weights have Keras's distributions and depend on the seed alone."""

import numpy as np
import pytest

from baselines.tasks import models


def _draw(initializer, shape):
  return initializer(np.random.default_rng(0), shape)


def test_glorot_uniform():
  # Fans of a 5x5 kernel with 3 and 4 channels: 75 and 100.
  values = _draw(models.glorot_uniform, (5, 5, 3, 4))
  limit = np.sqrt(6 / 175)
  assert np.abs(values).max() <= limit
  assert np.std(values) == pytest.approx(limit / np.sqrt(3), rel=0.1)


def test_he_normal_is_cut_and_has_its_variance():
  values = _draw(models.he_normal, (100, 400))
  assert np.std(values) == pytest.approx(np.sqrt(2 / 100), rel=0.02)
  stddev = np.sqrt(2 / 100) / 0.87962566103423978
  assert np.abs(values).max() <= 2 * stddev
  assert np.abs(values).max() > 1.99 * stddev


def test_small_normal():
  values = _draw(models.small_normal, (100, 400))
  assert np.std(values) == pytest.approx(0.01, rel=0.02)
  assert np.mean(values) == pytest.approx(0, abs=2e-4)


@pytest.mark.parametrize('shape', [(8, 32), (32, 8), (6, 6)])
def test_orthogonal(shape):
  q = _draw(models.orthogonal, shape)
  assert q.shape == shape
  gram = q @ q.T if shape[0] <= shape[1] else q.T @ q
  np.testing.assert_allclose(gram, np.eye(min(shape)), atol=1e-12)


def test_embedding_and_biases():
  assert np.abs(_draw(models.embedding_uniform, (90, 8))).max() <= 0.05
  assert not _draw(models.zeros, (3,)).any()
  assert (_draw(models.ones, (3,)) == 1).all()
  np.testing.assert_array_equal(
      _draw(models.unit_forget_bias, (8,)), [0, 0, 1, 1, 0, 0, 0, 0]
  )


_SPEC = (
    ('a', (3, 2), models.glorot_uniform),
    ('b', (3, 2), models.glorot_uniform),
)


def test_weights_are_a_function_of_seed_and_dtype():
  first = models.initial_weights(_SPEC, 1, 'float64')
  again = models.initial_weights(_SPEC, np.int64(1), 'float64')
  rounded = models.initial_weights(_SPEC, 1, 'float32')
  for a, b, c in zip(first, again, rounded):
    np.testing.assert_array_equal(a, b)
    assert a.dtype == np.float64 and c.dtype == np.float32
    np.testing.assert_array_equal(a.astype(np.float32), c)
  assert not np.array_equal(first[0], first[1])


def test_seeds_differ():
  draws = {
      models.initial_weights(_SPEC, seed, 'float64')[0].tobytes()
      for seed in (0, 1, -1, 2**40)
  }
  assert len(draws) == 4


def test_a_weights_draw_does_not_depend_on_the_others():
  alone = models.initial_weights(_SPEC[1:], 1, 'float64')
  both = models.initial_weights(_SPEC, 1, 'float64')
  np.testing.assert_array_equal(alone[0], both[1])


@pytest.mark.parametrize('seed', [True, 1.0, None])
def test_seed_that_is_no_integer_is_refused(seed):
  with pytest.raises(TypeError, match='seed must be an integer'):
    models.initial_weights(_SPEC, seed, 'float32')


def test_other_dtypes_are_refused():
  with pytest.raises(ValueError, match="dtype must be .* got 'float16'"):
    models.initial_weights(_SPEC, 1, 'float16')
