"""LocalUpdate (Charles and Konecny 2020) and its relatives for the driver."""

from typing import Any

from baselines.algorithms import driver
from baselines.algorithms import local_configs
from baselines.algorithms import local_driver
from baselines.algorithms import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import epoch_draws
from tff_localupdate.local_update import epochs_process
from tff_localupdate.local_update import local_steps
from tff_localupdate.local_update import maml_process
from tff_localupdate.local_update import process as process_lib


def build_local_update(
    algorithm: local_configs.LocalUpdateConfig, context: driver.BuildContext
) -> local_driver.LocalDriver:
  """Builds LocalUpdate (Algorithms 1 and 2) over tensor client data."""
  process = process_lib.build_local_update(
      context.model,
      theta=theta_lib.parse_theta(algorithm.theta),
      local_steps=local_steps.LocalSteps(**algorithm.step_options),
      **_full_loss(algorithm, context),
      **_shared(algorithm, context),
  )
  return local_driver.LocalDriver(
      process, algorithm, context, num_batches=algorithm.num_steps
  )


def build_maml(
    algorithm: local_configs.MamlConfig, context: driver.BuildContext
) -> local_driver.LocalDriver:
  """Builds K-MAML."""
  process = maml_process.build_maml(
      context.model,
      num_steps=algorithm.num_steps,
      **_full_loss(algorithm, context),
      **_shared(algorithm, context),
  )
  return local_driver.LocalDriver(
      process, algorithm, context, num_batches=algorithm.num_steps + 1
  )


def build_epochs(
    algorithm: local_configs.EpochsConfig, context: driver.BuildContext
) -> local_driver.LocalDriver:
  """Builds LocalUpdate in epochs.

  Raises:
    ValueError: If the clients are not all known beforehand.
  """
  task = context.task
  if task.population is not task.train:
    raise ValueError(
        'local_update_epochs needs a task whose clients are all in memory, '
        f'found {task.name}.'
    )
  num_batches = epoch_draws.count_steps(
      int(task.train.sizes.max()), algorithm.num_epochs, context.run.batch_size
  )
  process = epochs_process.build_local_update_epochs(
      context.model,
      num_padded_steps=num_batches,
      local_steps=local_steps.LocalSteps(**algorithm.step_options),
      **_shared(algorithm, context),
  )
  return local_driver.LocalDriver(
      process, algorithm, context, num_batches=num_batches,
      num_epochs=algorithm.num_epochs,
  )


def _shared(
    algorithm: local_configs.LocalConfig, context: driver.BuildContext
) -> dict[str, Any]:
  run = context.run
  return dict(
      batch_size=run.batch_size,
      client_learning_rate=algorithm.client_learning_rate,
      server_optimizer=server_optimizers.build(
          context.server_optimizer, run.dtype
      ),
      aggregator=local_driver.build_aggregator(algorithm),
      loss_before_training=algorithm.loss_before_training or 'drawn',
  )


def _full_loss(
    algorithm: local_configs.LocalConfig, context: driver.BuildContext
) -> dict[str, Any]:
  if not algorithm.needs_all_examples:
    return {}
  return dict(example_loss_fn=context.task.example_loss_fn)
