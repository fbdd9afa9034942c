"""The client's part of CEAL: NormEst, what it is asked for, what it sends.

NormEst is Algorithm 1: a vector with its norm within a factor. The plan of an
exchange is a pure function of the server's state.
"""

from collections.abc import Callable
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.ceal import schedule as schedule_lib
from tff_localupdate.compression import codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds


class NormEstimate(NamedTuple):
  """What NormEst returns.

  Attributes:
    vector: yhat, [d]; with high probability |yhat - y| <= tau_j <= |yhat|/4.
    stage: j, the stage whose test passed.
    num_samples: Samples of each client, over all stages.
  """

  vector: np.ndarray
  stage: int
  num_samples: int


def passes_test(norm: tf.Tensor, threshold: tf.Tensor) -> tf.Tensor:
  """Returns whether |yhat_j| >= 4 tau_j, for the two scalars.

  If it fails and the error is at most tau_j, then |y| <= 5 tau_j, which is
  B_(j+1). A NaN passes, so that divergence is seen.
  """
  # Not `not norm < threshold`, which TensorFlow may turn into `>=`.
  return tf.logical_or(norm >= threshold, tf.math.is_nan(norm))


def estimate_norm(
    mean_of_samples: Callable[[int], np.ndarray],
    schedule: schedule_lib.Schedule,
    *,
    max_samples: int,
) -> NormEstimate:
  """Runs NormEst on its own, without any quantization.

      for j = first_stage, ...:
        yhat_j = mean over the M clients of s_j fresh samples of each
        if |yhat_j| >= 4 tau_j: return yhat_j

  CEAL itself runs it step by step, one stage in each exchange.
  `mean_of_samples` maps s_j to yhat_j, [d], with fresh samples at each call.
  Raises ValueError if no test passes within `max_samples` of each client.
  """
  stage, used = schedule.first_stage, 0
  while used + schedule.num_samples(stage) <= max_samples:
    used += schedule.num_samples(stage)
    vector = np.asarray(mean_of_samples(schedule.num_samples(stage)))
    threshold = schedule.threshold_factor * schedule.accuracy(stage)
    if passes_test(np.linalg.norm(vector), threshold):
      return NormEstimate(vector, stage, used)
    stage += 1
  raise ValueError(
      f'max_samples must be enough for a test to pass, found {max_samples} '
      f'with {used} used and {schedule.num_samples(stage)} for stage {stage}.'
  )


def oracle_epoch_length(
    gradient_norm: tf.Tensor,
    noise_scale: float,
    num_clients: int,
    max_length: int,
) -> tf.Tensor:
  """Returns t_k = ceil(2 sigma^2 / (M |grad f(x^(k))|^2)), at least 1.

  The length that an epoch would have if the norm were known, int64, cut to
  `max_length`. The norm may be 0. That t_k is rounded up is inferred.
  """
  square = tf.square(tf.cast(gradient_norm, tf.float64))
  length = tf.math.ceil(2.0 * noise_scale**2 / (num_clients * square))
  # `not >` for the NaN of a run that has diverged.
  in_range = tf.logical_and(length >= 1.0, length <= max_length)
  limit = tf.where(
      length < 1.0, tf.ones_like(length), tf.cast(max_length, tf.float64)
  )
  return tf.cast(tf.where(in_range, length, limit), tf.int64)


def measured_noise_scale(gradients: Any) -> float:
  """Returns sigma, measured on gradients of single queries at one point.

  sigma^2 = sum over i of |g_i - mean|^2 / (n - 1) for gradients [n, d], an
  unbiased estimate of the expected squared norm of the noise. Raises ValueError
  if n is below 2.
  """
  gradients = np.asarray(gradients, np.float64)
  if gradients.ndim != 2 or len(gradients) < 2:
    raise ValueError(
        'gradients must be a matrix of at least 2 rows, found shape '
        f'{gradients.shape}.'
    )
  noise = gradients - gradients.mean(axis=0)
  return math.sqrt(float(np.sum(noise**2)) / (len(gradients) - 1))


EPOCH_LENGTHS = ('estimated', 'oracle')


class ExchangePlan(NamedTuple):
  """The plan of one exchange; server and clients know all of it.

  Attributes:
    num_queries: int64, the time that it takes; 0 at the horizon.
    sends: bool. False if the rest of the horizon is too short for the samples
      of the stage.
    threshold: The least norm that passes the test; 0 if there is no test. This
      and the rest are scalars in the dtype of the weights, see
      `schedule.StageTable`.
  """

  num_queries: Any
  sends: Any
  threshold: Any
  uplink_resolution: Any
  uplink_radius: Any
  downlink_resolution: Any
  downlink_radius: Any


