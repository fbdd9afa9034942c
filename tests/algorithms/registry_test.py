"""The registry names builders that exist, for configs that it knows."""

import importlib

import pytest

from baselines.settings import algorithms
from baselines.settings import rates


@pytest.mark.parametrize('entry', algorithms.ALGORITHMS.values())
def test_builder_exists(entry):
  module, _, function = entry.builder.partition(':')
  assert callable(getattr(importlib.import_module(module), function))


def test_load_builder_goes_by_the_type_of_the_config():
  from baselines.algorithms import local_update

  settings = algorithms.LocalUpdateConfig()
  assert algorithms.algorithm_name(settings) == 'local_update'
  builder = algorithms.load_builder(settings)
  assert builder is local_update.build_local_update


def test_unknown_config_is_refused():
  with pytest.raises(ValueError, match='algorithm must be a config of one of'):
    algorithms.algorithm_name(rates.ServerOptimizerConfig())


def test_paper_2_has_horizons_and_paper_1_server_optimizers():
  horizons = {n for n, e in algorithms.ALGORITHMS.items() if e.has_horizon}
  assert horizons == {
      'ceal', 'minibatch_sgd', 'fed_avg', 'fed_paq', 'fed_com'
  }
  for name, entry in algorithms.ALGORITHMS.items():
    assert entry.has_server_optimizer == (name not in horizons)


@pytest.mark.parametrize('name', algorithms.ALGORITHMS)
def test_every_algorithm_is_found_by_its_settings(name):
  entry = algorithms.ALGORITHMS[name]
  settings = entry.config_type()
  assert algorithms.algorithm_name(settings) == name
  assert algorithms.algorithm_entry(settings) is entry
  builder = algorithms.load_builder(settings)
  module, _, function = entry.builder.partition(':')
  assert (builder.__module__, builder.__name__) == (module, function)


def test_subtype_is_no_other_algorithm():
  # FedCOM's settings are FedPAQ's and one more.
  assert issubclass(algorithms.FedComConfig, algorithms.FedPaqConfig)
  assert algorithms.algorithm_name(algorithms.FedComConfig()) == 'fed_com'
