"""Least squares against sums over the examples, one at a time."""

import numpy as np
import pytest

from baselines.regret import objectives


def _data(seed=0, num_examples=40, dimension=5):
  generator = np.random.default_rng(seed)
  features = generator.standard_normal((num_examples, dimension))
  labels = features @ np.ones(dimension) + generator.standard_normal(
      num_examples
  )
  return features, labels


def _value(x, features, labels, weights, scale):
  return scale * sum(
      w * (sum(a * b for a, b in zip(row, x)) - y) ** 2
      for w, row, y in zip(weights, features, labels)
  )


def test_values_are_the_sums_over_examples():
  features, labels = _data()
  weights = np.random.default_rng(1).random(len(labels))
  f = objectives.LeastSquares(features, labels, 0.3, weights)
  points = np.random.default_rng(2).standard_normal((7, 5)) * 10
  expected = [
      _value(x, features, labels, weights / weights.sum(), 0.3) for x in points
  ]
  np.testing.assert_allclose(f.values(points), expected, rtol=1e-12)


def test_row_sum_scaling_has_the_sample_gradient_of_section_8():
  # (2 / N) X_i (<X_i, theta> - y_i), its mean that of f.
  features, labels = _data()
  n = len(labels)
  f = objectives.LeastSquares(features, labels, loss_scale=1 / n)
  point = np.linspace(-1, 1, 5)
  found = f.step_gradients(np.arange(n).reshape(n, 1, 1))(
      0, np.tile(point, (n, 1))
  )
  expected = [
      2 / n * a * (a @ point - y) for a, y in zip(features, labels)
  ]
  np.testing.assert_allclose(found, expected, rtol=1e-12)
  np.testing.assert_allclose(found.mean(axis=0), f.gradient(point), rtol=1e-12)


def test_batches_mean_their_examples_each_at_its_own_point():
  features, labels = _data()
  f = objectives.LeastSquares(features, labels)
  points = np.random.default_rng(3).standard_normal((2, 5))
  rows = np.array([[0, 1, 1], [9, 3, 2]])
  gradients = f.step_gradients(rows[:, np.newaxis])(0, points)
  for point, batch, found in zip(points, rows, gradients):
    expected = np.mean(
        [2 * features[i] * (features[i] @ point - labels[i]) for i in batch],
        axis=0,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_minimum_survives_large_offsets_of_the_labels():
  # f* is 1e-20 of f(0): expanding squares would lose it.
  features, _ = _data()
  center = np.full(5, 1e6)
  labels = features @ center
  labels[0] += 1e-2
  f = objectives.LeastSquares(features, labels)
  solution, residual, *_ = np.linalg.lstsq(
      features, labels - features @ center, rcond=None
  )
  np.testing.assert_allclose(f.minimizer - center, solution, atol=1e-8)
  np.testing.assert_allclose(f.least_value, residual[0] / 40, rtol=1e-5)
  nearby = f.values(f.minimizer + 1e-3 * np.eye(5)[:1]) - f.least_value
  np.testing.assert_allclose(nearby, [0.5e-6 * f.hessian[0, 0]], rtol=1e-6)


def test_singular_gram_matrix_gives_the_least_norm():
  features, labels = _data(dimension=3)
  f = objectives.LeastSquares(np.hstack([features, features]), labels)
  expected = np.linalg.lstsq(features, labels, rcond=None)[0]
  np.testing.assert_allclose(f.minimizer, np.tile(expected / 2, 2), rtol=1e-9)


@pytest.mark.parametrize('scale', [0.0, -1.0, np.nan, np.inf])
def test_bad_scale_is_refused(scale):
  with pytest.raises(ValueError, match='loss_scale must be a finite number'):
    objectives.LeastSquares(*_data(), loss_scale=scale)


def test_labels_must_be_finite():
  features, labels = _data()
  labels[3] = np.inf
  with pytest.raises(ValueError, match='labels must be finite'):
    objectives.LeastSquares(features, labels)


def test_digest_depends_on_data_and_scale():
  features, labels = _data()
  digests = {
      objectives.LeastSquares(features, labels).digest,
      objectives.LeastSquares(features, labels + 1e-12).digest,
      objectives.LeastSquares(features, labels, 2.0).digest,
      objectives.LeastSquares(features, labels, 1.0, np.arange(40)).digest,
  }
  assert len(digests) == 4
  assert objectives.LeastSquares(features, labels).digest in digests


def test_smoothness_is_the_largest_curvature():
  features, labels = _data()
  weights = np.random.default_rng(1).random(40)
  f = objectives.LeastSquares(features, labels, 0.3, weights)
  # By second differences along many directions, and by power iteration.
  vector = np.ones(5)
  for _ in range(500):
    vector = f.gradient(vector) - f.gradient(np.zeros(5))
    length = np.linalg.norm(vector)
    vector /= length
  assert f.smoothness == pytest.approx(length, rel=1e-12)


def test_gradient_variance_is_the_mean_over_the_examples():
  features, labels = _data()
  weights = np.random.default_rng(1).random(40)
  f = objectives.LeastSquares(features, labels, 0.3, weights)
  point = np.linspace(-1, 1, 5)
  weights = weights / weights.sum()
  gradients = [
      0.6 * (a @ point - y) * a for a, y in zip(features, labels)
  ]
  mean = np.average(gradients, axis=0, weights=weights)
  expected = sum(
      w * np.sum((g - mean) ** 2) for w, g in zip(weights, gradients)
  )
  assert f.gradient_variance(point) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize('scale', [1.0, 1e-5, 1e-8, 1e-10, 0.0])
def test_minimum_of_columns_of_unlike_size(scale):
  features, labels = _data(dimension=3)
  features[:, 2] *= scale
  f = objectives.LeastSquares(features, labels)
  kept = features if scale else features[:, :2]
  # The same columns in one size span the same fits.
  fit, *_ = np.linalg.lstsq(
      kept / np.linalg.norm(kept, axis=0), labels, rcond=None
  )
  residuals = labels - kept / np.linalg.norm(kept, axis=0) @ fit
  assert f.least_value == pytest.approx(np.mean(residuals**2), rel=1e-12)
  if not scale:
    assert f.minimizer[2] == 0.0


@pytest.mark.parametrize('spread', [0.0, 1e-8, 1.0])
def test_variance_of_nearly_equal_gradients(spread):
  features, labels = np.ones((30, 2)), 1.0 + spread * np.arange(30.0)
  f = objectives.LeastSquares(features, labels)
  point = np.array([2.0, 3.0])
  # Each gradient is 2 (5 - y) (1, 1).
  expected = 8.0 * np.var(labels - 1.0)
  assert f.gradient_variance(point) == pytest.approx(expected, rel=1e-6)
