"""Models are plain functions of their weights, with the mean as the loss."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import models


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
