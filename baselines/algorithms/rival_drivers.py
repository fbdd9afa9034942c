"""The rivals of CEAL for the driver."""

from typing import Any

import numpy as np

from baselines.algorithms import driver
from baselines.algorithms import fed_avg
from baselines.algorithms import fed_com
from baselines.algorithms import fed_paq
from baselines.algorithms import horizon_configs
from baselines.algorithms import message_codes
from baselines.algorithms import minibatch_sgd
from baselines.algorithms import rival_round


class RivalDriver(driver.HorizonDriver):
  """Drives a `rivals.RivalProcess`."""

  def cohort(self, drawn: driver.CohortData) -> rival_round.ClientSteps:
    return rival_round.ClientSteps(
        batches=drawn.batches,
        num_examples=drawn.num_examples,
        seed=np.arange(len(drawn.num_examples), dtype=np.int64),
    )

  def row(
      self, metrics: rival_round.RivalMetrics, state: rival_round.RivalState
  ) -> dict[str, Any]:
    return {
        **super().row(metrics, state),
        **driver.message_values(metrics, state),
    }


def build_minibatch_sgd(
    algorithm: horizon_configs.MinibatchSgdConfig, **context: Any
) -> RivalDriver:
  """Builds Minibatch-SGD; see `local_update.build` for the arguments."""
  return _build(minibatch_sgd.build_minibatch_sgd, algorithm, **context)


def build_fed_avg(
    algorithm: horizon_configs.FedAvgConfig, **context: Any
) -> RivalDriver:
  """Builds FedAvg; see `local_update.build` for the arguments."""
  return _build(fed_avg.build_fed_avg, algorithm, **context)


def build_fed_paq(
    algorithm: horizon_configs.FedPaqConfig, **context: Any
) -> RivalDriver:
  """Builds FedPAQ; see `local_update.build` for the arguments."""
  return _build(
      fed_paq.build_fed_paq, algorithm, **_quantization(algorithm), **context
  )


def build_fed_com(
    algorithm: horizon_configs.FedComConfig, **context: Any
) -> RivalDriver:
  """Builds FedCOM; see `local_update.build` for the arguments."""
  return _build(
      fed_com.build_fed_com,
      algorithm,
      server_factor=algorithm.server_factor,
      **_quantization(algorithm),
      **context,
  )


def _quantization(config: horizon_configs.FedPaqConfig) -> dict[str, Any]:
  levels = config.quantization_levels
  return dict(
      quantization_levels=levels,
      code=message_codes.build_code(config.code, levels),
  )


def _build(build, config, *, model, run, task, server_optimizer, rate, **own):
  del task, server_optimizer, rate
  process = build(
      model,
      local_steps=config.local_steps,
      batch_size=run.batch_size,
      step_size=config.step_size,
      horizon=config.horizon,
      dtype=run.dtype,
      **own,
  )
  return RivalDriver(process)
