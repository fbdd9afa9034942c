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
def test_rates_and_what_is_observed_need_no_other_program(kind):
  changes = {name: 0.25 for name in kind.RATES}
  changes.update({name: 7 for name in kind.OBSERVED})
  changed = kind(**changes)
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


def test_rounds_that_settings_tell():
  rounds = {kind: kind().num_rounds for kind in _TYPES}
  assert rounds[algorithms.CealConfig] is None
  assert rounds[algorithms.LocalUpdateConfig] is None
  assert rounds[algorithms.FedAvgConfig] == 20
  assert algorithms.FedAvgConfig(201, local_steps=100).num_rounds == 3
