"""The rivals of CEAL as iterative processes: one `next` is one round."""

from collections.abc import Callable
from typing import Any, Optional
import warnings

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.algorithms import rival_round
from tff_localupdate import arguments
from tff_localupdate import models
from tff_localupdate import theta as theta_lib
from tff_localupdate.ceal import process
from tff_localupdate.compression import codes
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import inner_loop


class RivalProcess(process.HorizonProcess):
  """One of the algorithms; its states are `rival_round.RivalState`."""

  def __init__(
      self,
      initialize_fn: tff.Computation,
      next_fn: tff.Computation,
      initial_values_fn: Callable[[tf.Tensor], rival_round.RivalState],
      rules: rival_round.RoundRules,
  ):
    super().__init__(
        initialize_fn, next_fn, initial_values_fn, rules.hparam_names
    )
    self._rules = rules

  def samples_needed(self, state: rival_round.RivalState) -> int:
    return int(state.next_queries)

  def rows_needed(self, state: rival_round.RivalState) -> int:
    del state
    return self._rules.local_steps

  def is_finished(self, state: rival_round.RivalState) -> bool:
    return int(state.next_queries) == 0


class FloatQuantizer(quantizers.Quantizer):
  """Sends all numbers as they are, as floats in the header."""

  def quantize(
      self, vector: tf.Tensor, resolution: Any, seed: tf.Tensor
  ) -> quantizers.QuantizedVector:
    return quantizers.QuantizedVector(tf.zeros([0], tf.int64), header=vector)

  def dequantize(
      self, quantized: quantizers.QuantizedVector, resolution: Any
  ) -> tf.Tensor:
    return quantized.header


def build_process(
    model: tff.learning.models.FunctionalModel,
    rules: rival_round.RoundRules,
    *,
    batch_size: int,
    step_size: float,
    server_factor: float = 1.0,
    seed: int = 0,
    dtype: Optional[str] = None,
) -> RivalProcess:
  """Builds the process of an algorithm. `next` has the type

      (<S@SERVER, {C}@CLIENTS> -> <state=S@SERVER, metrics=R@SERVER>)

  with S a `rival_round.RivalState`, R a `rival_round.RivalMetrics` and C a
  `rival_round.ClientSteps`, its batches of leaves [L, B, ...]. x_1 is the
  initial weights of the model. If the horizon ends before a round has L
  queries, its time passes and nothing is sent.

  Args:
    model: The model; its loss is a mean over the examples of a batch, plus, if
      need be, what depends on the weights only.
    rules: The rules of the run.
    batch_size: B, the examples of a query.
    step_size: The initial eta, above 0.
    server_factor: The initial a, above 0.
    seed: A whole number; determines all draws.
    dtype: `float32` or `float64`, which the trainable weights of `model` must
      have. None takes theirs.

  Returns:
    The `RivalProcess`.

  Raises:
    TypeError: If `model` is not of its type.
    ValueError: If any other argument is out of its range.
  """
  arguments.check_type('model', model, tff.learning.models.FunctionalModel)
  arguments.check_positive('step_size', step_size)
  arguments.check_positive('server_factor', server_factor)
  random_seeds.check_seed('seed', seed)
  weights, dtype = models.checked_weights(model, dtype)
  client_type = _client_type(model.input_spec, rules.local_steps, batch_size)
  _warn_if_nothing_is_sent(rules)

  def initial_values(seed):
    zero = tf.constant(0, tf.int64)
    return rival_round.RivalState(
        model_weights=tf.nest.map_structure(tf.constant, weights),
        step_size=tf.constant(step_size, dtype),
        server_factor=tf.constant(server_factor, dtype),
        round_num=zero,
        time_used=zero,
        next_queries=rules.next_queries(zero),
        total_uplink_bits=zero,
        downlink_bits=zero,
        seed=seed,
    )

  @tff.tensorflow.computation
  def initial_state():
    return initial_values(tf.constant(seed, tf.int64))

  state_type = initial_state.type_signature.result

  @tff.tensorflow.computation(client_type, state_type)
  def work(client, state):
    losses = models.build_model_losses(
        model, state.model_weights.non_trainable
    )
    return rival_round.client_round(rules, losses.training, state, client)

  @tff.tensorflow.computation
  def update(state, totals):
    return rival_round.server_round(rules, state, totals)

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(initial_state, tff.SERVER)

  @tff.federated_computation(
      tff.FederatedType(state_type, tff.SERVER),
      tff.FederatedType(client_type, tff.CLIENTS),
  )
  def next_fn(state, clients):
    sent = tff.federated_map(work, (clients, tff.federated_broadcast(state)))
    new_state, metrics = tff.federated_map(
        update, (state, tff.federated_sum(sent))
    )
    return tff.learning.templates.LearningProcessOutput(new_state, metrics)

  return RivalProcess(initialize, next_fn, initial_values, rules)


def float_message() -> dict[str, Any]:
  """Returns the fields of `RoundRules` for vectors sent as floats."""
  # The code has no integers to carry.
  return dict(quantizer=FloatQuantizer(), code=codes.SignedUnaryCode())


def qsgd_message(
    quantization_levels: int, code: Optional[codes.Code]
) -> dict[str, Any]:
  """Returns the fields of `RoundRules` for vectors sent by QSGD.

  Args:
    quantization_levels: s, a whole number from 1 to 2^31 - 1.
    code: The code of the integers; None is the one of fixed width for s.
  """
  arguments.check_count('quantization_levels', quantization_levels)
  return dict(
      quantizer=quantizers.QsgdQuantizer(),
      code=code or codes.FixedWidthCode(quantization_levels),
      resolution=quantization_levels,
  )


def local_sgd(local_steps: int) -> rival_round.WorkFn:
  """Returns the work of a client that takes L local steps.

  From x_t it goes to x_m by steps of size eta along gradients g_k, and sends

      v_m = sum_k g_k = (x_t - x_m) / eta

  which is computed as the sum: nothing divides by eta.

  Args:
    local_steps: L.
  """
  arguments.check_count('local_steps', local_steps)
  theta = theta_lib.Theta.ones(local_steps)

  def work(loss_fn, weights, batches, client_learning_rate):
    update, loss = inner_loop.inner_loop_and_first_loss(
        loss_fn, weights, batches, client_learning_rate, theta
    )
    return loss, update

  return work


def _warn_if_nothing_is_sent(rules: rival_round.RoundRules) -> None:
  horizon, steps = rules.horizon, rules.local_steps
  if horizon is not None and horizon < steps:
    warnings.warn(
        f'horizon {horizon} is shorter than the {steps} steps of a round: '
        'nothing will be sent, and nothing learned.',
        stacklevel=3,
    )


def _client_type(
    input_spec: Any, local_steps: int, batch_size: int
) -> tff.StructType:
  """Returns the type of a `rival_round.ClientSteps`."""
  batches = client_work.batches_type(input_spec, local_steps, batch_size)
  return tff.to_type(
      rival_round.ClientSteps(
          batches=batches.batches,
          num_examples=batches.num_examples,
          seed=tff.TensorType(np.int64),
      )
  )
