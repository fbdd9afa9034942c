"""LocalUpdate (Charles and Konecny 2020) and its relatives for the driver.

The rivals of CEAL are members of LocalUpdate: their settings say which.
"""

from typing import Any, Mapping, Optional

import numpy as np
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


def build_server_optimizer(
    config: rates_lib.ServerOptimizerConfig, dtype: str
) -> tff.learning.optimizers.Optimizer:
  """Returns the optimizer of these settings, for weights of a dtype."""
  builder = getattr(server_optimizers, f'build_{config.server_optimizer}')
  return builder(
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
      batches_per_step: int = 1,
      seeds_clients: bool = False,
  ):
    """Makes a driver.

    Args:
      process: The process, at constant rates.
      config: The settings of the algorithm.
      context: Says how the rates change.
      num_batches: How many batches a client draws; in epochs, at most.
      num_epochs: E, if clients go through their data in epochs.
      batches_per_step: How many of the batches drawn make one of a local step.
      seeds_clients: Whether clients carry the seed of their rounding.
    """
    rate = context.rate
    super().__init__(_with_changes(process, rate, context.run))
    self._plain_process = process
    self._num_batches = num_batches
    self._batches_per_step = batches_per_step
    self._seeds_clients = seeds_clients
    self._float_bits = context.float_bits
    self._step_options = getattr(config, 'step_options', {})
    self._quantizes = config.uplink_quantizer != 'none'
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

  def local_rule(self, state: Any) -> Optional[dict[str, Any]]:
    gamma = self._rates(state)['client_learning_rate']
    if self._batches_per_step > 1 or not gamma:
      return None
    return dict(step_size=float(gamma), **self._step_options)

  def cohort(self, drawn: driver.CohortData) -> Any:
    if self._batches_per_step > 1:
      # All queries are at one point, so their examples are one large batch.
      drawn = drawn._replace(
          batches=tf.nest.map_structure(self._joined, drawn.batches)
      )
    if self._seeds_clients:
      seeds = np.arange(len(drawn.num_examples), dtype=np.int64)
      return client_work.SeededClientBatches(
          drawn.batches, drawn.num_examples, seeds
      )
    if drawn.batch_sizes is not None:
      return client_work.ClientEpochs(
          drawn.batches, drawn.batch_sizes, drawn.num_examples
      )
    if drawn.examples is None:
      return client_work.ClientBatches(drawn.batches, drawn.num_examples)
    return client_work.ClientBatchesAndExamples(
        drawn.batches, drawn.num_examples, drawn.examples
    )

  def messages(self, metrics: Any) -> driver.Messages:
    inner = metrics.process if self._decays else metrics
    if self._quantizes:
      total = int(inner.aggregator.total_uplink_bits)
      not_sent = int(inner.aggregator.clients_not_sent)
    else:
      not_sent = int(inner.clients_non_finite)
      total = (int(inner.clients_used) - not_sent) * self._float_bits
    return driver.Messages(True, total, self._float_bits, not_sent)

  def row(self, metrics: Any, state: Any) -> dict[str, Any]:
    inner = metrics.process if self._decays else metrics
    values = super().row(inner, state)
    if self._decays:
      values.update(
          average_loss=_finite(metrics.average_loss),
          client_decays=metrics.client_decays,
          server_decays=metrics.server_decays,
      )
    return values


  def cut_row(self, state: Any) -> dict[str, Any]:
    rates = self._rates(state)
    values = {
        name: np.asarray(rates[name])[()]
        for name in ('client_learning_rate', 'server_learning_rate')
    }
    return {**values, **super().cut_row(state)}

  def _rates(self, state: Any) -> Mapping[str, Any]:
    """Returns both rates of the next round."""
    return self._plain_process.get_hparams(getattr(state, 'process', state))

  def _joined(self, leaf: np.ndarray) -> np.ndarray:
    """Returns batches [M, K, B, ...] as [M, K / n, n B, ...]."""
    num_clients, num_steps, batch_size = leaf.shape[:3]
    factor = self._batches_per_step
    return leaf.reshape([
        num_clients, num_steps // factor, factor * batch_size, *leaf.shape[3:]
    ])


def build_aggregator(
    config: algorithms.LocalConfig, seeded_by_clients: bool = False
) -> Optional[tff.aggregators.UnweightedAggregationFactory]:
  """Returns the aggregator that takes the mean of quantized updates, or None.

  See `aggregators.QuantizedMeanFactory` for `seeded_by_clients`.
  """
  if config.uplink_quantizer == 'none':
    return None
  entry = algorithms.QUANTIZERS[config.uplink_quantizer]
  resolution = config.quantizer_resolution
  levels = int(resolution)
  return aggregators.QuantizedMeanFactory(
      getattr(quantizers, entry.factory)(*entry.arguments),
      driver.build_code(config.quantizer_code, levels, signed=entry.is_signed),
      resolution=levels if entry.takes_levels else resolution,
      seeded_by_clients=seeded_by_clients,
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


def build_member(
    algorithm: Any, context: driver.BuildContext
) -> LocalDriver:
  """Builds a rival of CEAL as the member of LocalUpdate that it is.

  All clients know the seed of the run, and the rounding of each is drawn from
  its number, whatever it sends.
  """
  member, run = algorithm.member, context.run
  settings, joined = member.settings, member.batches_per_step
  seeds_clients = settings.uplink_quantizer != 'none'
  process = process_lib.build_local_update(
      context.model,
      theta=theta_lib.parse_theta(settings.theta),
      batch_size=joined * run.batch_size,
      client_learning_rate=settings.client_learning_rate,
      server_optimizer=server_optimizers.build_sgd(
          member.server_learning_rate, dtype=run.dtype
      ),
      aggregator=build_aggregator(settings, seeds_clients),
      loss_before_training=settings.loss_before_training,
      seeds_clients=seeds_clients,
  )
  return LocalDriver(
      process, settings, context,
      num_batches=joined * settings.num_steps,
      batches_per_step=joined,
      seeds_clients=seeds_clients,
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
  """Builds LocalUpdate in epochs; ValueError unless all clients are known."""
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
      server_optimizer=build_server_optimizer(
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
