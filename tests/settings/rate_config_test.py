"""Settings of schedules and of decay: one of them, and nothing ignored."""

import pytest

from baselines.settings import rates
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


@pytest.mark.parametrize(
    'settings, message',
    [
        ({'client_schedule': 'linear'}, 'client_schedule must be one of'),
        ({'client_schedule': 'inverse'}, 'client_schedule_offset must be giv'),
        ({'server_schedule': 'steps'}, 'server_schedule_steps must be given'),
        ({'client_schedule_offset': 1.0}, 'client_schedule_offset would be ig'),
        ({'server_schedule_steps': '2:1'}, 'server_schedule_steps would be ig'),
        (
            {'client_schedule': 'inverse', 'client_schedule_offset': -1.0},
            'client_schedule_offset must be greater than -1',
        ),
        (
            {'client_schedule': 'steps', 'client_schedule_steps': '2-0.5'},
            'must be ROUND:FACTOR',
        ),
        (
            {'client_schedule': 'steps', 'client_schedule_steps': '1:0.5'},
            'rise from 2',
        ),
        (
            {'client_schedule': 'steps', 'client_schedule_steps': '3:1,2:1'},
            'rise from 2',
        ),
        (
            {'client_schedule': 'steps', 'client_schedule_steps': '2:inf'},
            'finite factors',
        ),
        ({'window': 5}, "window would be ignored: decay_rule is 'none'"),
        ({'client_decay': 0.5}, 'client_decay would be ignored'),
        ({'representative_clients': 5}, 'representative_clients would be ig'),
        (
            {
                'decay_rule': 'canonical',
                'client_schedule': 'inverse',
                'client_schedule_offset': 1.0,
            },
            'decay_rule must be none with a schedule',
        ),
        (
            {'decay_rule': 'canonical', 'representative_clients': 5,
             'window': 5},
            'window would be ignored: representative_clients is given',
        ),
        (
            {'decay_rule': 'canonical', 'min_client_learning_rate': 0.1},
            'min_client_learning_rate would be ignored',
        ),
        ({'decay_rule': 'canonical', 'patience': 0}, 'patience must be at lea'),
        ({'decay_rule': 'canonical', 'server_decay': 1.1}, 'at most 1'),
        ({'decay_rule': 'canonical', 'client_decay': 0.0}, 'greater than 0'),
    ],
)
def test_wrong_settings(settings, message):
  with pytest.raises(ValueError, match=message):
    Rate(**settings)


def test_patience_0_is_legal_in_the_callback():
  assert Rate(decay_rule='callback', patience=0).patience == 0


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
