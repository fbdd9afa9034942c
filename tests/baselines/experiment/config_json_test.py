"""Settings survive JSON, and name the run."""

import json

import pytest

from baselines.experiment import config
from baselines.experiment import config_json

_BASE = config.ExperimentConfig()
_YOGI = config.ExperimentConfig(
    task=config.TaskConfig('femnist', data_source='cache', data_dir='d'),
    algorithm=config.LocalUpdateConfig(theta='0.5,0,2'),
    server_optimizer=config.ServerOptimizerConfig('yogi'),
    run=config.RunConfig(dtype='float64'),
)


@pytest.mark.parametrize('original', [_BASE, _YOGI])
def test_json_round_trip(original):
  assert config_json.from_json(config_json.to_json(original)) == original


def test_tree_holds_what_is_used_and_nothing_else():
  optimizer = config_json.to_tree(_BASE)['server_optimizer']
  assert optimizer == {
      'server_optimizer': 'sgd',
      'server_learning_rate': 0.05,
      'server_momentum': 0.0,
  }
  yogi = config_json.to_tree(_YOGI)['server_optimizer']
  assert yogi['yogi_beta_2'] == 0.99
  assert 'server_momentum' not in yogi


@pytest.mark.parametrize('change, message', [
    (lambda t: t['run'].pop('rounds'), "run .*missing: .'rounds'"),
    (lambda t: t['run'].update(round=1), "run .*unknown: .'round'"),
    (lambda t: t.pop('task'), "config .*missing: .'task'"),
    (lambda t: t['algorithm'].update(algorithm='x'), "algorithm .*'x'"),
    (lambda t: t['run'].update(rounds=-1), 'rounds must be at least 1'),
])
def test_other_trees_are_refused(change, message):
  tree = config_json.to_tree(_BASE)
  change(tree)
  with pytest.raises(ValueError, match=message):
    config_json.from_json(json.dumps(tree))


def test_run_id_is_the_same_for_ever():
  # Finished runs are found again by this name: it must not change.
  expected = 'digits-gamma0.05-eta0.05-6056970687'
  assert config_json.run_id(_BASE) == expected


@pytest.mark.parametrize('changes, same', [
    ({'rounds': 5}, True),
    ({'rounds_per_checkpoint': 5}, True),
    ({'require_gpu': True}, True),
    ({'rounds_per_evaluation': 5}, False),
    ({'sampling_seed': 5}, False),
    ({'client_learning_rate': 0.051}, False),
    ({'theta': '1:9'}, False),
])
def test_run_id_depends_on_what_happens_in_the_run(changes, same):
  changed = config.replace_settings(_BASE, **changes)
  assert (config_json.run_id(changed) == config_json.run_id(_BASE)) == same


def test_differences_name_settings_with_both_values():
  changed = config.replace_settings(_BASE, theta='k3', rounds=7)
  assert config_json.differences(_BASE, changed) == {
      'theta': ('1:10', 'k3'),
      'rounds': (100, 7),
  }
  optimizer = config_json.differences(
      _BASE,
      config.ExperimentConfig(
          server_optimizer=config.ServerOptimizerConfig('adagrad')
      ),
  )
  assert optimizer['server_momentum'] == (0.0, None)
  assert optimizer['adagrad_epsilon'] == (None, 1e-7)
