"""LocalUpdate as a `tff.learning` process over sequences of batches."""

import functools
from typing import Optional

import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import models
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import local_steps as local_steps_lib
from tff_localupdate.local_update import process
from tff_localupdate.local_update import server_step


def build_local_update_learning_process(
    model: tff.learning.models.FunctionalModel,
    *,
    theta: theta_lib.Theta,
    client_learning_rate: float,
    server_optimizer: tff.learning.optimizers.Optimizer,
    aggregator: Optional[tff.aggregators.UnweightedAggregationFactory] = None,
    local_steps: Optional[local_steps_lib.LocalSteps] = None,
) -> tff.learning.templates.LearningProcess:
  """Builds LocalUpdate over client data given as sequences of batches.

  The same round as that of `process.build_local_update`, for programs that are
  written for `tff.learning`: client data are `tf.data` sequences of batches of
  the type of `model.input_spec`. A client takes the first K(Theta) batches of
  its sequence; a shorter one starts again, one without any batch is an empty
  client. To draw examples with replacement, as Algorithm 2 does, is up to the
  sequence: `shuffle().repeat().batch()` does not, and biases q.

  The loss before training is the mean over the examples taken. State and
  metrics are a `server_step.LocalUpdateState` and `LocalUpdateMetrics`, the
  hyperparameters `client_learning_rate` and `server_learning_rate`.

  Takes the arguments of `process.build_local_update`, and raises its errors.
  """
  arguments.check_type('theta', theta, theta_lib.Theta)
  local_steps = local_steps_lib.checked(local_steps, theta.num_steps)
  initialize, next_fn = process.build_computations(
      model,
      client_work.sequence_type,
      functools.partial(
          client_work.sequence_client_work,
          theta=theta,
          local_steps=local_steps,
      ),
      client_learning_rate=client_learning_rate,
      server_optimizer=server_optimizer,
      aggregator=aggregator,
  )
  state_type = initialize.type_signature.result.member

  @tff.tensorflow.computation(state_type)
  def get_hparams(state):
    return server_step.get_hparams(server_optimizer, state)

  @tff.tensorflow.computation(state_type, get_hparams.type_signature.result)
  def set_hparams(state, hparams):
    return server_step.set_hparams(server_optimizer, state, hparams)

  @tff.tensorflow.computation(state_type)
  def get_model_weights(state):
    return state.model_weights

  @tff.tensorflow.computation(state_type, state_type.model_weights)
  def set_model_weights(state, model_weights):
    return models.replace_weights(state, model_weights)

  return tff.learning.templates.LearningProcess(
      initialize,
      next_fn,
      get_model_weights,
      set_model_weights,
      get_hparams_fn=get_hparams,
      set_hparams_fn=set_hparams,
  )
