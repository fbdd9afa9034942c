"""Softmax regression against plain sums, over all sizes of blocks."""

import math
import tracemalloc

import numpy as np
import pytest

from baselines.regret import objectives

_F, _C, _N = 4, 3, 25


def _objective(l2_strength=0.5, weights=None, seed=0):
  generator = np.random.default_rng(seed)
  return objectives.SoftmaxRegression(
      generator.standard_normal((_N, _F)), generator.integers(_C, size=_N),
      _C, l2_strength, weights,
  )


def _points(num, scale=1.0):
  return scale * np.random.default_rng(7).standard_normal((num, _F * _C))


def _value(f, x):
  """f as its definition says, in Python floats."""
  total = 0.0
  for a, y, w in zip(f.features, f.labels, f.example_weights):
    logits = [
        math.fsum(a[i] * x[i * _C + c] for i in range(_F)) for c in range(_C)
    ]
    top = max(logits)
    total += w * (
        top + math.log(sum(math.exp(z - top) for z in logits)) - logits[y]
    )
  return total + f.l2_strength / 2 * sum(x * x)


@pytest.mark.parametrize('block_bytes', [1, 700, 5000, 2**24])
@pytest.mark.parametrize('scale', [1.0, 1e3])
def test_values_are_the_sums_over_examples(monkeypatch, block_bytes, scale):
  monkeypatch.setattr(objectives, 'BLOCK_BYTES', block_bytes)
  f = _objective(weights=np.random.default_rng(1).random(_N))
  points = _points(70, scale)
  np.testing.assert_allclose(
      f.values(points), [_value(f, x) for x in points], rtol=1e-12
  )


def test_zero_weights_give_log_of_the_classes():
  f = _objective()
  assert f.values(np.zeros((1, 12)))[0] == pytest.approx(np.log(3), rel=1e-15)


def test_diverged_points_spoil_only_themselves():
  f, points = _objective(), _points(3)
  points[1] = np.nan
  values = f.values(points)
  assert np.isnan(values[1])
  np.testing.assert_allclose(values[[0, 2]], f.values(_points(3)[[0, 2]]))
  assert not np.isfinite(f.values(np.full((1, 12), np.inf))[0])


def test_gradient_and_hessian_are_the_derivatives():
  f, point = _objective(), _points(1)[0]
  step = 1e-6 * np.eye(12)
  slopes = (f.values(point + step) - f.values(point - step)) / 2e-6
  np.testing.assert_allclose(f.gradient(point), slopes, atol=1e-8)
  product = f.hessian_products_at(point)
  for direction in np.eye(12)[[0, 5, 11]]:
    change = (
        f.gradient(point + 1e-6 * direction)
        - f.gradient(point - 1e-6 * direction)
    ) / 2e-6
    np.testing.assert_allclose(product(direction), change, atol=1e-8)


def test_batches_mean_their_examples_each_at_its_own_point():
  f, points = _objective(), _points(2)
  rows = np.array([[0, 1, 1], [9, 3, 2]])
  gradients = f.step_gradients(rows[:, np.newaxis])(0, points)
  for point, batch, found in zip(points, rows, gradients):
    part = objectives.SoftmaxRegression(
        f.features[batch], f.labels[batch], _C, 0.5
    )
    np.testing.assert_allclose(found, part.gradient(point), rtol=1e-10)


@pytest.mark.parametrize('arguments, expected', [
    ({'num_classes': 1}, 'num_classes must be at least 2, found 1'),
    ({'l2_strength': -0.1}, 'l2_strength must be a finite number'),
    ({'l2_strength': np.nan}, 'l2_strength must be a finite number'),
    ({'labels': [0, 3]}, r'labels must be whole numbers in \[0, 3\), found'),
    ({'labels': [0, 0.5]}, 'labels must be whole numbers'),
    ({'labels': [0, -1]}, 'labels must be whole numbers'),
])
def test_bad_arguments_are_refused(arguments, expected):
  sound = {
      'features': np.ones((2, 4)), 'labels': [0, 1], 'num_classes': 3,
      'l2_strength': 0.5,
  }
  with pytest.raises(ValueError, match=expected):
    objectives.SoftmaxRegression(**{**sound, **arguments})


