"""Server optimizers from their settings.

Drives the processes of paper 1, with rates that may change.

LocalUpdate (Charles and Konecny 2020) and its relatives for the driver.
"""

from typing import Any, Mapping, Optional

import tensorflow as tf
import tensorflow_federated as tff

from baselines.algorithms import driver
from baselines.settings import algorithms
from baselines.settings import rates as rates_lib
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.compression import aggregators
from tff_localupdate.compression import quantizers
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import decay
from tff_localupdate.local_update import epoch_draws
from tff_localupdate.local_update import epochs
from tff_localupdate.local_update import local_steps
from tff_localupdate.local_update import maml
from tff_localupdate.local_update import plateau
from tff_localupdate.local_update import process as process_lib
from tff_localupdate.local_update import schedules

_BUILDERS = {
    'sgd': server_optimizers.build_sgd,
    'yogi': server_optimizers.build_yogi,
    'adam': server_optimizers.build_adam,
    'adagrad': server_optimizers.build_adagrad,
}


def build(
    config: rates_lib.ServerOptimizerConfig, dtype: str
) -> tff.learning.optimizers.Optimizer:
  """Returns the server optimizer that `config` describes.

  Args:
    config: Its settings.
    dtype: The type of the weights and so of the optimizer's state.
  """
  return _BUILDERS[config.server_optimizer](
      config.server_learning_rate, dtype=dtype, **config.hyperparameters
  )


class LocalDriver(driver.Driver):
  """Drives a `process.LocalUpdateProcess`, or one whose rates change."""

  def __init__(
      self,
      process: process_lib.LocalUpdateProcess,
      config: algorithms.LocalConfig,
      context: driver.BuildContext,
      *,
      num_batches: int,
      num_epochs: Optional[int] = None,
  ):
    """Makes a driver.

    Args:
      process: The process, at constant rates.
      config: The settings of the algorithm.
      context: Says how the rates change.
      num_batches: How many batches a client draws; in epochs, at most.
      num_epochs: E, if clients go through their data in epochs.
    """
    rate = context.rate
    super().__init__(_with_changes(process, rate, context.run))
    self._num_batches = num_batches
    self._columns = config.extra_columns
    self._decays = rate is not None and rate.decays
    self.num_epochs = num_epochs
    # Batches as short as they come: XLA compiles anew for other sizes.
    self.gains_by_xla = num_epochs is None

  def initial_state(
      self,
      program: Any,
      weights: tff.learning.models.ModelWeights,
      rates: Mapping[str, float],
      seed: int,
  ) -> Any:
    state = self.process.set_model_weights(program.initialize(), weights)
    state = self.process.set_hparams(state, dict(rates))
    return _with_seed(state, seed)

  def samples_needed(self, state: Any) -> int:
    del state
    return self._num_batches

  def cohort(self, drawn: driver.CohortData) -> Any:
    if drawn.batch_sizes is not None:
      return client_work.ClientEpochs(
          drawn.batches, drawn.batch_sizes, drawn.num_examples
      )
    if drawn.examples is None:
      return client_work.ClientBatches(drawn.batches, drawn.num_examples)
    return client_work.ClientBatchesAndExamples(
        drawn.batches, drawn.num_examples, drawn.examples
    )

  def row(self, metrics: Any, state: Any) -> dict[str, Any]:
    inner = metrics.process if self._decays else metrics
    values = super().row(inner, state)
    for column in self._columns:
      values[column] = getattr(inner.aggregator, column)
    if self._decays:
      values.update(
          average_loss=_finite(metrics.average_loss),
          client_decays=metrics.client_decays,
          server_decays=metrics.server_decays,
      )
    return values


def build_aggregator(
    config: algorithms.LocalConfig,
) -> Optional[tff.aggregators.UnweightedAggregationFactory]:
  """Returns the aggregator that takes the mean of quantized updates, or None.
  """
  name, resolution = config.uplink_quantizer, config.quantizer_resolution
  if name == 'none':
    return None
  if name.startswith('grid_'):
    quantizer = quantizers.GridQuantizer(name.removeprefix('grid_'))
  else:
    resolution = int(resolution)
    quantizer = {
        'qsgd': quantizers.QsgdQuantizer,
        'uniform': quantizers.UniformQuantizer,
    }[name]()
  code = driver.build_code(
      config.quantizer_code, int(resolution), signed=name != 'uniform'
  )
  return aggregators.QuantizedMeanFactory(
      quantizer, code, resolution=resolution
  )


