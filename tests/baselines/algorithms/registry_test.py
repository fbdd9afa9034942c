"""The registry names builders that exist, for configs that it knows."""

import importlib

import pytest

from baselines.algorithms import config
from baselines.algorithms import registry


@pytest.mark.parametrize('entry', registry.ALGORITHMS.values())
def test_builder_exists(entry):
  module, _, function = entry.builder.partition(':')
  assert callable(getattr(importlib.import_module(module), function))


def test_load_builder_goes_by_the_type_of_the_config():
  from baselines.algorithms import local_update

  assert registry.algorithm_name(config.LocalUpdateConfig()) == 'local_update'
  builder = registry.load_builder(config.LocalUpdateConfig())
  assert builder is local_update.build


def test_unknown_config_is_refused():
  with pytest.raises(ValueError, match='algorithm must be a config of one of'):
    registry.algorithm_name(config.ServerOptimizerConfig())
