"""Lookups equal products with the dense matrix, gradients too."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.tasks import layers

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


@pytest.fixture(params=[False, True], ids=['cpu', 'gpu'], autouse=True)
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


def test_scatter():
  np.testing.assert_array_equal(
      layers.scatter(_INDICES.astype(np.int32), _WEIGHTS, 7), _dense()
  )
