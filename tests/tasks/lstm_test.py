"""The LSTM layer equals Keras's, its gradient the automatic one."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.tasks import layers
from tests import sequences

_STEPS, _BATCH, _WIDTH, _UNITS = 6, 4, 3, 5


def _arguments(dtype):
  generator = np.random.default_rng(0)
  shapes = (
      (_STEPS, _BATCH, _WIDTH),
      (_WIDTH, 4 * _UNITS),
      (_UNITS, 4 * _UNITS),
      (4 * _UNITS,),
  )
  x, *weights = (
      tf.constant(generator.standard_normal(shape), dtype) for shape in shapes
  )
  mask = np.ones((_STEPS, _BATCH, 1))
  mask[3:, 1] = 0  # Padded at the end,
  mask[:, 2] = 0  # padded throughout,
  mask[1:3, 3] = 0  # and with a hole.
  upstream = tf.constant(
      generator.standard_normal((_STEPS, _BATCH, _UNITS)), dtype
  )
  return x, tf.constant(mask, dtype), weights, upstream


def _plain_lstm(x, mask, kernel, recurrent_kernel, bias):
  """The recurrence without loops or own gradients."""
  h = c = tf.zeros([_BATCH, _UNITS], x.dtype)
  outputs = []
  for t in range(_STEPS):
    z = x[t] @ kernel + h @ recurrent_kernel + bias
    i, f, g, o = tf.split(z, 4, axis=1)
    new_c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    new_h = tf.sigmoid(o) * tf.tanh(new_c)
    c = tf.where(mask[t] > 0, new_c, c)
    h = tf.where(mask[t] > 0, new_h, h)
    outputs.append(h)
  return tf.stack(outputs)


def _outputs_and_gradients(layer, x, mask, weights, upstream):
  with tf.GradientTape() as tape:
    tape.watch([x, weights])
    outputs = layer(x, mask, *weights)
    value = tf.reduce_sum(outputs * upstream)
  return outputs, *tape.gradient(value, [x, *weights])


@pytest.mark.parametrize('jit_compile', [None, True])
@pytest.mark.parametrize(
    'dtype, tolerance', [('float32', 1e-5), ('float64', 1e-12)]
)
@pytest.mark.parametrize('layer', [layers.lstm_layer, layers.plain_lstm_layer])
def test_equals_plain_recurrence(layer, dtype, tolerance, jit_compile):
  arguments = _arguments(dtype)
  expected = _outputs_and_gradients(_plain_lstm, *arguments)
  compiled = tf.function(_outputs_and_gradients, jit_compile=jit_compile)
  found = compiled(layer, *arguments)
  for a, b in zip(expected, found):
    np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


def test_equals_keras():
  x, mask, weights, upstream = _arguments('float32')
  layer = tf.keras.layers.LSTM(_UNITS, return_sequences=True)
  layer.build((None, _STEPS, _WIDTH))
  layer.set_weights([w.numpy() for w in weights])

  def keras_lstm(x, mask, *weights):
    del weights
    outputs = layer(
        tf.transpose(x, [1, 0, 2]), mask=tf.transpose(mask[..., 0] > 0)
    )
    return tf.transpose(outputs, [1, 0, 2])

  found = layers.lstm_layer(x, mask, *weights)
  np.testing.assert_allclose(found, keras_lstm(x, mask), atol=1e-6)
  with tf.GradientTape() as tape:
    value = tf.reduce_sum(keras_lstm(x, mask) * upstream)
  expected = tape.gradient(value, layer.trainable_weights)
  _, _, *gradients = _outputs_and_gradients(
      layers.lstm_layer, x, mask, weights, upstream
  )
  for a, b in zip(expected, gradients):
    np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


def test_masked_steps_keep_the_output():
  x, mask, weights, _ = _arguments('float32')
  outputs = layers.lstm_layer(x, mask, *weights).numpy()
  assert (outputs[3:, 1] == outputs[2, 1]).all()
  assert (outputs[:, 2] == 0).all()
  assert (outputs[1:3, 3] == outputs[0, 3]).all()
  assert (outputs[3, 3] != outputs[0, 3]).any()


def test_gradient_inside_a_loop():
  # As in Algorithm 2, whose steps are a loop around the model's loops.
  x, mask, weights, upstream = _arguments('float64')

  def step(k, bias):
    gradient = _outputs_and_gradients(
        layers.lstm_layer, x, mask, [*weights[:2], bias], upstream
    )[-1]
    return k + 1, bias - 0.1 * gradient

  @tf.function
  def run(bias):
    return tf.while_loop(lambda k, _: k < 3, step, (0, bias))[1]

  expected = weights[2]
  for _ in range(3):
    gradient = _outputs_and_gradients(
        _plain_lstm, x, mask, [*weights[:2], expected], upstream
    )[-1]
    expected -= 0.1 * gradient
  np.testing.assert_allclose(run(weights[2]), expected, rtol=1e-12)


def _curvature(layer, x, mask, weights, upstream, vector):
  """Returns the Hessian of sum(u h^2) in the weights times a vector."""
  with tf.GradientTape() as outer:
    outer.watch(weights)
    with tf.GradientTape() as tape:
      tape.watch(weights)
      value = tf.reduce_sum(upstream * layer(x, mask, *weights) ** 2)
    gradient = tape.gradient(value, weights)
  return outer.gradient(gradient, weights, output_gradients=vector)


@pytest.mark.parametrize('jit_compile', [None, True])
def test_second_derivatives_equal_those_of_the_plain_recurrence(jit_compile):
  x, mask, weights, upstream = _arguments('float64')
  generator = np.random.default_rng(1)
  vector = [tf.constant(generator.standard_normal(w.shape)) for w in weights]
  arguments = x, mask, weights, upstream, vector
  expected = _curvature(_plain_lstm, *arguments)
  compiled = tf.function(_curvature, jit_compile=jit_compile)
  found = compiled(layers.lstm_layer, *arguments)
  for a, b in sequences.pairs(expected, found):
    assert np.abs(a).max() > 0.1
    np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)
