"""A round of the rivals of CEAL: L queries of each client, then a message.

In round t each client queries L times, starting from x_t, and sends a vector
v_m, quantized; all receive the new point as it is, as floats:

    x_{t+1} = x_t - a eta (1/M) sum_m Q(v_m)

The algorithms are different v_m, Q and a. All are LocalUpdate in the sense of
`tff_localupdate.local_update`, at the rates that the metrics report.
"""

from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.compression import codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds

# Maps (weights, batch) to the scalar mean loss of the batch.
LossFn = Callable[[Any, Any], tf.Tensor]
# Maps (loss function, weights, batches [L, B, ...], client learning rate) to
# the loss before training and the vector v_m, a structure like the weights.
WorkFn = Callable[[LossFn, Any, Any, tf.Tensor], tuple[tf.Tensor, Any]]


class ClientSteps(NamedTuple):
  """The data of one client for one round.

  Attributes:
    batches: A mini-batch for each of the L queries: the structure of
      `model.input_spec`, leaves [L, B, ...].
    num_examples: int32 scalar, the number of examples that the client holds. 0
      marks an empty client: it sends nothing and is left out of the mean.
    seed: int64 scalar, which tells the clients apart (their number will do).
      Clients with the same one round alike.
  """

  batches: Any
  num_examples: Any
  seed: Any


class RivalState(NamedTuple):
  """All that changes in a run. Scalars where not said otherwise.

  Attributes:
    model_weights: x_t, a `tff.learning.models.ModelWeights`.
    step_size: eta, in the dtype of the weights.
    server_factor: a, likewise.
    round_num: int64, the number of rounds done.
    time_used: int64, the queries done by each client.
    next_queries: int64, the queries of each client in the next round: L, or
      what is left of the horizon.
    total_uplink_bits: int64, the bits sent so far by all clients together.
    downlink_bits: int64, the bits broadcast so far, each broadcast once.
    seed: int64, determines all draws.
  """

  model_weights: Any
  step_size: Any
  server_factor: Any
  round_num: Any
  time_used: Any
  next_queries: Any
  total_uplink_bits: Any
  downlink_bits: Any
  seed: Any


class RivalMetrics(NamedTuple):
  """What is reported of one round.

  Attributes:
    num_queries: int64, the queries of each client.
    time_used: int64, those of all rounds so far.
    sent: bool, whether anything was sent: not if the horizon ends before L
      queries are done.
    loss_before_training: The mean over the clients that sent of the loss at
      x_t, on all L batches if all are queried there, else on the first one. NaN
      if there is no such client.
    update_norm: The norm of (1/M) sum_m Q(v_m).
    client_learning_rate: The rate of local steps, 0 if there are none.
    server_learning_rate: a eta.
    uplink_bits: float64, the bits that a client sent, mean over the clients.
    total_uplink_bits: int64, the bits that all clients sent together.
    downlink_bits: int64, the bits broadcast.
    clients: int32, the number of clients.
    clients_used: int32, those that sent.
    clients_empty: int32, those without examples.
    clients_non_finite: int32, those whose v_m is not finite.
    clients_not_sent: int32, those that had no message for it, see
      `messages.Transmission`; the weights are NaN from then on.
    examples_used: int64, the examples drawn by the clients that sent.
  """

  num_queries: Any
  time_used: Any
  sent: Any
  loss_before_training: Any
  update_norm: Any
  client_learning_rate: Any
  server_learning_rate: Any
  uplink_bits: Any
  total_uplink_bits: Any
  downlink_bits: Any
  clients: Any
  clients_used: Any
  clients_empty: Any
  clients_non_finite: Any
  clients_not_sent: Any
  examples_used: Any


@dataclasses.dataclass(frozen=True)
class RoundRules:
  """All about rounds that does not change during a run; checks itself.

  Attributes:
    work: What a client computes.
    local_steps: L, the queries of a round.
    quantizer: Q.
    code: The code whose bits are counted.
    resolution: The resolution of Q.
    horizon: T, the queries of each client in all; None if there is no end.
    takes_local_steps: Whether clients move between their queries.
    hparam_names: The fields of the state that `set_hparams` may change.
  """

  work: WorkFn
  local_steps: int
  quantizer: quantizers.Quantizer
  code: codes.Code
  resolution: Any = None
  horizon: Optional[int] = None
  takes_local_steps: bool = True
  hparam_names: tuple[str, ...] = ('step_size',)

  def __post_init__(self):
    arguments.check_count('local_steps', self.local_steps)
    arguments.check_type('code', self.code, codes.Code)
    if self.horizon is not None:
      arguments.check_count('horizon', self.horizon)

  def next_queries(self, time_used: tf.Tensor) -> tf.Tensor:
    """Returns the queries of the next round, after `time_used` ones."""
    most = tf.constant(self.local_steps, tf.int64)
    return tf.minimum(most, self.horizon - time_used) if self.horizon else most

  def sends(self, state: RivalState) -> tf.Tensor:
    """Returns whether the next round is whole, so that messages are sent."""
    return tf.equal(state.next_queries, self.local_steps)

  def client_learning_rate(self, state: RivalState) -> tf.Tensor:
    """Returns the rate of local steps."""
    factor = 1.0 if self.takes_local_steps else 0.0
    return factor * state.step_size


