"""The four scalings of the regression of the CEAL paper."""

import types

import numpy as np
import pytest
import tensorflow as tf

from baselines.tasks import registry
from baselines.tasks import scaled_regression

_SCALINGS = tuple(scaled_regression.LOSS_FACTORS)


def _build(scaling):
  return registry.build_task(types.SimpleNamespace(
      task='scaled_regression', model=scaling, data_source='synthetic',
      data_dir=None, data_seed=0,
  ))


def _value_and_gradient(task, dtype='float64'):
  """Returns f and its gradient at 0 over all examples."""
  model = task.build_model(3, dtype)
  weights = [tf.constant(w) for w in model.initial_weights[0]]
  x, y = task.train.features
  with tf.GradientTape() as tape:
    tape.watch(weights)
    value = model.loss(model.predict_on_batch((weights, ()), x), y)
  gradient, = tape.gradient(value, weights)
  return value.numpy(), gradient.numpy()


def test_registry_names_the_scalings():
  entry = registry.task_entry('scaled_regression')
  assert entry.models == _SCALINGS and entry.models[0] == 'row_sum'
  assert registry.check_data('scaled_regression', 'synthetic') == 10


@pytest.mark.parametrize('scaling', _SCALINGS)
def test_norms(scaling):
  arrays = scaled_regression.generate(scaling, 0)
  x, y = arrays.features
  assert arrays.sizes.tolist() == [200] * 10
  assert x.shape == (2000, 30) and y.shape == (2000, 1)
  assert x.dtype == y.dtype == np.float64
  if scaling == 'frobenius':
    assert np.linalg.norm(x) == pytest.approx(100.0, rel=1e-12)
  else:
    norms = np.linalg.norm(x, axis=1)
    np.testing.assert_allclose(norms, 1.0 if scaling == 'row' else 100.0)


@pytest.mark.parametrize(
    'scaling, beta',
    [('row_sum', 0.41), ('frobenius', 0.41), ('row', 0.08), ('row_loss', 0.08)],
)
def test_smoothness_is_that_of_the_table(scaling, beta):
  x, _ = scaled_regression.generate(scaling, 0).features
  factor = scaled_regression.LOSS_FACTORS[scaling]
  largest = 2.0 * factor * np.linalg.norm(x, ord=2) ** 2 / len(x)
  assert largest == pytest.approx(beta, rel=0.05)


@pytest.mark.parametrize('scaling', _SCALINGS)
def test_objective_and_gradient_at_the_start(scaling):
  task = _build(scaling)
  factor = scaled_regression.LOSS_FACTORS[scaling]
  x, y = task.train.features
  value, gradient = _value_and_gradient(task)
  assert value == pytest.approx(factor * np.mean(y**2), rel=1e-12)
  np.testing.assert_allclose(
      gradient, -2.0 * factor * x.T @ y / len(y), rtol=1e-9
  )
  value, _ = _value_and_gradient(task, 'float32')
  assert value.dtype == np.float32
  assert value == pytest.approx(factor * np.mean(y**2), rel=1e-5)


def test_gradient_and_noise_of_row_sum_are_those_measured():
  # 0.32 and 1.77 for another generator's seed 0.
  task = _build('row_sum')
  _, gradient = _value_and_gradient(task)
  assert np.linalg.norm(gradient) == pytest.approx(0.33, abs=0.03)
  x, y = task.train.features
  single = -2.0 / 2000 * x * y
  noise = np.sum((single - gradient[:, 0]) ** 2, axis=1)
  assert np.sqrt(noise.mean()) == pytest.approx(1.8, abs=0.1)


def test_scalings_share_the_draws():
  features = {
      s: scaled_regression.generate(s, 4).features for s in _SCALINGS
  }
  np.testing.assert_allclose(
      features['row_sum'][0], 100.0 * features['row'][0], rtol=1e-12
  )
  np.testing.assert_array_equal(features['row_sum'][1], features['row_loss'][1])
  # theta* and the noise are the same: 99 |theta*| is all the difference.
  x, y = features['row']
  fit, residual, *_ = np.linalg.lstsq(x, features['row_sum'][1] - y, rcond=None)
  assert residual[0] < 1e-20
  assert np.linalg.norm(fit) == pytest.approx(99.0, rel=1e-12)


def test_data_belong_to_the_seed():
  first, again, other = (
      scaled_regression.generate('row', seed).features for seed in (1, 1, 2)
  )
  np.testing.assert_array_equal(first[0], again[0])
  np.testing.assert_array_equal(first[1], again[1])
  assert not np.array_equal(first[0], other[0])


def test_starts_at_0():
  (theta,), _ = _build('row').build_model(5, 'float32').initial_weights
  np.testing.assert_array_equal(theta, np.zeros([30, 1], np.float32))
