"""Generated clients have the stated law and belong to the seed."""

import types

import numpy as np
import tensorflow as tf

from baselines.tasks import linear_regression


def test_clients_belong_to_the_seed():
  first = linear_regression.generate(20, 4)
  again = linear_regression.generate(20, 4)
  other = linear_regression.generate(20, 5)
  np.testing.assert_array_equal(first.features[0], again.features[0])
  np.testing.assert_array_equal(first.features[1], again.features[1])
  assert first.features[0].shape != other.features[0].shape or not (
      np.array_equal(first.features[0], other.features[0])
  )


def test_shapes_and_sizes():
  arrays = linear_regression.generate(200, 0)
  x, y = arrays.features
  assert x.shape[1:] == (30,) and y.shape[1:] == (1,)
  assert x.dtype == y.dtype == np.float32
  assert arrays.sizes.min() >= 5 and arrays.sizes.max() <= 50
  assert abs(x.mean()) < 0.01 and abs(x.std() - 1) < 0.01


def test_best_fit_over_all_clients_leaves_their_spread():
  x, y = linear_regression.generate(400, 0).features
  _, residual, *_ = np.linalg.lstsq(x, y, rcond=None)
  # Variance of a client's own part, 30 * 0.3^2, and of the noise, 0.1^2.
  assert abs(residual[0] / len(x) - 2.71) < 0.2


def test_squared_error():
  found = linear_regression.squared_error(
      tf.constant([[1.0], [2.0]], tf.float64), tf.constant([[3.0], [2.5]])
  )
  np.testing.assert_array_equal(found, [4.0, 0.25])


def test_build():
  task = linear_regression.build(types.SimpleNamespace(
      task='linear_regression', model='linear', data_source='synthetic',
      data_dir=None, data_seed=0,
  ))
  assert task.test is None and task.example_accuracy_fn is None
  assert task.train.num_clients == 100
  weights, _ = task.build_model(0, 'float64').initial_weights
  assert [w.shape for w in weights] == [(30, 1), (1,)]
