"""What settings tell of an algorithm, and what its program depends on."""

import dataclasses

import pytest

from baselines.settings import algorithms

_TYPES = [entry.config_type for entry in algorithms.ALGORITHMS.values()]


@pytest.mark.parametrize('kind', _TYPES)
def test_all_settings_are_of_this_kind(kind):
  assert issubclass(kind, algorithms.AlgorithmConfig)
  columns = kind().extra_columns
  assert len(set(columns)) == len(columns)


@pytest.mark.parametrize('kind', _TYPES)
def test_rates_need_no_other_program(kind):
  changed = kind(**{name: 0.25 for name in kind.RATES})
  assert changed != kind()
  assert changed.compiled_settings() == kind().compiled_settings()


@pytest.mark.parametrize('kind, changes', [
    (algorithms.LocalUpdateConfig, {'theta': '1:3'}),
    (algorithms.EpochsConfig, {'num_epochs': 2}),
    (algorithms.MamlConfig, {'num_steps': 2}),
    (algorithms.FedPaqConfig, {'quantization_levels': 7}),
    (algorithms.CealConfig, {'noise_scale': 0.5}),
])
def test_other_settings_do(kind, changes):
  changed = dataclasses.replace(kind(), **changes)
  assert changed.compiled_settings() != kind().compiled_settings()


def test_data_are_part_of_some_programs():
  with_data = {kind for kind in _TYPES if kind().has_data_in_program}
  assert with_data == {algorithms.EpochsConfig}
  assert algorithms.CealConfig(epoch_length='oracle').has_data_in_program


def test_queries_of_a_round_that_settings_tell():
  queries = {
      algorithms.algorithm_name(kind()): kind().queries_per_round
      for kind in _TYPES
  }
  # K-MAML: the gradients at K points, and that at their end.
  assert queries == {
      'local_update': 10, 'local_update_epochs': None, 'k_maml': 6,
      'ceal': None, 'minibatch_sgd': 100, 'fed_avg': 100, 'fed_paq': 100,
      'fed_com': 100,
  }


@pytest.mark.parametrize('kind', _TYPES)
def test_rates_of_the_process_are_known_by_its_names(kind):
  names = set(kind().process_rates)
  assert names <= {'client_learning_rate', 'server_learning_rate', 'step_size'}