def test_digest_depends_on_data_and_parameters():
  digests = {
      _objective().digest, _objective(0.4).digest, _objective(seed=1).digest,
      _objective(weights=np.arange(_N)).digest,
  }
  assert len(digests) == 4
  assert _objective().digest in digests


def test_memory_is_that_of_the_blocks(monkeypatch):
  # All logits at once would be 20 MB.
  monkeypatch.setattr(objectives, 'BLOCK_BYTES', 2**20)
  generator = np.random.default_rng(0)
  f = objectives.SoftmaxRegression(
      generator.random((1000, 20)), generator.integers(5, size=1000), 5, 0.5
  )
  points = generator.random((500, 100))
  expected = f.values(points)
  tracemalloc.start()
  found = f.values(points)
  peak = tracemalloc.get_traced_memory()[1]
  tracemalloc.stop()
  assert peak < 1.5 * 2**20
  assert np.array_equal(found, expected)


def _small(weighted=True):
  generator = np.random.default_rng(3)
  weights = generator.random(25) if weighted else None
  return objectives.SoftmaxRegression(
      generator.standard_normal((25, 4)), generator.integers(3, size=25), 3,
      0.5, weights,
  )


def test_smoothness_bounds_every_curvature_and_is_reached_by_two_classes():
  f = _small()
  generator = np.random.default_rng(4)
  for _ in range(20):
    point = generator.standard_normal(12)
    hessian = np.stack(
        [f.hessian_products_at(point)(e) for e in np.eye(12)]
    )
    assert np.linalg.eigvalsh(hessian)[-1] < f.smoothness
  # p = (1/2, 1/2): p (1 - p) (e_1 - e_2)(e_1 - e_2)' has the eigenvalue 1/2.
  two = objectives.SoftmaxRegression([[3.0], [1.0]], [0, 1], 2, 0.25)
  assert two.smoothness == pytest.approx((9 + 1) / 2 / 2 + 0.25, rel=1e-14)
  product = two.hessian_products_at(np.zeros(2))(np.array([1.0, -1.0]))
  np.testing.assert_allclose(product, two.smoothness * np.array([1.0, -1.0]))


def test_smoothness_is_that_of_a_power_iteration():
  f = _small()
  weighted = f.features * f.example_weights[:, np.newaxis]
  vector = np.ones(4)
  for _ in range(500):
    vector = f.features.T @ (weighted @ vector)
    length = np.linalg.norm(vector)
    vector /= length
  assert f.smoothness == pytest.approx(length / 2 + 0.5, rel=1e-12)


@pytest.mark.parametrize('weighted', [True, False])
def test_gradient_variance_is_the_mean_over_the_examples(weighted):
  f = _small(weighted)
  point = np.random.default_rng(5).standard_normal(12)
  gradients = np.concatenate([
      f.step_gradients(np.array([[[i]]]))(0, point[np.newaxis])
      for i in range(25)
  ])
  mean = np.average(gradients, axis=0, weights=f.example_weights)
  np.testing.assert_allclose(mean, f.gradient(point), rtol=1e-12)
  distances = np.sum((gradients - mean) ** 2, axis=1)
  expected = f.example_weights @ distances
  assert f.gradient_variance(point) == pytest.approx(expected, rel=1e-12)


def test_variance_of_equal_gradients_is_not_negative():
  for seed in range(50):
    row = np.random.default_rng(seed).standard_normal((1, _F))
    f = objectives.SoftmaxRegression(
        np.repeat(row, 7, axis=0), np.zeros(7, np.int64), _C, 0.5
    )
    variance = f.gradient_variance(_points(1)[0])
    assert 0.0 <= variance < 1e-12
