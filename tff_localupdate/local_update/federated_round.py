"""Algorithm 1 of Charles and Konecny (2020) as TFF computations."""

from collections.abc import Callable
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import model_losses
from tff_localupdate import model_weights as model_weights_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import server_step

# Maps (losses, weights, client value, client_learning_rate) to the result.
ClientWork = Callable[..., client_work.ClientResult]


def build_computations(
    model: tff.learning.models.FunctionalModel,
    client_type_fn: Callable[[Any], tff.Type],
    work: ClientWork,
    *,
    client_learning_rate: float,
    server_optimizer: tff.learning.optimizers.Optimizer,
    aggregator: Optional[tff.aggregators.UnweightedAggregationFactory],
    example_loss_fn: Optional[Callable[[Any, Any], tf.Tensor]] = None,
) -> tuple[tff.Computation, tff.Computation]:
  """Returns `initialize` and `next` for one kind of client data and work.

  Their types are `( -> S@SERVER)` and
  `(<S@SERVER, {C}@CLIENTS> -> <state=S@SERVER, metrics=R@SERVER>)` with S a
  `server_step.LocalUpdateState`, R a `server_step.LocalUpdateMetrics` and C the
  type of the data of one client.

  Args:
    model: The model.
    client_type_fn: Maps `model.input_spec` to C.
    work: What a client does with a value of type C.
    client_learning_rate: The initial gamma.
    server_optimizer: The server optimizer.
    aggregator: The aggregation factory, or None.
    example_loss_fn: Losses of single examples, or None.

  Returns:
    The two computations.

  Raises:
    TypeError: If an argument is not of its type.
    ValueError: If `client_learning_rate` is negative or not finite, the weights
      are not all float32 or float64, or the server optimizer has no rate.
  """
  arguments.check_type('model', model, tff.learning.models.FunctionalModel)
  arguments.check_type(
      'server_optimizer', server_optimizer, tff.learning.optimizers.Optimizer
  )
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  if aggregator is None:
    aggregator = tff.aggregators.UnweightedMeanFactory()
  arguments.check_type(
      'aggregator', aggregator, tff.aggregators.UnweightedAggregationFactory
  )
  weights, _ = model_weights_lib.checked_weights(model)
  initial_values = _build_initial_values(
      weights, client_learning_rate, server_optimizer
  )
  weights_type = initial_values.type_signature.result.model_weights
  aggregation = aggregator.create(weights_type.trainable)
  initialize = _build_initialize(initial_values, aggregation)

  def bound_work(weights, client, gamma):
    losses = model_losses.build_model_losses(
        model, weights.non_trainable, example_loss_fn
    )
    return work(losses, weights.trainable, client, gamma)

  next_fn = _build_next(
      initialize.type_signature.result.member,
      client_type_fn(model.input_spec),
      bound_work,
      server_optimizer,
      aggregation,
  )
  return initialize, next_fn


def _build_initial_values(
    weights: tff.learning.models.ModelWeights,
    client_learning_rate: float,
    server_optimizer: tff.learning.optimizers.Optimizer,
) -> tff.Computation:
  """Returns the computation of the state, all but the aggregator's part."""
  dtype = tf.nest.flatten(weights.trainable)[0].dtype

  @tff.tensorflow.computation
  def initial_values():
    model_weights = tf.nest.map_structure(tf.constant, weights)
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), weights.trainable
    )
    optimizer_state = server_optimizer.initialize(specs)
    server_step.check_has_rate(server_optimizer, optimizer_state)
    return server_step.LocalUpdateState(
        model_weights=model_weights,
        optimizer=optimizer_state,
        aggregator=(),
        client_learning_rate=tf.constant(client_learning_rate, dtype),
        round_num=tf.constant(0, tf.int64),
    )

  return initial_values


def _build_initialize(
    initial_values: tff.Computation,
    aggregation: tff.templates.AggregationProcess,
) -> tff.Computation:
  @tff.federated_computation
  def initialize():
    values = tff.federated_eval(initial_values, tff.SERVER)
    return tff.federated_zip(
        server_step.LocalUpdateState(
            model_weights=values.model_weights,
            optimizer=values.optimizer,
            aggregator=aggregation.initialize(),
            client_learning_rate=values.client_learning_rate,
            round_num=values.round_num,
        )
    )

  return initialize


def _build_next(
    state_type: tff.Type,
    client_type: tff.Type,
    work: Callable[[Any, Any, tf.Tensor], client_work.ClientResult],
    server_optimizer: tff.learning.optimizers.Optimizer,
    aggregation: tff.templates.AggregationProcess,
) -> tff.Computation:
  """Returns the computation of one round."""

  @tff.tensorflow.computation(state_type)
  def prepare(state):
    return state.model_weights, state.client_learning_rate

  @tff.tensorflow.computation(client_type, prepare.type_signature.result)
  def work_fn(client, received):
    weights, gamma = received
    return work(weights, client, gamma)

  @tff.tensorflow.computation
  def update_fn(state, mean_update, totals, aggregator_state, measurements):
    return server_step.server_step(
        server_optimizer,
        state,
        mean_update,
        totals,
        aggregator_state,
        measurements,
    )

  @tff.federated_computation(
      tff.FederatedType(state_type, tff.SERVER),
      tff.FederatedType(client_type, tff.CLIENTS),
  )
  def next_fn(state, clients):
    received = tff.federated_broadcast(tff.federated_map(prepare, state))
    results = tff.federated_map(work_fn, (clients, received))
    aggregated = aggregation.next(state.aggregator, results.update)
    totals = tff.federated_sum(results.totals)
    new_state, metrics = tff.federated_map(
        update_fn,
        (
            state,
            aggregated.result,
            totals,
            aggregated.state,
            aggregated.measurements,
        ),
    )
    return tff.learning.templates.LearningProcessOutput(new_state, metrics)

  return next_fn
