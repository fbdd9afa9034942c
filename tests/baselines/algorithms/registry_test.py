"""The registry names builders that exist, for configs that it knows."""

import importlib

import pytest

from baselines.algorithms import horizon_configs
from baselines.algorithms import local_configs
from baselines.algorithms import registry
from baselines.algorithms import server_optimizer_config as config


@pytest.mark.parametrize('entry', registry.ALGORITHMS.values())
def test_builder_exists(entry):
  module, _, function = entry.builder.partition(':')
  assert callable(getattr(importlib.import_module(module), function))


def test_load_builder_goes_by_the_type_of_the_config():
  from baselines.algorithms import local_builders

  settings = local_configs.LocalUpdateConfig()
  assert registry.algorithm_name(settings) == 'local_update'
  builder = registry.load_builder(settings)
  assert builder is local_builders.build_local_update


def test_unknown_config_is_refused():
  with pytest.raises(ValueError, match='algorithm must be a config of one of'):
    registry.algorithm_name(config.ServerOptimizerConfig())


def test_paper_2_has_horizons_and_paper_1_server_optimizers():
  horizons = {n for n, e in registry.ALGORITHMS.items() if e.has_horizon}
  assert horizons == {
      'ceal', 'minibatch_sgd', 'fed_avg', 'fed_paq', 'fed_com'
  }
  for name, entry in registry.ALGORITHMS.items():
    assert entry.has_server_optimizer == (name not in horizons)


@pytest.mark.parametrize('name', registry.ALGORITHMS)
def test_every_algorithm_is_found_by_its_settings(name):
  entry = registry.ALGORITHMS[name]
  settings = entry.config_type()
  assert registry.algorithm_name(settings) == name
  assert registry.algorithm_entry(settings) is entry
  builder = registry.load_builder(settings)
  module, _, function = entry.builder.partition(':')
  assert (builder.__module__, builder.__name__) == (module, function)


def test_subtype_is_no_other_algorithm():
  # FedCOM's settings are FedPAQ's and one more.
  assert issubclass(horizon_configs.FedComConfig, horizon_configs.FedPaqConfig)
  assert registry.algorithm_name(horizon_configs.FedComConfig()) == 'fed_com'
