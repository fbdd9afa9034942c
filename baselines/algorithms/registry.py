"""Algorithms by name. Holds import paths, so it needs no TensorFlow."""

import dataclasses
import importlib
from typing import Any, Callable

from baselines.algorithms import config as config_lib


@dataclasses.dataclass(frozen=True)
class AlgorithmEntry:
  """One algorithm.

  Attributes:
    config_type: The frozen dataclass of its settings. It has `num_steps`, the
      number of mini-batches that a client draws per round.
    builder: `module:function` of the builder, whose signature is that of
      `baselines.algorithms.local_update.build`.
  """

  config_type: type
  builder: str


ALGORITHMS: dict[str, AlgorithmEntry] = {
    'local_update': AlgorithmEntry(
        config_lib.LocalUpdateConfig, 'baselines.algorithms.local_update:build'
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


def load_builder(config: Any) -> Callable[..., Any]:
  """Imports and returns the builder for `config`; this loads TensorFlow."""
  module, _, function = ALGORITHMS[algorithm_name(config)].builder.partition(
      ':'
  )
  return getattr(importlib.import_module(module), function)