def _with_changes(process, rate, run):
  """Returns the process, its rates changing as `rate` says."""
  if rate is None:
    return process
  if rate.decays:
    return decay.build_local_update_decay(
        process,
        rule=_plateau_rule(rate, run),
        client_decay=rate.client_decay,
        server_decay=rate.server_decay,
        min_client_learning_rate=rate.min_client_learning_rate or 0.0,
        min_server_learning_rate=rate.min_server_learning_rate or 0.0,
    )
  if rate.is_constant:
    return process
  client, server = (
      schedules.RateSchedule(
          getattr(rate, f'{side}_schedule'),
          getattr(rate, f'{side}_schedule_offset'),
          rate.steps(side),
      )
      for side in ('client', 'server')
  )
  return schedules.build_scheduled(
      process, client_schedule=client, server_schedule=server
  )


def _plateau_rule(rate, run):
  if rate.representative_clients is None:
    return plateau.PlateauRule(
        rate.window, rate.patience, rate.cooldown, rate.min_improvement,
        rate.decay_rule,
    )
  return plateau.PlateauRule.for_representative_clients(
      rate.representative_clients,
      run.clients_per_round,
      min_improvement=rate.min_improvement,
      rule=rate.decay_rule,
  )


def _with_seed(state, seed):
  """Returns `state` with the seed of its aggregator, if that has one."""
  if hasattr(state, 'process'):
    return state._replace(process=_with_seed(state.process, seed))
  if hasattr(state.aggregator, 'seed'):
    aggregator = state.aggregator._replace(seed=tf.constant(seed, tf.int64))
    return state._replace(aggregator=aggregator)
  return state


def _finite(loss):
  """Returns the average, None while its window is not full."""
  return None if loss == float('inf') else loss


def build_local_update(
    algorithm: algorithms.LocalUpdateConfig, context: driver.BuildContext
) -> LocalDriver:
  """Builds LocalUpdate (Algorithms 1 and 2) over tensor client data."""
  process = process_lib.build_local_update(
      context.model,
      theta=theta_lib.parse_theta(algorithm.theta),
      local_steps=local_steps.LocalSteps(**algorithm.step_options),
      **_full_loss(algorithm, context),
      **_shared(algorithm, context),
  )
  return LocalDriver(
      process, algorithm, context, num_batches=algorithm.num_steps
  )


def build_maml(
    algorithm: algorithms.MamlConfig, context: driver.BuildContext
) -> LocalDriver:
  """Builds K-MAML."""
  process = maml.build_maml(
      context.model,
      num_steps=algorithm.num_steps,
      **_full_loss(algorithm, context),
      **_shared(algorithm, context),
  )
  return LocalDriver(
      process, algorithm, context, num_batches=algorithm.num_steps + 1
  )


def build_epochs(
    algorithm: algorithms.EpochsConfig, context: driver.BuildContext
) -> LocalDriver:
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
  process = epochs.build_local_update_epochs(
      context.model,
      num_padded_steps=num_batches,
      local_steps=local_steps.LocalSteps(**algorithm.step_options),
      **_shared(algorithm, context),
  )
  return LocalDriver(
      process, algorithm, context, num_batches=num_batches,
      num_epochs=algorithm.num_epochs,
  )


def _shared(
    algorithm: algorithms.LocalConfig, context: driver.BuildContext
) -> dict[str, Any]:
  run = context.run
  return dict(
      batch_size=run.batch_size,
      client_learning_rate=algorithm.client_learning_rate,
      server_optimizer=build(
          context.server_optimizer, run.dtype
      ),
      aggregator=build_aggregator(algorithm),
      loss_before_training=algorithm.loss_before_training or 'drawn',
  )


def _full_loss(
    algorithm: algorithms.LocalConfig, context: driver.BuildContext
) -> dict[str, Any]:
  if not algorithm.needs_all_examples:
    return {}
  return dict(example_loss_fn=context.task.example_loss_fn)