class ClientTotals(NamedTuple):
  """Quantities of one client that the server sums over all clients.

  Attributes:
    vector: The decoded Q(v_m), [d]; 0 if nothing is sent.
    loss: The loss before training; 0 if nothing is sent.
    bits: int64, the bits of the message.
    clients: int32, 1; what follows is summed to the metrics of that name.
  """

  vector: Any
  loss: Any
  bits: Any
  clients: Any
  clients_used: Any
  clients_empty: Any
  clients_non_finite: Any
  clients_not_sent: Any
  examples_used: Any


def client_round(
    rules: RoundRules,
    loss_fn: LossFn,
    state: RivalState,
    client: ClientSteps,
) -> ClientTotals:
  """Does the work of a client and sends it.

  Args:
    rules: The rules of the run.
    loss_fn: Maps (weights, batch) to the mean loss of the batch.
    state: The state; clients know it.
    client: The client's data.
  """
  loss, update = rules.work(
      loss_fn,
      state.model_weights.trainable,
      client.batches,
      rules.client_learning_rate(state),
  )
  vector = messages.flatten(update)
  sent = messages.transmit(
      vector,
      rules.resolution,
      random_seeds.derive_seed(state.seed, state.round_num, client.seed),
      rules.quantizer,
      rules.code,
  )
  is_empty = client.num_examples <= 0
  is_used = tf.logical_and(rules.sends(state), tf.logical_not(is_empty))
  is_finite = tf.reduce_all(tf.math.is_finite(vector))
  local_steps, batch_size = tf.nest.flatten(client.batches)[0].shape[:2]

  def if_used(value):
    return tf.where(is_used, value, tf.zeros_like(value))

  return ClientTotals(
      vector=if_used(sent.vector),
      loss=if_used(loss),
      bits=if_used(sent.bits),
      clients=tf.constant(1, tf.int32),
      clients_used=tf.cast(is_used, tf.int32),
      clients_empty=tf.cast(is_empty, tf.int32),
      clients_non_finite=if_used(tf.cast(~is_finite, tf.int32)),
      clients_not_sent=if_used(tf.cast(~sent.was_sent, tf.int32)),
      examples_used=if_used(tf.constant(local_steps * batch_size, tf.int64)),
  )


def server_round(
    rules: RoundRules, state: RivalState, totals: ClientTotals
) -> tuple[RivalState, RivalMetrics]:
  """Ends a round: x_{t+1} = x_t - a eta b, b the mean of the decoded messages.

  The mean is over the clients that sent; if none did, x_t stays. Unless the
  horizon cuts the round short, the server then broadcasts x_{t+1}.

  Args:
    rules: The rules of the run.
    state: The state before the round.
    totals: The sums of the clients' totals.

  Returns:
    The state after the round, and its metrics.
  """
  num_used = tf.cast(totals.clients_used, totals.vector.dtype)
  mean = tf.math.divide_no_nan(totals.vector, num_used)
  rate = state.step_size * state.server_factor
  weights = state.model_weights.trainable
  new_weights = tf.nest.map_structure(
      lambda x, b: tf.where(totals.clients_used > 0, x - rate * b, x),
      weights,
      messages.unflatten(mean, weights),
  )
  broadcast = quantizers.QuantizedVector(tf.zeros([0], tf.int64), header=mean)
  downlink_bits = messages.count_bits(broadcast, rules.code)
  downlink_bits = tf.where(rules.sends(state), downlink_bits, 0)
  time_used = state.time_used + state.next_queries
  new_state = state._replace(
      model_weights=tff.learning.models.ModelWeights(
          new_weights, state.model_weights.non_trainable
      ),
      round_num=state.round_num + tf.cast(state.next_queries > 0, tf.int64),
      time_used=time_used,
      next_queries=rules.next_queries(time_used),
      total_uplink_bits=state.total_uplink_bits + totals.bits,
      downlink_bits=state.downlink_bits + downlink_bits,
  )
  metrics = _metrics(rules, state, totals, mean, downlink_bits)
  return new_state, metrics


def _metrics(rules, state, totals, mean, downlink_bits):
  num_used = tf.cast(totals.clients_used, mean.dtype)
  return RivalMetrics(
      num_queries=state.next_queries,
      time_used=state.time_used + state.next_queries,
      sent=rules.sends(state),
      loss_before_training=totals.loss / num_used,
      update_norm=tf.norm(mean),
      client_learning_rate=rules.client_learning_rate(state),
      server_learning_rate=state.step_size * state.server_factor,
      uplink_bits=tf.cast(totals.bits, tf.float64)
      / tf.cast(totals.clients, tf.float64),
      total_uplink_bits=totals.bits,
      downlink_bits=downlink_bits,
      clients=totals.clients,
      clients_used=totals.clients_used,
      clients_empty=totals.clients_empty,
      clients_non_finite=totals.clients_non_finite,
      clients_not_sent=totals.clients_not_sent,
      examples_used=totals.examples_used,
  )
