"""The client's mean gradient and message."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ceal import exchange_plan_test
from tff_localupdate.ceal import exchange
from tff_localupdate.compression import messages
from tff_localupdate.compression import random_seeds


def loss_fn(weights, batch):
  x, y = batch
  return tf.reduce_mean(tf.square(tf.linalg.matvec(x, weights[0]) - y))


def make_batches(rows, dtype=np.float64):
  rng = np.random.default_rng(rows)
  return (
      rng.normal(size=[rows, 3, 6]).astype(dtype),
      rng.normal(size=[rows, 3]).astype(dtype),
  )


WEIGHTS = (tf.constant(np.arange(6) / 5.0),)


def expected(batches, num_samples):
  x, y = (leaf[:num_samples].reshape([-1, *leaf.shape[2:]]) for leaf in batches)
  residual = x @ WEIGHTS[0].numpy() - y
  return np.mean(residual**2), 2.0 * x.T @ residual / len(y)


@pytest.mark.parametrize('jit_compile', [None, True])
@pytest.mark.parametrize(
    'num_samples, rows', [(1, 1), (7, 16), (8, 8), (73, 128), (200, 256)]
)
def test_mean_over_the_first_batches(num_samples, rows, jit_compile):
  batches = make_batches(rows)
  for leaf in batches:
    leaf[num_samples:] = np.nan
  loss, gradient = tf.function(
      lambda *arguments: exchange.mean_gradient(loss_fn, *arguments),
      jit_compile=jit_compile,
  )(WEIGHTS, batches, tf.constant(num_samples, tf.int64))
  expected_loss, expected_gradient = expected(batches, num_samples)
  np.testing.assert_allclose(loss, expected_loss, rtol=1e-12)
  np.testing.assert_allclose(gradient[0], expected_gradient, rtol=1e-11)


def test_no_samples_give_zero_and_too_few_give_nan():
  batches = make_batches(4)
  loss, gradient = exchange.mean_gradient(
      loss_fn, WEIGHTS, batches, tf.constant(0, tf.int64)
  )
  assert loss == 0.0 and not np.any(gradient[0])
  loss, gradient = exchange.mean_gradient(
      loss_fn, WEIGHTS, batches, tf.constant(5, tf.int64)
  )
  assert np.isnan(loss) and np.all(np.isnan(gradient[0]))


def send(rules, plan, seed, weights=WEIGHTS):
  return exchange.send_gradient(
      rules,
      loss_fn,
      weights,
      exchange.ClientQueries(
          make_batches(16), tf.constant(seed, tf.int64)
      ),
      exchange.ExchangePlan(*map(tf.constant, plan)),
      tf.constant(99, tf.int64),
  )


def test_message_is_the_clipped_gradient_quantized():
  rules = exchange_plan_test.build_rules()
  plan = exchange_plan_test.plan(rules, stage=2)
  plan = plan._replace(uplink_radius=np.float64(0.5))
  totals = send(rules, plan, 3)
  _, gradient = expected(make_batches(16), int(plan.num_queries))
  assert np.linalg.norm(gradient) > 0.5
  vector = messages.clip(tf.constant(gradient), tf.constant(0.5, tf.float64))
  seed = random_seeds.derive_seed(99, 3)
  sent = messages.transmit(
      vector, plan.uplink_resolution, seed, rules.quantizer, rules.code
  )
  np.testing.assert_allclose(totals.vector, sent.vector, rtol=1e-12)
  assert int(totals.bits) == int(sent.bits) > 6
  np.testing.assert_allclose(
      totals.rounding_variance,
      rules.quantizer.rounding_variance(vector, plan.uplink_resolution),
      rtol=1e-9,
  )
  assert int(totals.clients) == 1 and int(totals.clients_not_sent) == 0


def test_clients_round_by_their_seeds():
  rules = exchange_plan_test.build_rules()
  plan = exchange_plan_test.plan(rules, stage=2)
  one, same, other = (send(rules, plan, s).vector.numpy() for s in (1, 1, 2))
  np.testing.assert_array_equal(one, same)
  assert not np.array_equal(one, other)


def test_nothing_is_sent_if_the_plan_says_so():
  rules = exchange_plan_test.build_rules()
  plan = exchange_plan_test.plan(rules, stage=2, time_used=99)
  assert plan.num_queries == 1 and not plan.sends
  totals = send(rules, plan, 1)
  assert not np.any(totals.vector) and int(totals.bits) == 0
  assert float(totals.loss) == 0.0 and int(totals.clients) == 1


def test_gradient_that_is_not_finite_is_counted():
  rules = exchange_plan_test.build_rules()
  plan = exchange_plan_test.plan(rules, stage=2)
  infinite = (tf.fill([6], tf.constant(np.inf, tf.float64)),)
  totals = send(rules, plan, 1, infinite)
  assert int(totals.clients_not_sent) == 1 and int(totals.bits) == 0
  assert np.all(np.isnan(totals.vector))


def test_batch_size_must_be_that_of_the_model():
  spec = (tf.TensorSpec([4, 6]), tf.TensorSpec([None]))
  assert exchange.queries_type(spec, 4).batches[0].shape == (None, 4, 6)
  with pytest.raises(ValueError, match='batch_size must be .*, 4, found 3'):
    exchange.queries_type(spec, 3)
