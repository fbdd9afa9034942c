"""Replayed query points are those that a plain transcription visits."""

import numpy as np
import pytest

from baselines.regret import counter
from baselines.regret import objectives


def _rows(num_examples, shape=(3, 7, 2)):
  return np.random.default_rng(5).integers(num_examples, size=shape)


def test_least_squares_visits_the_points_of_plain_local_sgd():
  generator = np.random.default_rng(0)
  features = generator.standard_normal((30, 4))
  labels = generator.standard_normal(30)
  f = objectives.LeastSquares(features, labels, 1 / 30)
  start, rows = np.array([1.0, -2.0, 0.5, 0.0]), _rows(30)
  found = counter.replay_local_steps(f, start, rows, counter.LocalRule(0.7))
  for m in range(3):
    x = start.copy()
    for step in range(7):
      np.testing.assert_allclose(found.points[m, step], x, rtol=1e-12)
      gradient = np.zeros(4)
      for i in rows[m, step]:
        gradient += 2 / 30 * (features[i] @ x - labels[i]) * features[i] / 2
      x = x - 0.7 * gradient
    np.testing.assert_allclose(found.ends[m], x, rtol=1e-12)


def test_softmax_visits_the_points_of_plain_local_sgd():
  generator = np.random.default_rng(0)
  features = generator.standard_normal((30, 4))
  labels = generator.integers(3, size=30)
  f = objectives.SoftmaxRegression(features, labels, 3, 0.5)
  start, rows = generator.standard_normal(12), _rows(30)
  found = counter.replay_local_steps(f, start, rows, counter.LocalRule(0.2))
  for m in range(3):
    kernel = start.reshape(4, 3).copy()
    for step in range(7):
      np.testing.assert_allclose(
          found.points[m, step], kernel.ravel(), rtol=1e-11
      )
      gradient = 0.5 * kernel
      for i in rows[m, step]:
        powers = np.exp(features[i] @ kernel)
        error = powers / powers.sum() - np.eye(3)[labels[i]]
        gradient = gradient + np.outer(features[i], error) / 2
      kernel = kernel - 0.2 * gradient
    np.testing.assert_allclose(found.ends[m], kernel.ravel(), rtol=1e-11)


@pytest.mark.parametrize('rows', [
    np.zeros((2, 3), int), np.zeros((2, 0, 3), int), np.zeros((1, 1, 1)),
])
def test_bad_rows_are_refused(rows):
  f = objectives.LeastSquares(np.eye(2), np.ones(2))
  with pytest.raises(ValueError, match='rows must be whole numbers of shape'):
    counter.replay_local_steps(f, np.zeros(2), rows, counter.LocalRule(0.1))


def test_bad_start_is_refused():
  f = objectives.LeastSquares(np.eye(2), np.ones(2))
  with pytest.raises(ValueError, match=r'start must have shape \(2,\), found'):
    counter.replay_local_steps(
        f, np.zeros(3), np.zeros((1, 1, 1), int), counter.LocalRule(0.1)
    )
