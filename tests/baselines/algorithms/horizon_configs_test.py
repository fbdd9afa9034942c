"""Settings of CEAL and its rivals: the theory's defaults, nonsense refused."""

import dataclasses

import pytest

from baselines.algorithms import horizon_configs as configs

_RIVALS = (
    configs.MinibatchSgdConfig, configs.FedAvgConfig, configs.FedPaqConfig,
    configs.FedComConfig,
)


def test_defaults_of_ceal_are_the_packages():
  # The row "package default" of section 8.
  ceal = configs.CealConfig()
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
  assert configs.FedPaqConfig().quantization_levels == 3
  assert configs.FedPaqConfig().code == 'fixed_width'
  assert configs.FedComConfig().server_factor == 10.0
  assert {kind().horizon for kind in _RIVALS} == {2000}


@pytest.mark.parametrize('kind, wrong, message', [
    (configs.CealConfig, {'horizon': 0}, 'horizon must be at least 1'),
    (configs.CealConfig, {'step_size': 0.0}, 'step_size must be greater than'),
    (configs.CealConfig, {'noise_scale': 0.0}, 'noise_scale must be greater'),
    (configs.CealConfig, {'noise_scale': -1.0}, 'noise_scale must be greater'),
    (configs.CealConfig, {'uplink_resolution': 0.0}, 'uplink_resolution must'),
    (configs.CealConfig, {'uplink_resolution': 1.0}, 'uplink_resolution must'),
    (configs.CealConfig, {'downlink_resolution': 0.0}, 'downlink_resolution'),
    (configs.CealConfig, {'downlink_resolution': 1.0}, 'downlink_resolution'),
    (configs.CealConfig, {'failure_probability': 0.0}, 'failure_probability'),
    (configs.CealConfig, {'failure_probability': 1.0}, 'failure_probability'),
    (configs.CealConfig, {'sample_constant': 0.0}, 'sample_constant must be'),
    (configs.CealConfig, {'first_stage': 0}, 'first_stage must be at least 1'),
    (configs.CealConfig, {'grid': 'hex'}, 'grid must be one of vector, coord'),
    (configs.CealConfig, {'code': 'fixed_width'}, 'code must be one of signed'),
    (configs.CealConfig, {'epoch_length': 'long'}, 'epoch_length must be one'),
    (configs.CealConfig, {'clip': 1}, 'clip must be true or false'),
    (configs.FedAvgConfig, {'local_steps': 0}, 'local_steps must be at least'),
    (configs.FedAvgConfig, {'step_size': None}, 'step_size must be a number'),
    (configs.FedAvgConfig, {'regret_every': 0}, 'regret_every must be at'),
    (configs.FedComConfig, {'regret_every': 41, 'local_steps': 40},
     'regret_every must be at most local_steps, 40, found 41'),
    (configs.CealConfig, {'epoch_length': 'oracle', 'first_stage': 2},
     "first_stage would be ignored: epoch_length is 'oracle', found 2"),
    (configs.CealConfig, {'epoch_length': 'oracle', 'sample_constant': 1.0},
     'sample_constant would be ignored'),
    (configs.CealConfig, {'epoch_length': 'oracle', 'threshold_factor': 5.0},
     'threshold_factor would be ignored'),
    (configs.FedPaqConfig, {'quantization_levels': 0}, 'quantization_levels'),
    (configs.FedComConfig, {'server_factor': 0.0}, 'server_factor must be'),
])
def test_refused(kind, wrong, message):
  with pytest.raises(ValueError, match=message):
    kind(**wrong)


@pytest.mark.parametrize('kind', [*_RIVALS, configs.CealConfig])
def test_rates_are_settings_of_the_type(kind):
  names = {field.name for field in dataclasses.fields(kind)}
  assert set(kind.RATES) | set(kind.OBSERVED) <= names


def test_clients_move_between_queries_in_the_local_methods_alone():
  moving = {
      kind for kind in (*_RIVALS, configs.CealConfig) if kind.QUERIES_MOVE
  }
  assert moving == {
      configs.FedAvgConfig, configs.FedPaqConfig, configs.FedComConfig
  }


def test_ceal_has_columns_of_its_own():
  own = set(configs.CealConfig().extra_columns)
  assert own > set(configs.FedAvgConfig().extra_columns)
  assert {'epoch', 'stage', 'stepped', 'threshold', 'rounding_norm'} <= own


def test_clients_that_stay_are_counted_exactly_whatever_regret_every_is():
  configs.FedAvgConfig(regret_every=40, local_steps=40)
  configs.MinibatchSgdConfig(regret_every=41, local_steps=40)
  configs.CealConfig(regret_every=10**6)
