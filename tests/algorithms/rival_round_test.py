"""The mathematics of a round, eagerly."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.algorithms import rival_round
from baselines.algorithms import rivals
from tests.algorithms import rival_cases


def _rules(**changes):
  fields = dict(
      work=rivals.local_sgd(4), local_steps=4, **rivals.qsgd_message(3, None)
  )
  return rival_round.RoundRules(**{**fields, **changes})


@pytest.mark.parametrize(
    'horizon, time_used, queries',
    [(None, 10**12, 4), (10, 0, 4), (10, 8, 2), (10, 10, 0)],
)
def test_queries_of_the_next_round(horizon, time_used, queries):
  found = _rules(horizon=horizon).next_queries(tf.constant(time_used, tf.int64))
  assert int(found) == queries


def test_round_by_hand():
  rules = _rules(takes_local_steps=False)
  process = rivals.build_process(
      rival_cases.build_model(), rules, batch_size=2, step_size=0.5,
      server_factor=3.0,
  )
  state = process.initialize_with_seed(1)
  assert float(rules.client_learning_rate(state)) == 0.0
  totals = rival_round.ClientTotals(
      vector=tf.constant([2.0, 0, 0, 0, 0, 4.0], tf.float64),
      loss=tf.constant(8.0, tf.float64),
      bits=tf.constant(99, tf.int64),
      clients=tf.constant(3),
      clients_used=tf.constant(2),
      clients_empty=tf.constant(1),
      clients_non_finite=tf.constant(0),
      clients_not_sent=tf.constant(0),
      examples_used=tf.constant(16, tf.int64),
  )
  after, metrics = rival_round.server_round(rules, state, totals)
  # x - a eta b with a eta = 1.5 and b = (1, 0, 0, 0, 0, 2).
  np.testing.assert_array_equal(
      rival_cases.point_of(after), [-1.0, 0.5, 0.5, 0.5, 0.5, -2.5]
  )
  assert float(metrics.loss_before_training) == 4.0
  assert float(metrics.uplink_bits) == 33.0
  assert float(metrics.update_norm) == pytest.approx(5**0.5)
  assert int(metrics.downlink_bits) == int(after.downlink_bits) == 6 * 64
  assert int(after.total_uplink_bits) == 99
  assert (int(after.round_num), int(after.time_used)) == (1, 4)


def test_local_steps_are_divided_by_their_rate():
  data = rival_cases.Data(1)
  x, y = data.draw(0)
  start = np.full(6, 0.5)

  def loss_fn(weights, batch):
    features, labels = batch
    return 0.5 * tf.reduce_mean(
        tf.square(tf.linalg.matvec(features, weights) - labels)
    )

  loss, update = rivals.local_sgd(4)(
      loss_fn, tf.constant(start), (x[0], y[0]), tf.constant(0.3, tf.float64)
  )
  end = rival_cases.local_point(start, x[0], y[0])
  np.testing.assert_allclose(update, (start - end) / 0.3, rtol=1e-12)
  first = 0.5 * np.mean((x[0, 0] @ start - y[0, 0]) ** 2)
  assert float(loss) == pytest.approx(first, rel=1e-12)
