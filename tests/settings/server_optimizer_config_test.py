"""Settings of the server optimizers."""

import pytest

from baselines.settings import rates
from tff_localupdate import optimizer_settings


@pytest.mark.parametrize('rate', [-0.1, float('nan')])
def test_rates_refused(rate):
  with pytest.raises(ValueError, match='server_learning_rate'):
    rates.ServerOptimizerConfig(server_learning_rate=rate)


@pytest.mark.parametrize('name', optimizer_settings.SERVER)
def test_own_settings_take_defaults_and_others_stay_none(name):
  optimizer = rates.ServerOptimizerConfig(server_optimizer=name)
  for other, settings in optimizer_settings.SERVER.items():
    for setting, own in settings.items():
      full = f'{"server" if other == "sgd" else other}_{setting}'
      expected = own.default if other == name else None
      assert getattr(optimizer, full) == expected


def test_yogi_defaults_are_the_papers():
  yogi = rates.ServerOptimizerConfig(server_optimizer='yogi')
  assert yogi.hyperparameters == {
      'beta_1': 0.9,
      'beta_2': 0.99,
      'epsilon': 1e-5,
      'initial_accumulator': 0.0,
      'bias_correction': True,
  }


@pytest.mark.parametrize('name, foreign', [
    ('sgd', {'yogi_epsilon': 1e-3}),
    ('sgd', {'yogi_bias_correction': False}),
    ('yogi', {'server_momentum': 0.0}),
    ('adam', {'adagrad_epsilon': 1e-7}),
])
def test_setting_of_another_optimizer_is_refused(name, foreign):
  (setting,) = foreign
  with pytest.raises(ValueError, match=f'{setting} .*would be ignored'):
    rates.ServerOptimizerConfig(server_optimizer=name, **foreign)


def test_unknown_optimizer_is_refused():
  with pytest.raises(ValueError, match='server_optimizer must be one of sgd'):
    rates.ServerOptimizerConfig(server_optimizer='sdg')
