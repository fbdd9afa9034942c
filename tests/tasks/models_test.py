"""Initial weights have Keras's distributions and depend on the seed alone.

Models are plain functions of their weights, with the mean as the loss.
"""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

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


def _build_model(dtype='float32'):
  return models.build_functional_model(
      apply_fn=models.dense,
      weight_spec=(
          ('w', (4, 3), models.glorot_uniform),
          ('b', (3,), models.zeros),
      ),
      example_loss_fn=models.classification_loss,
      input_spec=(
          tf.TensorSpec((None, 2, 2), tf.float32),
          tf.TensorSpec((None,), tf.int32),
      ),
      seed=1,
      dtype=dtype,
  )


_X = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
_Y = np.array([0, 2], np.int32)


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_model_casts_to_the_dtype_of_its_weights(dtype):
  model = _build_model(dtype)
  output = model.predict_on_batch(model.initial_weights, _X, training=True)
  assert output.dtype == dtype
  assert model.loss(output, _Y).dtype == dtype
  kernel, bias = model.initial_weights[0]
  np.testing.assert_allclose(
      output, _X.reshape(2, 4) @ kernel + bias, rtol=1e-6
  )


def test_loss_is_the_mean_over_the_batch():
  model = _build_model()
  output = tf.constant([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
  probabilities = np.exp(output) / np.exp(output).sum(1, keepdims=True)
  losses = -np.log(probabilities[[0, 1], _Y])
  np.testing.assert_allclose(model.loss(output, _Y), losses.mean(), rtol=1e-6)
  weighted = model.loss(output, _Y, np.array([1.0, 3.0]))
  np.testing.assert_allclose(
      weighted, (losses * [1, 3]).mean(), rtol=1e-6
  )


def test_accuracy_counts_the_largest_logit():
  correct, weight = models.classification_accuracy(
      tf.constant([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]]), tf.constant([2, 1])
  )
  np.testing.assert_array_equal(correct, [1, 0])
  np.testing.assert_array_equal(weight, [1, 1])


def test_convolution_by_hand():
  kernel = np.zeros((3, 3, 1, 1), np.float32)
  kernel[1, 1] = 2.0
  x = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
  found = models.convolve([kernel, np.array([-3.0], np.float32)], x)
  # ReLU(2 x - 3), then maxima over 2x2 windows with a smaller last one.
  np.testing.assert_array_equal(found[0, ..., 0], [[5, 7], [11, 13]])


def test_serves_tff_learning_too():
  variable_model = tff.learning.models.model_from_functional(_build_model())
  output = variable_model.forward_pass((_X, _Y), training=True)
  assert output.num_examples == 2
  model = _build_model()
  logits = model.predict_on_batch(model.initial_weights, _X, training=True)
  np.testing.assert_allclose(output.loss, model.loss(logits, _Y), rtol=1e-6)


def test_loss_may_be_reduced_otherwise():
  model = models.build_functional_model(
      apply_fn=models.dense,
      weight_spec=(('w', (4, 3), models.zeros),
                   ('b', (3,), models.zeros)),
      example_loss_fn=models.classification_loss,
      input_spec=(
          tf.TensorSpec((None, 2, 2), tf.float32),
          tf.TensorSpec((None,), tf.int32),
      ),
      seed=1,
      dtype='float64',
      reduce_fn=tf.reduce_sum,
  )
  output = model.predict_on_batch(model.initial_weights, _X, training=True)
  assert float(model.loss(output, _Y)) == pytest.approx(2 * np.log(3))


def test_penalized_loss_is_cross_entropy_plus_penalty():
  logits = np.array([[1.0, 2.0, -1.0], [0.5, 0.5, 3.0]])
  label = np.array([1, 0], np.int32)
  penalty = 0.25
  output = tf.nn.log_softmax(logits) - penalty
  expected = models.classification_loss(logits, label) + penalty
  np.testing.assert_allclose(
      models.penalized_loss(output, label), expected, rtol=1e-12
  )


def test_sequence_accuracy_leaves_out_what_is_ignored():
  label = np.array([[1, 2, 0, 3], [0, 0, 0, 3]], np.int32)
  logits = np.eye(4)[[[1, 1, 0, 3], [0, 0, 0, 3]]]
  for ignored, expected in (
      ((), ([3, 4], [4, 4])),
      ((0,), ([2, 1], [3, 1])),
      ((0, 3), ([1, 0], [2, 0])),
  ):
    found = models.sequence_accuracy(
        tf.constant(logits), label, ignored
    )
    np.testing.assert_array_equal(found, expected)
