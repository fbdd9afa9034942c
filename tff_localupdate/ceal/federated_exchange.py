"""One exchange of CEAL as TFF computations."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import model_losses
from tff_localupdate.ceal import client_work
from tff_localupdate.ceal import exchange_plan
from tff_localupdate.ceal import server_step
from tff_localupdate.compression import random_seeds
from tff_localupdate.compression import vectors

# The place of the initial point among the seeds; exchanges count from 0.
_INITIAL_POINT = -1


def initial_state(
    rules: exchange_plan.ExchangeRules,
    model_weights: tff.learning.models.ModelWeights,
    *,
    step_size: float,
    seed: tf.Tensor,
    on_sphere: bool,
    true_norm_fn: server_step.NormFn,
) -> server_step.CealState:
  """Returns the state before the first exchange.

  Args:
    rules: The rules of the run.
    model_weights: Arrays; the trainable ones give structure and shapes only.
    step_size: eta.
    seed: int64 scalar.
    on_sphere: Whether x^(1) is uniform on the unit sphere, otherwise 0.
    true_norm_fn: Maps trainable weights to the norm of the global gradient.

  Returns:
    The state, as tensors.
  """
  like, non_trainable = tf.nest.map_structure(
      tf.constant, (model_weights.trainable, model_weights.non_trainable)
  )
  vector = tf.zeros([rules.dimension], rules.dtype)
  if on_sphere:
    vector = random_seeds.draw_unit_vector(
        rules.dimension,
        random_seeds.derive_seed(seed, _INITIAL_POINT),
        vector.dtype,
    )
  weights = vectors.unflatten(vector, like)
  zero = tf.constant(0, tf.int64)
  return server_step.with_plan(
      rules,
      server_step.CealState(
          model_weights=tff.learning.models.ModelWeights(
              weights, non_trainable
          ),
          step_size=tf.constant(step_size, rules.dtype),
          epoch=zero + 1,
          stage=zero + rules.schedule.first_stage,
          time_used=zero,
          exchange=zero,
          next_queries=zero,
          next_samples=zero,
          total_uplink_bits=zero,
          downlink_bits=zero,
          estimated_gradient_norm=tf.constant(float('nan'), rules.dtype),
          true_gradient_norm=true_norm_fn(weights),
          passes_by_rounding=zero,
          seed=seed,
      ),
  )


def build_initialize(
    initial_state_fn: Callable[[tf.Tensor], server_step.CealState], seed: int
) -> tff.Computation:
  """Returns `initialize`, given how a seed makes a state."""

  @tff.tensorflow.computation
  def initial_values():
    return initial_state_fn(tf.constant(seed, tf.int64))

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(initial_values, tff.SERVER)

  return initialize


def build_next(
    state_type: tff.Type,
    client_type: tff.Type,
    rules: exchange_plan.ExchangeRules,
    model: tff.learning.models.FunctionalModel,
    true_norm_fn: server_step.NormFn,
) -> tff.Computation:
  """Returns `next`: see `process.build_ceal`.

  What is broadcast here, x^(k) and the plan, is known to all in the protocol:
  clients keep it, while those of a simulation keep nothing.

  Args:
    state_type: The type of a `server_step.CealState`.
    client_type: The type of a `client_work.ClientQueries`.
    rules: The rules of the run.
    model: The model.
    true_norm_fn: Maps trainable weights to the norm of the global gradient.

  Returns:
    The computation.
  """

  @tff.tensorflow.computation(state_type)
  def prepare(state):
    plan = server_step.current_plan(rules, state)
    return state.model_weights, plan, server_step.exchange_seed(state)

  @tff.tensorflow.computation(client_type, prepare.type_signature.result)
  def work(client, received):
    weights, plan, seed = received
    losses = model_losses.build_model_losses(model, weights.non_trainable)
    return client_work.send_gradient(
        rules, losses.training, weights.trainable, client, plan, seed
    )

  @tff.tensorflow.computation
  def update(state, totals):
    return server_step.server_step(rules, state, totals, true_norm_fn)

  @tff.federated_computation(
      tff.FederatedType(state_type, tff.SERVER),
      tff.FederatedType(client_type, tff.CLIENTS),
  )
  def next_fn(state, clients):
    received = tff.federated_broadcast(tff.federated_map(prepare, state))
    sent = tff.federated_map(work, (clients, received))
    new_state, metrics = tff.federated_map(
        update, (state, tff.federated_sum(sent))
    )
    return tff.learning.templates.LearningProcessOutput(new_state, metrics)

  return next_fn


def checked_norm_fn(
    rules: exchange_plan.ExchangeRules, true_norm_fn: Any
) -> server_step.NormFn:
  """Returns `true_norm_fn` with its result checked; NaN in place of None.

  Raises:
    ValueError: If there is none although the epoch length depends on it, or,
      when it is called, if it returns no scalar.
  """
  if true_norm_fn is None:
    if rules.is_oracle:
      raise ValueError(
          "true_norm_fn must be given with epoch_length='oracle', found None."
      )
    return lambda weights: tf.constant(float('nan'), rules.dtype)

  def true_norm(weights):
    norm = tf.convert_to_tensor(true_norm_fn(weights))
    if norm.shape.rank != 0:
      raise ValueError(
          f'true_norm_fn must return a scalar, found shape {norm.shape}.'
      )
    return tf.cast(norm, rules.dtype)

  return true_norm
