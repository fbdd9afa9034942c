"""Settings of schedules, of decay and of server optimizers: the defaults."""

import pytest

from baselines.settings import rates
from tff_localupdate import optimizer_settings
from tff_localupdate.local_update import plateau

Rate = rates.RateConfig


def test_rates_are_constant_unless_asked():
  config = Rate()
  assert config.is_constant and not config.decays
  assert config.window is config.client_decay is None


@pytest.mark.parametrize('rule', ['canonical', 'callback'])
def test_decay_takes_the_papers_numbers(rule):
  config = Rate(decay_rule=rule)
  assert (config.window, config.patience, config.cooldown) == (100, 100, 100)
  assert config.min_improvement == 1e-4
  assert (config.client_decay, config.server_decay) == (0.1, 0.9)
  assert config.min_client_learning_rate is None


def test_representative_clients_stand_for_the_three():
  config = Rate(decay_rule='canonical', representative_clients=3400)
  assert config.window is config.patience is config.cooldown is None


def test_steps_are_read():
  config = Rate(
      server_schedule='steps', server_schedule_steps='100:0.5,200:0.1'
  )
  assert config.steps('server') == ((100, 0.5), (200, 0.1))
  assert config.steps('client') == () and not config.is_constant


@pytest.mark.parametrize('cooldown', [0, 1, 2, 5])
@pytest.mark.parametrize('kind, window, patience', [
    *((kind, *numbers) for kind in ('canonical', 'callback')
      for numbers in ((1, 1), (3, 2), (2, 4))),
    ('callback', 3, 0),
])
def test_first_rounds_that_cannot_have_other_rates(
    kind, window, patience, cooldown
):
  rule = plateau.PlateauRule(window, patience, cooldown, 1e-4, kind)
  state, rounds, decays = plateau.initial_state(rule), 0, False
  while not decays:
    # No loss decays the rates sooner than one that rises.
    result = plateau.update(rule, state, float(rounds))
    state, decays, rounds = result.state, bool(result.decays), rounds + 1
  config = Rate(
      decay_rule=kind, window=window, patience=patience, cooldown=cooldown
  )
  assert config.rounds_without_decay == rounds
  assert Rate().rounds_without_decay is None


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
