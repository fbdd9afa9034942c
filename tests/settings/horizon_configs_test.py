"""Settings of CEAL and its rivals: the theory's defaults, nonsense refused."""

import dataclasses

import pytest

from baselines.settings import algorithms
from baselines.settings import experiment

_RIVALS = (
  algorithms.MinibatchSgdConfig,
  algorithms.FedAvgConfig,
  algorithms.FedPaqConfig,
  algorithms.FedComConfig,
)


def test_defaults_of_ceal_are_the_packages():
  # The row "package default" of section 8.
  ceal = algorithms.CealConfig()
  found = (
      ceal.step_size, ceal.noise_scale, ceal.sample_constant,
      ceal.failure_probability, ceal.uplink_resolution,
      ceal.downlink_resolution, ceal.first_stage, ceal.grid,
  )
  assert found == (None, None, 40.0, 0.1, 0.9, 0.9, 1, 'vector')
  assert ceal.threshold_factor == 4.0 and ceal.code == 'signed_unary'
  assert ceal.clip and not ceal.reset_stage
  assert not ceal.broadcast_every_exchange and ceal.epoch_length == 'estimated'


def test_defaults_of_the_rivals_are_the_papers():
  assert {kind().local_steps for kind in _RIVALS} == {100}
  assert algorithms.FedPaqConfig().quantization_levels == 3
  assert algorithms.FedPaqConfig().code == 'fixed_width'
  assert algorithms.FedComConfig().server_factor == 10.0
  assert {kind.DEFAULT_HORIZON for kind in _RIVALS} == {2000}


@pytest.mark.parametrize(
  'kind, wrong, message',
  [
    (
      algorithms.CealConfig,
      {'step_size': 0.0},
      'step_size must be greater than',
    ),
    (
      algorithms.CealConfig,
      {'noise_scale': 0.0},
      'noise_scale must be greater',
    ),
    (
      algorithms.CealConfig,
      {'noise_scale': -1.0},
      'noise_scale must be greater',
    ),
    (
      algorithms.CealConfig,
      {'uplink_resolution': 0.0},
      'uplink_resolution must',
    ),
    (
      algorithms.CealConfig,
      {'uplink_resolution': 1.0},
      'uplink_resolution must',
    ),
    (
      algorithms.CealConfig,
      {'downlink_resolution': 0.0},
      'downlink_resolution',
    ),
    (
      algorithms.CealConfig,
      {'downlink_resolution': 1.0},
      'downlink_resolution',
    ),
    (
      algorithms.CealConfig,
      {'failure_probability': 0.0},
      'failure_probability',
    ),
    (
      algorithms.CealConfig,
      {'failure_probability': 1.0},
      'failure_probability',
    ),
    (
      algorithms.CealConfig,
      {'sample_constant': 0.0},
      'sample_constant must be',
    ),
    (
      algorithms.CealConfig,
      {'first_stage': 0},
      'first_stage must be at least 1',
    ),
    (
      algorithms.CealConfig,
      {'grid': 'hex'},
      'grid must be one of vector, coord',
    ),
    (
      algorithms.CealConfig,
      {'code': 'fixed_width'},
      'code must be one of signed',
    ),
    (
      algorithms.CealConfig,
      {'epoch_length': 'long'},
      'epoch_length must be one',
    ),
    (algorithms.CealConfig, {'clip': 1}, 'clip must be true or false'),
    (
      algorithms.FedAvgConfig,
      {'local_steps': 0},
      'local_steps must be at least',
    ),
    (
      algorithms.FedAvgConfig,
      {'step_size': None},
      'step_size must be a number',
    ),
    (
      algorithms.CealConfig,
      {'epoch_length': 'oracle', 'first_stage': 2},
      "first_stage would be ignored: epoch_length is 'oracle', found 2",
    ),
    (
      algorithms.CealConfig,
      {'epoch_length': 'oracle', 'sample_constant': 1.0},
      'sample_constant would be ignored',
    ),
    (
      algorithms.CealConfig,
      {'epoch_length': 'oracle', 'threshold_factor': 5.0},
      'threshold_factor would be ignored',
    ),
    (
      algorithms.FedPaqConfig,
      {'quantization_levels': 0},
      'quantization_levels',
    ),
    (algorithms.FedComConfig, {'server_factor': 0.0}, 'server_factor must be'),
  ],
)
def test_refused(kind, wrong, message):
  with pytest.raises(ValueError, match=message):
    kind(**wrong)


@pytest.mark.parametrize('kind', [*_RIVALS, algorithms.CealConfig])
def test_rates_are_settings_of_the_type(kind):
  names = {field.name for field in dataclasses.fields(kind)}
  assert set(kind.RATES) <= names


def test_clients_move_between_queries_in_the_local_methods_alone():
  moving = {
      kind for kind in (*_RIVALS, algorithms.CealConfig) if kind.QUERIES_MOVE
  }
  assert moving == {
      algorithms.FedAvgConfig, algorithms.FedPaqConfig, algorithms.FedComConfig
  }


def test_ceal_has_columns_of_its_own():
  own = set(algorithms.CealConfig().extra_columns)
  assert not algorithms.FedAvgConfig().extra_columns
  assert {'epoch', 'stage', 'stepped', 'threshold', 'rounding_norm'} <= own


def _scaled(algorithm, **run):
  return experiment.ExperimentConfig(
      experiment.TaskConfig('scaled_regression'), algorithm,
      run=experiment.RunConfig(**run),
  )


def test_clients_that_stay_are_counted_exactly_whatever_regret_every_is():
  _scaled(algorithms.FedAvgConfig(40), regret_every=40)
  _scaled(algorithms.MinibatchSgdConfig(40), regret_every=41)
  _scaled(algorithms.CealConfig(), regret_every=10**6)
  for moving in (algorithms.FedComConfig(40), algorithms.LocalUpdateConfig(
      theta='1:40'
  )):
    with pytest.raises(
        ValueError, match='regret_every must be at most 40, .* found 41'
    ):
      _scaled(moving, regret_every=41)