@dataclasses.dataclass(frozen=True)
class ExchangeRules:
  """What does not change from exchange to exchange.

  Q is `quantizer`, d is `dimension`; the rest is as `process.build_ceal` has
  it.
  """

  schedule: schedule_lib.Schedule
  horizon: int
  dimension: int
  dtype: str
  quantizer: quantizers.GridQuantizer
  code: codes.Code
  epoch_length: str = 'estimated'
  clip: bool = True
  reset_stage: bool = False
  broadcast_every_exchange: bool = False

  def __post_init__(self):
    arguments.check_type('schedule', self.schedule, schedule_lib.Schedule)
    arguments.check_count('horizon', self.horizon)
    arguments.check_type('code', self.code, codes.Code)
    arguments.check_choice('epoch_length', self.epoch_length, EPOCH_LENGTHS)
    for name in ('reset_stage', 'broadcast_every_exchange'):
      if self.is_oracle and getattr(self, name):
        raise ValueError(
            f"{name} must not be set with epoch_length='oracle', where each "
            'exchange is an epoch.'
        )

  @property
  def is_oracle(self) -> bool:
    """Whether the length of an epoch comes from the true norm."""
    return self.epoch_length == 'oracle'

  @functools.cached_property
  def table(self) -> schedule_lib.StageTable:
    """The schedules by stage."""
    return self.schedule.table(self.horizon, self.dimension)

  def plan(
      self, stage: tf.Tensor, time_used: tf.Tensor, true_norm: tf.Tensor
  ) -> ExchangePlan:
    """Returns the plan of an exchange.

    For `estimated` all is as `schedule.Schedule` has it for stage j. For
    `oracle`, with y = |grad f(x^(k))| = `true_norm` known: t_k samples,
    tau_j = y / 4, B_j = y, s_j = t_k in gamma_j, and j = 1 in the log of G_j.
    There is no test. [inferred; the paper has t_k only]
    """
    wanted, scalars = (
        self._oracle_scalars(true_norm)
        if self.is_oracle
        else self._stage_scalars(stage)
    )
    left = self.horizon - time_used
    scalars = [tf.cast(scalar, self.dtype) for scalar in scalars]
    plan = ExchangePlan(
        tf.minimum(wanted, left), tf.logical_and(wanted <= left, left > 0),
        *scalars,
    )
    if self.clip:
      return plan
    infinity = tf.constant(np.inf, self.dtype)
    return plan._replace(uplink_radius=infinity, downlink_radius=infinity)

  def _stage_scalars(self, stage):
    # An index in brackets would have to be a constant for XLA.
    wanted, *scalars = [
        tf.gather(tf.constant(column), stage) for column in self.table
    ]
    return wanted, scalars

  def _oracle_scalars(self, true_norm):
    schedule = self.schedule
    wanted = oracle_epoch_length(
        true_norm, schedule.noise_scale, schedule.num_clients, self.horizon + 1
    )
    norm = tf.cast(true_norm, tf.float64)
    deviation = schedule.noise_scale / tf.sqrt(tf.cast(wanted, tf.float64))
    log = math.log(4.0 * schedule.num_clients / schedule.failure_probability)
    spread = schedule_lib.noise_bound(1.0, 1, log, self.dimension)
    return wanted, [
        tf.constant(0.0, tf.float64),
        schedule.uplink_resolution * deviation,
        norm + spread * deviation,
        schedule.downlink_resolution * norm / 4.0,
        norm + norm / 4.0,
    ]


# How many queries may share a pass over the model; each size is compiled.
_QUERIES_PER_PASS = (1, 8, 64)


class ClientQueries(NamedTuple):
  """The data of one client for one exchange.

  Attributes:
    batches: The structure of `model.input_spec`, leaves [N, B, ...]: a
      mini-batch for each query. The first `next_samples` of the N count.
    seed: int64, such as the client's number; clients with the same one round
      alike.
  """

  batches: Any
  seed: Any


class ClientTotals(NamedTuple):
  """What the server sums over all clients.

  Attributes:
    vector: The decoded message, [d].
    loss: The mean loss over the samples at the weights received.
    rounding_variance: The expected squared norm of the error of rounding.
    bits: int64, the bits of the message.
    clients: int32, 1.
    clients_not_sent: int32, 1 if `messages.Transmission` has no message.
  """

  vector: Any
  loss: Any
  rounding_variance: Any
  bits: Any
  clients: Any
  clients_not_sent: Any


def queries_type(input_spec: Any, batch_size: int) -> tff.StructType:
  """Returns the type of a `ClientQueries`, its N left open."""

  def leaf_type(spec):
    if spec.shape[0] not in (None, batch_size):
      raise ValueError(
          f'batch_size must be that of model.input_spec, {spec.shape[0]}, '
          f'found {batch_size}.'
      )
    shape = [None, batch_size, *spec.shape[1:]]
    return tff.types.tensorflow_to_type(tf.TensorSpec(shape, spec.dtype))

  return tff.to_type(
      ClientQueries(
          batches=tf.nest.map_structure(leaf_type, input_spec),
          seed=tff.TensorType(np.int64),
      )
  )


