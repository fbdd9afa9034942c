"""LocalUpdate, Algorithm 1 of Charles and Konecny (2020), as a TFF process.

Clients hold their data as tensors.
"""

import collections
from collections.abc import Callable
import functools
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import models
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import inner_loop
from tff_localupdate.local_update import local_steps as local_steps_lib
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
    seeds_clients: bool = False,
) -> tuple[tff.Computation, tff.Computation]:
  """Returns `initialize` and `next` for one kind of client data and work.

  Their types are `( -> S@SERVER)` and that in `build_local_update`, whose other
  arguments these are.

  Args:
    client_type_fn: Maps `model.input_spec` to C, the type of a client's data.
    work: What a client does with a value of type C.
    seeds_clients: Whether the updates are `client_work.SeededUpdate`.

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
  weights, _ = models.checked_weights(model)
  initial_values = _build_initial_values(
      weights, client_learning_rate, server_optimizer
  )
  weights_type = initial_values.type_signature.result.model_weights
  value_type = weights_type.trainable
  if seeds_clients:
    value_type = tff.to_type(
        client_work.SeededUpdate(
            value_type, tff.TensorType(np.int64), tff.TensorType(np.bool_)
        )
    )
  aggregation = aggregator.create(value_type)
  initialize = _build_initialize(initial_values, aggregation)

  def bound_work(weights, client, gamma):
    losses = models.build_model_losses(
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


class LocalUpdateProcess(tff.templates.IterativeProcess):
  """LocalUpdate over tensors, see `build_local_update`.

  `initialize` and `next` are TFF computations. The other methods are plain
  functions of a `server_step.LocalUpdateState`, for use in or outside of TFF.
  """

  def __init__(
      self,
      initialize_fn: tff.Computation,
      next_fn: tff.Computation,
      server_optimizer: tff.learning.optimizers.Optimizer,
  ):
    super().__init__(initialize_fn, next_fn)
    self._server_optimizer = server_optimizer

  def get_hparams(
      self, state: server_step.LocalUpdateState
  ) -> collections.OrderedDict[str, Any]:
    """Returns `client_learning_rate` and `server_learning_rate`."""
    return server_step.get_hparams(self._server_optimizer, state)

  def set_hparams(
      self,
      state: server_step.LocalUpdateState,
      hparams: collections.OrderedDict[str, Any],
  ) -> server_step.LocalUpdateState:
    """Returns `state` with other rates; see `server_step.set_hparams`."""
    return server_step.set_hparams(self._server_optimizer, state, hparams)

  def get_model_weights(
      self, state: server_step.LocalUpdateState
  ) -> tff.learning.models.ModelWeights:
    """Returns the model weights in `state`."""
    return state.model_weights

  def set_model_weights(
      self,
      state: server_step.LocalUpdateState,
      model_weights: tff.learning.models.ModelWeights,
  ) -> server_step.LocalUpdateState:
    """Returns `state` with other weights of the same shapes and dtypes."""
    return models.replace_weights(state, model_weights)


def build_local_update(
    model: tff.learning.models.FunctionalModel,
    *,
    theta: theta_lib.Theta,
    batch_size: int,
    client_learning_rate: float,
    server_optimizer: tff.learning.optimizers.Optimizer,
    aggregator: Optional[tff.aggregators.UnweightedAggregationFactory] = None,
    loss_before_training: str = 'drawn',
    example_loss_fn: Optional[Callable[[Any, Any], tf.Tensor]] = None,
    num_padded_examples: Optional[int] = None,
    local_steps: Optional[local_steps_lib.LocalSteps] = None,
    seeds_clients: bool = False,
) -> LocalUpdateProcess:
  """Builds LocalUpdate over client data given as tensors.

  Round t, with I_t the clients of the round that have examples:

      q_t^i   = InnerLoop(i, x_t, gamma_t, Theta)        for i in I_t
      q_t     = mean of q_t^i over I_t, each with the same weight
      x_{t+1} = ServerOpt(x_t, q_t, eta_t)

  where InnerLoop is `inner_loop.inner_loop`. `next` has the type

      (<S@SERVER, {C}@CLIENTS> -> <state=S@SERVER, metrics=R@SERVER>)

  with S a `server_step.LocalUpdateState`, R a `server_step.LocalUpdateMetrics`
  and C a `client_work.ClientBatches`, its batches of leaves [K, B, ...] where
  K = K(Theta) and B = `batch_size`; for `loss_before_training='full'`, C is a
  `client_work.ClientBatchesAndExamples`. All is computed in the dtype of the
  trainable weights. gamma_t and eta_t are in the state.

  Source: Charles and Konecny, On the Outsized Importance of Learning Rates in
  Local Update Methods, arXiv 2007.00878, Algorithms 1 and 2.

  Departures: the paper has no empty client. Here it sends zeros and is left out
  of the mean (an aggregator sees its zeros, and its result is multiplied by
  M/|I_t|). Unlike `tff.learning`, updates that are not finite are counted, and
  neither zeroed nor rejected: a diverging run is seen to diverge.

  Args:
    model: Its loss is the mean over a batch.
    theta: The Theta weights.
    batch_size: B.
    client_learning_rate: The initial gamma, finite and not negative.
    server_optimizer: With the initial eta; see `server_optimizers`.
    aggregator: How the mean over the clients is taken; None is
      `tff.aggregators.UnweightedMeanFactory()`. (The differentially private
      ones of TFF 0.87.0 add float32 noise, and refuse float64 weights.)
    loss_before_training: Over which examples a client's loss at x_t is taken:
      `drawn`, the K B drawn ones, which costs a forward pass; `first_batch`,
      the B ones of its first step, whose loss (in training mode) comes with the
      gradient and costs nothing; `full`, all that it has.
    example_loss_fn: Maps (output, labels) of n examples to their losses [n];
      with `full` only, where it is needed.
    num_padded_examples: N, the rows of the tensors that hold all examples of a
      client; with `full` only. None leaves N open.
    local_steps: Other ways to take the local steps; None is the paper's.
    seeds_clients: Whether C is a `client_work.SeededClientBatches`, for an
      `aggregator` that takes values of type `client_work.SeededUpdate`, such as
      a `compression.QuantizedMeanFactory` that is seeded by clients.

  Raises:
    TypeError: If `model`, `theta`, `server_optimizer`, `aggregator` or
      `local_steps` is not of its type.
    ValueError: If any other argument is out of its range, or given although it
      would not be used, or the factors of `local_steps` are not K(Theta).
  """
  arguments.check_type('theta', theta, theta_lib.Theta)
  update_fn = functools.partial(
      inner_loop.inner_loop_and_first_loss,
      theta=theta,
      local_steps=local_steps_lib.checked(local_steps, theta.num_steps),
  )
  return build_tensor_process(
      model,
      update_fn,
      num_batches=theta.num_steps,
      batch_size=batch_size,
      client_learning_rate=client_learning_rate,
      server_optimizer=server_optimizer,
      aggregator=aggregator,
      loss_before_training=loss_before_training,
      example_loss_fn=example_loss_fn,
      num_padded_examples=num_padded_examples,
      seeds_clients=seeds_clients,
  )


def build_tensor_process(
    model: tff.learning.models.FunctionalModel,
    update_fn: client_work.UpdateFn,
    *,
    num_batches: int,
    batch_size: int,
    client_learning_rate: float,
    server_optimizer: tff.learning.optimizers.Optimizer,
    aggregator: Optional[tff.aggregators.UnweightedAggregationFactory],
    loss_before_training: str,
    example_loss_fn: Optional[Callable[[Any, Any], tf.Tensor]],
    num_padded_examples: Optional[int],
    seeds_clients: bool = False,
) -> LocalUpdateProcess:
  """Builds LocalUpdate with `update_fn` in place of InnerLoop.

  It makes q_t^i of the `num_batches` batches that client i draws. The other
  arguments are those of `build_local_update`.
  """
  arguments.check_choice(
      'loss_before_training',
      loss_before_training,
      ('drawn', 'first_batch', 'full'),
  )
  is_full = loss_before_training == 'full'
  if is_full != (example_loss_fn is not None):
    raise ValueError(
        "example_loss_fn must be given with loss_before_training='full', and "
        f'only then, found {example_loss_fn} with {loss_before_training!r}.'
    )
  if num_padded_examples is not None and not is_full:
    raise ValueError(
        "num_padded_examples must be given with loss_before_training='full' "
        f'only, found {num_padded_examples} with {loss_before_training!r}.'
    )

  if is_full and seeds_clients:
    raise ValueError(
        "seeds_clients must be False with loss_before_training='full', found "
        f'{seeds_clients}.'
    )

  def client_type(input_spec):
    if seeds_clients:
      return client_work.seeded_batches_type(
          input_spec, num_batches, batch_size
      )
    if is_full:
      return client_work.batches_and_examples_type(
          input_spec, num_batches, batch_size, num_padded_examples
      )
    return client_work.batches_type(input_spec, num_batches, batch_size)

  initialize, next_fn = build_computations(
      model,
      client_type,
      functools.partial(
          client_work.tensor_client_work,
          update_fn=update_fn,
          loss_before_training=loss_before_training,
      ),
      client_learning_rate=client_learning_rate,
      server_optimizer=server_optimizer,
      aggregator=aggregator,
      example_loss_fn=example_loss_fn,
      seeds_clients=seeds_clients,
  )
  return LocalUpdateProcess(initialize, next_fn, server_optimizer)
