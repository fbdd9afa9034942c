"""LocalUpdate (Charles and Konecny 2020, Algorithms 1 and 2) for the driver."""

from typing import Any, Mapping, Optional

import tensorflow as tf
import tensorflow_federated as tff

from baselines.algorithms import config as config_lib
from baselines.algorithms import driver
from baselines.algorithms import message_codes
from baselines.algorithms import server_optimizers
from baselines.tasks import task as task_lib
from tff_localupdate import theta as theta_lib
from tff_localupdate.compression import aggregators
from tff_localupdate.compression import quantizers
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process as process_lib


class LocalUpdateDriver(driver.Driver):
  """Drives a `process.LocalUpdateProcess`."""

  def __init__(
      self,
      process: process_lib.LocalUpdateProcess,
      config: config_lib.LocalUpdateConfig,
  ):
    super().__init__(process)
    self._num_steps = config.num_steps
    self._columns = config.EXTRA_COLUMNS

  def initial_state(
      self,
      program: Any,
      weights: tff.learning.models.ModelWeights,
      rates: Mapping[str, float],
      seed: int,
  ) -> Any:
    state = self.process.set_model_weights(program.initialize(), weights)
    state = self.process.set_hparams(state, dict(rates))
    if hasattr(state.aggregator, 'seed'):
      aggregator = state.aggregator._replace(seed=tf.constant(seed, tf.int64))
      state = state._replace(aggregator=aggregator)
    return state

  def samples_needed(self, state: Any) -> int:
    del state
    return self._num_steps

  def cohort(self, drawn: driver.CohortData) -> Any:
    if drawn.examples is None:
      return client_work.ClientBatches(drawn.batches, drawn.num_examples)
    return client_work.ClientBatchesAndExamples(*drawn)

  def row(self, metrics: Any, state: Any) -> dict[str, Any]:
    values = super().row(metrics, state)
    for column in self._columns:
      values[column] = getattr(metrics.aggregator, column)
    return values


def build(
    algorithm: config_lib.LocalUpdateConfig,
    *,
    model: tff.learning.models.FunctionalModel,
    run: Any,
    task: task_lib.Task,
    server_optimizer: config_lib.ServerOptimizerConfig,
) -> LocalUpdateDriver:
  """Builds the process.

  Args:
    algorithm: Settings of LocalUpdate.
    model: The task's model in the dtype of the run.
    run: Has the attributes `batch_size`, `clients_per_round` and `dtype`.
    task: The task; gives the loss of single examples.
    server_optimizer: Settings of the server optimizer; None for algorithms
      that have none.

  Returns:
    The driver of the process over tensor client data; rates and weights can be
    changed in its state.
  """
  full = algorithm.loss_before_training == 'full'
  process = process_lib.build_local_update(
      model,
      theta=theta_lib.parse_theta(algorithm.theta),
      batch_size=run.batch_size,
      client_learning_rate=algorithm.client_learning_rate,
      server_optimizer=server_optimizers.build(server_optimizer, run.dtype),
      aggregator=_build_aggregator(algorithm),
      loss_before_training=algorithm.loss_before_training,
      example_loss_fn=task.example_loss_fn if full else None,
  )
  return LocalUpdateDriver(process, algorithm)


def _build_aggregator(
    config: config_lib.LocalUpdateConfig,
) -> Optional[tff.aggregators.UnweightedAggregationFactory]:
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
  code = message_codes.build_code(
      config.quantizer_code, int(resolution), signed=name != 'uniform'
  )
  return aggregators.QuantizedMeanFactory(
      quantizer, code, resolution=resolution
  )
