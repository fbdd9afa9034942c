"""Settings of LocalUpdate and of the server optimizers."""

import pytest

from baselines.algorithms import config


@pytest.mark.parametrize('theta, canonical, num_steps', [
    ('1:10', '1:10', 10),
    ('1,1,1', '1:3', 3),
    ('k4', 'k4', 4),
    ('0.5,0,2,0', '0.5,0,2', 3),
])
def test_theta_is_kept_in_one_form(theta, canonical, num_steps):
  local_update = config.LocalUpdateConfig(theta=theta)
  assert local_update.theta == canonical
  assert local_update.num_steps == num_steps


@pytest.mark.parametrize('theta', ['1:0', '', '0,0', '-1', 'nan', '2:5'])
def test_theta_refused_by_name(theta):
  with pytest.raises(ValueError, match='theta'):
    config.LocalUpdateConfig(theta=theta)


def test_client_learning_rate_zero_is_legal():
  assert config.LocalUpdateConfig(client_learning_rate=0).num_steps == 10


@pytest.mark.parametrize('rate', [-0.1, float('nan')])
def test_rates_refused(rate):
  with pytest.raises(ValueError, match='client_learning_rate'):
    config.LocalUpdateConfig(client_learning_rate=rate)
  with pytest.raises(ValueError, match='server_learning_rate'):
    config.ServerOptimizerConfig(server_learning_rate=rate)


@pytest.mark.parametrize('name', config.OPTIMIZER_DEFAULTS)
def test_own_settings_take_defaults_and_others_stay_none(name):
  optimizer = config.ServerOptimizerConfig(server_optimizer=name)
  for other, defaults in config.OPTIMIZER_DEFAULTS.items():
    for setting, default in defaults.items():
      expected = default if other == name else None
      assert getattr(optimizer, setting) == expected


def test_yogi_defaults_are_the_papers():
  yogi = config.ServerOptimizerConfig(server_optimizer='yogi')
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
    config.ServerOptimizerConfig(server_optimizer=name, **foreign)


def test_unknown_optimizer_is_refused():
  with pytest.raises(ValueError, match='server_optimizer must be one of sgd'):
    config.ServerOptimizerConfig(server_optimizer='sdg')
