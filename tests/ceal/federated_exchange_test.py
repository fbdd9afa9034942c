"""Types of the computations, and the initial state."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.ceal import exchange_plan_test
from tff_localupdate.ceal import process

WEIGHTS = tff.learning.models.ModelWeights(
    (np.ones([2]), np.ones([2, 2])), (np.ones([3], np.int32),)
)


def initial_state(seed=3, *, on_sphere, **changes):
  return process.initial_server_state(
      exchange_plan_test.build_rules(**changes),
      WEIGHTS,
      step_size=0.1,
      seed=tf.constant(seed, tf.int64),
      on_sphere=on_sphere,
      true_norm_fn=lambda weights: tf.norm(weights[1]),
  )


def test_initial_point_zero():
  state = initial_state(on_sphere=False)
  for leaf, shape in zip(state.model_weights.trainable, ([2], [2, 2])):
    np.testing.assert_array_equal(leaf, np.zeros(shape))
  np.testing.assert_array_equal(state.model_weights.non_trainable[0], [1, 1, 1])
  assert (int(state.epoch), int(state.stage), int(state.time_used)) == (1, 2, 0)
  rules = exchange_plan_test.build_rules()
  assert int(state.next_samples) == rules.schedule.num_samples(2)
  assert float(state.true_gradient_norm) == 0.0
  assert np.isnan(state.estimated_gradient_norm)


def test_initial_point_sphere():
  points = []
  for seed in (3, 3, 4):
    weights = initial_state(seed, on_sphere=True).model_weights.trainable
    points.append(np.concatenate([np.ravel(leaf) for leaf in weights]))
  assert np.linalg.norm(points[0]) == pytest.approx(1.0, 1e-12)
  np.testing.assert_array_equal(points[0], points[1])
  assert abs(points[0] @ points[2]) < 0.99


def test_horizon_shorter_than_the_first_stage():
  state = initial_state(on_sphere=False, horizon=1)
  assert int(state.next_queries) == 1 and int(state.next_samples) == 0


def test_true_norm_is_checked():
  rules = exchange_plan_test.build_rules()
  norm = process.checked_norm_fn(rules, None)
  assert np.isnan(norm(None)) and norm(None).dtype == tf.float64
  norm = process.checked_norm_fn(rules, lambda weights: 2)
  assert norm(None).dtype == tf.float64
  norm = process.checked_norm_fn(rules, lambda weights: [1.0])
  with pytest.raises(ValueError, match='true_norm_fn must return a scalar'):
    norm(None)
  rules = exchange_plan_test.build_rules(epoch_length='oracle')
  with pytest.raises(ValueError, match='true_norm_fn must be given'):
    process.checked_norm_fn(rules, None)
