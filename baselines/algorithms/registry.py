"""Algorithms by name. Holds import paths, so it needs no TensorFlow."""

import dataclasses
import importlib
from typing import Any, Callable

from baselines.algorithms import horizon_configs
from baselines.algorithms import local_configs


@dataclasses.dataclass(frozen=True)
class AlgorithmEntry:
  """One algorithm.

  Attributes:
    config_type: The type of its settings, an `AlgorithmConfig`.
    builder: `module:function` of the builder, called with the settings and a
      `driver.BuildContext`; returns a `driver.Driver`.
    has_server_optimizer: Whether there is a server optimizer to be chosen, and
      both rates may change from round to round.
  """

  config_type: type
  builder: str
  has_server_optimizer: bool = False

  @property
  def has_horizon(self) -> bool:
    """Whether a run ends by itself, at a horizon of queries."""
    return issubclass(self.config_type, horizon_configs.HorizonConfig)


_RIVALS = 'baselines.algorithms.rival_drivers'

ALGORITHMS: dict[str, AlgorithmEntry] = {
    'local_update': AlgorithmEntry(
        local_configs.LocalUpdateConfig,
        'baselines.algorithms.local_builders:build_local_update',
        has_server_optimizer=True,
    ),
    'local_update_epochs': AlgorithmEntry(
        local_configs.EpochsConfig,
        'baselines.algorithms.local_builders:build_epochs',
        has_server_optimizer=True,
    ),
    'k_maml': AlgorithmEntry(
        local_configs.MamlConfig,
        'baselines.algorithms.local_builders:build_maml',
        has_server_optimizer=True,
    ),
    'ceal': AlgorithmEntry(
        horizon_configs.CealConfig, 'baselines.algorithms.ceal:build'
    ),
    'minibatch_sgd': AlgorithmEntry(
        horizon_configs.MinibatchSgdConfig, f'{_RIVALS}:build_minibatch_sgd'
    ),
    'fed_avg': AlgorithmEntry(
        horizon_configs.FedAvgConfig, f'{_RIVALS}:build_fed_avg'
    ),
    'fed_paq': AlgorithmEntry(
        horizon_configs.FedPaqConfig, f'{_RIVALS}:build_fed_paq'
    ),
    'fed_com': AlgorithmEntry(
        horizon_configs.FedComConfig, f'{_RIVALS}:build_fed_com'
    ),
}


def algorithm_name(config: Any) -> str:
  """Returns the name of the algorithm whose settings `config` holds."""
  for name, entry in ALGORITHMS.items():
    if type(config) is entry.config_type:
      return name
  raise ValueError(
      f'algorithm must be a config of one of {", ".join(ALGORITHMS)}; found '
      f'{type(config).__name__}.'
  )


def algorithm_entry(config: Any) -> AlgorithmEntry:
  """Returns the entry of the algorithm whose settings `config` holds."""
  return ALGORITHMS[algorithm_name(config)]


def load_builder(config: Any) -> Callable[..., Any]:
  """Imports and returns the builder for `config`; this loads TensorFlow."""
  module, _, function = algorithm_entry(config).builder.partition(':')
  return getattr(importlib.import_module(module), function)
