"""LocalUpdate (Charles and Konecny 2020) and its relatives for the driver."""

from typing import Any

import tensorflow_federated as tff

from baselines.algorithms import config as config_lib
from baselines.algorithms import local_configs
from baselines.algorithms import local_driver
from baselines.algorithms import server_optimizers
from baselines.tasks import task as task_lib
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import epoch_draws
from tff_localupdate.local_update import epochs_process
from tff_localupdate.local_update import local_steps
from tff_localupdate.local_update import maml_process
from tff_localupdate.local_update import process as process_lib


def build(
    algorithm: local_configs.LocalUpdateConfig,
    *,
    model: tff.learning.models.FunctionalModel,
    run: Any,
    task: task_lib.Task,
    server_optimizer: config_lib.ServerOptimizerConfig,
    rate: Any,
) -> local_driver.LocalDriver:
  """Builds LocalUpdate (Algorithms 1 and 2).

  Args:
    algorithm: Settings of LocalUpdate.
    model: The task's model in the dtype of the run.
    run: Has the attributes `batch_size`, `clients_per_round` and `dtype`.
    task: The task; gives the loss of single examples.
    server_optimizer: Settings of the server optimizer; None for algorithms
      that have none.
    rate: Settings of how the rates change; None for algorithms whose rates do
      not.

  Returns:
    The driver of the process over tensor client data; rates and weights can be
    changed in its state.
  """
  process = process_lib.build_local_update(
      model,
      theta=theta_lib.parse_theta(algorithm.theta),
      local_steps=local_steps.LocalSteps(**algorithm.step_options),
      **_full_loss(algorithm, task),
      **_shared(algorithm, run, server_optimizer),
  )
  return local_driver.LocalDriver(
      process, algorithm, rate, run, num_batches=algorithm.num_steps
  )


def build_maml(
    algorithm: local_configs.MamlConfig,
    *,
    model: tff.learning.models.FunctionalModel,
    run: Any,
    task: task_lib.Task,
    server_optimizer: config_lib.ServerOptimizerConfig,
    rate: Any,
) -> local_driver.LocalDriver:
  """Builds K-MAML; see `build` for the arguments."""
  process = maml_process.build_maml(
      model,
      num_steps=algorithm.num_steps,
      **_full_loss(algorithm, task),
      **_shared(algorithm, run, server_optimizer),
  )
  return local_driver.LocalDriver(
      process, algorithm, rate, run, num_batches=algorithm.num_steps + 1
  )


def build_epochs(
    algorithm: local_configs.EpochsConfig,
    *,
    model: tff.learning.models.FunctionalModel,
    run: Any,
    task: task_lib.Task,
    server_optimizer: config_lib.ServerOptimizerConfig,
    rate: Any,
) -> local_driver.LocalDriver:
  """Builds LocalUpdate in epochs; see `build` for the arguments.

  Raises:
    ValueError: If the clients are not all known beforehand.
  """
  if task.population is not task.train:
    raise ValueError(
        f'local_update_epochs needs a task whose clients are all in memory, '
        f'found {task.name}.'
    )
  num_batches = epoch_draws.count_steps(
      int(task.train.sizes.max()), algorithm.num_epochs, run.batch_size
  )
  process = epochs_process.build_local_update_epochs(
      model,
      num_padded_steps=num_batches,
      local_steps=local_steps.LocalSteps(**algorithm.step_options),
      **_shared(algorithm, run, server_optimizer),
  )
  return local_driver.LocalDriver(
      process, algorithm, rate, run, num_batches=num_batches,
      num_epochs=algorithm.num_epochs,
  )


def _shared(algorithm, run, server_optimizer) -> dict[str, Any]:
  return dict(
      batch_size=run.batch_size,
      client_learning_rate=algorithm.client_learning_rate,
      server_optimizer=server_optimizers.build(server_optimizer, run.dtype),
      aggregator=local_driver.build_aggregator(algorithm),
      loss_before_training=algorithm.loss_before_training or 'drawn',
  )


def _full_loss(algorithm, task) -> dict[str, Any]:
  is_full = algorithm.loss_before_training == 'full'
  return dict(example_loss_fn=task.example_loss_fn if is_full else None)
