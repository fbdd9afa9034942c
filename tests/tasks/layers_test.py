"""The forms for GPUs give what TensorFlow's own operations give.

Lookups equal products with the dense matrix, gradients too.

The LSTM layer equals Keras's, its gradient the automatic one.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from baselines.tasks import layers
from tests import sequences


def _value_and_gradient(monkeypatch, has_gpu, function, x):
  monkeypatch.setattr(layers, 'has_gpu', lambda: has_gpu)
  x = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(x)
    y = function(x)
    # Another weight for each output, so that no place can be mistaken.
    weights = tf.reshape(tf.range(tf.size(y)), tf.shape(y)) + 1
    total = tf.reduce_sum(y * tf.cast(weights, y.dtype))
  return y, tape.gradient(total, x)


@pytest.mark.parametrize('whole_numbers', [False, True])  # These have ties.
@pytest.mark.parametrize('shape, size, stride', [
    ((2, 8, 8, 3), 2, 2), ((1, 7, 5, 2), 2, 2), ((2, 12, 12, 4), 3, 2),
    ((1, 9, 6, 1), 3, 2), ((1, 3, 3, 1), 3, 1), ((1, 1, 1, 2), 2, 2),
])
def test_maxima_and_where_their_gradients_go(
    monkeypatch, shape, size, stride, whole_numbers):
  x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
  x = np.round(x) if whole_numbers else x

  def pool(x):
    return layers.max_pool(x, size=size, stride=stride)

  expected = _value_and_gradient(monkeypatch, False, pool, x)
  found = _value_and_gradient(monkeypatch, True, pool, x)
  for one, other in zip(found, expected):
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('shape', [(5,), (2, 3)])
def test_cross_entropy(monkeypatch, shape):
  rng = np.random.default_rng(1)
  logits = 3 * rng.standard_normal((*shape, 4))
  label = rng.integers(0, 4, shape)

  def loss(x):
    return layers.cross_entropy(label, x)

  expected = _value_and_gradient(monkeypatch, False, loss, logits)
  found = _value_and_gradient(monkeypatch, True, loss, logits)
  for one, other in zip(found, expected):
    np.testing.assert_allclose(one, other, rtol=1e-12)


# Determinism cannot be switched off again, so it gets a process of its own.
_DETERMINISTIC = """
import numpy as np
import tensorflow as tf
from baselines.tasks import digits, layers, shakespeare
from baselines.tasks import stackoverflow_tag
from tff_localupdate import models
from tff_localupdate.local_update import inner_loop

tf.config.experimental.enable_op_determinism()
tf.random.set_seed(1)
layers.has_gpu = lambda: True
words = np.zeros([2, stackoverflow_tag.MAX_WORDS, 2], np.int16)
tokens = np.ones([2, 8], np.int64)
cases = [
    (digits.build_cnn(1, 'float32'), np.ones([2, 8, 8, 1]), [1, 2]),
    (shakespeare.build_lstm(1, 'float32', 8), tokens, tokens),
    (stackoverflow_tag.build_logistic(50, 7, False, 1, 'float32'), words,
     np.ones([2, 7], np.uint8)),
]

@tf.function(jit_compile=True)
def pool(x):
  with tf.GradientTape() as tape:
    tape.watch(x)
    y = layers.max_pool(x, size=3, stride=2)
  return tape.gradient(y, x)

print(np.isfinite(pool(tf.ones([2, 12, 12, 4]))).all())
for model, x, y in cases:
  losses = models.build_model_losses(model, ())
  weights = tuple(map(tf.constant, model.initial_weights[0]))
  x = tf.cast(x, model.input_spec[0].dtype)
  y = tf.cast(y, model.input_spec[1].dtype)

  @tf.function(jit_compile=True, autograph=False)
  def step(weights, x, y):
    return tf.nest.flatten(
        inner_loop.loss_and_gradient(losses.training, weights, (x, y)))

  text = step.experimental_get_compiler_ir(weights, x, y)(stage='hlo')
  finite = all(np.isfinite(v).all() for v in step(weights, x, y))
  print(finite, text.count('scatter('))
