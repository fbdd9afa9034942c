"""One step of the server at a time, from states made by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.ceal import exchange_plan_test
from tff_localupdate.ceal import exchange
from tff_localupdate.ceal import server_step


def norm_fn(weights):
  return tf.norm(weights[0]) + 100.0


def make_state(**changes):
  zero = tf.constant(0, tf.int64)
  state = server_step.CealState(
      model_weights=tff.learning.models.ModelWeights(
          (tf.ones([6], tf.float64),), ()
      ),
      step_size=tf.constant(0.5, tf.float64),
      epoch=zero + 4, stage=zero + 3, time_used=zero + 20, exchange=zero + 7,
      next_queries=zero, next_samples=zero, total_uplink_bits=zero + 1000,
      downlink_bits=zero + 50,
      estimated_gradient_norm=tf.constant(9.0, tf.float64),
      true_gradient_norm=tf.constant(8.0, tf.float64),
      passes_by_rounding=zero + 2, seed=zero + 1,
  )
  return state._replace(**changes)


def make_totals(norm, *, clients=10, rounding_variance=0.0):
  vector = np.zeros([6])
  vector[2] = norm * clients
  return exchange.ClientTotals(
      vector=tf.constant(vector),
      loss=tf.constant(3.0 * clients, tf.float64),
      rounding_variance=tf.constant(rounding_variance, tf.float64),
      bits=tf.constant(777, tf.int64),
      clients=tf.constant(clients, tf.int32),
      clients_not_sent=tf.constant(0, tf.int32),
  )


def step(totals, state=None, **changes):
  return server_step.server_step(
      exchange_plan_test.build_rules(**changes),
      make_state() if state is None else state,
      totals,
      norm_fn,
  )


THRESHOLD = 4.0 * 3.0 * 2.0**-4  # 4 tau_3


def test_group_12_pass_at_the_threshold_keeps_the_stage():
  state, metrics = step(make_totals(THRESHOLD))
  assert metrics.stepped and metrics.sent
  assert (int(state.epoch), int(state.stage)) == (5, 3)
  assert float(metrics.estimated_gradient_norm) == THRESHOLD
  moved = state.model_weights.trainable[0].numpy()
  assert moved[2] < 1.0 and np.all(moved[[0, 1, 3, 4, 5]] == 1.0)
  # A unit of the downlink grid, times the step size.
  unit = 0.9 * 3.0 * 2.0**-4 / np.sqrt(6.0)
  steps = (1.0 - moved[2]) / (0.5 * unit)
  assert steps == pytest.approx(round(steps), abs=1e-9)
  assert int(metrics.downlink_bits) == 1 + 5 + 2 + round(steps)
  assert float(state.true_gradient_norm) == pytest.approx(
      100.0 + np.linalg.norm(moved)
  )


def test_group_12_fail_below_the_threshold_raises_the_stage():
  state, metrics = step(make_totals(np.nextafter(THRESHOLD, 0.0)))
  assert not metrics.stepped and metrics.sent
  assert (int(state.epoch), int(state.stage)) == (4, 4)
  np.testing.assert_array_equal(state.model_weights.trainable[0], np.ones(6))
  assert int(metrics.downlink_bits) == 1
  assert float(state.true_gradient_norm) == 8.0
  assert int(state.passes_by_rounding) == 0


def test_books_are_kept():
  rules = exchange_plan_test.build_rules()
  state, metrics = step(make_totals(THRESHOLD))
  num_queries = rules.schedule.num_samples(3)
  assert int(metrics.num_queries) == num_queries
  assert int(state.time_used) == int(metrics.time_used) == 20 + num_queries
  assert int(state.exchange) == 8
  assert int(state.total_uplink_bits) == 1777
  assert int(state.downlink_bits) == 50 + int(metrics.downlink_bits)
  assert float(metrics.uplink_bits) == 77.7
  assert int(metrics.total_uplink_bits) == 777
  assert float(metrics.loss_before_training) == 3.0
  assert float(metrics.true_gradient_norm) == 8.0
  assert float(metrics.threshold) == THRESHOLD
  assert int(state.next_queries) == int(state.next_samples) == num_queries
  for field in ('total_uplink_bits', 'downlink_bits'):
    assert getattr(state, field).dtype == tf.int64


def test_rest_of_the_horizon():
  before = make_state(time_used=tf.constant(98, tf.int64))
  state, metrics = step(make_totals(0.0)._replace(bits=np.int64(0)), before)
  assert not metrics.sent and not metrics.stepped
  assert int(metrics.num_queries) == 2 and int(state.time_used) == 100
  assert np.isnan(metrics.estimated_gradient_norm)
  assert float(state.estimated_gradient_norm) == 9.0
  assert int(state.stage) == 3 and int(metrics.downlink_bits) == 0
  assert int(state.next_queries) == int(state.next_samples) == 0
  # From then on, nothing changes.
  after, _ = step(make_totals(0.0)._replace(bits=np.int64(0)), state)
  tf.nest.map_structure(
      np.testing.assert_array_equal, after._replace(passes_by_rounding=0),
      state._replace(passes_by_rounding=0),
  )


def test_pass_by_rounding_alone_is_counted():
  # The mean of ten clients has a rounding norm of 0.9 of the threshold.
  variance = (0.9 * THRESHOLD * 10) ** 2
  state, metrics = step(make_totals(THRESHOLD, rounding_variance=variance))
  assert float(metrics.rounding_norm) == pytest.approx(0.9 * THRESHOLD)
  assert int(metrics.passes_by_rounding) == 3
  assert int(state.passes_by_rounding) == 3
  _, metrics = step(make_totals(2 * THRESHOLD, rounding_variance=variance))
  assert int(metrics.passes_by_rounding) == 0


def test_large_mean_is_clipped():
  state, _ = step(make_totals(1e6))
  moved = 1.0 - state.model_weights.trainable[0].numpy()[2]
  unit = 0.9 * 3.0 * 2.0**-4 / np.sqrt(6.0)
  assert moved == pytest.approx(0.5 * (1.0 + 3.0 * 2.0**-4), abs=0.5 * unit)
  state, _ = step(make_totals(1e6), clip=False)
  assert state.model_weights.trainable[0][2] < -1e5


def test_reset_stage():
  state, _ = step(make_totals(THRESHOLD), reset_stage=True)
  assert int(state.stage) == 2


def test_broadcast_every_exchange():
  state, metrics = step(make_totals(0.7 * THRESHOLD),
                        broadcast_every_exchange=True)
  assert int(metrics.downlink_bits) > 1 + 6 and not metrics.stepped
  np.testing.assert_array_equal(state.model_weights.trainable[0], np.ones(6))


def test_divergence_is_seen():
  state, metrics = step(make_totals(np.nan))
  assert metrics.stepped and np.isnan(metrics.estimated_gradient_norm)
  assert np.all(np.isnan(state.model_weights.trainable[0]))


def test_mean_is_over_the_clients_that_take_part():
  _, metrics = step(make_totals(THRESHOLD, clients=3))
  assert float(metrics.estimated_gradient_norm) == pytest.approx(THRESHOLD)
  assert int(metrics.clients) == 3
