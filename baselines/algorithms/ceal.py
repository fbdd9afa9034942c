"""CEAL (arXiv 2301.08869, Algorithm 2) for the driver."""

from collections.abc import Callable
from typing import Any, Mapping, Optional

import numpy as np
import tensorflow as tf

from baselines.algorithms import driver
from baselines.settings import algorithms
from baselines.tasks import task as task_lib
from tff_localupdate import models
from tff_localupdate.ceal import exchange
from tff_localupdate.ceal import process as process_lib
from tff_localupdate.ceal import schedule as schedule_lib
from tff_localupdate.ceal import server_step

# A pass or two by rounding may be chance.
_STUCK_AFTER = 3


# A horizon that no run reaches, for those that end by a number of rounds.
_NO_HORIZON = 2**31 - 1


class CealDriver(driver.Driver):
  """Drives a `process.CealProcess`."""

  # XLA compiles anew for each number of samples, and there are few exchanges.
  gains_by_xla = False
  plans_by_state = True

  def __init__(self, process: process_lib.CealProcess, batch_size: int):
    super().__init__(process)
    self._batch_size = batch_size

  def initial_state(
      self,
      program: Any,
      weights: Any,
      rates: Mapping[str, float],
      seed: int,
  ) -> Any:
    del program  # States for other seeds need no computation of TFF.
    state = self.process.initialize_with_seed(seed)
    # Rates first: what is planned next may depend on the weights.
    state = self.process.set_hparams(state, dict(rates))
    return self.process.set_model_weights(state, weights)

  def samples_needed(self, state: Any) -> int:
    return self.process.samples_needed(state)

  def rows_needed(self, state: Any) -> int:
    return self.process.rows_needed(state)

  def queries(
      self, state: Any, batch_sizes: Optional[np.ndarray] = None
  ) -> int:
    """Also those at the end of the horizon, which need no sample."""
    return int(state.next_queries)

  def messages(self, metrics: server_step.CealMetrics) -> driver.Messages:
    return driver.Messages(
        bool(metrics.sent),
        int(metrics.total_uplink_bits),
        int(metrics.downlink_bits),
        int(metrics.clients_not_sent),
    )

  def cohort(self, drawn: driver.CohortData) -> exchange.ClientQueries:
    if not np.all(drawn.num_examples):
      raise ValueError('CEAL needs clients that all have examples.')
    return exchange.ClientQueries(
        batches=drawn.batches,
        seed=np.arange(len(drawn.num_examples), dtype=np.int64),
    )

  def row(
      self, metrics: server_step.CealMetrics, state: server_step.CealState
  ) -> dict[str, Any]:
    sent = bool(metrics.sent)
    num_batches = int(metrics.num_queries) if sent else 0
    return {
        'client_learning_rate': 0.0,
        'server_learning_rate': np.asarray(state.step_size)[()],
        'loss_before_training': metrics.loss_before_training if sent else None,
        'update_norm': metrics.estimated_gradient_norm if sent else None,
        'clients_used': int(metrics.clients) if sent else 0,
        'clients_empty': 0,
        'clients_non_finite': metrics.clients_not_sent,
        'examples_used': num_batches * int(metrics.clients) * self._batch_size,
        'epoch': metrics.epoch,
        'stage': metrics.stage,
        'stepped': int(metrics.stepped),
        'estimated_gradient_norm': (
            metrics.estimated_gradient_norm if sent else None
        ),
        'true_gradient_norm': (
            None
            if np.isnan(metrics.true_gradient_norm)
            else metrics.true_gradient_norm
        ),
        'threshold': metrics.threshold if sent else None,
        'rounding_norm': metrics.rounding_norm if sent else None,
        'passes_by_rounding': metrics.passes_by_rounding,
    }
  def remark(self, metrics: server_step.CealMetrics) -> Optional[str]:
    if metrics.passes_by_rounding != _STUCK_AFTER:
      return None
    return (
        f'CEAL is stuck in stage {metrics.stage}: {_STUCK_AFTER} tests in a '
        f'row passed by rounding (estimated norm '
        f'{metrics.estimated_gradient_norm:.3g}, of which rounding adds '
        f'{metrics.rounding_norm:.3g}; threshold {metrics.threshold:.3g}). A '
        'smaller uplink_resolution helps.'
    )


def build(
    algorithm: algorithms.CealConfig, context: driver.BuildContext
) -> CealDriver:
  """Builds CEAL; step_size and noise_scale must have values."""
  model, run = context.model, context.run
  is_oracle = algorithm.epoch_length == 'oracle'
  process = process_lib.build_ceal(
      model,
      schedule_lib.Schedule(
          num_clients=run.clients_per_round,
          noise_scale=algorithm.noise_scale,
          failure_probability=algorithm.failure_probability,
          uplink_resolution=algorithm.uplink_resolution,
          downlink_resolution=algorithm.downlink_resolution,
          sample_constant=algorithm.sample_constant,
          first_stage=algorithm.first_stage,
          threshold_factor=algorithm.threshold_factor,
      ),
      horizon=run.horizon or _NO_HORIZON,
      batch_size=run.batch_size,
      step_size=algorithm.step_size,
      code=driver.build_code(algorithm.code),
      grid=algorithm.grid,
      epoch_length=algorithm.epoch_length,
      true_norm_fn=_true_norm_fn(context.task, model) if is_oracle else None,
      clip=algorithm.clip,
      reset_stage=algorithm.reset_stage,
      broadcast_every_exchange=algorithm.broadcast_every_exchange,
      dtype=run.dtype,
  )
  return CealDriver(process, run.batch_size)


def _true_norm_fn(
    task: task_lib.Task, model: Any
) -> Callable[[Any], tf.Tensor]:
  """Returns the full gradient's norm, with the (few) data as constants."""
  non_trainable = model.initial_weights[1]

  def true_norm(weights):
    losses = models.build_model_losses(model, non_trainable)
    with tf.GradientTape() as tape:
      tape.watch(weights)
      loss = losses.training(weights, task.train.features)
    # Dense: slices may hold a row several times.
    gradient = tf.nest.map_structure(
        tf.convert_to_tensor, tape.gradient(loss, weights)
    )
    return tf.linalg.global_norm(tf.nest.flatten(gradient))

  return true_norm