def send_gradient(
    rules: ExchangeRules,
    loss_fn: Callable[[Any, Any], tf.Tensor],
    weights: Any,
    client: ClientQueries,
    plan: ExchangePlan,
    exchange_seed: tf.Tensor,
) -> ClientTotals:
  """Queries x^(k), clips the mean gradient and sends it quantized.

      g_m = mean of the gradients of s_j queries at x^(k)
      g_m <- g_m min(1, R / |g_m|),  R = B_j + G_j
      q_m = Q(g_m, gamma_j), sent in |Code(q_m)| bits

  If the plan sends nothing, no gradient is taken and all is 0. `loss_fn` maps
  (weights, batch) to the mean loss over the batch's examples; x^(k) is
  `weights`; `exchange_seed` is `server_step.exchange_seed`.
  """
  num_samples = tf.where(plan.sends, plan.num_queries, 0)
  loss, gradient = mean_gradient(loss_fn, weights, client.batches, num_samples)
  vector = messages.clip(messages.flatten(gradient), plan.uplink_radius)
  sent = messages.transmit(
      vector,
      plan.uplink_resolution,
      random_seeds.derive_seed(exchange_seed, client.seed),
      rules.quantizer,
      rules.code,
  )
  variance = rules.quantizer.rounding_variance(vector, plan.uplink_resolution)

  def if_sends(value):
    return tf.where(plan.sends, value, tf.zeros_like(value))

  return ClientTotals(
      vector=if_sends(sent.vector),
      loss=if_sends(loss),
      rounding_variance=if_sends(variance),
      bits=if_sends(sent.bits),
      clients=tf.constant(1, tf.int32),
      clients_not_sent=if_sends(tf.cast(~sent.was_sent, tf.int32)),
  )


def mean_gradient(
    loss_fn: Callable[[Any, Any], tf.Tensor],
    weights: Any,
    batches: Any,
    num_samples: tf.Tensor,
) -> tuple[tf.Tensor, Any]:
  """Returns mean loss and mean gradient over the first s batches.

  Goes through the batches, leaves [N, B, ...], in passes of 64, then 8, then 1,
  whose examples are one batch each: since all queries are at the same point,
  their mean is that of their examples. Padding is not touched. If N is below s,
  `num_samples`, all is NaN; if s is 0, all is 0.
  """
  weights = tf.nest.map_structure(tf.convert_to_tensor, weights)
  dtype = tf.nest.flatten(weights)[0].dtype
  num_rows = tf.shape(tf.nest.flatten(batches)[0], tf.int64)[0]
  sizes = _QUERIES_PER_PASS

  def sums_of(size, start):
    rows = tf.range(size, dtype=tf.int64) + start
    # In range also where this size is not the one taken.
    rows = tf.maximum(tf.minimum(rows, num_rows - 1), 0)
    batch = tf.nest.map_structure(
        lambda leaf: tf.reshape(tf.gather(leaf, rows), [-1, *leaf.shape[2:]]),
        batches,
    )
    means = _loss_and_gradient(loss_fn, weights, batch)
    return tf.nest.map_structure(lambda mean: size * mean, means)

  def add_pass(start, sums):
    fitting = [tf.cast(size <= num_samples - start, tf.int32) for size in sizes]
    index = tf.add_n(fitting) - 1
    more = tf.switch_case(
        index, [lambda size=size: sums_of(size, start) for size in sizes]
    )
    # An index in brackets would have to be a constant for XLA.
    size = tf.gather(tf.constant(sizes, tf.int64), index)
    return start + size, tf.nest.map_structure(tf.add, sums, more)

  zeros = (
      tf.constant(0.0, dtype), tf.nest.map_structure(tf.zeros_like, weights)
  )
  _, sums = tf.while_loop(
      lambda start, _: start < num_samples,
      add_pass,
      (tf.constant(0, tf.int64), zeros),
      parallel_iterations=1,
  )
  count = tf.cast(tf.maximum(num_samples, 1), dtype)
  count = tf.where(num_rows < num_samples, tf.constant(np.nan, dtype), count)
  return tf.nest.map_structure(lambda total: total / count, sums)


def _loss_and_gradient(loss_fn, weights, batch):
  """Returns the loss and its dense gradient, 0 where a weight is not used."""
  with tf.GradientTape(watch_accessed_variables=False) as tape:
    tape.watch(weights)
    loss = loss_fn(weights, batch)
  gradient = tape.gradient(
      loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO
  )
  return loss, tf.nest.map_structure(tf.convert_to_tensor, gradient)
