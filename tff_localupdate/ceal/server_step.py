"""The server's side of CEAL: its state, its metrics, its step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.ceal import exchange as exchange_lib
from tff_localupdate.compression import messages
from tff_localupdate.compression import random_seeds

# Passing the test means |y| >= 3 tau_j, where the threshold is 4 tau_j.
_LEAST_TRUE_NORM = 0.75
# Maps trainable weights to the norm of the global gradient there.
NormFn = Callable[[Any], tf.Tensor]


class CealState(NamedTuple):
  """All that changes in a run of CEAL: int64 scalars where not said otherwise.

  Attributes:
    model_weights: x^(k), a `tff.learning.models.ModelWeights`; the same at the
      server and at the clients.
    step_size: eta, in the dtype of the weights.
    epoch: k, from 1.
    stage: j, from the first stage.
    time_used: t, the queries done by each client.
    exchange: The number of exchanges done.
    next_queries: The queries of each client in the next exchange.
    next_samples: How many of them need a sample: all, or 0 if nothing is sent.
    total_uplink_bits: Sent so far by all clients together.
    downlink_bits: Broadcast so far, each broadcast once.
    estimated_gradient_norm: |g| of the last exchange that sent; NaN if none.
    true_gradient_norm: |grad f(x^(k))|; NaN if it is not computed.
    passes_by_rounding: See `CealMetrics`.
    seed: Determines all draws.
  """

  model_weights: Any
  step_size: Any
  epoch: Any
  stage: Any
  time_used: Any
  exchange: Any
  next_queries: Any
  next_samples: Any
  total_uplink_bits: Any
  downlink_bits: Any
  estimated_gradient_norm: Any
  true_gradient_norm: Any
  passes_by_rounding: Any
  seed: Any


class CealMetrics(NamedTuple):
  """What is reported of one exchange; all queries were at its x^(k).

  If nothing was sent, loss and estimate are NaN. `epoch`, `stage` and
  `true_gradient_norm` are those of `CealState` before it.

  Attributes:
    num_queries: int64, the queries of each client in this exchange.
    time_used: int64, t, after it.
    sent: bool, whether anything was sent.
    stepped: bool, whether the test passed and x^(k+1) was made.
    loss_before_training: The mean loss over the samples at x^(k).
    estimated_gradient_norm: |g|, the norm of the mean of the decoded messages.
    threshold: 4 tau_j, which |g| is tested against.
    rounding_norm: The root of the expected squared norm of what rounding added
      to g. CEAL needs it well below the threshold.
    passes_by_rounding: int64, in how many exchanges in a row, this one the
      last, the test passed although |g|, without what rounding adds to it in
      the mean, is below 3/4 of the threshold. More than a few mean that the
      stage sticks: messages pile up and nothing is gained.
    uplink_bits: float64, the bits that a client sent, mean over the clients.
    total_uplink_bits: int64, the bits that all clients sent together.
    downlink_bits: int64, the bits of this broadcast.
    clients: int32, the number of clients.
    clients_not_sent: int32, the clients that had no message for their vector
      (not finite, or too few samples given); the weights are NaN from then on.
  """

  epoch: Any
  stage: Any
  num_queries: Any
  time_used: Any
  sent: Any
  stepped: Any
  loss_before_training: Any
  estimated_gradient_norm: Any
  true_gradient_norm: Any
  threshold: Any
  rounding_norm: Any
  passes_by_rounding: Any
  uplink_bits: Any
  total_uplink_bits: Any
  downlink_bits: Any
  clients: Any
  clients_not_sent: Any


def current_plan(
    rules: exchange_lib.ExchangeRules, state: CealState
) -> exchange_lib.ExchangePlan:
  """Returns the plan of the exchange that comes next."""
  return rules.plan(state.stage, state.time_used, state.true_gradient_norm)


def exchange_seed(state: CealState) -> tf.Tensor:
  """Returns the seed of the clients in the next exchange, an int64 scalar."""
  return random_seeds.derive_seed(state.seed, state.exchange, 0)[0]


def with_plan(
    rules: exchange_lib.ExchangeRules, state: CealState
) -> CealState:
  """Returns `state` with the numbers of queries and samples of what is next."""
  plan = current_plan(rules, state)
  return state._replace(
      next_queries=plan.num_queries,
      next_samples=tf.where(plan.sends, plan.num_queries, 0),
  )


class _Outcome(NamedTuple):
  """What the server makes of the clients' messages; see `CealMetrics`."""

  norm: tf.Tensor
  stepped: tf.Tensor
  decoded: tf.Tensor  # b, [d]
  downlink_bits: tf.Tensor
  rounding_norm: tf.Tensor
  by_rounding: tf.Tensor