"""


def test_xla_compiles_the_models_under_determinism():
  done = subprocess.run(
      [sys.executable, '-c', _DETERMINISTIC], capture_output=True, text=True,
      check=False, env={**os.environ, 'CUDA_VISIBLE_DEVICES': '-1'},
  )
  # Of the words alone, which maxima join.
  expected = ['True', 'True 0', 'True 0', 'True 1']
  assert done.stdout.splitlines() == expected, done.stderr[-2000:]


_TABLE = np.random.default_rng(0).standard_normal((7, 3))
_INDICES = np.array([[2, 5, 0, 0], [6, 0, 0, 0], [0, 3, 2, 1]])
_WEIGHTS = np.array([[0.5, 2, 0, 0], [1, 0, 0, 0], [0.25, 1, 1, 3]])


def _dense():
  dense = np.zeros((3, 7))
  for b, w in np.ndindex(*_INDICES.shape):
    dense[b, _INDICES[b, w]] += _WEIGHTS[b, w]
  return dense


def _value_and_gradients(function, upstream):
  """Returns f(T), the gradient of <u, f(T)^3> and that of its square."""
  table = tf.constant(_TABLE)
  with tf.GradientTape() as outer:
    outer.watch(table)
    with tf.GradientTape() as tape:
      tape.watch(table)
      output = function(table)
      value = tf.reduce_sum(upstream * output**3)
    gradient = tf.convert_to_tensor(tape.gradient(value, table))
    square = tf.reduce_sum(gradient**2)
  second = tf.convert_to_tensor(outer.gradient(square, table))
  return output, gradient, second


@pytest.fixture(params=[False, True], ids=['cpu', 'gpu'])
def has_gpu(request, monkeypatch):
  """Both ways to take gradients are compared, on the CPU."""
  monkeypatch.setattr(layers, 'has_gpu', lambda: request.param)
  return request.param


def test_gradients_are_rows_on_cpus_and_dense_on_gpus(has_gpu):
  indices = _INDICES.astype(np.int32)
  for function in (
      lambda table: layers.rows_of(table, indices),
      lambda table: layers.weighted_sums(table, indices, _WEIGHTS),
  ):
    table = tf.constant(_TABLE)
    with tf.GradientTape() as tape:
      tape.watch(table)
      value = tf.reduce_sum(function(table))
    gradient = tape.gradient(value, table)
    if has_gpu:
      assert gradient.shape == (7, 3)
    else:
      assert gradient.values.shape == (12, 3)
      np.testing.assert_array_equal(gradient.indices, _INDICES.ravel())


@pytest.mark.usefixtures('has_gpu')
@pytest.mark.parametrize('jit_compile', [None, True])
@pytest.mark.parametrize(
    'sums_fn', [layers.weighted_sums, layers.weighted_sums_by_product]
)
def test_weighted_sums(sums_fn, jit_compile):
  upstream = np.random.default_rng(1).standard_normal((3, 3))
  indices = _INDICES.astype(np.int32)
  compiled = tf.function(_value_and_gradients, jit_compile=jit_compile)
  found = compiled(
      lambda table: sums_fn(table, indices, _WEIGHTS), upstream
  )
  expected = _value_and_gradients(lambda t: tf.matmul(_dense(), t), upstream)
  for a, b in zip(expected, found):
    assert np.abs(a).max() > 0.1
    np.testing.assert_allclose(b, a, rtol=1e-12)


@pytest.mark.usefixtures('has_gpu')
@pytest.mark.parametrize('jit_compile', [None, True])
@pytest.mark.parametrize(
    'rows_fn', [layers.rows_of, layers.rows_by_product]
)
def test_rows_of(rows_fn, jit_compile):
  upstream = np.random.default_rng(1).standard_normal((3, 4, 3))
  compiled = tf.function(_value_and_gradients, jit_compile=jit_compile)
  found = compiled(lambda table: rows_fn(table, _INDICES), upstream)
  one_hot = np.eye(7)[_INDICES]
  expected = _value_and_gradients(
      lambda table: tf.tensordot(one_hot, table, 1), upstream
  )
  for a, b in zip(expected, found):
    assert np.abs(a).max() > 0.1
    np.testing.assert_allclose(b, a, rtol=1e-12)


@pytest.mark.usefixtures('has_gpu')
def test_scatter():
  np.testing.assert_array_equal(
      layers.scatter(_INDICES.astype(np.int32), _WEIGHTS, 7), _dense()
  )


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
