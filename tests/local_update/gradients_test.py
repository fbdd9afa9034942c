"""Rows are added and subtracted as their dense gradients are."""

import numpy as np
import pytest
import tensorflow as tf

from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import inner_loop
from tff_localupdate.local_update import local_steps as local_steps_lib

_POINT = {'table': np.arange(12.0).reshape(4, 3), 'bias': np.ones(2)}
_ROWS = np.array([[1.0, 2, 3], [10, 20, 30], [100, 200, 300]])
_DENSE = np.array([[0.0, 0, 0], [101, 202, 303], [0, 0, 0], [10, 20, 30]])


def _gradient():
  rows = tf.IndexedSlices(tf.constant(_ROWS), tf.constant([1, 3, 1]), [4, 3])
  return {'table': rows, 'bias': tf.constant([5.0, 7], tf.float64)}


def _point():
  return tf.nest.map_structure(tf.constant, _POINT)


@pytest.mark.parametrize('function, sign', [
    (local_steps_lib.add, 1), (local_steps_lib.subtract, -1)
])
def test_rows_that_come_twice_count_twice(function, sign):
  found = function(_point(), _gradient(), lambda g: 0.5 * g)
  np.testing.assert_array_equal(
      found['table'], _POINT['table'] + sign * 0.5 * _DENSE
  )
  np.testing.assert_array_equal(
      found['bias'], _POINT['bias'] + sign * np.array([2.5, 3.5])
  )
  found = function(_point(), _gradient())
  np.testing.assert_array_equal(
      found['table'], _POINT['table'] + sign * _DENSE
  )


def _looked_up_loss(weights, indices):
  return tf.reduce_sum(tf.gather(weights, indices) ** 3)


def _dense_loss(weights, indices):
  one_hot = tf.one_hot(indices, 6, dtype=weights.dtype)
  return tf.reduce_sum(tf.matmul(one_hot, weights) ** 3)


_OPTIONS = {
    'plain': local_steps_lib.PLAIN,
    'factors': local_steps_lib.LocalSteps(step_factors=(1.0, 0.5, 2.0, 1.0)),
    'proximal': local_steps_lib.LocalSteps(proximal_strength=0.3),
    'momentum': local_steps_lib.LocalSteps(optimizer='momentum'),
}


@pytest.mark.parametrize('jit_compile', [None, True])
@pytest.mark.parametrize('theta', [(1, 1, 1, 1), (0, 0, 0, 2), (1, 0, 2, 3)])
@pytest.mark.parametrize('options', _OPTIONS)
def test_inner_loop_equals_that_of_dense_gradients(
    options, theta, jit_compile
):
  weights = np.random.default_rng(0).normal(size=(6, 3))
  batches = np.array([[0, 3, 3], [1, 0, 5], [3, 3, 3], [0, 1, 2]])

  def run(loss_fn):
    compiled = tf.function(
        lambda: inner_loop.inner_loop(
            loss_fn, weights, batches, 0.05, theta_lib.Theta(theta),
            _OPTIONS[options],
        ),
        jit_compile=jit_compile,
    )
    return compiled().numpy()

  expected = run(_dense_loss)
  assert np.abs(expected).min(axis=1).tolist()[4] == 0  # A row of no batch.
  np.testing.assert_allclose(run(_looked_up_loss), expected, rtol=1e-12)


@pytest.mark.parametrize('options, expected', [
    ('plain', True), ('factors', True), ('proximal', False),
    ('momentum', False),
])
def test_rows_are_kept_where_absent_rows_do_not_move(options, expected):
  assert _OPTIONS[options].takes_slices == expected
