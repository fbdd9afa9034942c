"""The constants of CEAL's theory, from f and its data."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from baselines.experiment import config as config_lib

# The settings that stand for them.
_KNOWN = ('step_size', 'noise_scale')


class Constants(NamedTuple):
  """Constants of a problem.

  Attributes:
    smoothness: beta, an upper bound on the curvature of f.
    noise_scale: sigma: the root of the expected squared norm of the noise of
      one query at the initial point.
  """

  smoothness: float
  noise_scale: float


def check_given(config: config_lib.ExperimentConfig) -> None:
  """Checks that those are given which nobody can compute.

  Raises:
    ValueError: If one is None, and f of the task is not known as a formula.
  """
  if config.algorithm.counts_regret:
    return
  for name in _KNOWN:
    if getattr(config.algorithm, name, 0.0) is None:
      raise ValueError(
          f'{name} must be given for task {config.task.task}: it has no '
          'formula from which it could be computed, found None.'
      )


def are_missing(config: config_lib.ExperimentConfig) -> bool:
  """Returns whether there are any that `fill` would put into `config`."""
  algorithm = config.algorithm
  missing = [name for name in _KNOWN if getattr(algorithm, name, 0.0) is None]
  return bool(missing) and algorithm.counts_regret


def measure(
    objective: Any, initial_point: np.ndarray, batch_size: int
) -> Constants:
  """Measures the constants.

  A query is a mean over B examples drawn from all data, so its noise has 1/B
  of the variance of a single example's gradient.

  Args:
    objective: f, with `smoothness` and `gradient_variance`.
    initial_point: x_1, [d].
    batch_size: B.
  """
  variance = objective.gradient_variance(initial_point) / batch_size
  return Constants(float(objective.smoothness), float(np.sqrt(variance)))


def fill(
    config: config_lib.ExperimentConfig, constants: Constants
) -> config_lib.ExperimentConfig:
  """Returns `config` with eta = 1 / (5 beta) and sigma where they are None."""
  defaults = {
      'step_size': 1.0 / (5.0 * constants.smoothness),
      'noise_scale': constants.noise_scale,
  }
  missing = {
      name: value
      for name, value in defaults.items()
      if getattr(config.algorithm, name) is None
  }
  return dataclasses.replace(
      config, algorithm=dataclasses.replace(config.algorithm, **missing)
  )
