"""The forms for GPUs give what TensorFlow's own operations give."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from baselines.tasks import layers


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
from baselines.tasks import digits, gpu_operations, resnet, shakespeare
from baselines.tasks import stackoverflow_tag
from tff_localupdate import model_losses
from tff_localupdate.local_update import inner_loop

tf.config.experimental.enable_op_determinism()
tf.random.set_seed(1)
gpu_operations.has_gpu = lambda: True
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
    y = gpu_operations.max_pool(x, size=3, stride=2)
  return tape.gradient(y, x)

print(np.isfinite(pool(tf.ones([2, 12, 12, 4]))).all())
for model, x, y in cases:
  losses = model_losses.build_model_losses(model, ())
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
