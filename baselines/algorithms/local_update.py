"""LocalUpdate (Charles and Konecny 2020, Algorithms 1 and 2) for the driver."""

import tensorflow_federated as tff

from baselines.algorithms import config as config_lib
from baselines.algorithms import server_optimizers
from baselines.tasks import task as task_lib
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import process


def build(
    algorithm: config_lib.LocalUpdateConfig,
    server_optimizer: config_lib.ServerOptimizerConfig,
    *,
    task: task_lib.Task,
    model: tff.learning.models.FunctionalModel,
    batch_size: int,
    dtype: str,
) -> process.LocalUpdateProcess:
  """Builds the process.

  Args:
    algorithm: Settings of LocalUpdate.
    server_optimizer: Settings of the server optimizer.
    task: The task; gives the loss of single examples.
    model: The task's model in `dtype`.
    batch_size: B.
    dtype: The type of the weights.

  Returns:
    The process over tensor client data; rates can be changed in its state.
  """
  full = algorithm.loss_before_training == 'full'
  return process.build_local_update(
      model,
      theta=theta_lib.parse_theta(algorithm.theta),
      batch_size=batch_size,
      client_learning_rate=algorithm.client_learning_rate,
      server_optimizer=server_optimizers.build(server_optimizer, dtype),
      loss_before_training=algorithm.loss_before_training,
      example_loss_fn=task.example_loss_fn if full else None,
  )
