"""NormEst: its test, its guarantee, and the oracle's epoch length."""

import numpy as np
import pytest
import tensorflow as tf

from tff_localupdate.ceal import exchange
from tff_localupdate.ceal import schedule as schedule_lib


@pytest.mark.parametrize('stage', [1, 4, 9])
@pytest.mark.parametrize('dtype', [tf.float32, tf.float64])
def test_group_12_test_rule(stage, dtype):
  schedule = schedule_lib.Schedule(num_clients=10, noise_scale=1.0)
  threshold = tf.constant(4.0 * schedule.accuracy(stage), dtype)
  # A vector of exactly this norm.
  norm = tf.norm(tf.stack([0.6 * 0.0 * threshold, threshold]))
  below = np.nextafter(threshold.numpy(), dtype.as_numpy_dtype(0.0))
  assert exchange.passes_test(norm, threshold)
  assert not exchange.passes_test(below, threshold)


def test_norm_that_is_nan_passes():
  assert exchange.passes_test(tf.constant(np.nan), tf.constant(1.0))


@pytest.mark.parametrize('norm', [2.0, 0.5, 0.11])
def test_estimate_is_within_a_factor_with_high_probability(norm):
  # sigma^2 = 0.09 is the expected squared norm of the noise of one sample.
  schedule = schedule_lib.Schedule(num_clients=10, noise_scale=0.3)
  rng, dimension, failures = np.random.default_rng(0), 5, 0
  truth = np.zeros(dimension)
  truth[0] = norm
  for _ in range(100):
    sizes = []

    def sample(num_samples, sizes=sizes):
      sizes.append(num_samples)
      deviation = 0.3 / np.sqrt(dimension * num_samples * 10)
      return truth + deviation * rng.normal(size=dimension)

    found = exchange.estimate_norm(
        sample, schedule, max_samples=10**6
    )
    assert found.num_samples == sum(sizes)
    assert sizes == [schedule.num_samples(j + 1) for j in range(found.stage)]
    error = np.linalg.norm(found.vector - truth)
    failures += error > schedule.accuracy(found.stage)
    assert np.linalg.norm(found.vector) >= 4 * schedule.accuracy(found.stage)
  assert failures <= 10


def test_norm_that_no_test_finds():
  schedule = schedule_lib.Schedule(num_clients=10, noise_scale=0.3)
  with pytest.raises(ValueError, match='max_samples must be enough .* 1000'):
    exchange.estimate_norm(
        lambda n: np.zeros(3), schedule, max_samples=1000
    )


@pytest.mark.parametrize(
    'norm, length', [(1.0, 1), (0.1, 50), (0.3, 6), (1e-9, 2001), (0.0, 2001),
                     (np.nan, 2001), (np.inf, 1)]
)
def test_oracle_epoch_length(norm, length):
  # 2 sigma^2 / (M norm^2) = 0.5 / norm^2.
  found = exchange.oracle_epoch_length(
      tf.constant(norm, tf.float64), 1.0, 4, 2001
  )
  assert int(found) == length and found.dtype == tf.int64


def test_measured_noise_scale():
  rng = np.random.default_rng(0)
  gradients = 5.0 + 0.2 * rng.normal(size=[4000, 9])
  found = exchange.measured_noise_scale(gradients)
  assert found == pytest.approx(0.6, rel=0.02)
  assert exchange.measured_noise_scale([[0.0], [2.0]]) == np.sqrt(2.0)
  with pytest.raises(ValueError, match='gradients must be a matrix'):
    exchange.measured_noise_scale(gradients[:1])
