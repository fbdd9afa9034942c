"""The rivals of CEAL for the driver."""

from typing import Any

import numpy as np

from baselines.algorithms import driver
from baselines.algorithms import fed_avg
from baselines.algorithms import fed_com
from baselines.algorithms import fed_paq
from baselines.algorithms import minibatch_sgd
from baselines.algorithms import rival_round
from baselines.settings import algorithms


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
    algorithm: algorithms.MinibatchSgdConfig, context: driver.BuildContext
) -> RivalDriver:
  """Builds Minibatch-SGD."""
  return _build(minibatch_sgd.build_minibatch_sgd, algorithm, context)


def build_fed_avg(
    algorithm: algorithms.FedAvgConfig, context: driver.BuildContext
) -> RivalDriver:
  """Builds FedAvg."""
  return _build(fed_avg.build_fed_avg, algorithm, context)


def build_fed_paq(
    algorithm: algorithms.FedPaqConfig, context: driver.BuildContext
) -> RivalDriver:
  """Builds FedPAQ."""
  return _build(
      fed_paq.build_fed_paq, algorithm, context, **_quantization(algorithm)
  )


def build_fed_com(
    algorithm: algorithms.FedComConfig, context: driver.BuildContext
) -> RivalDriver:
  """Builds FedCOM."""
  return _build(
      fed_com.build_fed_com,
      algorithm,
      context,
      server_factor=algorithm.server_factor,
      **_quantization(algorithm),
  )


def _quantization(config: algorithms.FedPaqConfig) -> dict[str, Any]:
  levels = config.quantization_levels
  return dict(
      quantization_levels=levels,
      code=driver.build_code(config.code, levels),
  )


def _build(build, config, context, **own):
  process = build(
      context.model,
      local_steps=config.local_steps,
      batch_size=context.run.batch_size,
      step_size=config.step_size,
      horizon=config.horizon,
      dtype=context.run.dtype,
      **own,
  )
  return RivalDriver(process)
