"""f in NumPy is what the model of the task computes over all its examples."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.regret import objectives
from baselines.settings import experiment
from baselines.tasks import registry


def _task(name, model=None):
  return registry.build_task(experiment.TaskConfig(name, model))


def _check(task, objective):
  """Compares values and gradients at a random point with the task's model."""
  model = task.build_model(1, 'float64')
  (weight,) = model.initial_weights[0]
  point = np.random.default_rng(2).standard_normal(weight.size) / 10
  weights = ((tf.constant(point.reshape(weight.shape)),), ())
  x, y = task.train.features
  with tf.GradientTape() as tape:
    tape.watch(weights)
    loss = model.loss(model.predict_on_batch(weights, x, training=False), y)
  (gradient,), _ = tape.gradient(loss, weights)
  assert objective.values(point[np.newaxis])[0] == pytest.approx(
      float(loss), rel=1e-12
  )
  np.testing.assert_allclose(
      objective.gradient(point), np.ravel(gradient), rtol=1e-9, atol=1e-15
  )
  rows = np.array([[3, 3, 70]])
  with tf.GradientTape() as tape:
    tape.watch(weights)
    output = model.predict_on_batch(weights, x[rows[0]], training=False)
    loss = model.loss(output, y[rows[0]])
  (gradient,), _ = tape.gradient(loss, weights)
  np.testing.assert_allclose(
      objective.step_gradients(rows[np.newaxis])(0, point[np.newaxis])[0],
      np.ravel(gradient), rtol=1e-9, atol=1e-15,
  )


@pytest.mark.parametrize('scaling', ['row_sum', 'frobenius', 'row', 'row_loss'])
def test_least_squares_in_every_scaling(scaling):
  task = _task('scaled_regression', scaling)
  objective = objectives.build_objective(task)
  assert objective.dimension == 30 and len(objective.labels) == 2000
  _check(task, objective)


def test_row_sum_has_the_smoothness_of_section_8():
  objective = objectives.build_objective(_task('scaled_regression'))
  assert objective.smoothness == pytest.approx(0.41, abs=0.01)


def test_softmax_regression_with_its_penalty():
  task = _task('mnist_logistic')
  objective = objectives.build_objective(task)
  assert objective.dimension == 640 and objective.l2_strength == 0.5
  _check(task, objective)