def server_step(
    rules: exchange_lib.ExchangeRules,
    state: CealState,
    totals: exchange_lib.ClientTotals,
    true_norm_fn: NormFn,
) -> tuple[CealState, CealMetrics]:
  """Ends one exchange, by the mean g of the M decoded messages:

      |g| <  4 tau_j: broadcast one bit, 0; j <- j + 1
      |g| >= 4 tau_j: broadcast one bit, 1, and b = Q(clip(g, B_j + tau_j),
                      phi_j); x^(k+1) = x^(k) - eta b; k <- k + 1; j as it is

  b is as decoded, at the server as at the clients. If the plan sends nothing,
  only time passes. `totals` are the clients' sums.
  """
  plan = current_plan(rules, state)
  outcome = _decide(rules, state, plan, totals)
  new_state = _advance(rules, state, plan, outcome, true_norm_fn)
  new_state = with_plan(
      rules,
      new_state._replace(
          total_uplink_bits=state.total_uplink_bits + totals.bits,
          downlink_bits=state.downlink_bits + outcome.downlink_bits,
          estimated_gradient_norm=tf.where(
              plan.sends, outcome.norm, state.estimated_gradient_norm
          ),
          passes_by_rounding=tf.where(
              outcome.by_rounding, state.passes_by_rounding + 1, 0
          ),
      ),
  )
  return new_state, _metrics(state, new_state, plan, totals, outcome)


def _decide(rules, state, plan, totals):
  num_clients = tf.cast(totals.clients, totals.vector.dtype)
  mean = totals.vector / num_clients
  norm = tf.norm(mean)
  stepped = tf.logical_and(
      plan.sends, exchange_lib.passes_test(norm, plan.threshold)
  )
  sent = messages.transmit(
      messages.clip(mean, plan.downlink_radius),
      plan.downlink_resolution,
      random_seeds.derive_seed(state.seed, state.exchange, 1),
      rules.quantizer,
      rules.code,
  )
  variance = totals.rounding_variance / tf.square(num_clients)
  least = tf.square(_LEAST_TRUE_NORM * plan.threshold)
  return _Outcome(
      norm=norm,
      stepped=stepped,
      decoded=sent.vector,
      downlink_bits=_downlink_bits(rules, plan.sends, stepped, sent.bits),
      rounding_norm=tf.sqrt(variance),
      by_rounding=tf.logical_and(stepped, tf.square(norm) - variance < least),
  )


def _advance(rules, state, plan, outcome, true_norm_fn):
  """Returns the state with x, k, j, t and the true norm after the exchange."""
  stepped = outcome.stepped
  failed = tf.logical_and(plan.sends, tf.logical_not(stepped))
  stage = state.stage + tf.cast(failed, tf.int64)
  if rules.reset_stage:
    first = tf.constant(rules.schedule.first_stage, tf.int64)
    stage = tf.where(stepped, first, stage)
  weights = state.model_weights.trainable
  new_weights = tf.nest.map_structure(
      lambda x, b: tf.where(stepped, x - state.step_size * b, x),
      weights,
      messages.unflatten(outcome.decoded, weights),
  )
  return state._replace(
      model_weights=tff.learning.models.ModelWeights(
          new_weights, state.model_weights.non_trainable
      ),
      epoch=state.epoch + tf.cast(stepped, tf.int64),
      stage=stage,
      time_used=state.time_used + plan.num_queries,
      exchange=state.exchange + tf.cast(plan.num_queries > 0, tf.int64),
      true_gradient_norm=tf.cond(
          stepped,
          lambda: true_norm_fn(new_weights),
          lambda: state.true_gradient_norm,
      ),
  )


def _metrics(state, new_state, plan, totals, outcome):
  num_clients = tf.cast(totals.clients, totals.vector.dtype)

  def if_sent(value):
    return tf.where(plan.sends, value, tf.constant(float('nan'), value.dtype))

  return CealMetrics(
      epoch=state.epoch,
      stage=state.stage,
      num_queries=plan.num_queries,
      time_used=new_state.time_used,
      sent=plan.sends,
      stepped=outcome.stepped,
      loss_before_training=if_sent(totals.loss / num_clients),
      estimated_gradient_norm=if_sent(outcome.norm),
      true_gradient_norm=state.true_gradient_norm,
      threshold=plan.threshold,
      rounding_norm=outcome.rounding_norm,
      passes_by_rounding=new_state.passes_by_rounding,
      uplink_bits=tf.cast(totals.bits, tf.float64)
      / tf.cast(totals.clients, tf.float64),
      total_uplink_bits=totals.bits,
      downlink_bits=outcome.downlink_bits,
      clients=totals.clients,
      clients_not_sent=totals.clients_not_sent,
  )


def _downlink_bits(rules, sends, stepped, vector_bits):
  """Returns the bits of the test, and of the vector if it is sent."""
  test_bits = 0 if rules.is_oracle else 1
  if not rules.broadcast_every_exchange:
    vector_bits = tf.where(stepped, vector_bits, 0)
  return tf.where(sends, vector_bits + test_bits, 0)
